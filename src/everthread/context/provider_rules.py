"""The providers' own rules for a list of messages: what would be refused about a request, before it is sent.

One function for each rule, with the reason it exists, read from their documentation and their error messages (quoted
where there is one). A rule yields the position of a message and what is wrong with it; its name is the kind of the
violation. They look at the messages as an adapter sends them: an OpenAI-shape list can be judged by Anthropic's rules,
because calls, results and turns have the same order in both. They know nothing of `repair`, so that they can judge it.

An empty list, or one of system messages only, is not a request yet: it violates nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everthread.context.content_blocks import is_accepted
from everthread.context.message_format import (
    SIGNED_BLOCKS,
    Call,
    Message,
    Provider,
    blocks_of,
    calls_of,
    check_messages,
    check_provider,
    content_of,
    encodable,
    has_content,
    is_blank,
    is_langchain,
    is_message,
    is_signed,
    is_system,
    map_strings,
    read_arguments,
    results_of,
    role_of,
)
from everthread.core.payloads import block_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One reason to refuse the request."""

    kind: str
    index: int
    """Position of the message in the request."""
    message: str
    """What is wrong, in a sentence."""


def find_violations(messages: Sequence[Message], provider: Provider | None = None) -> list[Violation]:
    """Every reason why the provider (or, without one, either of them) would refuse; [] when it would accept."""
    check_provider(provider)
    check_messages(messages)
    rules = SHARED_RULES + (OPENAI_RULES if provider != "anthropic" else ())
    rules += ANTHROPIC_RULES if provider != "openai" else ()
    unreadable = [
        Violation(kind="unknown_role", index=index, message=f"{role_of(message)!r} is not a role a provider knows")
        for index, message in enumerate(messages)
        if not is_message(message)
    ]
    if unreadable:  # the other rules only make sense for messages that have a role
        return unreadable
    found = [
        Violation(kind=rule.__name__, index=index, message=text) for rule in rules for index, text in rule(messages)
    ]
    return sorted(found, key=lambda fault: fault.index)


CALL_ID_LENGTH = 40
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")

Findings = Iterator[tuple[int, str]]
ProviderRule = Callable[[Sequence[Message]], Findings]


# --- both providers --------------------------------------------------------------------------


def unanswered_call(messages: Sequence[Message]) -> Findings:
    """Every call has its result before anything else is said."""
    for index, calls, run in _calls_with_results(messages):
        answered = Counter(answer.call_id for carrier in run for answer in results_of(messages[carrier]))
        for call_id, times in Counter(call.id for call in calls).items():
            if answered[call_id] < times:
                yield index, f"call {call_id!r} has no result directly after it"


def orphan_result(messages: Sequence[Message]) -> Findings:
    """Every result follows the message that made its call."""
    expected: dict[int, set[str]] = {}
    for _, calls, run in _calls_with_results(messages):
        for carrier in run:
            expected[carrier] = {call.id for call in calls}
    for index, message in enumerate(messages):
        for result in results_of(message):
            if result.call_id not in expected.get(index, ()):
                yield index, f"result for {result.call_id!r}, but the message before made no such call"


def second_result(messages: Sequence[Message]) -> Findings:
    """A call has one result."""
    for _, _, run in _calls_with_results(messages):
        seen: set[str] = set()
        for carrier in run:
            for answer in results_of(messages[carrier]):
                if answer.call_id in seen:
                    yield carrier, f"second result for call {answer.call_id!r}"
                seen.add(answer.call_id)


def repeated_call_id(messages: Sequence[Message]) -> Findings:
    """Ids are unique inside a message."""
    for index, calls in _messages_with_calls(messages):
        for call_id, times in Counter(call.id for call in calls).items():
            if times > 1:
                yield index, f"{times} calls with the id {call_id!r}"


def bad_call_name(messages: Sequence[Message]) -> Findings:
    """Names are 1 to 64 letters, digits, `_` or `-`."""
    for index, calls in _messages_with_calls(messages):
        for call in calls:
            if not 1 <= len(call.name) <= 64 or not NAME_CHARACTERS.issuperset(call.name):
                yield index, f"call {call.id!r} has the name {call.name!r}"


def bad_arguments(messages: Sequence[Message]) -> Findings:
    """Arguments hold a JSON object: Anthropic takes nothing else, others parse it without asking."""
    for index, calls in _messages_with_calls(messages):
        for call in calls:
            if read_arguments(call.arguments) is None:
                yield index, f"the arguments of call {call.id!r} are not a JSON object"


def bad_content(messages: Sequence[Message]) -> Findings:
    """Content is a text or a list of typed blocks; only an assistant with calls may have none."""
    for index, message in enumerate(messages):
        content = content_of(message)
        if content is None:
            if role_of(message) == "tool":
                yield index, "a tool result needs a content, be it empty"
        elif isinstance(content, list):
            if not all(isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in content):
                yield index, "a content block is not an object with a type"
        elif not isinstance(content, str):
            yield index, f"content is a {type(content).__name__}, not a text or a list of blocks"


