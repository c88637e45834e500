"""A database's address, taken apart once: what the driver gets, what we keep for ourselves, what may be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from everthread.core.errors import Invalid

_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A `postgresql://` address. Four parameters in it are ours; the others are the driver's and the server's."""

    dsn: str = field(repr=False)
    """The address as the driver takes it, password included."""
    place: str
    """Host and database, for messages."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no message may hold."""
    statement_cache_size: int = 100
    """0 behind a pooler that gives each transaction another connection (pgbouncer in transaction mode)."""
    pool_size: int = 10
    """How many connections one event loop opens at most."""
    connect_timeout: int = 10
    """Seconds to wait for a connection."""
    command_timeout: int = 60
    """Seconds to wait for the answer to a statement, or for a connection of the pool to become free. Longer than
    the longest wait for another's lock."""

    def for_programs(self) -> tuple[str, dict[str, str]]:
        """The address without its password, and the environment that holds it, for `pg_dump` and its like."""
        parts = urlsplit(self.dsn)
        user, _, host = parts.netloc.rpartition("@")
        parameters = dict(parse_qsl(parts.query))
        password = unquote(parts.password or "") or parameters.pop("password", "")
        shown = f"{user.partition(':')[0]}@{host}" if user else host
        dsn = urlunsplit(parts._replace(netloc=shown, query=urlencode(parameters, quote_via=quote)))
        return dsn, {"PGPASSWORD": password} if password else {}

    def without_secrets(self, text: str) -> str:
        """A text of the driver or of PostgreSQL's programs, fit to be shown."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


_OURS = {"statement_cache_size": 0, "pool_size": 1, "connect_timeout": 1, "command_timeout": 1}
"""Our parameters and the least that each may be."""


def parse(url: str) -> Address:
    """The parts of an address, or Invalid. No message quotes the address: it may hold a password."""
    try:
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        ours = {name: _number(name, parameters.pop(name)) for name in _OURS if name in parameters}
        shown = _place(parts, parameters)
    except ValueError:
        raise Invalid(
            "is not a valid PostgreSQL URL; write postgresql://user:password@host:port/name, and special "
            "characters of the password as %40 and the like",
            field="url",
        ) from None
    found = [unquote(parts.password or ""), *(parameters.get(name, "") for name in _SECRETS)]
    return Address(
        dsn=urlunsplit(parts._replace(query=urlencode(parameters, quote_via=quote))),
        place=shown,
        secrets=tuple(secret for secret in found if secret),
        **ours,
    )


def _place(parts: SplitResult, parameters: dict[str, str]) -> str:
    host = parts.netloc.rpartition("@")[2] or parameters.get("host") or "the local server"
    return f"{host}{parts.path}"


def _number(name: str, value: str) -> int:
    if not value.isdecimal() or int(value) < _OURS[name]:
        raise Invalid(f"{name} must be a whole number of {_OURS[name]} or more", field="url")
    return int(value)
