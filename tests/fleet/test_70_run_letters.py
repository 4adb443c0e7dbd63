"""Requests of runs that were rejected, as operators see them; ended runs leave the run log (X26, rule 30)."""
import time

import pytest

import proof
from host import ready, wait_until
from runs import CHAINS, show, start, until

DAY = 24 * 3600


@pytest.fixture
def runs(fresh):
    """A host with an owner's and a reviewer's service, and a coordinator."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    ready(host.worker("coordinator", "c1"))
    for service in ("alpha", "beta"):
        host.worker(service)
    return host


@pytest.mark.core
def test_x26_a_rejected_request_is_shown_and_written_again(runs):
    """X26: `dlq list` and `show` name a request that was not proven, whose it claims to be and why; once its key is trusted a replay lets it in."""
    run = start(runs)
    until(runs, run, "completed")
    assert runs.letters() == []
    key = proof.Key.new()
    value = proof.compact({"version": 1, "kind": "reopen", "id": "f" * 32, "run_id": run, "request_no": 1, "at": proof.now(), "body": {"reason": "look again"}})
    signature = proof.proof(key, runs.fleet, "request", run, value)
    runs.tampered = True
    runs.log.append(proof.Record(runs.topic("requests", None), run.encode(), value, [("baton-sig", signature.encode())]))
    letter = runs.letter("unknown_key")
    assert (letter["service"], letter["run_id"], letter["request"], letter["kind"], letter["turn_id"]) == ("coordinator", run, "reopen", "rejected", None), letter
    assert letter["id"].startswith("coordinator:") and runs.letters("--service", "coordinator") == [letter] and runs.letters("--service", "alpha") == []
    text = runs.run("dlq", "list").ok().out
    assert letter["id"] in text and run in text
    text = runs.run("dlq", "show", letter["id"]).ok().out
    assert f"run        {run}" in text and "claims     reopen" in text and "unknown_key" in text, text
    assert runs.run("dlq", "show", letter["id"], "--value").ok().out == value.decode()
    assert runs.run("dlq", "show", letter["id"], "--json").ok().one["topic"] == runs.topic("requests", None)
    runs.trust_key("carol", key, "kind: person\nrequest: [reopen]\n")
    runs.replay(letter["id"]).ok()
    wait_until(lambda: show(runs, run)["epoch"] == 2, 20, lambda: f"the run to be reopened\n{runs.all_logs()}")
    assert runs.run("dlq", "replay", "coordinator:0:99999", "--json").status == 5
    runs.run("dlq", "show", "coordinator:0:99999", "--json").refused("handoff_not_found", 5)


@pytest.mark.drivers("local")  # brokers date what they take
def test_rule_30_an_ended_run_leaves_the_run_log(runs):
    """Rule 30: 90 days after its end, by the log's dates, and not before; what is open stays for ever; it is not found then."""
    topic = runs.topic("runs", None)
    runs.plan(tasks={"t-open": [{"until": runs.fake + "/go"}]})
    old, younger, still = (start(runs, task, "--key", task) for task in ("t-old", "t-younger", "t-open"))
    until(runs, old, "completed")
    until(runs, younger, "completed")
    coordinator = runs.workers[0]
    coordinator.stop()
    runs.tampered = True
    for run, days in ((old, 91), (younger, 89), (still, 400)):
        record = next(one for one in runs.log.records(topic) if one.key == run.encode())
        runs.log.append(proof.Record(topic, record.key, record.value, record.headers), at=time.time() - days * DAY)
    second = ready(runs.worker("coordinator", "c2"))
    until(runs, start(runs, "t-new"), "completed")  # by this the log knows what time it is
    wait_until(lambda: second.events("runs.forgotten"), 90, lambda: f"a run to be forgotten\n{second.log[-3000:]}")
    runs.run("runs", "show", old, "--json").refused("run_not_found", 5)
    assert show(runs, younger)["state"] == "completed" and show(runs, still)["state"] == "active"
    assert sum(one["runs"] for one in second.events("runs.forgotten")) == 1
    open(runs.fake + "/go", "w", encoding="ascii").close()
    until(runs, still, "completed")
