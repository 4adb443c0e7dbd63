"""The SQL files by themselves, read with plain sqlite3: schemas, guards, words, plans (STYLE Q1, Q2, Q9)."""
import os
import re
import sqlite3

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """{name: statement} of a file with `-- name: NAME` lines."""
    found, name = {}, None
    for line in text.split("\n"):
        match = re.match(r"-- name: (\w+)\s*$", line)
        if match:
            name = match.group(1)
            found[name] = ""
        elif name and not line.startswith("--"):
            found[name] += line + "\n"
    return found


def store_schema():
    folder = os.path.join(ROOT, "common", "store", "sql", "schema")
    return [read("common", "store", "sql", "schema", name) for name in sorted(os.listdir(folder))]


def log_schema():
    return [text for name, text in blocks(read("common", "log", "local", "schema.sql")).items() if name.startswith("SCHEMA_")]


SCHEMAS = {"store": store_schema, "log": log_schema}
QUERIES = {"store": ("common", "store", "sql", "queries.sql"), "log": ("common", "log", "local", "queries.sql")}
# Statements that may read a whole table: it has one row, or the statement is about all of it.
SCANS = {"store": re.compile(r"CHECK|BACKUP|COUNT|LIST|ALL|EACH|CLEAR|DROP|VERIFY|OWNER|CHECKPOINT|DIVERGENCE"),
         "log": re.compile(r"SCHEMA|META|KEEP|TOPIC_LIST|TOPIC_ADD|RECORD_OLDEST|COMPACT_DROP_OLDER|ALL")}


@pytest.fixture(params=sorted(SCHEMAS))
def database(request):
    connection = sqlite3.connect(":memory:")
    connection.executescript("PRAGMA foreign_keys = ON")
    for text in SCHEMAS[request.param]():
        connection.executescript(text)
    yield request.param, connection
    connection.close()


def tables(connection):
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]


def test_schema_files_are_numbered_without_gaps():
    """H-49: migrations are numbered and only appended."""
    names = sorted(os.listdir(os.path.join(ROOT, "common", "store", "sql", "schema")))
    assert [int(re.match(r"(\d{4})_[a-z0-9_]+\.sql$", name).group(1)) for name in names] == list(range(1, len(names) + 1))


def test_every_table_is_strict(database):
    _, connection = database
    strict = {row[1] for row in connection.execute("PRAGMA table_list") if row[5] == 1}
    assert set(tables(connection)) <= strict


def test_every_foreign_key_has_an_index(database):
    _, connection = database
    for table in tables(connection):
        keys = {}
        for row in connection.execute(f"PRAGMA foreign_key_list('{table}')"):
            keys.setdefault(row[0], []).append(row[3])
        covered = [[info[2] for info in connection.execute(f"PRAGMA index_info('{index[1]}')")]
                   for index in connection.execute(f"PRAGMA index_list('{table}')")]
        primary = [row[1] for row in sorted(connection.execute(f"PRAGMA table_info('{table}')"), key=lambda row: row[5]) if row[5]]
        for columns in keys.values():
            assert any(index[:len(columns)] == columns for index in covered + [primary]), (table, columns)


def test_every_query_prepares(database):
    which, connection = database
    for name, statement in blocks(read(*QUERIES[which])).items():
        if re.match(r"\s*(BEGIN|COMMIT|ROLLBACK|PRAGMA|VACUUM|ATTACH)", statement):
            continue
        values = {parameter: None for parameter in re.findall(r"[:@$](\w+)", statement)}
        try:
            connection.execute("EXPLAIN " + statement, values)
        except sqlite3.Error as error:
            raise AssertionError(f"{name}: {error}\n{statement}") from None


def test_no_query_scans_unless_it_is_about_everything(database):
    """STYLE Q9: a plan that reads a whole table stands out here."""
    which, connection = database
    found = []
    for name, statement in blocks(read(*QUERIES[which])).items():
        if re.match(r"\s*(BEGIN|COMMIT|ROLLBACK|PRAGMA|VACUUM)", statement) or SCANS[which].search(name):
            continue
        values = {parameter: None for parameter in re.findall(r"[:@$](\w+)", statement)}
        for row in connection.execute("EXPLAIN QUERY PLAN " + statement, values):
            if re.match(r"SCAN (?!CONSTANT|\(subquery|\d+ CONSTANT)", row[3]):
                found.append(f"{name}: {row[3]}")
    assert not found, "\n".join(found)


def test_a_restart_asks_for_what_is_open():
    """Ended turns are many: neither a start nor a partition that moves looks at each of them."""
    connection = sqlite3.connect(":memory:")
    for text in SCHEMAS["store"]():
        connection.executescript(text)
    statements = blocks(read(*QUERIES["store"]))
    for name, index in (("STMT_TURNS_OPEN", "turn_open"), ("STMT_OPEN_COUNT", "turn_open"), ("STMT_DUES_CLEAR", "turn_open"), ("STMT_DUES_CLEAR_ALL", "turn_due"),
                        ("STMT_TURN_NEXT_DUE", "turn_due"), ("STMT_TURNS_ENDED", "turn_ended")):
        values = {parameter: None for parameter in re.findall(r"[:@$](\w+)", statements[name])}
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + statements[name], values)]
        assert re.search(rf"SEARCH turn USING (COVERING )?INDEX {index}\b", plan[0]), f"{name}: {plan}"


