-- Every statement of the store. `-- name: X` begins one; parameters are bound by name.

-- name: STMT_BEGIN
BEGIN IMMEDIATE;

-- name: STMT_BEGIN_LOOK
BEGIN DEFERRED;

-- name: STMT_COMMIT
COMMIT;

-- name: STMT_ROLLBACK
ROLLBACK;

-- name: STMT_OWNER_GET
SELECT cluster, topic, worker, boot_id, pid, started_at FROM owner WHERE one = 1;

-- name: STMT_OWNER_SET
INSERT INTO owner (one, cluster, topic, worker, boot_id, pid, started_at)
VALUES (1, :cluster, :topic, :worker, :boot, :pid, :at)
ON CONFLICT (one) DO UPDATE SET cluster = :cluster, topic = :topic, worker = :worker, boot_id = :boot, pid = :pid, started_at = :at;

-- name: STMT_OWNER_IS
SELECT 1 FROM owner WHERE one = 1 AND boot_id = :boot;

-- name: STMT_MIGRATION_ADD
INSERT INTO migration (version, program, at) VALUES (:version, :program, :at);

-- name: STMT_CHECKPOINT_GET
SELECT next_offset, at FROM checkpoint WHERE partition = :partition;

-- name: STMT_CHECKPOINT_SET
INSERT INTO checkpoint (partition, next_offset, at) VALUES (:partition, :next, :at)
ON CONFLICT (partition) DO UPDATE SET next_offset = :next, at = :at;

-- name: STMT_IMAGE_DROP_TURNS
DELETE FROM turn WHERE partition = :partition;

-- name: STMT_IMAGE_DROP_NOTES
DELETE FROM note WHERE partition = :partition;

-- name: STMT_IMAGE_DROP_CHECKPOINT
DELETE FROM checkpoint WHERE partition = :partition;

-- name: STMT_IMAGE_DROP_ALL_TURNS
DELETE FROM turn;

-- name: STMT_IMAGE_DROP_ALL_NOTES
DELETE FROM note;

-- name: STMT_IMAGE_DROP_ALL_CHECKPOINTS
DELETE FROM checkpoint;

-- name: STMT_TURN_FOLD
INSERT INTO turn (turn_id, partition, log_offset, origin, service, role, task_id, task_rev, run_id, epoch, intent, digest, content,
                  created_at, state, attempt, due_ms, lease_worker, lease_boot, ended_at, record)
VALUES (:turn, :partition, :offset, :origin, :service, :role, :task, :task_rev, :run, :epoch, :intent, :digest, :content,
        :created_at, :state, :attempt, :due, :lease_worker, :lease_boot, :ended_at, :record)
ON CONFLICT (turn_id) DO UPDATE SET
    partition = :partition, log_offset = :offset, origin = :origin, service = :service, role = :role, task_id = :task,
    task_rev = :task_rev, run_id = :run, epoch = :epoch, intent = :intent, digest = :digest, content = :content,
    created_at = :created_at, state = :state, attempt = :attempt, due_ms = :due, lease_worker = :lease_worker,
    lease_boot = :lease_boot, ended_at = :ended_at, record = :record;

-- A known turn: its identity must be the one that is there, and only what changes is written (no trigger has to be asked,
-- no index of an unchanged column is touched). No row: STMT_TURN_FOLD finds out why.
-- name: STMT_TURN_MOVE
UPDATE turn SET log_offset = :offset, state = :state, attempt = :attempt, due_ms = :due, lease_worker = :lease_worker,
    lease_boot = :lease_boot, ended_at = :ended_at, record = :record
WHERE turn_id = :turn AND partition = :partition AND origin = :origin AND service = :service AND role = :role
    AND task_id = :task AND task_rev = :task_rev AND run_id = :run AND epoch = :epoch AND intent = :intent
    AND digest = :digest AND content = :content AND created_at = :created_at;

-- name: STMT_TURN_FORGET
DELETE FROM turn WHERE turn_id = :turn;

-- name: STMT_TURN_GET
SELECT partition, log_offset, role, record FROM turn WHERE turn_id = :turn;

-- name: STMT_TURN_KNOWN
SELECT 1 FROM turn WHERE turn_id = :turn;

-- name: STMT_TURNS_DUE
SELECT turn_id, partition FROM turn WHERE state = 'queued' AND due_ms <= :now ORDER BY due_ms LIMIT :max;

-- name: STMT_TURN_NEXT_DUE
SELECT min(due_ms) FROM turn WHERE state = 'queued';

-- Named: the planner would take the index of all turns of the partition, nearly all of which have ended.
-- name: STMT_TURNS_OPEN
SELECT turn_id, state FROM turn INDEXED BY turn_open WHERE partition = :partition AND ended_at IS NULL AND turn_id > :after ORDER BY turn_id LIMIT :max;

-- name: STMT_OPEN_COUNT
SELECT state, count(*), min(created_at), turn_id FROM turn INDEXED BY turn_open WHERE partition = :partition AND ended_at IS NULL GROUP BY state;

