"""Train the dictionary that payloads are packed with, from the project's own pages in the shapes messages come in.

    python tools/train_payloads.py FILE

Every file of everthread needs the very bytes it was written with: a new dictionary gets a name and a number of its
own beside the old one (`adapters/stores/sqlite/compression.py`); none is ever changed.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

_ROOT = Path(__file__).parent.parent
_BYTES = 4096
_LEVEL = 2
_ID = "\x01"
"""What stands for a message's id in its payload."""


def _texts() -> Iterator[str]:
    for page in sorted([*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md")]):
        for part in page.read_text("utf-8").split("\n\n"):
            if len(part.strip()) >= 20:
                yield part.strip()


def _shapes(text: str) -> Iterator[dict[str, Any]]:
    words = " ".join(text.split()[:8])
    call = {"name": "search", "args": {"query": words, "limit": 10}, "id": "call_", "type": "tool_call"}
    usage = {"input_tokens": 1024, "output_tokens": 96, "total_tokens": 1120, "input_token_details": {}}
    made = {"model_name": "", "model_provider": "openai", "finish_reason": "stop", "system_fingerprint": None}
    langchain = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "id": _ID}
    asked = json.dumps({"path": words, "query": words})
    yield {"role": "user", "content": text}
    yield {"role": "assistant", "content": text}
    yield {"role": "system", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}
    yield {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_", "type": "function", "function": {"name": "read_file", "arguments": asked}}]}  # fmt: skip
    yield {"role": "tool", "tool_call_id": "call_", "name": "read_file", "content": text}
    yield {"role": "assistant", "content": [
        {"type": "thinking", "thinking": words, "signature": ""},
        {"type": "tool_use", "id": "toolu_", "name": "search", "input": {"query": words}}]}  # fmt: skip
    yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_", "content": text}]}
    yield {"content": text, **langchain, "type": "human"}
    yield {"content": text, **langchain, "response_metadata": made, "type": "ai", "tool_calls": [call],
           "invalid_tool_calls": [], "usage_metadata": usage}  # fmt: skip
    yield {"content": text, **langchain, "type": "tool", "tool_call_id": "call_", "artifact": None, "status": "success"}
    yield {"id": _ID, "type": "human", "content": text, "created_at": "2026-01-01T00:00:00+00:00"}


def main() -> None:
    samples = [
        json.dumps(shape, ensure_ascii=False, separators=(",", ":")).replace(json.dumps(_ID)[1:-1], _ID).encode()
        for text in _texts()
        for shape in _shapes(text)
    ]
    random.Random(1).shuffle(samples)
    trained = zstandard.train_dictionary(_BYTES, samples, level=_LEVEL)
    Path(sys.argv[1]).write_bytes(trained.as_bytes())


if __name__ == "__main__":
    main()
