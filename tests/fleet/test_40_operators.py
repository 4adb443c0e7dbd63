"""Dead letters, replay, cancel (DESIGN "Operators"): same turn, same role, next attempt."""
import json
import os
import time

import pytest

import proof
from host import SLOW, wait_until


def park(host, role="arbiter", task="t-1", service="alpha", worker_id="w1"):
    """A turn that every attempt failed, its worker running on."""
    host.plan(default=[{"class": "bad_request"}, {}])
    turn = host.published(service, role, task)
    worker = host.worker(service, worker_id)
    host.ends(turn, "parked")
    return turn, worker


@pytest.mark.core
@pytest.mark.parametrize("role", ["owner", "reviewer", "arbiter"])
def test_r39_parked_and_replayed_keeps_the_role(host, role):
    """R-39, R-24: the dead letter names the role; the replay is the next attempt under the same one."""
    turn, _ = park(host, role)
    letter, = host.letters()
    assert (letter["turn_id"], letter["role"]) == (turn, role)
    done = host.replay(turn)
    assert done.status == 0, done
    shown = host.ends(turn, "completed")
    assert shown["role"] == role and [one["no"] for one in shown["attempts"]] == [1, 2]
    assert [(call["attempt"], call["role"]) for call in host.calls()] == [(1, role), (2, role)]


def test_r39_with_the_worker_down_meanwhile(host):
    turn, worker = park(host)
    worker.stop()
    done = host.run("dlq", "replay", turn, "--timeout", "1", "--json")
    assert done.status in (0, 2, 8), done
    if done.status == 2:
        host.replay(turn)
    host.worker("alpha", "w1")
    assert host.ends(turn, "completed")["role"] == "arbiter"


def test_r24_replay_takes_no_role(host):
    turn, _ = park(host)
    assert host.replay(turn, "--role", "owner").status == 2
    assert len(host.calls()) == 1


def test_d19_replaying_twice_is_one_replay(host):
    """D19: the second replay of the same letter finds the turn in another state; a completed turn is refused."""
    turn, _ = park(host)
    host.plan(default=[{"class": "bad_request"}, {"sleep": 1}])
    first, second = host.replay(turn), host.replay(turn)
    assert first.status == 0, first
    assert second.status in (0, 6), second
    host.ends(turn, "completed")
    third = host.replay(turn)
    assert third.status == 6, third
    time.sleep(0.3)
    assert len(host.calls()) == 2


def test_d19_the_same_control_record_twice_is_one_replay(host):
    turn, _ = park(host)
    record = proof.control(host.prefix, host.fleet, host.key(host.identity), "alpha", "replay", turn, attempt=1)
    for _ in range(3):
        host.log.append(record)
    host.ends(turn, "completed")
    host.log.append(record)
    done = host.published("alpha", "owner", "t-after")
    host.ends(done, "parked")
    assert len(host.calls(turn=turn)) == 2


