-- The worker's store, version 1: the image of its turn log, and facts.
-- Append-only: a released file is never edited; a change is the next number.
-- The words of a CHECK stand as `x = 'a' OR x = 'b'`: for a list behind IN, SQLite makes a temporary table in every
-- statement that checks it, which was an eighth of a worker's time.

-- name: SCHEMA_0001

-- One row: whose store this is. Every write transaction checks boot_id (protocol rule 2).
CREATE TABLE owner (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    cluster    TEXT NOT NULL,    -- of the log that the image follows
    topic      TEXT NOT NULL,    -- the turn log
    worker     TEXT NOT NULL,    -- <service>/<worker id>
    boot_id    TEXT NOT NULL,    -- 128 random bits of the process that has the store
    pid        INTEGER NOT NULL, -- of that process, for the message to a second one
    started_at INTEGER NOT NULL  -- wall clock, ms
) STRICT;

-- How far the image of a partition follows the turn log.
CREATE TABLE checkpoint (
    partition   INTEGER PRIMARY KEY,
    next_offset INTEGER NOT NULL, -- the first offset that is not folded
    at          INTEGER NOT NULL  -- wall clock, ms, of the last fold: an old one is not believed
) STRICT;

-- The newest record of each turn, as the log has it, beside the columns that are searched.
-- Identity columns never change: turn_identity refuses it, whoever tries.
CREATE TABLE turn (
    turn_id      TEXT NOT NULL UNIQUE,
    partition    INTEGER NOT NULL,
    log_offset   INTEGER NOT NULL, -- of the record in the turn log
    origin       TEXT NOT NULL,
    service      TEXT NOT NULL,    -- of the turn's birth
    role         TEXT NOT NULL CHECK (role = 'owner' OR role = 'reviewer' OR role = 'arbiter'),
    task_id      TEXT NOT NULL,
    task_rev     INTEGER NOT NULL,
    run_id       TEXT NOT NULL,
    epoch        INTEGER NOT NULL,
    intent       TEXT NOT NULL,
    digest       TEXT NOT NULL,
    content      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    state        TEXT NOT NULL CHECK (state = 'queued' OR state = 'running' OR state = 'parked' OR state = 'delegated' OR state = 'completed' OR state = 'cancelled'),
    attempt      INTEGER NOT NULL CHECK (attempt >= 1),
    due_ms       INTEGER,          -- queued: monotonic time of this boot at which it may start
    lease_worker TEXT NOT NULL,
    lease_boot   TEXT NOT NULL,
    ended_at     INTEGER,          -- closed: when the log took its end, by the log's time, ms
    record       BLOB NOT NULL     -- the value of the turn-log record
) STRICT;