def empty_message(messages: Sequence[Message]) -> Findings:
    """Somebody who speaks says something, or calls."""
    for index, message in enumerate(messages):
        # A refusal is said beside the content; reasoning is not said.
        is_said = has_content(message) or bool(message.get("refusal"))
        if role_of(message) != "tool" and not calls_of(message) and not is_said:
            yield index, f"the {role_of(message)} message has nothing in it"


def unsendable_text(messages: Sequence[Message]) -> Findings:
    """Half a surrogate pair cannot be written as UTF-8, so the request never leaves."""
    for index, message in enumerate(messages):
        if map_strings(message, encodable) is not message:
            yield index, "a text holds half a surrogate pair"


# --- OpenAI ----------------------------------------------------------------------------------


def call_not_openai(messages: Sequence[Message]) -> Findings:
    """A call is `{"id", "type": "function", "function": {"name", "arguments": "…"}}`, and a list of calls is
    not empty. (Messages in LangChain's words are rewritten by its adapter.)"""
    for index, message in enumerate(messages):
        listed = message.get("tool_calls")
        if listed is None or is_langchain(message) or role_of(message) != "assistant":
            continue
        if not isinstance(listed, list) or not listed:
            yield index, "tool_calls is not a list of at least one call"
        elif not all(_is_openai_call(entry) for entry in listed):
            yield index, "a call is not written as OpenAI writes it"


def _is_openai_call(entry: object) -> bool:
    if not isinstance(entry, Mapping) or entry.get("type") not in ("function", "custom"):
        return False
    function = entry.get("function", entry.get("custom"))
    return isinstance(function, Mapping) and isinstance(function.get("arguments", function.get("input")), str)


def call_id_length(messages: Sequence[Message]) -> Findings:
    """`string too long. Expected a string with maximum length 40`"""
    for index, calls in _messages_with_calls(messages):
        for call in calls:
            if not 1 <= len(call.id) <= CALL_ID_LENGTH:
                yield index, f"a call id has {len(call.id)} characters, allowed are 1 to {CALL_ID_LENGTH}"


def bad_speaker_name(messages: Sequence[Message]) -> Findings:
    r"""`string does not match pattern '^[^\s<|\\/>]+$'`"""
    for index, message in enumerate(messages):
        name = message.get("name")
        if name is None or role_of(message) == "tool":
            continue
        if (
            not isinstance(name, str)
            or not 1 <= len(name) <= 64
            or any(char.isspace() or char in "<|\\/>" for char in name)
        ):
            yield index, f"the name {name!r} has more than 64 characters, white space or one of < | \\ / >"


def misplaced_image(messages: Sequence[Message]) -> Findings:
    """`Image URLs are only allowed for messages with role 'user'`"""
    for index, message in enumerate(messages):
        if role_of(message) != "user" and any(block.get("type") == "image_url" for block in blocks_of(message)):
            yield index, f"a {role_of(message)} message carries an image"


def block_not_openai(messages: Sequence[Message]) -> Findings:
    """`Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and
    'file'`"""
    for index, message in enumerate(messages):
        for kind in _refused_block_types(message, "openai"):
            if kind != "image_url" or role_of(message) == "user":  # elsewhere it is a misplaced image
                yield index, f"a {role_of(message)} message holds a block of the type {kind!r}, or one it cannot read"


# --- Anthropic -------------------------------------------------------------------------------


def late_system(messages: Sequence[Message]) -> Findings:
    """The system prompt is a field of the request, so nothing of it can stand among the messages."""
    spoken = False
    for index, message in enumerate(messages):
        if spoken and is_system(message):
            yield index, "a system message after the conversation has begun"
        spoken = spoken or not is_system(message)


def first_not_user(messages: Sequence[Message]) -> Findings:
    """`first message must use the "user" role`"""
    for index, message in enumerate(messages):
        if not is_system(message):
            if role_of(message) != "user":
                yield index, f"the first message is from the {role_of(message)}, not from the user"
            return


def repeated_id_in_request(messages: Sequence[Message]) -> Findings:
    """`tool_use ids must be unique`: in the whole request."""
    seen: set[str] = set()
    for index, calls in _messages_with_calls(messages):
        ids = {call.id for call in calls}
        for call_id in sorted(ids & seen):
            yield index, f"an earlier message made a call with the id {call_id!r}"
        seen |= ids


def bad_call_id(messages: Sequence[Message]) -> Findings:
    """`tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`"""
    for index, calls in _messages_with_calls(messages):
        for call in calls:
            if not call.id or not NAME_CHARACTERS.issuperset(call.id):
                yield index, f"the call id {call.id!r} is empty or has characters other than letters, digits, _ -"


