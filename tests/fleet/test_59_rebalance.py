"""Partitions that move cost no work (DESIGN section 4, FIELD A04, A16): attempts go on where they are and end there."""
import datetime
import os
import signal
import time

import pytest

from host import SLOW, ready


def seconds(line):
    """When a worker wrote a line, as time.time()."""
    return datetime.datetime.fromisoformat(line["ts"].replace("Z", "+00:00")).timestamp()


def once(host, turns, seconds):
    """Each turn is completed, by one attempt, which was called once."""
    for turn in turns:
        shown = host.ends(turn, "completed", seconds)
        assert [(one["no"], one["state"], one["class"]) for one in shown["attempts"]] == [(1, "completed", None)], shown
    calls = host.calls()
    assert sorted(call["turn"] for call in calls) == sorted(turns)
    assert all(call["attempt"] == 1 for call in calls) and not host.letters()


@pytest.mark.seconds(240)
def test_a04_a16_turns_outlast_what_moves(fresh):
    """A04, A16: turns of five seconds on three workers, of which one leaves and one joins, again and again."""
    host = fresh.configure({"alpha": fresh.service(parallel=8, deadline="60s", grace="20s")}, session=f"{int(1500 * SLOW)}ms", heartbeat="300ms")
    host.plan(default=[{"sleep": 5}])
    workers = [host.worker("alpha", f"w{n}") for n in range(3)]
    for worker in workers:
        ready(worker)
    members, turns, leaving = list(workers), [], []
    for change in range(6):
        turns += [host.published("alpha", ("owner", "reviewer", "arbiter")[n % 3], f"t-{change}-{n}") for n in range(6)]
        host.called(len(turns), 40)
        if change % 2 == 0:  # the one that has been there longest goes, while it runs turns
            gone = members.pop(0)
            gone.process.send_signal(signal.SIGTERM)
            leaving.append(gone)
        else:
            members.append(ready(host.worker("alpha", f"w{3 + change}")))
    once(host, turns, 60)
    for gone in leaving:
        assert gone.wait(30) == 0, gone.log[-3000:]
    changed = sum(1 for worker in host.workers for _ in worker.events("engine.moved"))
    assert changed >= 4, f"{changed} moves\n{host.all_logs()}"
    assert all(worker.alive for worker in members)
    assert not [line for worker in host.workers for line in worker.events("lease.killed") + worker.events("lease.ran_out")]


@pytest.mark.core
@pytest.mark.alone
def test_a16_a_long_turn_of_a_stopped_worker_holds_up_nothing(fresh):
    """A clean stop: after a session the partitions are another worker's, where what waits starts; the long turn ends once."""
    host = fresh.configure({"alpha": fresh.service(parallel=1, deadline="100s", grace="60s")}, session="1500ms", heartbeat="300ms", partitions=4)
    go = os.path.join(host.fake, "go")
    host.plan(default=[{}], tasks={"t-long": [{"until": go}]})
    first = ready(host.worker("alpha", "w1"))
    long = host.published("alpha", "reviewer", "t-long")
    host.called(1)
    waiting = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    second = ready(host.worker("alpha", "w2"))
    stopped = time.time()
    first.process.send_signal(signal.SIGTERM)
    calls = host.called(9)
    moved = next(seconds(one) for one in second.events("engine.assigned") if seconds(one) > stopped and one["partitions"] == 4)
    assert moved - stopped < 1.5 + 2 * SLOW, "after a session they are another one's"
    assert min(call["t"] for call in calls if call["t"] > moved) - moved < 2 * SLOW, "and go on there"
    for turn in waiting:
        host.ends(turn, "completed")
    time.sleep(3)  # longer than the grace of a lease: it is renewed
    assert first.alive and host.state(long) == "running" and len(host.calls()) == 9
    open(go, "w", encoding="ascii").close()
    once(host, [long, *waiting], 20)
    assert first.wait(20) == 0, first.log[-3000:]
    assert host.show(long)["attempts"][0]["worker"] == "w1" and second.alive
