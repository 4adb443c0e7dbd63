"""`baton dlq stats | export | discard`, and replaying many: chosen by what they have in common, in turn, and never in a loop."""
import base64
import os
import re
import signal
import subprocess

import pytest

import proof
from host import binary, wait_until

BAD = {"class": "bad_request"}


def parked(host, count, task="t", service="alpha"):
    turns = [host.published(service, "owner", f"{task}-{n}") for n in range(count)]
    for turn in turns:
        host.ends(turn, "parked")
    return turns


def dead(host, *words):
    return host.run("dlq", "list", "--json", *words).ok().objects


def test_d_stats_count_what_is_alike(host):
    """D: by service, code and class, the most frequent first, and by day; filters choose; text is two tables."""
    host.plan(default=[BAD], services={"beta": [{"class": "policy"}]})
    host.worker("alpha", "w1"), host.worker("beta", "w1")
    parked(host, 3)
    parked(host, 1, service="beta")
    answer = host.run("dlq", "stats", "--json").ok().one
    assert answer["total"] == 4 and answer["repeated"] == 0, answer
    assert [(one["service"], one["kind"], one["class"], one["count"]) for one in answer["groups"]] == [("alpha", "parked", "bad_request", 3), ("beta", "parked", "policy", 1)]
    assert sum(one["parked"] for one in answer["days"]) == 4
    assert host.run("dlq", "stats", "--json", "--class", "policy").ok().one["total"] == 1
    assert host.run("dlq", "stats", "--json", "--older", "1h").ok().one["total"] == 0
    assert host.run("dlq", "stats", "--json", "--newer", "1h").ok().one["total"] == 4
    assert host.run("dlq", "stats", "--json", "--origin", "nobody").ok().one["total"] == 0
    text = host.run("dlq", "stats").ok().out
    assert "COUNT" in text and "DAY" in text and "bad_request" in text, text


def test_d_export_has_every_byte(host):
    """D: the original value of a parked turn and of a rejected record, byte for byte; never to a terminal."""
    host.plan(default=[BAD])
    host.worker("alpha", "w1")
    turn, = parked(host, 1)
    handoff, = host.log.records(host.topic("handoff"))
    host.log.append(proof.Record(host.topic("handoff"), key=b"0" * 32, value=b"\x00\xff junk", headers=[("x", b"\x01\xfe")]), partition=0)
    lines = wait_until(lambda: (lambda found: found if len(found) == 2 else None)(host.run("dlq", "export").ok().objects), what="both dead letters")
    mine, = [one for one in lines if one["kind"] == "parked"]
    junk, = [one for one in lines if one["kind"] == "rejected"]
    assert mine["turn_id"] == turn and base64.b64decode(mine["value_base64"]) == handoff.value
    assert base64.b64decode(junk["value_base64"]) == b"\x00\xff junk"
    assert {"x": b"\x01\xfe"} == {one["name"]: base64.b64decode(one["value_base64"]) for one in junk["headers"] if one["name"] == "x"}
    leader, follower = os.openpty()
    done = subprocess.run([binary(), "dlq", "export"], cwd=host.dir, stdout=follower, stderr=subprocess.PIPE, env=host.environment, check=False, timeout=60)
    os.close(leader), os.close(follower)
    assert done.returncode == 2 and b"terminal" in done.stderr


def test_d_discard_cancels_what_is_parked_and_nothing_else(host):
    """D: one by name, many by what they share and only with --yes; a rejected record needs none; a reason is kept."""
    host.plan(default=[BAD], tasks={"t-good": [{}]})
    host.worker("alpha", "w1")
    good = host.published("alpha", "owner", "t-good")
    host.ends(good, "completed")
    turns = parked(host, 3)
    assert host.run("dlq", "discard", turns[0], "--reason", "done by hand", "--json").ok().one["status"] == "discarded"
    assert host.show(turns[0])["cancel_reason"] == "done by hand" and host.state(turns[0]) == "cancelled"
    assert host.run("dlq", "discard", turns[0], "--reason", "again").status == 6
    assert host.run("dlq", "discard", good, "--reason", "no").status == 6 and host.state(good) == "completed"
    for words, status in ((("--class", "bad_request", "--reason", "x"), 2), ((turns[1],), 2), (("--reason", "x"), 2), ((turns[1], "--class", "auth", "--reason", "x", "--yes"), 2)):
        assert host.run("dlq", "discard", *words).status == status, words
    said = host.run("dlq", "discard", "--class", "bad_request", "--reason", "x", "--dry-run", "--json").ok().objects
    assert {one["status"] for one in said} == {"would"} and len(said) == 2 and {host.state(turn) for turn in turns[1:]} == {"parked"}
    said = host.run("dlq", "discard", "--class", "bad_request", "--reason", "given up", "--yes", "--json").ok().objects
    assert {one["id"] for one in said} == set(turns[1:]) and {one["status"] for one in said} == {"discarded"}
    assert dead(host) == [] and {host.state(turn) for turn in turns[1:]} == {"cancelled"}
    assert len(host.calls()) == 4, "nothing was executed for it"


@pytest.mark.core
def test_d_what_fails_again_is_held_back(host):
    """D, the loop guard: after a replay that ended in the same failure a turn is not among the many; --again, or its name, takes it."""
    host.plan(default=[BAD], tasks={"t-1": [BAD, {"class": "policy"}, BAD, {}]})
    host.worker("alpha", "w1")
    turns = parked(host, 2)
    replay = ("dlq", "replay", "--service", "alpha", "--json")
    assert len(host.run(*replay).ok().objects) == 2
    wait_until(lambda: sorted((one["attempt"], one["repeated"]) for one in dead(host)) == [(2, False), (2, True)], 40, lambda: f"both to fail again: {dead(host)}")
    done = host.run(*replay).ok()
    assert sorted((one["id"], one["status"]) for one in done.objects) == sorted([(turns[0], "held"), (turns[1], "replayed")]), done
    wait_until(lambda: sorted(one["attempt"] for one in dead(host)) == [2, 3], 40, lambda: f"one to fail again: {dead(host)}")
    assert len(host.calls(turn=turns[0])) == 2, "what was held back ran no more"
    assert host.run("dlq", "stats", "--json").ok().one["repeated"] == 1
    done = host.run(*replay, "--again").ok()
    assert [one["status"] for one in done.objects] == ["replayed"] * 2
    host.ends(turns[1], "completed")


def test_d_many_are_replayed_in_turn_and_interrupted_safely(host):
    """D: --rate bounds it, Ctrl-C stops between two, the same command goes on with the others; each was replayed once."""
    host.plan(default=[BAD, {}])
    host.worker("alpha", "w1")
    turns = parked(host, 12)
    argv = [binary(), "dlq", "replay", "--service", "alpha", "--rate", "2"]
    process = subprocess.Popen(argv, cwd=host.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=host.environment, start_new_session=True)
    wait_until(lambda: len(host.calls()) >= 14, 60, "two of them to be replayed")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    said = re.findall(r"^replayed +([0-9a-f]{32}) ", out.decode(), re.M)
    assert process.returncode == 8 and b"interrupted" in err and 2 <= len(said) < 12, (process.returncode, out, err)
    done = host.run("dlq", "replay", "--service", "alpha", "--json").ok()
    assert sorted(said + [one["turn_id"] for one in done.objects]) == sorted(turns), "each of them once"
    for turn in turns:
        host.ends(turn, "completed", 60)
        assert len(host.calls(turn=turn)) == 2
