"""What is known of each model's counting: learnt from what it reports, kept in the database, shared by all turns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from everthread.context.budget import Calibration, calibrate, calibrate_after_overflow
from everthread.core.errors import StoreError
from everthread.core.ports import Calibrations

_WORTH_KEEPING: Final = 0.02
"""A change of the factor below this is not written: what is kept is a beginning, and a turn has writes enough."""


@dataclass(slots=True, eq=False)
class Counting:
    """One model's."""

    model: str
    known: Calibration = field(default_factory=Calibration)
    place: Calibrations | None = None
    _kept: Calibration | None = None

    async def begin(self) -> None:
        """Go on with what was learnt before."""
        found = None if self.place is None else await self.place.get(self.model)
        if found is not None:
            self.known = self._kept = Calibration(factor=found[0], samples=found[1])

    async def heard(self, *, counted: int, reported: int) -> None:
        """The provider's own count of a request."""
        self.known = calibrate(self.known, counted=counted, reported=reported)
        await self._keep()

    async def refused(self, *, counted: int, room: int) -> None:
        """The provider found a request too long."""
        self.known = calibrate_after_overflow(self.known, counted=counted, room=room)
        await self._keep()

    async def _keep(self) -> None:
        if self.place is None or not self.known.samples or not self._has_changed():
            return
        with suppress(StoreError):  # no turn fails for it; the next report is another chance
            await self.place.keep(self.model, self.known.factor, self.known.samples)
            self._kept = self.known

    def _has_changed(self) -> bool:
        return self._kept is None or abs(self.known.factor / self._kept.factor - 1) > _WORTH_KEEPING


def name_at(name: str, address: str | None) -> str:
    """A model's name with the server it is asked at, without what an address may hold of credentials."""
    if address is None:
        return name
    parts = urlsplit(address)
    return f"{name}@{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
