"""The main job: a handoff reaches its worker, is executed once under its role, and nobody else sees it."""
import json
import time

import pytest

from host import SLOW, wait_until


@pytest.mark.core
@pytest.mark.parametrize("kind", ["exec", "child"])
@pytest.mark.parametrize("role, verdict", [("owner", "done"), ("reviewer", "approve"), ("arbiter", "proceed")])
def test_a_handoff_reaches_its_worker(fresh, kind, role, verdict):
    """R-21: the role is in the environment and in the turn; the whole life is shown."""
    host = fresh.configure({"alpha": fresh.service(kind=kind)})
    turn = host.published("alpha", role, "t-1", "--rev", "3", "--intent", "review")
    host.drain()
    call, = host.calls()
    assert (call["role"], call["turn"], call["attempt"], call["service"], call["task"]) == (role, turn, 1, "alpha", "t-1")
    shown = host.show(turn)
    assert (shown["turn_id"], shown["task_id"], shown["role"], shown["service"], shown["state"], shown["verdict"]) == \
        (turn, "t-1", role, "alpha", "completed", verdict)
    attempt, = shown["attempts"]
    assert set(attempt) >= {"no", "service", "worker", "profile", "state", "class", "started_at", "ended_at", "note"}
    assert (attempt["no"], attempt["service"], attempt["state"]) == (1, "alpha", "completed")
    assert attempt["started_at"] <= attempt["ended_at"]


def test_r27_the_turn_shows_all_that_is_stored(host):
    turn = host.published("alpha", "owner", "t-1", "--rev", "3", "--intent", "write")
    host.drain()
    shown = host.show(turn)
    assert shown["task_rev"] == 3 and shown["intent"] == "write" and shown["origin"] == host.identity
    assert "created_at" in shown and "run_id" in shown


def test_the_executor_gets_the_turn_on_standard_input(host):
    """DESIGN section 7: the turn as JSON on standard input, foreign text nowhere else."""
    host.publish("alpha", "reviewer", "t-1", "--summary", "Look at $(reboot)", "--payload", "-", stdin=b"--- a\n+++ b\n").ok()
    record, = host.log.records(host.topic("handoff"))
    host.drain()
    call, = host.calls()
    turn = json.loads(call["stdin"])
    value = record.json()
    for name in ("turn_id", "role", "task_id", "summary", "payload", "data"):
        assert turn[name] == value[name], name
    assert "reboot" not in json.dumps(call["argv"]) and "reboot" not in json.dumps(call["env"])


def test_l41_the_environment_is_empty_but_for_what_is_declared(fresh):
    """L-41, S11: base variables, BATON_* and the declared keys, nothing of the worker's."""
    host = fresh.configure({"alpha": fresh.service(env={"REGION": {"value": "eu"}, "TOKEN": {"from": "MY_TOKEN"}})})
    host.published()
    host.worker("alpha", None, "--drain", environment={"MY_TOKEN": "tok", "OTHER_SECRET": "canary"}).wait()
    environment = host.calls()[0]["env"]
    assert environment["REGION"] == "eu" and environment["TOKEN"] == "tok"
    others = {name for name in environment if not name.startswith("BATON_")}
    assert others <= {"PATH", "HOME", "TMPDIR", "LANG", "REGION", "TOKEN", "FAKE_DIR", "FAKE_SERVICE", "LC_CTYPE", "TRACEPARENT"}, others
    assert environment["HOME"] != host.environment["HOME"] and environment["BATON_ROLE"] == "reviewer"
    assert environment["BATON_MODE"] == "unattended", "L-14"


@pytest.mark.core
def test_r04_other_services_see_nothing(host):
    """R-04, R-47, H-18: a hundred handoffs to alpha; the worker of beta calls nothing and stores nothing."""
    host.worker("beta")
    for n in range(100):
        host.published("alpha", "reviewer", f"t-{n}")
    host.drain("alpha")
    assert len(host.calls(fake_service="alpha")) == 100
    assert host.calls(fake_service="beta") == []
    keys = [record.key for record in host.log.records(host.topic("turns", "beta"))]
    assert all(key.startswith(b"~") for key in keys), keys
    assert not host.log.committed(host.group("beta"), host.topic("handoff", "alpha"))
    assert not host.log.records(host.topic("dlq", "beta"))


