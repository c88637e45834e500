"""The settings, read once, in a door's `main`, and handed on as a value; no other room reads the environment.

What the command line says wins over the environment (`EVERTHREAD_…`), that over `everthread.toml` in the working
folder, that over the one in the user's config folder, and that over the defaults. A file that is named (`--config`,
`EVERTHREAD_CONFIG`) is read in the place of both. The table `[compaction]` holds the fields of a `CompactionPolicy`;
what a database has stored for all conversations or for one lies over it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, Field, PlainValidator, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from everthread.compaction.policy import (
    LEGACY_VARIABLE,
    SETTING_NAMES,
    CompactionPolicy,
    parse_setting,
    policy_from_settings,
)
from everthread.core.errors import Invalid
from everthread.core.ids import LOCAL
from everthread.core.plain_words import plain_words
from everthread.core.tools import ToolPolicy
from everthread.core.workspaces import IDLE_DAYS, Quota
from everthread.recall.policy import RecallPolicy, RecallWeights, Scope

PREFIX = "EVERTHREAD_"
FILE_NAME = "everthread.toml"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
HIDDEN = "***"
COMPACTION = "compaction"
_WEB_PORTS = {"http": 80, "https": 443}


class LogLevel(StrEnum):
    """How much is said on stderr."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How it is said."""

    CONSOLE = "console"
    JSON = "json"


def data_folder() -> Path:
    """Where this user's data belong."""
    return _base("XDG_DATA_HOME", ".local/share") / "everthread"


def config_folder() -> Path:
    """Where this user's settings belong."""
    return _base("XDG_CONFIG_HOME", ".config") / "everthread"


