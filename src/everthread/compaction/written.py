"""A policy as people write it: a table in a file, or variables whose values are text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from everthread.compaction.policy import CompactionPolicy, merged
from everthread.core.errors import Invalid

PLAIN_VARIABLE = "MAX_MESSAGE_HISTORY"
"""Known by this name to programs that had such a setting before; it is honoured wherever a database is opened."""
NAMES = tuple(field.name for field in fields(CompactionPolicy))

_TYPES = get_type_hints(CompactionPolicy)
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def value_of(name: str, text: str) -> object:
    """The value that the text of a variable means; text that means none is left for the policy to refuse."""
    kind = _TYPES[name]
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    if kind not in (int, float):
        return text
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def policy_from(values: Mapping[str, Any]) -> CompactionPolicy:
    """The defaults with these values. A window too small for the default `keep_recent` lowers that."""
    policy = CompactionPolicy()
    most = values.get("max_message_history")
    if "keep_recent" not in values and isinstance(most, int) and 1 < most <= policy.keep_recent:
        values = {**values, "keep_recent": most - 1}
    return merged(policy, values)


def policy_from_variables(environ: Mapping[str, str]) -> CompactionPolicy:
    """What a program has that only opens a database: the defaults, and the one variable of that old name."""
    text = environ.get(PLAIN_VARIABLE)
    if not text:
        return CompactionPolicy()
    try:
        return policy_from({"max_message_history": value_of("max_message_history", text)})
    except Invalid as problem:
        raise Invalid(f"{problem} (set by {PLAIN_VARIABLE} in the environment)", field=PLAIN_VARIABLE) from None
