"""What was called, with what, and what came of it: one line for each tool call of a span.

book_flight(user_id=mia_li_3668, cabin=economy) → reservation_id=HATHAT, total=1,255
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from everthread.compaction.sources import Source, SourceCall
from everthread.compaction.summary_format import to_one_line

_ARGUMENTS_CHARS = 100
_RESULT_CHARS = 120
# Of something that was done, that it was done is the news.
_DONE_CHARS = 60
_VALUE_CHARS = 60
# What a tool answers in words is often large; its beginning is read, the rest is opened by the seq.
_READ_CHARS = 4_000

_FAILED = re.compile(
    r"^\s*(?:error|failed|failure|exception|traceback|fatal|denied|invalid|not found|timed? ?out|错误|失败|异常)\b"
    r"|Traceback \(most recent call last\)|\b[A-Z]\w{0,40}(?:Error|Exception)\b:"
    r"|\"(?:error|is_error)\"\s*:\s*(?:\"[^\"]|true|\{)"
    r"|\bexit (?:code|status)[ :=]+[1-9]|command not found|No such file or directory|Permission denied|错误[:：]|失败",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(r"(?i)error|exception|failed|fatal|denied|not found|错误|失败")
_ACTING = re.compile(
    r"(?i)(?:^|_|\.|-)(?:add|apply|approve|book|buy|cancel|change|commit|create|delete|deploy|edit|insert|install|modify"
    r"|move|order|pay|post|publish|put|refund|remove|rename|replace|run|save|schedule"
    r"|send|set|submit|transfer|update|upload|write|exec|execute|bash|patch)"
)
_COMMAND = re.compile(r"(?i)(?:^|[{,(\s])\"?(?:command|cmd|args|query|sql|script)\"?\s?[:=]\s?\"?\s*(\S[^\n]{0,200})")
_LOOKS_UP = re.compile(
    r"(?i)(?:get|list|find|search|read|show|fetch|query|look_?up|check|view|describe|count)(?:_|[A-Z]|\b)"
)
_LOOKING = re.compile(
    r"(?i)(?:sudo )?(?:kubectl |docker |helm )?(?:ls|cat|grep|rg|find|head|tail|sed -n|wc"
    r"|pwd|echo|which|tree|get|top|logs?|describe|ps|list|show|diff|status|history|explain|select|with"
    r"|git (?:status|log|diff|show|grep|blame)"
    r"|curl -s?I?|ping|df|du|env|mypy|ruff|pytest|python -m pytest|make (?:check|lint|test))\b"
)
_ENTER_FOLDER = re.compile(r"^cd \S{1,200}? ?(?:&&|;)")
_PART_ENDS = re.compile(r"&&|\|\||;")
_CHANGING = re.compile(
    r"(?i)\b(?:set|apply|delete|scale|rollout|restart|patch|create|insert|update|drop|alter|commit|push|merge|checkout|install"
    r"|mv|rm|cp|mkdir|deploy|migrate|upgrade)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A call and its result, or either alone where the span holds only one."""

    call: SourceCall | None
    result: Source | None
    first_seq: int
    last_seq: int
    repeats: int = 1
    owner: str = ""
    """For whom it was, where only an earlier call said whose the id in it is."""

    @property
    def failed(self) -> bool:
        """Whether the result says so."""
        return self.result is not None and bool(_FAILED.search(self.result.text[:_READ_CHARS]))

    @property
    def says_something(self) -> bool:
        """Whether there is more to tell than that a result was empty, of a call that is not in the span."""
        return self.call is not None or (self.result is not None and bool(self.result.text.strip()))

    @property
    def unanswered(self) -> bool:
        """Whether the call's result is not in the span."""
        return self.result is None

    @property
    def acts(self) -> bool:
        """Whether it changes something, rather than looks something up."""
        return acts(f"{self.tool}({self.call.arguments if self.call else ''}")

    @property
    def tool(self) -> str:
        """The tool's name, from whichever side knows it."""
        named = self.call.name if self.call else (self.result.tool_name if self.result else None)
        return named or "tool"


