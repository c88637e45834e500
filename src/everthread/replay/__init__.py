"""Trying a policy on a conversation that exists, without writing anything.

The history is gone through request by request, as if it happened again. `talk` reads it once; `trial` makes the
requests that a policy would have made; `baselines` counts two ways without summaries, the newest messages only and all
of them; `figures` is what each came to.

A request goes out before every message of the assistant (where none speaks, after every message).
"""

from __future__ import annotations

from everthread.replay.baselines import fixed_window, full_history
from everthread.replay.figures import Figures, Prices
from everthread.replay.talk import Said, Talk, read
from everthread.replay.trial import Trial

__all__ = ["Figures", "Prices", "Said", "Talk", "Trial", "fixed_window", "full_history", "read"]
