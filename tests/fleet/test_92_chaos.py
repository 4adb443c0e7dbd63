"""The long run of random faults (tests/chaos), for as long as the tests have, and what its count must see.

BATON_TEST_SEED repeats a plan, BATON_TEST_SECONDS says for how long.
"""
import copy
import json
import os
import signal
import subprocess

import pytest

import proof
from chaos.account import Account, Published
from chaos.plan import Plan
from chaos.runs import Runs
from chaos.runs import WRONG as WRONG_RUNS
from host import wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "chaos")
WRONG = ("lost", "double", "wrong_role", "wrong_service", "calls_twice", "results_twice")


def begun(*words):
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "BATON_BIN", "BATON_BUILD", "BATON_TEST_PRESET")}
    return subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment, start_new_session=True, text=True)


@pytest.mark.heavy
@pytest.mark.seconds(700)
@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.long)])
def test_every_turn_is_accounted_for_once(driver, short, tmp_path):
    """A to F and I rows: 0 lost, 0 continued twice, 0 under another role or elsewhere, whatever dies (I1 to I5)."""
    seconds = os.environ.get("BATON_TEST_SECONDS") or str({"kafka": 90, "local": 35}[driver] if short else 200)
    seed = ["--seed", os.environ["BATON_TEST_SEED"]] if "BATON_TEST_SEED" in os.environ else []
    run = begun("--log", driver, "--seconds", seconds, "--keep", str(tmp_path / "run"), *seed)
    out, err = run.communicate()
    print(out, err, sep="\n")
    assert run.returncode == 0, err
    counts = json.loads(out.splitlines()[-1])
    assert [counts[name] for name in WRONG] == [0] * len(WRONG)
    assert counts["turns"] == 6 * int(seconds) and counts["faults"] > int(seconds) / 3 and counts["losses"] > 0, counts
    assert counts["attempts"] >= counts["turns"] * 1.2, "executors failed, and were called again"


@pytest.mark.heavy
@pytest.mark.seconds(900)
@pytest.mark.parametrize("runs, seconds", [(40, 30), pytest.param(200, 150, marks=pytest.mark.long)])
def test_i7_i9_every_run_ends_once_whatever_dies(driver, runs, seconds, tmp_path):
    """Paired reviews while workers and both coordinators are killed, frozen and stopped: each ends once, each edge counts the handoffs
    that were taken, no turn is without a successor, and none has two (S5 I7, I9)."""
    seed = ["--seed", os.environ["BATON_TEST_SEED"]] if "BATON_TEST_SEED" in os.environ else []
    run = begun("--log", driver, "--seconds", str(seconds), "--runs", str(runs), "--coordinators", "2", "--keep", str(tmp_path / "run"), *seed)
    out, err = run.communicate()
    print(out, err, sep="\n")
    assert run.returncode == 0, err
    counts = json.loads(out.splitlines()[-1])
    assert [counts[name] for name in WRONG + WRONG_RUNS] == [0] * len(WRONG + WRONG_RUNS)
    assert counts["runs"] == counts["run_ends"] == runs and counts["handoffs"] > runs and counts["faults"] > seconds / 3, counts


@pytest.mark.drivers("local")
def test_a_run_that_is_interrupted_leaves_nothing(driver, tmp_path):
    """Ctrl-C in the middle: its workers, executors and folder go with it."""
    folder = str(tmp_path / "run")
    run = begun("--log", driver, "--seconds", "60", "--keep", folder)
    calls = os.path.join(folder, "fleet", "fake", "calls")
    wait_until(lambda: os.path.exists(calls) or run.poll() is not None, what="the first executor")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, (out, err)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and lives_in(pid, folder)]


def lives_in(pid, folder):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return folder.encode() in file.read()
    except OSError:
        return False


@pytest.mark.drivers("local")
def test_a_seed_repeats_the_plan(driver):
    """The same seed draws the same turns and faults; another one others."""
    one, same, other = Plan("kafka", 60, 300, 7), Plan("kafka", 60, 300, 7), Plan("kafka", 60, 300, 8)
    for lane in ("turns", "workers", "operators", "broker", "network"):
        assert getattr(one, lane) and getattr(one, lane) == getattr(same, lane)
    assert one.turns != other.turns and one.workers != other.workers
    assert not Plan(driver, 60, 300, 7).broker
    one, same = Plan("local", 60, 0, 7, False, 20, 2), Plan("local", 60, 0, 7, False, 20, 2)
    assert len(one.runs) == 20 and one.runs == same.runs and one.workers == same.workers
    assert {event.more["place"] for event in one.workers} > {("coordinator", "c1"), ("coordinator", "c2")}


