"""The program in rough hands: words that look like something else, lists that are long, what a sentence promises."""
import os

import pytest

from host import wait_until
from test_67_runs import runs, start, until  # noqa: F401 (a fixture)
from test_87_services import on_terminal


@pytest.mark.drivers("local")
def test_h05_an_id_is_no_hidden_file(host):
    """H05: "." and ".." as an id would be another folder, and a hidden file is passed over by who lists files: refused before anything is made."""
    before = sorted(os.listdir(host.dir))
    for name in (".", "..", ".hidden"):
        host.run("worker", "--service", "alpha", "--id", name, "--drain", "--json").refused("invalid_request", 2)
        host.run("coordinator", "--id", name, "--json").refused("invalid_request", 2)
        host.run("keys", "generate", name, "--json").refused("invalid_request", 2)
    host.run("coordinator", "--id", "c" * 65, "--json").refused("invalid_request", 2)  # and not cut to one that another may have
    assert sorted(os.listdir(host.dir)) == before and not host.stores()
    assert not [name for folder in ("keys", "trust") for name in os.listdir(os.path.join(host.dir, folder)) if name.startswith(".")]


@pytest.mark.drivers("local")
def test_s7_the_value_of_an_option_is_no_wish_for_help(host):
    """S7: `--reason -h` is a reason: a script that cancels with whatever it was given gets no help page and an exit status of 0."""
    turn = host.published("alpha", "reviewer", "t-1")
    done = host.run("turns", "cancel", turn, "--reason", "-h").ok()
    assert turn in done.out and "NAME" not in done.out, done
    assert host.run("turns", "cancel", "0" * 32, "--reason", "-h", "--json").refused("turn_not_found", 5)
    for words in (["turns", "cancel", turn, "-h"], ["turns", "-h"], ["-h"], ["turns", "cancel", turn, "--reason", "--help"], ["--set", "a=b", "turns", "list", "-h"]):
        assert "NAME" in host.run(*words).ok().out, words


@pytest.mark.drivers("local")
@pytest.mark.parametrize("seconds, taken", [("864000000", True), ("864000001", False), ("9223372036854775", False), ("9223372036854775807", False), ("05", False)])
def test_s9_seconds_are_bounded_as_durations_are(fresh, seconds, taken):
    """S9: a plain number of seconds goes as far as one with a unit, 10000 days; beyond that the clock would wrap around."""
    done = fresh.run("turns", "wait", "0" * 32, "--timeout", seconds, "--json")
    assert done.refused("turn_not_found", 5) if taken else done.refused("usage", 2)


@pytest.mark.drivers("local")
def test_s9_a_list_of_runs_begins_with_the_newest(runs):  # noqa: F811
    """S9: however many runs there are, a page has those that changed last, and says how many it leaves out; for a program every one."""
    started = [start(runs, task=f"t-{n}") for n in range(53)]
    everyone = {one["run_id"]: one["updated_at"] for one in runs.run("runs", "list", "--json").ok().objects}
    assert set(everyone) == set(started)
    newest = sorted(everyone, key=lambda run: (everyone[run], [-ord(c) for c in run]), reverse=True)
    assert [one["run_id"] for one in runs.run("runs", "list", "--limit", 7, "--json").ok().objects] == newest[:7]
    runs.run("runs", "list", "--limit", 1001, "--json").refused("usage", 2)  # a page of whole runs is held, and must fit into memory
    page = runs.run("runs", "list").ok()
    assert [line.split()[0] for line in page.out.splitlines()[1:]] == newest[:50] and "and 3 that changed earlier" in page.err, page


@pytest.mark.drivers("local")
def test_s7_the_keys_of_the_configuration_as_json(fresh):
    """S7: `--json` is JSON, also of the page that documents every key: one object a line, the same keys."""
    keys = fresh.run("config", "show", "--keys", "--json").ok().objects
    page = fresh.run("config", "show", "--keys").ok().out
    assert [one["key"] for one in keys] == [line.split()[0] for line in page.splitlines() if not line.startswith(" ")]
    assert all(set(one) == {"key", "type", "required", "default", "help"} and one["help"] in page for one in keys), keys
    assert {one["key"]: one["default"] for one in keys}["budget.failures"] == "6"


