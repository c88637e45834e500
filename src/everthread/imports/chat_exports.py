"""What chat services export, one conversation at a time: ChatGPT, Claude.ai, Open WebUI, LibreChat.

All of them keep a tree of messages, and name the one that was shown last. Parents are yielded before their children,
and the branch that was shown comes last, so that it is the active one here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import Any

from everthread.core.payloads import block_type
from everthread.imports.session import (
    START,
    BrokenEntry,
    NativeMessage,
    Session,
    dict_at,
    moment_of,
    one_line_title,
    safe_id,
    text_in,
    texts_in,
    time_of,
    tool_call,
    without_none,
)

_NO_PARENT = "00000000"
Draft = tuple[Session, list[NativeMessage]]


def read_chatgpt(value: Mapping[str, Any]) -> Draft:
    """ChatGPT's `conversations.json`: a `mapping` of nodes. Some have no message, some are hidden context."""
    nodes = {str(id): node for id, node in _mapping(value, "mapping").items() if isinstance(node, dict)}
    session = _session(
        "chatgpt", value.get("conversation_id") or value.get("id"), value.get("title"), value.get("create_time")
    )
    session.note(model=value.get("default_model_slug"), gizmo=value.get("gizmo_id"))
    payloads = {}
    for id, node in nodes.items():
        message = node.get("message")
        if isinstance(message, dict) and (payload := _chatgpt_message(id, message)) is not None:
            payloads[id] = payload
    parents = {id: node.get("parent") for id, node in nodes.items()}
    return session, list(_placed(session, payloads, parents, value.get("current_node")))


def _chatgpt_message(id: str, message: Mapping[str, Any]) -> dict[str, Any] | None:
    author = dict_at(message, "author")
    metadata = dict_at(message, "metadata")
    content = dict_at(message, "content")
    blocks = list(_chatgpt_blocks(content))
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if not blocks or (is_hidden and not text_in(blocks).strip()):
        return None
    attached = metadata.get("attachments")
    role = str(author.get("role") or "user")  # what is hidden nobody said: it is context that the service added
    return without_none({
        "id": safe_id(id), "role": "system" if is_hidden and role == "user" else role,
        "name": author.get("name"), "content": blocks, "created_at": time_of(message.get("create_time")),
        "model": metadata.get("model_slug"), "attachments": attached or None, "is_meta": True if is_hidden else None,
        "citations": metadata.get("content_references") or metadata.get("citations") or None,
        "recipient": None if message.get("recipient") in (None, "all") else message["recipient"],
    })  # fmt: skip


def _chatgpt_blocks(content: Mapping[str, Any]) -> Iterator[Any]:
    kind = content.get("content_type")
    if kind == "thoughts":
        for one in content.get("thoughts") or ():
            if isinstance(one, dict):
                said = "\n".join(str(one[key]) for key in ("summary", "content") if one.get(key))
                yield {"type": "thinking", "thinking": said}
        return
    if kind == "reasoning_recap":
        yield {"type": "thinking", "thinking": str(content.get("content") or "")}
        return
    about = {name: content[name] for name in ("title", "url", "domain", "language") if content.get(name)}
    for key in ("text", "result", "content", "user_profile", "user_instructions"):
        if isinstance(content.get(key), str) and content[key]:
            yield {**about, "type": "text", "text": content[key]}
    for part in content.get("parts") or ():
        if part:
            yield {"type": "text", "text": part} if isinstance(part, str) else part


def read_claude_ai(value: Mapping[str, Any]) -> Draft:
    """Claude.ai's `conversations.json`: `chat_messages`, with parents in newer exports."""
    listed = _list(value, "chat_messages")
    session = _session("claude-ai", value.get("uuid"), value.get("name"), value.get("created_at"))
    project = value.get("project")
    session.note(project=project.get("name") if isinstance(project, dict) else None)
    payloads, parents, last = {}, {}, None
    for index, message in enumerate(one for one in listed if isinstance(one, dict)):
        id = str(message.get("uuid") or index)
        payloads[id] = _claude_ai_message(id, message)
        parent = message.get("parent_message_uuid")
        parents[id] = parent if _is_root(parent) or (isinstance(parent, str) and parent in payloads) else last
        last = id
    shown = value.get("current_leaf_message_uuid")
    return session, list(_placed(session, payloads, parents, shown if shown in payloads else last))


