"""Poison pills: what bytes may come in a record, and what they must not do (C rows, X33, X16)."""
import json

import pytest

import proof
from host import wait_until
from test_30_forged import Watch


@pytest.fixture
def watch(host):
    host.worker("alpha")
    return Watch(host)


def raw(host, value, members=None):
    """A record whose value is exactly these bytes, properly signed by who may create the turn."""
    members = members or host.turn()
    return host.handoff(members, value=value)


def good_value(host):
    members = host.turn()
    return members, proof.compact(members)


JSON_FAULTS = {
    "empty": (lambda v: b"", ("invalid_envelope",)),
    "null": (lambda v: b"null", ("invalid_envelope",)),
    "array": (lambda v: b"[" + v + b"]", ("invalid_envelope",)),
    "cut": (lambda v: v[:-1], ("invalid_envelope",)),
    "brace": (lambda v: b'{"', ("invalid_envelope",)),
    "trailing": (lambda v: v + b"x", ("invalid_envelope",)),
    "two": (lambda v: v + v, ("invalid_envelope",)),
    "nul byte behind": (lambda v: v + b"\0", ("invalid_envelope",)),
    "nul byte within": (lambda v: v.replace(b"forged", b"for\0ged"), ("invalid_envelope",)),
    "nul escape": (lambda v: v.replace(b"forged", b"for\\u0000ged"), ("invalid_envelope",)),
    "byte order mark": (lambda v: b"\xef\xbb\xbf" + v, ("invalid_envelope",)),
    "invalid utf-8": (lambda v: v.replace(b"forged", b"for\xffged"), ("invalid_envelope",)),
    "overlong utf-8": (lambda v: v.replace(b"forged", b"for\xc0\xafged"), ("invalid_envelope",)),
    "surrogate": (lambda v: v.replace(b"forged", b"for\xed\xa0\x80ged"), ("invalid_envelope",)),
    "lone escape": (lambda v: v.replace(b"forged", b"for\\ud800ged"), ("invalid_envelope",)),
    "duplicate key": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":0,"task_rev":1'), ("invalid_envelope",)),
    "duplicate within data": (lambda v: v.replace(b'"data":{}', b'"data":{"a":1,"a":2}'), ("invalid_envelope",)),
    "escaped duplicate": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":0,"task\\u005frev":1'), ("invalid_envelope",)),
    "case": (lambda v: v.replace(b'"role"', b'"Role"'), ("invalid_envelope", "role_unresolved")),
    "fraction": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":0.0'), ("invalid_envelope",)),
    "exponent": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":0e0'), ("invalid_envelope",)),
    "leading zero": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":00'), ("invalid_envelope",)),
    "above 2^53": (lambda v: v.replace(b'"data":{}', b'"data":{"a":9007199254740993}'), ("invalid_envelope",)),
    "2^63": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":9223372036854775808'), ("invalid_envelope",)),
    "nan": (lambda v: v.replace(b'"task_rev":0', b'"task_rev":NaN'), ("invalid_envelope",)),
    "single quotes": (lambda v: v.replace(b'"', b"'"), ("invalid_envelope",)),
    "comment": (lambda v: v.replace(b'"data":{}', b'"data":{}/* */'), ("invalid_envelope",)),
    "depth 64": (lambda v: v.replace(b'"data":{}', b'"data":{"a":' + b"[" * 64 + b"]" * 64 + b"}"), ("invalid_envelope",)),
    "depth 999": (lambda v: v.replace(b'"data":{}', b'"data":{"a":' + b"[" * 999 + b"]" * 999 + b"}"), ("invalid_envelope",)),
    "depth 1001": (lambda v: v.replace(b'"data":{}', b'"data":{"a":' + b"[" * 1001 + b"]" * 1001 + b"}"), ("invalid_envelope",)),
    "depth 120000": (lambda v: b"[" * 120000 + b"]" * 120000, ("invalid_envelope",)),
    "too many keys": (lambda v: v.replace(b'"data":{}', b'"data":' + json.dumps({f"k{n}": 1 for n in range(33)}).encode()),
                      ("invalid_envelope",)),
    "too large": (lambda v: v.replace(b"hello", b"x" * 262144), ("record_too_large", "invalid_envelope")),
}


@pytest.mark.few_on_kafka("fault")
@pytest.mark.parametrize("fault", sorted(JSON_FAULTS))
def test_x33_c14_c18_json_that_is_refused(host, watch, fault):
    """X33, C14, C17, C18, C20: refused whatever the signature says, no crash, the next one runs."""
    change, codes = JSON_FAULTS[fault]
    members, value = good_value(host)
    changed = change(value)
    assert changed != value
    watch.refused(raw(host, changed, members), codes)
    assert host.workers[0].alive
    record = host.handoff(host.turn(task="t-next"))
    host.log.append(record)
    host.ends(record.key.decode(), "completed")