-- name: STMT_TURN_DUE_SET
UPDATE turn SET due_ms = :due WHERE turn_id = :turn;

-- name: STMT_DUES_CLEAR
UPDATE turn INDEXED BY turn_open SET due_ms = NULL WHERE partition = :partition AND state = 'queued' AND ended_at IS NULL;

-- name: STMT_DUES_CLEAR_ALL
UPDATE turn SET due_ms = NULL WHERE state = 'queued' AND due_ms IS NOT NULL;

-- name: STMT_TURNS_ENDED
SELECT turn_id FROM turn WHERE partition = :partition AND ended_at IS NOT NULL AND ended_at <= :before ORDER BY ended_at LIMIT :max;

-- name: STMT_TURNS_COUNT
SELECT state, count(*) FROM turn GROUP BY state;

-- name: STMT_ATTEMPT_FOLD
INSERT INTO attempt (turn_id, no, role, service, worker, profile, state, class, started_at, ended_at)
VALUES (:turn, :no, :role, :service, :worker, :profile, :state, :class, :started_at, :ended_at)
ON CONFLICT (turn_id, no) DO UPDATE SET
    role = :role, service = :service, worker = :worker, profile = :profile, state = :state, class = :class,
    started_at = :started_at, ended_at = :ended_at;

-- name: STMT_ATTEMPT_MOVE
UPDATE attempt SET worker = :worker, profile = :profile, state = :state, class = :class, started_at = :started_at, ended_at = :ended_at
WHERE turn_id = :turn AND no = :no AND role = :role AND service = :service;

-- name: STMT_ATTEMPTS_FORGET
DELETE FROM attempt WHERE turn_id = :turn AND no < :before;

-- name: STMT_NOTE_FOLD
INSERT INTO note (partition, key, value) VALUES (:partition, :key, :value)
ON CONFLICT (partition, key) DO UPDATE SET value = :value;

-- name: STMT_NOTE_FORGET
DELETE FROM note WHERE partition = :partition AND key = :key;

-- name: STMT_NOTE_GET
SELECT value FROM note WHERE partition = :partition AND key = :key;

-- name: STMT_NOTES_FROM
SELECT key, value FROM note WHERE partition = :partition AND key >= :from AND key < :until ORDER BY key;

-- name: STMT_END_NOTE
INSERT OR IGNORE INTO recorded_end (turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at, usage)
VALUES (:turn, :attempt, :boot, :partition, :class, :result, :note, :retry_after, :uncounted, :started_at, :ended_at, :usage);

-- name: STMT_END_GET
SELECT turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at, usage
FROM recorded_end WHERE turn_id = :turn AND attempt = :attempt AND boot_id = :boot;

-- name: STMT_ENDS_ALL
SELECT turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at, usage FROM recorded_end
ORDER BY turn_id, attempt, boot_id LIMIT :max OFFSET :skip;

-- name: STMT_END_FORGET
DELETE FROM recorded_end WHERE turn_id = :turn AND attempt = :attempt AND boot_id = :boot;

-- name: STMT_SCHEMA_LIST
SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name;

-- name: STMT_INTEGRITY
PRAGMA integrity_check;

-- name: STMT_CHECK_ALL
SELECT 'turn ' || turn_id || ' is ' || state || ' and has ' || n || ' live attempts' AS finding FROM
    (SELECT t.turn_id, t.state, (SELECT count(*) FROM attempt a WHERE a.turn_id = t.turn_id AND a.state IN ('queued', 'running')) AS n FROM turn t)
    WHERE n <> (state IN ('queued', 'running'))
UNION ALL
SELECT 'turn ' || turn_id || ' is running and nobody holds its lease' FROM turn WHERE state = 'running' AND (lease_worker = '' OR lease_boot = '')
UNION ALL
SELECT 'turn ' || turn_id || ' is ' || state || ' and ' || CASE WHEN ended_at IS NULL THEN 'has no end' ELSE 'has an end' END FROM turn
    WHERE (state IN ('delegated', 'completed', 'cancelled')) <> (ended_at IS NOT NULL)
UNION ALL
SELECT 'attempt ' || a.no || ' of turn ' || a.turn_id || ' has another role than its turn' FROM attempt a JOIN turn t USING (turn_id) WHERE a.role <> t.role
UNION ALL
SELECT 'the newest attempt of turn ' || t.turn_id || ' is ' || t.attempt || ' and the highest number is ' || m FROM
    (SELECT turn_id, attempt, (SELECT max(no) FROM attempt a WHERE a.turn_id = turn.turn_id) AS m, state FROM turn) t WHERE m IS NOT NULL AND m <> t.attempt
UNION ALL
SELECT 'turn ' || turn_id || ' is of partition ' || partition || ', which has no checkpoint' FROM turn
    WHERE partition NOT IN (SELECT partition FROM checkpoint);
