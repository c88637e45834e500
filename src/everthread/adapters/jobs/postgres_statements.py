"""The statements about procrastinate's tables, by name: one statement, one sentence. All values are bound."""

from __future__ import annotations

from everthread.core.jobs import COMPACT

SCHEMA = "everthread_jobs"

HOME = """left(md5(current_schema()::text COLLATE "default"), 8)"""
"""Stands for the schema our tables are in: databases of ours that share one are kept apart by it. A schema's name has a
collation of its own, by which procrastinate's indexes of locks cannot be read."""

_KIND = "split_part(j.queue_name, '@', 1)"
_CONVERSATION = "split_part(j.lock, ':', 2)::bigint"
_OURS = f"j.queue_name LIKE '%@' || {HOME}"

WHICH_HOME = f"SELECT {HOME}"
"""What our queues are named after."""

RANKS = 1 << 24
"""Procrastinate takes the highest priority, and of equal ones the oldest. So its priority says both our level and our
rank in it: level * RANKS - rank. It is a number of 32 bits, so ranks end here; jobs beyond wait in order of arrival."""
_LEVEL = f"ceil(j.priority / {RANKS}.0)::int"

INDEX_ROUNDS = f"""
CREATE INDEX IF NOT EXISTS everthread_rounds ON {SCHEMA}.procrastinate_jobs
    ((args ->> 'owner'), ((args ->> 'level')::int), ((args ->> 'round')::int)) WHERE status IN ('todo', 'doing')"""
"""An index of ours on procrastinate's table, by which the last round of an owner is found."""

DROP_ROUNDS = f"DROP INDEX IF EXISTS {SCHEMA}.everthread_rounds"

_IN_LEVEL = f"j.priority > ($2::int - 1) * {RANKS} AND j.priority <= $2::int * {RANKS} AND {_OURS}"

PLACE = f"""
SELECT greatest(
    0,
    (SELECT $2::int * {RANKS} - min(j.priority) FROM {SCHEMA}.procrastinate_jobs j
     WHERE j.status = 'doing' AND {_IN_LEVEL}),
    (SELECT coalesce((j.args ->> 'round')::int, 1) - 1 FROM {SCHEMA}.procrastinate_jobs j
     WHERE j.status = 'todo' AND {_IN_LEVEL} ORDER BY j.priority DESC, j.id LIMIT 1)
), coalesce((
    SELECT max((j.args ->> 'round')::int) FROM {SCHEMA}.procrastinate_jobs j
    WHERE j.status IN ('todo', 'doing') AND j.args ->> 'owner' = $1::text AND (j.args ->> 'level')::int = $2::int
      AND {_OURS}
), 0)"""
"""The round that a level has come to, and that of an owner's last job in it."""

WAITING = f"""
SELECT j.id, {_LEVEL}, j.args -> 'details' = '{{}}' FROM {SCHEMA}.procrastinate_jobs j
WHERE j.queueing_lock = {HOME} || ':' || $1::text || ':' || $2::bigint AND j.status = 'todo' FOR UPDATE"""
"""The job of a kind and conversation that waits, and whether it could be told more."""

RAISE = f"""
UPDATE {SCHEMA}.procrastinate_jobs
SET priority = $2::int, args = args || jsonb_build_object('level', $3::int, 'round', $4::int) WHERE id = $1"""
"""Let a job that waits be as urgent as the one that was put after it."""

TELL = f"""
UPDATE {SCHEMA}.procrastinate_jobs SET args = jsonb_set(args, '{{details}}', $2::text::jsonb) WHERE id = $1"""
"""Let a job that waits know what the one knew that was put after it."""

DEFER = f"""
SELECT {SCHEMA}.procrastinate_defer_jobs_v1(ARRAY[ROW(
    $1::text || '@' || {HOME}, 'everthread:' || $1::text, $3::int, {HOME} || ':' || $2::bigint,
    {HOME} || ':' || $1::text || ':' || $2::bigint, $4::text::jsonb, $5::timestamptz
)::{SCHEMA}.procrastinate_job_to_defer_v1])"""
"""Let a job wait; a unique violation when one like it does."""

IS_ANY_LEFT = f"""
SELECT EXISTS (SELECT 1 FROM {SCHEMA}.procrastinate_jobs j WHERE j.status IN ('todo', 'doing') AND {_OURS})"""
"""Whether one waits or runs."""

COUNTS = f"""
SELECT j.status::text, count(*), min((j.args ->> 'put_at')::bigint) FROM {SCHEMA}.procrastinate_jobs j
WHERE j.status IN ('todo', 'doing', 'failed') AND {_OURS} GROUP BY j.status"""
"""How many there are, and since when."""

OLDEST_WAITING = f"""
SELECT min((j.args ->> 'put_at')::bigint) FROM {SCHEMA}.procrastinate_jobs j WHERE j.status = 'todo' AND {_OURS}"""
"""Since when the oldest has been waiting."""

