"""Work on an older revision of the task, and what the turns of a run cost (R-37)."""
import os

import pytest

import agents
from host import ready, wait_until
from runs import show, start, taken, until

FORK = ("version: 1\nname: fork\nstart: dev\nnodes:\n  dev: {role: owner}\n  one: {role: reviewer, service: beta}\n  two: {role: reviewer, service: gamma}\n"
        "transitions:\n  review: {from: dev, when: [done], to: '*'}\n  again: {from: one, when: [changes], to: dev, max_cycles: 2}\n"
        "ends:\n  good: {from: one, when: [approve], as: completed}\n  fine: {from: two, when: [approve], as: completed}\n")


@pytest.mark.core
@pytest.mark.parametrize("how", ["running", "parked"])
def test_r37_work_on_an_older_revision(fresh, how):
    """R-37: one reviewer wants changes; when the owner has made them, the other one's turn of the revision before is cancelled where it runs,
    and what it still says is not applied; both get a turn of the new revision."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles={"owner": {"chain": ["alpha"]}}, workflows=["fork.yaml"])
    with open(os.open(os.path.join(host.dir, "fork.yaml"), os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as file:
        file.write(FORK)
    stale = {"until": host.fake + "/never", "verdict": "blocked"} if how == "running" else {"class": "bad_request"}
    host.plan(turns={"alpha": [{}, {"until": host.fake + "/go"}], "beta": [{"verdict": "changes"}, {}], "gamma": [stale, {}]})
    ready(host.worker("coordinator", "c1"))
    for service in ("alpha", "beta", "gamma"):
        host.worker(service)
    run = start(host, workflow="fork")
    wait_until(lambda: [(one["slot"], one["state"]) for one in show(host, run)["turns"]][2:] == [("two", how), ("dev", "running")], 30,
               lambda: f"the owner's second turn: {show(host, run)}\n{host.all_logs()}")
    old = show(host, run)["turns"][2]
    open(host.fake + "/go", "w", encoding="ascii").close()
    shown = until(host, run, "completed")
    host.ends(old["turn_id"], "cancelled")
    assert "the task is at revision 2, and this is about an older one" in host.run("turns", "show", old["turn_id"]).ok().out
    kept = next(one for one in shown["turns"] if one["turn_id"] == old["turn_id"])
    assert (kept["state"], kept["code"], kept["verdict"], kept["task_rev"]) == ("cancelled", "stale_revision", None, 1), kept
    assert [(one["slot"], one["task_rev"]) for one in shown["turns"]] == [("dev", 0), ("one", 1), ("two", 1), ("dev", 1), ("one", 2), ("two", 2)]
    assert taken(shown) == {"start": 1, "review": 2, "again": 1} and shown["task_rev"] == 2


@pytest.mark.core
def test_what_agents_cost_is_told_of_runs(fresh):
    """What turns of agents cost (told by the program, or by `prices` of their tokens; all attempts of a turn) stands at the turn, its
    transition and the run, in `runs show` and `run_ended`."""
    priced = {"model": "m-1", "prices": {"input": 10000000, "cached": 1000000, "output": 50000000}}
    host = fresh.configure({"claude": agents.service(fresh, "claude", "claude"), "codex": agents.service(fresh, "codex", "codex", executor=priced)},
                           roles={"owner": {"chain": ["codex"]}, "reviewer": {"chain": ["claude"]}, "arbiter": {"chain": ["claude"]}})
    host.plan(default=[{}], services={"codex": [{"verdict": "done"}], "claude": [{}]})
    ready(host.worker("coordinator", "c1"))
    for service in ("claude", "codex"):
        host.worker(service)
    run = start(host)
    shown = until(host, run, "completed")
    costs = {one["by"]: one["cost_micros"] for one in shown["turns"]}
    assert costs["start"] > 0 and costs["review"] > 0, shown
    assert {one["name"]: one["cost_micros"] for one in shown["edges"]} == costs and shown["cost_micros"] == sum(costs.values())
    told = next(one.json() for one in host.log.records(host.topic("outcomes", None)) if one.json()["event"] == "run_ended")
    assert told["result"]["cost_micros"] == sum(costs.values())
    text = host.run("runs", "show", run).ok().out
    for micros in costs.values():
        assert text.count(f"{micros // 1000000}.{micros % 1000000 // 100:04d}") == 2, text
