"""Text that a model or its server would read as more than text: tool calls, role marks, chat templates.

A summary stands as quoted data, so this is a second fence: a model's summary that holds such syntax is
refused, and the extractive one, which quotes what people pasted, takes it apart.
"""

from __future__ import annotations

import re

_TOOL_SYNTAX = re.compile(
    r"</?(?:\w{1,12}:)?(?:tool_calls?|tool_use|tool_result|tool_response|function_calls?|function_results|invoke|parameter)\b[^>\n]{0,200}>"
    r"|<[|｜][^|｜>\n]{0,60}(?:tool|function)[^|｜>\n]{0,60}[|｜]>|\[/?(?:TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]"
    r"|\"(?:tool_calls|function_call|tool_use_id|tool_call_id)\"\s{0,3}:"
    r"|\{\s{0,10}\"(?:name|type|tool|function|recipient_name)\"\s{0,3}:\s{0,3}\"[\w.-]{1,80}\"\s{0,3},\s{0,10}\"(?:arguments|parameters|input|args)\"\s{0,3}:",
    re.IGNORECASE,
)
_ROLE_MARKS = re.compile(
    r"<[|｜](?:im_start|im_end|im_sep|start_header_id|end_header_id|eot_id|eom_id|begin_of_text|end_of_text|endoftext|endofprompt|fim_\w{1,20}"
    r"|system|user|assistant|start|end|message|channel|return|begin▁of▁sentence|end▁of▁sentence|User|Assistant)[|｜]>"
    r"|\[/?INST\]|<</?SYS>>|</?(?:system|system-reminder|system_prompt|developer)>|<(?:start|end)_of_turn>",
    re.IGNORECASE,
)
# A line that opens a turn of its own to give orders; "System: Ubuntu 22.04" gives none.
_ROLE_LINE = re.compile(
    r"^[ \t]*(?:#{1,6} *)?\**(?:system|developer|系统)\**(?: prompt| message|提示)?\**[ \t]*[:：]"
    r".{0,40}\b(?:you|ignore|forget|disregard|override|obey|instructions?|rules)\b"
    r"|^[ \t]*\**系统(?:提示)?\**[ \t]*[:：].{0,20}(?:你|忽略|无视|从现在)",
    re.IGNORECASE | re.MULTILINE,
)
_TURN_LINE = re.compile(
    r"^[ \t]*(?:#{1,6} *)?\**(user|human|assistant|ai|tool|用户|助手)\**[ \t]*[:：]", re.IGNORECASE | re.MULTILINE
)
_DISARM = str.maketrans({"<": "‹", ">": "›", "[": "(", "]": ")", "{": "(", "}": ")", "|": "¦", "｜": "¦", '"': "'"})


def has_tool_syntax(text: str) -> bool:
    """Whether some provider's syntax of a tool call stands in it."""
    return bool(_TOOL_SYNTAX.search(text))


def has_role_marks(text: str) -> bool:
    """Whether it opens a turn of a system, or uses a chat template's control marks."""
    return bool(_ROLE_MARKS.search(text) or _ROLE_LINE.search(text))


def is_dialogue(text: str) -> bool:
    """Whether it goes on with the conversation, turn by turn, instead of telling what was said."""
    speakers = [match[1].lower() for match in _TURN_LINE.finditer(text)]
    return len(speakers) >= 3 and len(set(speakers)) >= 2


def neutralise(text: str) -> str:
    """The text with such syntax spelled so that nothing reads it as such; all else as it was."""
    for pattern in (_TOOL_SYNTAX, _ROLE_MARKS):
        if pattern.search(text):
            text = pattern.sub(lambda match: match[0].translate(_DISARM), text)
    return text
