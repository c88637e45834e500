"""What a model sees of a conversation: requests that fit and are valid, the summaries in them, and what was shown.

`views` reads and renders, `compacting` makes summaries, `telling` says so; here they become the verbs people call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final

from everthread.compaction import events as telling
from everthread.compaction.breaker import Breaker
from everthread.compaction.compactor import CompactionDiff, CompactionOutcome, Compactor, diff
from everthread.compaction.later import Found
from everthread.compaction.policy import AUTOMATIC, NO_MODEL, CompactionPolicy, Trigger, check_trigger
from everthread.compaction.record import UndoCompaction
from everthread.compaction.summarise import Summariser
from everthread.compaction.transcript import Redact
from everthread.compaction.view import one_below
from everthread.context import manifest as manifests
from everthread.context import read_view
from everthread.context.assemble import Context, tools_text
from everthread.context.budget import Budget
from everthread.context.ingredients import Recalled
from everthread.context.message_format import Provider, check_provider
from everthread.context.read_view import SeenContext
from everthread.context.tokens import count_tokens, message_tokens
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock
from everthread.core.compactions import Compaction
from everthread.core.documents import Read, no_reader
from everthread.core.errors import Conflict, Invalid, NotFound, StoreError
from everthread.core.events import Listener, Silence
from everthread.core.ids import check_id, new_id
from everthread.core.jobs import EMBED, NewJob
from everthread.core.log import BranchName, CompactionQuery
from everthread.core.meaning import Embedder, Vectors
from everthread.core.nouns import Branch, ConversationInfo, Ref
from everthread.core.ports import CompactionPosition, Store
from everthread.core.workspaces import Workspaces
from everthread.history import intents
from everthread.history.arguments import check_branch
from everthread.history.framework_summaries import FRAMEWORK, of_frameworks
from everthread.history.titling import Titler
from everthread.recall import for_context, memories, search
from everthread.recall.embedding import Meaning
from everthread.recall.policy import RecallPolicy
from everthread.recall.shown import Known
from everthread.text.secrets import redact_secrets

TO_EMBED: Final = (NewJob(kind=EMBED, gather_seconds=1.0),)
"""A vector more takes little, but each beginning takes the writer three times: what is said within a second goes
together, and until then its words find it."""
_PAGE: Final = 200
_MOST_IN_A_TURN: Final = 4
"""How often one request may compact; what is left over the limit is then shown in part, and the next turn goes on."""
_RECORD_SHARE: Final = 4
"""What part of the limit all summaries together should take at most; above it they are condensed."""
_BY_MESSAGES: Final = Found()


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What all conversations of one open database work with."""

    store: Store
    clock: Clock
    blobs: Blobs | None = None
    """Where large payloads are, when that is not the database."""
    workspaces: Workspaces | None = None
    """Where the files of conversations are."""
    listener: Listener = field(default_factory=Silence)
    """Hears of compactions."""
    policy: CompactionPolicy = field(default_factory=CompactionPolicy)
    """The settings of compaction below those kept in the database."""
    summariser: Summariser | None = None
    summariser_named: Callable[[str], Summariser] | None = None
    """Makes the one that a policy names as its `summary_model`, which goes before the other."""
    titler: Titler | None = None
    """Names conversations; without one, rules do."""
    read: Read = no_reader
    """Reads the files of documents."""
    redact: Redact = redact_secrets
    """Takes secrets out of what summaries are made from."""
    breaker: Breaker = field(default_factory=Breaker)
    embedder: Embedder | None = None
    """Turns texts into vectors; without one, words alone are searched."""
    vectors: Vectors | None = None
    """Where vectors are kept."""
    recall: RecallPolicy = field(default_factory=RecallPolicy)
    """How the old is looked for."""

    @property
    def meaning(self) -> Meaning | None:
        """What finds by meaning; None where words alone are searched."""
        if self.embedder is None or self.vectors is None:
            return None
        return Meaning(embedder=self.embedder, vectors=self.vectors)

    @property
    def sources(self) -> search.Sources:
        """What recall looks into."""
        return search.Sources(store=self.store, meaning=self.meaning, policy=self.recall, clock=self.clock)

    @property
    def vectors_outside(self) -> Vectors | None:
        """Vectors that the erase of the database does not reach by itself."""
        return None if self.vectors is self.store.vectors else self.vectors

    @property
    def first_look(self) -> int:
        """How many messages make a new conversation worth a look; 0 where none is compacted by itself."""
        return self.policy.message_mark + 1 if self.policy.enabled else 0

    def summariser_for(self, policy: CompactionPolicy) -> Summariser | None:
        """Who writes summaries under this policy; None while the model is left alone, or when there is none."""
        if policy.summary_model == NO_MODEL or not self.breaker.allows(policy):
            return None
        if policy.summary_model is None or self.summariser_named is None:
            return self.summariser
        return self.summariser_named(policy.summary_model)


