"""What is counted of handoffs, and that each exists once: caps under races, refusals that cost nothing, equal names, deaths in between (H-11 to H-17, H-23, H-25, H-54)."""
import concurrent.futures
import os

import pytest

from host import ready, wait_until
from runs import hand, sent, show, sound, start, taken, until, with_workflows

LOOP = ("start: dev\nnodes:\n  dev: {role: owner, service: alpha}\n  rev: {role: reviewer, service: beta}\n"
        "transitions:\n  go: {from: dev, to: rev, max_cycles: %d}\n  back: {from: rev, to: dev, when: [changes]}\n"
        "ends:\n  good: {from: rev, when: [approve], as: completed}\n")
# Three nodes with slots of the same name; a and b at one service and under one role.
SAME = ("start: dev\nnodes:\n  dev: {role: owner, service: alpha}\n  a: {service: beta, slots: {x: reviewer}}\n"
       "  b: {service: beta, slots: {x: reviewer}}\n  c: {service: gamma, slots: {x: arbiter}}\n"
       "transitions:\n  all: {from: dev, to: '*'}\n  ax: {from: dev, to: a.x}\n  bx: {from: dev, to: b.x}\n  cx: {from: dev, to: c.x}\n"
       "ends:\n  good: {from: a.x, when: [approve], as: completed}\n")
LATER = {"duplicate", "turn_open"}  # decided on what was before the one that was taken, or after it


def asking(fresh, text, **settings):
    """A host where every turn ends by asking a person, so that people hand on."""
    host = with_workflows(fresh, {"w": text}, **settings)
    host.plan(services={"gamma": [{"verdict": "escalate"}]}, default=[{"verdict": "blocked"}])
    for service in ("alpha", "beta", "gamma"):
        host.worker(service)
    return host


def rest(host, run):
    """The run, once it waits and none of its turns is open."""
    return wait_until(lambda: (lambda one: one if one["state"] == "waiting" and all(turn["state"] == "completed" for turn in one["turns"]) else None)
                      (show(host, run)), 40, lambda: f"run {run} to wait: {show(host, run)}\n{host.all_logs()}")


def at_once(count, act):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(act, range(count)))


def code(done):
    """The code of an answer, "taken" for one that was."""
    return done.one["code"] or ("deduped" if done.one["result"]["deduped"] else "taken")


@pytest.mark.core
@pytest.mark.seconds(240)
def test_h11_thirty_two_at_a_cap_of_five(fresh):
    """H-11: thirty-two processes again and again, two coordinators: five handoffs are taken, the edge says five, five turns exist."""
    host = asking(fresh, LOOP % 5)
    ready(host.worker("coordinator", "c2"))
    run = start(host, "t-1", "--timeout", "30s", workflow="w")
    seen = []
    for round_ in range(12):
        rest(host, run)
        seen += [code(one) for one in at_once(32, lambda n: hand(host, run, "dev", "rev", summary=f"{round_} {n}"))]  # pylint: disable=cell-var-from-loop
        if "cycle_limit" in seen:
            break
    shown = rest(host, run)
    assert seen.count("taken") == 5 and set(seen) <= LATER | {"taken", "cycle_limit"}, seen
    assert taken(shown) == {"start": 1, "go": 5} and len(host.calls(service="beta")) == 5, shown
    assert hand(host, run, "dev", "rev").one["code"] == "cycle_limit"
    assert taken(show(host, run))["go"] == 5
    sound(host, shown)


@pytest.mark.core
@pytest.mark.seconds(240)
def test_h13_two_at_the_last_of_a_cap(fresh):
    """H-13: two processes at cap minus one: one handoff is taken, of the other is said why not; whoever asks then is at the cap."""
    host = asking(fresh, LOOP % 1)
    ready(host.worker("coordinator", "c2"))
    for n in range(10):
        run = start(host, f"t-{n}", "--timeout", "30s", workflow="w")
        rest(host, run)
        codes = [code(one) for one in at_once(2, lambda one: hand(host, run, "dev", "rev", summary=f"go {one}"))]  # pylint: disable=cell-var-from-loop
        assert codes.count("taken") == 1 and set(codes) <= LATER | {"taken", "cycle_limit"}, codes
        shown = rest(host, run)
        assert taken(shown) == {"start": 1, "go": 1} and len(shown["turns"]) == 2, shown
        assert hand(host, run, "dev", "rev").one["code"] == "cycle_limit"


