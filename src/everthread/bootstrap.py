"""The only module that connects ports to adapters: a database's address becomes an open `Everthread`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from everthread.adapters.blobs import blobs_at
from everthread.adapters.documents import read_document
from everthread.adapters.embedders import AUTO, embedder_from, embedder_named
from everthread.adapters.models.named_summariser import NamedSummariser, as_summariser
from everthread.adapters.observability import LogsAndMetrics
from everthread.adapters.stores.database_url import is_postgres, path_in
from everthread.adapters.stores.in_memory import InMemoryStore
from everthread.adapters.vectors import vectors_from
from everthread.compaction.policy import CompactionPolicy, policy_from_environment
from everthread.compaction.sources import Redact
from everthread.compaction.summarise import Summariser
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock, system_clock
from everthread.core.embeddings import Embedder, Vectors
from everthread.core.errors import Invalid, MissingExtra
from everthread.core.ids import check_text
from everthread.core.jobs import Pace
from everthread.core.ports import Store
from everthread.core.workspaces import IDLE_DAYS, Quota, Workspaces
from everthread.instance import Everthread, check_everthread
from everthread.recall.policy import RecallPolicy
from everthread.runtime import Runtime
from everthread.text.secrets import redact_secrets
from everthread.workspaces import FolderWorkspaces, TemporaryWorkspaces

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from everthread.settings import Settings
    from everthread.turn.agent import (
        Agent,
        AgentType,
        Features,
        KnowledgeSource,
        ModelProvider,
        ToolProvider,
        TurnLimits,
    )
    from everthread.turn.skills import SkillSet

MAX_PATH_CHARACTERS = 4096
EXAMPLES = "sqlite:///data/et.db, postgresql://user@host/name or memory://"


def open(
    url: str | None = None,
    *,
    blobs: str | None = None,
    workspaces: str | Path | None = None,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    compaction: CompactionPolicy | None = None,
    summariser: Summariser | BaseChatModel | Runnable[Any, Any] | str | None = None,
    redact: Redact = redact_secrets,
    recall: RecallPolicy | None = None,
    embedder: Embedder | Embeddings | str | None = AUTO,
    vectors: Vectors | str | None = None,
    worker: bool | Pace = True,
) -> Everthread:
    """Open a database of conversations. Use it as `async with everthread.open(url) as et`.

    ```py
    async with everthread.open("sqlite:///data/et.db", summariser="openai:gpt-5-mini") as et:
        conv = await et.conversations.create(title="Trip")
        await conv.append({"role": "user", "content": "Hello"})
    ```

    Args:
        url: `sqlite:///relative/path.db`, `sqlite:///~/in/the/home.db`, `sqlite:////absolute/path.db`,
            `postgresql://user@host/name` or `memory://`.
        blobs: Where payloads over 64 KiB are kept, such as `file:///var/lib/blobs` or `s3://bucket/folder`; by default
            in the database.
        workspaces: The folder for the conversations' files. By default `et.db.workspaces` beside a SQLite file `et.db`,
            a folder for each database in `workspaces` of the user's data folder for PostgreSQL, and a temporary
            folder for `memory://`.
        settings: Defaults for what is not given here (`everthread.settings.Settings.load()`). Without them no file is
            read, and no environment variable except MAX_MESSAGE_HISTORY.
        clock: Returns the current time, in UTC.
        compaction: How conversations are compacted, unless the database says otherwise.
        summariser: Writes summaries: a LangChain chat model, the name of one, or an object of your own. Without one the
            extractive summariser does. A `summary_model` set in the database or for a call takes precedence.
        redact: Removes secrets from the text that summaries are made from.
        recall: How old messages are searched and ranked.
        embedder: Finds by meaning: "minilm", "wordllama" or "m3e" (local, from `everthread models fetch`), LangChain
            embeddings or their name ("openai:text-embedding-3-small"), an object of your own, or None for words only.
            By default MiniLM, if it is installed.
        vectors: Where vectors are kept if not in the database, such as "milvus:http://host:19530".
        worker: Whether background work, such as due compactions, is done in this process, and at which pace. If False,
            it waits for another process, such as `everthread worker`.
    """
    _check_policies(compaction, recall)
    address = url if url is not None or settings is None else settings.database
    base = policy_from_environment(os.environ) if settings is None else settings.compaction
    policy = compaction or base
    blob_address = blobs if blobs is not None or settings is None else settings.blobs
    kept = None if blob_address is None else blobs_at(blob_address)
    store = store_for(address, clock, kept)
    address_of_models = None if settings is None else settings.model_base_url
    elsewhere = vectors if vectors is not None or settings is None else settings.vectors
    runtime = Runtime(
        store=store,
        clock=clock,
        blobs=kept,
        workspaces=workspaces_of(str(address), settings, workspaces, clock),
        policy=policy if summariser is None else replace(policy, summary_model=None),
        summariser=None if summariser is None else as_summariser(summariser, address_of_models),
        summariser_named=partial(NamedSummariser, base_url=address_of_models),
        titler=_titler(settings),
        read=read_document,
        redact=redact,
        listener=LogsAndMetrics(clock),
        recall=recall or (RecallPolicy() if settings is None else settings.recall),
        embedder=_embedder(embedder, settings),
        vectors=vectors_from(elsewhere, store),
    )
    pace = worker if isinstance(worker, Pace) else Pace() if worker else None
    return Everthread(runtime, pace)


def _check_policies(compaction: object, recall: object) -> None:
    for field, given, kind in (("compaction", compaction, CompactionPolicy), ("recall", recall, RecallPolicy)):
        if given is not None and not isinstance(given, kind):
            raise Invalid(f"must be a {kind.__name__}, not {type(given).__name__}", field=field)


def _titler(settings: Settings | None) -> NamedSummariser | None:
    if settings is None or settings.title_model is None:
        return None
    return NamedSummariser(settings.title_model, settings.model_base_url)


def _embedder(given: Embedder | Embeddings | str | None, settings: Settings | None) -> Embedder | None:
    if given == AUTO and settings is not None:
        return embedder_named(settings.embedder, lambda: settings.models_dir)
    return embedder_from(given, lambda: _models(settings))


def _models(settings: Settings | None) -> Path:
    if settings is not None:
        return settings.models_dir
    from everthread.settings import data_folder  # noqa: PLC0415 - startup

    return data_folder() / "models"


def workspaces_of(
    url: str, settings: Settings | None, given: str | Path | None = None, clock: Clock = system_clock
) -> Workspaces:
    """Where the files of conversations are; nothing is made there before the first of them is opened."""
    quota = Quota() if settings is None else settings.workspace_quota
    idle_days = IDLE_DAYS if settings is None else settings.workspace_idle_days
    named = given if given is not None or settings is None else settings.workspaces_dir
    if named is None and url.startswith("memory:"):
        return TemporaryWorkspaces(quota=quota, clock=clock)
    root = _beside(url) if named is None else Path(named)
    return FolderWorkspaces(root, quota=quota, idle_days=idle_days, clock=clock)


def _beside(url: str) -> Path:
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return Path(f"{path_in(rest)}.workspaces")
    from everthread.settings import data_folder  # noqa: PLC0415 - startup

    return data_folder() / "workspaces" / _database_name(url)


def _database_name(url: str) -> str:
    """A folder name for a PostgreSQL address, without its user and password: two databases may have the same owners and
    ids of conversations, and must not see each other's files."""
    try:
        parts = urlsplit(url)
    except ValueError:  # quotes a part of the address, which may hold a password
        raise Invalid("is not a valid database URL", field="url") from None
    query = [(key, value) for key, value in parse_qsl(parts.query) if key in ("host", "port", "dbname")]
    place = repr((parts.netloc.rpartition("@")[2], parts.path, sorted(query)))
    name = re.sub(r"[^\w-]+", "_", parts.path.strip("/"))[:40] or "database"
    return f"{name}-{sha256(place.encode()).hexdigest()[:12]}"


