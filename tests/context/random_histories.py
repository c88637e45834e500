"""Random tool histories as agents really leave them, from a `random.Random`: by a seed, or driven by hypothesis.

A history is written in one dialect, or in all of them at once. Parallel calls, calls interrupted, results late, twice
or of nobody, ids reused, empty or strange, reasoning signed and unsigned, images, blank and giant texts, Chinese.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

Message = dict[str, Any]
Dialect = Literal["openai", "langchain", "anthropic"]
DIALECTS: tuple[Dialect, ...] = ("openai", "langchain", "anthropic")

TEXTS = (
    "ok",
    "yes",
    "What is the weather in Paris tomorrow?",
    "帮我查一下上海到北京的航班，谢谢。",
    "表情 👩‍👩‍👧 和 é 与 e\u0301",
    "line one\nline two\n\n\tindented",
    "trailing space ",
    "<tool_call>{}</tool_call>",
    "x" * 300,
)
BLANKS = ("", " ", "\n\t ", None)
GIANTS = ("lorem ipsum " * 200, "很长的中文输出，" * 150, json.dumps({"rows": list(range(400))}), "\U0001f600" * 300)
NAMES = ("search", "read_file", "写文件", "run shell", "", "n" * 80, "book-flight_2")
STRANGE_ARGUMENTS = ("{", "[1, 2]", "null", '"text"', "", "{'single': 1}", "NaN", '{"a": NaN}')
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often things go wrong, each from 0 to 1."""

    interrupted: float = 0.2
    twice: float = 0.08
    late: float = 0.1
    orphans: float = 0.08
    strange_ids: float = 0.25
    strange_calls: float = 0.1
    blanks: float = 0.1
    giants: float = 0.03
    images: float = 0.08
    thinking: float = 0.2
    unsigned: float = 0.3
    late_system: float = 0.06
    odd: float = 0.05
    """Names with spaces, roles nobody knows, content of a wrong type, half characters."""


STORM = Weather()
INTERRUPTIONS_ONLY = Weather(
    twice=0, late=0, orphans=0, strange_ids=0, strange_calls=0, blanks=0, giants=0, images=0, thinking=0,
    late_system=0, odd=0,
)  # fmt: skip
TANGLED = Weather(
    strange_calls=0, blanks=0, giants=0, images=0, thinking=0, late_system=0, odd=0,
)  # fmt: skip
"""Calls and results in disorder; every message is sound by itself."""
CALM = Weather(
    interrupted=0, twice=0, late=0, orphans=0, strange_ids=0, strange_calls=0, blanks=0, giants=0.02, images=0.05,
    thinking=0, unsigned=0, late_system=0, odd=0,
)  # fmt: skip
"""Every request is valid as it stands, for both providers: OpenAI takes no thinking."""


def random_history(
    rng: Random, *, turns: int = 5, weather: Weather = STORM, dialects: tuple[Dialect, ...] = DIALECTS
) -> list[Message]:
    """A history of up to so many user turns."""
    maker = _Maker(rng=rng, weather=weather, dialects=dialects)
    mixed = weather is not CALM and rng.random() < 0.1
    maker.dialect = rng.choice(dialects)
    if rng.random() < 0.6:
        maker.add(maker.system())
    for _ in range(rng.randint(0 if weather is not CALM else 1, turns)):
        if mixed:
            maker.dialect = rng.choice(dialects)
        maker.turn()
    maker.flush_late()
    return maker.messages


