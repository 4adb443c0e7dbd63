"""Five planted faults, each found and mended with what Baton prints alone: an expired key (of a provider, and a signing
one), a missing topic, a missing right, a full disk, a stuck executor.

The test plants the fault and then is an operator who knows nothing: it reads the findings of `baton doctor`, runs
exactly the command that stands there, and goes on like that until the turn is done. What no command can do (a new
credential, room on a disk) it does where the text says.
"""
import os
import re

import pytest

import acls
import broker
from host import SLOW, ready, wait_until
from printed import as_printed
from test_46_rights import right, seen  # noqa: F401 (a fixture)
from test_80_thousand import fill, small_disk  # noqa: F401 (a fixture)
from wallclock import Clock


def found(host, words, seconds=20, **environment):
    """Waits until doctor has a finding with these words, and returns it."""
    def look():
        return next((one for one in host.run("doctor", "--json", environment=environment).objects
                     if one["level"] != "ok" and words in one["text"]), None)
    one = wait_until(look, seconds, lambda: f"doctor to say '{words}': {host.run('doctor', environment=environment)}\n{host.all_logs()}")
    assert one["why"] and one["mend"], one
    return one


def why(host, turn):
    """The commands that `turns why` names."""
    return [one["command"] for one in host.run("turns", "why", turn, "--json").ok().one["commands"]]


def quiet(host, words, seconds=20, **environment):
    wait_until(lambda: not [one for one in host.run("doctor", "--json", environment=environment).objects
                            if one["level"] != "ok" and words in one["text"]], seconds, f"doctor to say no more '{words}'")


def test_an_expired_credential(fresh):
    """The provider takes the key no longer: doctor names the profile; a new key is put in; two commands as printed, and the turn goes on."""
    token, program = os.path.join(fresh.dir, "token"), os.path.join(fresh.dir, "provider")
    with open(program, "w", encoding="ascii") as file:
        file.write('#!/bin/sh\n[ "$TOKEN" = new-one ] && printf \'{"verdict":"approve"}\' >&3 ||\n'
                   '    printf \'{"class":"auth","message":"the key has expired"}\' >&3\n')
    os.chmod(program, 0o755)
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("old-one\n")
    host = fresh.configure({"alpha": {"roles": ["reviewer"], "executor": {"kind": "exec", "command": [program]},
                                      "profiles": [{"name": "team", "env": {"TOKEN": {"file": "token"}}}]}})
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "reviewer", "t-1")
    host.ends(turn, "parked")
    refused = found(host, "profile team was refused (auth)")
    assert refused["text"].endswith(f"its TOKEN is in {token}"), refused
    oldest = next(one for one in host.run("doctor", "--json").objects if "oldest unfinished" in one["text"])
    told = as_printed(host, oldest["command"])
    assert "the key has expired" in told, told
    with open(token, "w", encoding="ascii") as file:
        file.write("new-one\n")
    as_printed(host, refused["command"])
    replay, = [one for one in why(host, turn) if re.fullmatch(r"baton dlq replay \w+", one)]
    as_printed(host, replay)
    shown = host.ends(turn, "completed")
    assert shown["role"] == "reviewer" and len(shown["attempts"]) == 2
    quiet(host, "refused")
    quiet(host, "parked")


@pytest.mark.drivers("local")
def test_an_expired_signing_key(host):
    """The key of a service is taken by nobody any more, so its worker does not start: doctor names key and owner, and another is made."""
    turn = host.published("alpha", "reviewer", "t-1")
    host.run("keys", "revoke", host.key("alpha").id).ok()
    worker = host.worker("alpha", "w1")
    assert worker.wait() == 4, worker.log
    finding = found(host, host.key("alpha").id)
    assert finding["level"] == "error" and "alpha" in finding["text"]
    as_printed(host, finding["command"])
    quiet(host, "revoked")
    ready(host.worker("alpha", "w1"))
    host.ends(turn, "completed")


def test_a_missing_topic(host):
    """Deleted while its worker was away, which does not start without it: doctor names topic and command, and the turn goes on.
    (Under a running worker, where it takes half a minute: test_61_failure_path.py.)"""
    turn = host.published("alpha", "owner", "t-1")
    turns = host.topic("turns")
    host.log.drop(turns)
    wait_until(lambda: turns not in host.log.topics(), what="the topic to be gone")
    assert host.worker("alpha", "w1").wait() == 8
    finding = found(host, f"topic {turns} is missing")
    assert host.run("doctor").status == 8 and finding["level"] == "error"
    as_printed(host, finding["command"])
    quiet(host, turns)
    ready(host.worker("alpha", "w1"))
    host.ends(turn, "completed", 60)
    assert len(host.calls(turn=turn)) == 1


@pytest.mark.drivers("kafka")
@pytest.mark.heavy
def test_a_right_to_read_or_to_look_that_is_missing(seen):  # noqa: F811
    """A worker that could not restore its turns, or not belong to its group, is told so before it starts; once given, all is well."""
    host, environment = seen.host, seen.environment("alpha")
    turns, group = host.topic("turns"), host.group()
    lost = [right(seen, "alpha", turns, "Read"), right(seen, "alpha", group, "Read")]

    def said(level):
        return [one for one in host.run("doctor", "--json", environment=environment).objects if (one["check"], one["level"]) == ("rights", level)]

    well = said("ok")
    assert len(well) == 3 and all(re.match(r"(\d+) of \1 ", one["text"]) for one in well) and not said("error"), host.run("doctor", environment=environment)
    acls.take(host.brokers, *lost)
    findings = said("error")
    assert [one["code"] for one in findings] == ["not_permitted"] * 2, findings
    for name, kind, finding in ((turns, "Read", findings[0]), (group, "group", findings[1])):
        assert name in finding["text"] and kind in finding["text"] and "User:alpha" in finding["text"] and "it is needed for this" in finding["why"], finding
    acls.give(host.brokers, lost)
    wait_until(lambda: not said("error"), what="the rights to be seen")


