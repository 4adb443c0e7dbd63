"""`baton doctor`: what is planted is found, with what is so, why it matters, and the command that mends it.

Here each kind of finding; faults that are found and mended from start to end are in test_87_planted_faults.py.
"""
import json
import os
import re
import shlex
import subprocess
import tempfile

import pytest

from host import SLOW, binary, ready, wait_until
from locallog import LocalLog
from test_15_topics import alter
from wallclock import HOUR, Clock


def findings(host, check=None, level=None, **named):
    return [one for one in host.run("doctor", "--json", **named).objects
            if check in (None, one["check"]) and (one["level"] in level if level else True)]


def the(host, check, words, **named):
    """The one finding of a check with these words."""
    found = [one for one in findings(host, check, **named) if words in one["text"]]
    assert len(found) == 1, (check, words, host.run("doctor", **named))
    return found[0]


def test_every_finding_says_what_why_and_what_mends_it(host):
    """What is well needs no reason; all else has one, and its command can be run as it stands."""
    host.log.drop(host.topic("handoff"), host.topic("dlq", "beta"))
    host.run("services", "pause", "beta", "--reason", "a look").ok()
    everything = findings(host)
    assert {one["check"] for one in everything} >= {"configuration", "versions", "trust", "keys", "proof", "executors", "guard", "folders",
                                                    "disk", "log", "topics", "services", "clock"}
    for one in everything:
        assert set(one) == {"check", "level", "code", "text", "why", "mend", "command"} and one["text"], one
        assert bool(one["why"]) == (one["level"] != "ok"), one
        assert one["level"] == "ok" or one["mend"], one
        assert (one["code"] is not None) == (one["level"] == "error"), one
        assert one["command"] is None or one["mend"].startswith(one["command"]), one
    done = host.run("doctor")
    missing = [one for one in everything if one["code"] == "topic_missing"]
    assert done.status == 8 and len(missing) == 2
    assert re.search(r"is missing\n +what must be written there .*\n +-> baton topics apply\n", done.out), done


def test_versions_are_told(host):
    assert re.match(r"baton \d+\.\d+\.\d+ with SQLite \d.*, librdkafka \d", the(host, "versions", "baton ")["text"])


@pytest.mark.drivers("local")
def test_commands_are_about_the_configuration_that_was_looked_at(host, tmp_path):
    """Run from elsewhere with --config: the command that mends it names that file, as one word for a shell, and so does chmod."""
    os.symlink(host.dir, tmp_path / "it's here")
    path = str(tmp_path / "it's here" / "baton.yaml")
    host.log.drop(host.topic("handoff"))
    os.chmod(os.path.join(host.dir, host.settings["state_dir"]), 0o755)

    for check in ("folders", "topics"):  # in this order: the log is not opened in a folder that others can read
        found, = [one for one in host.run("doctor", "--json", "--config", path, cwd="/").objects if one["check"] == check and one["level"] != "ok"]
        done = subprocess.run(["sh", "-c", re.sub("^baton ", binary() + " ", found["command"])], cwd="/", env=host.environment, capture_output=True, check=False)
        assert done.returncode == 0, (found, done)
    assert not [one for one in host.run("doctor", "--json", "--config", path).objects if one["check"] in ("folders", "topics") and one["level"] != "ok"]


