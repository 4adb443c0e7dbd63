-- Every statement of the store. `-- name: X` begins one; parameters are bound by name.

-- name: BEGIN
BEGIN IMMEDIATE;

-- name: COMMIT
COMMIT;

-- name: ROLLBACK
ROLLBACK;

-- name: OWNER_GET
SELECT cluster, topic, worker, boot_id, pid, started_at FROM owner WHERE one = 1;

-- name: OWNER_SET
INSERT INTO owner (one, cluster, topic, worker, boot_id, pid, started_at)
VALUES (1, :cluster, :topic, :worker, :boot, :pid, :at)
ON CONFLICT (one) DO UPDATE SET cluster = :cluster, topic = :topic, worker = :worker, boot_id = :boot, pid = :pid, started_at = :at;

-- name: OWNER_IS
SELECT 1 FROM owner WHERE one = 1 AND boot_id = :boot;

-- name: MIGRATION_ADD
INSERT INTO migration (version, program, at) VALUES (:version, :program, :at);

-- name: CHECKPOINT_GET
SELECT next_offset, at FROM checkpoint WHERE partition = :partition;

-- name: CHECKPOINT_SET
INSERT INTO checkpoint (partition, next_offset, at) VALUES (:partition, :next, :at)
ON CONFLICT (partition) DO UPDATE SET next_offset = :next, at = :at;

-- name: CHECKPOINT_TOUCH
UPDATE checkpoint SET at = :at WHERE partition = :partition;

-- name: IMAGE_DROP_TURNS
DELETE FROM turn WHERE partition = :partition;

-- name: IMAGE_DROP_NOTES
DELETE FROM note WHERE partition = :partition;

-- name: IMAGE_DROP_CHECKPOINT
DELETE FROM checkpoint WHERE partition = :partition;

-- name: TURN_FOLD
INSERT INTO turn (turn_id, partition, log_offset, origin, service, role, task_id, task_rev, run_id, epoch, intent, digest, content,
                  created_at, state, attempt, due_ms, lease_worker, lease_boot, ended_at, record)
VALUES (:turn, :partition, :offset, :origin, :service, :role, :task, :task_rev, :run, :epoch, :intent, :digest, :content,
        :created_at, :state, :attempt, :due, :lease_worker, :lease_boot, :ended_at, :record)
ON CONFLICT (turn_id) DO UPDATE SET
    partition = :partition, log_offset = :offset, origin = :origin, service = :service, role = :role, task_id = :task,
    task_rev = :task_rev, run_id = :run, epoch = :epoch, intent = :intent, digest = :digest, content = :content,
    created_at = :created_at, state = :state, attempt = :attempt, due_ms = :due, lease_worker = :lease_worker,
    lease_boot = :lease_boot, ended_at = :ended_at, record = :record;

-- name: TURN_FORGET
DELETE FROM turn WHERE turn_id = :turn;

-- name: TURN_GET
SELECT partition, log_offset, role, record FROM turn WHERE turn_id = :turn;

-- name: TURNS_DUE
SELECT turn_id, partition FROM turn WHERE state = 'queued' AND due_ms <= :now ORDER BY due_ms LIMIT :max;

-- name: TURN_NEXT_DUE
SELECT min(due_ms) FROM turn WHERE state = 'queued';

-- name: TURNS_OPEN
SELECT turn_id, state FROM turn WHERE partition = :partition AND ended_at IS NULL AND turn_id > :after ORDER BY turn_id LIMIT :max;

-- name: TURN_DUE_SET
UPDATE turn SET due_ms = :due WHERE turn_id = :turn;

-- name: TURNS_ENDED
SELECT turn_id FROM turn WHERE partition = :partition AND ended_at IS NOT NULL AND ended_at <= :before ORDER BY ended_at LIMIT :max;

-- name: TURNS_COUNT
SELECT state, count(*) FROM turn GROUP BY state;

-- name: ATTEMPT_FOLD
INSERT INTO attempt (turn_id, no, role, service, worker, profile, state, class, started_at, ended_at)
VALUES (:turn, :no, :role, :service, :worker, :profile, :state, :class, :started_at, :ended_at)
ON CONFLICT (turn_id, no) DO UPDATE SET
    role = :role, service = :service, worker = :worker, profile = :profile, state = :state, class = :class,
    started_at = :started_at, ended_at = :ended_at;

-- name: NOTE_FOLD
INSERT INTO note (partition, key, value) VALUES (:partition, :key, :value)
ON CONFLICT (partition, key) DO UPDATE SET value = :value;

-- name: NOTE_FORGET
DELETE FROM note WHERE partition = :partition AND key = :key;

-- name: NOTE_GET
SELECT value FROM note WHERE partition = :partition AND key = :key;

-- name: NOTES_FROM
SELECT key, value FROM note WHERE partition = :partition AND key >= :from AND key < :until ORDER BY key;

-- name: END_NOTE
INSERT OR IGNORE INTO recorded_end (turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at)
VALUES (:turn, :attempt, :boot, :partition, :class, :result, :note, :retry_after, :uncounted, :started_at, :ended_at);

-- name: END_GET
SELECT turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at
FROM recorded_end WHERE turn_id = :turn AND attempt = :attempt AND boot_id = :boot;

-- name: ENDS_ALL
SELECT turn_id, attempt, boot_id, partition, class, result, note, retry_after, uncounted, started_at, ended_at FROM recorded_end
WHERE turn_id > :after ORDER BY turn_id, attempt LIMIT :max;

-- name: END_FORGET
DELETE FROM recorded_end WHERE turn_id = :turn AND attempt = :attempt AND boot_id = :boot;

-- name: CHECK_ALL
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