@pytest.mark.drivers("local")
@pytest.mark.parametrize("verb", ["turns list", "dlq list", "runs list", "services list"])
def test_a_usage_line_is_a_way_to_call_it(fresh, verb):
    """What is one call is one line of the usage, however it is broken; each begins with a word or an option, and none with the rest of another."""
    page = fresh.run(*verb.split(), "--help").ok().out
    usage = page.split("SYNOPSIS\n")[1].split("\n\n")[0]
    lines = [line.strip() for line in usage.splitlines() if line.startswith(f"    baton {verb}")]
    assert len(lines) == 1 and "  " not in lines[0], usage


@pytest.mark.drivers("local")
def test_h01_a_refusal_is_told_whole(runs):  # noqa: F811
    """H-01: what a coordinator says of a refusal stands there to its end, and a command that a person shall paste, too."""
    run = start(runs)
    runs.run("runs", "cancel", run, "--reason", "enough").ok()
    done = runs.run("runs", "cancel", run, "--reason", "enough")
    assert done.status == 6 and f"`baton runs reopen {run} --reason TEXT` begins it anew" in done.err, done
    summary = "mend it, " * 400 + "the end"
    done = runs.run("runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", summary, environment={"CLAUDECODE": "1"})
    assert done.status == 4 and f"--summary '{summary}'" in done.err, done


@pytest.mark.drivers("local")
def test_d05_dead_letters_fit_80_columns(fresh):
    """D05: on a terminal nothing is wider than it, and the words that choose among dead letters stand there whole, since they are typed then."""
    host = fresh.configure({"build-host-review": fresh.service()})
    host.plan(tasks={"a-task-with-a-long-name": [{"class": "access_denied"}], "t-2": [{"class": "bad_request"}]})
    host.worker("build-host-review", "w1")
    for task in ("a-task-with-a-long-name", "t-2"):
        host.ends(host.published("build-host-review", "reviewer", task), "parked")
    late = host.published("build-host-review", "reviewer", "another-task-with-a-long-name", "--deadline", "2020-01-01T00:00:00Z")
    host.ends(late, "parked")
    for words in (("dlq", "list"), ("dlq", "stats")):
        lines = on_terminal(host, *words)
        assert not [line for line in lines if len(line) > 80], lines
        for word in ("access_denied", "bad_request", "deadline_exceeded", "parked"):
            assert f" {word} " in "\n".join(lines) + " ", (word, lines)
    whole = host.run("dlq", "list").ok().out
    assert "executor_failed" in whole and "another-task-with-a-long-name" in whole, whole


@pytest.mark.drivers("local")
def test_f05_a_damaged_file_says_what_to_do(host):
    """F05: of a store that is no database any more, and of a log, the message says what mends it, and that does."""
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    store, = host.stores()
    with open(store, "wb") as file:
        file.write(b"not a database at all\n" * 300)
    done = host.run("worker", "--service", "alpha", "--id", os.path.basename(os.path.dirname(store)), "--drain")
    assert done.status == 8 and "made from the log again" in done.err, done
    assert "made from the log again" in host.run("store", "check").out
    os.rename(os.path.dirname(store), os.path.dirname(store) + ".away")
    host.drain()
    assert host.state(turn) == "completed" and len(host.calls(turn=turn)) == 1
    log = os.path.join(host.dir, "data", "log.db")
    for ending in ("-wal", "-shm"):
        if os.path.exists(log + ending):
            os.remove(log + ending)
    with open(log, "r+b") as file:
        file.write(b"not a database at all\n" * 300)
    done = host.run("turns", "list")
    assert done.status == 8 and "put a copy of it back" in done.err, done
    os.rename(log, log + ".away")
    host.run("topics", "apply").ok()
    host.tampered = True
    assert host.run("turns", "list", "--json").ok().objects == []


