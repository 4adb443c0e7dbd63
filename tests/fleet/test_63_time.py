"""Wall clocks that jump or differ change nothing but what is shown; what is open outlives any time that its service is
down (DESIGN section 4 "Time", FIELD E18)."""
import datetime
import os
import time

import pytest

import broker
import proof
from host import SLOW, ready, wait_until
from wallclock import DAY, HOUR, MONTH, Clock

pytestmark = [pytest.mark.heavy]


@pytest.mark.parametrize("jump", [HOUR, -HOUR, MONTH, -MONTH])
def test_the_clock_of_a_worker_jumps(fresh, tmp_path, jump):
    """A running attempt meets its own deadline only, a wait is as long as it was, and a killed worker's turn is taken over."""
    host = fresh.configure({"alpha": fresh.service(deadline="60s")})
    clock = Clock(str(tmp_path), "w1")
    go = host.fake + "/go"
    host.plan(tasks={"t-runs": [{"until": go}], "t-waits": [{"class": "rate_limited", "retry_after_ms": 10000}, {}],
                     "t-killed": [{"hang": True}, {}]})
    runs, waits, killed = (host.published("alpha", "owner", task) for task in ("t-runs", "t-waits", "t-killed"))
    first = ready(host.worker("alpha", "w1", environment=clock.environment))
    host.called(1, turn=runs)
    host.called(1, turn=killed)
    host.ends(waits, "queued")
    ended = next(line["t"] for line in host.lines() if line["event"] == "end" and line["turn"] == waits)
    clock.jump(jump)
    after = host.published("alpha", "owner", "t-after")
    host.ends(after, "completed")
    shown = datetime.datetime.fromisoformat(first.events()[-1]["ts"].replace("Z", "+00:00")).timestamp()
    assert abs(shown - time.time() - jump) < 60, "the clock is not the one that was set"
    again = host.called(1, 40, turn=waits, attempt=2)[0]
    assert 10 <= again["t"] - ended < 10 + 4 * SLOW, again["t"] - ended
    open(go, "w", encoding="ascii").close()
    host.ends(runs, "completed")
    assert len(host.calls(turn=runs)) == 1 and first.alive
    first.kill()
    ready(host.worker("alpha", "w2"))  # of a host whose clock is right
    host.ends(killed, "completed", 40)
    assert [(one["state"], one["class"]) for one in host.show(killed)["attempts"]] == [("failed", "lost"), ("completed", None)]
    assert len(host.calls(turn=waits)) == 2 and len(host.calls(turn=killed)) == 2 and not host.letters()


@pytest.mark.parametrize("back", [-HOUR, -MONTH])
def test_a_wait_taken_over_by_a_host_whose_clock_differs(fresh, tmp_path, back):
    """Its next owner waits no longer than the whole delay, whatever it believes the time is; one ahead only sooner."""
    host = fresh.configure({"alpha": None})
    host.plan(default=[{"class": "rate_limited", "retry_after_ms": 3000}, {}])
    turn = host.published("alpha", "owner", "t-1")
    first = ready(host.worker("alpha", "w1"))
    host.ends(turn, "queued")
    first.stop()
    taken = time.time()
    ready(host.worker("alpha", "w2", environment=Clock(str(tmp_path), "w2", back).environment))
    host.ends(turn, "completed")
    assert host.calls(turn=turn, attempt=2)[0]["t"] - taken < 3 + 4 * SLOW and len(host.calls()) == 2


def test_a_clock_that_is_ahead_forgets_nothing(fresh, tmp_path):
    """Rule 30: what is old is old by the log's dates; a worker whose clock is a month ahead, or jumps, writes no tombstone."""
    host = fresh.configure({"alpha": None})
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(4)]
    ready(host.worker("alpha", "w1"))
    for turn in turns:
        host.ends(turn, "completed")
    host.workers[-1].stop()
    clock = Clock(str(tmp_path), "w2", MONTH)
    ready(host.worker("alpha", "w2", environment=clock.environment))
    after = host.published("alpha", "owner", "t-after")
    host.ends(after, "completed")

    def trimmed():
        return all(low >= high for low, high in host.log.ends(host.topic("handoff")).values())

    wait_until(trimmed, 60, lambda: f"what was taken to be trimmed: {host.log.ends(host.topic('handoff'))}")
    clock.jump(2 * MONTH)
    last = host.published("alpha", "owner", "t-last")  # tombstones would be in the log before its end is
    host.ends(last, "completed")
    for turn in turns + [after, last]:
        assert host.state(turn) == "completed" and len(host.calls(turn=turn)) == 1


