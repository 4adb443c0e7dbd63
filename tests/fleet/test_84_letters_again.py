"""Rejected records that are written again: to their own topic, with their own headers, signed again where they had expired (FIELD D)."""
import json
import os

import pytest

import bulk
import proof
from host import wait_until

DAY = proof.DAY


def letters(host, count, *words):
    """Waits for so many rejected records."""
    return wait_until(lambda: (lambda found: found if len(found) == count else None)([one for one in host.letters(*words) if one["kind"] == "rejected"]),
                      40, lambda: f"{count} rejected records, there are {host.letters(*words)}\n{host.all_logs()}")


def replay(host, *words):
    return host.run("dlq", "replay", *words, "--json")


@pytest.mark.core
def test_d_what_expired_is_signed_again_by_its_origin(host):
    """D, RECORD section 3: same id, same content, new times and signature; it runs once, and a second replay does nothing."""
    host.worker("alpha", "w1")
    members = host.turn(task="t-old", created=-8 * DAY, life=2 * DAY, summary="An old one", data={"b": 1, "a": [2]}, ext={"x": "y"})
    host.log.append(host.handoff(members))
    letter, = letters(host, 1)
    assert letter["code"] == "handoff_expired"
    would = replay(host, letter["id"], "--dry-run").ok().one
    assert (would["status"], would["signed_by"]) == ("would", host.identity)
    assert f"signed again by {host.identity}" in host.run("dlq", "replay", letter["id"], "--dry-run").ok().out
    assert host.state(members["turn_id"]) is None, "a dry run does nothing"
    done = replay(host, letter["id"]).ok().one
    assert (done["status"], done["turn_id"], done["signed_by"]) == ("signed", members["turn_id"], host.identity)
    host.ends(members["turn_id"], "completed")
    value, = [one for one in (record.json() for record in host.log.records(host.topic("handoff"))) if one["created_at"] != members["created_at"]]
    assert {name: value[name] for name in value if name not in ("created_at", "expires_at")} == {name: members[name] for name in members if name not in ("created_at", "expires_at")}
    assert value["created_at"] > members["expires_at"] and len(host.calls()) == 1
    assert replay(host, letter["id"]).ok().one["status"] == "already"


def test_d_only_the_origin_signs_again(host):
    """D: without the origin's private key it is refused, naming whose key is needed; with it here the same command works."""
    host.worker("alpha", "w1")
    robot = proof.Key.new()
    host.trust_key("robot", robot, "kind: program\ncreate: {alpha: [reviewer]}\n")
    members = host.turn(task="t-old", origin="robot", created=-9 * DAY, life=DAY)
    host.log.append(host.handoff(members, signer=robot))
    letter, = letters(host, 1)
    assert letter["code"] == "handoff_expired", letter
    for words in ((letter["id"], "--dry-run"), (letter["id"],), ("--code", "handoff_expired")):
        done = replay(host, *words)
        refused = done.one
        assert done.status != 0 and (refused["status"], refused["code"]) == ("failed", "unauthenticated") and "robot" in refused["error"], done
    assert [one.value for one in host.log.records(host.topic("handoff"))].count(proof.compact(members)) <= 1
    host.put(f"{host.dir}/keys/robot.pem", b"")
    assert replay(host, letter["id"]).status != 0, "a key that is none signs nothing"
    with open(f"{host.dir}/keys/robot.pem", "wb") as file:
        file.write(robot.private_pem())
    os.chmod(f"{host.dir}/keys/robot.pem", 0o600)
    done = replay(host, "--code", "handoff_expired").ok().one
    assert (done["status"], done["signed_by"]) == ("signed", "robot"), done
    assert host.ends(members["turn_id"], "completed")["origin"] == "robot"


