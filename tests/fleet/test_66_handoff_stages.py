"""The stages of a handoff, through the real programs: each refuses by its name, and then nothing was sent (H-01 to H-10, H-26, H-44)."""
import json
import os

import pytest

import proof
from host import wait_until
from runs import ask, hand, sent, show, sound, start, taken, until, with_workflows, workflow

WIDE = ("start: dev\n"
        "nodes:\n  dev: {role: owner, service: alpha}\n  rev: {service: beta, slots: {a: reviewer, b: reviewer}}\n  arb: {role: arbiter, service: gamma}\n"
        "hooks:\n  off: {command: [/bin/true], enabled: false}\n"
        "transitions:\n  both: {from: dev, to: rev}\n  one: {from: dev, to: rev.a}\n  all: {from: dev, to: '*'}\n  offed: {from: dev, to: arb, hook: off}\n"
        "  back: {from: rev.a, to: dev, max_cycles: 1}\n  sibling: {from: rev.a, to: rev.b}\n"
        "  way: {from: rev.a, to: arb, when: [escalate]}\n  other: {from: rev.a, to: arb, when: [needs_context]}\n"
        "  denied: {from: rev.b, to: arb, when: [escalate]}\n"
        "ends:\n  good: {from: rev.a, when: [approve], as: completed}\n  fine: {from: rev.b, when: [approve], as: completed}\n"
        "  settled: {from: arb, when: [proceed], as: completed}\n  no: {from: dev, when: [done_with_concerns], as: failed}\n"
        "channels:\n  - {from: dev, to: [rev, arb]}\n  - {from: rev, to: [dev, rev]}\n")


@pytest.fixture
def wide(fresh):
    """A host whose workflow has a transition for each way to be refused; every turn ends by asking a person."""
    host = with_workflows(fresh, {"wide": WIDE})
    host.plan(services={"gamma": [{"verdict": "escalate"}]}, default=[{"verdict": "blocked", "summary": "which one?"}])
    for service in ("alpha", "beta", "gamma"):
        host.worker(service)
    return host


def rights(host, create):
    host.put(os.path.join(host.dir, "trust", "coordinator.yaml"), f"kind: program\ncreate:\n  {create}\ncoordinate: true\n".encode())


def waiting(host, task="t-1", turns=1):
    """A run that waits for a person, with so many turns that have ended."""
    run = start(host, task, "--timeout", "30s", workflow="wide")
    return run, settled(host, run, turns)


def settled(host, run, turns):
    return wait_until(lambda: (lambda one: one if one["state"] == "waiting" and [turn["state"] for turn in one["turns"]] == ["completed"] * turns else None)
                      (show(host, run)), 30, lambda: f"{turns} turns to have ended: {show(host, run)}\n{host.all_logs()}")


STAGES = [  # from, to, data, code, stage, status
    ("nobody", "rev", (), "source_unknown", "resolve_source", "failed"),
    ("arb", "dev", (), "no_transitions", "resolve_transition", "blocked"),
    ("dev", "rev.b", (), "unknown_target", "resolve_transition", "blocked"),
    ("dev", "dev", (), "self_target", "resolve_transition", "blocked"),
    ("rev.a", "arb", (), "ambiguous_target", "resolve_transition", "blocked"),
    ("dev", "rev", ("--data", "k=v"), "unsupported_field", "resolve_transition", "blocked"),
    ("rev.b", "arb", (), "topology_denied", "authorize_topology", "blocked"),
    ("rev.a", "dev", (), "cycle_limit", "cycle_limit", "blocked"),
    ("dev", "arb", (), "hook_denied", "hook", "blocked"),
    ("dev", "rev.a", (), "not_permitted", "publish", "failed"),
]


