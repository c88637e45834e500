"""Trying a policy on a conversation that exists, without writing anything.

The history is gone through request by request, as if it happened again. `talk` reads it once; `trial` makes the
requests that a policy would have made; `baselines` counts two ways without summaries, the newest messages only and all
of them; `figures` is what each came to.

A request goes out before every message of the assistant (where none speaks, after every message).
"""

from __future__ import annotations

from everthread.replaying.baselines import fixed_window, full_history
from everthread.replaying.figures import Figures, Prices
from everthread.replaying.talk import Said, Talk, read
from everthread.replaying.trial import Trial

__all__ = ["Figures", "Prices", "Said", "Talk", "Trial", "fixed_window", "full_history", "read"]
