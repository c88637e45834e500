"""What a model is shown: units, repair, window, tokens and budget. Pure functions, above `core` only.

A list of messages becomes a request in this order: `repair` (valid), `growth` or `window` (which part of it), `elide`
(long things by reference), `fit` (within the budget, whatever is left to do). `faults` says what a provider would
refuse, and judges all the others.
"""

from __future__ import annotations

from everthread.context.budget import (
    Budget,
    Calibration,
    calibrated,
    message_tokens,
    overflowed,
    with_calibration,
)
from everthread.context.clamp import Clamp, ClampPolicy, Elision, clamp_message, elide
from everthread.context.excerpt import excerpt
from everthread.context.faults import Fault, faults
from everthread.context.fit import Fitted, fit
from everthread.context.growth import WindowBounds, WindowStart, coverage_end, jump, window_start
from everthread.context.repair import repair, repair_report
from everthread.context.repairs import Repair, RepairReport
from everthread.context.shape import Message, Provider
from everthread.context.tokens import count_tokens
from everthread.context.units import spans, units
from everthread.context.window import Omitted, Window, cut_window

__all__ = [
    "Budget",
    "Calibration",
    "Clamp",
    "ClampPolicy",
    "Elision",
    "Fault",
    "Fitted",
    "Message",
    "Omitted",
    "Provider",
    "Repair",
    "RepairReport",
    "Window",
    "WindowBounds",
    "WindowStart",
    "calibrated",
    "clamp_message",
    "count_tokens",
    "coverage_end",
    "cut_window",
    "elide",
    "excerpt",
    "faults",
    "fit",
    "jump",
    "message_tokens",
    "overflowed",
    "repair",
    "repair_report",
    "spans",
    "units",
    "window_start",
    "with_calibration",
]
