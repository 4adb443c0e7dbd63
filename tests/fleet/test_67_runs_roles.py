"""Roles along a run: only a verdict moves the task, only an escalation brings the arbiter, and who has the work goes on (R-16, R-17, R-41, R-42, R-52, I02, I04, I10, I34)."""
import json

import pytest

import proof
from host import ready, wait_until
from runs import CHAINS, hand, show, sound, start, taken, until

FAILURES = ["bad_request", "policy", "invalid_output", "no_verdict", "crash", "timeout", "overloaded", "unavailable", "access_denied", "auth"]


@pytest.fixture
def runs(fresh):
    """A host with an owner's, a reviewer's and an arbiter's service, and a coordinator; the reviewer has no fallback."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=dict(CHAINS, reviewer={"chain": ["beta"]}), circuit={"after": 1000})
    ready(host.worker("coordinator", "c1"))
    for service in ("alpha", "beta", "gamma"):
        host.worker(service)
    return host


@pytest.mark.core
@pytest.mark.parametrize("step", [{"stdout": "All done. I hand this over to the reviewer now.\n", "exit": 0},
                                  {"raw": "I hand this over to the reviewer now.", "exit": 0},
                                  {"result": {"verdict": None, "summary": "handed over"}}], ids=["text", "prose", "no_verdict"])
def test_r41_i04_i10_words_are_no_handoff(runs, step):
    """R-41, I04, I10: an executor that says in words that it hands on, and gives no verdict, has failed: tried so often as the budget allows, then parked with a
    dead letter; its task is as it was, nobody else was asked, and the run waits and says so."""
    runs.plan(services={"alpha": [step]}, default=[{}])
    run = start(runs)
    shown = until(runs, run, "waiting")
    turn, = shown["turns"]
    assert (turn["state"], turn["role"]) == ("parked", "owner") and turn["turn_id"] in shown["why"]
    assert turn["code"] in ("no_verdict", "executor_failed"), shown
    assert (shown["task_rev"], shown["task_status"]) == (0, "active") and taken(shown) == {"start": 1}
    tried = runs.show(turn["turn_id"])["attempts"]
    assert {one["class"] for one in tried} <= {"no_verdict", "invalid_output"} and 1 <= len(tried) <= 6
    assert [one["turn_id"] for one in runs.letters()] == [turn["turn_id"]]
    assert not runs.calls(service="beta") and not runs.calls(service="gamma")
    runs.plan(default=[{}])
    runs.replay(turn["turn_id"]).ok()
    sound(runs, until(runs, run, "completed"))


@pytest.mark.core
def test_r42_r52_failures_escalate_nothing(runs):
    """R-42, R-52: an escalation brings the arbiter, once, after the reviewer's turn; ten failures of every kind bring none and leave the task's status and revision."""
    runs.plan(turns={"beta": [{"verdict": "escalate", "summary": "we do not agree"}]}, default=[{}])
    run = start(runs, "t-e")
    shown = until(runs, run, "completed")
    assert [(one["by"], one["role"], one["from"]) for one in shown["turns"]] == [("start", "owner", None), ("review", "reviewer", "owner"), ("dispute", "arbiter", "reviewer")]
    sent = next(one.json() for one in runs.log.records(runs.topic("outcomes", None)) if one.json().get("turn_id") == shown["turns"][2]["turn_id"])
    assert sent["role"] == "arbiter"
    asked = json.loads(runs.calls(turn=shown["turns"][2]["turn_id"])[0]["stdin"])
    assert asked["parent"] == shown["turns"][1]["turn_id"] and asked["data"]["verdict"] == "escalate", asked
    sound(runs, shown)
    for n, failure in enumerate(FAILURES):
        runs.plan(turns={"beta": [{"class": failure}]}, default=[{}])
        shown = until(runs, start(runs, f"t-{n}"), "waiting")
        assert [(one["role"], one["state"]) for one in shown["turns"]] == [("owner", "completed"), ("reviewer", "parked")], (failure, shown)
        assert (shown["task_rev"], shown["task_status"]) == (1, "review_ready"), (failure, shown)
    assert len(runs.calls(service="gamma")) == 1 and not show(runs, run)["turns"][3:]


@pytest.mark.core
def test_i02_who_has_the_work_goes_on(runs):
    """I02: after owner -> reviewer the next word of a person to the run reaches the reviewer's turn or is refused: nothing goes to the owner meanwhile; what the
    reviewer says leads on, under the reviewer's role."""
    runs.plan(services={"beta": [{"until": runs.fake + "/go", "verdict": "escalate"}]}, default=[{}])
    run = start(runs)
    wait_until(lambda: len(show(runs, run)["turns"]) == 2, what="the reviewer to have it")
    runs.called(1, service="beta")
    assert hand(runs, run, "owner", "reviewer", summary="and another thing").one["code"] == "turn_open"
    assert hand(runs, run, "reviewer", "owner", summary="do it otherwise").one["code"] == "turn_open"
    assert len(show(runs, run)["turns"]) == 2 and len(runs.calls(service="alpha")) == 1
    open(runs.fake + "/go", "w", encoding="ascii").close()
    shown = until(runs, run, "completed")
    assert [(one["role"], one["service"]) for one in shown["turns"]] == [("owner", "alpha"), ("reviewer", "beta"), ("arbiter", "gamma")]
    sound(runs, shown)


@pytest.mark.core
def test_i34_a_lap_is_a_lap_whatever_it_says(runs):
    """I34: each lap has other words, other data, another revision: the cap counts takings of the edge all the same."""
    runs.plan(turns={"beta": [{"verdict": "changes", "summary": f"mend {n}", "result": {"data": {"progress": str(n)}}} for n in range(9)],
                     "alpha": [{"summary": f"mended {n}", "result": {"data": {f"file-{n}": "x"}}} for n in range(9)]})
    shown = until(runs, start(runs), "waiting")
    assert (shown["code"], shown["stage"]) == ("cycle_limit", "cycle_limit") and "changes" in shown["why"], shown
    assert taken(shown) == {"start": 1, "review": 4, "changes": 3} and shown["task_rev"] == 4
    sound(runs, shown)


def test_r16_r17_why_it_was_refused_in_words(runs):
    """R-16, R-17: a handoff without a role, and one of another role than its service serves: code and words in `dlq list`, code and place in the log; one that is
    taken is logged with role, service, target, intent and origin."""
    run = start(runs)
    shown = until(runs, run, "completed")
    worker = next(one for one in runs.workers if one.service == "beta")
    [taken_] = [one for one in worker.events("handoff.taken") if one["turn"] == shown["turns"][1]["turn_id"]]
    assert (taken_["role"], taken_["service"], taken_["target"], taken_["intent"], taken_["origin"]) == ("reviewer", "beta", "beta", "review", "coordinator"), taken_
    members = runs.turn(task="t-forged", service="beta")
    del members["role"]
    runs.log.append(runs.handoff(members))
    runs.log.append(runs.handoff(runs.turn(task="t-other", service="beta"), signer=proof.Key.new()))
    for code in ("role_unresolved", "unknown_key"):
        letter = runs.letter(code)
        assert letter["service"] == "beta" and letter["message"], letter
        [refused] = [one for one in worker.events("record.rejected") if one["code"] == code]
        assert {"topic", "partition", "offset", "key", "note"} <= set(refused), refused
    text = runs.run("dlq", "list").ok().out
    assert "role_unresolved" in text and "unknown_key" in text
    runs.tampered = True
