"""A turn is one piece of work with one role: what its failures, its passing on and its end leave alone (R rows).

How a turn is passed on, and what becomes of it there, is in test_28 and test_29; here is what must not come of it.
"""
import os
import time

import pytest

from host import ROLES, SLOW, wait_until
from test_28_delegation import handoffs, newest, outcomes, story

CHAINED = {role: {"chain": ["alpha", "beta"]} for role in ROLES}
VERDICTS = {"owner": "done", "reviewer": "approve", "arbiter": "proceed"}


def renewals(host):
    """Where renewals of attempts lie in alpha's control topic, each with its turn; its owner trims what it has read."""
    return {(record.partition, record.offset): record.key.decode() for record in host.log.records(host.topic("control", "alpha"))
            if record.json()["kind"] == "renew"}


def test_r53_the_four_guards(host):
    """R-53, R-47, R-15, R-20: in the order of the rule: foreign claims, one continuation, fail closed, an explicit role."""
    host.configure({"alpha": None, "beta": None}, roles=CHAINED)
    host.plan(services={"alpha": [{"class": "auth"}], "beta": [{}]})
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("beta")
    assert not host.calls() and newest(host, turn, "beta") is None, "beta does not see what is alpha's"
    host.drain("alpha")
    assert newest(host, turn, "alpha")["state"] == "delegated" and len(handoffs(host, turn, "beta")) == 1
    host.drain("beta")
    assert host.show(turn)["state"] == "completed" and [call["role"] for call in host.calls()] == ["reviewer", "reviewer"]
    host.log.append(host.handoff(host.turn(drop=("role",), turn_id="0" * 32, summary="reviewer: please review")))
    host.drain("alpha")
    assert [one["code"] for one in host.letters()] == ["role_unresolved"] and len(host.calls()) == 2
    assert host.run("publish", "--service", "alpha", "--task", "t-2", "--json").status == 2
    assert [one["turn_id"] for one in host.turns("--service", "beta")] == [turn] and len(host.calls()) == 2


def test_r01_a_refused_credential_changes_nothing_of_the_work(host):
    """R-01, R-10, R-52: a reviewer's 401 without a fallback: still that turn of that task, open, and nobody is told of a verdict."""
    host.plan(default=[{"class": "auth", "message": "401"}])
    turn = host.published("alpha", "reviewer", "t-1", "--rev", "7", "--intent", "look")
    born = handoffs(host, turn, "alpha")[0].json()
    host.drain("alpha")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["task_id"], shown["task_rev"], shown["intent"]) == ("parked", "reviewer", "t-1", 7, "look")
    assert shown["verdict"] is None and [one["turn_id"] for one in host.turns()] == [turn]
    record = newest(host, turn, "alpha")
    for name in ("turn_id", "origin", "service", "role", "task_id", "task_rev", "run_id", "epoch", "intent", "created_at"):
        assert record[name] == born[name], name
    # Task and run are the coordinator's: a worker, whatever fails, writes neither of them.
    for topic in (host.topic("requests", None), host.topic("runs", None)):
        assert host.log.records(topic) == [], topic
    assert [one["event"] for one in outcomes(host, turn)] == ["parked"]


@pytest.mark.core
def test_r08_r09_r11_a_delegation_leaves_nothing_behind(fresh):
    """R-09, R-11, R-08: the attempt's place is free at once, however long a lease is; no retry, no dead letter, no second
    handoff comes of it, though its list has a retry behind the delegation."""
    host = fresh.configure({"alpha": fresh.service(parallel=1), "beta": None, "gamma": None}, lease="5m", retry={"rest": "0s"},
                           roles={"reviewer": {"chain": ["alpha", "beta", "gamma"]}}, on_failure={"auth": ["delegate", "retry", "park"]})
    host.plan(default=[{}], tasks={"t-1": [{"class": "auth"}], "t-2": [{"class": "unavailable"}, {}]})
    turn, after = host.published("alpha", "reviewer", "t-1"), host.published("alpha", "reviewer", "t-2")
    host.worker("alpha", "w1")
    host.ends(after, "completed")  # in the one place for both; when its retry was started, that of the first would have been, too
    record = newest(host, turn, "alpha")
    assert record["state"] == "delegated" and "lease" not in record and record.get("not_before") is None, record
    assert len(handoffs(host, turn, "beta")) == 1 and not handoffs(host, turn, "gamma") and len(handoffs(host, turn, "alpha")) <= 1
    assert not host.letters() and len(host.calls(turn=turn)) == 1 and [one["event"] for one in outcomes(host, turn)] == ["delegated"]