# ---- the count itself: a story without a fault, and what each fault makes of it ----

TURN = "0123456789abcdef0123456789abcdef"


def attempt(number, service, state, failure=None, **more):
    return {"no": number, "service": service, "worker": "w1", "state": state, "class": failure, **more}


def state(word, number, attempts, lease=None, to=None):
    return {"turn_id": TURN, "role": "owner", "task_id": "t-1", "state": word, "attempt": number, "attempts": attempts,
            "lease": lease, "to": to}


def call(number, service, **more):
    return {"turn": TURN, "attempt": number, "role": "owner", "stdin_role": "owner", "service": service, "fake_service": service, **more}


def story():
    """Attempt 1 fails at alpha, which passes the turn on; beta completes it with attempt 2."""
    token = {"worker": "w1", "boot": "b1"}
    first, passed, second = attempt(1, "alpha", "running"), attempt(1, "alpha", "delegated", "auth"), attempt(2, "beta", "running")
    return [
        ("call", call(1, "alpha")), ("call", call(2, "beta")),
        ("alpha", state("running", 1, [first], token)),
        ("alpha", state("delegated", 1, [passed], to={"service": "beta", "attempt": 2})),
        ("beta", state("running", 2, [second], token)),
        ("beta", state("completed", 2, [attempt(2, "beta", "completed")])),
        ("outcome", {"event": "completed", "turn_id": TURN, "role": "owner", "attempt": 2, "service": "beta"}),
    ]


def counted(events):
    account = Account()
    account.published[TURN] = Published("t-1", "owner", "alpha")
    for kind, what in events:
        what = copy.deepcopy(what)
        if kind in ("alpha", "beta"):
            account.state(kind, what)
        else:
            getattr(account, kind)(what)
    account.judge()
    return account


def without(*numbers):
    return [one for number, one in enumerate(story()) if number not in numbers]


def instead(number, **more):
    events = story()
    events[number] = (events[number][0], dict(events[number][1], **more))
    return events


END = story()[-1]
TOLD_TWICE = ("beta", state("completed", 2, [attempt(2, "beta", "failed", "auth")]))
FAULTS = {
    "no log knows it": ("lost", [END]),
    "passed on to nowhere": ("lost", without(4, 5, 6)),
    "it never ended": ("lost", without(5, 6)),
    "no outcome": ("lost", without(6)),
    "cancelled by nobody": ("lost", [("alpha", state("cancelled", 1, [])), ("outcome", dict(END[1], event="cancelled", attempt=1, service="alpha"))]),
    "parked without a letter": ("lost", [("alpha", state("parked", 1, [attempt(1, "alpha", "failed", "policy")]))]),
    "in two services": ("double", without(3)),
    "two attempts alive": ("double", instead(4, attempts=[attempt(2, "beta", "running"), attempt(3, "beta", "queued")])),
    "claimed twice": ("double", story()[:3] + [("alpha", state("running", 1, [attempt(1, "alpha", "running")], {"worker": "w2", "boot": "b2"}))] + story()[3:]),
    "opened again": ("double", story() + [("alpha", state("queued", 2, [attempt(2, "alpha", "queued")])), story()[3]]),
    "an attempt of no log": ("double", story() + [("call", call(3, "beta"))]),
    "completed without a call": ("double", without(1)),
    "another role in a log": ("wrong_role", instead(4, role="reviewer")),
    "another role at an executor": ("wrong_role", instead(0, role="reviewer")),
    "another role on paper": ("wrong_role", instead(0, stdin_role="arbiter")),
    "another role in an outcome": ("wrong_role", instead(6, role="arbiter")),
    "executed before it was passed on": ("wrong_service", instead(0, service="beta", fake_service="beta")),
    "executed after it was passed on": ("wrong_service", instead(1, service="alpha", fake_service="alpha")),
    "with another service's program": ("wrong_service", instead(1, fake_service="alpha")),
    "called twice": ("calls_twice", story() + [("call", call(2, "beta"))]),
    "two ends of an attempt": ("results_twice", story() + [TOLD_TWICE]),
    "two results": ("results_twice", story() + [END]),
}


@pytest.mark.drivers("local")
def test_the_count_of_a_story_without_a_fault(driver):
    account = counted(story())
    assert not account.sentences() and not account.open()
    assert account.counts(3) == {"turns": 1, "faults": 3, "attempts": 2, "losses": 0, "late": 0, **{name: 0 for name in WRONG}}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("what", sorted(FAULTS))