@pytest.mark.drivers("kafka")
@pytest.mark.heavy
def test_a_turn_log_that_may_not_be_written_is_seen_from_elsewhere(seen, tmp_path):  # noqa: F811
    """Its worker cannot tell it there: services and doctor of any host say that handoffs wait and its workers run nothing."""
    host, later = seen.host, Clock(str(tmp_path), "later", 600).environment
    ready(seen.worker("alpha"))

    def told():
        alpha = next(one for one in host.run("services", "--json", environment=later).ok().objects if one["service"] == "alpha")
        return alpha["stalled"], alpha["lag"]

    assert told() == (False, 0)
    missing = right(seen, "alpha", host.topic("turns"), "Write")
    acls.take(host.brokers, missing)
    turn = host.published("alpha", "owner", "t-1")
    wait_until(lambda: host.workers[0].events("engine.waits"), what="the worker to meet the missing right")
    assert told() == (True, 1)
    text = host.run("services", environment=later).ok().out
    assert re.search(r"^  handoffs wait for \S+, and they run nothing: ", text, re.M) and re.search(r"^alpha .* stalled$", text, re.M), text
    finding = found(host, "run nothing", **later)
    assert finding["level"] == "warn" and turn[:12] in finding["text"] and "hosts of its workers" in finding["mend"], finding
    acls.give(host.brokers, [missing, right(seen, "alpha", host.topic("turns"), "DescribeConfigs")])
    host.ends(turn, "completed", 60)
    assert told() == (False, 0)


@pytest.mark.drivers("kafka")
@pytest.mark.heavy
def test_a_missing_right(seen):  # noqa: F811
    """The brokers do not let a worker's principal write: doctor says so before anything has failed, and prints what an administrator
    runs, and the end of the turn that runs meanwhile is told. (One that was blocked: test_46_rights.py.)"""
    host = seen.host
    outcomes = host.topic("outcomes", None)
    missing = right(seen, "alpha", outcomes, "Write")
    host.plan(default=[{"until": host.fake + "/go"}])
    worker = ready(seen.worker("alpha"))
    turn = host.published("alpha", "owner", "t-1")
    host.called(1, turn=turn)
    environment = seen.environment("alpha")
    acls.take(host.brokers, missing)
    finding = found(host, outcomes, **environment)
    assert (finding["check"], finding["level"], finding["code"]) == ("rights", "error", "not_permitted"), finding
    assert all(word in finding["text"] for word in ("'Write'", "User:alpha", outcomes)) and "administrator" not in finding["command"]
    assert not worker.events("engine.waits"), "found before it was needed"
    script = as_printed(host, finding["command"])
    # An administrator would run all of it; each line takes Kafka's own program two seconds, so here that of the finding.
    head, rest = script.split("\n}\n", 1)
    line, = [one for one in rest.splitlines() if one.startswith(f"allow alpha --topic {outcomes} ")]
    tool = os.path.join(host.environment["HOME"], "kafka-acls")
    with open(tool, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexec '{broker.PROGRAM}' tool '{broker.shared().dir}' kafka-acls \"$@\"\n")
    os.chmod(tool, 0o755)
    as_printed(host, f"{head}\n}}\n{line}\n", KAFKA_ACLS=tool, BROKERS=host.brokers)
    quiet(host, outcomes, 60, **environment)
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed", 60)
    assert len(host.calls(turn=turn)) == 1


@pytest.mark.heavy
def test_a_full_disk(fresh, small_disk):  # noqa: F811
    """The end of an attempt cannot be kept: doctor names the disk; there is room again, and it goes on by itself."""
    host = fresh.configure({"alpha": None}, state_dir=small_disk)
    host.plan(default=[{"until": host.fake + "/go"}])
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    host.called(1, turn=turn)
    fill(small_disk)
    open(host.fake + "/go", "w", encoding="ascii").close()
    finding = found(host, "MiB free for")
    assert (finding["level"], finding["code"], finding["command"]) == ("error", "disk_full", None), finding
    where = re.fullmatch(r"make room on the disk of (\S+)", finding["mend"]).group(1)
    os.unlink(os.path.join(where, "ballast"))
    host.ends(turn, "completed", 40)
    assert len(host.calls(turn=turn)) == 1


@pytest.mark.heavy
def test_a_stuck_executor(host, tmp_path):
    """It says nothing and does not end: doctor names turn and process; killed as printed, the turn is tried again in its role."""
    host.plan(default=[{"hang": True}, {}])
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "arbiter", "t-1")
    host.called(1, turn=turn)
    # The deadline is 20 s; nobody wants to wait for half of it.
    finding = found(host, "shows no progress", **Clock(str(tmp_path), "later", int(12 * SLOW)).environment)
    assert turn[:12] in finding["text"]
    as_printed(host, finding["command"])
    shown = host.ends(turn, "completed")
    assert [(one["state"], one["class"]) for one in shown["attempts"]] == [("failed", "killed"), ("completed", None)], shown
    assert shown["role"] == "arbiter" and {call["role"] for call in host.calls(turn=turn)} == {"arbiter"}
