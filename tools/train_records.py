"""Train the dictionary that our own JSON is packed with, from documents in the shapes that turns leave behind.

    python tools/train_records.py FILE

Every database of everthread needs the very bytes it was written with: a new dictionary gets a name and a number of its
own beside the old one (`adapters/stores/packed_records.py`); none is ever changed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import zstandard

_ROOT = Path(__file__).parent.parent
_BYTES = 4096
_LEVEL = 3
_SAMPLES = 400
_UUID, _DIGEST, _HASH = "\x01", "\x02", "\x04"
_TURN, _CONVERSATION, _QUESTION, _ANSWER = "\x10", "\x11", "\x12", "\x13"
_NODES = ("route", "retrieve", "recall", "plan", "finalize", "persist")
_TOOLS = ("read_file", "write_file", "list_files", "todo_write", "use_skill", "search", "run", "fetch")


def _texts() -> list[str]:
    pages = sorted([*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md")])
    parts = [part.strip() for page in pages for part in page.read_text("utf-8").split("\n\n")]
    return [part for part in parts if len(part) >= 40]


def _usage(given: random.Random) -> dict[str, int]:
    asked, said = given.randint(100, 40_000), given.randint(5, 900)
    return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}


def _events(given: random.Random) -> list[Any]:
    seq = given.randint(1, 20_000)
    found: list[Any] = [["accepted", {
        "turn_id": _TURN, "conversation_id": _CONVERSATION, "question_id": _QUESTION, "answer_id": _ANSWER,
        "question_seq": seq}]]  # fmt: skip
    found += [["state", {"node": node, "loops": 0, "details": {}}] for node in _NODES[:2]]
    if given.random() < 0.6:
        seqs = sorted(given.sample(range(1, seq + 10), 6))
        found.append(["recall", {"seqs": seqs, "memories": [], "passages": 0, "degraded": []}])
    found.append(["state", {"node": "recall", "loops": 0, "details": {}}])
    if given.random() < 0.1:
        found.append(["compaction", {"ids": [_UUID], "messages": given.randint(10, 99)}])
    loops = 1
    while given.random() < 0.3:
        name, call = given.choice(_TOOLS), f"call_{given.getrandbits(60):x}"
        found.append(["tool_call", {"id": call, "name": name, "arguments": {"path": "notes.md"}, "message_id": _UUID}])
        found.append(["state", {"node": "plan", "loops": loops, "details": {}}])
        found.append(["tool_result", {"id": call, "name": name, "ok": True, "text": "done", "message_id": _UUID,
                                      "seconds": round(given.random(), 3)}])  # fmt: skip
        found.append(["state", {"node": "tools", "loops": loops, "details": {}}])
        loops += 1
    pieces = [min(1 + int(given.expovariate(0.25)), 40) for _ in range(given.randint(1, 200))]
    found.append(["token", _ANSWER, pieces])
    found += [["state", {"node": node, "loops": loops, "details": {}}] for node in _NODES[3:]]
    found.append(["done", {"state": "complete", "answer_id": _ANSWER, "usage": _usage(given), "loops": loops,
                           "@texts": {_ANSWER: _HASH}}])  # fmt: skip
    return found


def _turn(given: random.Random) -> dict[str, Any]:
    began = 1_795_000_000_000_000 + given.randint(0, 10**14)
    return {
        "question_id": _UUID, "answer_id": _UUID, "kind": given.choice(["turn", "turn", "turn", "run"]),
        "assistant": None, "model": None, "question_seq": given.randint(1, 20_000), "error": None, "metadata": {},
        "usage": _usage(given), "started_at": began, "ended_at": began + given.randint(10**5, 10**7),
    }  # fmt: skip


def _manifest(given: random.Random) -> dict[str, Any]:
    first = given.randint(1, 20_000)
    last = first + given.randint(1, 40)
    recalled = [[seq, seq, 0, given.randint(20, 900)] for seq in sorted(given.sample(range(1, first + 10), 6))]
    whole: dict[str, Any] = {
        "renderer": 5, "system_digest": _DIGEST, "tools_digest": _DIGEST,
        "summary_ids": [_UUID] * given.randint(0, 10), "pinned": [], "window": [[first, first, last]],
        "recalled": recalled if given.random() < 0.6 else [], "passed_over": None, "old_before": 1, "live_calls": [],
        "budget": {"window": 128_000, "output_reserve": given.randint(500, 9_000), "tools_tokens": 1_934,
                   "factor": round(1 + given.random() / 3, 4)},
        "provider": given.choice([None, "openai", "anthropic"]), "clamped": [], "omitted": [], "repairs": [],
        "tokens": given.randint(500, 60_000), "digest": _DIGEST, "standing": [], "memory_ids": [], "reminded_ids": [],
    }  # fmt: skip
    if given.random() < 0.2:
        return whole
    changed = ("window", "recalled", "budget", "tokens", "digest")
    return {"base": _UUID, **{name: whole[name] for name in changed if name != "budget" or given.random() < 0.3}}


def _compaction(given: random.Random, texts: list[str]) -> dict[str, Any]:
    after = given.randint(0, 20_000)
    lines = [
        f"- {given.choice(['user', 'assistant'])}: {given.choice(texts)[:300]}… [#{after + at}]"
        for at in range(given.randint(3, 9))
    ]
    return {
        "level": 1, "after_seq": after, "branch": 0, "span_hash": _DIGEST, "children": [],
        "summary": "\n".join(["## Facts", *lines, "## Also mentioned", f"- {given.choice(texts)[:20]} [#{after + 9}]"]),
        "strategy": "extract:chat", "model": None, "trigger": "messages", "original_count": given.randint(10, 80),
        "new_count": given.randint(3, 20), "tokens_before": given.randint(500, 9_000),
        "tokens_after": given.randint(200, 1_500), "facts_total": 23, "facts_kept": 23,
        "seconds": round(given.random(), 3),
    }  # fmt: skip


def _documents() -> Iterator[Any]:
    given, texts = random.Random(1), _texts()
    for number in range(_SAMPLES):
        yield _events(given)
        yield _turn(given)
        yield _manifest(given)
        if number % 8 == 0:
            yield _compaction(given, texts)


def _as_packed(document: Any) -> bytes:
    """As it stands before it is compressed: a byte in the place of each id, hashes without quotes."""
    text = orjson.dumps(document)
    for marker in (_DIGEST, _HASH):
        text = text.replace(orjson.dumps(marker), marker.encode())
    for marker in (_UUID, _TURN, _CONVERSATION, _QUESTION, _ANSWER):
        text = text.replace(orjson.dumps(marker)[1:-1], marker.encode())
    return text


def main() -> None:
    trained = zstandard.train_dictionary(_BYTES, [_as_packed(one) for one in _documents()], level=_LEVEL)
    Path(sys.argv[1]).write_bytes(trained.as_bytes())


if __name__ == "__main__":
    main()