def acts(called: str) -> bool:
    """Whether a call, as a name with its arguments in brackets, says that it changes something: by the tool's name, and
    where it runs a command, by the command: what one looks at first does not make up for what it does then."""
    name, _, arguments = called.partition(" → ")[0].partition("(")
    command = _COMMAND.search(arguments[:_READ_CHARS])
    if command is None:
        return bool(_ACTING.search(name)) and not _LOOKS_UP.match(name)
    first, *others = map(str.strip, _PART_ENDS.split(_ENTER_FOLDER.sub("", command[1])))
    if _LOOKING.match(first) is None and (_ACTING.search(name) or _CHANGING.search(first)):
        return True
    return any(_CHANGING.search(one) and not _LOOKING.match(one) for one in others)


def call_outcomes(sources: Sequence[Source]) -> list[CallOutcome]:
    """Every call of the span with its result, in order; equal calls with equal results count once."""
    waiting: defaultdict[str, deque[tuple[SourceCall, int]]] = defaultdict(deque)
    found: list[CallOutcome] = []
    for source in sources:
        for call in source.calls:
            waiting[call.call_id or call.name].append((call, source.seq))
        if source.is_tool_result:
            answered, seq = _pop_call(waiting, source)
            found.append(CallOutcome(call=answered, result=source, first_seq=min(seq, source.seq), last_seq=source.seq))
    left = [
        CallOutcome(call=call, result=None, first_seq=s, last_seq=s) for queue in waiting.values() for call, s in queue
    ]
    in_order = sorted([*found, *left], key=lambda outcome: (outcome.last_seq, outcome.first_seq))
    return _without_repeats(_with_owners(in_order))


_OWNER_KEY = re.compile(
    r"(?i)(?:^|_)(?:customer|client|user|patient|guest|passenger|employee|tenant|student|member|buyer|owner|contact|name"
    r"|full_?name)$|客户|用户|姓名|买家|客人"
)
_OWNER = re.compile(r"[^\n=,/]{2,40}")
_ID = re.compile(r"[\w#-]{4,40}")


def _with_owners(outcomes: Sequence[CallOutcome]) -> list[CallOutcome]:
    """Each outcome with the name that an earlier one gave to an id it speaks of."""
    owners: dict[str, str] = {}
    told: list[CallOutcome] = []
    for outcome in outcomes:
        texts = [outcome.call.arguments if outcome.call else "", outcome.result.text if outcome.result else ""]
        names, ids = set[str](), set[str]()
        for record in (record for text in texts for record in _records(text)):
            named = {value for key, value in record if _OWNER_KEY.search(key) and _is_owner(value)}
            marked = {value for _, value in record if _is_id(value)} - named
            names |= named
            ids |= marked
            if len(named) == 1:
                owners.update(dict.fromkeys(marked, *named))
        owned = {owners[one] for one in ids if one in owners}
        whose = owned.pop() if len(owned) == 1 and not names else ""
        if whose:
            owners.update((one, whose) for one in ids if one not in owners)
        told.append(replace(outcome, owner=to_one_line(whose)) if whose else outcome)
    return told


def _is_owner(value: str) -> bool:
    return bool(_OWNER.fullmatch(value)) and any(map(str.isalpha, value))


def _is_id(value: str) -> bool:
    return bool(_ID.fullmatch(value)) and any(map(str.isdigit, value))


