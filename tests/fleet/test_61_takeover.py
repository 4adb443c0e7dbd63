"""Who takes over, from what, and how soon: deaths, two processes with one id, stores that do not fit (DESIGN section 4)."""
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import time

import pytest

import yamlout
from host import SLOW, attempts, ready, wait_until


@pytest.mark.drivers("local")
@pytest.mark.alone
def test_e03_on_the_local_log_a_death_is_known_at_once(host):
    """E03: ten turns run when their worker is killed; none waits for a grace or a lease, since their worker is known to be dead."""
    host.plan(default=[{"hang": True}, {}])
    host.configure({"alpha": host.service(parallel=10)}, lease="40s", lease_grace="20s")
    first = ready(host.worker("alpha", "w1"))
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(10)]
    host.called(10)
    ready(host.worker("alpha", "w2"))
    first.kill()
    killed = time.time()
    again = host.called(10, attempt=2)
    assert max(call["t"] for call in again) - killed < 6 * SLOW, "less than the grace, and than the lease"
    for turn in turns:
        host.ends(turn, "completed")
        assert attempts(host, turn) == [(1, "failed", "lost"), (2, "completed", None)]


@pytest.mark.drivers("local")
@pytest.mark.alone
def test_e03_a_renewal_of_the_dead_is_none(host):
    """E03: what the dead worker has sent is read after its death is known; its turn waits for no lease even so."""
    host.plan(default=[{"hang": True}, {}])
    host.configure({"alpha": host.service(parallel=8)}, session="60s", heartbeat="300ms", lease="12s", lease_grace="4s")
    first = ready(host.worker("alpha", "w1"))
    for n in range(8):
        host.published("alpha", "owner", f"t-{n}")
    host.called(8)
    second = ready(host.worker("alpha", "w2"))
    wait_until(lambda: second.events("lease.watched"), what="a partition to move with its turns")
    second.freeze()
    sent = len(host.log.records(host.topic("control")))
    wait_until(lambda: len(host.log.records(host.topic("control"))) > sent, what="another renewal")
    first.kill()
    second.process.send_signal(signal.SIGCONT)
    killed = time.time()
    assert max(call["t"] for call in host.called(8, attempt=2)) - killed < 4 * SLOW, "less than the lease"


@pytest.mark.drivers("local")
def test_e10_a_death_is_not_taken_for_a_silence(host):
    """E10: a worker that is only stopped for a session has its grace; it is not said to be dead."""
    host.configure({"alpha": None}, session="1500ms", heartbeat="300ms")
    host.plan(default=[{"hang": True}, {}])
    first = ready(host.worker("alpha", "w1"))
    host.published()
    host.called(1)
    second = ready(host.worker("alpha", "w2"))
    first.freeze()
    wait_until(lambda: second.events("lease.watched"), what="the other one to take over")
    seen = time.time()
    call, = host.called(1, attempt=2)
    assert call["t"] - seen > 1.5, "a grace of 2 s"
    first.process.send_signal(signal.SIGCONT)


# ---- two processes with one id ----

def other_disk(host, name="disk2"):
    """The configuration of a host that has another disk: the same log, a state_dir of its own."""
    settings = dict(host.settings, state_dir=name)
    path = os.path.join(host.dir, name + ".yaml")
    os.makedirs(os.path.join(host.dir, name), 0o700, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(yamlout.dump(settings))
    return {"BATON_CONFIG": path}


@pytest.mark.core
def test_b04_the_older_of_two_on_two_disks_stops(host):
    """B04, rule 4: within a heartbeat, naming the id; its executor is gone, and the newer one goes on."""
    host.plan(default=[{"hang": True}, {"sleep": 0.5}])
    turn = host.published("alpha", "reviewer", "t-1")
    first = ready(host.worker("alpha", "w1"))
    call, = host.called(1)
    second = host.worker("alpha", "w1", environment=other_disk(host))
    ready(second)
    joined = time.monotonic()
    assert first.wait(10) == 6, first.log[-3000:]
    assert time.monotonic() - joined < 3 * SLOW, "a heartbeat, and what an end takes"
    assert "a newer process runs as worker w1" in first.log, first.log[-1000:]
    wait_until(lambda: not os.path.exists(f"/proc/{call['pid']}"), 3, "the older one's executor to be gone")
    host.ends(turn, "completed")
    assert attempts(host, turn) == [(1, "failed", "lost"), (2, "completed", None)]
    assert second.alive and len(host.calls()) == 2


@pytest.mark.drivers("local")  # on Kafka a session that is over by load makes the older one come back for a while
def test_b04_again_and_again_under_load(host):
    """B04: each time the newest goes on; an attempt is called once, and each turn ends."""
    host.configure({"alpha": None}, budget={"losses": 50})  # a turn may be lost with each of them
    host.plan(default=[{"sleep": 0.3}])
    turns, workers = [], []
    for n in range(5):
        turns += [host.published("alpha", ("owner", "reviewer", "arbiter")[k % 3], f"t-{n}-{k}") for k in range(4)]
        workers.append(ready(host.worker("alpha", "w1", environment=other_disk(host, f"disk{n}"))))
        for older in workers[:-1]:
            assert older.wait(20) == 6, older.log[-3000:]
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert workers[-1].alive and not host.letters()


# ---- stores ----

STORES = ["none", "old", "old and moved on", "another cluster", "above", "below", "too old"]


def edit(path, statement, *values):
    with contextlib.closing(sqlite3.connect(path)) as store:
        store.execute(statement, values)
        store.commit()


def copy_of(path, where):
    with contextlib.closing(sqlite3.connect(path)) as live, contextlib.closing(sqlite3.connect(where)) as copy:
        live.backup(copy)


def remove(path):
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)


