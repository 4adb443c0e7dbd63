"""One byte less than a limit, the limit, one byte more (common/base/limits.h): taken and complete, or refused with its
code and the bytes kept; never lost, never a loop. The bytes are those that grow most when a record holds them as text.
"""
import json
import time

import pytest

import proof
from host import SLOW, wait_until

VALUE, SUMMARY, DATA_KEYS, DATA_VALUE, HEADERS, HEADER_BYTES = 262144, 4096, 32, 4096, 32, 65536
RESULT, OUTPUT, ITEMS, NOTE, REASON, HISTORY = 65536, 47 * 1024, 256, 512, 1024, 8192  # output: standard output's share
AROUND = (-1, 0, 1)


def swept(host, records, seconds=60):
    """Every record ends: {name: state of its turn, or the code of its dead letter}; then an ordinary turn still runs."""
    for record in records.values():
        host.log.append(record)
    last = host.handoff(host.turn(task="t-last"))
    host.log.append(last)

    def ends():
        letters = {one.value: one.header("baton-code") for one in host.log.records(host.topic("dlq"))}
        states = {one["turn_id"]: one["state"] for one in host.turns() if one["state"] not in ("queued", "running")}
        found = {name: states.get(record.key.decode()) or letters.get(record.value) for name, record in records.items()}
        return found if all(found.values()) and states.get(last.key.decode()) == "completed" else None

    found = wait_until(ends, seconds, lambda: f"every record to end: {host.turns()}\n{host.all_logs()}")
    calls = len(host.calls())
    time.sleep(0.5 * SLOW)
    assert host.workers[-1].alive and len(host.calls()) == calls, "a loop"
    return found


