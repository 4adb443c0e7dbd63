"""A thousand turns with mixed failures, every one accounted for; disks that fill up; many at once."""
import collections
import os
import random
import subprocess
import time

import pytest

import proof
from host import SLOW, wait_until

STEPS = {
    "approve": [{}],
    "retry": [{"class": "unavailable"}, {}],
    "overloaded twice": [{"class": "overloaded"}, {"class": "rate_limited", "retry_after_ms": 50}, {}],
    "crash": [{"signal": 11}, {}],
    "killed": [{"signal": 9}, {}],
    "exit 75": [{"exit": 75}, {}],
    "no verdict": [{"exit": 0}],
    "bad request": [{"class": "bad_request"}],
    "auth": [{"class": "auth"}],
    "junk": [{"raw": "{"}, {}],
}
PARKED = {"no verdict", "bad request", "auth"}


@pytest.mark.heavy
@pytest.mark.seconds(400)
def test_a_thousand_turns_every_one_accounted_for(fresh):
    """1,000 turns over two services, with every kind of failure, while workers die and come: I1 to I5 hold."""
    host = fresh.configure({"alpha": fresh.service(parallel=8), "beta": fresh.service(parallel=8)},
                           retry={"first": "20ms", "factor": 2, "max": "200ms", "jitter": 0.2, "each_service": 3, "max_wait": "15m"},
                           circuit={"after": 1000, "for": "30s", "probe": "15s"})
    seed = int(time.time())
    print("seed", seed)
    chance = random.Random(seed)
    kinds, tasks, wanted = list(STEPS), {}, {}
    for n in range(1000):
        kind = chance.choice(kinds + ["approve"] * 6)
        tasks[f"t-{n}"] = STEPS[kind]
        wanted[f"t-{n}"] = (kind, chance.choice(["alpha", "beta"]), chance.choice(["owner", "reviewer", "arbiter"]))
    host.plan(tasks=tasks)
    workers = {(service, name): host.worker(service, name) for service in ("alpha", "beta") for name in ("w1", "w2")}
    turns = {}
    signer = host.key(host.identity)
    for n, (task, (_, service, role)) in enumerate(wanted.items()):
        if n % 20 == 0:
            turns[host.published(service, role, task)] = task
        else:
            record = host.handoff(host.turn(role=role, task=task, service=service), signer=signer)
            host.log.append(record)
            turns[record.key.decode()] = task
        if n % 200 == 150:
            place = chance.choice(list(workers))
            workers[place].kill()
            workers[place] = host.worker(*place)

    def open_turns():
        listed = host.run("turns", "list", "--json", seconds=60).ok().objects
        return len(turns) - len(listed) + sum(one["state"] in ("queued", "running") for one in listed)

    wait_until(lambda: open_turns() == 0, 240, lambda: f"every turn to end, {open_turns()} are open\n{host.all_logs()}")
    listed = {one["turn_id"]: one for one in host.turns()}
    assert set(listed) == set(turns), "none is lost, none is invented"
    letters = collections.Counter(letter["turn_id"] for letter in host.letters())
    calls = collections.Counter(call["turn"] for call in host.calls())
    killed = 0
    for turn, task in turns.items():
        kind, service, role = wanted[task]
        one = listed[turn]
        assert (one["role"], one["service"], one["task_id"]) == (role, service, task)
        if kind in PARKED:
            assert one["state"] == "parked", (kind, one)
        elif one["state"] != "completed":
            killed += 1  # losses of killed workers on top of its own
            assert one["state"] == "parked" and letters[turn], one
        assert letters[turn] == (1 if one["state"] == "parked" else 0), one
        assert calls[turn] >= 1
    assert killed <= 20
    outcomes = collections.Counter(record.json()["turn_id"] for record in host.log.records(host.topic("outcomes", None))
                                   if record.json()["event"] in ("completed", "parked"))
    assert all(outcomes[turn] == 1 for turn in turns), "one end is told of each"