def rights(host, create):
    coordinator = next(one for one in host.workers if one.kind == "coordinator" and one.alive)
    read = len(coordinator.events("trust.read"))
    host.put(os.path.join(host.dir, "trust", "coordinator.yaml"), f"kind: program\ncreate:\n  {create}\ncoordinate: true\n".encode())
    wait_until(lambda: len(coordinator.events("trust.read")) > read, what="the trust folder to be read")


@pytest.mark.core
def test_h12_what_could_not_be_sent_costs_nothing(fresh):
    """H-12: at a cap of one, three attempts that cannot be written to the target fail and count nothing; the fourth is taken, and then the cap is reached."""
    host = asking(fresh, LOOP % 1)
    run = start(host, workflow="w")
    rest(host, run)
    rights(host, "{alpha: [owner]}")
    for _ in range(3):
        result = hand(host, run, "dev", "rev").one["result"]
        assert (result["status"], result["stage"], result["unreached"]) == ("failed", "publish", ["rev"]), result
        assert taken(show(host, run)) == {"start": 1} and set(sent(host, run)) <= {"alpha"}
    rights(host, "'*': [owner, reviewer, arbiter]")
    assert code(hand(host, run, "dev", "rev")) == "taken"
    shown = rest(host, run)
    assert taken(shown) == {"start": 1, "go": 1}
    assert hand(host, run, "dev", "rev", summary="once more").one["code"] == "cycle_limit"
    sound(host, shown)


@pytest.mark.core
def test_h23_of_three_targets_one_cannot_be_reached(fresh):
    """H-23: the answer is `queued` and names who got none; each of the others got one turn."""
    host = asking(fresh, SAME)
    run = start(host, workflow="w")
    rest(host, run)
    rights(host, "{alpha: [owner], beta: [reviewer]}")
    result = hand(host, run, "dev", "*").ok().one["result"]
    assert (result["status"], result["targets"], result["unreached"]) == ("queued", ["a.x", "b.x"], ["c.x"]), result
    shown = rest(host, run)
    assert sorted(one["slot"] for one in shown["turns"]) == ["a.x", "b.x", "dev"] and taken(shown) == {"start": 1, "all": 1}
    sound(host, shown)


@pytest.mark.core
def test_h20_h22_delivered_is_what_a_worker_has_claimed(fresh):
    """H-20, H-22: without a worker a handoff is `queued`, and stays so however long is waited; it is not sent anew when one comes, and then it is `delivered`; of
    three targets one that is claimed makes it `delivered`."""
    host = with_workflows(fresh, {"w": SAME})
    host.plan(services={"gamma": [{"verdict": "escalate"}]}, default=[{"verdict": "blocked"}])
    host.worker("alpha")
    run = start(host, workflow="w")
    rest(host, run)
    done = hand(host, run, "dev", "a.x", "--wait-claim", summary="look", seconds=3)
    assert (done.status, done.one["status"], done.one["code"]) == (8, "queued", None), done
    worker = host.worker("beta")
    rest(host, run)
    assert taken(show(host, run))["ax"] == 1 and len(host.calls(service="beta")) == 1
    done = hand(host, run, "dev", "b.x", "--wait-claim").ok()
    assert (done.one["status"], len(done.one["result"]["turns"])) == ("delivered", 1), done
    rest(host, run)
    assert hand(host, run, "dev", "a.x").ok().one["status"] == "queued"
    rest(host, run)
    done = hand(host, run, "dev", "*", "--wait-claim", seconds=3).ok()
    assert (done.one["status"], len(done.one["result"]["turns"])) == ("delivered", 3), done
    worker.stop()
    # Asked again while it is there: what was claimed before counts, too.
    host.plan(services={"beta": [{"until": host.fake + "/go", "verdict": "blocked"}], "gamma": [{"verdict": "escalate"}]}, default=[{"verdict": "blocked"}])
    host.worker("beta"), host.worker("gamma")
    rest(host, run)
    assert hand(host, run, "dev", "b.x", "--wait-claim", summary="once").ok().one["status"] == "delivered"
    done = hand(host, run, "dev", "b.x", "--wait-claim", summary="once").ok()
    assert (done.one["status"], done.one["result"]["deduped"]) == ("delivered", True), done
    open(host.fake + "/go", "w", encoding="ascii").close()
    sound(host, rest(host, run))