def sized(host, size, **more):
    """A handoff whose value has so many bytes, most of them quotes, which double in every record that quotes them."""
    members = host.turn(**more)
    members["payload"]["text"] = ""
    missing = size - len(proof.compact(members))
    members["payload"]["text"] = '"' * (missing // 2) + "x" * (missing % 2)
    record = host.handoff(members)
    assert len(record.value) == size
    return record


def handoffs(host):
    """{name: (a handoff at a limit, what becomes of it)}"""
    def turn(task, **more):
        return host.handoff(host.turn(task=task, **more))

    table = {}
    for off in AROUND:
        refused = "invalid_envelope" if off > 0 else "completed"
        table[f"value {off}"] = (sized(host, VALUE + off, task=f"value{off}"), "record_too_large" if off > 0 else "completed")
        table[f"summary {off}"] = (turn(f"summary{off}", summary='"' * (SUMMARY + off)), refused)
        table[f"keys {off}"] = (turn(f"keys{off}", data={f"k{n}": 1 for n in range(DATA_KEYS + off)}), refused)
        table[f"data {off}"] = (turn(f"data{off}", data={"k": "x" * (DATA_VALUE + off - 2)}), refused)
        history = turn(f"history{off}")
        table[f"history {off}"] = (history.copy(headers=history.headers + [("baton-attempts", b"[" + b" " * (HISTORY + off - 2) + b"]")]), "completed")
        headers = turn(f"headers{off}")
        if off <= 0 or host.driver == "kafka":  # no writer of the local log makes the other
            table[f"headers {off}"] = (headers.copy(headers=headers.headers + [(f"x-{n}", b"y") for n in range(HEADERS + off - 1)]),
                                       "invalid_envelope" if off > 0 else "completed")
        whole = sized(host, VALUE, task=f"whole{off}")
        taken = sum(len(name) + len(data) for name, data in whole.headers) + len("x-large")
        table[f"whole {off}"] = (whole.copy(headers=whole.headers + [("x-large", b"\1" * (HEADER_BYTES + off - taken))]), refused)
    return table


def test_c11_handoffs_around_their_limits(host):
    """C11, C09: value, summary, data, headers, history, the record as a whole."""
    host.worker("alpha")
    table = handoffs(host)
    found = swept(host, {name: record for name, (record, _) in table.items()})
    assert found == {name: code for name, (_, code) in table.items()}
    for name, (record, code) in table.items():
        if code == "completed":
            call, = host.calls(turn=record.key.decode())
            assert json.loads(call["stdin"])["payload"] == record.json()["payload"], name
    letters = {one.value for one in host.log.records(host.topic("dlq"))}
    assert letters == {record.value for record, code in table.values() if code != "completed"}


def test_c11_dead_letters_around_their_limits(fresh):
    """C11: whatever was taken fits the dead letter, with notes and history, and is replayed from there."""
    host = fresh.configure({"alpha": None}, circuit={"after": 1000, "for": "30s", "probe": "15s"})
    host.plan(default=[{"class": "unavailable", "message": "\1" * 4000}], tasks={"t-last": [{}]})
    host.worker("alpha")
    table = {name: record for name, (record, code) in handoffs(host).items() if code == "completed"}
    found = swept(host, table)
    assert set(found.values()) == {"parked"}, found
    letters = {one.key: one for one in host.log.records(host.topic("dlq"))}
    for name, record in table.items():
        letter = letters[record.key]
        assert letter.value == record.value and len(letter.header("baton-attempts")) <= HISTORY, name
    host.plan(default=[{}])
    for record in table.values():
        host.replay(record.key.decode()).ok()
    for record in table.values():
        host.ends(record.key.decode(), "completed")


def padded(size, **members):
    """A result object of so many bytes."""
    members["summary"] = "s"
    members["data"] = {"pad": ""}
    text = json.dumps(members)
    members["data"] = {"pad": "x" * (size - len(text))}
    return json.dumps(members)


def test_results_around_their_limits(host):
    """Result, summary, items, output, note: complete, cut and marked, or `invalid_output` and parked."""
    tasks, wanted = {}, {}
    for off in AROUND:
        ends = "parked" if off > 0 else "completed"
        for name, steps, end in (
                ("result", {"raw": padded(RESULT + off, verdict="approve")}, ends),
                ("summary", {"summary": "s" * (SUMMARY + off)}, ends),
                ("items", {"result": {"items": [{"id": f"i{n}"} for n in range(ITEMS + off)]}}, ends),
                ("output", {"stdout": "o" * (OUTPUT + off)}, "completed"),
                ("growing", {"stdout": "\1" * (OUTPUT + off)}, "completed"),
                ("largest", {"stdout": "\1" * (65536 + off), "stderr": "\1" * (65536 + off), "raw": padded(RESULT - 1, verdict="approve")}, "completed"),
                ("multibyte", {"stdout": "ä" * (OUTPUT // 2 + off)}, "completed"),
                ("note", {"class": "bad_request", "message": "\1" * (NOTE + off)}, "parked"),
                ("message", {"raw": '{"class":"bad_request","message":"%s"}' % ("m" * (RESULT + off - 37))}, "parked")):
            tasks[f"{name}{off}"], wanted[f"{name}{off}"] = [steps], end
    host.plan(tasks=tasks)
    host.worker("alpha")
    records = {task: host.handoff(host.turn(task=task)) for task in tasks}
    found = swept(host, records)
    assert found == wanted
    results = {one.json()["turn_id"]: one.json().get("result") for one in host.log.records(host.topic("outcomes", None))
               if one.json()["event"] == "completed"}
    for task, record in records.items():
        turn = record.key.decode()
        if task.startswith(("output", "growing", "largest", "multibyte")):
            output = results[turn]["output"]
            assert results[turn].get("output_truncated", False) is (output != tasks[task][0]["stdout"]), task
            assert OUTPUT // 2 < len(output.encode()) <= 65536, task
            assert not task.startswith("output") or (output == tasks[task][0]["stdout"]) is (task != "output1"), task
        shown = host.show(turn)
        if task.startswith("note"):
            assert len((shown["attempts"][-1]["note"] or "").encode()) <= NOTE, task
        if wanted[task] == "parked" and not task.startswith(("note", "message")):
            assert shown["attempts"][-1]["class"] == "invalid_output", (task, shown["attempts"])


def test_reasons_around_their_limit(host):
    """A cancel's reason, given and forged: taken whole, or refused before and after it was sent; its turn goes on."""
    host.plan(default=[{"hang": True}], tasks={"t-last": [{}]})
    host.worker("alpha")
    signer = host.key(host.identity)
    for off in AROUND:
        reason = '"' * (REASON + off)
        given, sent = host.published("alpha", "owner", f"given{off}"), host.published("alpha", "owner", f"sent{off}")
        host.called(1, turn=given)
        host.called(1, turn=sent)
        done = host.cancel(given, reason=reason)
        record = proof.control(host.prefix, host.fleet, signer, "alpha", "cancel", sent, reason=reason)
        host.log.append(record)
        if off <= 0:
            done.ok()
            assert host.ends(given, "cancelled")["cancel_reason"] == reason
            assert host.ends(sent, "cancelled")["cancel_reason"] == reason
        else:
            assert done.status == 2, done
            wait_until(lambda one=record: [letter for letter in host.log.records(host.topic("dlq")) if letter.value == one.value], 20,
                       lambda: f"the refusal\n{host.all_logs()}")
            assert host.state(given) == host.state(sent) == "running"
            host.cancel(given).ok()
            host.cancel(sent).ok()