@pytest.mark.drivers("kafka")  # the local log dates with the clock of its one host
@pytest.mark.parametrize("ahead", [MONTH, -MONTH])
def test_what_a_worker_signs_is_taken_whatever_its_clock_says(fresh, tmp_path, ahead):
    """A pass and the renewals of a worker whose clock is a month off: the turn goes on at the next service, a moved attempt lives,
    nothing is rejected."""
    host = fresh.configure({"alpha": fresh.service(deadline="120s"), "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}},
                           session=f"{int(1500 * SLOW)}ms", heartbeat="300ms")
    host.plan(tasks={"t-passed": [{"class": "auth"}, {}], "t-runs": [{"until": host.fake + "/go"}]})
    clock = Clock(str(tmp_path), "w1", ahead)
    first = ready(host.worker("alpha", "w1", environment=clock.environment))
    ready(host.worker("beta", "w1"))
    passed = host.published("alpha", "reviewer", "t-passed")
    assert [one["service"] for one in host.ends(passed, "completed")["attempts"]] == ["alpha", "beta"]
    runs = [host.published("alpha", "owner", "t-runs", "--key", f"k-{n}") for n in range(4)]
    host.called(4, task="t-runs")
    host.shared(first, ready(host.worker("alpha", "w2")))
    time.sleep(10 * SLOW)  # longer than a lease
    open(host.fake + "/go", "w", encoding="ascii").close()
    for turn in runs:
        assert [one["class"] for one in host.ends(turn, "completed", 40)["attempts"]] == [None]
    assert len(host.calls(task="t-runs")) == 4 and not host.letters() and not host.letters("--service", "beta")


def test_open_turns_and_untaken_handoffs_outlive_their_service(fresh, tmp_path):
    """A service that was down for 40 days, its store as old as that: what was open and what was never taken runs, what ended does not."""
    host = fresh.configure({"alpha": None})
    clock = Clock(str(tmp_path), "all")
    host.plan(tasks={"t-waits": [{"class": "rate_limited", "retry_after_ms": 20000}, {}], "t-parked": [{"class": "bad_request"}, {}],
                     "t-killed": [{"hang": True}, {}]})
    done, waits, parked, killed = (host.published("alpha", "owner", task, "--key", task) for task in ("t-done", "t-waits", "t-parked", "t-killed"))
    worker = ready(host.worker("alpha", "w1"))
    host.ends(done, "completed")
    host.ends(waits, "queued")
    host.ends(parked, "parked")
    host.called(1, turn=killed)
    worker.kill()
    wait_until(lambda: not any(os.path.exists(f"/proc/{call['pid']}") for call in host.calls(turn=killed)), 10, "its executor to end")
    untaken = host.published("alpha", "owner", "t-untaken")
    clock.jump(40 * DAY)
    ready(host.worker("alpha", "w1", environment=clock.environment))
    for turn in (untaken, killed, waits):
        host.ends(turn, "completed", 40)
    assert host.state(parked) == "parked" and len(host.calls(turn=done)) == 1
    host.replay(parked).ok()
    host.ends(parked, "completed")
    for turn, calls in ((done, 1), (waits, 2), (parked, 2), (killed, 2), (untaken, 1)):
        assert len(host.calls(turn=turn)) == calls
    assert len(host.letters()) <= 1


def test_a_store_of_the_future_is_not_believed(fresh, tmp_path):
    """Rule 16: how old a checkpoint is that a wrong clock wrote, nobody knows: its image is read from the log again."""
    host = fresh.configure({"alpha": None})
    clock = Clock(str(tmp_path), "w1", MONTH)
    first = ready(host.worker("alpha", "w1", environment=clock.environment))
    turns = [host.published("alpha", "owner", f"t-{n}", "--key", f"k-{n}") for n in range(8)]
    for turn in turns:
        host.ends(turn, "completed")
    first.stop()
    again = ready(host.worker("alpha", "w1"))
    wait_until(lambda: len(again.events("store.image_dropped")) == 4, 20, lambda: f"every image to be dropped\n{again.log[-3000:]}")
    assert [host.published("alpha", "owner", f"t-{n}", "--key", f"k-{n}") for n in range(8)] == turns
    host.ends(host.published("alpha", "owner", "t-last"), "completed")
    assert len(host.calls()) == 9


@pytest.mark.long
@pytest.mark.drivers("kafka")
@pytest.mark.seconds(400)
def test_tombstones_that_are_gone_and_a_store_older_than_they(fresh, tmp_path):
    """A closed turn vanishes without a trace while a store still has it; what is parked and what was never taken does not."""
    host = fresh.configure({"alpha": None}, partitions=1)
    topic = host.topic("turns")
    host.plan(tasks={"t-parked": [{"class": "bad_request"}, {}]})
    clock = Clock(str(tmp_path), "all")
    ready(host.worker("alpha", "w1"))
    done, parked = host.published("alpha", "owner", "t-done"), host.published("alpha", "owner", "t-parked")
    host.ends(done, "completed")
    host.ends(parked, "parked")
    host.workers[-1].stop()
    host.log.append(proof.Record(topic, done.encode(), None, []), 0)  # brokers date what they take: a fortnight cannot be had
    clock.jump(20 * DAY)

    def hurry():  # a worker does not start on such a topic: it has these settings between two of them
        broker.shared().tool("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config",
                             "delete.retention.ms=60000,segment.ms=1000,min.cleanable.dirty.ratio=0.01,max.compaction.lag.ms=1000")

    def passes_by(number):
        host.run("topics", "apply").ok()
        worker = ready(host.worker("alpha", f"x{number}", environment=clock.environment))
        time.sleep(2)
        worker.stop()
        hurry()
        return [one for one in host.log.records(topic, every=True) if one.key == done.encode()]

    deadline, number, left = time.monotonic() + 300, 0, passes_by("first")
    while left and time.monotonic() < deadline:
        time.sleep(20)
        number += 1
        left = passes_by(number)
    assert not left, f"no trace of the closed turn: {left}"
    host.run("topics", "apply").ok()
    untaken = host.published("alpha", "owner", "t-untaken")
    old = ready(host.worker("alpha", "w1", environment=clock.environment))
    wait_until(lambda: old.events("store.image_dropped"), 20, lambda: f"its image to be dropped\n{old.log[-3000:]}")
    host.ends(untaken, "completed")
    assert host.state(done) is None and host.state(parked) == "parked"
    host.replay(parked).ok()
    host.ends(parked, "completed")
    assert [len(host.calls(turn=turn)) for turn in (done, parked, untaken)] == [1, 2, 1]
