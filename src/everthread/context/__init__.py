"""What a model is shown. Pure rules, and one module that acts: `read_view` reads a path from the store and renders it.

A list of messages becomes a request in this order: `repair` makes it valid, `window` chooses which part of it is
shown, `clamp` shows long things by reference, `fit` gets the rest within the budget; `assemble` runs them all.
`find_violations` says what a provider would refuse, and is the judge of all the others.
"""

from __future__ import annotations

from everthread.context.budget import Budget, Calibration, apply_calibration, calibrate, calibrate_after_overflow
from everthread.context.clamp import Clamp, ClampPolicy, Elision, clamp_message, elide, excerpt
from everthread.context.fit import FitResult, fit
from everthread.context.message_format import Message, Provider
from everthread.context.provider_rules import Violation, find_violations
from everthread.context.repair import Repair, RepairReport, repair, repair_report
from everthread.context.tokens import count_tokens, message_tokens
from everthread.context.units import unit_spans, units
from everthread.context.window import (
    Omitted,
    Window,
    WindowBounds,
    WindowStart,
    coverage_end,
    cut_window,
    jump_length,
    window_start,
)

__all__ = [
    "Budget",
    "Calibration",
    "Clamp",
    "ClampPolicy",
    "Elision",
    "FitResult",
    "Message",
    "Omitted",
    "Provider",
    "Repair",
    "RepairReport",
    "Violation",
    "Window",
    "WindowBounds",
    "WindowStart",
    "apply_calibration",
    "calibrate",
    "calibrate_after_overflow",
    "clamp_message",
    "count_tokens",
    "coverage_end",
    "cut_window",
    "elide",
    "excerpt",
    "find_violations",
    "fit",
    "jump_length",
    "message_tokens",
    "repair",
    "repair_report",
    "unit_spans",
    "units",
    "window_start",
]