def test_d19_the_budget_of_replays(fresh):
    """Three replays; then refused, and with --again once more."""
    host = fresh.configure({"alpha": None})
    host.plan(default=[{"class": "bad_request"}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.worker("alpha")
    host.ends(turn, "parked")
    for n in range(3):
        assert host.replay(turn).status == 0
        host.called(n + 2)
        wait_until(lambda: host.state(turn) == "parked", what="the turn to be parked again")
    done = host.replay(turn)
    assert done.status == 6, done
    assert len(host.calls()) == 4
    assert host.replay(turn, "--again").status == 0
    host.called(5)
    host.ends(turn, "parked")
    assert {call["role"] for call in host.calls()} == {"reviewer"}


def test_e22_a_replay_to_another_service(fresh):
    """A replay with a target passes the turn on under its role, or is refused and changes nothing; never back."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}})
    host.plan(services={"alpha": [{"class": "bad_request"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.worker("alpha")
    host.worker("beta")
    host.ends(turn, "parked")
    for target in ("gamma", "alpha", "nowhere"):
        assert host.replay(turn, "--to", target).status in (2, 4, 5, 6), target
        assert host.state(turn) == "parked"
    done = host.replay(turn, "--to", "beta")
    if done.status == 0:
        call, = host.called(1, fake_service="beta")
        assert (call["role"], call["attempt"], call["turn"]) == ("reviewer", 2, turn)
        wait_until(lambda: "completed" in host.run("turns", "show", turn, "--json").out, what="the end at beta")
        assert host.replay(turn, "--to", "alpha").status in (4, 6)
    else:
        done.refused("not_permitted", 4)
        assert host.state(turn) == "parked" and len(host.calls()) == 1


def test_d05_dead_letters_are_listed_shown_and_chosen(host):
    host.plan(default=[{"class": "bad_request"}], tasks={"t-auth": [{"class": "auth"}]})
    turns = {task: host.published("alpha", "reviewer", task) for task in ("t-1", "t-2", "t-auth")}
    host.drain()
    letters = host.letters()
    assert {letter["turn_id"] for letter in letters} == set(turns.values())
    assert all(letter["role"] == "reviewer" and letter["code"] for letter in letters)
    assert host.letters("--service", "beta") == []
    shown = host.run("dlq", "show", turns["t-1"], "--json").ok()
    assert turns["t-1"] in shown.out and "bad_request" in shown.out
    text = host.run("dlq", "list").ok().out
    assert turns["t-1"][:8] in text


def test_c03_dead_letters_keep_empty_and_null_apart(host):
    """C03: null, empty key and value go through the dead-letter topic unchanged."""
    host.worker("alpha")
    topic = host.topic("handoff")
    for key, value in ((None, None), (b"", b""), (None, b""), (b"", None), (b"k", None), (None, b"v")):
        host.log.append(proof.Record(topic, key, value, [("x", None), ("y", b"")]), partition=0)
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == 6, what="six letters")
    letters = host.log.records(host.topic("dlq"))
    assert sorted(repr((one.key, one.value)) for one in letters) == \
        sorted(repr(pair) for pair in [(None, None), (b"", b""), (None, b""), (b"", None), (b"k", None), (None, b"v")])
    for letter in letters:
        kept = dict(letter.headers)
        assert kept["x"] is None and kept["y"] == b"", "headers stay as they were"
    assert host.calls() == []


def test_d01_dead_letters_have_their_context(host):
    """Where it came from and why, in headers that other tools read (KIP-1191) and ours."""
    host.worker("alpha")
    partition, offset = host.log.append(proof.Record(host.topic("handoff"), b"k", b"{", []))
    letter = wait_until(lambda: host.log.records(host.topic("dlq")), what="the letter")[0]
    headers = {name: (data or b"").decode("utf-8", "replace") for name, data in letter.headers}
    assert headers["baton-code"] in ("bad_signature", "invalid_envelope")
    assert host.topic("handoff") in headers.values() and str(offset) in headers.values() and str(partition) in headers.values()


@pytest.mark.heavy
def test_d02_a_dead_letter_that_cannot_be_written(host):
    """D02: nothing is skipped silently: the offset stays before the record until its letter is written."""
    host.worker("alpha")
    first = host.published()
    host.ends(first, "completed")
    topic = host.topic("dlq")
    host.log.drop(topic)
    partition, offset = host.log.append(host.handoff(host.turn(), signer=proof.Key.new()))
    others = []
    for n in range(40):
        record = host.handoff(host.turn(task=f"t-{n}"))
        if host.log.append(record)[0] != partition:
            others.append(record.key.decode())
    for turn in others:
        host.ends(turn, "completed", 40)
    assert host.log.committed(host.group("alpha"), host.topic("handoff")).get(partition, 0) <= offset
    assert host.workers[0].alive and topic in host.workers[0].log, host.workers[0].log[-2000:]
    host.run("topics", "apply").ok()
    wait_until(lambda: host.log.records(topic), 45, "the letter, once its topic is there again")
    wait_until(lambda: host.log.committed(host.group("alpha"), host.topic("handoff"))[partition] > offset, what="the offset to pass")


# ---- cancel ----

@pytest.mark.core
def test_r43_cancel_a_running_turn(host):
    """R-43: its executor is killed first; the turn says who and why."""
    host.plan(default=[{"hang": True}])
    turn = host.published()
    host.worker("alpha")
    call, = host.called(1)
    done = host.cancel(turn, reason="wrong branch")
    assert done.status == 0, done
    shown = host.ends(turn, "cancelled")
    assert "wrong branch" in json.dumps(shown) and host.identity in json.dumps(shown)
    assert not os.path.exists(f"/proc/{call['pid']}"), "killed before it is cancelled"
    assert shown["attempts"][0]["state"] == "cancelled"


def test_cancel_a_queued_and_a_parked_turn(host):
    host.plan(tasks={"t-queued": [{"class": "rate_limited", "retry_after_ms": 60000}], "t-parked": [{"class": "bad_request"}]})
    parked = host.published("alpha", "owner", "t-parked")
    host.worker("alpha")
    host.ends(parked, "parked")
    queued = host.published("alpha", "owner", "t-queued")  # afterwards: its profile rests
    host.ends(queued, "queued")
    for turn in (queued, parked):
        assert host.cancel(turn).status == 0
        host.ends(turn, "cancelled")
    assert host.replay(parked).status == 6
    assert len(host.calls()) == 2


def test_cancel_a_turn_that_waits_by_its_short_id(host):
    """Before any worker has taken it in, too, the digits that `turns list` prints are enough."""
    turn = host.published("alpha", "owner", "t-1")
    assert host.cancel(turn[:12], "--timeout", "0").ok().one["turn_id"] == turn
    host.worker("alpha")
    host.ends(turn, "cancelled")
    assert host.calls() == []


@pytest.mark.core
def test_cancel_before_its_handoff(host):
    """Rule 28: a cancel of a turn that the log does not know is kept, and settles the handoff that comes later."""
    members = host.turn()
    key = host.key(host.identity)
    host.worker("alpha")
    host.log.append(proof.control(host.prefix, host.fleet, key, "alpha", "cancel", members["turn_id"], reason="changed my mind"))
    topic = host.topic("turns")
    wait_until(lambda: any(one.key.startswith(b"~cancel.") for one in host.log.records(topic)), what="the note")
    host.log.append(host.handoff(members))
    host.ends(members["turn_id"], "cancelled")
    assert host.calls() == []


def test_rule_28_a_cancel_by_who_may_not_is_dropped(host):
    """A note by somebody without the right does not settle the handoff."""
    key = host.principal("mallory", "kind: program\ncreate: {alpha: [owner]}\n")
    members = host.turn(role="reviewer")
    host.worker("alpha")
    host.log.append(proof.control(host.prefix, host.fleet, key, "alpha", "cancel", members["turn_id"], reason="because"))
    time.sleep(0.3 * SLOW)
    host.log.append(host.handoff(members))
    assert host.ends(members["turn_id"], "completed")["role"] == "reviewer"


def test_e28_a_cancel_touches_one_turn(host):
    host.plan(default=[{"until": host.fake + "/go"}])
    first, second = host.published("alpha", "owner", "t-1"), host.published("alpha", "owner", "t-2")
    host.worker("alpha")
    host.called(2)
    host.cancel(first).ok()
    host.ends(first, "cancelled")
    assert host.state(second) == "running"
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(second, "completed")


def test_e27_cancel_twice_and_of_a_completed_turn(host):
    host.plan(default=[{}], tasks={"t-2": [{"class": "rate_limited", "retry_after_ms": 60000}]})
    completed = host.published("alpha", "owner", "t-1")
    host.worker("alpha")
    host.ends(completed, "completed")
    queued = host.published("alpha", "owner", "t-2")  # after it: what is rate limited rests for all of the profile's turns
    host.ends(queued, "queued")
    assert host.cancel(completed).status == 6
    assert host.state(completed) == "completed"
    assert host.cancel(queued).status == 0
    host.ends(queued, "cancelled")
    assert host.cancel(queued).status in (0, 6)


def test_a_cancel_needs_a_reason(host):
    turn = host.published()
    assert host.run("turns", "cancel", turn).status == 2
    assert host.run("turns", "cancel", turn, "--reason", "").status == 2
    host.drain()
    assert host.state(turn) == "completed"


# ---- X21, X22, X23 ----

@pytest.fixture
def running(host):
    host.plan(default=[{"until": host.fake + "/go"}], tasks={"t-parked": [{"class": "bad_request"}, {}]})
    turn = host.published("alpha", "reviewer", "t-1")
    parked = host.published("alpha", "reviewer", "t-parked")
    host.worker("alpha", "w1")
    host.called(2)
    host.ends(parked, "parked")
    yield host, turn, parked
    open(host.fake + "/go", "w", encoding="ascii").close()


@pytest.mark.parametrize("who, code", [("unsigned", "bad_signature"), ("stranger", "unknown_key"), ("service", "not_permitted"),
                                       ("other service", "not_permitted"), ("operator of beta", "not_permitted"),
                                       ("another class", "bad_signature")])
def test_x21_cancel_and_replay_by_who_may_not(running, who, code):
    """X21: without key, by a service, by an operator of another service: dead-lettered, the turns go on."""
    host, turn, parked = running
    key = {"stranger": proof.Key.new, "service": lambda: host.key("alpha"), "other service": lambda: host.key("beta"),
           "operator of beta": lambda: host.principal("bob", "kind: person\noperate: [beta]\n")}.get(
               who, lambda: host.key(host.identity))()
    records = [proof.control(host.prefix, host.fleet, key, "alpha", "cancel", turn, reason="because"),
               proof.control(host.prefix, host.fleet, key, "alpha", "replay", parked, attempt=1)]
    for record in records:
        if who == "unsigned":
            record.headers = []
        if who == "another class":
            record.headers = [("baton-sig", proof.proof(key, host.fleet, "turn", record.key, record.value).encode())]
        host.log.append(record)

    def codes():
        return [letter.header("baton-code") for letter in host.log.records(host.topic("dlq")) if b'"kind"' in (letter.value or b"")]

    if who == "operator of beta":
        # its cancel may be of a turn that it created, so it is judged with the turn: no effect, letter or not
        wait_until(lambda: codes().count(code) >= 1, what=lambda: f"a letter {code}: {codes()}")
    else:
        wait_until(lambda: codes().count(code) >= 2, what=lambda: f"two letters {code}: {codes()}")
    time.sleep(0.2)
    assert host.state(turn) == "running" and host.state(parked) == "parked"
    assert len(host.calls()) == 2


def test_x22_old_control_records_have_no_effect(host):
    """X22: a replay and a cancel that were obeyed once are nothing the second time."""
    turn, _ = park(host, "reviewer")
    key = host.key(host.identity)
    replay = proof.control(host.prefix, host.fleet, key, "alpha", "replay", turn, attempt=1)
    host.plan(default=[{"class": "bad_request"}])
    host.log.append(replay)
    host.called(2)
    wait_until(lambda: host.show(turn)["attempts"][-1]["state"] == "failed", what="attempt 2 to fail")
    host.log.append(replay)  # names attempt 1, the turn is parked at 2
    host.ends(host.published("alpha", "owner", "t-marker"), "parked")
    assert host.state(turn) == "parked" and len(host.calls(turn=turn)) == 2
    cancel = proof.control(host.prefix, host.fleet, key, "alpha", "cancel", turn, reason="enough")
    host.log.append(cancel)
    host.ends(turn, "cancelled")
    host.log.append(cancel)
    host.log.append(replay)
    last = host.published("alpha", "owner", "t-last")
    host.ends(last, "parked")
    assert host.state(turn) == "cancelled" and len(host.calls(turn=turn)) == 2


@pytest.mark.parametrize("what", ["not claimed", "old token", "other service"])
def test_x23_reports_without_the_token(running, what):
    """X23: a report for an attempt not claimed, with an old token, or by another service changes nothing."""
    host, turn, _ = running
    key = host.key("beta" if what == "other service" else "alpha")
    record = proof.control(host.prefix, host.fleet, key, "alpha", "report", turn, attempt=2 if what == "not claimed" else 1,
                           boot="0" * 32, result={"verdict": "approve", "summary": "forged"})
    host.log.append(record)
    time.sleep(0.5 * SLOW)
    shown = host.show(turn)
    assert shown["state"] == "running" and shown["verdict"] is None


@pytest.mark.few_on_kafka("what", "sent again")
@pytest.mark.parametrize("what", ["sent again", "of another boot"])
def test_x22_renewals_of_a_dead_holder_in_a_loop(host, what):
    """X22: renewals signed with the service's own key do not keep a dead holder's attempt alive: neither an old one sent
    again, nor new ones of a boot that did not claim it."""
    host.plan(default=[{"hang": True}, {}])
    turn = host.published("alpha", "reviewer", "t-1")
    first = host.worker("alpha", "w1")
    host.called(1)
    record = next(one for one in host.log.records(host.topic("turns")) if one.key == turn.encode()).json()
    first.kill()
    host.worker("alpha", "w2")
    started = time.monotonic()
    key = host.key("alpha")

    def renewal(boot, seq):
        return proof.control(host.prefix, host.fleet, key, "alpha", "renew", turn, attempt=1, boot=boot, seq=seq)

    old, seq = renewal(record["lease"]["boot"], 1), 0
    while host.state(turn) != "completed":
        seq += 1
        host.log.append(old if what == "sent again" else renewal("0" * 32, seq))
        time.sleep(0.2)
        assert time.monotonic() - started < 20 * SLOW, host.all_logs()
    assert host.show(turn)["attempts"][0]["class"] == "lost"


def test_pause_and_resume_of_a_service(host):
    """A pause written by who operates the service: handoffs wait, control goes on; resume lets them run."""
    host.run("services", "pause", "alpha", "--reason", "maintenance", "--json").ok()
    host.worker("alpha")
    turn = host.published()
    time.sleep(1)
    assert not host.calls()
    host.run("services", "resume", "alpha", "--reason", "done", "--json").ok()
    host.ends(turn, "completed")


def test_x3_a_worker_whose_own_key_was_revoked_does_not_start(host):
    """Its outcomes would be believed by nobody."""
    host.run("keys", "revoke", host.key("alpha").id).ok()
    worker = host.worker("alpha")
    assert worker.wait() == 4 and "keys rotate alpha" in worker.log, worker.log
    host.run("keys", "rotate", "alpha").ok()
    turn = host.published()
    host.drain()
    assert host.state(turn) == "completed"