def test_d08_each_goes_to_its_own_topic(fresh):
    """D08: many letters of three services; each is in its own topic again and in no other; a wrong or missing origin is refused."""
    host, names = fresh, ("alpha", "beta", "gamma")
    host.configure({name: host.service(roles=["owner"]) for name in names})
    late, each = proof.Key.new(), 334 if host.driver == "local" else 60
    for name in names:
        made = [host.handoff(host.turn("reviewer", f"t-{n}", name, "late"), late) for n in range(each)]
        bulk.fill(host, host.topic("handoff", name), ((one.key, one.value, one.headers) for one in made))
        host.worker(name, "w1")
    wait_until(lambda: host.run("dlq", "stats", "--json").ok().one["total"] == 3 * each, 60, host.all_logs)
    host.trust_key("late", late, "kind: program\ncreate: {'*': [reviewer]}\n")
    done = host.run("dlq", "replay", "--where", "code=unknown_key", "--limit", 10000, "--json").ok()
    assert [one["status"] for one in done.objects] == ["written"] * 3 * each
    wait_until(lambda: host.run("dlq", "stats", "--json").ok().one["total"] == 6 * each, 60, "each to be taken in, and parked: its role is not served")
    for name in names:
        turns = [one.json() for one in host.log.records(host.topic("turns", name)) if one.value and len(one.key) == 32]
        assert len({one["turn_id"] for one in turns}) == each and {one["service"] for one in turns} == {name}
    # Now letters that say where they came from as it suits them. No worker trims its topic meanwhile.
    for worker in host.workers:
        worker.stop()
    host.tampered = True
    good = [one for one in host.log.records(host.topic("dlq")) if one.header("baton-code") == "unknown_key"][0]
    before = {topic: len(host.log.records(topic)) for topic in host.log.topics()}
    forged = [host.topic("handoff", "beta"), host.topic("turns"), host.topic("outcomes", None), host.topic("dlq"), "", None]
    for n, topic in enumerate(forged):
        headers = [(name, data) for name, data in good.headers if name not in ("__dlq.errors.topic", "baton-code")] + [("baton-code", b"bad_signature")]
        headers += [] if topic is None else [("__dlq.errors.topic", topic.encode())]
        host.log.append(good.copy(headers=headers, value=b"%d" % n))
    done = replay(host, "--where", "code=bad_signature")
    assert done.status == 2 and [(one["status"], one["code"]) for one in done.objects] == [("failed", "invalid_request")] * len(forged), done
    after = {topic: len(host.log.records(topic)) for topic in host.log.topics()}
    before[host.topic("dlq")] += len(forged)
    assert after == before, "nothing was written anywhere, D01: not to the dead-letter topic either"


def test_d07_headers_that_are_left_out(host):
    """D07: what the dead-letter topic added goes, and what --without names; the rest is kept, in order; --dry-run says which."""
    host.worker("alpha", "w1")
    late = proof.Key.new()
    record = host.handoff(host.turn(origin="late"), late)
    record.headers += [("x-first", b"1"), ("replication.source", b"a"), ("x-null", None), ("x-last", b"\xff")]
    host.log.append(record)
    letter, = letters(host, 1)
    for words in (("--without", "baton-sig"), ("--without", "")):
        assert replay(host, letter["id"], *words).status == 2
    would = replay(host, letter["id"], "--without", "replication.source", "--dry-run").ok().one
    out = would["without"].split(", ")
    assert "replication.source" in out and {"__dlq.errors.topic", "__dlq.errors.offset", "baton-code"} <= set(out) and "baton-sig" not in out, would
    text = host.run("dlq", "replay", letter["id"], "--without", "replication.source", "--dry-run").ok().out
    assert "replication.source" in text and "__dlq.errors.topic" in text
    host.trust_key("late", late, "kind: program\ncreate: {alpha: [reviewer]}\n")
    done = replay(host, letter["id"], "--without", "replication.source").ok().one
    assert done["status"] == "written"
    again = wait_until(lambda: [one for one in host.log.records(host.topic("handoff")) if not one.header("replication.source")], what="the record")[0]
    assert again.headers == [pair for pair in record.headers if pair[0] != "replication.source"] and again.value == record.value
    host.ends(record.key.decode(), "completed")


