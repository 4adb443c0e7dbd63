"""Records that must change nothing (RECORD section 6): forged, altered, misrouted, old, copied.

Nothing means: no executor call, no turn record, no outcome; the turn that is named goes on. The record
lies in the dead-letter topic, byte for byte, with its code.
"""
import json
import os
import time

import pytest

import proof
from host import wait_until

DAY = 24 * 3600


class Watch:
    """What a service's topics held before, so that `nothing` can be asserted after."""

    def __init__(self, host, service="alpha"):
        self.host, self.service = host, service
        self.before = self.state()

    def state(self):
        host = self.host
        turns = [(record.key, record.value) for record in host.log.records(host.topic("turns", self.service))
                 if not record.key.startswith(b"~")]
        outcomes = [record.value for record in host.log.records(host.topic("outcomes", None))]
        return turns, outcomes, len(host.calls())

    def letter(self, record, code):
        """Waits for the dead letter of this record and checks that it is byte for byte the same."""
        host = self.host

        def find():
            for letter in host.log.records(host.topic("dlq", self.service)):
                if (letter.key or b"", letter.value or b"") == (record.key or b"", record.value or b"") and \
                        [data for name, data in letter.headers if name == "baton-sig"] == \
                        [data for name, data in record.headers if name == "baton-sig"]:
                    return letter
            return None

        letter = wait_until(find, 20, lambda: f"the dead letter of {record}; there are "
                            f"{[(one, one.header('baton-code')) for one in host.log.records(host.topic('dlq', self.service))]}\n{host.all_logs()}")
        assert letter.header("baton-code") in ([code] if isinstance(code, str) else code), letter.headers
        return letter

    def refused(self, record, code, **where):
        self.host.log.append(record, **where)
        letter = self.letter(record, code)
        assert self.state() == self.before, "something changed"
        return letter


@pytest.fixture
def watch(host):
    host.worker("alpha")
    return Watch(host)


def test_the_forger_can_make_good_records(host, watch):
    """The counter-test of all that follow: what this file signs well is executed."""
    record = host.handoff(host.turn(role="arbiter", task="t-good"))
    host.log.append(record)
    host.ends(record.key.decode(), "completed")
    call, = host.calls()
    assert (call["role"], call["task"]) == ("arbiter", "t-good")


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def test_x1_a_flipped_byte_anywhere(host, watch):
    """X1: value, key, signature; a sample of places over each."""
    good = host.handoff(host.turn())
    records = [good.copy(value=flip(good.value, at)) for at in range(0, len(good.value), 29)]
    records += [good.copy(key=flip(good.key, at)) for at in (0, 15, 31)]
    signature = good.headers[0][1]
    records += [good.copy(headers=[("baton-sig", flip(signature, at))]) for at in range(19, len(signature), 23)]
    other = host.handoff(host.turn(task="t-other"))
    records.append(good.copy(headers=other.headers))
    for record in records:
        host.log.append(record)
    for record in records:
        watch.letter(record, ("bad_signature", "unknown_key"))
    assert watch.state() == watch.before


@pytest.mark.few_on_kafka("what")
@pytest.mark.parametrize("what, code", [
    ("none", "bad_signature"), ("two", "bad_signature"), ("upper", "bad_signature"), ("short", "bad_signature"),
    ("long", "bad_signature"), ("version", "bad_signature"), ("spaces", "bad_signature"), ("name", "bad_signature"),
    ("null", "bad_signature"), ("header", "schema_unsupported")])
def test_x2_a_signature_header_that_is_none(host, watch, what, code):
    good = host.handoff(host.turn())
    signature = good.headers[0][1].decode()
    headers = {
        "none": [], "two": good.headers * 2, "upper": [("baton-sig", signature[:19] + signature[19:].upper())],
        "short": [("baton-sig", signature[:-2])], "long": [("baton-sig", signature + "00")],
        "version": [("baton-sig", "2" + signature[1:])], "spaces": [("baton-sig", signature.replace(" ", "  "))],
        "name": [("Baton-Sig", signature)], "null": [("baton-sig", None)],
        "header": good.headers + [("baton-x", "1")],
    }[what]
    headers = [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]
    record = good.copy(headers=headers)
    host.log.append(record)
    watch.letter(record, code if what != "name" else ("bad_signature", "schema_unsupported"))
    assert watch.state() == watch.before


