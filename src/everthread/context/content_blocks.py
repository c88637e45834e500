"""Content blocks: which of them a provider takes from whom, and how a foreign one is said in its words.

`provider_rules` judges with `is_accepted`; `repair_message` writes with `convert_block`. A call and its result are not
judged here: the adapters of both providers rewrite them, whatever their format. So it is with OpenAI's `image_url` and
`file` for Anthropic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from everthread.context.message_format import (
    CALL_ID_KEYS,
    FILE_BLOCKS,
    IMAGE_BLOCKS,
    PROVIDERS,
    SIGNED_BLOCKS,
    Block,
    Fields,
    Message,
    Provider,
    blocks_of,
)
from everthread.core.payloads import block_type, is_mapping

_TEXT = frozenset({"text"})
_SHOWN = frozenset({"text", "image", "image_url", "document", "file", "search_result"})
_SERVER_TOOLS = re.compile(r"server_tool_use|mcp_tool_use|[a-z_]+_tool_result")
"""Anthropic's own tools write their calls and results into the assistant's message, and want them back."""

ACCEPTED: Mapping[Provider, Mapping[str, frozenset[str]]] = {
    "openai": {
        "system": _TEXT,
        "user": frozenset({"text", "image_url", "input_audio", "file", "tool_result"}),
        "assistant": frozenset({"text", "refusal", *CALL_ID_KEYS}),
        "tool": _TEXT,
    },
    "anthropic": {
        "system": _TEXT,
        "user": _SHOWN | {"container_upload", "tool_result"},
        "assistant": frozenset({"text", *SIGNED_BLOCKS, *CALL_ID_KEYS}),
        "tool": _SHOWN,
    },
}

_NAME_CHARS = 80

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def is_accepted(block: Block, role: str, provider: Provider | None) -> bool:
    """Whether the provider (without one: each of them) takes such a block in a message of this role."""
    return all(_accepts(one, block, role) for one in (PROVIDERS if provider is None else (provider,)))


def _accepts(provider: Provider, block: Block, role: str) -> bool:
    kind = block["type"]
    if kind == "image_url":
        return kind in ACCEPTED[provider][role] and _image_address(block) is not None and is_mapping(block["image_url"])
    if kind == "image":
        return kind in ACCEPTED[provider][role] and is_mapping(block.get("source"))
    if provider == "anthropic" and role == "assistant" and _SERVER_TOOLS.fullmatch(kind):
        return True
    return kind in ACCEPTED[provider][role]


def takes_images(role: str, provider: Provider | None) -> bool:
    """Whether the provider (without one: each of them) takes any image in a message of this role."""
    return all(ACCEPTED[one][role] & IMAGE_BLOCKS for one in (PROVIDERS if provider is None else (provider,)))


def convert_block(block: Block, provider: Provider | None) -> Block:
    """A block that is not taken, in the words of the provider (without one: OpenAI's), where it has any for it."""
    kind = block["type"]
    if kind in ("image", "image_url", "input_image"):
        return _convert_image(block, provider)
    if kind == "document":
        return _convert_document(block)
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return {"type": "text", "text": block["refusal"]}
    if kind in ("input_text", "output_text") and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    return block


def describe_block(block: Block) -> Fields:
    """A text in the place of a block that cannot be sent: what it says, or that it is missing."""
    said = block.get("text") or block.get("content")
    if isinstance(said, str) and said.strip():
        return {"type": "text", "text": said}
    kind = re.sub(r"[^\w-]+", "_", str(block["type"]))[:64] or "block"
    return {"type": "text", "text": f"[{kind} left out: the provider does not take it here]"}


# --- images and files ------------------------------------------------------------------------


_ASSETS = {
    "image_asset_pointer": "image", "audio_asset_pointer": "audio", "video_container_asset_pointer": "video",
    "real_time_user_audio_video_asset_pointer": "audio",
}  # fmt: skip
"""What ChatGPT's export has in the place of a picture or a recording, by the word for it."""


def media_labels(message: Message) -> list[str]:
    """Each image and file of a message by a word, for who reads text only: `[image]`, `[file: plan.pdf]`."""
    found: list[str] = []
    pointers: list[tuple[str, str]] = []
    for block in blocks_of(message):
        kind = block_type(block)
        if kind == "tool_result":
            found += media_labels(block)
        elif kind in IMAGE_BLOCKS | FILE_BLOCKS:
            word, name = "image" if kind in IMAGE_BLOCKS else "file", _file_name(block)
            found.append(f"[{word}: {name}]" if name else f"[{word}]")
        elif block.get("content_type") in _ASSETS:
            pointers.append((str(block.get("asset_pointer")), _ASSETS[str(block["content_type"])]))
    attached = message.get("attachments")
    for file in attached if isinstance(attached, list) else ():
        if is_mapping(file):
            own = [one for one in pointers if file.get("id") and str(file["id"]) in one[0]]
            pointers = [one for one in pointers if one not in own]
            found.append(_attached_label(file, own[0][1] if own else "file"))
    return [*found, *(f"[{word}]" for _, word in pointers)]


def _attached_label(file: Mapping[str, Any], word: str) -> str:
    """What an export of a chat service says of a file that came with a message."""
    media = file.get("mime_type") or file.get("type") or file.get("file_type")
    word = "image" if isinstance(media, str) and media.startswith("image") else word
    named = file.get("name") or file.get("file_name") or file.get("filename")
    name = " ".join(named.split())[:_NAME_CHARS] if isinstance(named, str) else ""
    return f"[{word}: {name}]" if name else f"[{word}]"


def _file_name(block: Block) -> str:
    held = block.get("file")
    named = held.get("filename") if is_mapping(held) else block.get("filename") or block.get("title")
    return " ".join(named.split())[:_NAME_CHARS] if isinstance(named, str) else ""


def _convert_image(block: Block, provider: Provider | None) -> Block:
    address = _image_address(block)
    if address is None:
        return block
    if provider == "anthropic":
        return {"type": "image", "source": _anthropic_source(address)}
    detail = {"detail": block["detail"]} if block.get("detail") in ("auto", "low", "high") else {}
    return {"type": "image_url", "image_url": {"url": address, **detail}}


def names_image(block: Block) -> bool:
    """Whether an image's block says where it is, if only by the id of a file that a provider has."""
    source = block.get("source")
    return _image_address(block) is not None or (is_mapping(source) and source.get("type") == "file")


def _image_address(block: Block) -> str | None:
    """Where an image is, in whichever dialect it is written: its URL, or a data URL that holds it."""
    given, source = block.get("image_url"), block.get("source")
    if is_mapping(source):
        return _source_address(source)
    url = given.get("url") if is_mapping(given) else given or block.get("url")
    if isinstance(url, str) and url:
        return url
    data = block.get("base64") or block.get("data")  # LangChain's own words, its newer and its older ones
    return _data_url(block.get("mime_type"), data)


def _source_address(source: Mapping[str, Any]) -> str | None:
    if source.get("type") == "url":
        url = source.get("url")
        return url if isinstance(url, str) and url else None
    return _data_url(source.get("media_type"), source.get("data")) if source.get("type") == "base64" else None


def _data_url(media_type: object, data: object) -> str | None:
    if not isinstance(media_type, str) or not isinstance(data, str) or not data:
        return None
    return f"data:{media_type};base64,{data}"


def _anthropic_source(address: str) -> Fields:
    held = _DATA_URL.fullmatch(address)
    if held is None:
        return {"type": "url", "url": address}
    return {"type": "base64", "media_type": held[1], "data": held[2]}


def _convert_document(block: Block) -> Block:
    source = block.get("source")
    if not is_mapping(source):
        return block
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return {"type": "text", "text": source["data"]}
    if source.get("type") != "base64" or (held := _source_address(source)) is None:
        return block
    title = block.get("title")
    return {"type": "file", "file": {"filename": title if isinstance(title, str) else "document", "file_data": held}}
