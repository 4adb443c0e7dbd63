"""Handoffs by people along transitions with a hook: it looks at them as at a verdict's, and they are answered after it (H-27, H-30 to H-38)."""
import json
import os
import subprocess

import pytest

from host import binary, ready, wait_until
from runs import ask, path, show, until
from test_69_hooks import ALLOW, BLOCK, hooked  # noqa: F401 (a fixture)

WORDS = ("--from", "dev", "--to", "rev", "--summary", "take the first")


def asked(hooked, run, *more):  # noqa: F811
    return ask(hooked.host, "handoff", "--run", run, *WORDS, "--timeout", "60s", *more)


def asking(hooked, run):  # noqa: F811
    """The same beside the test: it waits for its answer."""
    return subprocess.Popen([binary(), "handoff", "--run", run, *WORDS, "--timeout", "60s", "--json"], cwd=hooked.host.dir, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(hooked.host.environment, BATON_MODE="attended"))


def blocked(hooked, *steps):  # noqa: F811
    """A run that waits since its hook did not let the owner's verdict pass; further calls do as the steps say."""
    hooked.begin(BLOCK, *steps)
    run = hooked.start()
    hooked.waits(run, "hook_blocked")
    return run


@pytest.mark.core
def test_h29_h34_a_persons_handoff_is_looked_at(hooked):  # noqa: F811
    """H-29, H-34: the hook sees what a person asks for, and who; with its patch the turn is sent, and the answer says so."""
    run = blocked(hooked, {"answer": {"verdict": "patch", "patch": {"summary": "take it, patched"}}})
    done = asked(hooked, run, "--data", "pr_url=https://x/1").ok().one
    assert (done["result"]["status"], done["result"]["targets"], done["result"]["stage"]) == ("queued", ["rev"], "publish"), done
    shown = until(hooked.host, run, "completed")
    assert [one[0] for one in path(shown)] == ["start", "review"]
    first, second = hooked.calls()
    assert second["input"]["asked_by"] == hooked.host.identity and "asked_by" not in first["input"]
    assert {name: second["input"][name] for name in ("from", "transition", "targets", "summary", "data", "verdict", "turn_id")} == {
        "from": "dev", "transition": "review", "targets": ["rev"], "summary": "take the first", "data": {"pr_url": "https://x/1"}, "verdict": "done",
        "turn_id": shown["turns"][0]["turn_id"]}
    told = hooked.second(shown)
    assert told["summary"] == "take it, patched" and told["data"] == {"task": "Mend the parser", "from": "dev", "pr_url": "https://x/1"}, told


@pytest.mark.core
def test_h32_h38_what_does_not_let_it_pass(hooked):  # noqa: F811
    """H-32, H-38: each refusal is the answer, with its stage and how long to wait; the run waits as before, and nothing comes by itself."""
    run = blocked(hooked, {"answer": {"verdict": "block", "reason": "still no ticket"}},
                  {"answer": {"verdict": "retryable_block", "reason": "ci runs", "retry_after_ms": 700}}, {"answer": "junk"}, ALLOW)
    before = show(hooked.host, run)
    for code, retry in (("hook_blocked", 0), ("hook_retry", 700), ("hook_unavailable", 0)):
        done = asked(hooked, run).one
        assert (done["code"], done["result"]["stage"], done["result"]["status"], done["result"]["retry_after_ms"]) == (code, "hook", "blocked", retry), done
    shown = hooked.waits(run, "hook_blocked")
    assert (shown["why"], shown["pending"], shown["requests"]) == (before["why"], before["pending"], 3), shown
    assert len(hooked.calls()) == 4 and not hooked.host.calls(service="beta")
    asked(hooked, run).ok()
    until(hooked.host, run, "completed")
    assert len(hooked.calls()) == 5


@pytest.mark.core
def test_h27_cancelled_while_its_hook_looks(hooked):  # noqa: F811
    """H-27, I20: while a hook looks at one handoff no other is taken; of a run that ends meanwhile nothing is published, and who asked is told."""
    run = blocked(hooked, {**ALLOW, "until": hooked.go})
    first = asking(hooked, run)
    hooked.called(2)
    done = asked(hooked, run).refused("turn_open", 6)
    assert done.one["result"]["stage"] == "resolve_run" and hooked.host.identity in done.one["result"]["text"], done
    assert "looks at the handoff dev -> rev" in hooked.host.run("runs", "show", run).ok().out
    ask(hooked.host, "runs", "cancel", run, "--reason", "not needed").ok()
    done = json.loads(first.communicate(timeout=60)[0])
    assert (done["code"], done["result"]["stage"]) == ("run_terminal", "recheck") and first.returncode == 6, done
    assert len(until(hooked.host, run, "cancelled")["turns"]) == 1 and not hooked.host.calls(service="beta")
    coordinator = next(one for one in hooked.host.workers if one.kind == "coordinator")
    wait_until(lambda: len(coordinator.events("hook.ended")) == 2, 20, lambda: coordinator.log[-2000:])
    assert hooked.scratch() == [] and len(hooked.calls()) == 2


@pytest.mark.core
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_h25_a_restart_answers_all_the_same(hooked, end):  # noqa: F811
    """H-25: what was asked stands in the run's record: a coordinator that comes after runs the hook again, answers, and the turn exists once."""
    run = blocked(hooked, {"until": hooked.go}, ALLOW)
    first = asking(hooked, run)
    hooked.called(2)
    getattr(next(one for one in hooked.host.workers if one.kind == "coordinator"), end)()
    ready(hooked.host.worker("coordinator", "c1"))
    done = json.loads(first.communicate(timeout=100)[0])
    assert (first.returncode, done["result"]["status"], done["result"]["targets"]) == (0, "queued", ["rev"]), done
    shown = until(hooked.host, run, "completed")
    assert len(shown["turns"]) == 2 and len(hooked.calls()) == 3 and hooked.scratch() == []


@pytest.mark.core
def test_h30_a_hook_that_people_only_pass(hooked):  # noqa: F811
    """H-30: a hook for people only looks at what a person asks for; a program is refused before it runs."""
    hooked.workflow("nodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\nhooks:\n  check: {command: [./check], people_only: true}\n"
                    "transitions:\n  review: {from: dev, to: rev, hook: check}\nends:\n  good: {from: rev, when: [approve], as: completed}\n")
    hooked.steps(ALLOW)
    hooked.host.principal("bot", "kind: program\nrequest: [handoff]\n")
    ready(hooked.host.worker("coordinator", "c1"))
    for service in ("alpha", "beta"):
        hooked.host.worker(service)
    run = hooked.start()
    until(hooked.host, run, "waiting")
    done = asked(hooked, run, "--set", "identity=bot").one
    assert (done["code"], done["result"]["stage"]) == ("hook_denied", "hook") and hooked.calls() == [], done
    asked(hooked, run).ok()
    until(hooked.host, run, "completed")
    assert len(hooked.calls()) == 1 and os.path.exists(os.path.join(hooked.host.dir, "hook.calls"))