def test_x3_an_unknown_key_and_its_replay_once_it_is_trusted(host, watch):
    """X3: unknown_key; the same bytes, replayed after the key was added, are executed once."""
    key = proof.Key.new()
    record = host.handoff(host.turn(origin="ci"), signer=key)
    watch.refused(record, "unknown_key")
    host.trust_key("ci", key, "kind: program\ncreate: {alpha: [reviewer]}\n")
    letter, = host.letters()
    time.sleep(1.1)  # the folder is read again once a second at most
    done = host.replay(letter.get("id") or letter["turn_id"])
    assert done.status == 0, done
    host.ends(record.key.decode(), "completed")
    assert len(host.calls()) == 1


def test_x3_a_key_that_has_just_come_is_known_at_once(host, watch):
    """X3: the trust folder is read again before a key is refused, not after. A worker looks at it once a second by
    itself, so one key would not show that."""
    turns = []
    for n in range(8):
        key = proof.Key.new()
        host.trust_key(f"ci-{n}", key, "kind: program\ncreate: {alpha: [reviewer]}\n")
        record = host.handoff(host.turn(origin=f"ci-{n}"), signer=key)
        host.log.append(record)
        turns.append(record.key.decode())
    for turn in turns:
        host.ends(turn, "completed")
    assert not host.log.records(host.topic("dlq")) and len(host.calls()) == 8


def test_x3_a_revoked_key(host, watch):
    key = host.principal("ci", "kind: program\ncreate: {alpha: [reviewer]}\n")
    first = host.handoff(host.turn(origin="ci", task="t-1"), signer=key)
    host.log.append(first)
    host.ends(first.key.decode(), "completed")
    host.run("keys", "revoke", key.id).ok()
    again = Watch(host)
    record = host.handoff(host.turn(origin="ci", task="t-2"), signer=key)
    time.sleep(1.1)  # trust is read again once a second at most
    again.refused(record, "unknown_key")


@pytest.mark.few_on_kafka("how")
@pytest.mark.parametrize("how", ["fleet", "control", "pass", "request", "outcome"])
def test_x4_signed_for_something_else(host, watch, how):
    """X4: another fleet, another class of record."""
    members = host.turn()
    signer = host.key(host.identity)
    if how == "fleet":
        value = proof.compact(members)
        record = proof.Record(host.topic("handoff"), members["turn_id"].encode(), value,
                              [("baton-sig", proof.proof(signer, "other", "turn", members["turn_id"], value).encode())])
    else:
        record = host.handoff(members, kind=how)
    watch.refused(record, "bad_signature")


@pytest.mark.core
@pytest.mark.parametrize("known", [False, True])
def test_x5_r19_a_turn_re_signed_with_another_role(host, watch, known):
    """X5, R-19: the id is a hash of the role; a known turn goes on with its own."""
    members = host.turn(role="reviewer")
    if known:
        host.plan(default=[{"until": host.fake + "/go"}])
        host.log.append(host.handoff(members))
        host.called(1)
    again = Watch(host)
    again.refused(host.handoff(dict(members, role="owner")), "invalid_envelope")
    if known:
        open(host.fake + "/go", "w", encoding="ascii").close()
        assert host.ends(members["turn_id"], "completed")["role"] == "reviewer"
    assert [call["role"] for call in host.calls()] == (["reviewer"] if known else [])


@pytest.mark.few_on_kafka("create")
@pytest.mark.parametrize("create, code", [
    ("{alpha: [owner]}", "not_permitted"), ("{beta: [reviewer]}", "not_permitted"), ("{'*': [owner, arbiter]}", "not_permitted"),
    ("{}", "not_permitted")])
def test_x6_an_origin_without_the_right(host, watch, create, code):
    key = host.principal("ci", f"kind: program\ncreate: {create}\n")
    watch.refused(host.handoff(host.turn(origin="ci"), signer=key), code)


