"""Finding what was said, remembered or added as a document.

search       turns a question into messages: `query` parses it without the words of `asking`, `candidates` chooses by
             the index which messages are read, `ranking` scores them; docs/explanation/recall.md has the formula
for_context  makes episodes of what was found, for a request
policy       settings and weights
embedding    the vectors that find by meaning
memories     what `et.memories` does, over the notes of a store: `memory_intents` decides, `memory_extraction` reads
             conversations by `memory_rules` or a model, `memory_selection` says which memories a request shows
knowledge    what `et.knowledge` does: `document_intents` splits documents into passages
note_search  search over notes, for memories and knowledge
"""

from __future__ import annotations
