"""The statements about procrastinate's tables, by name: one statement, one sentence. All values are bound."""

from __future__ import annotations

SCHEMA = "everthread_jobs"

HOME = "left(md5(current_schema()), 8)"
"""Stands for the schema our tables are in: databases of ours that share one are kept apart by it."""

_KIND = "split_part(j.queue_name, '@', 1)"
_CONVERSATION = "split_part(j.lock, ':', 2)::bigint"
_OURS = f"j.queue_name LIKE '%@' || {HOME}"

WHICH_HOME = f"SELECT {HOME}"
"""What our queues are named after."""

LEARN = f"""
WITH waiting AS (
    SELECT j.id FROM {SCHEMA}.procrastinate_jobs j
    WHERE j.queueing_lock = {HOME} || ':' || $1::text || ':' || $2::bigint AND j.status = 'todo' FOR UPDATE
), learnt AS (
    UPDATE {SCHEMA}.procrastinate_jobs j
    SET priority = greatest(j.priority, $3::int),
        args = CASE WHEN j.args -> 'details' = '{{}}' THEN jsonb_set(j.args, '{{details}}', $4::text::jsonb)
            ELSE j.args END
    FROM waiting
    WHERE j.id = waiting.id
      AND ($3::int > j.priority OR j.args -> 'details' = '{{}}' AND $4::text::jsonb <> '{{}}')
)
SELECT EXISTS (SELECT 1 FROM waiting)"""
"""Whether a job like it waits, which may learn from the new one."""

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
SELECT j.status::text, count(*) FROM {SCHEMA}.procrastinate_jobs j
WHERE j.status IN ('todo', 'doing', 'failed') AND {_OURS} GROUP BY j.status"""
"""How many there are."""

JOBS_IN_STATE = f"""
SELECT count(*) FROM {SCHEMA}.procrastinate_jobs j WHERE j.status = '{{status}}' AND {_OURS}"""
"""How many there are in one of procrastinate's states, whose name comes from here."""

LISTING = f"""
SELECT j.id, {_KIND}, j.priority, j.status::text, j.attempts + (j.status = 'doing')::int, j.scheduled_at, j.args::text
FROM {SCHEMA}.procrastinate_jobs j WHERE j.status IN ('todo', 'doing', 'failed') AND {_OURS}
ORDER BY j.status DESC, j.priority DESC, j.id LIMIT $1"""
"""The dead ones, those that run, those that wait: such is the order of procrastinate's states."""

LOCK_DEAD = f"""
SELECT {_KIND}, {_CONVERSATION}, j.priority, j.args::text
FROM {SCHEMA}.procrastinate_jobs j WHERE j.id = $1 AND j.status = 'failed' AND {_OURS} FOR UPDATE"""
"""One that was given up."""

DELETE = f"DELETE FROM {SCHEMA}.procrastinate_jobs WHERE id = $1"
"""Remove a job."""

NOTE_ERROR = f"""
UPDATE {SCHEMA}.procrastinate_jobs SET args = args || jsonb_build_object('error', $2::text) WHERE id = $1"""
"""What a job was given up for."""

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
