"""When a cron is due. Schedules have the five fields of cron, to the minute, in UTC or in a time zone of their own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from everthread.core.errors import Invalid

_ALIASES = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_RANDOM = re.compile(r"(^|[\s,])r", re.IGNORECASE)
"""Fields for which croniter draws a random value, another one each time."""


def check_schedule(schedule: str, timezone: str | None) -> None:
    """Raise Invalid for a schedule or a time zone that gives no next time."""
    is_cron = (len(schedule.split()) == 5 and not _RANDOM.search(schedule)) or schedule in _ALIASES
    if not is_cron or not croniter.is_valid(schedule):
        raise Invalid(
            'must be five fields as in "0 9 * * 1-5", or one of ' + " ".join(sorted(_ALIASES)), field="schedule"
        )
    _zone(timezone)
    if next_tick(schedule, timezone, datetime.now(UTC)) is None:
        raise Invalid("names a day that no year has", field="schedule")


@lru_cache(maxsize=256)
def _zone(timezone: str | None) -> tzinfo:
    try:
        return ZoneInfo(timezone) if timezone else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:  # the last two for names that cannot be a file's
        raise Invalid('must be the name of a time zone, such as "America/New_York"', field="timezone") from problem


def next_tick(schedule: str, timezone: str | None, after: datetime) -> datetime | None:
    """The first time after a moment at which it is due; None for never."""
    return _tick(schedule, timezone, after, is_next=True)


def last_tick(schedule: str, timezone: str | None, until: datetime) -> datetime | None:
    """The last time at which it was due, at a moment or before it; None for never."""
    return _tick(schedule, timezone, until.replace(second=0, microsecond=1), is_next=False)


def _tick(schedule: str, timezone: str | None, start: datetime, *, is_next: bool) -> datetime | None:
    ticks = croniter(schedule, start.astimezone(_zone(timezone)))
    try:
        found: datetime = ticks.get_next(datetime) if is_next else ticks.get_prev(datetime)
    except CroniterError:
        return None
    return found.astimezone(UTC)
