"""Rows of FIELD A and E, and RULES L-47, that no other file is about: partitions that move while nothing else is wrong, and two
who believe that a turn is theirs."""
import json
import signal
import sqlite3
import time

import pytest

import proof
from host import SLOW, attempts, ready, wait_until

SHORT = {"session": f"{int(1500 * SLOW)}ms", "heartbeat": "300ms"}


def go(host):
    open(host.fake + "/go", "w", encoding="ascii").close()


def taken(host):
    """How many handoffs the group has taken in; of a log that counts nothing but records."""
    done = host.log.committed(f"{host.prefix}.worker.alpha", host.topic("handoff"))
    return sum(done.values())


# ---- partitions that move ----

def test_a01_what_is_done_is_not_done_again(fresh):
    """A01: another one joins as soon as ten turns have ended: none of them is executed again."""
    host = fresh.configure({"alpha": fresh.service(parallel=10)}, **SHORT)
    ready(host.worker("alpha", "w1"))
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(10)]
    wait_until(lambda: sum(line["event"] == "end" for line in host.lines()) == 10, 20, "ten turns to end")
    host.shared(host.workers[0], ready(host.worker("alpha", "w2")))
    host.ends(host.published("alpha", "owner", "t-last"), "completed")
    for turn in turns:
        host.ends(turn, "completed")
        assert attempts(host, turn) == [(1, "completed", None)]
    assert len(host.calls()) == 11