def store_for(url: object, clock: Clock = system_clock, blobs: Blobs | None = None) -> Store:
    """The store behind an address; `blobs` keeps large payloads, which a store in memory does not need."""
    if not isinstance(url, str):
        raise Invalid(f"must be a string such as {EXAMPLES}, not {type(url).__name__}", field="url")
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise Invalid(f"not a database address, which contains '://'; use {EXAMPLES}", field="url")
    if scheme == "memory":
        return InMemoryStore(clock)
    if scheme == "sqlite":
        return _sqlite(rest, clock, blobs)
    if is_postgres(url):
        return _postgres(url, clock, blobs)
    raise Invalid(f"no store for {scheme!r}; write {EXAMPLES}", field="url")


def _sqlite(rest: str, clock: Clock, blobs: Blobs | None) -> Store:
    from everthread.adapters.stores.sqlite import SqliteStore  # noqa: PLC0415 - a memory store needs no SQLite

    path = path_in(rest)
    if not rest.startswith("/") or path in ("", ":memory:"):
        raise Invalid("a SQLite address names a file: sqlite:///data/et.db; for none, use memory://", field="url")
    if len(path) > MAX_PATH_CHARACTERS:
        raise Invalid(f"a file's path has at most {MAX_PATH_CHARACTERS} characters, this has {len(path)}", field="url")
    return SqliteStore(Path(check_text(path, "url")), clock, blobs)