@pytest.mark.heavy
def test_r08_a_delegated_attempt_is_not_renewed(fresh):
    """R-08: attempts on partitions that moved away are renewed while they run, and no more once they are delegated."""
    beat, go = 0.3 * SLOW, os.path.join(fresh.fake, "go")
    host = fresh.configure({"alpha": fresh.service(parallel=12), "beta": None}, roles=CHAINED, session=f"{int(5000 * beat)}ms",
                           heartbeat=f"{int(1000 * beat)}ms", lease=f"{int(5000 * beat)}ms", lease_grace=f"{int(2000 * beat)}ms")
    host.plan(services={"alpha": [{"until": go, "class": "auth"}]})
    first = host.worker("alpha", "w1")
    turns = [host.published("alpha", "reviewer", f"t-{n}") for n in range(12)]
    host.called(len(turns))
    host.shared(first, host.worker("alpha", "w2"))
    wait_until(lambda: set(renewals(host).values()) & set(turns), what="attempts that moved to be renewed")
    open(go, "w", encoding="ascii").close()
    for turn in turns:
        host.ends(turn, "delegated")
    called = len(host.calls())  # more than turns where the machine stood still for longer than a lease
    time.sleep(2 * beat)  # one may be on its way while its owner decides
    known, over = set(renewals(host)), time.monotonic() + 6 * beat
    while time.monotonic() < over:
        assert set(renewals(host)) <= known, "renewed after its end"
        time.sleep(beat / 10)
    assert len(host.calls()) == called and not host.letters()


def test_r14_r49_what_is_prepared_is_the_turns_role(fresh):
    """R-49, R-14: whoever executes it, and at whatever attempt, a claimed handoff is prepared for the role of its turn."""
    host = fresh.configure({"alpha": None, "beta": fresh.service(kind="child")},
                           roles={role: {"chain": ["alpha", "beta"], "read_only": role != "owner"} for role in ROLES})
    again = {"class": "no_verdict"}
    host.plan(services={"alpha": [again, {"class": "auth"}], "beta": [again, again, again, {}]})
    turns = {host.published("alpha", role, f"t-{role}"): role for role in ROLES}
    host.drain("alpha")
    host.drain("beta")
    for turn, role in turns.items():
        shown = host.show(turn)
        assert (shown["role"], shown["verdict"], len(shown["attempts"])) == (role, VERDICTS[role], 4), shown
        calls = host.calls(turn=turn)
        assert [(call["service"], call["role"], call["stdin_role"]) for call in calls] == [
            ("alpha", role, role), ("alpha", role, role), ("beta", role, role), ("beta", role, role)]
        assert {call["env"]["BATON_READ_ONLY"] for call in calls if call["service"] == "alpha"} == {"0" if role == "owner" else "1"}


@pytest.mark.core
def test_r30_r32_workers_create_no_turn(fresh):
    """R-30, R-32: verdicts, failures, passing on, replays, and a result that asks for a next step: in all topics there are the
    turns that were published, and no others; what follows a verdict is decided by who moves runs, when the turn is over."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=CHAINED)
    wish = {"verdict": "changes", "handoff": {"target": "beta", "role": "owner", "summary": "mend it"}}
    host.plan(default=[{}], tasks={"t-wish": [{"result": wish}], "t-passed": [{"class": "auth"}, {}],
                                   "t-parked": [{"class": "bad_request"}, {}], "t-escalated": [{"verdict": "escalate"}]})
    turns = {task: host.published("alpha", "reviewer", task) for task in ("t-wish", "t-passed", "t-parked", "t-escalated")}
    host.worker("alpha", "w1")
    host.worker("beta", "w1")
    host.ends(turns["t-parked"], "parked")
    for words in ((), ("--to", "beta")):
        host.replay("0" * 32, *words).refused("turn_not_found", 5)
    host.replay(turns["t-parked"], "--to", "beta").ok()
    for turn in turns.values():
        host.ends(turn, "completed")
    assert host.show(turns["t-wish"])["result"]["handoff"] == wish["handoff"]
    for kind, service in (("handoff", "alpha"), ("handoff", "beta"), ("turns", "alpha"), ("turns", "beta"), ("outcomes", None)):
        found = {record.key.decode() for record in host.log.records(host.topic(kind, service)) if not record.key.startswith(b"~")}
        assert found <= set(turns.values()), f"{kind} {service}: {found - set(turns.values())}"
    assert {one["turn_id"] for one in host.turns()} == set(turns.values()) == {call["turn"] for call in host.calls()}
    assert story(host.show(turns["t-passed"])) == [(1, "alpha", "delegated", "auth"), (2, "beta", "completed", None)]
    for topic in (host.topic("requests", None), host.topic("runs", None)):
        assert host.log.records(topic) == [], topic