def _records(text: str) -> Iterator[list[tuple[str, str]]]:
    """The objects of a JSON text, each as its own scalar fields by name."""
    said = text.strip()[:_READ_CHARS]
    if said[:1] not in ("{", "["):
        return
    try:
        waiting = [json.loads(said)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield [(str(key), str(inner)) for key, inner in value.items() if isinstance(inner, str | int)]
            waiting.extend(inner for inner in value.values() if isinstance(inner, dict | list))
        elif isinstance(value, list):
            waiting.extend(inner for inner in value[:20] if isinstance(inner, dict | list))


def _pop_call(waiting: dict[str, deque[tuple[SourceCall, int]]], result: Source) -> tuple[SourceCall | None, int]:
    for key in (result.call_id, result.tool_name):
        if key and waiting.get(key):
            return waiting[key].popleft()
    return None, result.seq


def _without_repeats(found: list[CallOutcome]) -> list[CallOutcome]:
    last: dict[str, CallOutcome] = {}
    for outcome in found:
        line = outcome_line(outcome)
        before = last.pop(line, None)
        last[line] = outcome if before is None else replace(outcome, repeats=before.repeats + 1)
    return list(last.values())


def outcome_line(outcome: CallOutcome) -> str:
    """The line of a call, without its seq."""
    arguments = _shorten(outcome.call.arguments, _ARGUMENTS_CHARS) if outcome.call else ""
    times = f" ×{outcome.repeats}" if outcome.repeats > 1 else ""
    called = f"{to_one_line(outcome.tool)}({arguments}){times}" if outcome.call else to_one_line(outcome.tool)
    called = f"{called} [{outcome.owner}]" if outcome.owner else called
    if outcome.result is None:
        return f"{called} → ?"
    given = outcome.call.arguments if outcome.call else ""
    limit = _DONE_CHARS if outcome.acts and not outcome.failed else _RESULT_CHARS
    result = _shorten(outcome.result.text, limit, given=given, failed=outcome.failed)
    return f"{called} → {result}" if result else called


def _shorten(text: str, limit: int, *, given: str = "", failed: bool = False) -> str:
    """A JSON text by its fields, leaving out values that were `given` with the call; other text by a line of it."""
    said = text.strip()
    fields = _fields(said, given) if said[:1] in ("{", "[") else None
    if fields is None:
        return to_one_line(_key_line(said[:_READ_CHARS], limit, failed=failed))
    return to_one_line(_join_fields(fields, limit))


def _fields(said: str, given: str) -> list[str] | None:
    """The scalar fields of a JSON text, outer ones first; None when it is not whole or not JSON."""
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return None
    levels: defaultdict[int, list[str]] = defaultdict(list)
    for depth, name, scalar in _scalars(value, "", 0):
        if len(scalar) < 3 or scalar not in given:
            levels[depth].append(f"{name}={scalar}" if name else scalar)
    return [field for depth in sorted(levels) for field in levels[depth]]


def _scalars(value: object, name: str, depth: int) -> Iterator[tuple[int, str, str]]:
    if depth > 4 or value is None or value == "":
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, str(key), depth + 1)
    elif isinstance(value, list) and value and all(isinstance(inner, str | int | float) for inner in value):
        yield depth, name, to_one_line("/".join(str(inner) for inner in value)[:_VALUE_CHARS])
    elif isinstance(value, list):
        for inner in value[:8]:
            yield from _scalars(inner, name, depth)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield depth, name, to_one_line(text[:_VALUE_CHARS])


def _join_fields(fields: list[str], limit: int) -> str:
    line = ""
    for field in fields:
        longer = f"{line}, {field}" if line else field
        if len(longer) > limit:
            return f"{line}, …" if line else f"{field[:limit]}…"
        line = longer
    return line


def _key_line(text: str, limit: int, *, failed: bool) -> str:
    """The first line of a plain result; of a failure the last one that names it, as tracebacks do."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    naming = [line for line in lines if _ERROR_LINE.search(line)] if failed else []
    line = naming[-1] if naming else lines[0]
    more = "" if naming or len(lines) == 1 else f" … ({len(lines)} lines)"
    return f"{line[:limit]}{'…' if len(line) > limit else ''}{more}"
