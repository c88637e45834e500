"""What a delta channel is rebuilt from: the writes of a checkpoint's ancestors, back to the last snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory

from everthread.adapters.checkpoints.reading import Loaded


class DeltaWalk:
    """Goes up the ancestors, nearest first, until each channel has met a value of its own."""

    def __init__(self, channels: Sequence[str]) -> None:
        self._writes: dict[str, list[tuple[str, str, Any]]] = {channel: [] for channel in channels}
        self._seeds: dict[str, Any] = {}

    @property
    def open(self) -> set[str]:
        """The channels that have met none yet."""
        return self._writes.keys() - self._seeds.keys()

    def take(self, ancestor: Loaded) -> None:
        """A value is what the channel was before the writes on the same checkpoint, so these count too."""
        channels = self.open
        for write in reversed(ancestor.writes):
            if write[1] in channels:
                self._writes[write[1]].append(write)
        for channel in channels & ancestor.checkpoint["channel_values"].keys():
            self._seeds[channel] = ancestor.checkpoint["channel_values"][channel]

    def histories(self) -> dict[str, DeltaChannelHistory]:
        """Writes oldest first, and what they come on top of."""
        found: dict[str, DeltaChannelHistory] = {}
        for channel, writes in self._writes.items():
            found[channel] = {"writes": writes[::-1]}
            if channel in self._seeds:
                found[channel]["seed"] = self._seeds[channel]
        return found