def _base(variable: str, default: str) -> Path:
    """A base folder; a relative one is to be ignored, says the XDG specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default


def files(config: Path | None = None) -> tuple[Path, ...]:
    """Where settings may stand, the nearer first: the one file that is named, else the two that are looked for."""
    named = config or Path(os.environ.get(CONFIG_VARIABLE, ""))
    if named == Path():
        return Path.cwd() / FILE_NAME, config_folder() / FILE_NAME
    if not named.is_file():
        by = CONFIG_VARIABLE if config is None else "--config"
        raise Invalid(f"file not found: {named} (set by {by})", field="config")
    return (named,)


def _default_database() -> str:
    return f"sqlite:///{quote(str(data_folder() / 'et.db'))}"


class Settings(BaseSettings):
    """Everything that can be set from outside."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    database: str = Field(default_factory=_default_database, min_length=1, repr=False)
    """The address of the database: `sqlite:///data/et.db` or `postgresql://user@host/name`."""
    blobs: str | None = Field(default=None, repr=False)
    """Where payloads over 64 KiB are kept: `file:///var/lib/everthread/blobs` or `s3://bucket/folder`; in the database
    when nothing is set."""
    owner: str = Field(default=LOCAL, min_length=1)
    """Default owner of conversations."""
    model: str | None = None
    """The chat model that answers: `openai:gpt-5-mini`, `gguf:/path/to/model.gguf`, `scripted:echo`; without one, a toy
    on this machine (`local:smollm2`)."""
    model_vision: str | None = None
    """The model for questions with images; without one, `model`."""
    model_code: str | None = None
    """The model for `model_pref="code"`; without one, `model`."""
    model_reasoning: str | None = None
    """The model for `model_pref="reasoning"`; without one, `model`."""
    title_model: str | None = None
    """The model that names conversations that have no title, such as `openai:gpt-5-mini`; without one, or when it
    fails, the first question does."""
    model_base_url: str | None = Field(default=None, repr=False)
    """The address of an OpenAI-compatible server, such as `http://localhost:11434/v1`, for models named `openai:…`."""
    model_seconds: float = Field(default=120.0, gt=0)
    """How long a model may be silent before the call is abandoned."""
    max_loops: int = Field(default=25, ge=1, le=1000)
    """Maximum number of model calls in one turn; then the model must answer."""
    feature_summary: bool = True
    """Whether turns compact the conversation automatically."""
    feature_recall: bool = True
    """Whether turns bring back what a question asks for from before the window."""
    feature_memory: bool = True
    """Whether turns show memories."""
    feature_retrieval: bool = True
    """Whether turns ask a knowledge base when one fits the question."""
    models_dir: Path = Field(default_factory=lambda: data_folder() / "models")
    """Where `everthread models fetch` keeps the weights of local models."""
    workspaces_dir: Path | None = None
    """Where the files of conversations are: `et.db.workspaces` beside a SQLite file; for PostgreSQL a folder named
    after the database in `workspaces` of the data folder."""
    workspace_max_files: int = Field(default=Quota().max_files, ge=1, le=1_000_000)
    """How many files a conversation's workspace may hold."""
    workspace_max_bytes: int = Field(default=Quota().max_bytes, ge=1)
    """How many bytes it may hold."""
    workspace_idle_days: float = Field(default=IDLE_DAYS, ge=0)
    """After how many days without use a clean-up removes a workspace's files."""
    tool_seconds: float = Field(default=ToolPolicy().timeout_seconds, gt=0, le=86_400)
    """How long a tool may take before it is given up."""
    run_command: bool = False
    """Whether models may run commands, each held in its conversation's workspace (Linux)."""
    skills_dir: Path = Field(default_factory=lambda: data_folder() / "skills")
    """Where skills of one's own are, beside those that are shipped."""
    mcp_file: Path | None = None
    """A JSON file that names MCP servers, whose tools models may use."""
    recall_top_k: int = Field(default=RecallPolicy().top_k, ge=0, le=100)
    """Maximum number of episodes that `context(query=…)` recalls."""
    recall_scope: Scope = RecallPolicy().scope
    """Where `recall` searches by default: `conversation`, or `owner` for all conversations."""
    recall_time_limit_seconds: float = Field(default=RecallPolicy().time_limit_seconds, gt=0, le=600)
    """How long search by meaning may take before it falls back to words alone."""
    recall_embed_ahead: bool = RecallPolicy().embed_ahead
    """Whether messages get their vectors as they are stored, not when meaning is first asked for in a conversation."""
    recall_meaning: float = Field(default=RecallWeights().meaning, ge=0, le=1)
    """The share of meaning beside words."""
    recall_related: float = Field(default=RecallWeights().related, ge=0, le=1)
    """How much another word for the same thing counts at most, beside the one that was asked for."""
    recall_wish: float = Field(default=RecallWeights().wish, ge=0, le=10)
    """What a standing wish gets beside the best message, if something is asked to be done."""
    recall_neighbours: float = Field(default=RecallWeights().neighbours, ge=0, le=10)
    """How much messages next to each other lend."""
    recall_asking: float = Field(default=RecallWeights().asking, ge=0, le=10)
    """How many times as much a question lends to the message after it."""
    recall_alone_tokens: int = Field(default=RecallWeights().alone_tokens, ge=1, le=100_000)
    """A message of this many tokens takes half as much from its neighbours as a short one."""
    recall_tool_damping: float = Field(default=RecallWeights().tool_damping, ge=0, le=10)
    """How much less neighbours and meaning count, the more of the messages are results of tools."""
    recall_topic: float = Field(default=RecallWeights().topic, ge=0, le=10)
    """How much it counts what is talked about around a message."""
    recall_user: float = Field(default=RecallWeights().user, ge=0, le=10)
    """How much more the user's messages count where speakers have no names."""
    recall_assistant: float = Field(default=RecallWeights().assistant, ge=0, le=10)
    """How much more the assistant's count when it is asked what it said."""
    recall_speaker: float = Field(default=RecallWeights().speaker, ge=0, le=10)
    """How much more those of the speaker count that a question names."""
    recall_date: float = Field(default=RecallWeights().date, ge=0, le=10)
    """How much more those of the time count that a question names."""
    embedder: str = Field(default="auto", min_length=1)
    """What finds by meaning: `auto` (MiniLM when its weights and the extra are here, else none), `none`, `minilm`,
    `wordllama`, `m3e` (Chinese; research only), or LangChain's embeddings as `provider:model`."""
    vectors: str | None = Field(default=None, repr=False)
    """Where vectors are kept: `milvus:http://host:19530` or `milvus:folder`; in the database when nothing is set."""
    log_level: LogLevel = LogLevel.WARNING
    """`debug`, `info`, `warning` or `error`; with `debug`, an error shows where it arose."""

    log_format: LogFormat = LogFormat.CONSOLE
    """`console` for people, `json` for programs: one object a line, on stderr."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """The address that `everthread serve` listens on."""
    port: int = Field(default=8123, ge=0, le=65535)
    """Its port; with 0 any that is free."""
    serve_workers: int = Field(default=1, ge=1, le=256)
    """How many processes serve it; more than one needs PostgreSQL."""
    stop_seconds: float = Field(default=10.0, ge=0, le=3600)
    """How long it may take to stop: until two seconds before, running turns go on, then they end with what they have
    said."""
    max_running_turns: int = Field(default=200, ge=0, le=100_000)
    """How many turns may run at once in a process; others wait in line. 0: any number."""
    max_waiting_turns: int = Field(default=256, ge=0, le=1_000_000)
    """How many may wait in line; more are refused."""
    max_wait_seconds: float = Field(default=10.0, ge=0, le=3600)
    """How long one may wait before it is refused."""
    max_streams: int = Field(default=4096, ge=0, le=1_000_000)
    """How many event streams a process keeps open; who wants to follow one more is refused. 0: any number."""
    max_streams_per_owner: int = Field(default=1000, ge=0, le=1_000_000)
    """How many of them one owner may have. 0: any number."""
    max_connections: int = Field(default=8192, ge=0, le=1_000_000)
    """How many connections a process accepts, of what the system lets it open; the others are told to come back."""
    require_key: bool | None = None
    """Whether a key or token is needed on a loopback address too, as behind a reverse proxy. Unless it is set, as soon
    as there are keys or a way to verify tokens, and for requests that say a proxy forwarded them."""
    jwt_secret: SecretStr | None = None
    """The secret that tokens are signed with, where another service issues them."""
    jwt_jwks_url: str | None = None
    """Where the token issuer publishes its public keys."""
    jwt_audience: str | None = None
    """Required audience of tokens."""
    jwt_issuer: str | None = None
    """Required issuer of tokens."""
    requests_per_minute: int = Field(default=1200, ge=0, le=10_000_000)
    """Requests per minute that each key may make; 0 = unlimited."""
    max_body_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=2**31)
    """Maximum size of a request body."""
    max_upload_bytes: int = Field(default=256 * 1024 * 1024, ge=1024, le=2**40)
    """Maximum size of an uploaded file or archive."""
    cors_origins: Annotated[str, AfterValidator(lambda given: _origins(given))] = ""
    """Which pages from elsewhere may call the service: origins such as `http://localhost:3000`, with commas between; on
    a loopback address they need no key. `*`: every page, with a key."""
    max_import_bytes: int = Field(default=128 * 1024 * 1024, ge=1024, le=2**40)
    """Maximum size of one conversation of an imported archive, unpacked: its text and 1 KiB for each entry. It is held
    in memory, a few times over, by one import at a time."""

    langgraph_config: Path | None = None
    """A `langgraph.json` whose graphs the service serves."""
    graphs: dict[str, str] = Field(default_factory=dict)
    """Graphs that the service serves, by name: `agent = "./agent.py:graph"` in a table of their own; in the environment
    as JSON."""
    allowed_types: list[str] = Field(default_factory=list)
    """Types that the states of these graphs may hold, besides those that the graphs' own schemas and code name:
    `["my_app.models:Plan"]`; in the environment as JSON."""

    @property
    def recall(self) -> RecallPolicy:
        """How the old is looked for."""
        return RecallPolicy(
            top_k=self.recall_top_k,
            scope=self.recall_scope,
            time_limit_seconds=self.recall_time_limit_seconds,
            embed_ahead=self.recall_embed_ahead,
            weights=RecallWeights(
                meaning=self.recall_meaning,
                related=self.recall_related,
                wish=self.recall_wish,
                neighbours=self.recall_neighbours,
                asking=self.recall_asking,
                alone_tokens=self.recall_alone_tokens,
                tool_damping=self.recall_tool_damping,
                topic=self.recall_topic,
                user=self.recall_user,
                assistant=self.recall_assistant,
                speaker=self.recall_speaker,
                date=self.recall_date,
            ),
        )

    compaction: Annotated[CompactionPolicy, PlainValidator(lambda given: _policy(given))] = CompactionPolicy()
    """How conversations are compacted, unless the database says otherwise: a table of its own."""

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """The pages from elsewhere that may call the service; `*` alone for all of them."""
        return tuple(filter(None, self.cors_origins.split(",")))

    @property
    def workspace_quota(self) -> Quota:
        return Quota(max_files=self.workspace_max_files, max_bytes=self.workspace_max_bytes)

    @property
    def tool_policy(self) -> ToolPolicy:
        return ToolPolicy(timeout_seconds=self.tool_seconds, run_command=self.run_command)

    @classmethod
    def load(cls, config: str | Path | None = None, **given: object) -> Settings:
        """The settings in effect here; what is given wins. Invalid names what is wrong and where it was set."""
        return load(given, None if config is None else Path(config)).settings

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)  # `load` reads the sources, each by itself, and so knows what came from where


def _origins(given: str) -> str:
    """The origins as browsers write them, without spaces. One that is written otherwise would never match."""
    origins = [origin.strip() for origin in given.split(",") if origin.strip()]
    for origin in origins:
        if origin == "*":
            if len(origins) > 1:
                raise _bad_origin("`*` already is every page; name no other, or leave `*` out")
        elif (written := _as_browsers_write(origin)) is None:
            raise _bad_origin(f"{origin!r} is not a valid origin; write one such as http://localhost:3000, or `*`")
        elif written != origin:
            raise _bad_origin(f"{origin!r} is not how browsers write it; write {written}")
    return ",".join(origins)


def _as_browsers_write(origin: str) -> str | None:
    """Scheme, host and port, the latter only where it is not the scheme's own."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _WEB_PORTS or not parts.hostname or parts.username is not None or "*" in parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _WEB_PORTS[parts.scheme]) else f":{port}")


