"""Events as log lines: silent until the program around everthread configures its logging.

If structlog is configured, events go to its logger `everthread`. Otherwise they go to the standard library's logger of
that name, with the event as the message and its fields as `extra`. A program that has not imported structlog has not
configured it, so it is not imported here: that would hold up the event loop for a tenth of a second.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import fields

from everthread.core.events import Event

LOGGER = "everthread"

_standard = logging.getLogger(LOGGER)
_standard.addHandler(logging.NullHandler())  # or warnings would reach stderr uninvited


def log(event: Event) -> None:
    """Log one event."""
    structlog = sys.modules.get("structlog")
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    if structlog is not None and structlog.is_configured():
        getattr(structlog.get_logger(LOGGER), event.level)(event.name, **values)
    else:
        getattr(_standard, event.level)(event.name, extra=values)