def _postgres(url: str, clock: Clock, blobs: Blobs | None) -> Store:
    try:
        from everthread.adapters.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("PostgreSQL needs an extra: pip install 'everthread[postgres]'") from problem
    return PostgresStore(url, clock, blobs)


def agent(
    et: Everthread,
    *,
    model: str | BaseChatModel | None = None,
    settings: Settings | None = None,
    saver: BaseCheckpointSaver[Any] | None = None,
    models: ModelProvider | None = None,
    tools: ToolProvider | Literal["default"] | None = "default",
    builtin: Sequence[BaseTool] | None = None,
    skills: SkillSet | None = None,
    knowledge: KnowledgeSource | None = None,
    types: Mapping[str, AgentType] | None = None,
    limits: TurnLimits | None = None,
    features: Features | None = None,
) -> Agent:
    """Create an agent that answers in the conversations of a database. Call it in the event loop of `et`.

    ```python
    agent = everthread.agent(et, model=model)
    async for event in everthread.run_turn(conv, "Where were we?", agent=agent):
        print(event.kind)
    ```

    Args:
        et: The open database.
        model: A name such as "openai:gpt-5-mini" or a LangChain chat model; by default the configured one.
        settings: By default those of the environment (`everthread.settings.Settings.load()`).
        saver: The checkpointer of the agent's graph; by default one over the log itself.
        models: How models are found at all, instead of `model`.
        tools: Provides the tools of a turn; by default those of `everthread.turn.tools`. None for no tools.
        builtin: The tools beside them; by default calling a subagent and describing the result.
        skills: The skills that turns may use.
        knowledge: Where documents are looked up; by default the owner's own (`et.knowledge`).
        types: Agent types by name: a prompt and its tools.
        limits: How many model calls, subagents and seconds a turn may take.
        features: Which parts of a turn are on.
    """
    try:
        from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - an extra

        from everthread.adapters.checkpoints.bridge import Bridge  # noqa: PLC0415
        from everthread.adapters.checkpoints.saver import LogSaver  # noqa: PLC0415
        from everthread.models import named_models  # noqa: PLC0415
        from everthread.turn import agent as agents  # noqa: PLC0415
        from everthread.turn.graph import build_graph  # noqa: PLC0415
        from everthread.turn.result import describe_result  # noqa: PLC0415
        from everthread.turn.skills import SHIPPED_SKILLS, SkillSet, load_skills  # noqa: PLC0415
        from everthread.turn.subagents import call_subagent  # noqa: PLC0415
        from everthread.turn.tools.provider import DefaultTools  # noqa: PLC0415
    except ImportError as problem:
        raise MissingExtra("an agent needs an extra: pip install 'everthread[agent]'") from problem
    check_everthread(et)
    known = settings or _settings()
    if tools == "default":
        skills = skills or load_skills(SHIPPED_SKILLS, known.skills_dir)
        tools = DefaultTools.create(known.tool_policy, skills=skills, mcp_file=known.mcp_file)
    if model is not None and models is not None:
        raise Invalid("give either a model or models, not both", field="model")
    if model is not None and not isinstance(model, str | BaseChatModel):
        raise Invalid(f"must be a name or a LangChain chat model, not {type(model).__name__}", field="model")
    if models is None:
        configured = named_models(known)
        models = replace(configured, default=model or configured.default, calibrations=et.store.calibrations)
    checkpointer = saver or LogSaver(et, bridge=Bridge.here(), keeps_turns=False)
    on = {name: getattr(known, f"feature_{name}") for name in agents.FEATURE_NAMES}
    return agents.Agent(
        et=et,
        saver=checkpointer,
        models=models,
        graph=build_graph(checkpointer),
        runs=et.runs,
        tools=tools,
        skills=skills or SkillSet(),
        prepare=tools.prepare if isinstance(tools, DefaultTools) else None,
        builtin=(call_subagent, describe_result) if builtin is None else builtin,
        knowledge=knowledge or agents.OwnerDocuments(et.knowledge),
        types=types or agents.AGENT_TYPES,
        limits=limits or agents.TurnLimits(max_loops=known.max_loops),
        features=features or agents.Features(**on),
    )


def _settings() -> Settings:
    from everthread.settings import Settings  # noqa: PLC0415 - only where an agent is made

    return Settings.load()
