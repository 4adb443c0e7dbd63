"""What is under way when partitions move or a worker dies: waits, repeats, cancels, clocks (FIELD D, E; RULES L-33, R-43)."""
import os
import signal
import time

import pytest

from host import SLOW, attempts, ready, wait_until

SHORT = {"session": f"{int(1500 * SLOW)}ms", "heartbeat": "300ms"}


@pytest.mark.parametrize("how", ["joins", "leaves", "is killed"])
def test_d13_a_wait_goes_on_wherever_its_partition_is(fresh, how):
    """D13: another one joins, or the owner goes, while a turn waits for its retry: it fires at its time, once."""
    host = fresh.configure({"alpha": None}, **SHORT)
    # All four run before the first of them says what the others would wait for, too.
    host.plan(default=[{"sleep": 1, "class": "rate_limited", "retry_after_ms": 6000}, {}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(4)]
    first = ready(host.worker("alpha", "w1"))
    host.called(4)
    for turn in turns:
        host.ends(turn, "queued")
    ended = max(line["t"] for line in host.lines() if line["event"] == "end")
    ready(host.worker("alpha", "w2"))
    if how == "leaves":
        first.stop()
    elif how == "is killed":
        first.kill()
    again = host.called(4, attempt=2)
    assert min(call["t"] for call in again) - ended > 5, "not before its time"
    for turn in turns:
        host.ends(turn, "completed")
        assert attempts(host, turn) == [(1, "failed", "rate_limited"), (2, "completed", None)]
    assert len(host.calls()) == 8


def test_d17_e21_a_repeat_neither_drops_a_retry_nor_is_one(fresh):
    """D17, E21: published again while it waits, while it runs and after its worker died: one turn, its next attempts run."""
    host = fresh.configure({"alpha": None}, **SHORT)
    words = ("alpha", "reviewer", "t-1", "--key", "k-1")
    host.plan(default=[{"class": "unavailable"}, {"hang": True}, {}])
    turn = host.published(*words)
    first = ready(host.worker("alpha", "w1"))
    host.called(1, attempt=1)
    assert host.published(*words) == turn
    host.called(1, attempt=2)
    assert host.published(*words) == turn
    first.kill()
    assert host.published(*words) == turn
    ready(host.worker("alpha", "w2"))
    host.ends(turn, "completed", 30)
    assert attempts(host, turn) == [(1, "failed", "unavailable"), (2, "failed", "lost"), (3, "completed", None)]
    assert host.published(*words) == turn
    time.sleep(1)
    assert len(host.calls()) == 3 and not host.letters()


@pytest.mark.alone
def test_e18_a_publishers_clock_delays_nothing(host):
    """E18: clocks that are minutes, an hour or days off: executed at once."""
    signer = host.key(host.identity)
    ready(host.worker("alpha", "w1"))
    records = [host.handoff(host.turn(task=f"t{off}", created=off), signer=signer) for off in (-120, 120, -3 * 24 * 3600, 3600)]
    for record in records:
        host.log.append(record)
    published = time.time()
    calls = host.called(len(records))
    assert max(call["t"] for call in calls) - published < 3 * SLOW
    for record in records:
        host.ends(record.key.decode(), "completed")


@pytest.mark.core
def test_r43_l33_a_cancel_reaches_whoever_holds_the_attempt(fresh):
    """R-43, L-33: the partition is another worker's, the executor runs on: it is killed there, and its end changes nothing."""
    host = fresh.configure({"alpha": fresh.service(grace="60s", deadline="100s")}, **SHORT)
    host.plan(default=[{"hang": True}])
    first = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "reviewer", "t-1")
    call, = host.called(1)
    ready(host.worker("alpha", "w2"))
    first.process.send_signal(signal.SIGTERM)
    wait_until(lambda: first.events("worker.holds"), 20, lambda: f"its partitions to be given away\n{first.log[-2000:]}")
    assert os.path.exists(f"/proc/{call['pid']}") and host.state(turn) == "running"
    host.cancel(turn).ok()
    host.ends(turn, "cancelled")
    wait_until(lambda: not os.path.exists(f"/proc/{call['pid']}"), 5, lambda: f"the executor to be stopped\n{first.log[-2000:]}")
    assert first.wait(20) == 0, first.log[-3000:]
    shown = host.show(turn)
    assert shown["state"] == "cancelled" and len(shown["attempts"]) == 1 and len(host.calls()) == 1 and not host.letters()
