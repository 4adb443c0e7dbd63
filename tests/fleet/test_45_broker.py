"""A real broker that is stopped, killed and away: nothing is lost, nothing done twice, and work goes on by itself."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import time

import pytest

from host import SLOW, binary, ready, wait_until
from scrape import LISTEN, get, number, port
from ownbroker import away, brokers_of_file, fresh, host, mine, once, troubles, waits_for  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]


def load(host, count, first=0):
    """Turns of every kind of ending: at once, after a while, after a failure."""
    return [host.published("alpha", ("owner", "reviewer", "arbiter")[n % 3], f"t-{n}") for n in range(first, first + count)]


def kinds(host):
    host.plan(default=[{"sleep": 0.05}], tasks={
        **{f"t-{n}": [{"class": "unavailable"}, {"sleep": 0.3}] for n in range(0, 200, 5)},
        **{f"t-{n}": [{"sleep": 1.5}] for n in range(3, 200, 10)}})


def quiet(worker, seconds):
    """Each kind of line of trouble at most once in ten seconds (E: plain messages, no flood)."""
    counts = {}
    for one in troubles(worker):
        kind = (one["event"], one.get("about"), one.get("error") if one["event"] == "kafka.trouble" else None)
        counts[kind] = counts.get(kind, 0) + 1
    for kind, count in counts.items():
        bound = 2 + seconds / 10 if kind[0] not in ("lease.ran_out", "lease.killed") else 1000
        assert count <= bound, f"{count} lines of {kind} in {seconds:.0f} s\n{worker.log[-6000:]}"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_e12_stopped_or_killed_and_started_again(host, mine, how):
    """E12, B01: in the middle of work; turns that nobody has taken wait, those that ran end once."""
    kinds(host)
    turns = load(host, 20)
    worker = host.worker("alpha", "w1")
    host.called(7, 60)
    away(mine, 0, how)
    turns += load(host, 3, 100)
    once(host, turns)
    assert worker.alive, worker.log


@pytest.mark.long
@pytest.mark.seconds(1200)
def test_e12_stopped_and_killed_thirty_times(host, mine):
    """E12, #3437: whatever the moment: no twin is seen where there is none, no attempt runs twice, nothing stalls."""
    kinds(host)
    worker, turns = host.worker("alpha", "w1"), []
    for n in range(30):
        turns += load(host, 6, 6 * n)
        host.called(len(turns) - 3, 90)
        away(mine, 0, "stop" if n % 2 else "kill")
    once(host, turns, 120)
    assert worker.alive, worker.log


@pytest.mark.seconds(240)
@pytest.mark.parametrize("seconds", [12, pytest.param(30, marks=pytest.mark.long)])
def test_away_for_longer_than_session_and_lease(host, mine, seconds):
    """E12: two workers; what is away and what it does is said in plain words, and it goes on by itself."""
    kinds(host)
    workers = [host.worker("alpha", "w1"), host.worker("alpha", "w2")]
    host.shared(*workers)
    turns = load(host, 30)
    host.called(8, 60)
    started = time.monotonic()
    mine.stop()
    time.sleep(seconds * SLOW)
    mine.again()
    gone = time.monotonic() - started
    turns += load(host, 3, 100)
    once(host, turns, 90)
    for worker in workers:
        assert worker.alive, worker.log
        said = worker.events("kafka.away")
        assert said and all(one["brokers"] == mine.brokers and "by itself" in one["meaning"] for one in said), worker.log
        quiet(worker, gone + 5)


@pytest.mark.seconds(240)
@pytest.mark.parametrize("seconds", [0, pytest.param(30, marks=pytest.mark.long)])
def test_b14_away_when_they_start(host, mine, seconds):
    """B14: worker and coordinator wait and say for whom; a publisher, an operator and doctor end with 8 and say so; repeated, it is once."""
    waiting = host.published("alpha", "owner", "t-0")
    mine.stop()
    gone = time.monotonic()
    worker, stopped = host.worker("alpha", "w1"), host.worker("beta", "w1")
    coordinator, stopped_too = host.worker("coordinator", "c1"), host.worker("coordinator", "c2")
    for one in (worker, coordinator):
        said, = waits_for(one, f"{one.kind}.waits")[:1]
        assert mine.brokers in said["error"] and "by itself" in said["meaning"], said
    words = ("alpha", "reviewer", "t-1", "--key", "k-1")
    asked = (lambda: host.publish(*words), lambda: host.publish(*words, "--wait", "--timeout", "2s"),
             lambda: host.run("turns", "list", "--json"), lambda: host.run("topics", "plan", "--json"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: one(), asked))
    for done in answers:
        done.refused("service_unavailable", 8)
        assert mine.brokers in done.out and done.took < 15 * SLOW, done
        assert '"kafka.' not in done.err, f"the error says it once, without lines of the client\n{done.err}"
    doctor = host.run("doctor", "--json")
    found = next(one for one in doctor.objects if one["check"] == "log")
    assert doctor.status == 8 and found["code"] == "service_unavailable" and mine.brokers in found["text"], doctor
    drained = host.worker("alpha", "w9", "--drain")
    assert drained.wait(20) == 8 and mine.brokers in drained.log, "who wants to be done soon does not wait"
    for one in (stopped, stopped_too):
        waits_for(one, f"{one.kind}.waits")
        one.process.send_signal(signal.SIGHUP)
        one.process.send_signal(signal.SIGTERM)
        assert one.wait(15) == 0, "told to stop while it waited"
    said, = stopped.events("worker.stopping")
    assert (said["service"], said["worker"]) == ("beta", "w1"), "who it is, though it never had a store"
    time.sleep(max(0.0, gone + seconds * SLOW - time.monotonic()))
    assert worker.alive
    quiet(worker, time.monotonic() - gone)
    mine.again()
    turn = host.published(*words)
    assert host.published(*words) == turn
    once(host, [waiting, turn])
    assert len(host.calls()) == 2
    waits_for(coordinator, "coordinator.ready")