CREATE INDEX turn_partition ON turn (partition);
CREATE INDEX turn_due ON turn (due_ms) WHERE state = 'queued';
CREATE INDEX turn_ended ON turn (partition, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX turn_open ON turn (partition, state) WHERE ended_at IS NULL;

CREATE TRIGGER turn_identity
BEFORE UPDATE OF turn_id, origin, service, role, task_id, task_rev, run_id, epoch, intent, digest, content, created_at ON turn
WHEN OLD.turn_id IS NOT NEW.turn_id OR OLD.origin IS NOT NEW.origin OR OLD.service IS NOT NEW.service
  OR OLD.role IS NOT NEW.role OR OLD.task_id IS NOT NEW.task_id OR OLD.task_rev IS NOT NEW.task_rev
  OR OLD.run_id IS NOT NEW.run_id OR OLD.epoch IS NOT NEW.epoch OR OLD.intent IS NOT NEW.intent
  OR OLD.digest IS NOT NEW.digest OR OLD.content IS NOT NEW.content OR OLD.created_at IS NOT NEW.created_at
BEGIN
    SELECT RAISE(ABORT, 'the identity of a turn, its role included, never changes');
END;

-- The tries of a turn; the role stands here too, so that no row is read without it. Rows lie in the order of their
-- arrival: in that of the ids, which are hashes, each would be on a page of its own in every transaction.
CREATE TABLE attempt (
    turn_id    TEXT NOT NULL REFERENCES turn (turn_id) ON DELETE CASCADE,
    no         INTEGER NOT NULL CHECK (no >= 1),
    role       TEXT NOT NULL CHECK (role = 'owner' OR role = 'reviewer' OR role = 'arbiter'),
    service    TEXT NOT NULL,
    worker     TEXT NOT NULL,
    profile    TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state = 'queued' OR state = 'running' OR state = 'completed' OR state = 'failed' OR state = 'delegated' OR state = 'cancelled'),
    class      TEXT CHECK (class = 'auth' OR class = 'access_denied' OR class = 'rate_limited' OR class = 'quota' OR class = 'overloaded' OR class = 'unavailable' OR class = 'timeout' OR class = 'crash' OR class = 'killed' OR class = 'invalid_output' OR class = 'no_verdict' OR class = 'bad_request' OR class = 'policy' OR class = 'readonly_violated' OR class = 'lost'),
    started_at INTEGER,
    ended_at   INTEGER,
    PRIMARY KEY (turn_id, no)
) STRICT;

-- At most one live attempt for each turn.
CREATE UNIQUE INDEX attempt_live ON attempt (turn_id) WHERE state IN ('queued', 'running');

CREATE TRIGGER attempt_identity
BEFORE UPDATE OF turn_id, no, role, service ON attempt
WHEN OLD.turn_id IS NOT NEW.turn_id OR OLD.no IS NOT NEW.no OR OLD.role IS NOT NEW.role OR OLD.service IS NOT NEW.service
BEGIN
    SELECT RAISE(ABORT, 'the identity of an attempt, its role included, never changes');
END;

CREATE TRIGGER attempt_role
BEFORE INSERT ON attempt
WHEN NEW.role IS NOT (SELECT role FROM turn WHERE turn_id = NEW.turn_id)
BEGIN
    SELECT RAISE(ABORT, 'an attempt has the role of its turn');
END;

-- Owner's notes of the turn log: keys that begin with '~' (pause, cancels that came before their handoff).
CREATE TABLE note (
    partition INTEGER NOT NULL,
    key       TEXT NOT NULL,
    value     BLOB NOT NULL,
    PRIMARY KEY (partition, key)
) STRICT, WITHOUT ROWID;

-- Facts: how an attempt that ran here ended. Stays as long as the log shows that attempt claimed with
-- that token (protocol rule 7).
CREATE TABLE recorded_end (
    turn_id     TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    boot_id     TEXT NOT NULL,
    partition   INTEGER NOT NULL,
    class       TEXT CHECK (class = 'auth' OR class = 'access_denied' OR class = 'rate_limited' OR class = 'quota' OR class = 'overloaded' OR class = 'unavailable' OR class = 'timeout' OR class = 'crash' OR class = 'killed' OR class = 'invalid_output' OR class = 'no_verdict' OR class = 'bad_request' OR class = 'policy' OR class = 'readonly_violated' OR class = 'lost'),
    result      TEXT,              -- raw JSON object; NULL for a failure
    note        TEXT NOT NULL,     -- one line
    retry_after INTEGER NOT NULL,  -- ms; 0: not said
    uncounted   INTEGER NOT NULL,  -- 1: counts in no budget (never started, or a clean stop)
    started_at  INTEGER NOT NULL,  -- wall clock, ms; 0: never started
    ended_at    INTEGER NOT NULL,
    usage       TEXT,              -- JSON object: what the attempt took; NULL: not told
    PRIMARY KEY (turn_id, attempt, boot_id)
) STRICT, WITHOUT ROWID;

-- Which migrations made this file.
CREATE TABLE migration (
    version INTEGER PRIMARY KEY,
    program TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
