"""The settings, read once, in a door's `main`, and handed on as a value; no other room reads the environment.

What the command line says wins over the environment (`EVERTHREAD_…`), that over `everthread.toml` in the working
folder, that over the one in the user's config folder, and that over the defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from everthread.core.errors import Invalid
from everthread.core.ids import LOCAL

PREFIX = "EVERTHREAD_"
FILE_NAME = "everthread.toml"
HIDDEN = "***"


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


def files() -> tuple[Path, ...]:
    """Where settings may stand; the nearer wins."""
    return Path.cwd() / FILE_NAME, config_folder() / FILE_NAME


def _default_database() -> str:
    return f"sqlite:///{quote(str(data_folder() / 'et.db'))}"


class Settings(BaseSettings):
    """Everything that can be set from outside."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    database: str = Field(default_factory=_default_database, min_length=1, repr=False)
    """The address of the database: `sqlite:///data/et.db` or `postgresql://user@host/name`."""
    owner: str = Field(default=LOCAL, min_length=1)
    """Whose conversations are meant."""
    models_dir: Path = Field(default_factory=lambda: data_folder() / "models")
    """Where `everthread models fetch` keeps the weights of local models."""
    log_level: LogLevel = LogLevel.WARNING
    """`debug`, `info`, `warning` or `error`; with `debug`, an error shows where it arose."""

    log_format: LogFormat = LogFormat.CONSOLE
    """`console` for people, `json` for programs: one object a line, on stderr."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, *(TomlConfigSettingsSource(settings_cls, file) for file in files())


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings in effect, and where each came from."""

    settings: Settings
    origins: Mapping[str, str]
    """`option`, `environment`, the path of a file, or `default`, by the name of the setting."""


def load(given: Mapping[str, object]) -> Loaded:
    """Read the settings; Invalid names what is wrong, without the value, which may be a secret."""
    try:
        settings = Settings(**given)  # type: ignore[arg-type]  # pydantic checks them
        return Loaded(settings=settings, origins=_origins(given))
    except ValidationError as problem:
        raise Invalid("; ".join(_complaints(problem))) from None
    except tomllib.TOMLDecodeError as problem:
        raise Invalid(f"{' or '.join(map(str, filter(Path.is_file, files())))} is not TOML: {problem}") from problem


def _complaints(problem: ValidationError) -> Iterable[str]:
    for error in problem.errors(include_input=False, include_url=False):
        name = ".".join(map(str, error["loc"]))
        if error["type"] == "extra_forbidden":
            yield f"there is no setting {name!r}; see `everthread config` for those there are"
        else:
            yield f"the setting {name!r} cannot be taken: {error['msg']}"


def _origins(given: Mapping[str, object]) -> Mapping[str, str]:
    """The same sources in the same order, each asked by itself."""
    sources: list[tuple[str, Mapping[str, object]]] = [("option", given)]
    sources.append(("environment", EnvSettingsSource(Settings)()))
    sources += [(str(file), TomlConfigSettingsSource(Settings, file)()) for file in files()]
    return {
        name: next((origin for origin, values in sources if name in values), "default")
        for name in Settings.model_fields
    }


# --- secrets in addresses ---------------------------------------------------------------------------------------

_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&\s'\"]*", re.IGNORECASE)
_IN_TEXT = re.compile(r"([a-z][a-z0-9+.-]*:/+[^\s:/@'\"]*):[^\s'\"]*@", re.IGNORECASE)
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
