-- Every statement of the local log. Parameters are bound by name.

-- name: SETTINGS
-- A process may hold several connections and must stay small; a log that was far behind once does
-- not keep its long write-ahead file.
PRAGMA cache_size = -1024;
PRAGMA journal_size_limit = 16777216;

-- name: BEGIN_WRITE
BEGIN IMMEDIATE;

-- name: COMMIT_WRITE
COMMIT;

-- name: META_ADD
INSERT INTO meta (one, cluster, created_at, program, kept_at)
VALUES (1, :cluster, :at, :program, :at);

-- name: META_CLUSTER
SELECT cluster FROM meta WHERE one = 1;

-- name: TOPIC_FIND
SELECT id, partitions, first_partition, cleanup, retention_ms, tombstone_ms, record_bytes_max
FROM topic WHERE name = :name;

-- name: TOPIC_ADD
INSERT INTO topic (name, partitions, first_partition, cleanup, retention_ms, tombstone_ms,
                   record_bytes_max)
SELECT :name, :partitions, coalesce(max(id), 0) + 1, :cleanup, :retention, :tombstone, :bytes
FROM part;

-- name: TOPIC_ALTER
UPDATE topic SET cleanup = :cleanup, retention_ms = :retention, tombstone_ms = :tombstone,
                 record_bytes_max = :bytes
WHERE id = :id;

-- name: TOPIC_LIST
SELECT name FROM topic WHERE substr(name, 1, length(:prefix)) = :prefix ORDER BY name;

-- name: PART_ADD
INSERT INTO part (id, topic, no, low, next) VALUES (:id, :topic, :no, 0, 0);

-- name: PART_MARKS
SELECT low, next FROM part WHERE id = :part;

-- name: PART_SET_NEXT
UPDATE part SET next = :next WHERE id = :part;

-- name: PART_SET_LOW
UPDATE part SET low = :low WHERE id = :part;

-- name: RECORD_ADD
INSERT INTO record (id, at, key, value, headers, compact)
VALUES (:id, :at, :key, :value, :headers, NULL);

-- name: RECORD_REPLACE
INSERT INTO record (id, at, key, value, headers, compact)
VALUES (:id, :at, :key, :value, :headers, :part)
ON CONFLICT (compact, key) WHERE compact IS NOT NULL
DO UPDATE SET id = excluded.id, at = excluded.at, value = excluded.value,
              headers = excluded.headers;

-- name: RECORD_RANGE
SELECT id, at, key, value, headers FROM record
WHERE id >= :from AND id < :end ORDER BY id LIMIT :max;

-- name: RECORD_DELETE_RANGE
DELETE FROM record WHERE id >= :from AND id < :end;

-- name: RECORD_NTH
SELECT id FROM record WHERE id >= :from AND id < :end ORDER BY id LIMIT 1 OFFSET :n;

-- name: RECORD_OLDEST
SELECT min(CASE WHEN at >= :before THEN id END), max(id), count(*)
FROM (SELECT id, at FROM record WHERE id >= :from AND id < :end ORDER BY id LIMIT :max);

-- name: TOMBSTONE_DELETE
DELETE FROM record WHERE id IN (
    SELECT id FROM record WHERE compact = :part AND value IS NULL AND at < :before
    ORDER BY at LIMIT :max);

-- name: COMPACT_DROP_OLDER
DELETE FROM record WHERE id IN (
    SELECT id FROM (SELECT id, key, row_number() OVER (PARTITION BY key ORDER BY id DESC) AS age
                    FROM record WHERE id >= :from AND id < :end)
    WHERE age > 1 OR key IS NULL);

-- name: COMPACT_SET
UPDATE record SET compact = :part WHERE id >= :from AND id < :end;

-- name: COMPACT_UNSET
UPDATE record SET compact = NULL WHERE id >= :from AND id < :end;

-- name: CONSUMER_FIND
SELECT id, partitions, generation FROM consumer WHERE name = :name;

-- name: CONSUMER_ADD
INSERT INTO consumer (name, partitions, generation) VALUES (:name, :partitions, 0);

-- name: CONSUMER_RAISE
UPDATE consumer SET generation = generation + 1, partitions = :partitions WHERE id = :consumer;

-- name: MEMBER_LIST
SELECT worker, boot, slot, session_ms, away_until FROM member
WHERE consumer = :consumer ORDER BY worker;

-- name: MEMBER_FIND
SELECT boot, txn FROM member WHERE consumer = :consumer AND worker = :worker;

-- name: MEMBER_ADD
INSERT INTO member (consumer, worker, boot, slot, session_ms, away_until, txn)
VALUES (:consumer, :worker, :boot, :slot, :session, NULL, 0);

-- name: MEMBER_TAKE
UPDATE member SET boot = :boot, slot = :slot, session_ms = :session, away_until = NULL, txn = 0
WHERE consumer = :consumer AND worker = :worker;

-- name: MEMBER_AWAY
UPDATE member SET away_until = :until
WHERE consumer = :consumer AND worker = :worker AND boot = :boot;

-- name: MEMBER_DELETE
DELETE FROM member WHERE consumer = :consumer AND worker = :worker AND boot = :boot;

-- name: MEMBER_SET_TXN
UPDATE member SET txn = :txn WHERE consumer = :consumer AND worker = :worker;

-- name: MEMBER_LOOK
SELECT member.boot, consumer.generation, assignment.no, member.txn
FROM consumer JOIN member ON member.consumer = consumer.id AND member.worker = :worker
LEFT JOIN assignment ON assignment.consumer = consumer.id AND assignment.worker = member.worker
WHERE consumer.id = :consumer ORDER BY assignment.no;

-- name: ASSIGNMENT_CLEAR
DELETE FROM assignment WHERE consumer = :consumer;

-- name: ASSIGNMENT_ADD
INSERT INTO assignment (consumer, no, worker) VALUES (:consumer, :no, :worker);

-- name: ASSIGNMENT_OF
SELECT no FROM assignment WHERE consumer = :consumer AND worker = :worker ORDER BY no;

-- name: COMMITTED_GET
SELECT next FROM committed WHERE consumer = :consumer AND part = :part;

-- name: COMMITTED_SET
INSERT INTO committed (consumer, part, next) VALUES (:consumer, :part, :next)
ON CONFLICT (consumer, part) DO UPDATE SET next = excluded.next;

-- name: KEEP_LAST
SELECT kept_at FROM meta WHERE one = 1;

-- name: KEEP_DONE
UPDATE meta SET kept_at = :at WHERE one = 1;

-- name: KEEP_PARTS_NEXT
SELECT part.id, part.low, part.next, topic.cleanup, topic.retention_ms, topic.tombstone_ms
FROM part JOIN topic ON topic.id = part.topic
WHERE part.id > :after AND (topic.cleanup = 'compact' OR topic.retention_ms >= 0)
ORDER BY part.id LIMIT 1;

-- name: SCHEMA_LIST
SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name;

-- name: SCHEMA_COUNT
SELECT count(*) FROM sqlite_schema;