def test_a_backlog_is_taken_in_order_of_capacity(fresh):
    """A09, A18: many wait, few run; nothing is lost and memory is bounded."""
    host = fresh.configure({"alpha": fresh.service(parallel=4)})
    signer = host.key(host.identity)
    turns = []
    for n in range(300):
        record = host.handoff(host.turn(task=f"t-{n}", role="owner"), signer=signer)
        host.log.append(record)
        turns.append(record.key.decode())
    worker = host.worker("alpha", "w1")
    host.called(20)
    with open(f"/proc/{worker.pid}/status", encoding="ascii") as file:
        rss = int(next(line for line in file if line.startswith("VmRSS")).split()[1])
    assert rss < 100 * 1024 * (SLOW if SLOW == 1 else 20), f"{rss} KiB"
    wait_until(lambda: len(host.calls()) == 300 and host.turns("--state", "running") == [], 60, "all to run")
    assert len({call["turn"] for call in host.calls()}) == 300


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 3 MiB; needs root."""
    if os.getuid() != 0:
        pytest.skip("only root may mount a small disk")
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(path)], stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        pytest.skip(f"mount is not possible here: {done.stderr.decode().strip()}")
    yield str(path)
    subprocess.run(["umount", "-l", str(path)], check=False)


def fill(folder):
    path = os.path.join(folder, "ballast")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(handle, b"x" * 4096)
    except OSError:
        pass
    os.close(handle)
    return path


@pytest.mark.heavy
def test_f04_a_full_disk_below_the_store(small_disk, fresh):
    """F04: nothing is taken while the store cannot be written, the log says so now and then, it goes on by itself."""
    host = fresh.configure({"alpha": None}, state_dir=small_disk)
    worker = host.worker("alpha", "w1")
    first = host.published("alpha", "owner", "t-1")
    host.ends(first, "completed")
    ballast = fill(small_disk)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(2, 30)]
    time.sleep(5)
    assert worker.alive, worker.log[-3000:]
    noisy = [line for line in worker.log.splitlines() if "disk_full" in line or "full" in line]
    assert 1 <= len(noisy) <= 6, f"{len(noisy)} lines about it in five seconds"
    os.unlink(ballast)
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert {call["turn"] for call in host.calls()} == {first, *turns}


@pytest.mark.drivers("local")
@pytest.mark.heavy
def test_f04_a_full_disk_below_the_log(small_disk, fresh):
    """A publisher is told disk_full or publish_failed, exit 8; nothing is half done; later it works."""
    host = fresh.configure({"alpha": None}, local={"path": os.path.join(small_disk, "log", "log.db")})
    turn = host.published("alpha", "owner", "t-1")
    worker = host.worker("alpha", "w1")
    host.ends(turn, "completed")
    ballast = fill(small_disk)
    failed = None
    for n in range(50):
        done = host.publish("alpha", "owner", f"t-full-{n}", "--payload", "-", stdin=b"x" * 60000)
        if done.status != 0:
            failed = done
            break
    assert failed is not None and failed.status == 8, failed
    assert failed.code in ("disk_full", "publish_failed"), failed
    os.unlink(ballast)
    last = host.published("alpha", "owner", "t-after")
    host.ends(last, "completed", 40)
    assert worker.alive


@pytest.mark.drivers("local")
@pytest.mark.heavy
def test_f02_writes_wait_while_somebody_reads_for_long(host):
    """F02: a long read transaction on the log and a backup of the store lose nothing."""
    host.worker("alpha", "w1")
    connection = host.log.connect()
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM record").fetchone()
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(30)]
    for turn in turns:
        host.ends(turn, "completed")
    connection.close()
    assert len(host.calls()) == 30


@pytest.mark.drivers("local")
@pytest.mark.heavy
def test_a_writer_that_holds_the_log_delays_and_does_not_break(host):
    """F01: a lock held for two seconds by a foreign process: publishers and workers wait."""
    worker = host.worker("alpha", "w1")
    connection = host.log.connect(write=True)
    connection.execute("BEGIN IMMEDIATE")
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(host.published, "alpha", "owner", f"t-{n}") for n in range(4)]
        time.sleep(2)
        connection.execute("ROLLBACK")
        connection.close()
        turns = [one.result() for one in waiting]
    for turn in turns:
        host.ends(turn, "completed")
    assert worker.alive


@pytest.mark.drivers("local")
@pytest.mark.heavy
def test_a_log_file_from_elsewhere_is_another_cluster(host):
    """A checkpoint of another log is not believed: the image is read anew."""
    turn = host.published("alpha", "owner", "t-1")
    host.drain("alpha", "w1")
    folder = os.path.join(host.dir, "data")
    for name in os.listdir(folder):
        if name.startswith("log.db"):
            os.rename(os.path.join(folder, name), os.path.join(host.dir, name))
    host.run("topics", "apply")
    if not os.path.exists(os.path.join(folder, "log.db")):
        host.run("init", host.dir)
        host.run("topics", "apply").ok()
    assert host.state(turn) is None
    again = host.published("alpha", "owner", "t-2")
    host.drain("alpha", "w1")
    assert host.state(again) == "completed" and len(host.turns()) == 1


def test_two_fleets_side_by_side_do_not_meet(host, tmp_path):
    """A record of one host's fleet does not verify in another."""
    from host import Host
    folder = tmp_path / "other"
    folder.mkdir()
    other = Host(str(folder), host.driver).configure({"alpha": None})
    try:
        record = other.handoff(other.turn()).copy(topic=host.topic("handoff"))
        for name in os.listdir(os.path.join(other.dir, "trust")):
            if name.endswith(".pem") and name.startswith(other.identity):
                key = proof.Key.load(os.path.join(other.dir, "keys", other.identity + ".pem"))
                host.trust_key(host.identity, key)
        host.log.append(record)
        host.worker("alpha")
        wait_until(lambda: host.log.records(host.topic("dlq")), what="the refusal")
        assert host.log.records(host.topic("dlq"))[0].header("baton-code") in ("bad_signature", "invalid_envelope")
    finally:
        other.finish()
