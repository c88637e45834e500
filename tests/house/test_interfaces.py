"""What the interfaces say of Everthread and Conversation is what the classes have, signature by signature."""

from __future__ import annotations

import inspect

import pytest

from everthread import Conversation, Everthread, interfaces
from everthread.instance import Conversations


def _as_interfaces(
    et: Everthread, conversation: Conversation
) -> tuple[interfaces.EverthreadProtocol, interfaces.ConversationProtocol]:
    """The type checker's part of this test."""
    return et, conversation


def signature(function: object) -> str:
    """Without the annotation of what comes back, which is narrower in the class."""
    wanted = function.fget if isinstance(function, property) else function
    assert callable(wanted)
    return str(inspect.signature(wanted).replace(return_annotation=inspect.Signature.empty)).replace("Protocol", "")


@pytest.mark.parametrize(
    ("protocol", "ours"),
    [
        (interfaces.ConversationProtocol, Conversation),
        (interfaces.ConversationsProtocol, Conversations),
        (interfaces.EverthreadProtocol, Everthread),
    ],
)
def test_a_class_has_the_verbs_of_its_protocol(protocol: type, ours: type) -> None:
    verbs = {name: value for name, value in vars(protocol).items() if not name.startswith("_")}
    assert verbs
    for name, value in verbs.items():
        if name != "conversations":  # an attribute, which the type checker compares
            assert signature(getattr(ours, name)) == signature(value), name