@pytest.mark.core
def test_h17_h18_equal_slots_of_two_nodes(fresh):
    """H-17, H-18: the same words to slots of one name at three nodes, two of them at one service: three turns, each at its own; asked again, each is deduped by itself."""
    host = asking(fresh, SAME)
    host.plan(services={"beta": [{"until": host.fake + "/go", "verdict": "blocked"}], "gamma": [{"until": host.fake + "/go", "verdict": "escalate"}]},
              default=[{"verdict": "blocked"}])
    run = start(host, workflow="w")
    rest(host, run)
    for slot in ("a.x", "b.x", "c.x"):
        assert code(hand(host, run, "dev", slot, summary="look")) == "taken"
    for slot in ("a.x", "b.x", "c.x"):
        assert code(hand(host, run, "dev", slot, summary="look")) == "deduped"
    assert hand(host, run, "dev", "a.x", summary="another").one["code"] == "turn_open"
    host.called(2, service="beta"), host.called(1, service="gamma")
    open(host.fake + "/go", "w", encoding="ascii").close()
    shown = rest(host, run)
    assert taken(shown) == {"start": 1, "ax": 1, "bx": 1, "cx": 1}
    assert len({one["turn_id"] for one in shown["turns"]}) == 4
    assert [len(host.calls(service=service)) for service in ("alpha", "beta", "gamma")] == [1, 2, 1]
    sound(host, shown)


@pytest.mark.core
def test_h17_a_broadcast_to_equal_slots(fresh):
    """H-17: one handoff to all: a turn for each slot, though name, service, role and words are the same."""
    host = asking(fresh, SAME)
    run = start(host, workflow="w")
    rest(host, run)
    assert hand(host, run, "dev", "*").ok().one["result"]["targets"] == ["a.x", "b.x", "c.x"]
    shown = rest(host, run)
    assert len({one["turn_id"] for one in shown["turns"]}) == 4 and len(host.calls(service="beta")) == 2
    sound(host, shown)


@pytest.mark.core
@pytest.mark.seconds(240)
@pytest.mark.parametrize("who", ["alpha", "coordinator"])
@pytest.mark.parametrize("point", ["log.before_commit", "log.after_commit"])
def test_h25_h54_killed_between_an_end_and_its_handoff(fresh, who, point):
    """H-25, H-54: an executor asks for a handoff; its worker, or the coordinator, dies at the first, second, third… commit: in the end the attempt is
    closed, the edge says one, and the target has one turn."""
    host = with_workflows(fresh, {"w": LOOP % 1})
    host.plan(turns={"alpha": [{"result": {"handoff": {"target": "rev", "summary": "look at this"}}}]}, default=[{}])
    host.worker("beta")
    if who == "coordinator":
        host.worker("alpha")
        host.workers[0].stop()
    run = host.run("runs", "start", "--workflow", "w", "--task", "t-1", "--summary", "x", "--timeout", "0s" if who == "coordinator" else "30s", "--json").ok().one["run_id"]

    def over():
        done = host.run("runs", "show", run, "--json")
        return done.status == 0 and done.one["state"] == "completed"

    dead = 0
    for n in range(1, 9):
        one = host.worker(who, "w1" if who == "alpha" else "c1", environment={"BATON_FAULT": f"{point}:kill:{n}"})
        wait_until(lambda: not one.alive or over(), 40, lambda: f"{who} to die\n{one.log[-2000:]}")  # pylint: disable=cell-var-from-loop
        dead += not one.alive
        if over():
            break
    if not over():
        ready(host.worker(who, "w1" if who == "alpha" else "c1"))
    shown = until(host, run, "completed")
    assert dead >= 2 and [(one["by"], one["state"]) for one in shown["turns"]] == [("start", "completed"), ("go", "completed")], shown
    assert taken(shown) == {"start": 1, "go": 1} and len({call["turn"] for call in host.calls(service="beta")}) == 1
    assert [one["state"] for one in host.show(shown["turns"][0]["turn_id"])["attempts"]][-1] == "completed"
    sound(host, shown)
