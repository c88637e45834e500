"""The conversations that recall is measured on: the project's own (`everyday`), and files from elsewhere.

A layout becomes `Talk`s, whose questions name the messages that hold the answer. Nothing is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import SHARED, everyday
from benchmarks.everyday import Message, Question, Talk

_LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D\D*(\d+)\D+(\d+)")
"""Session and turn, as in `D8:6; D9:17`, `D:11:26` and `D30:05`."""
_ROLES = {"user", "assistant", "tool", "system", ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSet:
    """One set of conversations: how it is loaded, and where a file that is not the project's comes from."""

    load: Callable[[], list[Talk]]
    path: Path | None = None
    """None where the project ships it."""
    origin: str = "this project"


def load_locomo(path: Path) -> list[Talk]:
    """Two people chatting over months. Evidence ids are mended; a question whose evidence does not exist is dropped."""
    return [_locomo_talk(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _locomo_talk(sample: Mapping[str, Any]) -> Talk:
    conversation = sample["conversation"]
    talk = Talk(sample["sample_id"])
    sessions = sorted(int(key[8:]) for key, said in conversation.items() if re.fullmatch(r"session_\d+", key) and said)
    for number in sessions:
        said_at = _time(conversation.get(f"session_{number}_date_time"), "%I:%M %p on %d %B, %Y")
        for turn in conversation[f"session_{number}"]:
            picture = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            talk.messages.append(_message(turn["dia_id"], role, turn["speaker"], turn["text"] + picture, said_at))
    known = {one.id for one in talk.messages}
    for at, asked in enumerate(sample["qa"]):
        named = {f"D{a}:{int(b)}" for one in asked.get("evidence", []) for a, b in _TURN_ID.findall(one)}
        kind = _LOCOMO_KINDS[asked["category"]]
        _ask(talk, f"{talk.id}#{at}", asked["question"], kind, named & known, talk.messages[-1].time)
    return talk


def load_beam(folder: Path) -> list[Talk]:
    """Chats with an assistant that answers at length: a folder each. Questions without evidence are dropped."""
    talks = []
    for chat in sorted(folder.glob("*/chat.json"), key=lambda path: int(path.parent.name)):
        talk = Talk(f"beam-{chat.parent.name}")
        said_at: datetime | None = None
        for batch in json.loads(chat.read_text(encoding="utf-8")):
            for one in (one for turn in batch["turns"] for one in turn):
                said_at = _time(one.get("time_anchor"), "%B-%d-%Y") or said_at
                text = re.sub(r"\s*->->\s*[\d,.\s]*$", "", one["content"] or "")
                talk.messages.append(_message(str(one["id"]), one["role"], one["role"], text, said_at))
        known = {one.id for one in talk.messages}
        probes = json.loads((chat.parent / "probing_questions.json").read_text(encoding="utf-8"))
        for kind, asked in probes.items():
            for at, one in enumerate(asked):
                evidence = {str(number) for number in _numbers(one.get("source_chat_ids", []))} & known
                _ask(talk, f"{chat.parent.name}#{kind}{at}", one["question"], kind, evidence, said_at)
        talks.append(talk)
    return talks


def load_plain(path: Path) -> list[Talk]:
    """A list of `{id, messages: [{id, role, speaker, text, time}], questions: [{id, text, category, evidence,
    asked_at}]}`, times in ISO 8601: the layout for conversations of your own."""
    talks = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        talk = Talk(str(row["id"]))
        for one in row["messages"]:
            role = one.get("role", "")
            speaker, said_at = one.get("speaker", role), _iso(one.get("time"))
            talk.messages.append(_message(str(one["id"]), role, speaker, one["text"], said_at))
        for one in row["questions"]:
            evidence = set(map(str, one["evidence"]))
            _ask(talk, str(one["id"]), one["text"], one.get("category", "all"), evidence, _iso(one.get("asked_at")))
        talks.append(talk)
    return talks


_DATA = SHARED / "data"
_OURS = (
    "conversations of this project's makers, not published; `load_plain` in benchmarks/recall_data.py has the layout"
)
SETS: Mapping[str, RecallSet] = {
    "locomo": RecallSet(
        path=_DATA / "locomo" / "dev.json",
        load=lambda: load_locomo(_DATA / "locomo" / "dev.json"),
        origin="github.com/snap-research/locomo: conv-26, 30, 41, 42 and 43 of data/locomo10.json, as one list",
    ),
    "beam": RecallSet(
        path=_DATA / "beam",
        load=lambda: load_beam(_DATA / "beam"),
        origin="github.com/mohammadtavakoli78/BEAM: the folders 1 to 10 of chats/100K",
    ),
    "zh": RecallSet(
        path=_DATA / "recall" / "zh-dev.json", load=lambda: load_plain(_DATA / "recall" / "zh-dev.json"), origin=_OURS
    ),
    "tools": RecallSet(
        path=_DATA / "recall" / "tools-dev.json",
        load=lambda: load_plain(_DATA / "recall" / "tools-dev.json"),
        origin=_OURS,
    ),
    "open": RecallSet(load=lambda: everyday.load("open")),
    "sealed": RecallSet(load=lambda: everyday.load("sealed")),
    "later": RecallSet(load=lambda: everyday.load("later")),
    "lately_open": RecallSet(load=lambda: everyday.load("lately_open")),
    "lately_sealed": RecallSet(load=lambda: everyday.load("lately_sealed")),
    "typed_open": RecallSet(load=lambda: everyday.load("typed_open")),
    "typed_sealed": RecallSet(load=lambda: everyday.load("typed_sealed")),
}


def _message(name: str, role: str, speaker: str, text: str, said_at: datetime | None) -> Message:
    named = {} if speaker in _ROLES or role == "tool" else {"name": speaker}
    when = {} if said_at is None else {"created_at": said_at.isoformat()}
    payload = {"id": name, "role": role or "user", "content": text, **named, **when}
    return Message(name, role, speaker, text, said_at, payload)


def _ask(talk: Talk, name: str, text: str, kind: str, evidence: set[str], asked_at: datetime | None) -> None:
    if evidence:
        talk.questions.append(Question(name, text, kind, frozenset(evidence), asked_at))


def _time(text: str | None, layout: str) -> datetime | None:
    try:
        return datetime.strptime((text or "").strip(), layout).replace(tzinfo=UTC)
    except ValueError:
        return None


def _iso(text: str | None) -> datetime | None:
    if text is None:
        return None
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _numbers(value: Any) -> Iterator[int]:
    """The numbers anywhere in a nest of lists and dicts."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