def test_d_what_waits_or_was_rejected_again_is_not_written_twice(host):
    """D: no worker takes it: it waits, once. Rejected in the same way: the earlier letter is done, the later one held back; --again lifts that."""
    host.worker("alpha", "w1")
    stranger = proof.Key.new()
    host.log.append(host.handoff(host.turn(origin="late"), stranger))
    first, = letters(host, 1)
    host.end_workers()
    assert replay(host, first["id"]).ok().one["status"] == "written"
    assert replay(host, first["id"]).ok().one["status"] == "waits"
    assert [one["status"] for one in replay(host, "--code", "unknown_key").ok().objects] == ["waits"]
    host.worker("alpha", "w2")
    both = {one["id"] for one in letters(host, 2)}
    second, = both - {first["id"]}
    done = {one["id"]: one["status"] for one in replay(host, "--code", "unknown_key").ok().objects}
    assert done == {first["id"]: "later", second: "held"}
    assert replay(host, first["id"]).ok().one["status"] == "later"
    done = {one["id"]: one["status"] for one in replay(host, "--code", "unknown_key", "--again").ok().objects}
    assert done == {first["id"]: "later", second: "written"}
    letters(host, 3)
    assert host.calls() == [] and len({json.dumps(one) for one in host.letters()}) == 3


def test_d20_a_service_without_its_dead_letter_topic_does_not_start(host):
    """D20: a missing dead-letter topic is named before anything is taken; with it there everything goes on."""
    turn = host.published("alpha", "owner", "t-1")
    host.log.drop(host.topic("dlq"))
    worker = host.worker("alpha", "w1")
    assert worker.wait(60) != 0 and host.topic("dlq") in worker.log and "topic_missing" in worker.log, worker.log[-2000:]
    assert host.state(turn) is None and host.calls() == []
    host.run("topics", "apply").ok()
    host.worker("alpha", "w2")
    host.ends(turn, "completed")


@pytest.mark.drivers("kafka")
def test_d04_a_dead_letter_topic_with_fewer_partitions(host):
    """D04: one partition for four, which no command makes: the worker names it and what to do before it takes anything in; no crash."""
    host.log.drop(host.topic("dlq"))
    host.log.create(host.topic("dlq"), 1, message_timestamp_type="LogAppendTime")
    for n in range(8):
        host.log.append(host.handoff(host.turn(origin="late", task=f"t-{n}"), proof.Key.new()), partition=n % 4)
    worker = host.worker("alpha", "w1")
    assert worker.wait(60) > 0 and f"{host.topic('dlq')} has 1 partitions" in worker.log and "topic_missing" in worker.log, worker.log[-2000:]
    assert not host.log.committed(host.group(), host.topic("handoff")) and not host.log.records(host.topic("dlq"))


def test_d22_a_payload_that_is_never_there(host):
    """D22: no try of its own, no loop: parked as what it lacks; a replay is one more look, and the budget of replays bounds those, too."""
    host.worker("alpha", "w1")
    record = host.handoff(host.turn(payload={"media_type": "text/plain", "ref": "file:///nowhere", "sha256": "0" * 64, "size": 5}))
    host.log.append(record)
    turn = record.key.decode()
    assert host.ends(turn, "parked")["code"] == "payload_unavailable"
    for n in range(3):
        assert replay(host, turn).ok().one["status"] == "replayed"
        wait_until(lambda n=n: (lambda shown: shown["state"] == "parked" and shown["attempt"] == n + 2)(host.show(turn)), 40, lambda: f"it to be parked again: {host.show(turn)}")
    done = replay(host, turn)
    assert done.one["code"] == "replays_exhausted" and done.status != 0, done
    assert [one["status"] for one in replay(host, "--code", "payload_unavailable").objects] == ["held"]
    assert host.calls() == [] and host.letters()[0]["repeated"]
