"""Verdicts that a workflow leaves to a role: told to who does the turn, and refused by worker and coordinator alike (S6, S10)."""
import json
import os

import pytest

from host import attempts, ready, wait_until
from runs import CHAINS, show, sound, start, until
from test_68_runs_broken import say, told

NARROW = ("version: 1\nname: narrow\nstart: dev\nverdicts: {reviewer: [approve, blocked]}\nnodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\n"
          "transitions:\n  review: {from: dev, when: [done], to: rev}\nends:\n  good: {from: rev, when: [approve], as: completed}\n")


@pytest.fixture
def narrow(fresh):
    """A host whose workflow leaves its reviewer two verdicts."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=["narrow.yaml"])
    with open(os.open(os.path.join(host.dir, "narrow.yaml"), os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as file:
        file.write(NARROW)
    ready(host.worker("coordinator", "c1"))
    return host


@pytest.mark.core
def test_s6_a_verdict_that_is_left_out(narrow):
    """S6: the turn says which verdicts are left; another one is `no_verdict` at the worker, and the next attempt is the same turn's."""
    narrow.plan(turns={"beta": [{"verdict": "changes"}]}, default=[{}])
    for service in ("alpha", "beta", "gamma"):
        narrow.worker(service)
    run = start(narrow, workflow="narrow")
    wait_until(lambda: len(show(narrow, run)["turns"]) == 2, 20, lambda: f"the review: {show(narrow, run)}")
    turn = show(narrow, run)["turns"][1]["turn_id"]
    call = narrow.called(1, turn=turn)[0]
    assert json.loads(call["stdin"])["ext"] == {"verdicts": ["blocked", "approve"]}
    assert "ext" not in json.loads(narrow.calls(turn=show(narrow, run)["turns"][0]["turn_id"])[0]["stdin"])
    wait_until(lambda: attempts(narrow, turn)[:1] == [(1, "failed", "no_verdict")], 20, lambda: f"the first attempt to fail: {attempts(narrow, turn)}")
    shown = show(narrow, run)  # its next attempt may have approved by now
    assert shown["turns"][1]["verdict"] in (None, "approve") and len(shown["turns"]) == 2, shown


@pytest.mark.core
def test_s10_the_coordinator_makes_nothing_of_it(narrow):
    """S10: of an outcome with a verdict that the workflow left out (a worker of before, say) nothing is made: the run waits, and says why."""
    narrow.plan(services={"beta": [{"until": narrow.fake + "/go"}]}, default=[{}])
    narrow.worker("alpha")
    worker = narrow.worker("beta")
    run = start(narrow, workflow="narrow")
    wait_until(lambda: [one["state"] for one in show(narrow, run)["turns"]] == ["completed", "running"], 20, lambda: f"the review: {show(narrow, run)}")
    turn = show(narrow, run)["turns"][1]["turn_id"]
    claimed = told(narrow, turn, "claimed")
    worker.kill()
    say(narrow, claimed, event="completed", state="completed", result={"verdict": "changes", "summary": "do it again"})
    shown = until(narrow, run, "waiting")
    assert shown["code"] == "no_verdict" and shown["turns"][1]["verdict"] is None and len(shown["turns"]) == 2, shown


@pytest.mark.core
def test_s6_a_verdict_that_is_left(narrow):
    """S6: one of those that are left ends the run as ever."""
    for service in ("alpha", "beta"):
        narrow.worker(service)
    sound(narrow, until(narrow, start(narrow, workflow="narrow"), "completed"))