@pytest.mark.core
def test_h01_h02_h04_h05_h08_each_stage_refuses_and_nothing_is_sent(wide):
    """H-01, H-02, H-04, H-05, H-08, H-30: for each stage what fails only there: code, stage and status; no topic has anything new, no edge counts."""
    run, _ = waiting(wide)
    hand(wide, run, "dev", "rev.a").ok()
    settled(wide, run, 2)
    hand(wide, run, "rev.a", "dev").ok()  # back, once: its cap
    settled(wide, run, 3)
    rights(wide, "{alpha: [owner], gamma: [arbiter]}")
    coordinator = wide.workers[0]
    wait_until(lambda: coordinator.events("trust.read"), what="the trust folder to be read")
    before, topics = show(wide, run), {topic for topic in wide.log.topics()}
    for number, (from_, to, data, code, stage, status) in enumerate(STAGES):
        done = hand(wide, run, from_, to, *data)
        result = done.one["result"]
        assert (done.one["code"], result["stage"], result["status"], result["deduped"]) == (code, stage, status, False), done
        assert done.status != 0 and result["text"], done
        after = show(wide, run)
        # A refused one is answered and counted as a request, and that is all that is left of it.
        assert (after["turns"], after["edges"], after["state"], after["requests"]) == (before["turns"], before["edges"], "waiting", number + 3), done
        assert not {turn for turns in sent(wide, run).values() for turn in turns} - {one["turn_id"] for one in before["turns"]}
    assert {topic for topic in wide.log.topics()} == topics
    assert len(wide.calls()) == 3
    rights(wide, "'*': [owner, reviewer, arbiter]")
    wait_until(lambda: len(coordinator.events("trust.read")) == 2, what="the trust folder to be read again")
    hand(wide, run, "dev", "rev.a").ok()
    sound(wide, settled(wide, run, 4))


def test_h02_publishing_is_what_it_was(wide):
    """H-02: beside runs, a plain publish goes its own way: no run knows of it, and no transition counts it."""
    run, shown = waiting(wide)
    turn = wide.published("beta", "reviewer", "t-plain")
    wide.ends(turn, "completed")
    after = show(wide, run)
    assert (after["turns"], after["edges"]) == (shown["turns"], shown["edges"])
    assert len(wide.run("runs", "list", "--json").ok().objects) == 1


@pytest.mark.core
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "expired"])
@pytest.mark.few_on_kafka("end", "completed", "expired")
def test_h03_no_end_takes_a_handoff(wide, end):
    """H-03: a run that is over takes none, however it ended: refused, and no topic has anything new."""
    if end == "completed":
        run, _ = waiting(wide)
        wide.plan(default=[{}])
        hand(wide, run, "dev", "rev.a").ok()
    elif end == "failed":
        wide.plan(default=[{"verdict": "done_with_concerns"}])
        run = start(wide, workflow="wide")
    elif end == "cancelled":
        run, _ = waiting(wide)
        ask(wide, "runs", "cancel", run, "--reason", "not needed").ok()
    else:
        run = start(wide, "t-1", "--deadline", proof.now(12), workflow="wide")
    shown = until(wide, run, end)
    before = sent(wide, run)
    done = hand(wide, run, "dev", "rev")
    assert (done.status, done.one["code"], done.one["result"]["stage"], done.one["result"]["status"]) == (6, "run_terminal", "resolve_run", "blocked"), done
    after = show(wide, run)
    assert (after["turns"], after["edges"], after["state"]) == (shown["turns"], shown["edges"], end)
    assert not any(turns - before.get(service, set()) for service, turns in sent(wide, run).items())


@pytest.mark.core
@pytest.mark.parametrize("to, slots", [("rev", ["rev.a", "rev.b"]), ("rev.a", ["rev.a"]), ("*", ["arb", "rev.a", "rev.b"])])
def test_h06_h07_whom_a_target_means(wide, to, slots):
    """H-06, H-07: a node means all its slots, a slot itself, '*' every node but the sender's: one turn for each, at its own service, under its own role."""
    run, _ = waiting(wide)
    result = hand(wide, run, "dev", to).ok().one["result"]
    assert (result["status"], sorted(result["targets"]), result["unreached"]) == ("queued", slots, []), result
    shown = settled(wide, run, 1 + len(slots))
    found = sorted((one["slot"], one["role"], one["service"]) for one in shown["turns"][1:])
    assert found == [{"arb": ("arb", "arbiter", "gamma"), "rev.a": ("rev.a", "reviewer", "beta"), "rev.b": ("rev.b", "reviewer", "beta")}[slot] for slot in slots]
    assert len(wide.calls(service="alpha")) == 1 and len(wide.calls()) == 1 + len(slots)  # none on the sender's own
    sound(wide, shown)


