"""A policy tried on a history: the requests it would have made.

The log is read where it stands, and the compactions of a trial are kept in memory (`_TrialViews`), so they begin with
none and end with the trial. What a compaction changes shows in the request after it, as when it runs in the background.
Summaries are the extractive ones: a summary model would have to be paid for every trial.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from everthread.compaction.due import due_trigger
from everthread.compaction.fact_ranking import split_kept
from everthread.compaction.intents import KeepCompaction
from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.summary_chain import summary_chain
from everthread.context import read_view
from everthread.context.assemble import Context
from everthread.context.budget import Budget
from everthread.context.message_format import Fields
from everthread.context.tokens import message_tokens
from everthread.conversation import Conversation
from everthread.core.clock import Clock
from everthread.core.compactions import Compaction
from everthread.core.errors import Conflict
from everthread.core.log import BranchName, CompactionQuery, Intent
from everthread.core.nouns import Ref
from everthread.core.ports import Store, ViewInputs
from everthread.recall.for_context import recall_episodes
from everthread.recall.policy import RecallPolicy
from everthread.recall.search import RecallServices
from everthread.replay.figures import Figures
from everthread.replay.grade import FactUse, Grade, Place, uses_by_request
from everthread.replay.transcript import ProgressCallback, Transcript, no_progress
from everthread.runtime import Runtime

R = TypeVar("R")


class _TrialViews:
    """Views of the real log, with the compactions of the trial."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.made: list[Compaction] = []

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        real = await self._store.views.inputs(ref, branch)
        summaries = summary_chain(self.made, real.segments)
        last = await self._store.log.find(ref, seqs=[summaries[-1].last_seq]) if summaries else ()
        depth = last[0].depth if last else 0
        return replace(real, summaries=summaries, covered_depth=depth, was_undone=False, policies=(None, None))

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        """All compactions: returning more than was asked for does no harm."""
        return self.made


class _TrialLog:
    """Reads go to the real log, compactions to the trial's views, and nothing else is written."""

    def __init__(self, store: Store, views: _TrialViews) -> None:
        self.path = store.log.path
        self.find = store.log.find
        self.scan = store.log.scan
        self._views = views

    async def write(self, ref: Ref, intent: Intent[Any]) -> object:
        """A trial is a single task, so nothing can come between two compactions."""
        if not isinstance(intent, KeepCompaction):
            raise Conflict("a policy is being tried: nothing may be written")
        self._views.made.append(intent.compaction)
        return intent.compaction, True


class _TrialStore:
    """A store to try a policy on: what a context reads, and where its compactions go."""

    def __init__(self, store: Store) -> None:
        self.views = _TrialViews(store)
        self.log = _TrialLog(store, self.views)
        self.notes = store.notes
        """Requests contain the memories of today, not those of the time."""
        self.search = store.search
        """Of what a request recalls, only what was said before it is used."""
        self.conversations = store.conversations

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Replays one conversation under different policies."""

    store: Store
    clock: Clock
    ref: Ref
    budget: Budget
    step: ProgressCallback = no_progress

    async def run(self, way: str, policy: CompactionPolicy, transcript: Transcript) -> Figures:
        """Replay the conversation under this policy."""
        trial_store, conversation = await self._begin(policy)
        store = cast(Store, trial_store)
        last: Context | None = None
        tokens = cached = passed = 0
        for end in transcript.requests:
            made = await self._request(store, conversation, policy, transcript.messages[end - 1].seq)
            tokens += made.tokens
            cached += 0 if last is None else _common_tokens(last, made)
            self.step(end - passed)
            last, passed = made, end
        facts = transcript.facts
        return Figures(
            way=way,
            turns=transcript.turns,
            requests=len(transcript.requests),
            tokens=tokens,
            cached_tokens=cached,
            answer_tokens=transcript.answer_tokens,
            over_limit=0,
            compactions=len(trial_store.views.made),
            facts_total=len(facts),
            facts_kept=0 if last is None else len(split_kept(_text(last.messages), facts)[0]),
        )

    async def grade(self, policy: CompactionPolicy, recall: RecallPolicy, transcript: Transcript) -> Grade:
        """Replay the conversation under these policies, and see of each rare fact that is used again whether it was in
        the request, by itself or recalled by words."""
        trial_store, conversation = await self._begin(policy)
        store = cast(Store, trial_store)
        services = RecallServices(store=store, policy=recall, clock=self.clock)
        uses = uses_by_request(transcript)
        graded: list[FactUse] = []
        passed = 0
        for end in transcript.requests:
            seq = transcript.messages[end - 1].seq
            made = await self._request(store, conversation, policy, seq)
            self.step(end - passed)
            passed = end
            lacking = _lacking(made, uses.get(end, ()))
            still = lacking
            if lacking and (said := transcript.last_said(end)):
                view = await read_view.read_view(store, self.ref, seq, policy, budget=self.budget)
                recalled, _ = await recall_episodes(services, self.ref, view, said)
                still = _lacking(read_view.render(view, self.budget, recalled=recalled), lacking)
            for use in uses.get(end, ()):
                place: Place = "view" if use not in lacking else "recalled" if use not in still else "missing"
                graded.append(replace(use, place=place))
        return Grade(uses=tuple(graded), requests=len(transcript.requests))

    async def _begin(self, policy: CompactionPolicy) -> tuple[_TrialStore, Conversation]:
        """An empty trial, and the conversation in it."""
        trial_store = _TrialStore(self.store)
        runtime = Runtime(store=cast(Store, trial_store), clock=self.clock, policy=policy)
        return trial_store, Conversation(runtime, await self.store.conversations.get(self.ref))

    async def _request(self, store: Store, conversation: Conversation, policy: CompactionPolicy, seq: int) -> Context:
        """The request when this message was the newest; what is due then is done before the next one."""
        view = await read_view.read_view(store, self.ref, seq, policy, budget=self.budget)
        made = read_view.render(view, self.budget)
        due = due_trigger(view, made, self.budget)
        if due == "hard_limit":
            return await conversation.context(branch=seq, budget=self.budget, to_keep=True)
        if due is not None:
            await conversation.compact_if_due(budget=self.budget, branch=seq)
        return made


def _lacking(made: Context, uses: Sequence[FactUse]) -> list[FactUse]:
    """The uses whose fact a request does not have before its newest message, which may be the one that uses it."""
    if not uses:
        return []
    _, lost = split_kept(_text(made.messages[:-1]), [use.fact for use in uses])
    normals = {fact.normal for fact in lost}
    return [use for use in uses if use.fact.normal in normals]


def _common_tokens(before: Context, now: Context) -> int:
    """Tokens of the beginning that both requests share. A cache may have a little more: part of the first message
    that differs."""
    if now.messages[: len(before.messages)] == before.messages:
        return before.tokens
    same = 0
    for old, new in zip(before.messages, now.messages, strict=False):
        if old != new:
            break
        same += message_tokens(new)
    return same


def _text(messages: Sequence[Fields]) -> str:
    """The text of a request, including its tool calls."""
    return "\n".join(_words(message) for message in messages)


def _words(message: Mapping[str, Any]) -> str:
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    content = message.get("content")
    said = content if isinstance(content, str) else _block_texts(content)
    return "\n".join([said, *calls])


def _block_texts(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )
