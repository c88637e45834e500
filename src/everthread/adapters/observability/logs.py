"""Events as log lines, for whoever listens: silent until the program around everthread configures its logging.

Where structlog is configured, events go through it as the logger `everthread`. Otherwise they go to the standard
library's logger of that name, the event as message and its fields as `extra`.
"""

from __future__ import annotations

import logging
from dataclasses import fields

import structlog

from everthread.core.events import Event

LOGGER = "everthread"

logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # without it the library would speak up by itself
_STANDARD = structlog.wrap_logger(
    logging.getLogger(LOGGER),
    processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def log(event: Event) -> None:
    """Write one line."""
    logger = structlog.get_logger(LOGGER) if structlog.is_configured() else _STANDARD
    told = {field.name: getattr(event, field.name) for field in fields(event)}
    getattr(logger, event.level)(event.name, **told)