def test_the_count_sees(driver, what):
    kind, events = FAULTS[what]
    account = counted(events)
    assert account.counts(0)[kind] > 0, account.sentences()
    assert all(TURN in sentence for sentence in account.sentences())


# ---- the same of runs: a review that approves at the second time ----

OWNER, REVIEW, MENDED, AGAIN = "a" * 32, "b" * 32, "c" * 32, "d" * 32
SAYS = {OWNER: "done", REVIEW: "changes", MENDED: "done", AGAIN: "approve"}
PATH = [(OWNER, "start", "r-1"), (REVIEW, "review", OWNER), (MENDED, "changes", REVIEW), (AGAIN, "review", MENDED)]


def sent(turn, by, parent, run="r-1"):
    return ("handoff", {"turn_id": turn, "run_id": run, "epoch": 1, "intent": by, "parent": parent})


def completed(turn):
    return ("outcome", {"event": "completed", "turn_id": turn, "run_id": "r-1", "result": {"verdict": SAYS[turn]}})


def run_record(word="completed", **edges):
    return ("record", {"run_id": "r-1", "state": word, "epoch": 1, "edges": [{"name": name, "total": total} for name, total in
                       dict({"start": 1, "review": 2, "changes": 1}, **edges).items()], "turns": [{"turn_id": turn} for turn in SAYS]})


TOLD = ("outcome", {"event": "run_ended", "run_id": "r-1", "result": {"epoch": 1}})


def review(*left_out):
    """Its events, without those."""
    events = [event for turn, by, parent in PATH for event in (sent(turn, by, parent), completed(turn))] + [run_record(), TOLD]
    return [one for number, one in enumerate(events) if number not in left_out]


RUN_FAULTS = {
    "no record": ("runs_open", review(8)),
    "it never ended": ("runs_open", review(8, 9) + [run_record("waiting")]),
    "approved and failed": ("runs_open", review(8) + [run_record("failed")]),
    "ended without a word": ("runs_ended_twice", review(9)),
    "ended twice": ("runs_ended_twice", review() + [TOLD]),
    "an edge counts too much": ("edges_wrong", review(8) + [run_record(review=3)]),
    "an edge counts too little": ("edges_wrong", review(8) + [run_record(changes=0)]),
    "a turn that no record has": ("edges_wrong", review() + [sent("e" * 32, "dispute", AGAIN)]),
    "a run that nobody asked for": ("edges_wrong", review() + [sent("e" * 32, "start", "r-2", "r-2")]),
    "nothing after a word": ("no_successor", review(4, 5, 6, 7)),
    "two after one word": ("two_successors", review() + [sent("e" * 32, "changes", REVIEW)]),
    "more after the last word": ("two_successors", review() + [sent("e" * 32, "changes", AGAIN)]),
    "begun twice": ("two_successors", review() + [sent("e" * 32, "start", "r-1")]),
    "a turn before the word": ("early_successor", review(3)),
}


def counted_runs(events):
    runs = Runs()
    runs.started["r-1"] = "t-1"
    for kind, what in events:
        getattr(runs, kind)(what)
    runs.judge()
    return runs


@pytest.mark.drivers("local")
def test_i7_i9_the_count_of_a_run_without_a_fault(driver):
    runs = counted_runs(review())
    assert not runs.sentences() and not runs.open()
    assert runs.counts() == {"runs": 1, "run_ends": 1, "handoffs": 3, **{name: 0 for name in WRONG_RUNS}}


@pytest.mark.drivers("local")
def test_i7_i9_the_count_of_a_run_whose_handoff_was_trimmed(driver):
    """A turn that only a turn log knows: its id says after which it was sent, and a made-up id says nothing."""
    state = {"origin": "coordinator", "role": "owner", "task_id": "t-1", "task_rev": 1, "run_id": "r-1", "epoch": 1, "intent": "changes"}
    mended = proof.turn_id("fleet", dict(state, service="beta", key=f"{REVIEW}.changes.owner.1"))
    for turn, is_known in ((mended, True), ("f" * 32, False)):
        runs = Runs()
        runs.fleet, runs.services = "fleet", ("alpha", "beta")
        for one in (REVIEW, turn):
            runs.state(dict(state, turn_id=one))
        found = {one: (runs.sent[one].parent, service) for one, _, service in runs.trimmed()}
        assert found == ({turn: (REVIEW, "beta")} if is_known else {}), found


@pytest.mark.drivers("local")
@pytest.mark.parametrize("what", sorted(RUN_FAULTS))
def test_i7_i9_the_count_of_runs_sees(driver, what):
    kind, events = RUN_FAULTS[what]
    runs = counted_runs(events)
    assert runs.counts()[kind] > 0, runs.sentences()