@pytest.mark.drivers("local")
def test_commands_keep_what_was_set(host, tmp_path):
    """With --set: the commands say so, too, as one word for a shell; else they would mend the log that nobody looked at."""
    path = str(tmp_path / ("another's log " + "x" * 120) / ("y" * 120) / "log.db")
    host.run("topics", "apply", "--set", f"local.path={path}").ok()
    options = ("--set", f"local.path={path}", "--set", f"state_dir={tmp_path}/{'z' * 200}")
    host.log.drop(host.topic("handoff"))
    LocalLog(path).drop(host.topic("control"))
    for config in ((), ("--config", os.path.join(host.dir, "baton.yaml"))):
        found, = [one for one in host.run("doctor", "--json", *options, *config).objects if one["check"] == "topics" and one["level"] == "error"]
        assert shlex.split(found["command"])[-4:] == list(options) and found["command"] in found["mend"], found
        shown = host.run("doctor", *options, *config).out
        assert f"-> {found['command']}\n" in shown and host.topic("control") in found["text"], shown
    done = subprocess.run(["sh", "-c", re.sub("^baton ", binary() + " ", found["command"])], cwd="/", env=host.environment, capture_output=True, check=False)
    assert done.returncode == 0, (found, done)
    assert not [one for one in host.run("doctor", "--json", *options).objects if one["check"] == "topics" and one["level"] != "ok"]
    assert "is missing" in the(host, "topics", host.topic("handoff"))["text"], "the other log is as it was"


