"""How an attempt may end, and what follows: the role stays whatever happens (R, G, E rows)."""
import json
import os
import time

import pytest

from host import SLOW, wait_until

PARKING = ["auth", "access_denied", "rate_limited", "quota", "overloaded", "unavailable", "timeout", "crash",
           "invalid_output", "no_verdict", "bad_request", "policy"]


@pytest.mark.core
@pytest.mark.parametrize("role", ["owner", "reviewer", "arbiter"])
def test_retry_keeps_the_role(host, role):
    """R-38, R-51: the attempt that follows a failure is the same turn under the same role."""
    host.plan(default=[{"class": "unavailable"}, {"class": "overloaded"}, {}])
    turn = host.published("alpha", role, "t-1")
    host.drain()
    assert [(call["attempt"], call["role"], call["turn"]) for call in host.calls()] == \
        [(1, role, turn), (2, role, turn), (3, role, turn)]
    shown = host.show(turn)
    assert shown["state"] == "completed" and shown["role"] == role
    assert [(one["no"], one["state"], one["class"]) for one in shown["attempts"]] == \
        [(1, "failed", "unavailable"), (2, "failed", "overloaded"), (3, "completed", None)]


@pytest.mark.few_on_kafka("failure")
@pytest.mark.parametrize("failure", PARKING)
def test_r02_no_failure_ends_a_turn(host, failure):
    """R-02, R-03, I23: driven to exhaustion by any class, the turn is parked with its role, never ended."""
    host.plan(default=[{"class": failure}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["verdict"]) == ("parked", "reviewer", None), shown
    assert {one["class"] for one in shown["attempts"]} == {failure}
    assert all(call["role"] == "reviewer" for call in host.calls())
    letter, = host.letters()
    assert letter["turn_id"] == turn and letter["role"] == "reviewer"
    record, = host.log.records(host.topic("dlq"))
    assert record.json()["role"] == "reviewer" and record.header("baton-code") == letter["code"]
    if failure in ("bad_request", "policy"):
        assert len(host.calls()) == 1, "no retry helps"
    else:
        assert len(host.calls()) >= (1 if failure in ("auth", "access_denied") else 2)


@pytest.mark.few_on_kafka("status")
@pytest.mark.parametrize("status, failure", [(0, "no_verdict"), (75, "unavailable"), (77, "auth"), (65, "bad_request"),
                                             (1, "crash"), (127, "crash")])
def test_exit_statuses_without_a_result(host, status, failure):
    """DESIGN section 7, R-41: exit 0 without a verdict is no_verdict, not success."""
    host.plan(default=[{"exit": status}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.worker("alpha")
    wait_until(lambda: host.state(turn) and host.show(turn)["attempts"][0]["state"] == "failed", what="the first end")
    assert host.show(turn)["attempts"][0]["class"] == failure


def test_a_verdict_needs_exit_0(host):
    host.plan(default=[{"exit": 3, "result": {"verdict": "approve"}}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    assert host.show(turn)["state"] == "parked" and host.show(turn)["verdict"] is None


@pytest.mark.few_on_kafka("role")
@pytest.mark.parametrize("role, verdict", [("reviewer", "done"), ("owner", "approve"), ("arbiter", "approve"),
                                           ("reviewer", "Approve"), ("reviewer", ""), ("owner", "lgtm")])
def test_a_verdict_must_be_legal_for_the_role(host, role, verdict):
    """RULES S6: anything else is no_verdict."""
    host.plan(default=[{"verdict": verdict}])
    turn = host.published("alpha", role, "t-1")
    host.drain()
    shown = host.show(turn)
    assert shown["state"] == "parked" and {one["class"] for one in shown["attempts"]} <= {"no_verdict", "invalid_output"}


@pytest.mark.few_on_kafka("role")
@pytest.mark.parametrize("role, verdict", [
    ("owner", "done_with_concerns"), ("owner", "blocked"), ("owner", "needs_context"), ("reviewer", "changes"),
    ("reviewer", "blocked"), ("reviewer", "needs_context"), ("reviewer", "escalate"), ("arbiter", "revise"),
    ("arbiter", "reset"), ("arbiter", "escalate")])
def test_every_verdict_of_a_role_completes(host, role, verdict):
    """R-42: an escalation is a verdict like others; no other turn comes of it here."""
    host.plan(default=[{"verdict": verdict}])
    turn = host.published("alpha", role, "t-1")
    host.drain()
    assert (host.show(turn)["state"], host.show(turn)["verdict"]) == ("completed", verdict)
    assert len(host.turns()) == 1


@pytest.mark.few_on_kafka("raw")
@pytest.mark.parametrize("raw", ["", "{", "[]", "approve", '{"verdict":"approve"}{"verdict":"changes"}',
                                 '{"verdict":"approve","verdict":"changes"}', '{"verdict":1}',
                                 '{"verdict":"approve","nonsense":1}', '{"verdict":"approve"} x', "\x00", "\udcff\udcfe",
                                 '{"verdict":"approve","summary":"\\u0000"}', '{"class":"nonsense"}',
                                 '{"verdict":"approve","data":' + "[" * 100 + "]" * 100 + "}",
                                 '{"verdict":"approve","summary":"' + "x" * 70000 + '"}'])
def test_x34_a_result_that_is_none_is_invalid_output(host, raw):
    """X34, C15: two results, unknown fields, broken JSON, too large: never a verdict, always an end."""
    host.plan(default=[{"raw": raw}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    shown = host.show(turn)
    assert shown["state"] == "parked" and shown["verdict"] is None
    assert {one["class"] for one in shown["attempts"]} <= {"invalid_output", "no_verdict"}, shown


def test_c15_output_with_nul_and_bad_utf8_still_ends(host):
    """C15: what the provider prints never keeps a turn running."""
    host.plan(default=[{"stdout": "\x00\udcff\x1b[2J\u202e", "stderr": "\udcfe\x00"}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    assert host.show(turn)["state"] == "completed"
    outcome = [record.json() for record in host.log.records(host.topic("outcomes", None))][-1]
    assert outcome["event"] == "completed"


def test_r33_rotation_is_another_attempt_of_the_same_turn(fresh):
    """R-33: the second profile at the same service; when it is refused too, the turn is parked."""
    host = fresh.configure({"alpha": fresh.service(profiles=[
        {"name": "first", "env": {"TOKEN": {"value": "a"}}}, {"name": "second", "env": {"TOKEN": {"value": "b"}}}])},
        retry={"rest": "0s"})
    host.plan(tasks={"t-1": [{"class": "auth"}, {}], "t-2": [{"class": "auth"}]})
    mended = host.published("alpha", "reviewer", "t-1")
    parked = host.published("alpha", "reviewer", "t-2")
    host.drain()
    shown = host.show(mended)
    assert shown["state"] == "completed"
    assert [(one["no"], one["profile"], one["service"]) for one in shown["attempts"]] == \
        [(1, "first", "alpha"), (2, "second", "alpha")]
    assert [call["env"]["TOKEN"] for call in host.calls(turn=mended)] == ["a", "b"]
    shown = host.show(parked)
    assert shown["state"] == "parked" and len({one["profile"] for one in shown["attempts"]}) == 2
    assert shown["role"] == "reviewer"


def test_failures_are_budgeted(fresh):
    """Six failures in all, whatever the classes; the counters are never reset."""
    host = fresh.configure({"alpha": None}, retry={"first": "20ms", "factor": 1, "max": "50ms", "jitter": 0.1,
                                                   "each_service": 50, "max_wait": "15m"}, budget={"failures": 6},
                           circuit={"after": 1000, "for": "30s", "probe": "15s"})
    host.plan(default=[{"class": "unavailable"}])
    turn = host.published()
    host.drain()
    assert len(host.calls()) == 6 and host.show(turn)["state"] == "parked"


def test_d16_a_retry_waits(fresh):
    """D16: attempts are not burnt in milliseconds; the wait grows."""
    host = fresh.configure({"alpha": None}, retry={"first": "400ms", "factor": 2, "max": "5s", "jitter": 0.1,
                                                   "each_service": 3, "max_wait": "15m"})
    host.plan(default=[{"class": "unavailable"}, {"class": "unavailable"}, {}])
    host.published()
    host.drain()
    ends = [line["t"] for line in host.lines() if line["event"] == "end"]
    starts = [call["t"] for call in host.calls()]
    assert starts[1] - ends[0] >= 0.35 and starts[2] - ends[1] >= 0.7


def test_i28_retry_after_is_obeyed(host):
    """I28: never earlier than what the provider asked for."""
    host.plan(default=[{"class": "rate_limited", "retry_after_ms": 1500}, {}])
    turn = host.published()
    host.drain()
    end = next(line["t"] for line in host.lines() if line["event"] == "end")
    assert host.calls(attempt=2)[0]["t"] - end >= 1.5
    assert host.show(turn)["state"] == "completed"


def test_i28_a_retry_after_beyond_max_wait_is_not_waited_for(fresh):
    host = fresh.configure({"alpha": None}, retry={"first": "100ms", "max": "1s", "max_wait": "2s"})
    host.plan(default=[{"class": "rate_limited", "retry_after_ms": 3600000}])
    turn = host.published()
    host.drain(seconds=15)
    assert host.show(turn)["state"] == "parked" and len(host.calls()) == 1


@pytest.mark.few_on_kafka("value")
@pytest.mark.parametrize("value", [-1, "soon", 9223372036854775807, 1.5])
def test_i28_a_retry_after_that_is_none_does_no_harm(host, value):
    host.plan(default=[{"raw": json.dumps({"class": "rate_limited", "message": "m", "retry_after_ms": value})}, {}])
    turn = host.published()
    host.worker("alpha")
    wait_until(lambda: host.state(turn) in ("completed", "parked"), what="an end")
    assert len(host.calls()) <= 7


def test_a09_one_that_always_fails_holds_nothing_up(host):
    """A09: it is parked, the others end, the committed offset passes it."""
    host.plan(tasks={"t-5": [{"class": "unavailable"}]})
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(20)]
    host.drain()
    states = [host.show(turn)["state"] for turn in turns]
    assert states == ["parked" if n == 5 else "completed" for n in range(20)]
    topic = host.topic("handoff")
    assert host.log.committed(host.group("alpha"), topic) == \
        {no: end for no, (_, end) in host.log.ends(topic).items() if no in host.log.committed(host.group("alpha"), topic)}


# ---- deadlines, trees, floods ----

def test_e16_a_deadline_kills_the_executor(fresh):
    """E16: the worker ends the child when the attempt's deadline passes; the class is timeout."""
    host = fresh.configure({"alpha": fresh.service(deadline="1s", parallel=1)})
    host.plan(tasks={"t-1": [{"hang": True}, {}]})
    turn = host.published("alpha", "owner", "t-1")
    host.drain()
    shown = host.show(turn)
    assert [one["class"] for one in shown["attempts"]] == ["timeout", None] and shown["state"] == "completed"
    assert not os.path.exists(f"/proc/{host.calls()[0]['pid']}")


def test_e06_a_handler_that_ignores_term_is_killed(fresh):
    """E06: the slot of one that ignores SIGTERM is free again after the grace."""
    host = fresh.configure({"alpha": fresh.service(deadline="1s", parallel=1)})
    host.plan(tasks={"t-1": [{"hang": True, "ignore_term": True}, {}]})
    first = host.published("alpha", "owner", "t-1")
    second = host.published("alpha", "owner", "t-2")
    host.worker("alpha")
    host.ends(second, "completed", 20)
    host.ends(first, "completed", 20)
    assert host.show(first)["attempts"][0]["class"] == "timeout"


def test_g01_the_whole_tree_is_killed(fresh, tmp_path):
    """G01: a grandchild in a session of its own dies with the attempt and writes nothing afterwards."""
    late = str(tmp_path / "late")
    host = fresh.configure({"alpha": fresh.service(deadline="1s")})
    host.plan(tasks={"t-1": [{"child_writes": late, "after": 9, "hang": True}]}, default=[{}])
    turn = host.published("alpha", "owner", "t-1")
    host.worker("alpha")
    wait_until(lambda: host.state(turn) and host.show(turn)["attempts"][0]["state"] == "failed", what="the time-out")
    mine = set(host.processes()) - {host.workers[0].pid}
    wait_until(lambda: not any(b"sleep 9" in cmdline(pid) for pid in host.processes()), 3, f"the tree to be gone {mine}")
    time.sleep(0.1)
    assert not os.path.exists(late)


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ")
    except OSError:
        return b""


def test_g01_a_tree_left_by_a_good_end_is_killed_too(host, tmp_path):
    late = str(tmp_path / "late")
    host.plan(default=[{"child_writes": late, "after": 5}])
    turn = host.published()
    host.worker("alpha")
    host.ends(turn, "completed")
    wait_until(lambda: not any(b"sleep 5" in cmdline(pid) for pid in host.processes()), 3, "the tree to be gone")
    assert not os.path.exists(late)


def test_g03_an_executor_has_its_own_group(host):
    """G03: killing one turn's group leaves worker and siblings alive."""
    host.plan(default=[{"until": host.fake + "/go"}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(3)]
    worker = host.worker("alpha")
    calls = host.called(3)
    groups = {call["pgid"] for call in calls}
    assert len(groups) == 3 and os.getpgid(worker.pid) not in groups
    os.killpg(calls[0]["pgid"], 9)
    open(host.fake + "/go", "w", encoding="ascii").close()
    for turn in turns:
        host.ends(turn, "completed")
    assert worker.alive
    assert host.show(calls[0]["turn"])["attempts"][0]["class"] == "killed"


@pytest.mark.heavy
def test_g04_floods_are_drained_and_bounded(host):
    """G04: 100 MiB on both outputs at once: it completes, the output is cut and says so."""
    host.plan(default=[{"flood_mib": 100}])
    turn = host.published()
    host.drain(seconds=60)
    assert host.show(turn)["state"] == "completed"
    outcome = [record.json() for record in host.log.records(host.topic("outcomes", None)) if record.json()["event"] == "completed"][0]
    assert outcome["result"]["output_truncated"] is True
    assert 0 < len(outcome["result"]["output"].encode()) <= 65536


def test_x34_descriptors_0_to_3_only(host):
    """P2, X34: standard input, output, error and the result; nothing of the worker leaks."""
    host.published()
    host.drain()
    call, = host.calls()
    assert set(call["fds"]) - {max(call["fds"])} <= {0, 1, 2, 3}, call["fds"]  # the largest is the listing itself


def test_the_working_directory_is_a_scratch_of_the_attempt(host):
    host.plan(default=[{"class": "unavailable"}, {}])
    host.published()
    host.drain()
    first, second = host.calls()
    assert first["env"]["HOME"] != host.environment["HOME"] and first["env"]["TMPDIR"]
    assert not os.path.exists(first["env"]["HOME"]) or not os.listdir(first["env"]["HOME"]), "it is gone afterwards"
    assert first["cwd"] != second["cwd"] or not os.path.exists(first["cwd"])


def test_an_executor_that_is_not_there_is_told_at_the_start(fresh):
    """The program is resolved once, at the start: a worker that could do nothing says so and takes nothing."""
    host = fresh.configure({"alpha": fresh.service()})
    host.settings["services"]["alpha"]["executor"]["command"] = ["/nowhere/program"]
    host.write(host.settings["services"])
    turn = host.published()
    worker = host.worker("alpha")
    assert worker.wait() != 0 and "/nowhere/program" in worker.log
    assert host.state(turn) is None and not host.calls()


def test_output_is_masked(fresh):
    """L-40: a declared secret that the executor prints is nowhere to be read afterwards."""
    secret = os.path.join(fresh.dir, "token")
    with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("sekret-canary-4711\n")
    host = fresh.configure({"alpha": fresh.service(profiles=[{"name": "p", "env": {"TOKEN": {"file": "token"}}}])})
    host.plan(default=[{"stdout": "the token is sekret-canary-4711 and c2VrcmV0LWNhbmFyeS00NzEx\n", "stderr": "sekret-canary-4711",
                        "summary": "used sekret-canary-4711"}])
    turn = host.published()
    host.drain()
    assert host.calls()[0]["env"]["TOKEN"] == "sekret-canary-4711"
    shown = host.run("turns", "show", turn, "--json").ok().out
    assert "completed" in shown and "sekret" not in shown
    for record in host.log.records(host.topic("outcomes", None)) + host.log.records(host.topic("turns")):
        assert b"sekret-canary-4711" not in (record.value or b"") and b"c2VrcmV0LWNhbmFyeS00NzEx" not in (record.value or b"")
    assert "sekret" not in host.workers[0].log


def test_a_place_is_where_the_turn_works_when_it_is_allowed(host):
    """A turn that names a directory which the configuration does not allow does not run there."""
    record = host.handoff(host.turn(place="/etc"))
    host.log.append(record)
    host.drain()
    assert not host.calls() or host.calls()[0]["cwd"] != "/etc"


@pytest.mark.alone
def test_max_load_of_output_lines_while_slow(host):
    """Progress of a long attempt does not hold up another one."""
    host.plan(tasks={"t-slow": [{"sleep": 2, "stdout": "x\n" * 1000}]})
    slow = host.published("alpha", "owner", "t-slow")
    quick = host.published("alpha", "owner", "t-quick")
    started = time.monotonic()
    host.worker("alpha")
    host.ends(quick, "completed")
    assert time.monotonic() - started < 1.8 * SLOW
    host.ends(slow, "completed")