def split_results(messages: Sequence[Message]) -> Findings:
    """Results as blocks stand all in the one user message after their call."""
    for index, _, run in _calls_with_results(messages):
        carriers = [carrier for carrier in run if results_of(messages[carrier])[0].block is not None]
        if len(carriers) > 1:
            yield index, f"its results are spread over {len(carriers)} user messages"


def results_not_first(messages: Sequence[Message]) -> Findings:
    """`tool_result` blocks come before what the user says in the same message."""
    for index, message in enumerate(messages):
        places = [answer.block for answer in results_of(message) if answer.block is not None]
        if places != list(range(len(places))):
            yield index, "a tool result stands behind other content"


def blank_text(messages: Sequence[Message]) -> Findings:
    """`text content blocks must contain non-whitespace text`"""
    for index, message in enumerate(messages):
        content = content_of(message)
        if isinstance(content, str) and content and not content.strip():
            yield index, "the text is white space only"
        if any(is_blank(block) for block in _all_blocks(blocks_of(message))):
            yield index, "a text block is empty or white space only"


def block_not_anthropic(messages: Sequence[Message]) -> Findings:
    """`Input tag 'reasoning' found using 'type' does not match any of the expected tags`"""
    for index, message in enumerate(messages):
        for kind in _refused_block_types(message, "anthropic"):
            yield index, f"a {role_of(message)} message holds a block of the type {kind!r}, or one it cannot read"


def bad_thinking(messages: Sequence[Message]) -> Findings:
    """Reasoning comes first in its message, is signed, and is not the last word."""
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        thinking = [at for at, block in enumerate(blocks) if block_type(block) in SIGNED_BLOCKS]
        if not thinking:
            continue
        if thinking[0] != 0:
            yield index, "thinking stands behind other content"
        if not all(is_signed(blocks[at]) for at in thinking):
            yield index, "a thinking block has no signature"
        if thinking[-1] == len(blocks) - 1 and all(call.in_blocks_only for call in calls_of(message)):
            yield index, "thinking is the last block"


def trailing_space(messages: Sequence[Message]) -> Findings:
    """`final assistant content cannot end with trailing whitespace`"""
    if messages and role_of(messages[-1]) == "assistant" and not calls_of(messages[-1]):
        content = content_of(messages[-1])
        last = content[-1] if isinstance(content, list) and content else content
        text = last.get("text") if isinstance(last, Mapping) else last
        if isinstance(text, str) and text != text.rstrip():
            yield len(messages) - 1, "the last assistant message ends in white space"


SHARED_RULES: tuple[ProviderRule, ...] = (
    unanswered_call,
    orphan_result,
    second_result,
    repeated_call_id,
    bad_call_name,
    bad_arguments,
    bad_content,
    empty_message,
    unsendable_text,
)
OPENAI_RULES: tuple[ProviderRule, ...] = (
    call_not_openai,
    call_id_length,
    bad_speaker_name,
    misplaced_image,
    block_not_openai,
)
ANTHROPIC_RULES: tuple[ProviderRule, ...] = (
    late_system,
    first_not_user,
    repeated_id_in_request,
    bad_call_id,
    split_results,
    results_not_first,
    blank_text,
    block_not_anthropic,
    bad_thinking,
    trailing_space,
)


# --- reading the order -----------------------------------------------------------------------


def _messages_with_calls(messages: Sequence[Message]) -> Iterator[tuple[int, tuple[Call, ...]]]:
    for index, message in enumerate(messages):
        calls = calls_of(message)
        if calls:
            yield index, calls


def _calls_with_results(messages: Sequence[Message]) -> Iterator[tuple[int, tuple[Call, ...], range]]:
    """Every message with calls, and the results directly after it: up to the first message that is not all
    results."""
    for index, calls in _messages_with_calls(messages):
        end = index + 1
        while end < len(messages) and results_of(messages[end]):
            end += 1
            if _says_more(messages[end - 1]):
                break
        yield index, calls, range(index + 1, end)


def _says_more(carrier: Message) -> bool:
    """Whether a message of result blocks holds other content too: what follows it follows a user's word."""
    answers = results_of(carrier)
    return answers[0].block is not None and len(answers) < len(blocks_of(carrier))


def _refused_block_types(message: Message, provider: Provider) -> Iterator[str]:
    """The types of the blocks that the provider does not take here. A result as a block is written in Anthropic's
    way, whoever it goes to: so is what it holds."""
    for block in blocks_of(message):
        if not isinstance(block.get("type"), str):
            continue  # `bad_content` says so
        if not is_accepted(block, role_of(message), provider):
            yield block["type"]
        elif block["type"] == "tool_result":
            inner = [one for one in blocks_of(block) if isinstance(one.get("type"), str)]
            yield from (one["type"] for one in inner if not is_accepted(one, "tool", "anthropic"))


def _all_blocks(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        yield block
        if block.get("type") == "tool_result":
            yield from _all_blocks(blocks_of(block))
