-- The schema of the local log's file, one block for each version: SCHEMA_1 makes version 1 of an
-- empty file, SCHEMA_n makes version n of version n-1. Blocks are only ever added. Opening a log
-- compares the file's schema with what these blocks give, text by text. Each ends by saying its
-- version (file.h has the same application id).

-- name: SCHEMA_1
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    cluster TEXT NOT NULL, -- random, so that another file under this name is recognised
    created_at INTEGER NOT NULL,
    program TEXT NOT NULL, -- version of the program that made the file
    kept_at INTEGER NOT NULL -- last housekeeping, wall ms: one member does it for all
) STRICT;
CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL CHECK (partitions BETWEEN 1 AND 64),
    first_partition INTEGER NOT NULL, -- id of partition 0; the others follow
    cleanup TEXT NOT NULL CHECK (cleanup IN ('delete', 'compact')),
    retention_ms INTEGER NOT NULL CHECK (retention_ms >= -1),
    tombstone_ms INTEGER NOT NULL CHECK (tombstone_ms >= 0),
    record_bytes_max INTEGER NOT NULL CHECK (record_bytes_max > 0)
) STRICT;
CREATE TABLE part (
    id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4194303),
    topic INTEGER NOT NULL REFERENCES topic (id),
    no INTEGER NOT NULL CHECK (no BETWEEN 0 AND 63),
    low INTEGER NOT NULL CHECK (low >= 0), -- first offset that is there
    next INTEGER NOT NULL CHECK (next BETWEEN low AND 1099511627775), -- offset of the next record
    UNIQUE (topic, no)
) STRICT;
CREATE TABLE record (
    id INTEGER PRIMARY KEY, -- part.id << 40 | offset: one partition is one range of this tree
    at INTEGER NOT NULL, -- wall ms of the append
    key BLOB,
    value BLOB,
    headers BLOB, -- NULL: none
    compact INTEGER -- part.id on a compacted topic, else NULL
) STRICT;
-- A newer record of a compacted topic replaces its key's older one.
CREATE UNIQUE INDEX record_key ON record (compact, key) WHERE compact IS NOT NULL;
CREATE INDEX record_tombstone ON record (compact, at) WHERE compact IS NOT NULL AND value IS NULL;
CREATE TABLE consumer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE, -- of the consumer group
    partitions INTEGER NOT NULL CHECK (partitions BETWEEN 1 AND 64), -- of each input
    generation INTEGER NOT NULL -- raised by every join, leave and death
) STRICT;
CREATE TABLE member (
    consumer INTEGER NOT NULL REFERENCES consumer (id),
    worker TEXT NOT NULL,
    boot TEXT NOT NULL, -- the process that has this place; who finds another one is a twin
    slot INTEGER NOT NULL, -- members/<slot>: its lock and its beat
    session_ms INTEGER NOT NULL,
    away_until INTEGER, -- closed without leaving: monotonic ms until which the place is kept
    txn INTEGER NOT NULL, -- number of this boot's newest committed transaction
    PRIMARY KEY (consumer, worker)
) STRICT, WITHOUT ROWID;
CREATE TABLE assignment (
    consumer INTEGER NOT NULL,
    no INTEGER NOT NULL CHECK (no BETWEEN 0 AND 63), -- partition of every input
    worker TEXT NOT NULL,
    PRIMARY KEY (consumer, no),
    FOREIGN KEY (consumer, worker) REFERENCES member (consumer, worker)
) STRICT, WITHOUT ROWID;
CREATE INDEX assignment_worker ON assignment (consumer, worker);
CREATE TABLE committed (
    consumer INTEGER NOT NULL REFERENCES consumer (id),
    part INTEGER NOT NULL REFERENCES part (id),
    next INTEGER NOT NULL CHECK (next >= 0),
    PRIMARY KEY (consumer, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX committed_part ON committed (part);
PRAGMA application_id = 1114917937;
PRAGMA user_version = 1;