@pytest.mark.drivers("local")
def test_a_configuration_without_identity_makes_nobody(host, tmp_path):
    """Who has no name gets no rights: keys are made for services and the coordinator, and nothing is found lacking then."""
    with open(os.open(tmp_path / "baton.yaml", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("services: {alpha: {roles: [owner], executor: {kind: exec, command: [/bin/true]}}}\n")
    config = ("--config", tmp_path / "baton.yaml")
    lacking = [one["text"] for one in host.run("doctor", "--json", *config).objects if one["check"] == "keys"]
    assert lacking and not [text for text in lacking if ": ," in text or text.startswith("lacking:  ")], lacking
    host.run("keys", "apply", *config).ok()
    assert not [name for folder in ("keys", "trust") for name in os.listdir(tmp_path / folder) if name.startswith(".")]
    assert not [one for one in host.run("doctor", "--json", *config).objects if one["text"].startswith("lacking")]


@pytest.mark.drivers("local")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_keys_of_another_user_are_one_finding(host):
    """However many there are: the folder that cannot be looked into is told once."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        host.run("init", folder).ok()
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", binary(), "doctor", "--json"], cwd=folder,
                              env=host.environment, capture_output=True, check=False)
        if done.returncode in (126, 127):
            pytest.skip("another user cannot run the program where it was built")
        keys = [one for one in map(json.loads, done.stdout.splitlines()) if one["check"] == "keys"]
        assert len(keys) == 1 and keys[0]["code"] == "key_unsafe" and "as the user whose" in keys[0]["text"], keys


@pytest.mark.drivers("local")
def test_x29_proof_off_is_a_warning(fresh):
    """X29: whoever looks is told that nothing is verified."""
    host = fresh.configure({"alpha": None}, proof="off")
    found = the(host, "proof", "proof is off")
    assert found["level"] == "warn" and "forged" in found["why"] and "proof: required" in found["mend"]


@pytest.mark.drivers("local")
def test_a_revoked_key_is_named_with_its_owner(host):
    """A key that nobody believes any more is found before its worker is refused."""
    key = host.key("alpha").id
    host.run("keys", "revoke", key).ok()
    found = the(host, "keys", key)
    assert (found["level"], found["code"], found["command"]) == ("error", "unauthenticated", "baton keys rotate alpha"), found
    assert "alpha" in found["text"] and "revoked" in found["text"] and host.run("doctor").status == 4


@pytest.mark.drivers("local")
def test_topics_that_are_wrong_are_named(host):
    """Retention that is too short, and another number of partitions: which, why nobody uses them so, and what mends the first."""
    alter(host, host.topic("handoff"), retention_ms=604800000)
    found = the(host, "topics", host.topic("handoff"))
    assert (found["level"], found["code"], found["command"]) == ("error", "topic_missing", "baton topics apply") and "lost" in found["why"], found
    assert re.search(r"retention|7d", found["text"]), found
    host.run(*found["command"].split()[1:]).ok()
    assert not findings(host, "topics", ("warn", "error"))
    wrong = [one for one in host.run("doctor", "--json", "--set", "local.partitions=8").objects if one["check"] == "topics"]
    assert wrong and all(one["level"] == "error" and "set it back to 4" in one["text"] and one["command"] is None for one in wrong), wrong


@pytest.mark.drivers("local")
def test_e04_a_damaged_store_is_named(host):
    """E04: what is wrong with a worker's store, and that the log has it all."""
    worker = ready(host.worker("alpha", "w1"))
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    worker.stop()
    store, = [path for path in host.stores() if "/alpha/w1/" in path]
    with open(store, "r+b") as file:
        file.write(b"junk" * 64)
    for more in ("-wal", "-shm"):
        if os.path.exists(store + more):
            os.unlink(store + more)
    found = findings(host, "stores", ("error",))
    assert found and "move the file away" in found[0]["mend"] and "alpha" in str(found), found
    os.rename(store, store + ".away")
    ready(host.worker("alpha", "w1"))
    host.ends(host.published("alpha", "owner", "t-2"), "completed")
    assert not findings(host, "stores", ("error",))


def test_the_oldest_unfinished_turn_is_told_by_name(host):
    """Lag and the oldest: of what nobody has taken, of what was begun while nobody works on it, of what is parked."""
    host.plan(tasks={"t-bad": [{"class": "bad_request"}], "t-old": [{"class": "unavailable", "retry_after_ms": 600000}]})
    worker = ready(host.worker("alpha", "w1"))
    old = host.published("alpha", "owner", "t-old")
    wait_until(lambda: host.state(old) == "queued" and host.calls(turn=old), what="its first attempt to fail")
    bad = host.published("alpha", "reviewer", "t-bad")
    host.ends(bad, "parked")
    found = the(host, "services", "oldest unfinished")
    assert f"{old[:12]}, owner of t-old, queued" in found["text"] and found["command"] == f"baton turns why {old[:12]}", found
    host.run(*found["command"].split()[1:]).ok()
    found = the(host, "services", "parked")
    assert (found["level"], found["command"]) == ("warn", "baton dlq list --service alpha") and "1 turn is parked" in found["text"]
    assert bad in host.run(*found["command"].split()[1:], "--json").ok().out
    worker.stop()
    # A group keeps the place of a worker that stopped for a session.
    wait_until(lambda: [one for one in findings(host, "services") if "no worker runs" in one["text"]], 30, "its place to be given up")
    found = the(host, "services", "no worker runs")
    assert found["level"] == "warn" and old[:12] in found["text"] and found["command"] == "baton worker --service alpha", found


@pytest.mark.heavy
def test_what_nobody_takes_is_named_after_a_minute(host, tmp_path):
    clock = Clock(str(tmp_path), "ahead", 2 * HOUR)
    turn = host.published("beta", "owner", "t-1")
    found = the(host, "services", "handoffs wait, the oldest", environment=clock.environment)
    assert found["level"] == "warn" and turn[:12] in found["text"] and "for 2h" in found["text"], found
    assert found["command"] == "baton worker --service beta"


def test_a_pause_and_an_open_circuit_are_told(fresh):
    """Why turns wait: a person, with the command that ends it; a provider, for which nobody need do anything."""
    host = fresh.configure({"alpha": None}, circuit={"after": 2, "for": "60s", "probe": "30s"})
    host.plan(default=[{"class": "unavailable"}])
    ready(host.worker("alpha", "w1"))
    for number in range(3):
        host.published("alpha", "owner", f"t-{number}")
    wait_until(lambda: [one for one in findings(host, "services") if "circuit of worker w1 is" in one["text"]], 20,
               lambda: f"the circuit to be told: {host.run('doctor')}\n{host.all_logs()}")
    found = the(host, "services", "circuit of worker w1")
    assert found["level"] == "warn" and "by themselves" in found["why"] and found["command"] is None
    host.run("services", "pause", "alpha", "--reason", "a contract ends").ok()
    found = the(host, "services", "paused by")
    assert host.identity in found["text"] and "a contract ends" in found["text"], found
    host.run(*found["command"].split()[1:]).ok()
    wait_until(lambda: not [one for one in findings(host, "services") if "paused by" in one["text"]], what="it to be resumed")


@pytest.mark.heavy
def test_an_executor_that_hangs_is_named_with_its_process(host, tmp_path):
    """Silent for half of its time: which attempt, since when, and the process, which no other command of ours names."""
    host.plan(default=[{"hang": True}, {}])
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    pid = host.called(1, turn=turn)[0]["pid"]
    assert not [one for one in findings(host, "services") if "no progress" in one["text"]] or SLOW > 1, "it has just begun"
    clock = Clock(str(tmp_path), "ahead", int(12 * SLOW))
    found = the(host, "services", "shows no progress", environment=clock.environment)
    assert found["level"] == "warn" and turn[:12] in found["text"] and "w1" in found["text"], found
    assert found["command"] == f"kill -KILL {pid}" and "deadline" in found["mend"], found
    clock.jump(2 * HOUR)
    found = the(host, "services", "should have been stopped", environment=clock.environment)
    assert (found["level"], found["code"]) == ("error", "deadline_exceeded") and "stuck" in found["why"]
    why = host.run("turns", "why", turn, "--json", environment=clock.environment).ok().one
    assert why["who"] == "operator" and "baton doctor" in [one["command"] for one in why["commands"]], why
    assert any("has told no end" in one["text"] for one in why["now"]), why


@pytest.mark.drivers("local")
def test_partitions_that_nobody_has(host):
    """The state of a group: workers live, and some partitions belong to none of them."""
    ready(host.worker("alpha", "w1"))
    assert not [one for one in findings(host, "services") if "belong to none" in one["text"]]
    host.log.execute(("DELETE FROM assignment WHERE no IN (1, 3) AND worker = 'w1'", ()))
    found = the(host, "services", "belong to none")
    assert found["level"] == "warn" and "2 of 4 partitions" in found["text"], found


@pytest.mark.heavy
def test_a_clock_that_is_behind_the_log(host, tmp_path):
    """J: the log's records are of another day than this host's."""
    ready(host.worker("alpha", "w1"))
    host.ends(host.published("alpha", "owner", "t-1"), "completed")
    clock = Clock(str(tmp_path), "behind", -3 * HOUR)
    found = the(host, "clock", "after that", environment=clock.environment)
    assert found["level"] == "warn" and "NTP" in found["mend"], found
    assert not [one for one in findings(host, "clock") if "after that" in one["text"]]


@pytest.mark.drivers("kafka")
def test_a_right_that_is_missing_is_found_before_it_is_needed(host):
    """Rights are asked for without writing: nothing is in a topic afterwards."""
    written = [host.topic(kind) for kind in ("handoff", "control", "turns", "dlq")] + [host.topic("outcomes", None), host.topic("runs", None)]
    found = the(host, "rights", "topics that are written from here may be")
    assert found["level"] == "ok" and re.match(r"(\d+) of \1 ", found["text"]), found
    assert int(found["text"].split()[0]) >= len(written) and not any(host.log.records(topic) for topic in written), "nothing was written"
    host.log.drop(host.topic("turns"))
    wait_until(lambda: the(host, "rights", "that are written")["text"].endswith(" may be; 1 is missing"), what="the missing topic to be told")


@pytest.mark.drivers("local")
def test_doctor_fits_a_terminal(host):
    """On a terminal of 80 columns what it says of itself is wrapped; commands and paths stay whole."""
    host.run("services", "pause", "beta", "--reason", "a look").ok()
    done = subprocess.run(["script", "-qec", f"stty cols 80; {binary()} doctor", "/dev/null"], cwd=host.dir, env=host.environment,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=60)
    lines = done.stdout.decode().replace("\r", "").splitlines()
    long = [line for line in lines if len(line) > 80 and "->" not in line and "/" not in line]
    assert len(lines) > 15 and not long, long
