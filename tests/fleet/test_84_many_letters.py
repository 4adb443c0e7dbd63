"""`baton dlq replay` of many: nothing is lost, nothing is done twice, whatever happens to the command meanwhile."""
import collections
import os
import signal
import subprocess
import time

import pytest

import bulk
import proof
from host import SLOW, binary, wait_until

THREE = ("alpha", "beta", "gamma")


def handoffs(host, signer, count, service="alpha", origin=None, **more):
    """So many signed handoffs of a role that the service does not serve: taken in, they are parked and nothing is executed."""
    made = [host.turn("reviewer", f"t-{n}", service, origin, **more) for n in range(count)]
    bulk.fill(host, host.topic("handoff", service), ((one.key, one.value, one.headers) for one in (host.handoff(turn, signer) for turn in made)))
    return [turn["turn_id"] for turn in made]


def owners(host, *services):
    host.configure({name: host.service(roles=["owner"]) for name in services})


def newest(host, service="alpha"):
    """{turn: its newest record in the turn log}"""
    return {one.key.decode(): one.json() for one in host.log.records(host.topic("turns", service)) if one.value and len(one.key) == 32}


def all_parked(host, count, service="alpha", seconds=60):
    wait_until(lambda: host.run("dlq", "stats", "--service", service, "--json").ok().one["total"] == count, seconds,
               lambda: f"{count} dead letters: {host.run('dlq', 'stats', '--json')}\n{host.all_logs()}")


def command(host, *words, name="said"):
    """The command with its output in a file, so that nobody need read while it runs."""
    with open(os.path.join(host.logs, name), "wb") as out:
        return subprocess.Popen([binary(), "dlq", "replay", *words, "--json"], cwd=host.dir, stdout=out, stderr=out, env=host.environment, start_new_session=True)


def killed_midway(host, done, *words):
    process = command(host, *words)
    try:
        wait_until(lambda: done() or process.poll() is not None, 60, "some to be replayed")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def replayed_by_two(host, *words):
    """Two operators at once."""
    both = [command(host, *words, name=name) for name in ("one", "other")]
    for process, name in zip(both, ("one", "other")):
        with open(os.path.join(host.logs, name), "rb") as file:
            assert process.wait(600) == 0, file.read()[-3000:]


def peak_kib(host, *words):
    """The most memory that the command had."""
    process, peak = subprocess.Popen([binary(), "dlq", "replay", *words, "--json"], cwd=host.dir, stdout=subprocess.DEVNULL, env=host.environment), 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            peak = max([peak, *(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))])
        time.sleep(0.005)
    assert process.returncode == 0
    return peak


def parked_are_replayed_once(host, count):
    owners(host, "alpha")
    turns = handoffs(host, host.key(host.identity), count)
    host.worker("alpha", "w1")
    all_parked(host, count)
    words = ("--where", "service=alpha,role=reviewer", "--limit", str(10000))
    killed_midway(host, lambda: sum(one["attempt"] == 2 for one in newest(host).values()) > count // 20, *words, "--rate", str(min(count, 10000)))
    replayed_by_two(host, *words)
    wait_until(lambda: {(one["state"], one["attempt"]) for one in newest(host).values()} == {("parked", 2)}, 60,
               lambda: f"each to be tried once more: {collections.Counter((one['state'], one['attempt']) for one in newest(host).values())}")
    known = newest(host)
    assert set(known) == set(turns), "none is lost"
    assert {(one["state"], one["attempt"], one["replays"]) for one in known.values()} == {("parked", 2, 1)}, "each was replayed once"
    done = host.run("dlq", "replay", *words, "--json", seconds=300).ok()
    assert collections.Counter(one["status"] for one in done.objects) == {"held": count}, "what failed in the same way is held back"
    assert {one["attempt"] for one in newest(host).values()} == {2}


def rejected_are_written_once(host, count):
    owners(host, "alpha")
    late = proof.Key.new()
    turns = handoffs(host, late, count, origin="late")
    host.worker("alpha", "w1")
    all_parked(host, count)
    assert newest(host) == {}
    host.trust_key("late", late, "kind: program\ncreate: {alpha: [reviewer]}\n")
    words = ("--where", "code=unknown_key", "--limit", str(10000))
    killed_midway(host, lambda: len(newest(host)) > count // 20, *words, "--rate", str(min(count, 10000)))
    replayed_by_two(host, *words)
    wait_until(lambda: len(newest(host)) == count, 60, lambda: f"all to be known: {len(newest(host))}")
    assert {(one["state"], one["attempt"]) for one in newest(host).values()} == {("parked", 1)} and set(newest(host)) == set(turns)
    letters = [one for one in host.log.records(host.topic("dlq")) if one.header("__dlq.errors.delivery.count") is None]
    assert len(letters) == count, "nothing was rejected again"
    done = host.run("dlq", "replay", *words, "--json", seconds=300).ok()
    assert collections.Counter(one["status"] for one in done.objects) == {"already": count}, done


@pytest.mark.core
def test_d_parked_ones_are_replayed_once_each(host):
    """D: killed midway and begun again, by two at once: each turn has its next attempt, and only that."""
    parked_are_replayed_once(host, 300 if host.driver == "local" else 100)


def test_d_rejected_ones_are_written_once_each(host):
    """D: the same of rejected records: each becomes its turn, no letter comes again, a further run finds nothing to do."""
    rejected_are_written_once(host, 300 if host.driver == "local" else 100)


@pytest.mark.long
@pytest.mark.seconds(900)
@pytest.mark.drivers("local")
@pytest.mark.parametrize("check", [parked_are_replayed_once, rejected_are_written_once])
def test_d_ten_thousand(host, check):
    """D: the same of 10,000."""
    check(host, 10000)


@pytest.mark.long
@pytest.mark.seconds(900)
@pytest.mark.drivers("local")
def test_d_memory_is_flat(host):
    """D: ten times as many, of either kind, take no more memory but for their list (500 bytes each), judged or done."""
    owners(host, "alpha")
    late, peaks = proof.Key.new(), []
    host.worker("alpha", "w1")
    for count in (1000, 9000):
        handoffs(host, host.key(host.identity), count), handoffs(host, late, count, origin="late")
        all_parked(host, 2000 if count == 1000 else 20000, seconds=120)
        peaks.append([peak_kib(host, "--where", f"code={code}", "--limit", "10000", "--dry-run") for code in ("role_not_served", "unknown_key")])
    peaks += [[peak_kib(host, "--where", f"code={code}", "--limit", "10000") for code in ("role_not_served", "unknown_key")]]
    peaks[:] = [max(one) for one in peaks]
    assert SLOW > 1 or max(peaks[1:]) < peaks[0] + 8 * 1024, peaks