def test_b01_a_stop_while_the_broker_is_away(host, mine):
    """B01: who was idle and who was busy end in bounded time; the exit status says whether anything is unsettled."""
    host.plan(default=[{"sleep": 0.05}], tasks={f"l-{n}": [{"hang": True}, {}] for n in range(4)})
    busy, idle = host.worker("alpha", "w1"), host.worker("beta", "w1")
    waits_for(idle, "worker.ready")
    turns = load(host, 16)
    turns += [host.published("alpha", "owner", f"l-{n}") for n in range(2)]
    host.called(6)
    mine.stop()
    waits_for(busy, "kafka.away")
    began = time.monotonic()
    for worker in (busy, idle):
        worker.process.send_signal(signal.SIGTERM)
    assert idle.wait(15) == 0, idle.log
    # grace 5 s, session 1.5 s; the rest is what closing may take.
    assert busy.wait(30) in (0, 8), busy.log
    assert time.monotonic() - began < 30 * SLOW
    if busy.process.returncode == 8:
        assert "recorded" in busy.log and "service_unavailable" in busy.log, busy.log
    running = [call for call in host.calls() if os.path.exists(f"/proc/{call['pid']}")]
    assert not running, "no executor outlives its worker"
    mine.again()
    host.worker("alpha", "w1")
    once(host, turns)


def test_an_end_that_the_broker_did_not_take_is_settled_by_the_next_start(host, mine):
    """B01, I11: stopped without the log: 8, and the recorded end is settled; nothing runs again for it."""
    go = os.path.join(host.fake, "go")
    host.plan(default=[{"until": go, "summary": "only once"}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.called(1)
    mine.stop()
    open(go, "w", encoding="ascii").close()
    wait_until(lambda: [line for line in host.lines() if line["event"] == "end"], what="the executor to end")
    waits_for(worker, "attempt.ended")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 8, worker.log
    assert re.search(rf"turn {turn}, attempt 1", worker.log), worker.log
    mine.again()
    host.worker("alpha", "w1")
    shown = host.ends(turn, "completed")
    assert [one["class"] for one in shown["attempts"]] == [None] and len(host.calls()) == 1


def test_b10_ready_says_that_the_broker_is_away(host, mine):
    """B10: not ready, and why, while no broker answers; alive all the time; ready again by itself."""
    worker = ready(host.worker("alpha", "w1", *LISTEN))
    where = port(worker)
    wait_until(lambda: get(where, "/readyz")[0] == 200, 20, "the worker to be ready")
    mine.stop()
    wait_until(lambda: get(where, "/readyz")[:2] == (503, "not ready: no broker of the log answers\n"), 60, "it to say that it is not ready")
    assert get(where, "/healthz")[0] == 200 and number(where, "baton_ready") == 0
    mine.start()
    wait_until(lambda: get(where, "/readyz")[0] == 200, 90, "the worker to be ready again")


def test_b10_a_worker_that_starts_without_a_broker_says_so(host, mine):
    """B10: its listener is there before the log is."""
    mine.stop()
    where = port(host.worker("alpha", "w1", *LISTEN))
    wait_until(lambda: get(where, "/readyz")[:2] == (503, "not ready: the log cannot be reached\n"), 60, "it to say what it waits for")
    assert get(where, "/healthz")[0] == 200
    mine.start()
    wait_until(lambda: get(where, "/readyz")[0] == 200, 90, "the worker to be ready")


@pytest.mark.long
def test_lines_are_told_apart_when_the_broker_goes(host, mine, tmp_path):
    """Bulk publishing: what the log has is said, what is not known too, the rest was not sent; the same again doubles nothing."""
    lines = [json.dumps({"task": f"t-{n}"}).encode() + b"\n" for n in range(900)]
    argv = [binary(), "publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json"]
    with open(tmp_path / "out", "wb") as out:
        publish = subprocess.Popen(argv, cwd=host.dir, env=host.environment, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL)
    try:
        publish.stdin.write(b"".join(lines[:300]))
        publish.stdin.flush()
        wait_until(lambda: (tmp_path / "out").read_bytes().count(b"queued") == 300, 40, "the first of them to be told")
        mine.kill()
        publish.stdin.write(b"".join(lines[300:]))
        publish.stdin.close()
        assert publish.wait(90 * SLOW) == 8
    finally:
        publish.kill()
        publish.wait()
    *told, end = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert end["status"] == "failed" and end["published"] == 300 and end["unknown"] > 0 and end["last_line"] == 300, end
    assert end["unknown"] == len([one for one in told if one["status"] == "unknown"]) < 600, "the rest was not sent"
    mine.again()
    done = host.run(*argv[1:], stdin=b"".join(lines)).ok()
    assert done.objects[-1]["published"] == 900, done.objects[-1]
    turns = {one["turn_id"] for one in done.objects[:-1]}
    assert len(turns) == 900 and {one["turn_id"] for one in told} <= turns
    assert {record.key.decode() for record in host.log.records(host.topic("handoff"))} == turns