class Contexts:
    """One conversation, as models see it. `Conversation` adds the log itself."""

    def __init__(self, means: Means, info: ConversationInfo) -> None:
        self._means = means
        self._store = means.store
        self._clock = means.clock
        self._ref = Ref(info.owner, info.id)
        self.info = info
        """The conversation's row when it was last read or updated through this object."""

    async def context(
        self,
        *,
        system: str | None = None,
        query: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        provider: Provider | None = None,
        compaction: Mapping[str, Any] | None = None,
        to_keep: bool = False,
    ) -> Context:
        """A request that is valid and within the budget, whatever the history.

        `messages` are in OpenAI's shape, valid for both providers or for the one that `provider` names. `system`
        stands before the system messages that the log itself begins with or has pinned, which always stand. When the
        history is over the hard mark, its oldest part is summed up here and now; a model that fails at that costs its
        time limit and nothing else. Below it, a compaction that is due is left to the background. With a `query`,
        what has to do with it from before the window, and memories, are quoted before the newest user message;
        pinned memories stand at the beginning, as they were at the last compaction, and newer ones there too. `tools`
        are the schemas sent beside the messages: room is left for them unless the budget says how much they take. A
        request that is `to_keep` goes to `keep_context`, which writes down what is left to the background as well.
        """
        _check_request(system, query, tools, budget)
        check_provider(provider)
        room = _with_tools(budget or Budget(), tools)
        path = check_branch(branch)
        view, recalled, known = await self._gathered(path, query, compaction)
        render = partial(
            read_view.render, system=system, tools=tools, recalled=recalled, known=known, provider=provider
        )
        made = render(view, room)
        due = read_view.is_due(view, made, room)
        if due != "hard_limit":
            before = _prompt_tokens(system) + _memory_tokens(made)
            found = Found(budget=room, system_tokens=before, branch=path, compaction=compaction)
            return await self._left_for_later(made, found, is_written=not to_keep) if due else made
        first, may_ask = view, True
        self._means.listener.hear(telling.truncation_begun(self._ref, view, made))
        for _ in range(_MOST_IN_A_TURN):
            if read_view.is_due(view, made, room) != "hard_limit":
                break
            attempt = telling.Attempt(
                ref=self._ref, view=view, trigger="hard_limit", budget=room, used_tokens=made.wanted_tokens
            )
            work = self._compact(view, "hard_limit", room.limit, may_ask=may_ask)
            outcome = await telling.told(self._means.listener, attempt, work)
            if not outcome.compacted:
                break
            may_ask = may_ask and not outcome.model_failed  # a model that hangs costs the turn its time limit once
            view = await read_view.look(self._store, self._ref, path, self._means.policy, compaction)
            made = render(view, room)
        self._means.listener.hear(telling.truncation_done(self._ref, first, made))
        return made

    async def _gathered(
        self, path: BranchName, query: str | None, compaction: Mapping[str, Any] | None
    ) -> tuple[read_view.View, Sequence[Recalled], Known | None]:
        """All that a request is made from; one errand where no embedder has to be waited for."""

        async def gathered() -> tuple[read_view.View, Sequence[Recalled], Known | None]:
            view = await read_view.look(self._store, self._ref, path, self._means.policy, compaction)
            recalled = await self._recalled(view, query) if query else ()
            return view, recalled, await self._known(query) if view.policy.memory_max_tokens else None

        return await (self._store.errand(gathered) if self._means.embedder is None else gathered())

    async def _known(self, query: str | None) -> Known:
        return await memories.known(self._store, self._ref, self.info.created_at, query, self._means.embedder)

    async def _recalled(self, view: read_view.View, query: str) -> Sequence[Recalled]:
        found, is_behind = await for_context.recalled(self._means.sources, self._ref, view, query)
        await self._index_later(is_behind)
        return found

    async def _index_later(self, is_behind: bool) -> None:
        """Have made what is missing, as after messages that other doors wrote. Where nothing can be written, it can be
        read all the same."""
        if is_behind:
            with suppress(StoreError):
                await self._store.log.write(self._ref, intents.PutJobs(jobs=TO_EMBED))

    async def _left_for_later(self, made: Context, found: Found, *, is_written: bool) -> Context:
        """The same context, with its compaction as a job. Where nothing can be written it can be read all the same: the
        next one finds it again."""
        jobs = (found.as_job(),)
        if is_written:
            with suppress(StoreError):
                await self._store.log.write(self._ref, intents.PutJobs(jobs=jobs))
        return replace(made, later=jobs)

    async def compact(
        self,
        *,
        trigger: Trigger = "manual",
        dry_run: bool = False,
        branch: Branch | BranchName = None,
        compaction: Mapping[str, Any] | None = None,
        on_each: Callable[[CompactionOutcome], None] | None = None,
        budget: Budget | None = None,
    ) -> CompactionOutcome:
        """Sum up all messages outside of what is kept recent, in as many summaries as it takes.

        The log does not change. `compaction` of the outcome is the newest of them; `on_each` is told of every one
        when it is kept. With the `budget` that it is made for, events tell how much of it is used, and summaries are
        condensed until they take a quarter of it at most, or are no longer than one may be.
        """
        path, trigger = check_branch(branch), check_trigger(trigger)
        known = Budget() if budget is None and trigger == "hard_limit" else budget
        room = None if known is None else known.limit
        view = await read_view.look(self._store, self._ref, path, self._means.policy, compaction)
        if dry_run:
            return await self._compactor(trigger, room).plan(self._ref, view, trigger)
        attempt = telling.Attempt(ref=self._ref, view=view, trigger=trigger, budget=budget)
        work = self._compact_while(lambda _: trigger, view, path, compaction, on_each or (lambda _: None), room=room)
        return await telling.told(self._means.listener, attempt, work)

    async def compact_if_due(self, found: Found = _BY_MESSAGES) -> CompactionOutcome:
        """What happens by itself: sum up as long as a mark is passed, and note when to look again.

        Without a budget only the mark of messages counts.
        """

        def why(view: read_view.View) -> Trigger | None:
            made = read_view.render(view, found.budget)
            return read_view.is_due(view, made, found.budget, system_tokens=found.system_tokens)

        policy = self._means.policy
        view = await read_view.look(self._store, self._ref, found.branch, policy, found.compaction)
        outcome = CompactionOutcome(compacted=False, reason="no mark is passed")
        trigger = why(view)
        if trigger is not None:
            attempt = telling.Attempt(ref=self._ref, view=view, trigger=trigger, budget=found.known_budget)
            work = self._compact_while(why, view, found.branch, found.compaction, room=found.budget.limit)
            outcome = await telling.told(self._means.listener, attempt, work)
            view = await read_view.look(self._store, self._ref, found.branch, policy, found.compaction)
        if found.branch is None:
            await self._store.log.write(self._ref, intents.LookAgain(at_depth=read_view.next_look(view)))
        return outcome

    async def _compact_while(
        self,
        why: Callable[[read_view.View], Trigger | None],
        view: read_view.View,
        path: BranchName,
        compaction: Mapping[str, Any] | None,
        on_each: Callable[[CompactionOutcome], None] = lambda _: None,
        *,
        room: int | None,
    ) -> CompactionOutcome:
        """One after the other, as long as there is a reason. Where one that happened by itself came first, the rest is
        done on top of it."""
        total, first, tokens = CompactionOutcome(compacted=False), view, 0
        while (trigger := why(view)) is not None:
            latest = await self._compact(view, trigger, room)
            if latest.compacted:
                on_each(latest)
                tokens += latest.tokens_of_messages
                total = total.followed_by(latest) if total.compacted else latest
            elif not total.compacted:
                total = latest
            if not (latest.compacted or latest.came_second):
                break
            covered = view.covered_until
            view = await read_view.look(self._store, self._ref, path, self._means.policy, compaction)
            if view.covered_until <= covered:  # somebody undoes what is done here
                break
            if latest.came_second and view.row[-1].trigger not in AUTOMATIC:
                break
        return total.as_it_stands(first, view, tokens) if total.compacted else total

    async def _compact(
        self,
        view: read_view.View,
        trigger: Trigger,
        limit: int | None,
        *,
        may_ask: bool = True,
    ) -> CompactionOutcome:
        model = self._means.summariser_for(view.policy) if may_ask else None
        outcome = await self._compactor(trigger, limit, model).compact(self._ref, view, trigger)
        if outcome.model_asked:
            self._means.breaker.note(view.policy, failed=outcome.model_failed)
        return outcome

    def _compactor(self, trigger: Trigger, limit: int | None, model: Summariser | None = None) -> Compactor:
        return Compactor(
            store=self._store,
            clock=self._clock,
            model=model,
            redact=self._means.redact,
            room_tokens=None if limit is None else limit // _RECORD_SHARE,
            at_hard_mark=trigger == "hard_limit",
        )

    async def keep_context(self, context: Context) -> str:
        """Remember what a model is shown, by reference; gives the id that `seen_context` takes."""
        id = new_id()
        kept = manifests.dump(context.manifest)
        await self._store.views.keep_manifest(self._ref, id, kept, context.shared, context.later)
        return id

    async def seen_context(self, id: str) -> SeenContext:
        """What a model was shown, rendered again from the log; it says so when something was erased since."""
        return await read_view.seen(self._store, self._ref, check_id(id, "id"))

    async def compactions(self) -> AsyncIterator[Compaction]:
        """Every compaction of this conversation, oldest first, undone and invalid ones too. Summaries that a framework
        put into its own state stand among them, with the trigger `framework` and its name as their strategy."""
        theirs = deque(await of_frameworks(self._store.log, self._ref))
        after = None
        while page := await self._store.views.all_compactions(self._ref, after=after, limit=_PAGE):
            for compaction in page:
                while theirs and theirs[0].created_at <= compaction.created_at:
                    yield theirs.popleft()
                yield compaction
            after = CompactionPosition(page[-1].created_at, page[-1].id)
        for compaction in theirs:
            yield compaction

    async def summary(self, *, branch: Branch | BranchName = None, level: int | None = None) -> str | None:
        """What stands for the part before the window, by itself; `level` 1 tells it in the most detail."""
        told = await self.summaries(branch=branch, level=level)
        return "\n\n".join(compaction.summary for compaction in told) or None

    async def summaries(self, *, branch: Branch | BranchName = None, level: int | None = None) -> Sequence[Compaction]:
        """The compactions that stand for the part before the window, oldest first; told at a lower `level`, those
        they were made from."""
        row = (await self._store.views.inputs(self._ref, check_branch(branch))).row
        return row if level is None else await self._at_level(row, level)

    async def _at_level(self, row: Sequence[Compaction], level: int) -> Sequence[Compaction]:
        while children := [id for one in row if one.level > level for id in one.children]:
            below = {
                one.id: one for one in await self._store.views.compactions(self._ref, CompactionQuery(ids=children))
            }
            told = one_below(row, below, level)
            if told == row:
                break
            row = told
        return row

    async def undo_compaction(self, id: str) -> Compaction:
        """Have the messages back in the model's view. Conflict while another compaction builds on this one."""
        known = await self.compaction(id)
        if known.trigger == FRAMEWORK:
            raise Conflict(f"compaction {id!r} is a summary in the state of {known.strategy}; no view of ours uses it")
        return await self._store.log.write(self._ref, UndoCompaction(id=id, stretch=(known.after_seq, known.last_seq)))

    async def compaction_diff(self, id: str) -> CompactionDiff:
        """What a compaction stands for, what it says, and which facts are only in the originals."""
        return await diff(self._store, self._ref, await self.compaction(id))

    async def compaction(self, id: str) -> Compaction:
        """One compaction, in use or not."""
        for compaction in await self._store.views.compactions(self._ref, CompactionQuery(ids=[check_id(id, "id")])):
            return compaction
        for compaction in await of_frameworks(self._store.log, self._ref):
            if compaction.id == id:
                return compaction
        raise NotFound(f"no compaction {id!r} in conversation {self._ref.id!r}")


