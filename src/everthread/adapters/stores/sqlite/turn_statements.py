"""The statements about turns, by name: one statement, one sentence. All values are bound."""

from __future__ import annotations

from everthread.adapters.stores.turn_rows import FIRST_FINAL, TURN_COLUMNS

_TURNS = f"SELECT {TURN_COLUMNS} FROM turns t JOIN conversations c ON c.number = t.conversation"
_UNFINISHED = f"t.state < {FIRST_FINAL}"

PUT = f"""
INSERT INTO turns
    (conversation, id, state, holder, lease_until, is_asked_to_stop, received_at, question, record, reserved_events)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation, id) DO UPDATE SET state = excluded.state, holder = excluded.holder,
    lease_until = CASE WHEN excluded.state < {FIRST_FINAL}
        THEN max(coalesce(lease_until, 0), coalesce(excluded.lease_until, 0)) END,
    is_asked_to_stop = excluded.is_asked_to_stop, question = excluded.question, record = excluded.record,
    reserved_events = max(reserved_events, excluded.reserved_events)"""
"""Write a turn, new or changed; neither a lease renewed meanwhile nor a number reserved is taken back."""

SEEN = f"{_TURNS} WHERE t.conversation = ? AND ({_UNFINISHED} OR t.id = ?) ORDER BY t.number"
"""The turns of a conversation that are not over, and one by its id."""

ONE = f"{_TURNS} WHERE c.owner = ? AND c.id = ? AND c.erased_at IS NULL AND t.id = ?"
"""A turn."""

OF_OWNER = f"""{_TURNS}
WHERE c.owner = :owner AND c.erased_at IS NULL AND t.number < :before
  AND (:states = '[]' OR t.state IN (SELECT value FROM json_each(:states)))
ORDER BY t.number DESC LIMIT :limit"""
"""An owner's turns, newest first."""

OF_CONVERSATION = OF_OWNER.replace("c.erased_at IS NULL", "c.id = :conversation AND c.erased_at IS NULL")
"""A conversation's turns, newest first."""

UNFINISHED = f"""
SELECT c.owner, {TURN_COLUMNS} FROM turns t JOIN conversations c ON c.number = t.conversation
WHERE {_UNFINISHED} AND c.erased_at IS NULL ORDER BY t.number"""
"""Everybody's turns that are not over, oldest first."""

RENEW = f"UPDATE turns SET lease_until = ? WHERE state < {FIRST_FINAL} AND holder = ?"
"""Let the leases of a process last longer."""

HELD_BY = f"""
SELECT c.owner, c.id, t.id, t.is_asked_to_stop FROM turns t JOIN conversations c ON c.number = t.conversation
WHERE {_UNFINISHED} AND t.holder = ?"""
"""The turns of a process that are not over, and which of them somebody wants stopped."""

HELD = """
SELECT t.conversation, t.number FROM turns t JOIN conversations c ON c.number = t.conversation
WHERE c.owner = ? AND c.id = ? AND c.erased_at IS NULL AND t.id = ? AND t.holder = ?"""
"""A turn, if it is still this process's."""

ADD_EVENTS = (
    "INSERT OR IGNORE INTO run_events (conversation, run, first, last, body, kept_at) VALUES (?, ?, ?, ?, ?, ?)"
)
"""Keep a batch of events of a turn that runs."""

RESERVE = "UPDATE turns SET reserved_events = max(reserved_events, ?) WHERE number = ?"
"""Reserve event numbers ahead."""

DELETE_EVENTS_OF_TURN = """
DELETE FROM run_events
WHERE (conversation, run) IN (SELECT conversation, number FROM turns WHERE conversation = ? AND id = ?)"""
"""Remove the small batches of a turn, before all its events are kept in one."""

PUT_EVENTS = """
INSERT OR IGNORE INTO run_events (conversation, run, first, last, body, kept_at)
SELECT conversation, number, ?, ?, ?, ? FROM turns WHERE conversation = ? AND id = ?"""
"""Keep a batch of events together with what a decision writes."""

EVENTS = """
SELECT first, body FROM run_events
WHERE conversation = (SELECT conversation FROM turns WHERE number = ?) AND run = ? AND last > ? ORDER BY first"""
"""Batches of a turn that hold events after a number."""

PRUNE_EVENTS = "DELETE FROM run_events WHERE kept_at < ?"
"""Remove events that are old."""

DELETE_TURNS_OF = "DELETE FROM turns WHERE conversation = ?"
"""Destroy the turns of a conversation."""

DELETE_EVENTS_OF = "DELETE FROM run_events WHERE conversation = ?"
"""Delete the events of these turns."""

ALL_OF = f"{_TURNS} WHERE t.conversation = ? ORDER BY t.number"
"""Every turn of a conversation."""
