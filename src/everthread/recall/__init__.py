"""Finding what was said, remembered or added as a document.

`search` turns a question into messages: `query` parses it, `candidates` chooses by the index which messages are read,
`ranking` orders them; `for_context` makes episodes of them for a request. `embedding` keeps the vectors that find by
meaning. `memories` and `knowledge` are what `et.memories` and `et.knowledge` do, over the notes of a store.
"""

from __future__ import annotations