def test_x7_a_service_cannot_give_birth(host, watch):
    """X7: a compromised worker of beta forges a turn for alpha, or for itself."""
    key = host.key("beta")
    watch.refused(host.handoff(host.turn(origin="beta"), signer=key), "not_permitted")
    watch.refused(host.handoff(host.turn(origin=host.identity, task="t-2"), signer=key), "not_permitted")
    own = host.key("alpha")
    watch.refused(host.handoff(host.turn(origin="alpha", task="t-3"), signer=own), "not_permitted")


def test_x8_an_origin_speaks_for_another(host, watch):
    """X8: another's turn id; `origin` of another."""
    key = host.principal("ci", "kind: program\ncreate: {'*': [owner, reviewer, arbiter]}\n")
    theirs = host.turn()
    watch.refused(host.handoff(dict(theirs, origin="ci"), signer=key), "invalid_envelope")
    watch.refused(host.handoff(theirs, signer=key), "not_permitted")


def test_x10_h18_a_handoff_copied_to_another_service(host):
    """X10, H-18, R-05: alpha's record on beta's topic is wrong_service, and nothing happens at beta."""
    host.worker("beta")
    watch = Watch(host, "beta")
    turn = host.published("alpha", "reviewer", "t-1")
    record, = host.log.records(host.topic("handoff"))
    watch.refused(record.copy(topic=host.topic("handoff", "beta")), "wrong_service")
    host.drain("alpha")
    assert [(call["fake_service"], call["turn"]) for call in host.calls()] == [("alpha", turn)]


@pytest.mark.core
def test_x11_a_copy_on_another_partition(host, watch):
    """X11: wrong_partition; one execution."""
    turn = host.published()
    host.ends(turn, "completed")
    record, = host.log.records(host.topic("handoff")) or [None]
    again = Watch(host)
    count = host.log.partitions(record.topic)
    for step in range(1, count):
        copy = record.copy(headers=list(record.headers))
        host.log.append(copy, partition=(record.partition + step) % count)
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == count - 1, what="the dead letters")
    assert {letter.header("baton-code") for letter in host.log.records(host.topic("dlq"))} == {"wrong_partition"}
    assert again.state() == again.before and len(host.calls()) == 1


def test_x11_an_unknown_turn_on_another_partition(host, watch):
    record = host.handoff(host.turn())
    right = proof.partition_of(record.key, host.log.partitions(record.topic))
    watch.refused(record, "wrong_partition", partition=(right + 1) % host.log.partitions(record.topic))


def test_x12_sent_again(host, watch):
    """X12: at once and after the end a duplicate; after eight and fifteen days handoff_expired."""
    record = host.handoff(host.turn())
    host.log.append(record)
    host.ends(record.key.decode(), "completed")
    for _ in range(3):
        host.log.append(record)

    def duplicates():
        return [one for one in host.log.records(host.topic("outcomes", None)) if one.json()["event"] == "duplicate"]

    wait_until(lambda: len(duplicates()) == 3, what="the answers to the copies")
    assert len(host.calls()) == 1 and not host.log.records(host.topic("dlq"))
    for days in (8, 15):
        again = Watch(host)
        again.refused(host.handoff(host.turn(task=f"t-{days}", created=-days * DAY)), "handoff_expired")
    again = Watch(host)
    if host.driver == "local":  # a broker sets the time itself
        again.refused(host.handoff(host.turn(task="t-later")), "handoff_expired", at=time.time() + 8 * DAY)


@pytest.mark.drivers("local")
def test_e22_a_handoff_that_waited_for_its_service_is_taken(host):
    """What counts is when it was appended: a week in the topic does no harm."""
    record = host.handoff(host.turn(created=-20 * DAY))
    host.log.append(record, at=time.time() - 19 * DAY)
    host.drain()
    assert host.show(record.key.decode())["state"] == "completed"


def test_x13_times_that_cannot_be(host, watch):
    watch.refused(host.handoff(host.turn(created=365 * DAY)), "handoff_expired")
    watch.refused(host.handoff(host.turn(task="t-2", life=8 * DAY)), "invalid_envelope")
    watch.refused(host.handoff(host.turn(task="t-3", life=-1)), ("invalid_envelope", "handoff_expired"))


