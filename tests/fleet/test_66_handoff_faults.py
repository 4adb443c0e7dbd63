"""Faults around a handoff are told as one JSON object with a code, whatever is broken, and nothing is half done (H-24)."""
import json
import os
import re

import pytest

from host import wait_until
from runs import hand, show, start, taken, until, with_workflows

TWO = ("start: dev\nnodes:\n  dev: {role: owner, service: alpha}\n  rev: {role: reviewer, service: beta}\n"
       "transitions:\n  go: {from: dev, to: rev}\nends:\n  good: {from: rev, when: [approve], as: completed}\n")


def verbs(run):
    return [("handoff", "--run", run, "--from", "dev", "--to", "rev", "--summary", "go", "--timeout", "5s"),
            ("runs", "start", "--workflow", "w", "--task", "t-9", "--summary", "x", "--timeout", "5s"),
            ("runs", "touch", run, "--timeout", "5s"), ("runs", "cancel", run, "--reason", "x", "--timeout", "5s"),
            ("runs", "reopen", run, "--reason", "x", "--timeout", "5s"), ("runs", "show", run), ("runs", "list"), ("runs", "wait", run, "--timeout", "5s")]


def told(done, *codes):
    """One object, a code of the closed list, a text, an exit status that is no signal's; no stage of a C program's death on stderr."""
    assert 0 < done.status < 100, done
    objects = json.loads(done.out) if done.out.startswith("[") else done.objects
    assert len(objects) == 1 and objects[0]["status"] == "failed" and objects[0]["error"], done
    assert objects[0]["code"] in codes, done
    assert not re.search(r"Assertion|contract|invariant|Sanitizer|core dumped", done.err), done
    return objects[0]


@pytest.fixture
def waits(fresh):
    """A host and a run of it that waits for a person; no process is left."""
    host = with_workflows(fresh, {"w": TWO})
    host.plan(default=[{"verdict": "blocked"}])
    host.worker("alpha")
    run = start(host, workflow="w")
    until(host, run, "waiting")
    for one in host.workers:
        one.stop()
    return host, run


def broken(host, what):
    """Breaks it; how it is mended."""
    if what == "keys":
        path = os.path.join(host.dir, "keys", host.identity + ".pem")
        broken_by = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    elif what == "trust":
        path = os.path.join(host.dir, "trust", "fleet.yaml")
        broken_by = b"fleet: [1, 2"
    elif what == "configuration":
        path = os.path.join(host.dir, "baton.yaml")
        broken_by = b"version: 1\nlog: ["
    else:
        path = os.path.join(host.dir, "data", "log.db")
        broken_by = b"no database at all " * 500
    with open(path, "rb") as file:
        sound_ = file.read()

    def put(data):
        with open(path, "r+b") as file:
            file.truncate(0)
            file.write(data)
    put(broken_by)
    return lambda: put(sound_)


@pytest.mark.drivers("local")
@pytest.mark.parametrize("what, codes", [("keys", ("key_unsafe", "bad_config", "unauthenticated")), ("trust", ("bad_config", "unauthenticated", "key_unsafe")),
                                         ("configuration", ("bad_config",)), ("log", ("store_failed", "service_unavailable", "log_failed", "bad_config"))])
def test_h24_a_file_is_broken(waits, what, codes):
    """H-24: key, trust, configuration or log are junk: each verb that needs it says so, and after the mending the handoff is taken as if nothing had been."""
    host, run = waits
    before = show(host, run)
    mend = broken(host, what)
    for words in verbs(run):
        done = host.run(*words, "--json", environment={"BATON_MODE": "attended"})
        if what in ("keys", "trust") and words[1] in ("show", "list", "wait"):
            continue  # who only reads needs neither
        told(done, *codes)
    mend()
    assert show(host, run) == before
    host.worker("coordinator", "c1"), host.worker("beta")
    hand(host, run, "dev", "rev").ok()
    wait_until(lambda: len(show(host, run)["turns"]) == 2, what="the handoff")
    assert taken(show(host, run)) == {"start": 1, "go": 1}


@pytest.mark.drivers("local")
def test_h24_a_coordinator_that_cannot_write_says_so_and_goes_on(fresh):
    """H-24: where hooks cannot have a directory, the hook is unavailable and the run waits; the coordinator lives."""
    host = with_workflows(fresh, {"w": TWO.replace("transitions:\n  go: {from: dev, to: rev}", "hooks:\n  check: {command: [/bin/true]}\ntransitions:\n"
                                                   "  go: {from: dev, to: rev, when: [done], hook: check}")})
    scratch = os.path.join(host.dir, "data", "scratch")
    os.makedirs(scratch, mode=0o700)
    with open(os.path.join(scratch, "coordinator.c1"), "w", encoding="ascii") as file:
        file.write("a file where a directory should be\n")
    host.worker("alpha")
    run = start(host, workflow="w")
    shown = until(host, run, "waiting")
    assert (shown["code"], shown["stage"]) == ("hook_unavailable", "hook"), shown
    assert host.workers[0].alive
    os.unlink(os.path.join(scratch, "coordinator.c1"))
    hand_on = host.run("runs", "touch", run, "--json", environment={"BATON_MODE": "attended"}).ok()
    assert hand_on.one["answered"] and until(host, run, "waiting")["code"] == "hook_unavailable"  # /bin/true gives no answer
