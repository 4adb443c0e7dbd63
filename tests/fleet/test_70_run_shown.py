"""What people see of a run: its path as a graph, who is at turn, what comes next, what it cost."""
import os

import pytest

from host import ready, wait_until
from runs import CHAINS, show, sound, start, until


@pytest.fixture
def runs(fresh):
    """A host with an owner's, a reviewer's and an arbiter's service, and a coordinator."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    ready(host.worker("coordinator", "c1"))
    return host


@pytest.mark.core
def test_the_path_is_drawn(runs):
    """`runs show` draws the path within 80 columns: rounds, who took over, who is at turn and what comes next, what a person can do."""
    runs.plan(turns={"beta": [{"verdict": "changes", "result": {"cost": {"micros": 12500}}}, {"class": "auth"}, {"verdict": "changes"}],
                     "gamma": [{"verdict": "changes", "result": {"cost": {"micros": 3000}}}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    run = start(runs)
    shown = until(runs, run, "waiting")
    text = runs.run("runs", "show", run).ok().out
    lines = text.splitlines()
    assert text.isascii() and "\x1b" not in text and all(len(one) <= 80 for one in lines[lines.index("start"):]), text
    graph = [" ".join(one.split()) for one in lines[lines.index("start"):lines.index("", lines.index("start"))]]
    assert [one for one in graph if one[0] == "|"] == ["|", "| review", "| changes", "| review, round 2", "| changes, round 2", "| review, round 3", "| changes, round 3",
                                                       "| review, round 4"], text
    assert graph[4].startswith("#2 reviewer at beta changes") and graph[4].endswith(" 0.0125"), text
    assert graph[8].startswith("#4 reviewer at beta -> gamma (2) changes") and graph[8].endswith(" 0.0030"), text
    assert f"next: `baton runs touch {run[:10]}` decides again" in lines and f"--run {run[:10]} --from reviewer --to arbiter" in text, text
    edges = {one["name"]: one["cost_micros"] for one in shown["edges"]}
    assert edges == {"start": 0, "review": 21500, "changes": 0} and shown["cost_micros"] == 21500
    assert [one.split()[4] for one in lines if one.startswith("review ")] == ["0.0215"], text
    assert all(turn["turn_id"] in text for turn in shown["turns"])


@pytest.mark.core
def test_who_is_at_turn_is_told(runs):
    """`runs show` of a run that goes on: who is at turn, since when and why, and where each verdict leads; of one that is over: how it ended."""
    runs.plan(turns={"beta": [{"until": runs.fake + "/go", "verdict": "approve"}]})
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    wait_until(lambda: [one["state"] for one in show(runs, run)["turns"]] == ["completed", "running"], what="the reviewer to be at work")
    text = runs.run("runs", "show", run).ok().out
    assert "at turn: reviewer at beta as reviewer, running for " in text and "because: owner said done (review)" in text, text
    assert " :  changes -> owner (3 left)\n :  dispute -> arbiter\n :  approved -> the run is completed\n" in text, text
    open(os.path.join(runs.fake, "go"), "w", encoding="ascii").close()
    sound(runs, until(runs, run, "completed"))
    assert " |  approved\ncompleted\n" in runs.run("runs", "show", run).ok().out
