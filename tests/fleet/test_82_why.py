"""`baton turns why`: what happened, what a turn waits for, who must act and what changes that, from the topics alone."""
import os
import re
import shutil
import time

import pytest

from host import wait_until
from test_67_runs import ask, runs, start, taken, until  # noqa: F401 (a fixture)


def why(host, turn):
    done = host.run("turns", "why", turn, "--json").ok()
    return done.one


def said(answer, part="now"):
    return "\n".join(one["text"] for one in answer[part])


def commands(answer):
    return [one["command"] for one in answer["commands"]]


def test_why_nobody_has_taken_it(host):
    """It stands in the topic: no worker runs, and how one is started; the same for a paused service."""
    turn = host.published("alpha", "reviewer", "t-1")
    answer = why(host, turn)
    assert (answer["state"], answer["service"], answer["who"]) == (None, "alpha", "operator"), answer
    assert "no worker has taken it in" in said(answer) and "no worker of alpha runs" in said(answer)
    assert "baton worker --service alpha" in commands(answer)
    host.drain()
    answer = why(host, turn)
    assert (answer["state"], answer["role"], answer["who"]) == ("completed", "reviewer", "done"), answer
    assert "verdict approve" in said(answer)


def test_why_it_waits_for_a_retry_and_a_pause(host):
    """The time of the next attempt; then who has paused its service, and why."""
    host.plan(tasks={"t-1": [{"class": "unavailable", "retry_after_ms": 600000}, {}]})
    host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    wait_until(lambda: host.state(turn) == "queued" and len(host.calls(turn=turn)) == 1, what="the first attempt to fail")
    answer = why(host, turn)
    shown = host.show(turn)
    assert answer["next_at"] == shown["not_before"] and f"attempt 2 starts at {shown['not_before']}" in said(answer), answer
    assert answer["who"] == "nobody"
    assert re.search(r"attempt 1 at alpha by worker w1, profile \S+ failed after .*: unavailable, the provider cannot be reached", said(answer, "happened")), answer
    host.run("services", "pause", "alpha", "--reason", "provider maintenance").ok()
    answer = wait_until(lambda: (lambda one: one if "is paused by" in said(one) else None)(why(host, turn)), what="the pause to be told")
    assert answer["who"] == "operator" and "provider maintenance" in said(answer)
    resume, = [one for one in commands(answer) if one.startswith("baton services resume alpha")]
    host.run(*resume.replace("TEXT", "done").split()[1:]).ok()
    wait_until(lambda: "paused" not in said(why(host, turn)), what="the service to go on")


def test_why_a_refused_profile_keeps_no_turn_that_has_another(fresh):
    """It waits for its retry, and nobody must act: that another credential was refused some time is said, and asks for nothing.
    Once no other is left, an operator must act, and the command is there."""
    host = fresh.configure({"alpha": fresh.service(profiles=[{"name": "team"}, {"name": "spare"}])})
    host.plan(tasks={"t-auth": [{"class": "auth"}, {}], "t-wait": [{"class": "unavailable", "retry_after_ms": 600000}],
                     "t-last": [{"class": "auth"}]})
    host.worker("alpha", "w1")
    host.ends(host.published("alpha", "owner", "t-auth"), "completed")
    turn = host.published("alpha", "owner", "t-wait")
    wait_until(lambda: host.state(turn) == "queued" and host.calls(turn=turn), what="its first attempt to fail")
    answer = wait_until(lambda: (lambda one: one if "was refused" in said(one) else None)(why(host, turn)), what="the refusal to be told")
    assert answer["who"] == "nobody" and "another one is taken" in said(answer), answer
    assert not [one for one in commands(answer) if "services clear" in one], answer
    last = host.published("alpha", "owner", "t-last")
    host.ends(last, "parked")
    answer = wait_until(lambda: (lambda one: one if any("services clear" in line for line in commands(one)) else None)(why(host, last)),
                        what="the command to be told")
    assert answer["who"] == "operator", answer


def test_why_it_is_parked_and_the_host_is_gone(host):
    """Each attempt with its class, also of the service before; who must act; the worker's host has gone with its store."""
    host.plan(tasks={"t-1": [{"class": "bad_request"}]})
    worker = host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    host.ends(turn, "parked")
    worker.kill()
    shutil.rmtree(os.path.join(host.dir, "state"), ignore_errors=True)
    answer = why(host, turn)
    assert answer["who"] == "operator" and "executor_failed" in said(answer)
    assert "bad_request" in said(answer, "happened")
    replay, = [one for one in commands(answer) if re.fullmatch(r"baton dlq replay \w+", one)]
    host.run(*replay.split()[1:]).ok()
    host.plan()
    host.worker("alpha", "w2")
    host.ends(turn, "completed")
    assert "operators replayed it 1 time" in said(why(host, turn), "happened")


