"""A worker whose engine does not come round keeps what runs (protocol rule 26)."""
import sqlite3
import time

import pytest

from host import SLOW, wait_until


# On Kafka a client's heartbeats go on beside an engine that comes round every five seconds: nothing moves.
@pytest.mark.drivers("local")
def test_rule_26_a_blocked_engine_keeps_its_attempts(fresh):
    """The store is locked by somebody else, so the engine hears of nothing; the other worker takes the partitions
    after a session, sees the renewals of a thread beside the engine, and declares nothing lost."""
    host = fresh.configure({"alpha": fresh.service(parallel=4, deadline="2m")},
                           session="2s", heartbeat="500ms",
                           lease="4s", lease_grace="1s")
    host.plan(default=[{"sleep": 6 + 2 * SLOW}], tasks={"t-2": [{}]})
    first = host.worker("alpha", "w1")
    wait_until(lambda: first.events("engine.assigned"), what="the first worker to have all partitions")
    second = host.worker("alpha", "w2")
    wait_until(lambda: second.events("engine.assigned") and first.events("engine.assigned")[-1]["partitions"] == 2,
               what="each to have its half")
    # A turn of the first worker's: by its place in the order of names it has the lower half.
    turn = next(one["turn_id"] for one in (host.publish("alpha", "reviewer", "t-1", "--key", f"k-{n}").one
                                           for n in range(64)) if one["partition"] < 2)
    host.called(1, turn=turn)
    lock = sqlite3.connect(next(path for path in host.stores() if "/w1/" in path), isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    for n in range(8):  # something for w1 to write down: it waits for its store now
        host.published("alpha", "reviewer", "t-2", "--key", f"other-{n}")
    wait_until(lambda: second.events("engine.assigned")[-1]["partitions"] == 4, what="the second to have taken all")
    wait_until(lambda: [event for event in second.events("lease.watched") if event["turn"] == turn],
               what="the second worker to see the first one's lease")
    time.sleep(1.5)  # longer than the grace: without a renewal the attempt would be lost now
    assert len(first.events("engine.moved")) == 1, "the first one's engine has not come round"
    lock.execute("ROLLBACK")
    shown = host.ends(turn, "completed", 30)
    assert [(one["no"], one["worker"]) for one in shown["attempts"]] == [(1, "w1")], (shown, second.log)
    assert len(host.calls(turn=turn)) == 1