@pytest.mark.few_on_kafka("size", 4097)
@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 8192, 65536])
def test_c02_payloads_are_read_by_their_length(host, watch, size):
    """C02: exactly page-sized values, without a NUL behind them."""
    members = host.turn(task=f"t-{size}")
    members["payload"]["text"] = ""
    members["turn_id"] = proof.turn_id(host.fleet, members)
    missing = size - len(proof.compact(members))
    members["payload"]["text"] = "x" * max(0, missing)
    record = host.handoff(members)
    host.log.append(record)
    host.ends(record.key.decode(), "completed")
    assert json.loads(host.calls()[0]["stdin"])["payload"] == members["payload"]


@pytest.mark.few_on_kafka("text")
@pytest.mark.parametrize("text", ["", "\n", "\u2028\u202e", "\\u0000".replace("\\\\", "\\"), "ä" * 1000, "\U0001f600", "\x1b[2J"])
def test_i08_text_reaches_the_executor_as_it_was(host, watch, text):
    """I08: what the sender wrote is what the executor reads."""
    members = host.turn(payload={"media_type": "text/plain", "text": text})
    record = host.handoff(members)
    host.log.append(record)
    host.ends(record.key.decode(), "completed")
    assert json.loads(host.calls()[0]["stdin"])["payload"]["text"] == text


@pytest.mark.few_on_kafka("payload")
@pytest.mark.parametrize("payload, code", [
    ({"media_type": "text/plain", "base64": "!!!"}, "invalid_envelope"),
    ({"media_type": "text/plain", "text": "a", "base64": "YQ=="}, "invalid_envelope"),
    ({"media_type": "text/plain", "ref": "/etc/shadow"}, "invalid_envelope"),
    ({"media_type": "", "text": "a"}, "invalid_envelope"), ({}, "invalid_envelope")])
def test_payloads_that_are_none(host, watch, payload, code):
    watch.refused(host.handoff(host.turn(payload=payload)), code)


@pytest.mark.few_on_kafka("ref")
@pytest.mark.parametrize("ref", ["file:///etc/shadow", "/etc/shadow", "../../etc/shadow", "http://127.0.0.1:1/x"])
def test_a_payload_by_reference_is_never_fetched_from_anywhere(host, ref):
    """Only configured roots; here there are none: the turn is parked or refused, nothing is read, nothing runs."""
    record = host.handoff(host.turn(payload={"media_type": "text/plain", "ref": ref, "sha256": "0" * 64, "size": 5}))
    host.log.append(record)
    host.drain()
    assert not host.calls()
    assert {letter["code"] for letter in host.letters()} <= {"payload_unavailable", "invalid_envelope"} and host.letters()


@pytest.mark.few_on_kafka("count")
@pytest.mark.parametrize("count", [33, 500])
def test_too_many_headers(host, watch, count):
    """Counts and sizes are checked before anything is allocated for them."""
    good = host.handoff(host.turn())
    record = good.copy(headers=good.headers + [(f"x-{n}", b"y") for n in range(count)])
    host.log.append(record)
    worker = host.workers[0]
    wait_until(lambda: host.log.records(host.topic("dlq")) or not worker.alive, what="a dead letter, or a refusal to go on")
    assert watch.state() == watch.before
    if not worker.alive:  # the local log's own writers cannot make such a record: its file is damaged then
        assert worker.wait() == 8 and "store_failed" in worker.log, worker.log


def test_unknown_headers_are_information(host, watch):
    good = host.handoff(host.turn())
    record = good.copy(headers=good.headers + [("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                                               ("x-anything", b"\x00\xff"), ("baton-attempts", b"[{}]")])
    host.log.append(record)
    host.ends(record.key.decode(), "completed")


def test_c20_an_empty_payload_is_a_payload(host):
    turn = host.publish("alpha", "owner", "t-1", "--payload", "-", stdin=b"").ok().one["turn_id"]
    host.drain()
    assert host.show(turn)["state"] == "completed"


@pytest.mark.few_on_kafka("kind")
@pytest.mark.parametrize("kind", ["nonsense", "", None])
def test_control_records_that_are_none(host, watch, kind):
    turn = host.published()
    host.ends(turn, "completed")
    again = Watch(host)
    record = proof.control(host.prefix, host.fleet, host.key(host.identity), "alpha", kind, turn, reason="x")
    again.refused(record, "invalid_envelope")


def test_control_records_with_unknown_fields_or_bad_json(host, watch):
    turn = host.published()
    host.ends(turn, "completed")
    key = host.key(host.identity)
    again = Watch(host)
    again.refused(proof.control(host.prefix, host.fleet, key, "alpha", "cancel", turn, reason="x", role="owner"),
                  ("invalid_envelope", "unsupported_field"))
    value = b'{"version":1,"kind":"cancel","kind":"replay"}'
    again.refused(proof.Record(host.topic("control"), turn.encode(), value,
                               [("baton-sig", proof.proof(key, host.fleet, "control", turn, value).encode())]), "invalid_envelope")