def test_h20_what_waits_is_executed_when_a_worker_comes(host):
    turn = host.published()
    host.worker("alpha")
    host.ends(turn, "completed")


def test_both_services_at_once(host):
    """R-46: routing is by service; two services side by side."""
    host.worker("alpha")
    host.worker("beta")
    turns = {host.published(service, role, f"{service}-{role}"): (service, role)
             for service in ("alpha", "beta") for role in ("owner", "reviewer", "arbiter")}
    for turn in turns:
        host.ends(turn, "completed")
    assert {call["turn"]: (call["fake_service"], call["role"]) for call in host.calls()} == turns


@pytest.mark.core
@pytest.mark.parametrize("after", ["queued", "running", "completed", "parked"])
def test_a_repeat_is_one_turn(host, after):
    """R-29, E22, E24: the same command with the same key, whenever it comes, is one turn and one execution."""
    host.plan(default=[{"class": "bad_request"}] if after == "parked" else [{"sleep": 1}] if after == "running" else [{}])
    words = ("alpha", "reviewer", "t-1", "--key", "k-1", "--summary", "Once")
    turn = host.published(*words)
    if after != "queued":
        host.worker("alpha")
        host.called(1)
    if after in ("completed", "parked"):
        host.ends(turn, after)
    time.sleep(1.1)  # created_at differs by a second: the record is another one, the turn is not
    for _ in range(3):
        assert host.published(*words) == turn
    if after == "queued":
        host.worker("alpha")
    host.ends(turn, "parked" if after == "parked" else "completed")
    last = host.published("alpha", "reviewer", "t-2")
    host.ends(last, "parked" if after == "parked" else "completed")
    assert len(host.calls(turn=turn)) == 1
    assert len(host.turns()) == 2
    answers = [record.json() for record in host.log.records(host.topic("outcomes", None))]
    assert len([one for one in answers if one["event"] == "duplicate" and one["turn_id"] == turn]) == 3


@pytest.mark.parametrize("when", ["open", "closed"])
def test_x9_another_payload_under_the_same_key_conflicts(host, when):
    """X9: turn_conflict; the first one goes on, unharmed."""
    host.plan(default=[{"until": host.fake + "/go"}])
    turn = host.publish("alpha", "owner", "t-1", "--key", "k", "--payload", "-", stdin=b"first").ok().one["turn_id"]
    host.worker("alpha")
    host.called(1)
    if when == "closed":
        open(host.fake + "/go", "w", encoding="ascii").close()
        host.ends(turn, "completed")
    assert host.publish("alpha", "owner", "t-1", "--key", "k", "--payload", "-", stdin=b"second").one["turn_id"] == turn
    letter = host.letter("turn_conflict")
    assert letter["turn_id"] == turn
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed")
    call, = host.calls()
    assert "first" in call["stdin"] and "second" not in call["stdin"]


def test_x9_the_publisher_who_waits_learns_of_the_conflict(host):
    host.worker("alpha")
    host.publish("alpha", "owner", "t-1", "--key", "k", "--summary", "one", "--wait", "--timeout", "30").ok()
    done = host.publish("alpha", "owner", "t-1", "--key", "k", "--summary", "two", "--wait", "--timeout", "5")
    assert done.status != 0, f"another turn's end is not this one's: {done}"


def test_turns_list_filters(host):
    host.plan(tasks={"t-parked": [{"class": "bad_request"}]})
    host.published("alpha", "owner", "t-done")
    host.published("alpha", "reviewer", "t-parked")
    host.published("beta", "arbiter", "t-beta")
    host.drain("alpha")
    host.drain("beta")
    assert {turn["task_id"] for turn in host.turns()} == {"t-done", "t-parked", "t-beta"}
    assert [turn["task_id"] for turn in host.turns("--state", "parked")] == ["t-parked"]
    assert [turn["task_id"] for turn in host.turns("--service", "beta")] == ["t-beta"]
    assert [turn["task_id"] for turn in host.turns("--role", "owner")] == ["t-done"]
    assert host.turns("--state", "running") == []
    assert host.run("turns", "list", "--state", "nonsense").status == 2
    assert all(turn["role"] in ("owner", "reviewer", "arbiter") for turn in host.turns())