def test_why_text_fits_a_terminal(host):
    """For people: four paragraphs, no line longer than a terminal has columns, nothing foreign as it is."""
    host.plan(tasks={"t-1": [{"class": "bad_request", "message": "no \x1b[31mway, " + "long words " * 30}]})
    host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    host.ends(turn, "parked")
    done = host.run("turns", "why", turn[:8], environment={"COLUMNS": "80"}).ok()
    for title in ("What happened (UTC)", "Now", "Who must act", "What can be done"):
        assert f"\n{title}\n" in done.out, done.out
    assert "\x1b" not in done.out
    assert host.run("turns", "why", "0123456789ab").status != 0


def test_why_a_run_waits_for_a_person(runs):  # noqa: F811
    """A turn of a run: which run, and that the run waits for a person."""
    runs.plan(turns={"alpha": [{"verdict": "needs_context", "summary": "which one?"}]})
    runs.worker("alpha", "w1")
    run = start(runs)
    shown = until(runs, run, "waiting")
    answer = why(runs, shown["turns"][-1]["turn_id"])
    assert run in said(answer) and "waiting" in said(answer) and f"baton runs show {run}" in commands(answer)


def test_h05_a_person_names_the_transition(runs):  # noqa: F811
    """H-05: of several that lead to one target a person names one, as `runs show` prints it; the target alone stays ambiguous."""
    runs.plan(turns={"alpha": [{}, {}], "beta": [{"verdict": "escalate"}, {}], "gamma": [{"verdict": "escalate"}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    run = start(runs)
    until(runs, run, "waiting")
    words = ["handoff", "--run", run, "--from", "arbiter", "--summary", "once more", "--timeout", "60s"]
    refused = ask(runs, *words, "--to", "owner")
    assert refused.one["code"] == "ambiguous_target" and "name one of them" in str(refused.one), refused
    printed = re.findall(r"next: `baton (handoff --run \S+ --from arbiter --to (\w+)) --summary TEXT`", runs.run("runs", "show", run).ok().out)
    assert sorted(name for _, name in printed) == ["reset", "revise"], runs.run("runs", "show", run).out
    ask(runs, *words, "--to", "reset").ok()
    shown = until(runs, run, "completed")
    edges = taken(shown)
    assert edges["reset"] == 1 and "revise" not in edges, edges


def test_d_discard_of_a_runs_turn_is_answered(runs):  # noqa: F811
    """A parked turn of a run is discarded at once, and its run hears of it."""
    runs.plan(default=[{"class": "bad_request"}])
    runs.worker("alpha")
    run = start(runs)
    shown = until(runs, run, "waiting")
    done = runs.run("dlq", "discard", shown["turns"][-1]["turn_id"], "--reason", "given up", "--timeout", "60s", "--json").ok()
    assert done.one["status"] == "discarded", done


def soon(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def test_e16_why_tells_the_turns_own_deadline(fresh):
    """E16: the deadline that its publisher gave it, where that is sooner than the service's: while it runs, while it waits, and
    once it is over, when a replay would be parked again."""
    host = fresh.configure({"alpha": fresh.service(deadline="10m")})
    host.plan(tasks={"t-run": [{"hang": True}], "t-wait": [{"class": "unavailable", "retry_after_ms": 600000}]})
    host.worker("alpha", "w1")
    end = soon(60)
    running = host.published("alpha", "owner", "t-run", "--deadline", end)
    host.called(1, turn=running)
    answer = why(host, running)
    assert answer["next_at"].startswith(end[:19]) and f"stopped at its deadline, {end[:19]}" in said(answer), answer
    assert host.show(running)["deadline"].startswith(end[:19]) and f"deadline   {end[:19]}" in host.run("turns", "show", running).ok().out
    cut = host.published("alpha", "owner", "t-wait", "--deadline", end)
    wait_until(lambda: host.state(cut) == "queued" and host.calls(turn=cut), what="the first attempt to fail")
    answer = why(host, cut)
    assert answer["next_at"].startswith(end[:19]) and f"parked at its deadline, {end[:19]}" in said(answer), answer
    assert "starts at" not in said(answer), answer
    host.cancel(running).ok()
    late = host.published("alpha", "owner", "t-late", "--deadline", soon(-60))
    host.ends(late, "parked")
    answer = why(host, late)
    assert "a replay is parked again" in said(answer) and not [one for one in commands(answer) if "replay" in one], answer


@pytest.mark.drivers("local")
def test_r27_why_promises_no_fresh_budget(host):
    """A replay is one more attempt, and what was counted is counted on: the sentence does not say otherwise."""
    host.plan(tasks={"t-1": [{"class": "crash"}] * 8})
    host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    host.ends(turn, "parked")
    before = host.show(turn)
    effect, = [one["effect"] for one in why(host, turn)["commands"] if re.fullmatch(r"baton dlq replay \w+", one["command"])]
    assert "fresh" not in effect and "counted on" in effect, effect
    host.replay(turn).ok()
    wait_until(lambda: host.show(turn)["attempt"] > before["attempt"] and host.state(turn) == "parked", what="the replay to fail")
    after = host.show(turn)
    assert after["losses"] + after["failures"] > before["losses"] + before["failures"], (before, after)


@pytest.mark.drivers("local")
def test_r31_why_names_a_service_that_can_have_it(fresh):
    """R-31: the command for another service works as it is printed, also when the budget of replays is spent, and stands there only
    where a service serves the role and has not had the turn."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": fresh.service(roles=["owner"])}, budget={"replays": 1},
                           roles={"reviewer": {"chain": ["alpha", "beta"]}})
    host.plan(services={"alpha": [{"class": "bad_request"}] * 3, "beta": [{"class": "bad_request"}]})
    host.worker("alpha", "w1"), host.worker("beta", "w1")
    turn = host.published("alpha", "reviewer", "t-1")
    host.ends(turn, "parked")
    host.replay(turn).ok()
    wait_until(lambda: host.show(turn)["attempt"] == 2 and host.state(turn) == "parked", what="the replay to fail")
    elsewhere, = [one for one in commands(why(host, turn)) if "--to" in one]
    assert elsewhere == f"baton dlq replay {turn[:12]} --to beta --again", elsewhere
    host.run(*elsewhere.split()[1:]).ok()
    wait_until(lambda: host.show(turn)["service"] == "beta" and host.state(turn) == "parked", what="the turn to go on at beta")
    assert not [one for one in commands(why(host, turn)) if "--to" in one], why(host, turn)


def test_e01_why_a_dead_workers_turn_waits_for_another(host):
    """E01: a turn whose worker is gone, where no other one of its service runs, does not go on by itself: an operator must start one, and
    the command that does it stands there."""
    host.plan(default=[{"hang": True}, {}])
    worker = host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    host.called(1, turn=turn)
    assert why(host, turn)["who"] == "nobody"
    worker.kill()
    answer = wait_until(lambda: (lambda one: one if "not in its group" in said(one) else None)(why(host, turn)), what="its death to be seen")
    assert answer["who"] == "operator" and "no worker of alpha runs" in said(answer) and "executes" not in said(answer), answer
    assert "baton worker --service alpha" in commands(answer) and not [one for one in commands(answer) if "watch" in one], answer
    host.worker("alpha", "w2")
    host.ends(turn, "completed")


def test_h20_without_a_coordinator_it_is_said_that_runs_stand_still(runs):  # noqa: F811
    """H-20: the turn has ended and nothing follows, since no coordinator runs: `why`, `runs show`, `list` and `watch` say so, and the command."""
    run = start(runs)
    runs.end_workers()
    turn = runs.run("runs", "show", run, "--json").ok().one["turns"][-1]["turn_id"]
    runs.drain("alpha")
    answer = wait_until(lambda: (lambda one: one if "no coordinator runs" in said(one) else None)(why(runs, turn)), what="its absence to be seen")
    assert answer["who"] == "operator" and "baton coordinator" in commands(answer), answer
    assert "no coordinator runs" in runs.run("runs", "show", run).ok().out
    assert runs.run("runs", "show", run, "--json").ok().one["no_coordinator"] is True
    assert "no coordinator runs" in runs.run("runs", "list").ok().err and not runs.run("runs", "list", "--json").ok().err
    # As `runs show` prints it; with a second for the question, in which slow brokers may not answer.
    wait_until(lambda: "no coordinator runs" in runs.run("runs", "wait", run, "--timeout", "1").out, what="wait to print it")
    wait_until(lambda: runs.run("runs", "wait", run, "--timeout", "1", "--json").one["no_coordinator"] is True, what="wait to print it as JSON")
    found, = [one for one in runs.run("doctor", "--json").objects if "no coordinator" in one["text"]]
    assert found["level"] == "warn" and found["command"] == "baton coordinator", found
    runs.worker("coordinator", "c2")
    wait_until(lambda: "no coordinator" not in runs.run("runs", "show", run).ok().out, what="the coordinator to be seen")
    assert not [one for one in runs.run("doctor", "--json").objects if "no coordinator" in one["text"]]
    assert runs.run("runs", "show", run, "--json").ok().one["no_coordinator"] is False
    runs.run("runs", "cancel", run, "--reason", "enough").ok()
    ended = runs.run("runs", "show", run, "--json").ok().one  # nobody has looked: it moves no more
    assert ended["no_coordinator"] is None and runs.run("runs", "wait", run, "--json").one == ended, ended