@pytest.mark.core
@pytest.mark.parametrize("store", STORES)
def test_rule_16_whatever_the_store_the_log_is_followed(host, tmp_path, store):
    """Rules 5, 6, 16: what ended is not executed again, what was open goes on, what was parked is parked."""
    host.plan(default=[{}], tasks={"t-parked": [{"class": "bad_request"}, {}], "t-running": [{"hang": True}, {}],
                                   "t-queued": [{"class": "rate_limited", "retry_after_ms": 4000}, {}]})
    turns = {"t-first": host.published("alpha", "owner", "t-first")}
    worker = ready(host.worker("alpha", "w1"))
    host.ends(turns["t-first"], "completed")
    path, = host.stores()
    old = str(tmp_path / "old.db")
    copy_of(path, old)
    for task, state in (("t-done", "completed"), ("t-parked", "parked"), ("t-running", "running"), ("t-queued", "queued")):
        turns[task] = host.published("alpha", "reviewer", task)
        host.ends(turns[task], state)
    host.called(1, turn=turns["t-running"])
    host.called(1, turn=turns["t-queued"])
    worker.kill()
    if store in ("none", "old", "old and moved on"):
        remove(path)
    if store == "old and moved on":  # meanwhile another one, with another store, takes it further
        other = ready(host.worker("alpha", "w2"))
        host.ends(turns["t-running"], "completed")
        other.stop()
    if store.startswith("old"):
        shutil.copyfile(old, path)
    elif store == "another cluster":
        edit(path, "UPDATE owner SET cluster = 'elsewhere'")
    elif store == "above":
        edit(path, "UPDATE checkpoint SET next_offset = next_offset + 1000")
    elif store == "below":
        edit(path, "UPDATE checkpoint SET next_offset = -5")
    elif store == "too old":
        edit(path, "UPDATE checkpoint SET at = at - ?", 8 * 24 * 3600 * 1000)
    worker = ready(host.worker("alpha", "w1"))
    for task in ("t-running", "t-queued"):
        host.ends(turns[task], "completed", 40)
    shown = {task: attempts(host, turn) for task, turn in turns.items()}
    assert shown == {"t-first": [(1, "completed", None)], "t-done": [(1, "completed", None)],
                     "t-parked": [(1, "failed", "bad_request")],
                     "t-running": [(1, "failed", "lost"), (2, "completed", None)],
                     "t-queued": [(1, "failed", "rate_limited"), (2, "completed", None)]}, shown
    assert host.state(turns["t-parked"]) == "parked" and len(host.letters()) == 1
    assert len(host.calls()) == 7 and worker.alive
    after = host.published("alpha", "owner", "t-after")
    host.ends(after, "completed")


@pytest.mark.seconds(200)
def test_rule_16_stores_that_are_lost_at_any_time(host):
    """The store is deleted whenever its worker is down, at whatever moment that went: nothing is executed twice."""
    seed = int(time.time())
    print("seed", seed)
    chance = random.Random(seed)
    host.plan(default=[{"sleep": 0.1}], tasks={f"t-{n}": [{"class": "unavailable"}, {}] for n in range(0, 100, 4)})
    turns = []
    for n in range(6):
        turns += [host.published("alpha", ("owner", "reviewer", "arbiter")[k % 3], f"t-{4 * n + k}") for k in range(4)]
        worker = ready(host.worker("alpha", "w1"))
        time.sleep(chance.random() * 1.5)
        worker.stop() if chance.random() < 0.3 else worker.kill()
        for path in host.stores():
            remove(path)
    host.worker("alpha", "w1")
    wait_until(lambda: all(host.state(turn) in ("completed", "parked") for turn in turns), 60, host.all_logs)
    for turn in turns:
        shown = host.show(turn)
        ends = [one["state"] for one in shown["attempts"]]
        assert "completed" not in ends[:-1], f"after an attempt that was completed comes none: {shown}"
        assert shown["state"] == "completed" or shown["losses"] == 3, f"parked only after three deaths: {shown}"
    assert len(host.letters()) == sum(host.state(turn) == "parked" for turn in turns)


@pytest.mark.drivers("local")
@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.seconds(900)
def test_a_long_turn_log_needs_time_and_no_memory(host, tmp_path):
    """A worker with an empty store and 200,000 ended turns in the log: memory does not grow with them; a restart is quick."""
    done = host.run("bench", "restore", "--turns", "200000", "--dir", str(tmp_path), "--json", seconds=800).ok().one
    print(done)
    assert done["peak_kib"] < 32 * 1024 * SLOW and done["kept_s"] < 1 * SLOW, done
