"""Workers that stop, die and come back: nothing lost, nothing twice (H-56, E, A rows, RULES S5)."""
import os
import signal
import time

import pytest

from faultpoints import fault_points
from host import SLOW, wait_until


@pytest.mark.core
def test_h56_a_stopped_worker_drains(host):
    """H-56, A22: SIGTERM takes nothing more, lets end what runs, cancels nothing, ends with 0."""
    host.plan(default=[{"sleep": 0.8}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(12)]
    worker = host.worker("alpha", "w1")
    host.called(2)
    started = time.monotonic()
    worker.stop()
    assert time.monotonic() - started < 5 * SLOW
    states = [host.state(turn) for turn in turns]
    assert "cancelled" not in states and "running" not in states and "completed" in states, states
    assert sum(state == "completed" for state in states) == len(host.calls())
    host.worker("alpha", "w1")
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert len(host.calls()) == 12, "nothing ran twice"


def test_h56_a_turn_longer_than_the_grace_goes_on_after_the_restart(fresh):
    """H-56, I11: killed by a clean stop is not cancelled, and counts in no budget."""
    host = fresh.configure({"alpha": fresh.service(grace="300ms", parallel=2)})
    host.plan(default=[{"hang": True}] * 5 + [{}])
    turn = host.published("alpha", "reviewer", "t-1")
    for n in range(5):
        worker = host.worker("alpha", "w1")
        host.called(n + 1)
        worker.stop()
        assert host.state(turn) in ("queued", "running"), n
        assert not [call for call in host.calls() if os.path.exists(f"/proc/{call['pid']}")], "the executor is gone"
    host.worker("alpha", "w1")
    shown = host.ends(turn, "completed")
    assert [one["no"] for one in shown["attempts"]] == [1, 2, 3, 4, 5, 6]
    assert {call["role"] for call in host.calls()} == {"reviewer"}


@pytest.mark.long
def test_b19_a_long_grace_is_waited_for(fresh):
    """B19: a turn of half a minute and more is let end by a stop whose grace is longer; whoever has its partition then applies it."""
    host = fresh.configure({"alpha": fresh.service(grace="120s", deadline="120s")})
    host.plan(default=[{"sleep": 40}])
    turn = host.published("alpha", "owner", "t-1")
    worker = host.worker("alpha", "w1")
    host.called(1)
    worker.stop(100)
    assert [line["event"] for line in host.lines()] == ["start", "end"]
    host.worker("alpha", "w2")
    host.ends(turn, "completed", 40)
    assert len(host.calls()) == 1


def test_two_stops_at_once_end_it_the_same_way(host):
    host.plan(default=[{"sleep": 0.5}])
    turn = host.published()
    worker = host.worker("alpha")
    host.called(1)
    worker.process.send_signal(signal.SIGTERM)
    worker.process.send_signal(signal.SIGTERM)
    worker.wait()
    assert host.state(turn) in ("completed", "queued", "running")


@pytest.mark.core
@pytest.mark.alone
def test_e07_killed_and_started_with_the_same_id(host):
    """E01, E07, E09: kill -9 in the middle of a turn; the same id takes over at once; attempt n is lost, n+1 runs."""
    host.plan(default=[{"hang": True}, {}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    call, = host.called(1)
    worker.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{call['pid']}"), 2, "L-39, G07: the executor to die with its worker")
    started = time.time()
    host.worker("alpha", "w1")
    second = host.called(1, attempt=2)[0]
    assert second["t"] - started < 1.5 * SLOW, "below a second when the same worker id is restarted"
    shown = host.ends(turn, "completed")
    assert [(one["no"], one["state"], one["class"]) for one in shown["attempts"]] == \
        [(1, "failed", "lost"), (2, "completed", None)]
    assert shown["role"] == "reviewer" and not host.letters()


def test_g07_nothing_of_the_tree_outlives_the_worker(host, tmp_path):
    """L-39: not even a grandchild in a session of its own; nothing is written after the worker's death."""
    late = str(tmp_path / "late")
    host.plan(default=[{"child_writes": late, "after": 4, "hang": True, "ignore_term": True}, {}])
    turn = host.published()
    worker = host.worker("alpha", "w1")
    host.called(1)
    worker.kill()
    wait_until(lambda: not host.processes(), 2, lambda: f"{host.describe()} to be gone")
    host.worker("alpha", "w1")
    host.ends(turn, "completed")
    assert not os.path.exists(late)


def test_two_workers_share_a_service(host):
    """Both execute, each turn once."""
    host.plan(default=[{"sleep": 0.1}])
    host.shared(host.worker("alpha", "w1"), host.worker("alpha", "w2"))
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(40)]
    for turn in turns:
        host.ends(turn, "completed", 40)
    workers = {attempt["worker"] for turn in turns for attempt in host.show(turn)["attempts"]}
    assert workers == {"w1", "w2"} and len(host.calls()) == 40


@pytest.mark.core
def test_two_workers_one_is_killed(host):
    """E01, E03, E09: the other one finishes everything in less than ten seconds; no turn runs twice at once."""
    host.plan(default=[{"sleep": 0.3}])
    first, second = host.worker("alpha", "w1"), host.worker("alpha", "w2")
    host.shared(first, second)
    signer, roles = host.key(host.identity), ("owner", "reviewer", "arbiter")
    records = [host.handoff(host.turn(role=roles[n % 3], task=f"t-{n}"), signer=signer) for n in range(30)]
    for record in records:  # all at once, or the first are over before the last are there
        host.log.append(record)
    turns = [record.key.decode() for record in records]

    def both_run():
        running = {}
        for line in host.lines():
            if line["event"] == "start":
                running[line["turn"], line["attempt"]] = line["env"]["BATON_WORKER"]
            else:
                running.pop((line["turn"], line["attempt"]))
        return set(running.values()) == {"alpha/w1", "alpha/w2"}

    wait_until(both_run, what="both to run something")
    first.kill()
    killed = time.time()
    for turn in turns:
        host.ends(turn, "completed", 30)
    lost = [one for turn in turns for one in host.show(turn)["attempts"] if one["class"] == "lost"]
    assert all(one["worker"] == "w1" for one in lost)
    again = [call for call in host.calls() if call["attempt"] == 2]
    assert len(again) == len(lost)
    assert not again or min(call["t"] for call in again) - killed < 10 * SLOW
    assert second.alive and not host.letters()


@pytest.mark.core
def test_e10_a_stopped_worker_loses_its_turns_and_its_results_are_late(host):
    """E10: SIGSTOP; after a session the other takes over; what the first one says then is not applied."""
    host.plan(default=[{"sleep": 14, "summary": "from the first"}, {"summary": "from the second"}])
    turn = host.published("alpha", "reviewer", "t-1")
    first = host.worker("alpha", "w1")
    host.called(1)
    host.worker("alpha", "w2")
    first.freeze()
    shown = host.ends(turn, "completed", 30)
    first.process.send_signal(signal.SIGCONT)
    assert [one["class"] for one in shown["attempts"]] == ["lost", None]
    time.sleep(2)
    outcomes = [record.json() for record in host.log.records(host.topic("outcomes", None)) if record.json()["event"] == "completed"]
    assert len(outcomes) == 1 and outcomes[0]["result"]["summary"] == "from the second"
    assert host.show(turn)["attempts"][1]["state"] == "completed"
    after = host.published("alpha", "owner", "t-2")
    host.plan(default=[{}])
    host.ends(after, "completed", 30)


@pytest.mark.core
def test_b04_f07_a_second_process_with_the_same_id(host):
    """B04, F07: refused with the id and the pid of the older one, which goes on."""
    host.plan(default=[{"until": host.fake + "/go"}])
    turn = host.published()
    first = host.worker("alpha", "w1")
    host.called(1)
    second = host.worker("alpha", "w1")
    assert second.wait() == 6, second.log
    assert str(first.pid) in second.log and "w1" in second.log, second.log
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed")
    assert first.alive and len(host.calls()) == 1


def test_g06_two_starts_race_for_one_turn(host):
    """G06, R-44: two workers start at once with one turn waiting: one executor."""
    host.plan(default=[{"sleep": 0.5}])
    turn = host.published()
    host.worker("alpha", "w1")
    host.worker("alpha", "w2")
    host.ends(turn, "completed")
    time.sleep(0.5)
    assert len(host.calls()) == 1


def test_worker_ids_without_a_name(host):
    """The default id is <host>-<first free number>: two unnamed workers do not meet."""
    host.worker("alpha")
    host.worker("alpha")
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(12)]
    for turn in turns:
        host.ends(turn, "completed")
    assert all(worker.alive for worker in host.workers)


def test_a24_more_workers_than_partitions(host):
    """A24: the surplus idles, is healthy, and takes over when one dies."""
    workers = [host.worker("alpha", f"w{n}") for n in range(6)]
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(20)]
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert all(worker.alive for worker in workers) and len(host.calls()) == 20
    for worker in workers[:5]:
        worker.kill()
    last = host.published("alpha", "owner", "t-last")
    host.ends(last, "completed", 30)


