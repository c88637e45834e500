"""Thirty questions about what the assistant said: the prior for users must not sink it."""

from __future__ import annotations

from everthread import Conversation
from tests.recall.assistant_said import CHATTER, EXCHANGES


async def test_what_the_assistant_said_is_found_by_questions_about_it(conv: Conversation) -> None:
    answers: list[str] = []
    for number, (question, answer, _) in enumerate(EXCHANGES):
        ids = await conv.append(
            [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": CHATTER[number % len(CHATTER)]},
                {"role": "assistant", "content": "You are welcome. Tell me when you need more."},
            ]
        )
        answers.append(ids[1].id)
    ranks = []
    for answer_id, (_, _, asked) in zip(answers, EXCHANGES, strict=True):
        found = [id for hit in await conv.recall(asked) for id in hit.ids]
        ranks.append(found.index(answer_id) + 1 if answer_id in found else 99)
    assert sum(rank == 1 for rank in ranks) >= 20, ranks
    assert sum(rank <= 3 for rank in ranks) >= 27, ranks
    assert sum(rank <= 10 for rank in ranks) >= 29, ranks
