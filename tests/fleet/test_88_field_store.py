"""The store when its file or disk is not what it should be (FIELD section F): each fault has an answer of its own, none is a loop."""
import glob
import os
import sqlite3
import subprocess
import time

import pytest

import scrape
from host import SLOW, ready, wait_until
from test_80_thousand import fill, small_disk  # noqa: F401

LIB = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib")


def store_of(host):
    path, = glob.glob(os.path.join(host.dir, "data", "alpha", "w1", "store.db"))
    return path


def begun(host, tasks=3):
    """A worker that has done something and was stopped."""
    worker = ready(host.worker("alpha", "w1"))
    for turn in [host.published("alpha", "owner", f"t-{n}") for n in range(tasks)]:
        host.ends(turn, "completed")
    worker.stop()
    return store_of(host)


def refused_once(host, path):
    """It does not start, says which file and what is wrong in one line, and ends; the turn waits."""
    turn = host.published("alpha", "owner", "t-waits")
    worker = host.worker("alpha", "w1")
    assert worker.wait() == 8, worker.log
    assert os.path.basename(path) in worker.log and "store_failed" in worker.log, worker.log
    assert len(worker.log.splitlines()) < 25, worker.log
    assert host.state(turn) is None and not host.calls(turn=turn)
    return turn


def goes_on(host, turn, path):
    """Moved away, the store is made anew from the log: nothing was lost, nothing runs twice."""
    for one in glob.glob(path + "*"):
        os.rename(one, os.path.join(host.dir, os.path.basename(one) + ".broken"))
    worker = ready(host.worker("alpha", "w1"))
    host.ends(turn, "completed")
    assert len(host.calls()) == 4 and worker.alive


@pytest.mark.drivers("local")
def test_f05_a_store_that_is_no_database(host):
    """F05, NOTADB: refused at the start, with the file; moved away, all goes on."""
    path = begun(host)
    with open(path, "wb") as file:
        file.write(b"this is no database\n" * 500)
    goes_on(host, refused_once(host, path), path)


@pytest.mark.drivers("local")
def test_f05_a_store_whose_pages_are_damaged(host):
    """F05, CORRUPT: found at the start or at the first page that is read, said once, and `store check` says so, too."""
    path = begun(host)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size, = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with open(path, "rb+") as file:
        file.seek(size)
        file.write(os.urandom(os.path.getsize(path) - size))
    check = host.run("store", "check", os.path.dirname(path), "--json")
    assert check.status != 0, check
    goes_on(host, refused_once(host, path), path)


@pytest.mark.drivers("local")
def test_f05_a_store_of_a_later_version(host):
    """F05: what another program, or a later version, has written is not touched."""
    path = begun(host)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    before = open(path, "rb").read(4096)
    turn = refused_once(host, path)
    assert open(path, "rb").read(4096) == before
    goes_on(host, turn, path)


@pytest.mark.drivers("local")
def test_f05_a_disk_that_became_read_only(small_disk, fresh):  # noqa: F811
    """F05, READONLY: refused at the start with the file, one process and no loop; written again, the same turn goes on."""
    host = fresh.configure({"alpha": None}, state_dir=small_disk)
    worker = ready(host.worker("alpha", "w1"))
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    worker.stop()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    turn = host.published("alpha", "owner", "t-2")
    worker = host.worker("alpha", "w1")
    assert worker.wait() == 8 and small_disk in worker.log and len(worker.log.splitlines()) < 25, worker.log
    assert host.state(turn) is None
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    ready(host.worker("alpha", "w1"))
    host.ends(turn, "completed")
    assert len(host.calls()) == 2