def words_of(*parts, macro):
    return re.findall(rf"\b{macro}\((\w+),", re.sub(r"/\*.*?\*/", "", read(*parts), flags=re.S))


def states(which):
    """The words of one list of states.h."""
    text = read("common", "base", "tbl", "states.h")
    part = text.split(f"#define {which}_STATES(STATE)")[1].split("#define")[0]
    return re.findall(r"STATE\((\w+),", part)


def checks(table, column):
    """Word lists of CHECK (column = … OR column = …) in a table of the store."""
    text = "\n".join(store_schema())
    body = re.search(rf"CREATE TABLE {table} \((.*?)\n\)", text, re.S).group(1)
    checks = re.findall(rf"CHECK \(({column} = '\w+'(?: OR {column} = '\w+')*)\)", body)
    return [re.findall(r"'(\w+)'", match) for match in checks]


@pytest.mark.parametrize("table, column, wanted", [
    ("turn", "state", lambda: states("TURN")), ("attempt", "state", lambda: states("ATTEMPT")),
    ("turn", "role", lambda: words_of("common", "base", "tbl", "roles.h", macro="ROLE")),
    ("attempt", "role", lambda: words_of("common", "base", "tbl", "roles.h", macro="ROLE")),
    ("attempt", "class", lambda: words_of("common", "base", "tbl", "failures.h", macro="FAILURE")),
    ("recorded_end", "class", lambda: words_of("common", "base", "tbl", "failures.h", macro="FAILURE"))])
def test_h51_words_are_those_of_the_tables(table, column, wanted):
    """H-51: the words that SQL checks are those of the X-macro lists, in their order."""
    found = checks(table, column)
    assert found and all(words == wanted() for words in found), (found, wanted())


# ---- guards of the store ----

TURN = dict(turn_id="t", partition=0, log_offset=0, origin="o", service="s", role="reviewer", task_id="k", task_rev=0, run_id="",
            epoch=0, intent="i", digest="d", content="c", created_at=0, state="running", attempt=1, due_ms=None, lease_worker="",
            lease_boot="", ended_at=None, record=b"{}")
ATTEMPT = dict(turn_id="t", no=1, role="reviewer", service="s", worker="w", profile="p", state="running")


def insert(connection, table, row):
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


@pytest.fixture
def store():
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    for text in store_schema():
        connection.executescript(text)
    insert(connection, "turn", TURN)
    insert(connection, "attempt", ATTEMPT)
    yield connection
    connection.close()


@pytest.mark.parametrize("column", ["turn_id", "origin", "service", "role", "task_id", "task_rev", "run_id", "epoch", "intent",
                                    "digest", "content", "created_at"])
def test_r24_identity_of_a_turn_never_changes(store, column):
    value = {"role": "owner"}.get(column, 9 if isinstance(TURN[column], int) else "other")
    with pytest.raises(sqlite3.IntegrityError, match="role included"):
        store.execute(f"UPDATE turn SET {column} = ?", (value,))
    store.execute(f"UPDATE turn SET {column} = ?", (TURN[column],))  # the same again is no change
    store.execute("UPDATE turn SET state = 'queued'")


@pytest.mark.parametrize("column", ["turn_id", "no", "role", "service"])
def test_identity_of_an_attempt_never_changes(store, column):
    with pytest.raises(sqlite3.IntegrityError):
        store.execute(f"UPDATE attempt SET {column} = ?", ({"no": 2, "role": "owner"}.get(column, "other"),))
    store.execute("UPDATE attempt SET state = 'completed'")


@pytest.mark.parametrize("statement", ["INSERT OR REPLACE INTO turn SELECT * FROM (SELECT * FROM turn)",
                                       "REPLACE INTO attempt (turn_id, no, role, service, worker, profile, state) "
                                       "VALUES ('t', 1, 'owner', 's', 'w', 'p', 'running')"])
def test_replacing_a_row_changes_no_role(store, statement):
    try:
        store.execute(statement)
    except sqlite3.IntegrityError:
        pass
    assert store.execute("SELECT role FROM turn UNION SELECT role FROM attempt").fetchall() in ([("reviewer",)], [])


def test_r12_one_live_attempt(store):
    for state in ("queued", "running"):
        with pytest.raises(sqlite3.IntegrityError):
            insert(store, "attempt", dict(ATTEMPT, no=2, state=state))
    insert(store, "attempt", dict(ATTEMPT, no=2, state="failed"))
    store.execute("UPDATE attempt SET state = 'failed' WHERE no = 1")
    insert(store, "attempt", dict(ATTEMPT, no=3, state="queued"))


def test_an_attempt_has_the_role_of_its_turn(store):
    with pytest.raises(sqlite3.IntegrityError):
        insert(store, "attempt", dict(ATTEMPT, no=2, state="failed", role="owner"))


@pytest.mark.parametrize("change", [{"role": "Owner"}, {"role": ""}, {"role": None}, {"role": "human"}, {"state": "lost"},
                                    {"state": None}, {"attempt": 0}, {"turn_id": None}])
def test_r20_a_turn_without_its_words_is_refused(store, change):
    with pytest.raises(sqlite3.IntegrityError):
        insert(store, "turn", dict(TURN, turn_id="u", **change) if "turn_id" not in change else dict(TURN, **change))