def _claude_ai_message(id: str, message: Mapping[str, Any]) -> dict[str, Any]:
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []
    for block in message.get("content") or ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use":
            call = str(block.get("id") or safe_id(id, "call", len(calls) + 1))
            calls.append(tool_call(call, block.get("name"), block.get("input")))
        elif block:
            blocks.append({**block} if kind == "tool_result" else block)
    _name_answered_calls(calls, blocks)
    if not blocks and isinstance(message.get("text"), str):
        blocks = [{"type": "text", "text": message["text"]}]
    files = [one for key in ("attachments", "files", "files_v2") for one in message.get(key) or ()]
    role = {"human": "user"}.get(str(message.get("sender")), str(message.get("sender") or "user"))
    return without_none({
        "id": safe_id(id), "role": role, "content": blocks, "tool_calls": calls or None,
        "created_at": time_of(message.get("created_at")), "attachments": files or None,
    })  # fmt: skip


def _name_answered_calls(calls: Iterable[Mapping[str, Any]], blocks: Iterable[Any]) -> None:
    """Let every result name its call, as older exports do not: it is that of the first call of its tool that has none.
    A result can stand before its call."""
    results = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_result"]
    answered = {one.get("tool_use_id") for one in results}
    left = [call for call in calls if call["id"] not in answered]
    for result in results:
        fitting = (call for call in left if call["name"] == (result.get("name") or call["name"]))
        if not result.get("tool_use_id") and (call := next(fitting, None)) is not None:
            result["tool_use_id"] = call["id"]
            left.remove(call)


def read_open_webui(value: Mapping[str, Any]) -> Draft:
    """Open WebUI: `chat.history.messages`, a tree by `parentId`; reasoning is HTML in the text, and items again."""
    chat = _mapping(value, "chat")
    history = dict_at(chat, "history")
    tree = history.get("messages")
    if isinstance(tree, dict):
        nodes = {str(id): node for id, node in tree.items() if isinstance(node, dict)}
        parents = {id: node.get("parentId") for id, node in nodes.items()}
    else:
        listed = [one for one in _list(chat, "messages") if isinstance(one, dict)]
        nodes = {str(one.get("id") or index): one for index, one in enumerate(listed)}
        ids = list(nodes)
        parents = {id: nodes[id].get("parentId") or (ids[index - 1] if index else None) for index, id in enumerate(ids)}
    session = _session(
        "open-webui", value.get("id") or chat.get("id"), value.get("title") or chat.get("title"),
        value.get("created_at") or chat.get("timestamp"),
    )  # fmt: skip
    session.note(folder=value.get("folder_id"), tags=chat.get("tags"))
    payloads = {id: _open_webui_message(id, node) for id, node in nodes.items()}
    return session, list(_placed(session, payloads, parents, history.get("currentId")))