def broken(tmp_path, **environment):
    """For a program that runs with it: brokenfs.c."""
    if os.environ.get("BATON_TEST_PRESET", "") in ("asan", "tsan"):
        pytest.skip("a sanitizer's runtime must be loaded first")
    library = str(tmp_path / "brokenfs.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(LIB, "brokenfs.c"), "-ldl"], check=True)
    return {"LD_PRELOAD": library, **environment}


@pytest.mark.heavy
def test_f05_the_disk_fails(fresh, tmp_path):
    """F05, IOERR: what could not be made durable is not built on: the worker ends, and the next one goes on from log and store."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    host = fresh.configure({"alpha": None}, state_dir=str(state))
    worker = ready(host.worker("alpha", "w1", environment=broken(tmp_path, FAILING_FS=str(state))))
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    (state / "failing").touch()
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(2, 6)]
    assert worker.wait(30) == 8 and "store_failed" in worker.log, worker.log[-3000:]
    assert len([line for line in worker.log.splitlines() if "store_failed" in line]) < 6, worker.log[-3000:]
    (state / "failing").unlink()
    ready(host.worker("alpha", "w1"))
    for turn in turns:
        host.ends(turn, "completed", 40)
    seen = [(call["turn"], call["attempt"]) for call in host.calls()]
    assert len(seen) == len(set(seen)), seen


@pytest.mark.drivers("local")
def test_f05_somebody_else_holds_the_store(host):
    """F05, BUSY: a foreign program in the middle of a write is waited for; nothing is lost, and the worker lives."""
    worker = ready(host.worker("alpha", "w1"))
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    connection = sqlite3.connect(store_of(host), isolation_level=None, timeout=20)
    connection.execute("BEGIN IMMEDIATE")
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(2, 7)]
    time.sleep(2)
    assert worker.alive
    connection.execute("ROLLBACK")
    connection.close()
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert len(host.calls()) == 6 and worker.alive


@pytest.mark.drivers("local")
def test_f04_health_is_red_while_the_disk_is_full(small_disk, fresh):  # noqa: F811
    """F04: /readyz says that it cannot work and why, and is green again by itself; no offset passes what is not taken in."""
    host = fresh.configure({"alpha": None}, state_dir=small_disk)
    worker = ready(host.worker("alpha", "w1", *scrape.LISTEN))
    where = scrape.port(worker)
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    assert scrape.get(where, "/readyz")[0] == 200
    ballast = fill(small_disk)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(2, 8)]
    wait_until(lambda: scrape.get(where, "/readyz")[0] == 503, 30, lambda: f"health to be red\n{worker.log[-2000:]}")
    assert "store" in scrape.get(where, "/readyz")[1], scrape.get(where, "/readyz")
    assert worker.alive
    os.unlink(ballast)
    wait_until(lambda: scrape.get(where, "/readyz")[0] == 200, 40, "health to be green again")
    for turn in turns:
        host.ends(turn, "completed", 40)


@pytest.mark.heavy
@pytest.mark.drivers("local")
def test_f07_a_log_on_a_network_file_system_is_refused(host, tmp_path):
    """F07: with the folder, why, and what to set; the worker ends at once and does not come round again."""
    host.environment.update(broken(tmp_path, REMOTE_FS=os.path.join(host.dir, "data")))
    done = host.publish("alpha", "owner", "t-1").refused("bad_config", 2)
    assert "network file system" in done.one["error"] and "local.path" in done.one["error"], done
    worker = host.worker("alpha", "w1")
    assert worker.wait() == 2 and "network file system" in worker.log and len(worker.log.splitlines()) < 10, worker.log


@pytest.mark.heavy
def test_f07_a_store_on_a_network_file_system_is_warned_of(fresh, tmp_path):
    """F07: the worker works, and says once where its store should lie; a second process of the same store is refused."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    host = fresh.configure({"alpha": None}, state_dir=str(elsewhere))
    first = ready(host.worker("alpha", "w1", environment=broken(tmp_path, REMOTE_FS=str(elsewhere))))
    line, = first.events("store.remote")
    assert "state_dir" in line["mend"] and str(elsewhere) in line["folder"] and "6969" in line["type"], line
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    second = host.worker("alpha", "w1")
    assert second.wait(10 * SLOW) == 6 and str(first.pid) in second.log and first.alive, second.log
    third = ready(host.worker("alpha", "w2"))
    assert not third.events("store.remote")