@pytest.mark.core
def test_h09_h10_only_loops_of_transitions_are_capped(fresh):
    """H-09, H-10: a cap on a one-way transition binds nothing, with or without a channel that leads back; without channels all is permitted (H-08)."""
    text = ("start: a\nnodes:\n  a: {role: owner, service: alpha}\n  b: {role: reviewer, service: beta}\n"
            "transitions:\n  go: {from: a, to: b, max_cycles: 1}\nends:\n  good: {from: b, when: [approve], as: completed}\n")
    channels = "channels:\n  - {from: a, to: [b]}\n  - {from: b, to: [a]}\n"
    host = with_workflows(fresh, {"with": text + channels, "without": text})
    host.plan(default=[{"verdict": "blocked"}])
    for service in ("alpha", "beta"):
        host.worker(service)
    for name in ("with", "without"):
        run = start(host, f"t-{name}", workflow=name)
        for n in range(3):
            settled(host, run, n + 1)
            hand(host, run, "a", "b", summary=f"round {n}").ok()
        shown = settled(host, run, 4)
        assert [(one["name"], one["taken"], one["cap"]) for one in shown["edges"]] == [("start", 1, 0), ("go", 3, 0)], shown
        sound(host, shown)


def test_h26_a_sibling_is_another(wide):
    """H-26: a slot hands to another slot of its own node; to itself it does not (above)."""
    run, _ = waiting(wide)
    hand(wide, run, "dev", "rev.a").ok()
    settled(wide, run, 2)
    assert hand(wide, run, "rev.a", "rev.b").ok().one["result"]["targets"] == ["rev.b"]
    sound(wide, settled(wide, run, 3))


@pytest.mark.core
def test_h27_a_cancelled_runs_turn_never_begins(fresh):
    """H-27: cancelled while its turn waits for a worker: when one comes, nothing is executed."""
    host = with_workflows(fresh, {"wide": WIDE})
    run = start(host, workflow="wide")
    turn = show(host, run)["turns"][0]["turn_id"]
    ask(host, "runs", "cancel", run, "--reason", "not needed").ok()
    host.drain("alpha")
    assert host.calls() == [] and host.state(turn) == "cancelled"
    assert until(host, run, "cancelled")["turns"][0]["state"] == "cancelled"


@pytest.mark.core
def test_h37_h44_what_an_executor_may_ask_for(fresh):
    """H-37, H-44: in a workflow without transitions an executor hands on nothing; along one whose hook declares no such key, not that data."""
    alone = "start: dev\nnodes:\n  dev: {role: owner, service: alpha}\nends:\n  good: {from: dev, when: [done], as: completed}\n"
    hooked = ("start: dev\nnodes:\n  dev: {role: owner, service: alpha}\n  rev: {role: reviewer, service: beta}\n"
              "hooks:\n  check: {command: [./check], data: [url]}\ntransitions:\n  review: {from: dev, to: rev, hook: check}\n"
              "ends:\n  good: {from: rev, when: [approve], as: completed}\n")
    host = with_workflows(fresh, {"alone": alone, "hooked": hooked})
    called = os.path.join(host.dir, "called")
    with open(os.open(os.path.join(host.dir, "check"), os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\ncat >>{called}\necho '{{\"verdict\":\"allow\"}}' >&3\n")
    for service in ("alpha", "beta"):
        host.worker(service)

    def asks(task, name, **handoff):
        host.plan(turns={"alpha": [{"result": {"handoff": dict({"target": "rev", "summary": "look"}, **handoff)}}]}, default=[{}])
        return start(host, task, workflow=name)

    shown = until(host, asks("t-1", "alone"), "waiting")
    assert (shown["code"], shown["stage"], len(shown["turns"])) == ("handoff_not_available", "policy", 1), shown
    shown = until(host, asks("t-2", "hooked", data={"url": "x", "other": "y"}), "waiting")
    assert (shown["code"], shown["stage"], len(shown["turns"])) == ("unsupported_field", "resolve_transition", 1), shown
    assert not os.path.exists(called)
    shown = until(host, asks("t-3", "hooked", data={"url": "x"}), "completed")
    assert json.loads(host.calls(turn=shown["turns"][1]["turn_id"])[0]["stdin"])["data"]["url"] == "x" and os.path.exists(called)
    sound(host, shown)


def test_a_running_run_keeps_its_workflow(wide):
    """DESIGN 8: the file is edited while a run waits: the run goes on by what it began with, the next one by what is there then."""
    run, shown = waiting(wide)
    workflow(wide, "wide", WIDE.replace("  one: {from: dev, to: rev.a}\n", ""))
    wide.run("workflow", "check", "wide.yaml").ok()
    hand(wide, run, "dev", "rev.a").ok()
    after = settled(wide, run, 2)
    assert after["digest"] == shown["digest"]
    other, now = waiting(wide, "t-2")
    assert now["digest"] != shown["digest"]
    assert hand(wide, other, "dev", "rev.a").one["code"] == "unknown_target"
