"""Runs over tasks that stand in files: what a person types first (I07, S7)."""
import json
import os
import re

import pytest

from host import ready, wait_until
from runs import CHAINS, show, sound, until


@pytest.fixture
def runs(fresh):
    """A host with an owner's and a reviewer's service, and a coordinator."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    ready(host.worker("coordinator", "c1"))
    return host


def write(host, name, text):
    with open(os.path.join(host.dir, name), "w", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.core
def test_i07_a_task_in_a_file(runs):
    """I07: `runs start --task FILE --wait`: the file is what every turn works on; its first line, or its keys, say what is to be done."""
    for service in ("alpha", "beta"):
        runs.worker(service)
    text = "# Mend the parser\n\nIt loops on \u00e9.\n"
    write(runs, "fix-parser.md", text)
    done = runs.run("runs", "start", "--workflow", "paired-review", "--task", "fix-parser.md", "--wait", "--timeout", "60s")
    assert done.status == 0 and done.out.splitlines()[-1].endswith("is completed: approved: as planned"), done
    shown = show(runs, runs.run("runs", "list", "--json").ok().one["run_id"])
    assert (shown["task_id"], shown["task_rev"], shown["summary"]) == ("fix-parser", 1, "Mend the parser"), shown
    for turn in shown["turns"]:
        told = json.loads(runs.calls(turn=turn["turn_id"])[0]["stdin"])
        assert told["payload"] == {"media_type": "text/markdown", "text": text}, told
    sound(runs, shown)
    os.mkdir(os.path.join(runs.dir, "tasks"))
    write(runs, "tasks/body.txt", "all of it")
    write(runs, "tasks/one.yaml", "id: team/t-7\nrev: 4\nsummary: Take it apart\ndata:\n  branch: main\npayload: body.txt\n")
    run = runs.run("runs", "start", "--workflow", "paired-review", "--task", "tasks/one.yaml", "--json").ok().one["run_id"]
    shown = until(runs, run, "completed")
    told = json.loads(runs.calls(turn=shown["turns"][0]["turn_id"])[0]["stdin"])
    assert (shown["task_id"], shown["task_rev"], told["summary"], told["data"], told["payload"]["text"]) == ("team/t-7", 5, "Take it apart", {"branch": "main"}, "all of it")
    options = ("--task-id", "t-8", "--rev", "0", "--summary", "Leave it", "--data", "k=v")
    run = runs.run("runs", "start", "--workflow", "paired-review", "--task", "tasks/one.yaml", *options, "--json").ok().one["run_id"]
    told = json.loads(runs.calls(turn=until(runs, run, "completed")["turns"][0]["turn_id"])[0]["stdin"])
    assert (told["task_id"], told["task_rev"], told["summary"], told["data"]) == ("t-8", 0, "Leave it", {"k": "v"}), told


@pytest.mark.drivers("local")
def test_s7_a_task_that_is_none(runs):
    """S7: what is wrong with a task's file is told at once with line and column, and nothing is asked of anybody."""
    words = ("runs", "start", "--workflow", "paired-review", "--json", "--task")
    write(runs, "bad.yaml", "id: a b\nsumary: x\n")
    done = runs.run(*words, "bad.yaml").refused("invalid_request", 2)
    assert sorted(one.split(" ")[0] for one in done.one["findings"]) == ["bad.yaml:1:1:", "bad.yaml:2:1:"], done
    write(runs, "no-summary.yaml", "id: t-1\n")
    assert runs.run(*words, "no-summary.yaml").status == 2
    runs.run(*words, "gone.md").refused("invalid_request", 2)
    assert runs.run(*words, "t-1").status == 2 and runs.run(*words, "t-1", "--task-id", "t-2", "--summary", "x").status == 2
    assert runs.run(*words[:-1], "--summary", "x").status == 2
    write(runs, "large.txt", "x" * 300000)
    runs.run(*words, "large.txt").refused("record_too_large", 2)
    assert runs.run("runs", "list", "--json").ok().objects == [] and not runs.log.records(runs.topic("requests", None))


def test_a_start_without_a_coordinator_says_so(fresh):
    """It is in the log and begins when a coordinator comes; the key that is printed asks for the same run, not for another one."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    words = ("runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", "x", "--wait", "--timeout", "300ms")
    done = host.run(*words)
    assert done.status == 8 and "no coordinator has answered yet" in done.err, done
    run, key = re.search(r"`baton runs wait (r-\w+)`", done.err).group(1), re.search(r"--key (\S+)", done.err).group(1)
    assert run in host.run(*words, "--key", key).err
    host.worker("coordinator", "c1"), host.worker("alpha"), host.worker("beta")
    wait_until(lambda: host.run("runs", "show", run).status == 0, 40, "the run to be begun")
    until(host, run, "completed")
    assert len(host.run("runs", "list", "--json").ok().objects) == 1