@pytest.mark.drivers("local")
def test_f07_nobody_is_told_to_close_a_shared_folder(fresh):
    """F07: a log or stores right in /tmp, or in a folder with other things: what is printed as the mend locks nobody out of it."""
    shared = os.path.join(fresh.dir, "shared")
    os.mkdir(shared)
    for mode, command in ((0o1777, False), (0o755, True)):
        os.chmod(shared, mode)
        done = fresh.run("topics", "apply", "--set", "local.path=shared/log.db")
        assert done.status == 2 and "a folder of its own" in done.err and ("chmod 700" in done.err) == command, done
        folders = [one for one in fresh.run("doctor", "--set", "state_dir=shared", "--json").objects if one["check"] == "folders"]
        assert folders and all(one["level"] == "warn" and bool(one["command"]) == command for one in folders), folders


@pytest.mark.drivers("local")
def test_i11_an_unknown_target_is_answered_with_those_there_are(runs):  # noqa: F811
    """I11: names are exact, and who misspells one is told each target of that sender, once."""
    runs.plan(turns={"alpha": [{}], "beta": [{"verdict": "escalate"}], "gamma": [{"verdict": "escalate"}]})
    for service in ("alpha", "beta", "gamma"):
        runs.worker(service)
    run = start(runs)
    until(runs, run, "waiting")
    for sender, there in (("owner", "reviewer"), ("arbiter", "owner"), ("reviewer", "owner, arbiter")):
        done = runs.run("handoff", "--run", run, "--from", sender, "--to", "ownr", "--summary", "x", "--timeout", "60s")
        assert done.status == 3 and f"no transition leads from {sender} to 'ownr'; from it they lead to: {there}\n" in done.err, done


def test_d19_a_conflict_is_not_said_to_have_been_replayed(host):
    """D19: a record whose key was used for something else was never replayed and never can be: who names it is told so. Chosen among many
    it fails nothing."""
    host.worker("alpha", "w1")
    turn = host.published("alpha", "reviewer", "t-1", "--key", "k", "--summary", "one")
    host.ends(turn, "completed")
    host.publish("alpha", "reviewer", "t-1", "--key", "k", "--summary", "two")
    letter = host.letter("turn_conflict")
    done = host.run("dlq", "replay", letter["id"], "--json")
    assert done.status == 7 and (done.one["status"], done.one["code"]) == ("failed", "turn_conflict") and "another key" in done.one["error"], done
    assert host.run("dlq", "replay", "--code", "turn_conflict", "--json").ok().one["status"] == "already"
    assert len(host.calls(turn=turn)) == 1 and len(host.letters()) == 1


@pytest.mark.drivers("local")
def test_h20_since_when_a_turn_is_parked_is_not_made_up(runs):  # noqa: F811
    """H-20: a run knows when its turn began; of a parked one that is not told as the time since which it is parked."""
    runs.plan(default=[{"class": "bad_request"}])
    runs.worker("alpha", "w1")
    run = start(runs)
    until(runs, run, "waiting")
    text = runs.run("runs", "show", run).ok().out
    assert ", parked; it began " in text and "parked for" not in text, text


@pytest.mark.drivers("local")
def test_a_pause_without_a_worker_says_so(host):
    """Nobody answers where nobody runs: that is told, and not that some have yet to answer; the pause holds once a worker is there."""
    done = host.run("services", "pause", "alpha", "--reason", "a look").ok()
    assert done.out == "queued  alpha: no worker runs; it holds as soon as one does\n", done
    host.worker("alpha", "w1")
    wait_until(lambda: "paused by" in host.run("services").out, what="the pause to hold")
    assert host.run("services", "resume", "alpha").ok().out.startswith("resumed"), "a worker answers"
