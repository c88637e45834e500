"""Stubs: what a framework puts into its state in place of a large result that it wrote to a file.

deepagents keeps the id of the message and names the file after the call, `…/large_tool_results/<call id>`. A stub is
recognised by that, not by its wording, which changes from release to release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from everthread.core import payloads

_NOT_IN_FILE_NAMES = re.compile(r"[./\\]")


def may_be_stub(payload: Mapping[str, Any]) -> bool:
    """Whether a message names a file that is called after the call it answers."""
    call = payloads.fields(payload).get("tool_call_id")
    return isinstance(call, str) and bool(call) and _file_name(call) in payloads.text(payload)


def is_stub(payload: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether a message only says where the known one, a larger result of the same call, can be read."""
    calls = {payloads.fields(one).get("tool_call_id") for one in (payload, known)}
    return len(calls) == 1 and may_be_stub(payload) and len(payloads.text(payload)) < len(payloads.text(known))


def _file_name(call: str) -> str:
    return f"/{_NOT_IN_FILE_NAMES.sub('_', call)}"
