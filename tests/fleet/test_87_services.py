"""`baton services` as the fleet's front page: numbers in a table of 80 columns, and below it each service."""
import os
import re
import subprocess

import pytest

from host import binary, ready, wait_until
from test_67_runs import runs, start, until  # noqa: F401 (a fixture)
from test_80_thousand import fill, small_disk  # noqa: F401 (a fixture)
from wallclock import Clock


def on_terminal(host, *words, columns=80):
    """The lines that a verb prints on a terminal."""
    done = subprocess.run(["script", "-qec", f"stty cols {columns}; {' '.join((binary(), *words))}", "/dev/null"], cwd=host.dir,
                          env=host.environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=60)
    return done.stdout.decode().replace("\r", "").splitlines()


def row(host, service="alpha"):
    return next(one for one in host.run("services", "--json").ok().objects if one["service"] == service)


def test_the_front_page_says_who_runs_what(host):
    """Workers with partitions and the turns that they run, what waits by name, what is parked: for people and for programs."""
    host.plan(default=[{"until": host.fake + "/go"}], tasks={"t-bad": [{"class": "bad_request"}]})
    ready(host.worker("alpha", "w1"))
    runs = host.published("alpha", "arbiter", "t-runs")
    host.called(1, turn=runs)
    bad = host.published("alpha", "owner", "t-bad")
    host.ends(bad, "parked")
    waits = host.published("beta", "reviewer", "t-waits")
    wait_until(lambda: row(host)["running"] == 1 and row(host, "beta")["lag"] == 1, what="both to be seen")
    alpha, beta = row(host), row(host, "beta")
    worker, = alpha["workers"]
    assert (worker["worker"], worker["partitions"]) == ("w1", [0, 1, 2, 3]), worker
    turn, = worker["running"]
    assert (turn["turn_id"], turn["role"], turn["task_id"], turn["attempt"], turn["state"]) == (runs, "arbiter", "t-runs", 1, "running")
    assert alpha["oldest_open"]["turn_id"] == runs and alpha["parked"] == 1 and alpha["oldest_turn"] is None, alpha
    assert (beta["oldest_turn"], beta["oldest_open"], beta["workers"]) == (waits, None, []), beta
    text = host.run("services").ok().out
    assert re.search(rf"^  w1 has partitions 0-3, runs {runs[:12]} \(arbiter of t-runs\) for \d+s$", text, re.M), text
    assert re.search(r"^alpha +1 +0 +- +0 +1 +1 +ok$", text, re.M) and re.search(r"^beta +0 +1 +\S+ +0 +0 +0 +no worker$", text, re.M), text
    assert "  no worker runs: baton worker --service beta\n" in text and "profiles that may be tried: default" in text
    host.run("services", "pause", "alpha", "--reason", "provider maintenance").ok()
    wait_until(lambda: "paused by" in host.run("services").out, what="the pause to be shown")
    text = host.run("services").ok().out
    assert re.search(rf"^  paused by {host.identity} since .*: provider maintenance; baton services resume alpha$", text, re.M), text
    assert re.search(r"^alpha .* paused$", text, re.M), text
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(runs, "completed")


@pytest.mark.drivers("local")
def test_the_front_page_fits_80_columns(fresh):
    """With several workers and turns, a circuit, a pause: no line is wider than the terminal, and nothing is lost from it."""
    host = fresh.configure({"claude-review": fresh.service(parallel=6), "codex": None}, circuit={"after": 2, "for": "60s", "probe": "30s"})
    host.plan(default=[{"until": host.fake + "/go"}], tasks={"t-down": [{"class": "unavailable"}]})
    workers = [ready(host.worker("claude-review", name)) for name in ("build-host-17", "build-host-18")]
    host.shared(*workers)
    ready(host.worker("codex", "w1"))
    for number in range(9):
        host.published("claude-review", "reviewer", f"task-with-a-long-name-{number}")
    host.called(9)
    for _ in range(3):
        host.published("codex", "owner", "t-down", "--key", str(_))
    wait_until(lambda: row(host, "codex")["circuits"], what="the circuit to open")
    host.run("services", "pause", "codex", "--reason", "the contract of this provider ends, and nobody knows yet who is next").ok()
    wait_until(lambda: "paused by" in host.run("services").out, what="the pause to be shown")
    lines = on_terminal(host, "services")
    assert not [line for line in lines if len(line) > 80], lines
    text = " ".join(" ".join(lines).split())
    for words in ("build-host-17 has partition", "build-host-18 has partition", "(reviewer of task-with-a-long-name-", "circuit of w1",
                  "who is next; baton services resume codex"):
        assert words in text, lines
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.run("services", "resume", "codex").ok()


def test_a_pause_needs_a_right_and_a_reason(host):
    """Signed, with its reason; without one it is refused before anything is sent."""
    refused = host.run("services", "pause", "alpha", "--json")
    assert refused.status == 2 and not host.log.records(host.topic("control")), refused
    host.run("services", "pause", "alpha", "--reason", "", "--json").refused("usage", 2)
    assert not host.log.records(host.topic("control"))
    host.run("services", "pause", "alpha", "--reason", "a look").ok()
    records = host.log.records(host.topic("control"))
    assert len(records) == 4 and all("a look" in one.value.decode() and dict(one.headers).get("baton-sig") for one in records), records


@pytest.mark.drivers("local")
def test_the_list_of_runs_fits_80_columns(runs):  # noqa: F811
    """On a terminal ids are short, as `runs show` takes them, and the reason is cut; elsewhere everything is whole."""
    runs.plan(turns={"alpha": [{"verdict": "needs_context", "summary": "which of the parsers of the old programs is meant?"}]})
    ready(runs.worker("alpha", "w1"))
    run = start(runs, "a-task-with-a-long-name-17")
    until(runs, run, "waiting")
    lines = on_terminal(runs, "runs", "list")
    assert len(lines) == 2 and not [line for line in lines if len(line) > 80], lines
    short = lines[1].split()[0]
    assert run.startswith(short) and " waiting " in lines[1], lines
    assert runs.run("runs", "show", short, "--json").ok().one["run_id"] == run
    whole = runs.run("runs", "list").ok().out
    assert run in whole and "owner at alpha" in whole and "a-task-with-a-long-name-17" in whole, whole


@pytest.mark.heavy
def test_f04_a_worker_whose_disk_is_full_is_seen_from_elsewhere(fresh, small_disk, tmp_path):  # noqa: F811
    """F04: it can tell nobody; but the log shows an attempt whose end should have been told for a minute. (Handoffs that are
    not taken: test_a_turn_log_that_may_not_be_written_is_seen_from_elsewhere.)"""
    host = fresh.configure({"alpha": None}, state_dir=small_disk)
    host.plan(default=[{"until": host.fake + "/go"}])
    later = Clock(str(tmp_path), "later", 3600).environment
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    host.called(1, turn=turn)
    ballast = fill(small_disk)
    open(host.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: host.workers[0].events("store.blocked"), what="the worker to meet its full disk")
    assert row(host)["stalled"] is False, "its time is not over"
    told = next(one for one in host.run("services", "--json", environment=later).ok().objects if one["service"] == "alpha")
    text = host.run("services", environment=later).ok().out
    assert told["stalled"] and re.search(r"^alpha .* stalled$", text, re.M), text
    assert f"{turn[:12]} should have been stopped by w1 at " in text and "baton doctor on its host" in " ".join(text.split()), text
    os.unlink(ballast)
    host.ends(turn, "completed", 40)
    assert row(host)["stalled"] is False
