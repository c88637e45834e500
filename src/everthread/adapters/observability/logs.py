"""Events as log lines: silent until the program around everthread configures its logging.

If structlog is configured, events go to its logger `everthread`. Otherwise they go to the standard library's logger of
that name, with the event as the message and its fields as `extra`.
"""

from __future__ import annotations

import logging
from dataclasses import fields

import structlog

from everthread.core.events import Event

LOGGER = "everthread"

logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # or warnings would reach stderr uninvited
_STANDARD = structlog.wrap_logger(
    logging.getLogger(LOGGER),
    processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def log(event: Event) -> None:
    """Log one event."""
    logger = structlog.get_logger(LOGGER) if structlog.is_configured() else _STANDARD
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    getattr(logger, event.level)(event.name, **values)
