"""What differs between the attempts of a turn, and what never does (RULES R-25, R-34)."""
import sqlite3

from host import SLOW

IDENTITY = "turn_id, origin, service, role, task_id, task_rev, run_id, epoch, intent, digest, content, created_at"


def identity(host, turn):
    with sqlite3.connect(f"file:{host.stores()[0]}?mode=ro", uri=True) as store:
        return store.execute(f"SELECT {IDENTITY} FROM turn WHERE turn_id = ?", (turn,)).fetchone()


def test_r25_r34_attempts_differ_and_the_turn_does_not(fresh):
    """Profile, process and times are the attempt's; numbers rise by one; the turn's row keeps every column of its identity."""
    profiles = [{"name": "first", "env": {"TOKEN": {"value": "a"}}}, {"name": "second", "env": {"TOKEN": {"value": "b"}}}]
    host = fresh.configure({"alpha": fresh.service(profiles=profiles)})
    host.plan(default=[{"class": "auth", "sleep": 0.5 * SLOW}, {"exit": 75, "raw": ""}, {}])
    turn = host.published("alpha", "arbiter", "t-1")
    host.worker("alpha", "w1")
    host.called(1)
    before = identity(host, turn)
    shown = host.ends(turn, "completed")
    assert before is not None and identity(host, turn) == before
    assert [one["no"] for one in shown["attempts"]] == [1, 2, 3]
    assert [one["profile"] for one in shown["attempts"]] == ["first", "second", "second"]
    assert len({call["pid"] for call in host.calls()}) == 3
    assert {call["role"] for call in host.calls()} == {"arbiter"} and shown["role"] == "arbiter"
    with sqlite3.connect(f"file:{host.stores()[0]}?mode=ro", uri=True) as store:
        assert store.execute("SELECT no, role FROM attempt WHERE turn_id = ? ORDER BY no", (turn,)).fetchall() == [
            (1, "arbiter"), (2, "arbiter"), (3, "arbiter")]