def _check_request(system: object, query: object, tools: object, budget: object) -> None:
    """Invalid with the argument that is wrong, before anything is read."""
    for name, value in (("system", system), ("query", query)):
        if value is not None and not isinstance(value, str):
            raise Invalid(f"must be a string, not {type(value).__name__}", field=name)
    if budget is not None and not isinstance(budget, Budget):
        raise Invalid(f"must be a Budget, not {type(budget).__name__}", field="budget")
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise Invalid(f"must be a list of tool schemas, not {type(tools).__name__}", field="tools")
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise Invalid(f"must be a schema as a dict, not {type(tool).__name__}", field=f"tools[{index}]")


def _memory_tokens(made: Context) -> int:
    return sum(part.tokens for part in made.parts if part.kind == "memory")


def _prompt_tokens(system: str | None) -> int:
    return message_tokens({"role": "system", "content": system}) if system else 0


def _with_tools(budget: Budget, tools: Sequence[Mapping[str, Any]]) -> Budget:
    if not tools or budget.tools_tokens:
        return budget
    return replace(budget, tools_tokens=_tools_tokens(tools_text(tools)))


@lru_cache(maxsize=32)
def _tools_tokens(text: bytes) -> int:
    """Counted once for the same tools: for twenty of them that takes a millisecond, and every request has them."""
    return count_tokens(text.decode())