@dataclass(slots=True)
class _Maker:
    rng: Random
    weather: Weather
    dialects: tuple[Dialect, ...]
    dialect: Dialect = "openai"
    messages: list[Message] = field(default_factory=list)
    late: list[Message] = field(default_factory=list)
    made: int = 0

    def chance(self, probability: float) -> bool:
        return probability > 0 and self.rng.random() < probability

    def add(self, message: Message) -> None:
        if self.chance(self.weather.odd):
            message = self.odd(message)
        self.messages.append(message)

    # --- who speaks ---

    def turn(self) -> None:
        if not self.chance(self.weather.odd):
            self.add(self.user())
        for _ in range(self.rng.randint(0, 3)):
            self.call_and_answer()
        if self.chance(self.weather.late_system):
            self.add(self.system())
        if self.chance(0.8) or self.weather is CALM:
            self.add(self.assistant(self.content(), []))
        if self.chance(0.5):
            self.flush_late()

    def system(self) -> Message:
        content = self.rng.choice(("You are helpful.", "You are helpful. It is Monday.", "你是助手。"))
        message = {"type": "system"} if self.dialect == "langchain" else {"role": "system"}
        if self.chance(self.weather.odd):
            message["name"] = "policy"
        return {**message, "content": content}

    def user(self) -> Message:
        content: Any = self.content()
        if self.chance(self.weather.images):
            content = [{"type": "text", "text": self.rng.choice(TEXTS)}, self.image()]
        return self.as_user(content)

    def as_user(self, content: Any) -> Message:
        return (
            {"type": "human", "content": content}
            if self.dialect == "langchain"
            else {"role": "user", "content": content}
        )

    def content(self) -> Any:
        if self.chance(self.weather.blanks):
            return self.rng.choice(BLANKS)
        text = self.rng.choice(GIANTS if self.chance(self.weather.giants) else TEXTS)
        text = text.rstrip() if self.weather is CALM else text
        if self.chance(0.15):
            parts = [text, *([self.rng.choice(BLANKS[:3])] if self.chance(self.weather.blanks * 3) else [])]
            return [{"type": "text", "text": part} for part in parts]
        return text

    def image(self) -> Message:
        if self.dialect == "anthropic" and self.weather is not CALM:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            return {"type": "image", "source": source}
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}

    # --- calls ---

    def call_and_answer(self) -> None:
        count = self.rng.choice((1, 1, 1, 2, 2, 3, 5))
        calls = [self.call() for _ in range(count)]
        text = (
            self.content()
            if self.chance(0.4)
            else self.rng.choice(("", "") if self.dialect == "langchain" else ("", None))
        )
        self.add(self.assistant(text, calls))
        results = self.results(calls)
        if self.dialect == "anthropic":
            self.add_blocks(results)
        else:
            for result in results:
                self.add(result)

    def call(self) -> Message:
        self.made += 1
        name, arguments = (
            "search",
            json.dumps({"query": self.rng.choice(TEXTS), "limit": self.made}, ensure_ascii=False),
        )
        if self.chance(self.weather.giants):
            arguments = json.dumps({"path": "a.py", "content": self.rng.choice(GIANTS)}, ensure_ascii=False)
        call_id = f"call_{self.made}"
        if self.chance(self.weather.strange_ids):
            call_id = self.rng.choice(("call_1", "call_1", "call_0", "", "toolu_" + "9" * 60, "id with space", "调用"))
        if self.chance(self.weather.strange_calls):
            name, arguments = self.rng.choice(NAMES), self.rng.choice(STRANGE_ARGUMENTS)
        return {"id": call_id, "name": name, "arguments": arguments}

    def results(self, calls: list[Message]) -> list[Message]:
        found = []
        for call in calls:
            if self.chance(self.weather.interrupted):
                continue
            result = self.result(call["id"])
            if self.chance(self.weather.late):
                self.late.append(result)
                continue
            found.append(result)
            if self.chance(self.weather.twice):
                found.append(self.result(call["id"]))
        if self.chance(self.weather.orphans):
            found.append(self.result(self.rng.choice(("nobody", "call_1", ""))))
        if self.weather is not CALM and self.chance(0.3):
            self.rng.shuffle(found)
        return found

    def result(self, call_id: str) -> Message:
        content: Any = self.rng.choice(("", "12 rows", "找到三个航班", '{"ok": true}'))
        if self.chance(self.weather.giants * 3):
            content = self.rng.choice(GIANTS)
        elif self.chance(self.weather.blanks):
            content = self.rng.choice((None, [], [{"type": "text", "text": " "}], {"rows": [1, 2]}))
        elif self.chance(self.weather.images) and (self.dialect == "anthropic" or self.weather is not CALM):
            content = [self.image()]
        if self.dialect == "anthropic":
            return {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if self.dialect == "langchain":
            return {"type": "tool", "content": content, "tool_call_id": call_id, "name": "search", "status": "success"}
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    def add_blocks(self, blocks: list[Message]) -> None:
        said = [{"type": "text", "text": self.rng.choice(TEXTS)}] if self.chance(0.2) else []
        order = [*said, *blocks] if said and self.weather is not CALM and self.chance(0.3) else [*blocks, *said]
        if blocks:
            self.add(self.as_user(order))

    def flush_late(self) -> None:
        for result in self.late:
            self.add(result if result.get("type") != "tool_result" else {"role": "user", "content": [result]})
        self.late = []

    # --- the assistant, in three dialects ---

    def assistant(self, content: Any, calls: list[Message]) -> Message:
        if self.dialect != "openai" and self.chance(self.weather.thinking):
            content = [*self.thinking(), *self.as_blocks(content)]
        if self.dialect == "anthropic":
            blocks = [*self.as_blocks(content), *(self.tool_use(call) for call in calls)]
            return {"role": "assistant", "content": blocks if calls or not isinstance(content, str) else content}
        if self.dialect == "langchain":
            return self.langchain_assistant(content, calls)
        message: Message = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in calls
            ]
        return message

    def langchain_assistant(self, content: Any, calls: list[Message]) -> Message:
        listed, invalid = [], []
        for call in calls:
            arguments = _object(call["arguments"])
            entry = {"name": call["name"], "args": arguments, "id": call["id"], "type": "tool_call"}
            if arguments is None:
                wrong = {"args": call["arguments"], "type": "invalid_tool_call", "error": "no JSON"}
                invalid.append({**entry, **wrong})
            else:
                listed.append(entry)
        if calls and isinstance(content, list) and self.chance(0.7):
            content = [*content, *(self.tool_use(call) for call in calls if _object(call["arguments"]) is not None)]
        return {"type": "ai", "content": content, "tool_calls": listed, "invalid_tool_calls": invalid}

    def tool_use(self, call: Message) -> Message:
        return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": _object(call["arguments"])}

    def as_blocks(self, content: Any) -> list[Message]:
        if isinstance(content, list):
            return content
        return (
            [{"type": "text", "text": content}]
            if content or (content == "" and self.chance(self.weather.blanks))
            else []
        )

    def thinking(self) -> list[Message]:
        if self.chance(0.2):
            return [{"type": "redacted_thinking", "data": "EuYBCoYBGAIiQL"}]
        block: Message = {"type": "thinking", "thinking": "Let me think. 让我想想。"}
        return [block if self.chance(self.weather.unsigned) else {**block, "signature": "ErUBCkYIBBgCIkD"}]

    def odd(self, message: Message) -> Message:
        kind = self.rng.randrange(6)
        if kind == 0:
            return {**message, "name": "Wang Wei"}
        if kind == 1:
            return {"type": "critic", "content": "an outside voice"}
        if kind == 2 and isinstance(message.get("content"), str):
            return {**message, "content": message["content"] + "\ud83d"}
        if kind == 3 and isinstance(message.get("content"), str):
            return {**message, "content": ["plain", {"text": message["content"]}]}
        if kind == 4 and message.get("type") in ("human", "ai", "tool", "system"):
            return {"type": message["type"], "data": {key: item for key, item in message.items() if key != "type"}}
        return {**message, "content": {"a": 1}} if kind == 5 and isinstance(message.get("content"), str) else message


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