def test_r26_turns_are_known_without_any_store(host):
    """R-26: delete every store, the turns are still listed: they live in the log."""
    import os
    turn = host.published()
    host.drain()
    for path in host.stores():
        os.unlink(path)
    assert [one["turn_id"] for one in host.turns()] == [turn]
    host.drain()
    assert len(host.calls()) == 1


def test_an_unknown_turn_is_not_found(host):
    for words in (("turns", "show", "0" * 32), ("turns", "cancel", "0" * 31 + "g", "--reason", "x")):
        done = host.run(*words, "--json")
        assert done.status in (2, 5), done
    host.run("turns", "show", "0" * 32, "--json").refused("turn_not_found", 5)
    assert host.run("turns", "show", "../../etc/passwd").status == 2


def test_parallel_is_bounded_and_used(fresh):
    """A worker takes what it has capacity for, beyond the number of partitions."""
    host = fresh.configure({"alpha": fresh.service(parallel=6)})
    host.plan(default=[{"sleep": 0.4}])
    for n in range(18):
        host.published("alpha", "owner", f"t-{n}")
    host.drain()
    running = most = 0
    for line in sorted(host.lines(), key=lambda one: one["t"]):
        running += 1 if line["event"] == "start" else -1
        most = max(most, running)
    assert 4 < most <= 6, most


def test_parallel_one_is_one_at_a_time(fresh):
    host = fresh.configure({"alpha": fresh.service(parallel=1)})
    for n in range(8):
        host.published("alpha", "owner", f"t-{n}")
    host.drain()
    events = [line["event"] for line in host.lines()]
    assert events == ["start", "end"] * 8


@pytest.mark.core
def test_offsets_pass_what_is_taken_and_the_owner_trims(host):
    """Rule 17: the committed offset of every partition ends behind its last handoff once all is taken in."""
    for n in range(20):
        host.published("alpha", "owner", f"t-{n}")
    host.drain()
    topic = host.topic("handoff")
    committed = host.log.committed(host.group("alpha"), topic)
    for partition, (_, end) in host.log.ends(topic).items():
        assert committed.get(partition, 0) == end, (partition, committed, end)


@pytest.mark.alone
def test_a_start_to_the_first_turn_is_quick(host):
    turn = host.published()
    started = time.time()
    host.worker("alpha")
    call, = host.called(1)
    assert call["t"] - started < 2 * SLOW
    host.ends(turn, "completed")


@pytest.mark.core
def test_drain_ends_when_nothing_is_left_and_not_before(host):
    """--drain waits for retries too, and for what runs."""
    host.plan(default=[{"class": "unavailable"}, {"sleep": 0.5}])
    turn = host.published()
    host.drain()
    assert host.show(turn)["state"] == "completed" and len(host.calls()) == 2


def test_drain_with_nothing_to_do_ends_at_once(host):
    started = time.monotonic()
    host.drain()
    assert time.monotonic() - started < 5 * SLOW


def test_turns_watch_tells_as_it_happens(host):
    """turns watch prints what happens to a turn and ends with it, or when told to."""
    import signal
    import subprocess
    from host import binary
    host.plan(default=[{"until": host.fake + "/go"}])
    turn = host.published()
    watch = subprocess.Popen([binary(), "turns", "watch", turn, "--json"], cwd=host.dir, env=host.environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    host.worker("alpha")
    host.called(1)
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed")
    time.sleep(0.5 * SLOW)
    if watch.poll() is None:
        watch.send_signal(signal.SIGINT)
    out, _ = watch.communicate(timeout=20)
    assert b"completed" in out, out
    for line in out.splitlines():
        json.loads(line)


def test_services_show_what_there_is(host):
    host.worker("alpha", "w1")
    wait_until(lambda: "w1" in host.run("services", "--json").ok().out, what="the worker among the services")
    names = [one.get("service", one.get("name")) for one in host.run("services", "--json").objects]
    assert sorted(names) == ["alpha", "beta"]
