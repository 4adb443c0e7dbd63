"""The store and the local log in other hands: what a role is cannot be changed there (X19, X20, R-24, R-12)."""
import json
import os
import sqlite3
import subprocess

import pytest

from host import mode, wait_until


def sqlite(path, sql):
    return subprocess.run(["sqlite3", "-batch", path, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def tables(path, column):
    connection = sqlite3.connect(path)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [name for name in names
                if column in [row[1] for row in connection.execute(f"PRAGMA table_info('{name}')")]]
    finally:
        connection.close()


def store_of(host):
    path, = host.stores()
    return path


@pytest.fixture
def waiting(host):
    """A reviewer's turn between two attempts, its worker stopped."""
    host.tampered = True
    host.plan(default=[{"class": "rate_limited", "retry_after_ms": 4000}, {}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.ends(turn, "queued")
    worker.stop()
    return host, turn


@pytest.mark.drivers("local")
def test_r24_the_role_cannot_be_updated_with_plain_sqlite3(waiting):
    """R-24: a trigger refuses it, whoever tries; for every table that holds a role."""
    host, turn = waiting
    path = store_of(host)
    found = tables(path, "role")
    assert found
    for table in found:
        done = sqlite(path, f"UPDATE \"{table}\" SET role = 'owner'")
        assert done.returncode != 0 and b"role" in done.stderr, done
        assert sqlite(path, f"SELECT DISTINCT role FROM \"{table}\"").stdout.strip() == b"reviewer"
    host.worker("alpha", "w1")
    assert host.ends(turn, "completed")["role"] == "reviewer"


@pytest.mark.drivers("local")
@pytest.mark.parametrize("column, value", [("task_id", "'t-2'"), ("origin", "'mallory'"), ("task_rev", "9"), ("epoch", "9"),
                                           ("content", "'00'"), ("turn_id", "'0'")])
def test_identity_columns_cannot_be_updated(waiting, column, value):
    host, _ = waiting
    path = store_of(host)
    found = [name for name in tables(path, column) if "role" in
             [row[1] for row in sqlite3.connect(path).execute(f"PRAGMA table_info('{name}')")]]
    assert found
    for table in found:
        done = sqlite(path, f"UPDATE \"{table}\" SET {column} = {value}")
        assert done.returncode != 0, (table, column, done)


@pytest.mark.drivers("local")
def test_r12_a_second_live_attempt_cannot_be_inserted(waiting):
    """R-12: at most one live attempt for each turn is a UNIQUE index."""
    host, turn = waiting
    path = store_of(host)
    connection = sqlite3.connect(path)
    table, = [name for name in tables(path, "no") if "turn_id" in
              [row[1] for row in connection.execute(f"PRAGMA table_info('{name}')")]]
    row = connection.execute(f"SELECT * FROM {table} WHERE turn_id = ? AND state IN ('queued', 'running')", (turn,))
    names = [column[0] for column in row.description]
    live = dict(zip(names, row.fetchone()))
    live["no"] += 1
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                           list(live.values()))
    live.update(no=live["no"] + 1, state="completed", role="owner")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                           list(live.values()))
    connection.close()


def without_triggers(path, *statements):
    """Runs statements with every trigger away, and puts them back: the file looks as it did."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER \"{name}\"")
    for sql, values in statements:
        connection.execute(sql, values)
    for _, sql in triggers:
        connection.execute(sql)
    connection.execute("COMMIT")
    connection.close()


def found_before_the_start(host, turn, codes=("role_mismatch", "bad_signature", "invalid_envelope")):
    """The turn is parked with one of these codes, and no second call was made."""
    shown = host.ends(turn, "parked", 30)
    assert len(host.calls()) == 1, "an executor was started"
    letter = next(one for one in host.letters() if one["turn_id"] == turn)
    assert letter["code"] in codes, letter
    return shown


def test_x19_the_role_edited_in_the_store(waiting):
    """X19: a store that says owner never makes an owner's execution; the log's word and the proof stand."""
    host, turn = waiting
    path = store_of(host)
    rows = sqlite3.connect(path).execute("SELECT record FROM turn WHERE turn_id = ?", (turn,)).fetchone()
    record = json.loads(rows[0])
    record["role"] = "owner"
    without_triggers(path, ("UPDATE attempt SET role = 'owner'", ()),
                     ("UPDATE turn SET role = 'owner', record = ?", (json.dumps(record, separators=(",", ":")).encode(),)))
    worker = host.worker("alpha", "w1")

    def found():
        return host.state(turn) == "parked" or not worker.alive or len(host.calls()) > 1

    wait_until(found, 30, lambda: f"the edit to be found: {host.state(turn)}\n{worker.log}")
    assert {call["role"] for call in host.calls()} == {"reviewer"}
    if host.state(turn) == "parked":
        found_before_the_start(host, turn)
    elif not worker.alive:
        assert worker.wait() != 0 and ("role_mismatch" in worker.log or "store_failed" in worker.log), worker.log


@pytest.mark.core
@pytest.mark.parametrize("edit", ["column", "value", "payload", "signature", "both"])
def test_x19_the_turn_log_edited_by_a_writer(waiting, edit):
    """X19: the record of the turn in the local log, changed with plain sqlite3; also with the store deleted."""
    host, turn = waiting
    topic = host.topic("turns")
    record = next(one for one in host.log.records(topic) if one.key == turn.encode())
    state = record.json()
    if edit in ("column", "both"):
        state["role"] = "owner"
    if edit in ("value", "both"):
        state["handoff"] = state["handoff"].replace('"role":"reviewer"', '"role":"owner"')
    if edit == "payload":
        state["handoff"] = state["handoff"].replace('"task_id":"t-1"', '"task_id":"t-9"')
        state["task_id"] = "t-9"
    if edit == "signature":
        state["signature"] = state["signature"][:-1] + ("0" if state["signature"][-1] != "0" else "1")
    assert state != record.json()
    host.log.append(record.copy(value=json.dumps(state, separators=(",", ":")).encode()))
    for path in host.stores():
        os.unlink(path)
    host.worker("alpha", "w1")
    found_before_the_start(host, turn)
    assert {call["role"] for call in host.calls()} == {"reviewer"}


def test_x19_a_parked_turn_edited_and_replayed(host):
    """X19, R-39: what is replayed is checked too."""
    host.tampered = True
    host.plan(default=[{"class": "bad_request"}, {}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.ends(turn, "parked")
    worker.stop()
    record = next(one for one in host.log.records(host.topic("turns")) if one.key == turn.encode())
    state = record.json()
    state["role"] = "owner"
    host.log.append(record.copy(value=json.dumps(state, separators=(",", ":")).encode()))
    host.worker("alpha", "w1")
    host.replay(turn)
    wait_until(lambda: len(host.letters()) > 1 or any(one["code"] == "role_mismatch" for one in host.letters()) or
               len(host.calls()) > 1, what="the edit to be found")
    assert len(host.calls()) == 1


@pytest.mark.drivers("local")
@pytest.mark.parametrize("object_sql", [
    "CREATE TRIGGER planted AFTER INSERT ON {table} BEGIN SELECT 1; END",
    "CREATE VIEW planted AS SELECT 1",
    "CREATE TABLE planted (x)",
])
def test_x20_planted_objects_are_refused_at_open(waiting, object_sql):
    """X20: an extra trigger, view or table in the store, or in the local log: store_failed, nothing runs."""
    host, turn = waiting
    for path, table in ((store_of(host), "turn"), (os.path.join(host.dir, "data", "log.db"), "record")):
        name = object_sql.split()[1].lower()
        assert sqlite(path, object_sql.format(table=table)).returncode == 0
        worker = host.worker("alpha", "w1")
        assert worker.wait() == 8, worker.log
        assert "store_failed" in worker.log and os.path.basename(path) in worker.log, worker.log
        assert sqlite(path, f"DROP {name} planted").returncode == 0
    host.publish("alpha", "owner", "t-2").ok()
    host.worker("alpha", "w1")
    host.ends(turn, "completed")


@pytest.mark.drivers("local")
def test_x20_a_log_with_a_planted_trigger_takes_no_publish(host):
    path = os.path.join(host.dir, "data", "log.db")
    assert sqlite(path, "CREATE TRIGGER planted AFTER INSERT ON record BEGIN SELECT 1; END").returncode == 0
    host.publish("alpha", "owner", "t-1").refused("store_failed", 8)


@pytest.mark.drivers("local")
@pytest.mark.parametrize("what", ["foreign", "newer", "garbage", "empty"])
def test_a_store_that_is_not_ours_is_refused(waiting, what):
    """Another application's file, a newer schema, no database at all: refused, not overwritten."""
    host, _ = waiting
    path = store_of(host)
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    if what == "foreign":
        os.unlink(path)
        assert sqlite(path, "PRAGMA application_id = 1; CREATE TABLE x (y);").returncode == 0
    elif what == "newer":
        assert sqlite(path, "PRAGMA user_version = 9999;").returncode == 0
    elif what == "garbage":
        with open(path, "wb") as file:
            file.write(b"this is no database, it is a letter to my aunt" * 100)
    else:
        os.unlink(path)
        with open(path, "wb"):
            pass
    os.chmod(path, 0o600)
    with open(path, "rb") as file:
        before = file.read()
    worker = host.worker("alpha", "w1")
    if what == "empty":
        wait_until(lambda: host.called(2), what="the second call")
        return
    assert worker.wait() == 8 and "store_failed" in worker.log, worker.log
    with open(path, "rb") as file:
        assert file.read() == before


@pytest.mark.drivers("local")
def test_stores_are_their_owners_only(waiting):
    host, _ = waiting
    assert mode(store_of(host)) == 0o600


@pytest.mark.drivers("local")
def test_store_check_and_backup(waiting, tmp_path):
    """`baton store check` finds nothing in a good store; `backup` makes a file that passes it."""
    host, _ = waiting
    done = host.run("store", "check", "--json")
    assert done.status == 0, done
    path = str(tmp_path / "copy.db")
    help_text = host.run("store", "backup", "--help").out
    done = host.run("store", "backup", *(["--service", "alpha", "--id", "w1"] if "--service" in help_text else []),
                    *(["--to", path] if "--to" in help_text else [path]))
    assert done.status == 0 and os.path.exists(path), done
    assert sqlite(path, "PRAGMA integrity_check").stdout.strip() == b"ok"
    assert mode(path) == 0o600


@pytest.mark.drivers("local")
def test_refusals_touch_neither_log_nor_store(waiting):
    """L-10: whatever is refused leaves both files as they were."""
    host, turn = waiting

    def content():
        found = {}
        for path in host.stores() + [os.path.join(host.dir, "data", "log.db")]:
            done = sqlite(path, ".dump")
            assert done.returncode == 0
            found[path] = done.stdout
        return found

    before = content()
    for words in (["publish", "--service", "gamma", "--role", "owner", "--task", "t"],
                  ["publish", "--service", "alpha", "--role", "boss", "--task", "t"],
                  ["publish", "--service", "alpha", "--role", "owner", "--task", "t", "--summary", ""],
                  ["turns", "show", "f" * 32], ["turns", "list", "--state", "nonsense"],
                  ["turns", "cancel", turn], ["dlq", "replay", "x"], ["dlq", "show", "x"],
                  ["worker", "--service", "nope"], ["keys", "revoke", "nonsense"], ["keys", "retire", "0" * 16]):
        done = host.run(*words)
        assert done.status != 0, done
    assert content() == before