def test_a22_one_at_a_time_stopped_after_three(fresh):
    """A22: what was taken in is done; the rest runs after the restart; nothing is lost or repeated."""
    host = fresh.configure({"alpha": fresh.service(parallel=1)})
    host.plan(default=[{"sleep": 0.1}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(10)]
    worker = host.worker("alpha", "w1")
    host.called(3)
    worker.stop()
    done = len(host.calls())
    assert done < 10
    host.drain("alpha", "w1")
    assert sorted(call["turn"] for call in host.calls()) == sorted(turns)


@pytest.mark.parametrize("redelivered", [False, True])
def test_c05_a_turn_that_kills_its_worker_is_parked(host, redelivered):
    """C05, C06: after three losses it is parked as worker_killed, over restarts and copies of its record."""
    host.plan(tasks={"t-poison": [{"kill_worker": True}]})
    words = ("alpha", "reviewer", "t-poison", "--key", "poison")
    turn = host.published(*words)
    for n in range(8):
        worker = host.worker("alpha", "w1")
        wait_until(lambda: not worker.alive or host.state(turn) == "parked", 20, "the worker to die, or the turn to be parked")
        if worker.alive:
            break
        if redelivered:
            host.published(*words)
    shown = host.ends(turn, "parked")
    assert len(host.calls()) in (3, 4) and shown["role"] == "reviewer"
    assert host.letter("worker_killed")["turn_id"] == turn
    good = host.published("alpha", "owner", "t-good")
    host.ends(good, "completed")


def test_f10_restarts_change_no_counter(host):
    """F10: five restarts leave attempts, states and calls as they were."""
    host.plan(tasks={"t-parked": [{"class": "bad_request"}], "t-queued": [{"class": "rate_limited", "retry_after_ms": 600000}]})
    turns = [host.published("alpha", "owner", task) for task in ("t-done", "t-parked", "t-queued")]
    worker = host.worker("alpha", "w1")
    for turn, state in zip(turns, ("completed", "parked", "queued")):
        host.ends(turn, state)
    before = [host.show(turn) for turn in turns]
    letters = len(host.letters())
    for n in range(5):
        worker.kill() if n % 2 else worker.stop()
        worker = host.worker("alpha", "w1")
        marker = host.published("alpha", "owner", f"t-marker-{n}")
        host.ends(marker, "completed")
    assert [host.show(turn) for turn in turns] == before
    assert len(host.letters()) == letters and len(host.calls()) == 3 + 5


def test_a_delay_outlives_a_restart(host):
    """D13: a retry's wait goes on after a kill; it is neither forgotten nor begun anew for ever."""
    host.plan(default=[{"class": "rate_limited", "retry_after_ms": 3000}, {}])
    turn = host.published()
    worker = host.worker("alpha", "w1")
    host.ends(turn, "queued")
    ended = next(line["t"] for line in host.lines() if line["event"] == "end")
    worker.kill()
    host.worker("alpha", "w1")
    second = host.called(1, attempt=2)[0]
    assert 2.9 <= second["t"] - ended < 3 + 4 * SLOW


@pytest.mark.core
def test_the_log_forgets_nothing_when_every_store_is_lost(host):
    """Losing a store costs work, not correctness: what ended stays ended, what was open goes on."""
    host.plan(default=[{}], tasks={"t-parked": [{"class": "bad_request"}, {}],
                                   "t-queued": [{"class": "rate_limited", "retry_after_ms": 4000}, {}]})
    turns = {task: host.published("alpha", "reviewer", task) for task in ("t-done", "t-parked", "t-queued")}
    worker = host.worker("alpha", "w1")
    for task, state in (("t-done", "completed"), ("t-parked", "parked"), ("t-queued", "queued")):
        host.ends(turns[task], state)
    worker.kill()
    for path in host.stores():
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
    host.worker("alpha", "w1")
    host.ends(turns["t-queued"], "completed")
    assert host.state(turns["t-parked"]) == "parked" and host.state(turns["t-done"]) == "completed"
    host.replay(turns["t-parked"]).ok()
    host.ends(turns["t-parked"], "completed")
    assert len(host.calls(turn=turns["t-done"])) == 1


@pytest.mark.heavy
@pytest.mark.alone
def test_an_idle_worker_costs_next_to_nothing(host):
    """Below 16 MiB, and asleep: what it costs to the half per cent is measured by `baton bench`, here it does not spin."""
    worker = host.worker("alpha", "w1")
    host.ends(host.published(), "completed")
    time.sleep(1.5)

    def ticks():
        with open(f"/proc/{worker.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(6)
    assert ticks() - before <= 40, "hundredths of a second in six"
    with open(f"/proc/{worker.pid}/status", encoding="ascii") as file:
        rss = int(next(line for line in file if line.startswith("VmRSS")).split()[1])
    assert rss < 16 * 1024, f"{rss} KiB"
    with open(f"/proc/{worker.pid}/maps", encoding="ascii") as file:
        maps = file.read()
    assert "microhttpd" not in maps and "/libcurl" not in maps, "loaded by workers that listen or export alone"


@pytest.mark.few_on_kafka("action", "fail:1")
@pytest.mark.parametrize("action", ["fail:1", "fail:2"])
@pytest.mark.parametrize("point", fault_points())
def test_broken_at_every_fault_point(host, point, action):
    """STYLE U5, E13, A21: an error at each point (test_85_crash.py: a kill); then every turn has one continuation and one end."""
    host.plan(default=[{}], tasks={"t-retry": [{"class": "unavailable"}, {}], "t-parked": [{"class": "bad_request"}]})
    turns = {task: host.published("alpha", "reviewer", task) for task in ("t-1", "t-2", "t-retry", "t-parked")}
    worker = host.worker("alpha", "w1", environment={"BATON_FAULT": f"{point}:{action}"})

    def over():
        return not worker.alive or (host.state(turns["t-1"]) == "completed" and host.state(turns["t-2"]) == "completed" and
                                    host.state(turns["t-retry"]) == "completed" and host.state(turns["t-parked"]) == "parked")

    wait_until(over, 30, "the fault, or the end of all")
    if worker.alive:
        worker.kill()
    host.worker("alpha", "w1")
    for task, turn in turns.items():
        shown = host.ends(turn, "parked" if task == "t-parked" else "completed")
        assert shown["role"] == "reviewer"
        numbers = [one["no"] for one in shown["attempts"]]
        assert numbers == sorted(set(numbers))
    letters = [one for one in host.log.records(host.topic("dlq")) if one.key == turns["t-parked"].encode()]
    assert len(letters) == 1, "A21: one dead letter for the attempt that parked it"


def kill_loop(host, rounds, seed):
    """F08, L-57: kills at random moments; in the end one terminal row for each turn, no call twice."""
    import random
    moments = random.Random(seed)
    print("seed", seed)
    host.plan(default=[{}], tasks={f"t-{n}": [{"class": "unavailable"}, {}] for n in range(0, 10000, 5)})
    turns = []
    for n in range(rounds):
        turns += [host.published("alpha", ("owner", "reviewer", "arbiter")[k % 3], f"t-{n * 3 + k}") for k in range(3)]
        worker = host.worker("alpha", f"w{n % 2}")
        time.sleep(moments.random() * 0.4)
        worker.kill()
    host.worker("alpha", "w0")
    host.worker("alpha", "w1")
    def over():
        listed = host.turns()
        return len(listed) == len(turns) and all(one["state"] in ("completed", "parked") for one in listed)

    wait_until(over, 60 + rounds, lambda: f"every turn to end: {[one for one in host.turns() if one['state'] not in ('completed', 'parked')]}")
    for worker in host.workers:
        if worker.alive:
            worker.stop()
    assert {one["turn_id"] for one in host.turns()} == set(turns)
    parked = {one["turn_id"] for one in host.turns("--state", "parked")}
    assert {letter["turn_id"] for letter in host.letters()} == parked
    assert all(letter["code"] == "worker_killed" for letter in host.letters())
    assert host.run("store", "check").status == 0


@pytest.mark.seconds(180)
def test_f08_killed_at_random_moments(host):
    kill_loop(host, 20, int(time.time()))


@pytest.mark.long
@pytest.mark.seconds(3600)
def test_f08_killed_a_thousand_times(host):
    kill_loop(host, 1000, int(time.time()))


def test_h56_two_stops_count_in_no_budget_whoever_goes_on(host):
    """H-56: what a second stop kills is settled before the worker ends, so a worker with another id counts no loss."""
    host.plan(default=[{"hang": True}, {}])
    turn = host.published()
    worker = host.worker("alpha", "w1")
    host.called(1)
    worker.process.send_signal(signal.SIGTERM)
    wait_until(lambda: worker.events("worker.stopping"), what="the first stop to be heard: two at once are one")
    worker.process.send_signal(signal.SIGTERM)
    worker.wait()
    assert host.state(turn) == "queued"
    host.worker("alpha", "w2")
    shown = host.ends(turn, "completed")
    assert shown["losses"] == 0 and [one["class"] for one in shown["attempts"]] == ["killed", None]