_DETAILS = re.compile(r"<details\b([^>]*)>\s*(?:<summary>.*?</summary>)?(.*?)</details>\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)="([^"]*)"')


def _open_webui_message(id: str, node: Mapping[str, Any]) -> dict[str, Any]:
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []

    def take(found: re.Match[str]) -> str:
        attributes = {name: unescape(given) for name, given in _ATTRIBUTE.findall(found[1])}
        if attributes.get("type") == "reasoning":
            thought = "\n".join(
                line.removeprefix(">").removeprefix(" ") for line in unescape(found[2]).strip().splitlines()
            )
            blocks.append({"type": "thinking", "thinking": thought})
        elif attributes.get("type") == "tool_calls":
            calls.append(tool_call(attributes.get("id"), attributes.get("name"), attributes.get("arguments")))
            if attributes.get("result"):
                blocks.append(result_block(attributes.get("id"), attributes["result"]))
        else:
            return found[0]
        return ""

    role = str(node.get("role") or "user")
    content = node.get("content")
    if isinstance(content, str):
        said = _DETAILS.sub(take, content) if role == "assistant" else content
        if said.strip():
            blocks.append({"type": "text", "text": said})
    elif content:
        blocks += content if isinstance(content, list) else [content]
    if not calls and all(block_type(block) == "text" for block in blocks if isinstance(block, dict)):
        blocks = [*_take_items(node.get("output"), calls, with_text=not blocks), *blocks]
    return without_none({
        "id": safe_id(id), "role": role, "content": blocks, "tool_calls": calls or None,
        "created_at": time_of(node.get("timestamp")),
        "model": None if role == "user" else node.get("model") or _first(node.get("models")),
        "attachments": node.get("files") or None, "usage": node.get("usage") or node.get("info") or None,
        "sources": node.get("sources") or node.get("citations") or None,
    })  # fmt: skip


def _take_items(items: object, calls: list[dict[str, Any]], *, with_text: bool) -> Iterator[dict[str, Any]]:
    """What an answer's items have beside its text: newer versions keep thinking and tools only there."""
    for item in items if isinstance(items, list) else ():
        match item.get("type") if isinstance(item, dict) else None:
            case "reasoning":
                said = text_in(item.get("content")) or text_in(item.get("summary"))
                yield {"type": "thinking", "thinking": said}
            case "message" if with_text:
                yield from ({"type": "text", "text": text} for text in texts_in(item.get("content")))
            case "function_call":
                calls.append(tool_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments")))
            case "function_call_output":
                yield result_block(item.get("call_id"), item.get("output"))
            case "open_webui:code_interpreter":
                calls.append(tool_call(item.get("id"), "code_interpreter", {"code": item.get("code")}))
                if item.get("output"):
                    yield result_block(item.get("id"), item["output"])


def result_block(id: object, result: object) -> dict[str, Any]:
    """What a tool gave, inside of the answer that called it."""
    content = result if isinstance(result, str) else text_in(result) or json.dumps(result, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def read_librechat(value: Mapping[str, Any]) -> Draft:
    """LibreChat: a list of `messages` with parents, or (`recursive`) messages inside of messages."""
    session = _session("librechat", value.get("conversationId"), value.get("title"), value.get("createdAt"))
    options = dict_at(value, "options")
    session.note(model=options.get("model") or value.get("model"), endpoint=value.get("endpoint"))
    payloads: dict[str, dict[str, Any]] = {}
    parents: dict[str, Any] = {}
    last = None
    for message, above in _flat(_list(value, "messages")):
        id = str(message.get("messageId") or len(payloads))
        parent = message.get("parentMessageId") or above
        parents[id] = parent if _is_root(parent) or parent in payloads else above or last
        payloads[id] = _librechat_message(id, message)
        last = id
    return session, list(_placed(session, payloads, parents, last))


def _flat(messages: Iterable[object]) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Messages, also those inside of others, each with the id of the one it is in."""
    stack: list[tuple[object, str | None]] = []
    stack += [(message, None) for message in messages]
    stack.reverse()
    while stack:
        message, parent = stack.pop()
        if isinstance(message, dict):
            yield message, parent
            children = message.get("children")
            if isinstance(children, list):
                stack += [(child, str(message.get("messageId"))) for child in reversed(children)]


def _librechat_message(id: str, message: Mapping[str, Any]) -> dict[str, Any]:
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "think":
            blocks.append(
                {"type": "thinking", "thinking": text_in(block.get("think")) or str(block.get("think") or "")}
            )
        elif kind == "tool_call" and isinstance(block.get("tool_call"), dict):
            called = block["tool_call"]
            calls.append(tool_call(called.get("id"), called.get("name"), called.get("args")))
            if called.get("output"):
                blocks.append(result_block(called.get("id"), called["output"]))
        elif kind == "text":
            text = block.get("text")
            blocks.append(
                {"type": "text", "text": text if isinstance(text, str) else str((text or {}).get("value", ""))}
            )
        elif block:
            blocks.append(block)
    if not blocks and isinstance(message.get("text"), str):
        blocks = [{"type": "text", "text": message["text"]}]
    is_user = message.get("isCreatedByUser") is True or message.get("sender") == "User"
    return without_none({
        "id": safe_id(id), "role": "user" if is_user else "assistant", "content": blocks, "tool_calls": calls or None,
        "created_at": time_of(message.get("createdAt")), "model": None if is_user else message.get("model"),
        "attachments": message.get("files") or message.get("attachments") or None,
    })  # fmt: skip


# -- trees -----------------------------------------------------------------------------------------------------


def _placed(
    session: Session, payloads: Mapping[str, dict[str, Any]], parents: Mapping[str, Any], shown: object
) -> Iterator[NativeMessage]:
    """Every message after its nearest ancestor that is a message; the branch that was shown comes last."""
    above = {id: _ancestor(id, payloads, parents) for id in payloads}
    children: dict[str | None, list[str]] = {}
    for id, parent in above.items():
        children.setdefault(parent, []).append(id)
    path = set()
    at = shown if isinstance(shown, str) else None
    while at is not None and at not in path:
        path.add(at)
        at = parents.get(at)
    seen: set[str] = set()
    for start in (
        None,
        *payloads,
    ):  # from the roots; whatever that does not reach is a circle, cut at its first message
        stack = _in_order(children.get(None, []), path) if start is None else [start]
        while stack:
            id = stack.pop()
            if id in seen:
                continue
            parent = above[id] if above[id] in seen else None
            seen.add(id)
            payload = payloads[id]
            if "created_at" not in payload and (when := _time_of_ancestor(id, payloads, above)) is not None:
                payload["created_at"] = when
            session.created_at = session.created_at or moment_of(payload.get("created_at"))
            if payload["role"] == "user" and not payload.get("is_meta"):
                session.name_after(text_in(payload["content"]))
            yield NativeMessage(session=session, payload=payload, after=START if parent is None else safe_id(parent))
            stack += _in_order(children.get(id, []), path)


def _is_root(parent: object) -> bool:
    """Whether this is what services write as the parent of a first message: an id of zeros."""
    return isinstance(parent, str) and parent.startswith(_NO_PARENT)


def _in_order(ids: list[str], path: set[str]) -> list[str]:
    """As a stack: what was shown at the bottom, the first of the others on top."""
    return sorted(reversed(ids), key=lambda id: id not in path)


def _ancestor(id: str, payloads: Mapping[str, object], parents: Mapping[str, Any]) -> str | None:
    passed = {id}
    at = parents.get(id)
    while isinstance(at, str) and at not in passed:
        if at in payloads:
            return at
        passed.add(at)
        at = parents.get(at)
    return None


def _time_of_ancestor(id: str, payloads: Mapping[str, Mapping[str, Any]], above: Mapping[str, str | None]) -> object:
    """When the nearest message before it was said that has a time: without one, it was said then or soon after."""
    passed = {id}
    at = above[id]
    while at is not None and at not in passed:
        if "created_at" in payloads[at]:
            return payloads[at]["created_at"]
        passed.add(at)
        at = above[at]
    return None


def _session(agent: str, native: object, title: object, created: object) -> Session:
    if not isinstance(native, str) or not native:
        raise BrokenEntry("has no id")
    session = Session(id=safe_id(agent, native), agent=agent, created_at=moment_of(created))
    session.title = one_line_title(title) if isinstance(title, str) and title.strip() else None
    session.note(agent=agent, session=native)
    return session


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    if not isinstance(found, dict):
        raise BrokenEntry(f"has no {name}")
    return found


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list):
        raise BrokenEntry(f"has no list of {name}")
    return found


def _first(values: object) -> object:
    return values[0] if isinstance(values, list) and values else None