def _bad_origin(message: str) -> PydanticCustomError:
    return PydanticCustomError("origin", "{message}", {"message": message})


def _policy(given: object) -> CompactionPolicy:
    if isinstance(given, CompactionPolicy):
        return given
    if not isinstance(given, Mapping):
        raise Invalid("must be a table of settings", field=COMPACTION)
    return policy_from_settings(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings in effect, and where each came from."""

    settings: Settings
    origins: Mapping[str, str]
    """`option`, `environment`, the path of a file, or `default`, by the name of the setting; those of compaction as
    `compaction.threshold`."""
    files: tuple[Path, ...]


def names() -> list[str]:
    """Every setting, those of compaction with their table's name."""
    plain = [name for name in Settings.model_fields if name != COMPACTION]
    return [*plain, *(f"{COMPACTION}.{name}" for name in SETTING_NAMES)]


def variables() -> dict[str, str]:
    """The variable of each setting."""
    return {name: f"{PREFIX}{name.replace('.', '_').upper()}" for name in names()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A place where settings stand, by their full names."""

    origin: str
    values: Mapping[str, object]

    def where(self, name: str) -> str:
        """As a person would look for it."""
        return f"{variables()[name]} in the environment" if self.origin == "environment" else self.origin


def load(given: Mapping[str, object], config: Path | None = None) -> Loaded:
    """Read the settings; Invalid names what is wrong and where, without the value of what may be a secret."""
    places = files(config)
    sources = [_Source(origin="option", values=_flat(given)), *_environment(), *(_file(place) for place in places)]
    chosen = {name: source for source in reversed(sources) for name in source.values}
    values = {name: source.values[name] for name, source in chosen.items()}
    try:
        settings = Settings(**_nested(values))  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as problem:
        raise Invalid("; ".join(_complaints(problem, chosen))) from None
    except Invalid as problem:
        raise _placed(problem, chosen) from None
    origins = {name: chosen[name].origin if name in chosen else "default" for name in names()}
    return Loaded(settings=settings, origins=origins, files=places)


def _flat(values: Mapping[str, object]) -> dict[str, object]:
    table = values.get(COMPACTION)
    if not isinstance(table, Mapping):
        return dict(values)
    rest = {name: value for name, value in values.items() if name != COMPACTION}
    return {**rest, **{f"{COMPACTION}.{name}": value for name, value in table.items()}}


def _nested(values: Mapping[str, object]) -> dict[str, object]:
    head = f"{COMPACTION}."
    table = {name.removeprefix(head): value for name, value in values.items() if name.startswith(head)}
    rest = {name: value for name, value in values.items() if not name.startswith(head)}
    return {**({COMPACTION: table} if table else {}), **rest}


def _environment() -> Iterator[_Source]:
    """Also the one variable that has no prefix; the one that has it goes before."""
    present = {name.upper(): text for name, text in os.environ.items() if text}
    if (whole := f"{PREFIX}{COMPACTION}".upper()) in present:
        raise Invalid(f"set each field separately, e.g. {whole}_THRESHOLD=0.7", field=whole)
    plain: dict[str, Any] = EnvSettingsSource(Settings)()
    head = f"{PREFIX}{COMPACTION}_".upper()
    for variable in sorted(name for name in present if name.startswith(head)):
        if variable.removeprefix(head).lower() not in SETTING_NAMES:
            raise Invalid(f"unknown compaction setting; available: {', '.join(sorted(SETTING_NAMES))}", field=variable)
    for name in SETTING_NAMES:
        if text := present.get(f"{PREFIX}{COMPACTION}_{name}".upper()):
            plain[f"{COMPACTION}.{name}"] = parse_setting(name, text)
    yield _Source(origin="environment", values=plain)
    if text := present.get(LEGACY_VARIABLE):
        value = parse_setting("max_message_history", text)
        origin = f"{LEGACY_VARIABLE} in the environment"
        yield _Source(origin=origin, values={f"{COMPACTION}.max_message_history": value})


def _file(path: Path) -> _Source:
    if not path.is_file():
        return _Source(origin=str(path), values={})
    try:
        return _Source(origin=str(path), values=_flat(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise Invalid(f"{path} is not TOML: {problem}") from problem


def _complaints(problem: ValidationError, chosen: Mapping[str, _Source]) -> Iterator[str]:
    for error in problem.errors(include_input=False, include_url=False):
        name = ".".join(map(str, error["loc"]))
        where = f" (set by {_where(name, chosen)})"
        if error["type"] == "extra_forbidden":
            yield f"unknown setting {name!r}{where}; `everthread config` lists them all"
        else:
            yield f"invalid value for the setting {name!r}: {plain_words(error['msg'])}{where}"


def _placed(problem: Invalid, chosen: Mapping[str, _Source]) -> Invalid:
    """What is wrong with a policy, with the full name of the field and where it was set."""
    field = problem.field or COMPACTION
    name = field if field == COMPACTION else f"{COMPACTION}.{field}"
    said = str(problem).removeprefix(f"{field}: ")
    return Invalid(f"{said} (set by {_where(name, chosen)})", field=name)


def _where(name: str, chosen: Mapping[str, _Source]) -> str:
    source = chosen.get(name)
    if source is None:
        return "default"
    return source.where(name) if name in variables() else source.origin


# --- secrets in addresses ---------------------------------------------------------------------------------------

_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&\s'\"]*", re.IGNORECASE)
_IN_TEXT = re.compile(
    r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*+:/++[^\s:/@'\"]*+):[^\s'\"]{0,1000}@",
    re.IGNORECASE,  # bounded where each beginning would be read to the end of the text
)
_WHOLE = re.compile(
    r"^([a-z][a-z0-9+.-]*:/+[^:/@]*|(?![a-z][a-z0-9+.-]*:/)[^:@]*):(.*)@",  # the second: one without a scheme
    re.IGNORECASE | re.DOTALL,
)
_SHORT = 3
"""Shorter passwords are hidden inside addresses only: everywhere they would hide ordinary letters."""


def masked(address: str) -> str:
    """The address with its password hidden. Rather too much is hidden than too little."""
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _WHOLE.sub(rf"\1:{HIDDEN}@", address))


def without_passwords(text: str, addresses: Iterable[str] = ()) -> str:
    """The text without the passwords of these addresses, wherever they stand, and of any other address in it."""
    for address in addresses:
        for form in (address, repr(address)[1:-1]):
            text = text.replace(form, masked(form))
        for password in _passwords(address):
            text = text.replace(password, HIDDEN)
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_TEXT.sub(rf"\1:{HIDDEN}@", text))


def _passwords(address: str) -> list[str]:
    found = [match[0].partition("=")[2] for match in _IN_QUERY.finditer(address)]
    found += [match[2] for match in _WHOLE.finditer(address)]
    both = {form for password in found for form in (password, unquote(password))}
    return sorted((password for password in both if len(password) >= _SHORT), key=len, reverse=True)


def seconds_to_go_on(stop_seconds: float) -> float:
    """How long turns and jobs may go on after a signal: the last seconds are for writing down their end, and for
    closing what is open."""
    return max(stop_seconds / 2, stop_seconds - 2)