@pytest.mark.drivers("local")  # of Kafka offsets count markers, too
def test_a03_a_move_passes_over_nothing_that_was_not_taken(fresh):
    """A03: five handoffs, room for two: a move commits what was taken in, not what was read; five turns end once each."""
    host = fresh.configure({"alpha": fresh.service(parallel=2)}, **SHORT)
    host.plan(default=[{"until": host.fake + "/go"}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(5)]
    first = ready(host.worker("alpha", "w1"))
    host.called(2)
    assert taken(host) == 2
    second = ready(host.worker("alpha", "w2"))
    host.shared(first, second)
    wait_until(lambda: taken(host) == len(host.calls()) <= 4, 20, lambda: f"calls of what was taken: {taken(host)}, {len(host.calls())}")
    second.kill()
    go(host)
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert {call["turn"] for call in host.calls()} == set(turns) and len({(call["turn"], call["attempt"]) for call in host.calls()}) == len(host.calls())


def test_a10_one_more_costs_no_storm_of_rebalances(fresh):
    """A10: two work and commit all the time, a third joins: at most three new assignments for each."""
    host = fresh.configure({"alpha": None})
    first, second = ready(host.worker("alpha", "w1")), ready(host.worker("alpha", "w2"))
    host.shared(first, second)
    before = [len(worker.events("engine.assigned")) for worker in (first, second)]
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    third = ready(host.worker("alpha", "w3"))
    turns += [host.published("alpha", "owner", f"u-{n}") for n in range(8)]
    for turn in turns:
        host.ends(turn, "completed")
    added = [len(worker.events("engine.assigned")) - old for worker, old in zip((first, second, third), before + [0])]
    assert max(added) <= 3 and len(host.calls()) == 16, added


def test_a13_a15_a_pause_that_moves_resumes_where_it_was(fresh):
    """A13, A15: paused, partitions move twice, resumed: every owner goes on at what was taken in, of the partitions that it has."""
    host = fresh.configure({"alpha": None}, **SHORT)
    first = ready(host.worker("alpha", "w1"))
    done = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    for turn in done:
        host.ends(turn, "completed")
    host.run("services", "pause", "alpha", "--reason", "a look").ok()
    waiting = [host.published("alpha", "owner", f"u-{n}") for n in range(8)]
    second = ready(host.worker("alpha", "w2"))
    host.shared(first, second)
    first.stop()
    third = ready(host.worker("alpha", "w3"))
    host.shared(second, third)
    assert len(host.calls()) == 8, "paused wherever it went"
    host.run("services", "resume", "alpha").ok()
    for turn in waiting:
        host.ends(turn, "completed")
    assert len(host.calls()) == 16 and host.run("services", "--json").ok().objects[0]["lag"] == 0


def test_a25_who_was_idle_takes_over(fresh):
    """A25: a second one with nothing to do for many sessions takes the work when the first is killed."""
    host = fresh.configure({"alpha": None}, **SHORT)
    host.plan(tasks={"t-runs": [{"hang": True}, {}]})
    first = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-runs")
    host.called(1)
    idle = [ready(host.worker("alpha", f"w{n}")) for n in range(2, 7)]  # more than there are partitions
    time.sleep(6 * SLOW)
    assert all(worker.alive for worker in idle) and len(host.calls()) == 1
    first.kill()
    host.ends(turn, "completed", 40)
    host.ends(host.published("alpha", "owner", "t-next"), "completed")
    assert attempts(host, turn) == [(1, "failed", "lost"), (2, "completed", None)]


# ---- two who believe that a turn is theirs ----

def overtaken(fresh, steps, **settings):
    """w1 is frozen while it runs a turn, and w2 watches its lease."""
    host = fresh.configure({"alpha": None}, **SHORT, **settings)
    host.plan(tasks={"t-1": steps})
    turn = host.published("alpha", "reviewer", "t-1")
    first = ready(host.worker("alpha", "w1"))
    host.called(1)
    second = ready(host.worker("alpha", "w2"))
    host.shared(first, second)
    first.freeze()
    wait_until(lambda: [one for one in second.events("lease.watched") if one["turn"] == turn], 30,
                       lambda: f"w2 to wait for the lease\n{second.log[-3000:]}")
    return host, turn, first, second


def test_e15_what_changed_meanwhile_is_not_overwritten(fresh):
    """E15: a turn is cancelled while its lease runs out: nobody declares it lost over that, and nothing runs again."""
    host, turn, first, second = overtaken(fresh, [{"hang": True}, {}], lease="12s", lease_grace="6s")
    host.cancel(turn).ok()
    host.ends(turn, "cancelled")
    newest = [one for one in host.log.records(host.topic("turns")) if one.key == turn.encode()][-1]
    time.sleep(13 * SLOW)  # longer than the lease
    first.process.send_signal(signal.SIGCONT)
    host.ends(host.published("alpha", "owner", "t-2"), "completed")
    assert [one for one in host.log.records(host.topic("turns")) if one.key == turn.encode()][-1].offset == newest.offset
    assert attempts(host, turn) == [(1, "cancelled", None)] and len(host.calls(turn=turn)) == 1
    assert first.alive and second.alive


def test_l47_a_report_under_an_old_lease_is_no_second_result(fresh):
    """L-47: the lease runs out, the second worker completes the turn, then the first one ends, and a report of it that was under way
    arrives: kept as late, one result."""
    host, turn, first, _ = overtaken(fresh, [{"until": fresh.fake + "/go", "summary": "from the first"}, {"summary": "from the second"}])
    boot = next(one for one in host.log.records(host.topic("turns")) if one.key == turn.encode()).json()["lease"]["boot"]
    shown = host.ends(turn, "completed", 40)
    assert [one["class"] for one in shown["attempts"]] == ["lost", None] and "late" not in shown["attempts"][0]
    go(host)
    wait_until(lambda: sum(line["event"] == "end" and line["turn"] == turn for line in host.lines()) == 2, 20, "the first one to end, too")
    first.process.send_signal(signal.SIGCONT)
    host.log.append(proof.control(host.prefix, host.fleet, host.key("alpha"), "alpha", "report", turn, attempt=1, boot=boot,
                                  result={"verdict": "approve", "summary": "from the first"}))
    wait_until(lambda: host.show(turn)["attempts"][0].get("late"), 30, lambda: f"its report to be late\n{host.all_logs()}")
    ends = [one.json() for one in host.log.records(host.topic("outcomes", None)) if one.json()["event"] == "completed"]
    assert [(one["attempt"], one["result"]["summary"]) for one in ends] == [(2, "from the second")]
    host.ends(host.published("alpha", "owner", "t-2"), "completed")
    assert host.show(turn)["state"] == "completed" and len(host.calls(turn=turn)) == 2


def test_e25_what_is_done_outside_goes_under_the_attempt(fresh):
    """E25: what keeps two of them apart outside of Baton, turn and attempt, is the same in the executor's environment and in what is
    told of its result; no two executors have it, and a repeated publish gives no new one."""
    host = fresh.configure({"alpha": None}, **SHORT)
    host.plan(tasks={"t-1": [{"class": "unavailable"}, {"hang": True}, {"summary": "the third"}]})
    words = ("alpha", "owner", "t-1", "--key", "k-1")
    turn = host.published(*words)
    first = ready(host.worker("alpha", "w1"))
    host.called(1, attempt=2)
    first.kill()
    ready(host.worker("alpha", "w2"))
    host.ends(turn, "completed", 40)
    assert host.published(*words) == turn
    host.ends(host.published("alpha", "owner", "t-2"), "completed")
    calls = host.calls(turn=turn)
    assert [call["env"]["BATON_HANDOFF"] for call in calls] == [f"{turn}.{number}" for number in (1, 2, 3)]
    assert [(call["env"]["BATON_TURN_ID"], call["env"]["BATON_ATTEMPT"]) for call in calls] == [(turn, str(number)) for number in (1, 2, 3)]
    assert [json.loads(call["stdin"])["turn_id"] for call in calls] == [turn] * 3
    ends = [one.json() for one in host.log.records(host.topic("outcomes", None)) if one.json().get("turn_id") == turn]
    assert [(one["event"], one["attempt"], one["result"]["summary"]) for one in ends] == [
        ("completed", 3, "the third"), ("duplicate", 3, "the third")]


@pytest.mark.parametrize("what", ["UPDATE turn SET lease_worker = '', lease_boot = ''", "DELETE FROM attempt"], ids=["no lease", "no attempt"])
def test_e04_running_without_its_lease(fresh, what):
    """E04: somebody has deleted from the store what says whose a running turn is: the log knows, and a start mends it."""
    host = fresh.configure({"alpha": None}, **SHORT)
    host.plan(default=[{"hang": True}, {}])
    turn = host.published("alpha", "owner", "t-1")
    first = ready(host.worker("alpha", "w1"))
    host.called(1)
    first.kill()
    wait_until(lambda: not first.alive, what="the worker to be gone")
    store = sqlite3.connect(host.stores()[0])
    store.execute("PRAGMA foreign_keys = ON")
    with store:
        assert store.execute(what).rowcount == 1
    store.close()
    ready(host.worker("alpha", "w1"))
    host.ends(turn, "completed", 40)
    assert attempts(host, turn) == [(1, "failed", "lost"), (2, "completed", None)]
    assert host.run("store", "check").status == 0