BACKLOG = f"""
SELECT {_KIND}, {_LEVEL}, count(*), min((j.args ->> 'put_at')::bigint) FROM {SCHEMA}.procrastinate_jobs j
WHERE j.status = 'todo' AND {_OURS} GROUP BY 1, 2 ORDER BY 1, 2"""
"""What waits."""

UNSUMMARISED = f"""
SELECT coalesce(sum(greatest(0, c.leaf_depth - coalesce((
    SELECT e.depth FROM compactions s
    JOIN entries e ON e.owner = s.owner AND e.conversation = s.conversation AND e.seq = s.last_seq
    WHERE s.owner = c.owner AND s.conversation = c.number AND s.undone_at IS NULL AND s.invalid_at IS NULL
    ORDER BY s.last_seq DESC LIMIT 1), 0))), 0)::bigint
FROM {SCHEMA}.procrastinate_jobs j
JOIN conversations c ON c.owner = j.args ->> 'owner' AND c.number = {_CONVERSATION}
WHERE j.status = 'todo' AND j.queue_name = '{COMPACT}@' || {HOME}"""
"""How many messages are in no summary, where a compaction waits; after a fork, a summary on any branch counts."""

JOBS_IN_STATE = f"""
SELECT count(*) FROM {SCHEMA}.procrastinate_jobs j WHERE j.status = '{{status}}' AND {_OURS}"""
"""How many there are in one of procrastinate's states, whose name comes from here."""

LISTING = f"""
SELECT j.id, {_KIND}, {_LEVEL}, j.status::text, j.attempts + (j.status = 'doing')::int, j.scheduled_at, j.args::text
FROM {SCHEMA}.procrastinate_jobs j WHERE j.status = '{{status}}' AND {_OURS}
ORDER BY j.priority DESC, j.id LIMIT $1"""
"""The first jobs in one of procrastinate's states, in the order of execution. The name of the state comes from here: as
a parameter it would hide the index of those that wait."""

LOCK_DEAD = f"""
SELECT {_KIND}, {_CONVERSATION}, {_LEVEL}, j.args::text
FROM {SCHEMA}.procrastinate_jobs j WHERE j.id = $1 AND j.status = 'failed' AND {_OURS} FOR UPDATE"""
"""One that was given up."""

ALL_DEAD = f"""
SELECT j.id FROM {SCHEMA}.procrastinate_jobs j WHERE j.status = 'failed' AND {_OURS} ORDER BY j.priority DESC, j.id"""
"""Those that were given up."""

DELETE = f"DELETE FROM {SCHEMA}.procrastinate_jobs WHERE id = $1"
"""Remove a job."""

NOTE_ERROR = f"""
UPDATE {SCHEMA}.procrastinate_jobs
SET args = args || jsonb_build_object('error', $2::text, 'died_at', $3::bigint) WHERE id = $1"""
"""What a job was given up for, and when."""

BURY = f"DELETE FROM {SCHEMA}.procrastinate_jobs j WHERE j.queueing_lock = $1 AND j.status = 'failed'"
"""What died before is made up for, or dies again."""

LOCK_LOST = f"""
SELECT j.id, j.queueing_lock, j.attempts + coalesce((j.args ->> 'attempts')::int, 0) + 1
FROM {SCHEMA}.procrastinate_jobs j LEFT JOIN {SCHEMA}.procrastinate_workers w ON w.id = j.worker_id
WHERE j.status = 'doing' AND {_OURS}
  AND (w.id IS NULL OR w.last_heartbeat < now() - make_interval(secs => $1)
    OR w.id = $2 AND j.id <> ALL($3::bigint[]) AND NOT EXISTS (
        SELECT 1 FROM {SCHEMA}.procrastinate_events e
        WHERE e.job_id = j.id AND e.type = 'started' AND e.at > now() - make_interval(secs => $1)))
FOR UPDATE OF j SKIP LOCKED"""
"""Jobs whose worker gave no sign of life for so long, and jobs this worker has no memory of."""

TAKE_BACK = f"SELECT {SCHEMA}.procrastinate_retry_job_v2($1, now(), NULL, NULL, NULL)"
"""Let a job wait that ran; a unique violation when one like it does."""

GIVE_UP = f"SELECT {SCHEMA}.procrastinate_finish_job_v1($1, 'failed', false)"
"""Let a job be dead."""

_OF_CONVERSATIONS = f"j.lock IN (SELECT {HOME} || ':' || number FROM unnest($1::bigint[]) AS number)"

FORGET = f"DELETE FROM {SCHEMA}.procrastinate_jobs j WHERE {_OF_CONVERSATIONS} AND j.status <> 'doing'"
"""Take out the jobs of erased conversations. One that runs is removed by its worker, which would miss it."""

FORGET_ERRORS = f"""
UPDATE {SCHEMA}.procrastinate_jobs j SET args = j.args - 'error' WHERE {_OF_CONVERSATIONS} AND j.args ? 'error'"""
"""Take out what may quote an erased message."""
