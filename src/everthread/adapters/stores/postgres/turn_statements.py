"""The statements about turns, by name: one statement, one sentence. All values are bound."""

from __future__ import annotations

from everthread.adapters.stores.turn_rows import FIRST_FINAL, TURN_COLUMNS

_TURNS = f"SELECT {TURN_COLUMNS} FROM turns t JOIN conversations c ON c.owner = t.owner AND c.number = t.conversation"
_UNFINISHED = f"t.state < {FIRST_FINAL}"

PUT = f"""
INSERT INTO turns AS t
    (owner, conversation, id, state, holder, lease_until, is_asked_to_stop, received_at, question, record,
     reserved_events)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (owner, conversation, id) DO UPDATE SET state = excluded.state, holder = excluded.holder,
    lease_until = CASE WHEN excluded.state < {FIRST_FINAL} THEN greatest(t.lease_until, excluded.lease_until) END,
    is_asked_to_stop = excluded.is_asked_to_stop, question = excluded.question, record = excluded.record,
    reserved_events = greatest(t.reserved_events, excluded.reserved_events)"""
"""Write a turn, new or changed; neither a lease renewed meanwhile nor a number reserved is taken back."""

SEEN = f"{_TURNS} WHERE t.owner = $1 AND t.conversation = $2 AND ({_UNFINISHED} OR t.id = $3) ORDER BY t.number"
"""The turns of a conversation that are not over, and one by its id."""

ONE = f"{_TURNS} WHERE c.owner = $1 AND c.id = $2 AND c.erased_at IS NULL AND t.id = $3"
"""A turn."""

LISTED = f"""{_TURNS}
WHERE c.owner = $1 AND ($2::text IS NULL OR c.id = $2) AND c.erased_at IS NULL AND t.number < $3
  AND (cardinality($4::int[]) = 0 OR t.state = ANY($4))
ORDER BY t.number DESC LIMIT $5"""
"""Turns of an owner or of a conversation, newest first."""

NOW = "SELECT clock_timestamp()"
"""The time by the server's clock."""

UNFINISHED = f"""
SELECT c.owner, {TURN_COLUMNS} FROM turns t JOIN conversations c ON c.owner = t.owner AND c.number = t.conversation
WHERE {_UNFINISHED} AND c.erased_at IS NULL ORDER BY t.number"""
"""Everybody's turns that are not over, oldest first."""

RENEW = f"UPDATE turns SET lease_until = $1 WHERE state < {FIRST_FINAL} AND holder = $2"
"""Let the leases of a process last longer."""

HELD_BY = f"""
SELECT c.owner, c.id, t.id, t.is_asked_to_stop
FROM turns t JOIN conversations c ON c.owner = t.owner AND c.number = t.conversation
WHERE {_UNFINISHED} AND t.holder = $1"""
"""The turns of a process that are not over, and which of them somebody wants stopped."""

ADD_EVENTS = """
WITH batch AS MATERIALIZED (
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::bytea[])
        AS b (owner, conversation, turn, first, last, body)
), held AS MATERIALIZED (
    SELECT t.owner, t.conversation, t.number, t.id, b.first, b.last, b.body
    FROM batch b
    JOIN conversations c ON c.owner = b.owner AND c.id = b.conversation AND c.erased_at IS NULL
    JOIN turns t ON t.owner = c.owner AND t.conversation = c.number AND t.id = b.turn AND t.holder = $1
    ORDER BY t.conversation, t.number
    FOR SHARE OF t
), added AS (
    INSERT INTO run_events (owner, conversation, run, first, last, body, kept_at)
    SELECT owner, conversation, number, first, last, body, $8 FROM held
    ON CONFLICT DO NOTHING
)
SELECT id FROM held"""
"""Keep batches of events of turns that are still this process's, and tell which these are; an erase waits for it, or is
waited for."""

RESERVE = f"""
UPDATE turns SET reserved_events = greatest(reserved_events, $3)
WHERE holder = $1 AND id = $2 AND state < {FIRST_FINAL}"""
"""Reserve event numbers ahead."""

UNSYNCED = "SET LOCAL synchronous_commit = off"
"""Let this transaction be synced to disk a moment later; the death of our own process cannot undo it."""

CHANNEL = "everthread_turns"
NOTIFY = f"SELECT pg_notify('{CHANNEL}', payload) FROM unnest($1::text[]) AS payload"
"""Tell the other processes, at the commit, whose turns have changed."""

DELETE_EVENTS_OF_TURN = """
DELETE FROM run_events e USING turns t
WHERE t.owner = $1 AND t.conversation = $2 AND t.id = $3
  AND e.owner = t.owner AND e.conversation = t.conversation AND e.run = t.number"""
"""Remove the small batches of a turn, before all its events are kept in one."""

PUT_EVENTS = """
INSERT INTO run_events (owner, conversation, run, first, last, body, kept_at)
SELECT owner, conversation, number, $4, $5, $6, $7 FROM turns WHERE owner = $1 AND conversation = $2 AND id = $3
ON CONFLICT DO NOTHING"""
"""Keep a batch of events together with what a decision writes."""

EVENTS = """
SELECT e.first, e.body FROM turns t
JOIN run_events e ON e.owner = t.owner AND e.conversation = t.conversation AND e.run = t.number
WHERE t.owner = $1 AND t.number = $2 AND e.last > $3 ORDER BY e.first LIMIT $4"""
"""Batches of a turn that hold events after a number."""

PRUNE_EVENTS = "DELETE FROM run_events WHERE kept_at < $1"
"""Remove events that are old."""

DELETE_TURNS_OF = "DELETE FROM turns WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Destroy the turns of conversations."""

LOCK_TURNS_OF = "SELECT 1 FROM turns WHERE owner = $1 AND conversation = ANY($2::bigint[]) FOR UPDATE"
"""Wait for those who are about to keep events of these turns: the next statement sees them."""

DELETE_EVENTS_OF = "DELETE FROM run_events WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Delete the events of these turns."""

ALL_OF = f"SELECT t.conversation, {TURN_COLUMNS} FROM turns t \
JOIN conversations c ON c.owner = t.owner AND c.number = t.conversation \
WHERE t.owner = $1 AND t.conversation = ANY($2::bigint[]) ORDER BY t.number"
"""Every turn of conversations."""