# ---- passes ----

@pytest.fixture
def passing(fresh):
    """beta receives; alpha may pass reviewer turns to it, delta too; gamma may not."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": fresh.service(roles=["owner"]), "delta": None},
                           roles={"reviewer": {"chain": ["alpha", "delta", "beta"]}})
    host.worker("beta")
    return host


def passed(host, members, *passes, **more):
    record = host.handoff(members, service="beta", **more)
    record.headers += [("baton-pass", one.encode()) for one in passes]
    return record


def a_pass(host, members, attempt=2, to="beta", come_from="alpha", signer=None, **more):
    return proof.pass_header(signer or host.key("alpha"), host.fleet, members["turn_id"], proof.compact(members),
                             attempt, to, come_from, **more)


def test_a_good_pass_is_taken_with_its_attempt_and_role(passing):
    """E22: the turn keeps its id; attempt and counters are those of the last pass."""
    host = passing
    members = host.turn(role="reviewer")
    host.log.append(passed(host, members, a_pass(host, members, attempt=3, failures=2)))
    shown = host.ends(members["turn_id"], "completed")
    call, = host.calls()
    assert (call["attempt"], call["role"], call["fake_service"]) == (3, "reviewer", "beta")
    assert shown["role"] == "reviewer"


@pytest.mark.few_on_kafka("attempt")
@pytest.mark.parametrize("attempt", ["65535", "-1", "0", "1", "9223372036854775808", "abc", "2.0", "02", ""])
def test_x16_e19_an_attempt_that_is_none(passing, attempt):
    """X16, E19: refused as invalid_envelope; never wrapped, never reset."""
    host = passing
    watch = Watch(host, "beta")
    members = host.turn()
    watch.refused(passed(host, members, a_pass(host, members, attempt=attempt)), ("invalid_envelope", "bad_signature"))


@pytest.mark.few_on_kafka("field")
@pytest.mark.parametrize("field", [1, 4, 5, 6, 7, 8])
def test_x16_a_pass_that_was_altered(passing, field):
    """X16: attempt, counters, class or time changed after the signature."""
    host = passing
    watch = Watch(host, "beta")
    members = host.turn()
    words = a_pass(host, members).split(" ")
    words[field] = {7: "quota", 8: proof.now(-60)}.get(field) or str(int(words[field]) + 1)
    watch.refused(passed(host, members, " ".join(words)), "bad_signature")


@pytest.mark.few_on_kafka("how")
@pytest.mark.parametrize("how, code", [
    ("another signs", ("bad_signature", "not_permitted")), ("no right for the role", "not_permitted"),
    ("no right for the edge", "not_permitted"), ("no pass at all", "wrong_service"), ("to another", "not_permitted"),
    ("gap", "wrong_service"), ("no right, with a gap", "not_permitted"), ("falling attempts", "invalid_envelope"), ("nine", ("invalid_envelope", "bad_signature", "record_too_large")),
    ("of another turn", "bad_signature")])
def test_x14_x15_chains_that_do_not_hold(passing, how, code):
    host = passing
    watch = Watch(host, "beta")
    members = host.turn(role="arbiter" if how == "no right for the role" else "reviewer",
                        service="gamma" if how == "no right for the edge" else "alpha")
    passes = {
        "another signs": lambda: [a_pass(host, members, signer=host.key("gamma"))],
        "no right for the role": lambda: [a_pass(host, members)],
        "no right for the edge": lambda: [a_pass(host, members, come_from="gamma", signer=host.key("gamma"))],
        "no pass at all": lambda: [],
        "to another": lambda: [a_pass(host, members, to="gamma")],
        "gap": lambda: [a_pass(host, members, come_from="delta", signer=host.key("delta"))],
        "no right, with a gap": lambda: [a_pass(host, members, come_from="gamma", signer=host.key("gamma"))],
        "falling attempts": lambda: [a_pass(host, members, attempt=3), a_pass(host, members, attempt=2)],
        "nine": lambda: [a_pass(host, members, attempt=n + 2) for n in range(9)],
        "of another turn": lambda: [a_pass(host, host.turn(task="t-other"))],
    }[how]()
    watch.refused(passed(host, members, *passes), code)


# ---- what a record names ----

def test_x17_a_forged_record_about_a_running_turn(host, watch):
    """X17: it is dead-lettered, and the turn is neither parked nor settled."""
    host.plan(default=[{"until": host.fake + "/go"}])
    members = host.turn()
    good = host.handoff(members)
    host.log.append(good)
    host.called(1)
    again = Watch(host)
    again.refused(good.copy(headers=[("baton-sig", flip(good.headers[0][1], 40))]), "bad_signature")
    again.refused(host.handoff(members, signer=proof.Key.new()), "unknown_key")
    assert host.state(members["turn_id"]) == "running"
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(members["turn_id"], "completed")


@pytest.mark.parametrize("served, role", [("owner", "reviewer"), ("reviewer", "owner")])
def test_x18_a_role_that_is_not_served_parks_the_turn(fresh, served, role):
    """X18, R-05, R-15: in both directions: a proven turn that must not run here is parked with its role, and never executed."""
    host = fresh.configure({"alpha": fresh.service(roles=[served])})
    refused = host.publish("alpha", role, "t-0").refused("role_not_served", 7)
    assert "services.alpha.roles" in refused.out, "a publisher who knows better does not send it"
    record = host.handoff(host.turn(role=role))
    host.log.append(record)
    turn = record.key.decode()
    host.drain()
    assert host.calls() == []
    shown = host.show(turn)
    assert (shown["state"], shown["role"]) == ("parked", role)
    assert any(letter["code"] == "role_not_served" and letter["turn_id"] == turn for letter in host.letters())


def test_x18_no_role(host, watch):
    """X18, R-15, R-50: role_unresolved; nothing is guessed from the reason or the status."""
    members = host.turn(drop=("role",), turn_id="0" * 32, summary="reviewer: please review")
    letter = watch.refused(host.handoff(members), "role_unresolved")
    assert letter


def test_x18_two_roles_by_a_duplicate_key(host, watch):
    members = host.turn(role="reviewer")
    value = proof.compact(members).replace(b'"role":"reviewer"', b'"role":"reviewer","role":"owner"')
    watch.refused(host.handoff(members, value=value), "invalid_envelope")


@pytest.mark.few_on_kafka("role")
@pytest.mark.parametrize("role", ["", "Reviewer", "human", "owner ", "owner\\u0000", None, 1, ["owner"]])
def test_r23_a_role_that_is_none(host, watch, role):
    if role == "owner\\u0000":
        members = host.turn()
        value = proof.compact(members).replace(b'"reviewer"', b'"owner\\u0000"')
        record = host.handoff(members, value=value)
    else:
        members = host.turn()
        members["role"] = role
        members["turn_id"] = proof.turn_id(host.fleet, members)
        record = host.handoff(members)
    watch.refused(record, ("invalid_envelope", "role_unresolved"))


FIELDS = ["version", "turn_id", "origin", "service", "task_id", "task_rev", "run_id", "epoch", "intent", "key", "parent",
          "created_at", "expires_at", "summary", "data", "payload"]


@pytest.mark.few_on_kafka("field")
@pytest.mark.parametrize("field", FIELDS)
def test_r35_h19_every_field_of_the_identity_is_required(host, watch, field):
    """R-35, R-36, H-19: a record without one of its fields is refused, even properly signed."""
    members = host.turn()
    key = members["turn_id"]
    del members[field]
    watch.refused(host.handoff(members, key=key, service="alpha"), ("invalid_envelope", "schema_unsupported"))


@pytest.mark.few_on_kafka("change")
@pytest.mark.parametrize("change, code", [
    ({"version": 2}, "schema_unsupported"), ({"version": "1"}, "invalid_envelope"), ({"extra": 1}, ("invalid_envelope", "unsupported_field")),
    ({"task_rev": -1}, "invalid_envelope"), ({"task_rev": 2147483648}, "invalid_envelope"), ({"epoch": 1.5}, "invalid_envelope"),
    ({"task_id": "a b"}, "invalid_envelope"), ({"task_id": "x" * 65}, "invalid_envelope"), ({"key": "k" * 201}, "invalid_envelope"),
    ({"summary": ""}, "invalid_envelope"), ({"summary": "x" * 4097}, "invalid_envelope"), ({"data": []}, "invalid_envelope"),
    ({"payload": "text"}, "invalid_envelope"), ({"payload": {"media_type": "text/plain"}}, "invalid_envelope"),
    ({"created_at": "2026-11-29 14:20:43"}, "invalid_envelope"), ({"created_at": "2026-13-29T14:20:43.120Z"}, "invalid_envelope"),
    ({"confirmed": True}, ("invalid_envelope", "unsupported_field"))])
def test_values_out_of_their_grammar(host, watch, change, code):
    members = host.turn(**change)
    watch.refused(host.handoff(members), code)


def test_l66_another_version_is_not_run(host, watch):
    watch.refused(host.handoff(host.turn(version=2)), "schema_unsupported")


def test_ext_is_carried_and_ignored(host, watch):
    record = host.handoff(host.turn(ext={"role": "owner", "anything": [1, 2]}))
    host.log.append(record)
    host.ends(record.key.decode(), "completed")
    assert host.calls()[0]["role"] == "reviewer"


# ---- X29, X28 ----

def test_x29_proof_off_and_required(fresh):
    """X29: without proofs an unsigned record runs and the worker says so; with proofs it does not."""
    host = fresh.configure({"alpha": None}, proof="off")
    unsigned = host.handoff(host.turn(task="t-off")).copy(headers=[])
    host.log.append(unsigned)
    worker = host.worker("alpha")
    host.ends(unsigned.key.decode(), "completed")
    assert "proof" in worker.log and "off" in worker.log, worker.log
    assert "off" in host.run("doctor").out
    worker.stop()
    host.write({"alpha": None})
    second = host.handoff(host.turn(task="t-required")).copy(headers=[])
    host.log.append(second)
    host.drain()
    assert host.letter("bad_signature") and [call["task"] for call in host.calls()] == ["t-off"]


def test_x28_keys_rotate_under_load(host):
    """X28: no record is refused while keys change; retiring too early is."""
    host.worker("alpha")
    turns = []
    old = host.key(host.identity).id
    for n in range(20):
        turns.append(host.published("alpha", "owner", f"t-{n}"))
        if n == 10:
            host.run("keys", "rotate", host.identity).ok()
            host.run("keys", "rotate", "alpha").ok()
    assert host.key(host.identity).id != old
    for turn in turns:
        host.ends(turn, "completed")
    assert not host.letters()
    done = host.run("keys", "retire", old, "--json")
    assert done.status != 0, done
    assert any(old in name for name in os.listdir(os.path.join(host.dir, "trust")))


def test_keys_for_a_host_that_copies_its_trust(host):
    """keys generate makes a pair and the file of rights; its record is taken once trust has it."""
    done = host.run("keys", "generate", "ci", "--create", "alpha=owner,reviewer")
    assert done.status == 0, done
    assert os.path.exists(os.path.join(host.dir, "keys", "ci.pem"))
    host.worker("alpha")
    turn = host.publish("alpha", "owner", "t-1", "--set", "identity=ci").ok().one["turn_id"]
    host.ends(turn, "completed")
    assert host.publish("alpha", "arbiter", "t-1", "--set", "identity=ci").status == 4
    listed = host.run("keys", "list").ok().out
    assert "ci" in listed and host.key("ci").id in listed


def test_one_more_record_with_everything_at_once(host, watch):
    """A burst of bad records among good ones: the good ones run, each bad one has its letter."""
    good, bad = [], []
    for n in range(30):
        record = host.handoff(host.turn(task=f"t-{n}", role=("owner", "reviewer", "arbiter")[n % 3]))
        if n % 3 == 1:
            record = record.copy(value=flip(record.value, 100))
            bad.append(record)
        else:
            good.append(record)
        host.log.append(record)
    for record in good:
        host.ends(record.key.decode(), "completed")
    for record in bad:
        watch.letter(record, "bad_signature")
    assert len(host.calls()) == len(good)
    assert all(json.loads(call["stdin"])["role"] == call["role"] for call in host.calls())
