"""Runs: the paired review from start to end, what people ask of runs, and what is refused (H rows, S4, S12, L-05)."""
import json
import os
import signal
import subprocess

import pytest

from host import binary, ready, wait_until
from runs import CHAINS, ask, path, show, sound, start, taken, until


@pytest.fixture
def runs(fresh):
    """A host with an owner's, a reviewer's and an arbiter's service, and a coordinator."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    ready(host.worker("coordinator", "c1"))
    return host


@pytest.mark.core
def test_owner_and_reviewer_until_it_is_approved(runs):
    """The owner does, the reviewer asks for changes twice, then approves: completed, each turn once, the task's revision with each `done`."""
    runs.plan(turns={"beta": [{"verdict": "changes", "summary": "mend a"}, {"verdict": "changes", "summary": "mend b"}, {"verdict": "approve", "summary": "fine"}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    run = start(runs)
    shown = until(runs, run, "completed")
    o, r = ("owner", "owner", "alpha", "done"), ("reviewer", "reviewer", "beta")
    assert path(shown) == [("start",) + o, ("review",) + r + ("changes",), ("changes",) + o, ("review",) + r + ("changes",), ("changes",) + o,
                           ("review",) + r + ("approve",)]
    assert taken(shown) == {"start": 1, "review": 3, "changes": 2} and shown["task_rev"] == 3 and shown["task_status"] == "review_ready"
    assert shown["why"] == "approved: fine"
    sound(runs, shown)
    second = json.loads(runs.calls(turn=shown["turns"][2]["turn_id"])[0]["stdin"])
    assert second["summary"] == "mend a" and second["data"] == {"task": "Mend the parser", "from": "reviewer", "verdict": "changes"}, second
    assert not runs.calls(service="gamma")
    assert runs.run("runs", "wait", run).status == 0
    text = runs.run("runs", "show", run).ok().out
    assert "completed" in text and "changes" in text and "TRANSITION" in text


def test_r42_the_arbiter_decides(runs):
    """R-42: a reviewer's escalation, and nothing else, brings the arbiter; what it says goes on as it says."""
    runs.plan(turns={"beta": [{"verdict": "escalate", "summary": "we do not agree"}, {"verdict": "approve"}], "gamma": [{"verdict": "revise", "summary": "do it so"}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    shown = until(runs, start(runs), "completed")
    assert [(one["by"], one["role"]) for one in shown["turns"]] == [("start", "owner"), ("review", "reviewer"), ("dispute", "arbiter"), ("revise", "owner"),
                                                                   ("review", "reviewer")]
    sound(runs, shown)


@pytest.mark.core
def test_a_provider_that_refuses_is_no_transition(runs):
    """The reviewer's provider refuses its credentials in round two: another service goes on as reviewer, in the same turn."""
    runs.plan(turns={"beta": [{"verdict": "changes"}, {"class": "auth"}], "gamma": [{"verdict": "approve"}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    shown = until(runs, start(runs), "completed")
    last = shown["turns"][-1]
    assert (last["by"], last["role"], last["born"], last["service"], last["attempt"]) == ("review", "reviewer", "beta", "gamma", 2)
    assert taken(shown) == {"start": 1, "review": 2, "changes": 1}
    sound(runs, shown)


@pytest.mark.core
def test_h09_h47_i17_a_cap_waits_for_a_person(runs):
    """H-09, H-47, I17: at the cap the run waits and says so; no agent and nobody unattended may touch it; a person's touch lets it go on."""
    runs.plan(turns={"beta": [{"verdict": "changes"}] * 4 + [{"verdict": "approve"}]})
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    shown = until(runs, run, "waiting")
    assert (shown["code"], shown["stage"]) == ("cycle_limit", "cycle_limit") and taken(shown)["changes"] == 3 and len(shown["turns"]) == 8, shown
    assert runs.run("runs", "wait", run).status == 3
    assert runs.run("runs", "touch", run, "--json", environment={"BATON_MODE": "unattended"}).refused("person_required", 4)
    inside = {"BATON_MODE": "attended", "BATON_ATTEMPT": "1"}
    assert runs.run("runs", "touch", run, "--json", environment=inside).refused("person_required", 4)
    assert show(runs, run)["requests"] == 0
    ask(runs, "runs", "touch", run, "--reason", "one more round").ok()
    shown = until(runs, run, "completed")
    assert [(one["name"], one["taken"], one["total"]) for one in shown["edges"]] == [("start", 0, 1), ("review", 1, 5), ("changes", 1, 4)]
    sound(runs, shown)


@pytest.mark.core
def test_a_parked_turn_makes_its_run_wait_and_a_replay_wakes_it(runs):
    """Nobody can review: the turn is parked, its run waits; a replay after the mending, and both go on under the same role."""
    runs.plan(services={"beta": [{"class": "bad_request"}]}, default=[{}])
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    shown = until(runs, run, "waiting")
    turn = shown["turns"][-1]
    assert (turn["state"], turn["role"]) == ("parked", "reviewer") and turn["turn_id"] in shown["why"]
    runs.plan(default=[{}])
    runs.replay(turn["turn_id"]).ok()
    shown = until(runs, run, "completed")
    assert shown["turns"][-1]["turn_id"] == turn["turn_id"] and shown["turns"][-1]["attempt"] == 2 and len(shown["turns"]) == 2
    sound(runs, shown)


@pytest.mark.core
def test_h03_h27_a_cancelled_run_takes_nothing_and_a_reopened_one_begins_anew(runs):
    """H-03, H-27, I10: its open turn is cancelled where it runs, and nothing follows; reopening raises the epoch, and older results count no more."""
    runs.plan(default=[{"until": runs.fake + "/go"}])
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    turn = show(runs, run)["turns"][0]["turn_id"]
    runs.called(1, turn=turn)
    ask(runs, "runs", "cancel", run, "--reason", "not needed").ok()
    assert runs.ends(turn, "cancelled")
    shown = until(runs, run, "cancelled")
    assert len(shown["turns"]) == 1 and shown["turns"][0]["state"] == "cancelled"
    ask(runs, "runs", "cancel", run, "--reason", "again").refused("run_terminal", 6)
    ask(runs, "handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "go").refused("run_terminal", 6)
    ask(runs, "runs", "reopen", run, "--reason", "by mistake").ok()
    open(runs.fake + "/go", "w", encoding="ascii").close()
    shown = until(runs, run, "completed")
    assert shown["epoch"] == 2 and [(one["epoch"], one["by"], one["state"]) for one in shown["turns"]] == [
        (1, "start", "cancelled"), (2, "start", "completed"), (2, "review", "completed")]
    sound(runs, shown)


@pytest.mark.core
def test_h13_i20_two_people_at_once(runs):
    """H-13, I20: of requests that were decided on the same state one is taken, and the other told so: one turn follows."""
    runs.plan(turns={"alpha": [{"verdict": "blocked"}, {}]}, tasks={f"t-{n}": [{"until": f"{runs.fake}/go-{n}"}] for n in range(5)})
    ready(runs.worker("coordinator", "c2"))
    for service in ("alpha", "beta"):
        runs.worker(service)
    for n in range(5):
        run = start(runs, f"t-{n}")
        until(runs, run, "waiting")
        words = [binary(), "handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--json", "--timeout", "60s", "--summary"]
        both = [subprocess.Popen(words + [f"go {one}"], cwd=runs.dir, env=dict(runs.environment, BATON_MODE="attended"), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
                for one in range(2)]
        codes = sorted(json.loads(one.communicate()[0])["code"] or "ok" for one in both)
        assert codes in (["duplicate", "ok"], ["ok", "turn_open"]), codes  # the second decided on what was before the first, or after it
        open(runs.fake + f"/go-{n}", "w", encoding="ascii").close()
        shown = until(runs, run, "completed")
        assert [one["by"] for one in shown["turns"]] == ["start", "review"], shown
        sound(runs, shown)


@pytest.mark.core
def test_h15_h16_the_same_handoff_while_it_is_open(runs):
    """H-15, H-16: asked again with the same words it is queued already, and nothing new is sent; once it has ended, it is a new one."""
    runs.plan(turns={"alpha": [{"verdict": "blocked"}], "beta": [{"until": runs.fake + "/go", "verdict": "blocked"}, {}]})
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    until(runs, run, "waiting")
    words = ("handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "look again")
    first = ask(runs, *words).ok().one["result"]
    again = ask(runs, *words).ok().one["result"]
    assert (first["deduped"], again["deduped"], again["status"]) == (False, True, "queued")
    assert len(show(runs, run)["turns"]) == 2 and taken(show(runs, run))["review"] == 1
    open(runs.fake + "/go", "w", encoding="ascii").close()
    until(runs, run, "waiting")
    assert ask(runs, *words).ok().one["result"]["deduped"] is False
    shown = until(runs, run, "completed")
    assert len(shown["turns"]) == 3 and taken(shown)["review"] == 2
    sound(runs, shown)


def test_i07_i08_the_task_travels_whole(runs, tmp_path):
    """I07, I08, I14: every turn has the run's payload byte for byte, and why it came from whom."""
    text = "line\n\u00e9\u2028" * 500
    (tmp_path / "task.md").write_text(text, encoding="utf-8")
    runs.plan(turns={"beta": [{"verdict": "changes", "summary": "mend the first line", "result": {"data": {"line": "1"}}}, {}]}, default=[{}])
    for service in ("alpha", "beta"):
        runs.worker(service)
    shown = until(runs, start(runs, "t-1", "--payload", str(tmp_path / "task.md"), "--data", "k=v"), "completed")
    turns = [json.loads(runs.calls(turn=one["turn_id"])[0]["stdin"]) for one in shown["turns"]]
    assert [one["payload"]["text"] for one in turns] == [text] * 4
    assert turns[0]["data"] == {"k": "v"}
    assert (turns[2]["summary"], turns[2]["data"]["from"], turns[2]["data"]["verdict"], turns[2]["data"]["line"]) == ("mend the first line", "reviewer", "changes", "1")


def test_i19_the_same_start_twice_is_one_run(runs):
    """I19: a start repeated by its key is the same run; another key is another."""
    for service in ("alpha", "beta"):
        runs.worker(service)
    first = start(runs, "t-1", "--key", "k-1")
    assert start(runs, "t-1", "--key", "k-1") == first
    assert start(runs, "t-2", "--key", "k-2") != first
    until(runs, first, "completed")
    assert start(runs, "t-1", "--key", "k-1") == first and len(runs.calls(task="t-1")) == 2


def test_l05_starts_that_are_refused(runs):
    """L-05, S12: no run from inside an attempt, none of a workflow that is not there, none by a program where people start it."""
    words = ["runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", "x", "--json"]
    runs.run(*words, environment={"BATON_ATTEMPT": "1"}).refused("nested_start", 4)
    gone = runs.run(*[word.replace("paired-review", "no-such") for word in words])
    assert gone.status == 2 and gone.one["code"] == "invalid_request" and "no-such" in gone.one["result"]["text"], gone
    runs.principal("bot", "kind: program\nrequest: [start, cancel]\n")
    runs.run(*words, "--set", "identity=bot").refused("invoke_denied", 4)
    runs.principal("carol", "kind: person\nrequest: [cancel]\n")
    runs.run(*words, "--set", "identity=carol").refused("not_permitted", 4)
    assert runs.run("runs", "list", "--json").ok().objects == [] and runs.calls() == []


def test_h01_h04_h05_h26_h37_h45_handoffs_by_people(runs):
    """H-01, H-04, H-05, H-22, H-26, H-37, H-45, R-32: each refusal with its stage and nothing published; then along a declared transition."""
    runs.plan(turns={"alpha": [{"verdict": "needs_context", "summary": "which one?"}, {}]}, default=[{}])
    for service in ("alpha", "beta"):
        runs.worker(service)
    run = start(runs)
    shown = until(runs, run, "waiting")
    assert shown["why"] == "owner says needs_context: which one?" and shown["code"] is None

    def asked(*more, **words):
        given = {"from": "owner", "to": "reviewer", "summary": "take the first"}
        given.update(words)
        return ask(runs, "handoff", "--run", run, "--from", given["from"], "--to", given["to"], "--summary", given["summary"], *more)

    for words, more, code, stage in (({"from": "nobody"}, (), "source_unknown", "resolve_source"), ({"to": "nobody"}, (), "unknown_target", "resolve_transition"),
                                     ({"to": "owner"}, (), "self_target", "resolve_transition"), ({}, ("--data", "k=v"), "unsupported_field", "resolve_transition")):
        done = asked(*more, **words)
        assert (done.one["code"], done.one["result"]["stage"]) == (code, stage), done
        assert done.one["result"]["status"] == ("failed" if code == "source_unknown" else "blocked")
    asked(to="Reviewer").refused("invalid_request", 2)  # I11: an exact name, or none
    asked(summary=" ").refused("invalid_request", 2)  # H-45
    assert len(show(runs, run)["turns"]) == 1 and len(runs.calls()) == 1
    done = asked().ok().one
    assert (done["result"]["status"], done["result"]["targets"]) == ("queued", ["reviewer"])
    shown = until(runs, run, "completed")
    assert [(one["by"], one["from"]) for one in shown["turns"]] == [("start", None), ("review", "owner")]
    sound(runs, shown)


def test_h44_an_executor_asks_for_a_handoff(fresh, tmp_path):
    """H-44, H-54: what a result asks for is one of the sender's transitions, or nothing is published and a person is asked."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=["ask.yaml"])
    with open(os.path.join(host.dir, "ask.yaml"), "w", encoding="utf-8") as file:
        file.write("version: 1\nname: ask\nstart: dev\nnodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\n  end: {role: arbiter}\n"
                   "transitions:\n  review: {from: dev, to: rev}\n  settle: {from: dev, to: end, when: [done]}\n"
                   "ends:\n  good: {from: rev, when: [approve], as: completed}\n  settled: {from: end, when: [proceed], as: completed}\n")
    os.chmod(os.path.join(host.dir, "ask.yaml"), 0o644)
    ready(host.worker("coordinator", "c1"))
    for service in ("alpha", "beta", "gamma"):
        host.worker(service)
    host.plan(turns={"alpha": [{"result": {"handoff": {"target": "rev", "summary": "look at this"}}}]}, default=[{}])
    shown = until(host, start(host, "t-1", workflow="ask"), "completed")
    assert [one["by"] for one in shown["turns"]] == ["start", "review"]
    assert json.loads(host.calls(turn=shown["turns"][1]["turn_id"])[0]["stdin"])["summary"] == "look at this"
    host.plan(turns={"alpha": [{"result": {"handoff": {"target": "Rev", "summary": "look"}}}]}, default=[{}])
    shown = until(host, start(host, "t-2", workflow="ask"), "waiting")
    assert (shown["code"], shown["stage"], len(shown["turns"])) == ("unknown_target", "resolve_transition", 1)
    for n, handoff in enumerate(({"target": ["rev", "end"], "summary": "both"}, {"summary": "somebody"})):  # I01: one target, by its name
        host.plan(turns={"alpha": [{"result": {"handoff": handoff}}]}, default=[{}])
        shown = until(host, start(host, f"t-2{n}", workflow="ask"), "waiting")
        assert (shown["code"], len(shown["turns"])) == ("unknown_target", 1), shown
    host.plan(default=[{}])
    shown = until(host, start(host, "t-3", workflow="ask"), "completed")
    assert [one["by"] for one in shown["turns"]] == ["start", "settle"]


@pytest.mark.core
@pytest.mark.seconds(240)
def test_coordinators_are_killed_and_each_run_ends_once(runs):
    """Two coordinators, killed by turns while forty runs go round: each ends once, each edge counts the handoffs that were taken."""
    runs.plan(turns={"beta": [{"verdict": "changes"}, {"verdict": "approve"}]})
    for service in ("alpha", "beta"):
        runs.worker(service)
    killed = [runs.workers[0], ready(runs.worker("coordinator", "c2"))]
    started = [start(runs, f"t-{n}", "--key", f"k-{n}", "--timeout", "60s") for n in range(20)]
    for round_ in range(6):
        killed[round_ % 2].kill()
        killed[round_ % 2] = runs.worker("coordinator", f"c{round_ % 2 + 1}")
        started += [start(runs, f"t-{n}", "--key", f"k-{n}", "--timeout", "60s") for n in range(len(started), min(40, len(started) + 5))]
        ready(killed[round_ % 2])
    for run in started:
        shown = until(runs, run, "completed", 120)
        assert taken(shown) == {"start": 1, "review": 2, "changes": 1}, shown
        sound(runs, shown)
    assert len({call["turn"] for call in runs.calls()}) == 40 * 4


def test_runs_are_followed(runs):
    """`runs start --wait` and `runs watch` tell each turn once as it comes and ends, and end with what a script can use."""
    runs.plan(turns={"beta": [{"verdict": "changes"}, {"verdict": "approve"}]})
    for service in ("alpha", "beta"):
        ready(runs.worker(service))
    done = runs.run("runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", "Mend it", "--wait", "--timeout", "60s")
    assert done.status == 0, done
    lines = done.out.splitlines()
    assert lines[-1].endswith("is completed: approved: as planned"), done
    assert sum(": changes" in line and "#2 review" in line for line in lines) == 1 and sum("#4 review" in line and ": approve" in line for line in lines) == 1, done
    run = runs.run("runs", "list", "--json").ok().one["run_id"]
    seen = runs.run("runs", "watch", run, "--json").ok().objects
    assert [one["state"] for one in seen] == ["completed"]
    assert runs.run("runs", "watch", run[:8]).ok().out.splitlines()[-1].endswith("is completed: approved: as planned")


@pytest.mark.drivers("local")
def test_dev_runs_all_of_it_in_view(fresh):
    """`baton dev`: workers, coordinator and one view; Ctrl-C leaves nothing behind, and one that ends by itself ends the rest."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    path = os.path.join(host.logs, "dev.out")

    def dev(*words):
        with open(path, "wb") as out:
            return subprocess.Popen([binary(), "dev", *words], cwd=host.dir, env=host.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    start_new_session=True)

    def seen():
        with open(path, encoding="utf-8") as file:
            return file.read()

    process = dev()
    wait_until(lambda: seen().count("ready\n") == 4, 20, lambda: f"all to be ready: {seen()}")
    run = start(host)
    until(host, run, "completed")
    wait_until(lambda: f"run {run[:10]}: active -> completed" in seen(), 10, seen)
    assert "reviewer turn " in seen() and "beta" in seen()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0, seen()
    wait_until(lambda: not host.processes(), 10, lambda: f"nothing to be left: {host.describe()}")
    other = host.worker("coordinator", "c1")
    ready(other)
    os.rename(os.path.join(host.dir, "keys", "beta.pem"), os.path.join(host.dir, "keys", "beta.away"))
    process = dev("--json")
    assert process.wait(30) != 0
    lines = [json.loads(line) for line in seen().splitlines()]
    assert any(line.get("event") == "worker.stopped" for line in lines) and any(line.get("process") == "beta" and "beta.pem" in line["text"] for line in lines), seen()
