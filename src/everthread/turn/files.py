"""Files that people hand in, as the model is told of them: a line before the question names each.

A file is named in the first question after it was uploaded, and in every one that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.workspaces import FileInfo, Upload
from everthread.turn.agent import Agent

_NOTE = re.compile(r"\[(?:uploaded: [^\n]+, [\w.+-]+/[\w.+-]+|file: [^\n]+), [\d,]+ bytes\](?:\n|$)")


class QuestionFiles(NamedTuple):
    """The messages of a question, in which its files are named, and the files that were handed in so far."""

    messages: Sequence[Any]
    uploads: Sequence[Upload]
    workspace_path: str


async def name_files(
    agent: Agent, conversation: Conversation, names: Sequence[str], messages: Sequence[Any]
) -> QuestionFiles:
    """Name the files of a question in it. Raises Invalid for one that the conversation does not have."""
    workspaces = agent.et.workspaces
    if conversation.parent_id is not None:  # a subagent works in the files of the conversation that it works for
        path = str(workspaces.path(await agent.et.conversations.top(conversation)))
        return QuestionFiles(messages, (), path)
    path = str(workspaces.path(conversation))
    uploads = await workspaces.uploads(conversation)
    if not uploads and not names:
        return QuestionFiles(messages, (), path)
    lines = [_upload_line(one) for one in await _untold(agent, conversation, uploads)]
    for place, name in enumerate(names):
        same = [_upload_line(one) for one in uploads if name in (one.name, one.path)]
        if not same:
            files = await workspaces.files(conversation)
            same = [_file_line(one) for one in files if name == one.path]
            if not same:
                there = ", ".join(one.path for one in files) or "none"
                raise Invalid(
                    f"this conversation has no file {name!r}; upload it first. Its files: {there}",
                    field=f"files[{place}]",
                )
        lines.append(same[-1])
    return QuestionFiles(_with_lines(messages, list(dict.fromkeys(lines))), uploads, path)


async def _untold(agent: Agent, conversation: Conversation, uploads: Sequence[Upload]) -> list[Upload]:
    """The uploads that no turn has named yet."""
    if not uploads:
        return []
    config = RunnableConfig(configurable={"thread_id": conversation.id, "everthread_owner": conversation.owner})
    told = (await agent.graph.aget_state(config)).values.get("uploaded_files") or ()
    known = [(one.get("path"), one.get("uploaded_at")) for one in told]
    return [one for one in uploads if (one.path, one.uploaded_at.isoformat()) not in known]


def upload_fields(upload: Upload) -> dict[str, Any]:
    """An upload as the graph's state has it."""
    return {
        "name": upload.name,
        "path": upload.path,
        "mime": upload.mime,
        "size_bytes": upload.size_bytes,
        "uploaded_at": upload.uploaded_at.isoformat(),
    }


def _upload_line(upload: Upload) -> str:
    return f"[uploaded: {upload.path}, {upload.mime}, {upload.size_bytes:,} bytes]"


def _file_line(file: FileInfo) -> str:
    return f"[file: {file.path}, {file.size_bytes:,} bytes]"


def without_notes(text: str) -> str:
    """What the user wrote, without the lines that name files."""
    end = 0
    while note := _NOTE.match(text, end):
        end = note.end()
    return text[end:] if text[end:].strip() else text


def _with_lines(messages: Sequence[Any], lines: Sequence[str]) -> list[Any]:
    """The messages, the last of the user's with these lines before it: none that it holds already."""
    changed = list(messages)
    for place in reversed(range(len(changed))):
        one = changed[place]
        payload = one.model_dump() if isinstance(one, BaseMessage) else one
        if not isinstance(payload, Mapping) or payloads.role(payload) != "user":
            continue
        content, said = payload.get("content"), payloads.text(payload)
        new = [line for line in lines if line not in said]
        if new and isinstance(content, str):
            changed[place] = _with_content(one, "\n".join([*new, content]))
        elif new and isinstance(content, list):
            changed[place] = _with_content(one, [{"type": "text", "text": "\n".join(new)}, *content])
        break
    return changed


def _with_content(message: Any, content: Any) -> Any:
    if isinstance(message, BaseMessage):
        return message.model_copy(update={"content": content})
    return {**message, "content": content}
