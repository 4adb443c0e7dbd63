"""Runs under what should not happen: results nobody expected, outcomes that are forged or old, targets that cannot be
written to, coordinators that die between two steps (H rows, S4, S10, X24 to X26)."""
import concurrent.futures
import json
import os
import signal
import time

import pytest

import proof
from host import ready, wait_until
from test_67_runs import CHAINS, ask, runs, show, sound, start, taken, until  # noqa: F401 (a fixture)

FORK = ("version: 1\nname: fork\nstart: dev\nnodes:\n  dev: {role: owner}\n  one: {role: reviewer, service: beta}\n  two: {role: reviewer, service: gamma}\n"
        "transitions:\n  review: {from: dev, when: [done], to: '*'}\n"
        "ends:\n  good: {from: one, when: [approve], as: completed}\n  fine: {from: two, when: [approve], as: completed}\n")


@pytest.fixture
def fork(fresh):
    """A host whose workflow hands to two reviewers at once."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=["fork.yaml"])
    with open(os.open(os.path.join(host.dir, "fork.yaml"), os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as file:
        file.write(FORK)
    ready(host.worker("coordinator", "c1"))
    return host


def workers(host, *services):
    for service in services or ("alpha", "beta", "gamma"):
        host.worker(service)


def stands(host, run, **match):
    """Waits until the run shows these values."""
    return wait_until(lambda: (lambda one: one if all(one[name] == value for name, value in match.items()) else None)(show(host, run)), 40,
                      lambda: f"run {run} to show {match}: {show(host, run)}\n{host.all_logs()}")


def told(host, turn, event):
    """The value of the outcome of that kind about a turn."""
    return wait_until(lambda: next((one.json() for one in host.log.records(host.topic("outcomes", None))
                                    if one.json().get("turn_id") == turn and one.json()["event"] == event), None), 20,
                      lambda: f"{event} of {turn}\n{host.all_logs()}")


def say(host, outcome, signer=None, **more):
    """Puts an outcome into its topic that no worker told: another one changed (None: without it), and signed."""
    host.tampered = True
    value = {name: one for name, one in dict(outcome, **more).items() if one is not None}
    key, data = outcome["run_id"], proof.compact(value)
    signature = proof.proof(host.key(signer or value["service"]), host.fleet, "outcome", key, data)
    host.log.append(proof.Record(host.topic("outcomes", None), key.encode(), data, [("baton-sig", signature.encode())]))


def ignored(host, why, count=1):
    wait_until(lambda: len([one for one in coordinator(host).log.split("\n")[:-1] if '"outcome.ignored"' in one and why in one]) >= count, 20,
               lambda: f"an outcome to be ignored since {why}\n{host.all_logs()}")


def coordinator(host):
    return next(one for one in host.workers if one.kind == "coordinator" and one.alive)


def lives(host):
    """The coordinator has not ended, another one reads all that it has written, and both move runs."""
    assert coordinator(host).alive
    second = ready(host.worker("coordinator", "reader"))
    coordinator(host).kill()
    wait_until(lambda: len({one["partition"] for one in second.events("coordinator.restored")}) == 4, 40,
               lambda: f"all partitions to be restored\n{second.log[-3000:]}")
    assert not second.events("run.unreadable"), second.log[-3000:]


@pytest.mark.core
@pytest.mark.parametrize("asked, code", [
    ({"target": "x" * 5000, "summary": "go"}, "unknown_target"),
    ({"target": "reviewer", "summary": "é" * 4000}, "invalid_request"),
    ({"target": "reviewer", "summary": " "}, "invalid_request"),
    ({"target": "reviewer", "summary": "go", "data": {f"k{n}": "v" for n in range(200)}}, "unsupported_field")])
def test_h24_h44_what_an_executor_asks_for_is_bounded(runs, asked, code):  # noqa: F811
    """H-24, H-44: a handoff that nobody could take makes its run wait, whatever is in it: it neither ends a coordinator nor makes
    the run unreadable, and a person lets it go on."""
    runs.plan(turns={"alpha": [{"result": {"handoff": asked}}]}, default=[{}])
    workers(runs)
    run = start(runs)
    shown = stands(runs, run, state="waiting", code=code)
    assert len(shown["turns"]) == 1, shown
    ask(runs, "runs", "touch", run).ok()  # decided again, the same
    assert show(runs, run)["code"] == code
    lives(runs)
    ask(runs, "handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "go on").ok()
    sound(runs, until(runs, run, "completed"))


@pytest.mark.core
def test_h24_costs_beyond_all_bounds(runs):  # noqa: F811
    """H-24: what executors tell of costs is added up to what a record can hold, and no further."""
    most = {"result": {"cost": {"micros": 2 ** 53}}}
    runs.plan(turns={"beta": [dict(most, verdict="changes"), dict(most, verdict="changes"), dict(most, verdict="approve")]}, default=[most])
    workers(runs)
    run = start(runs)
    shown = until(runs, run, "completed")
    lives(runs)
    assert shown["cost_micros"] <= 2 ** 53
    ask(runs, "runs", "reopen", run, "--reason", "once more").ok()
    stands(runs, run, state="completed", epoch=2)


def test_h46_a_task_that_is_nothing_but_escapes(runs):  # noqa: F811
    """H-46: what the next turn is told of the task fits a value of data, however it is written."""
    workers(runs)
    done = runs.run("runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", "\"" * 3000, "--json").ok().one
    shown = until(runs, done["run_id"], "completed")
    data = json.loads(runs.calls(turn=shown["turns"][1]["turn_id"])[0]["stdin"])["data"]
    assert len(data["task"]) > 500 and set(data["task"]) == {"\""}


def test_a_blank_summary_of_a_result_is_none(runs):  # noqa: F811
    """A verdict without a word about it is followed all the same, by a turn about the task."""
    runs.plan(default=[{"summary": " \n"}])
    workers(runs)
    shown = until(runs, start(runs), "completed")
    assert json.loads(runs.calls(turn=shown["turns"][1]["turn_id"])[0]["stdin"])["summary"] == "Mend the parser"


@pytest.mark.core
def test_i3_what_cannot_be_written_stays_to_be_answered(runs):  # noqa: F811
    """I3: a turn that would be too large is none; the run says so and waits, a touch decides again, a handoff lets it go on."""
    facts = {f"k{n}": "v" * 4000 for n in range(15)}
    runs.plan(turns={"alpha": [{"result": {"data": facts}}]}, default=[{}])
    workers(runs)
    path = os.path.join(runs.dir, "payload")
    with open(path, "w", encoding="ascii") as file:
        file.write("x" * 230000)
    run = start(runs, "t-1", "--payload", path)
    shown = stands(runs, run, state="waiting", code="record_too_large")
    assert shown["stage"] == "publish" and shown["pending"] == shown["turns"][0]["turn_id"], shown
    ask(runs, "runs", "touch", run).ok()
    assert show(runs, run)["code"] == "record_too_large"
    ask(runs, "handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "look").ok()
    shown = until(runs, run, "completed")
    assert taken(shown) == {"start": 1, "review": 1}
    sound(runs, shown)


def put_rights(host, create):
    host.put(os.path.join(host.dir, "trust", "coordinator.yaml"), f"kind: program\ncreate:\n  {create}\ncoordinate: true\n".encode())


@pytest.mark.core
@pytest.mark.parametrize("when", ["start", "review"])
def test_h23_without_the_right_it_waits_and_goes_on_by_itself(runs, when):  # noqa: F811
    """H-23, I3: a turn that may not be sent just now (the first one, too) is sent once it may; until then its run is written once,
    not once a second."""
    workers(runs)
    put_rights(runs, "gamma: [arbiter]" if when == "start" else "alpha: [owner]")
    wait_until(lambda: coordinator(runs).events("trust.read"), what="the trust folder to be read")
    run = start(runs)
    shown = stands(runs, run, state="waiting", code="not_permitted", stage="publish")
    assert len(shown["turns"]) == (0 if when == "start" else 1)
    before = [(one.key, one.offset) for one in runs.log.records(runs.topic("runs", None)) if one.key == run.encode()]
    time.sleep(3)  # in which it is looked at three times
    assert [(one.key, one.offset) for one in runs.log.records(runs.topic("runs", None)) if one.key == run.encode()] == before
    put_rights(runs, "'*': [owner, reviewer, arbiter]")
    shown = until(runs, run, "completed")
    assert taken(shown) == {"start": 1, "review": 1}
    sound(runs, shown)


@pytest.mark.core
def test_x24_outcomes_that_move_nothing(runs):  # noqa: F811
    """X24: of an older epoch, of another role, birth or content, by another service, without a verdict: no turn follows."""
    runs.plan(default=[{"until": runs.fake + "/go"}])
    workers(runs)
    run = start(runs)
    turn = show(runs, run)["turns"][0]["turn_id"]
    runs.called(1, turn=turn)
    good = dict(told(runs, turn, "claimed"), event="completed", state="completed", result={"verdict": "done", "summary": "forged"})
    say(runs, good, epoch=2)
    ignored(runs, "older epoch")
    for n, more in enumerate(({"role": "reviewer"}, {"born": "gamma"}, {"content": "0" * 64}), 1):
        say(runs, good, **more)
        ignored(runs, "another turn", n)
    say(runs, good, service="beta")
    ignored(runs, "beta")
    say(runs, good, signer="beta")  # not even in the name of its key: no receipt
    say(runs, good, turn_id="0" * 32)
    ignored(runs, "no such turn")
    assert len(show(runs, run)["turns"]) == 1 and show(runs, run)["state"] == "active"
    say(runs, good, result={"summary": "no verdict at all"})
    shown = stands(runs, run, state="waiting", code="no_verdict")
    assert len(shown["turns"]) == 1 and shown["task_rev"] == 0, shown
    open(runs.fake + "/go", "w", encoding="ascii").close()


@pytest.mark.core
def test_x25_who_has_passed_a_turn_on_does_not_end_it(runs):  # noqa: F811
    """X25: after a delegation the first service's word counts no more, with or without the number of its attempt."""
    runs.plan(services={"beta": [{"class": "auth"}], "gamma": [{"until": runs.fake + "/go"}]}, default=[{}])
    workers(runs)
    run = start(runs)
    stands(runs, run, state="active", task_status="review_ready")
    turn = wait_until(lambda: next((one for one in show(runs, run)["turns"] if one["service"] == "gamma"), None), what="gamma to have it")["turn_id"]
    old = dict(told(runs, turn, "delegated"), event="completed", state="completed", to=None, result={"verdict": "approve"})
    old.pop("class", None)
    say(runs, old)
    ignored(runs, "a later attempt is known")
    say(runs, old, attempt=None)
    ignored(runs, "a later attempt is known", 2)
    assert show(runs, run)["turns"][-1]["state"] != "completed"
    open(runs.fake + "/go", "w", encoding="ascii").close()
    shown = until(runs, run, "completed")
    assert (shown["turns"][-1]["service"], shown["turns"][-1]["attempt"]) == ("gamma", 2)


@pytest.mark.core
def test_a_cancel_that_cannot_be_sent_holds_up_nobody(runs):  # noqa: F811
    """DESIGN 4: one bad record must not abort everybody's tick: a turn that is said to be at a service without topics."""
    runs.plan(tasks={"t-1": [{"until": runs.fake + "/go"}]}, default=[{}])
    workers(runs)
    run = start(runs)
    turn = show(runs, run)["turns"][0]["turn_id"]
    runs.called(1, turn=turn)
    claimed = told(runs, turn, "claimed")
    say(runs, claimed, event="delegated", state="delegated")
    ignored(runs, "where the turn goes on")
    say(runs, claimed, event="delegated", state="delegated", to="ghost")
    wait_until(lambda: show(runs, run)["turns"][0]["service"] == "ghost", what="the forged delegation")
    done = ask(runs, "runs", "cancel", run, "--reason", "not needed", "--timeout", "30s").ok().one
    assert done["result"]["state"] == "cancelled" and show(runs, run)["state"] == "cancelled"
    assert coordinator(runs).events("run.cancel_not_sent")
    until(runs, start(runs, "t-2"), "completed")
    open(runs.fake + "/go", "w", encoding="ascii").close()


@pytest.mark.core
def test_s4_a_run_with_a_parked_turn_waits(fork):
    """S4: of two reviewers one is parked when the other approves: the run waits for it, and says so; it is completed after the replay."""
    fork.plan(services={"gamma": [{"class": "bad_request"}], "beta": [{"until": fork.fake + "/go"}]}, default=[{}])
    workers(fork)
    run = start(fork, workflow="fork")
    shown = stands(fork, run, state="waiting")
    parked = next(one for one in shown["turns"] if one["state"] == "parked")
    open(fork.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: any(one["verdict"] == "approve" for one in show(fork, run)["turns"]), 20, "the approval")
    shown = show(fork, run)
    assert shown["state"] == "waiting" and parked["turn_id"] in shown["why"], shown
    fork.plan(default=[{}])
    fork.replay(parked["turn_id"]).ok()
    shown = until(fork, run, "completed")
    assert taken(shown) == {"start": 1, "review": 1} and len(shown["turns"]) == 3


def test_s4_a_parked_turn_that_is_cancelled_is_waited_for_no_more(fork):
    """S4: `why` names what is waited for; the other reviewer goes on, and its approval ends the run."""
    fork.plan(services={"gamma": [{"class": "bad_request"}], "beta": [{"until": fork.fake + "/go"}]}, default=[{}])
    workers(fork)
    run = start(fork, workflow="fork")
    shown = stands(fork, run, state="waiting")
    parked = next(one for one in shown["turns"] if one["state"] == "parked")
    fork.cancel(parked["turn_id"]).ok()
    shown = stands(fork, run, state="active")
    assert "was cancelled" in shown["why"]
    open(fork.fake + "/go", "w", encoding="ascii").close()
    until(fork, run, "completed")


def test_s4_a_question_is_not_forgotten_when_another_turn_begins(fork):
    """S4: one reviewer asks a person; that the other one's turn is only now claimed is no answer."""
    fork.plan(services={"alpha": [{}], "beta": [{"verdict": "needs_context", "summary": "which one?"}], "gamma": [{"until": fork.fake + "/go"}]})
    workers(fork, "alpha", "beta")
    run = start(fork, workflow="fork")
    stands(fork, run, state="waiting", why="one says needs_context: which one?")
    fork.worker("gamma")
    wait_until(lambda: any(one["slot"] == "two" and one["state"] == "running" for one in show(fork, run)["turns"]), 20, "gamma's turn to run")
    assert show(fork, run)["state"] == "waiting" and show(fork, run)["why"] == "one says needs_context: which one?"
    open(fork.fake + "/go", "w", encoding="ascii").close()
    until(fork, run, "completed")


@pytest.mark.core
def test_h23_of_two_targets_one_cannot_be_reached(fork):
    """H-23: the other one gets its turn, and `why` names who got none."""
    fork.plan(services={"beta": [{"until": fork.fake + "/go"}]}, default=[{}])
    workers(fork)
    put_rights(fork, "{alpha: [owner], beta: [reviewer]}")
    wait_until(lambda: coordinator(fork).events("trust.read"), what="the trust folder to be read")
    run = start(fork, workflow="fork")
    wait_until(lambda: len(show(fork, run)["turns"]) == 2, 20, lambda: f"the review: {show(fork, run)}")
    shown = show(fork, run)
    assert shown["state"] == "active" and shown["why"] == "review has not reached two: it could not be written to", shown
    open(fork.fake + "/go", "w", encoding="ascii").close()
    until(fork, run, "completed")


@pytest.mark.core
def test_h05_a_program_takes_no_verdicts_transition(runs):  # noqa: F811
    """H-05, S12: a program that may hand off is no person: what a verdict takes is not its to take."""
    runs.plan(turns={"alpha": [{"verdict": "needs_context", "summary": "which one?"}, {}]}, default=[{}])
    workers(runs, "alpha", "beta")
    runs.principal("bot", "kind: program\nrequest: [handoff]\n")
    run = start(runs)
    stands(runs, run, state="waiting")
    words = ["handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "go", "--timeout", "30s"]
    done = ask(runs, *words, "--set", "identity=bot")
    assert (done.one["code"], done.one["result"]["stage"]) == ("unknown_target", "resolve_transition"), done
    assert len(show(runs, run)["turns"]) == 1
    ask(runs, *words).ok()
    until(runs, run, "completed")


def test_l48_what_comes_after_the_end_writes_nothing(runs):  # noqa: F811
    """L-48: outcomes of a run that has ended are not applied, and its record stays where it is."""
    workers(runs)
    run = start(runs)
    shown = until(runs, run, "completed")
    record, = [one for one in runs.log.records(runs.topic("runs", None)) if one.key == run.encode()]
    last = told(runs, shown["turns"][-1]["turn_id"], "completed")
    for _ in range(3):
        say(runs, last, event="duplicate")
    until(runs, start(runs, "t-2"), "completed")
    after, = [one for one in runs.log.records(runs.topic("runs", None)) if one.key == run.encode()]
    assert (after.offset, after.value) == (record.offset, record.value)


@pytest.mark.core
@pytest.mark.seconds(240)
@pytest.mark.parametrize("point", ["log.before_commit", "log.after_commit"])
def test_h11_h25_killed_at_each_commit(runs, point):  # noqa: F811
    """H-11, H-25: a coordinator that dies at its first, second, third… commit: each turn was sent once, each edge counts what was taken."""
    runs.workers[0].stop()
    runs.plan(turns={"beta": [{"verdict": "changes"}, {"verdict": "approve"}]})
    workers(runs, "alpha", "beta")
    started = [runs.run("runs", "start", "--workflow", "paired-review", "--task", f"t-{n}", "--summary", "x", "--timeout", "0s", "--json").ok().one["run_id"]
               for n in range(3)]
    for n in range(1, 13):
        one = runs.worker("coordinator", "c1", environment={"BATON_FAULT": f"{point}:kill:{n}"})
        wait_until(lambda: not one.alive or all(show_or_none(runs, run) == "completed" for run in started), 40,
                   lambda: f"the coordinator to die\n{one.log[-2000:]}")
        if one.alive:
            one.kill()
    ready(runs.worker("coordinator", "c1"))
    for run in started:
        shown = until(runs, run, "completed", 60)
        assert taken(shown) == {"start": 1, "review": 2, "changes": 1}, shown
        sound(runs, shown)
    assert len({call["turn"] for call in runs.calls()}) == 3 * 4


def show_or_none(host, run):
    done = host.run("runs", "show", run, "--json")
    return done.one["state"] if done.status == 0 else None


def sound_ends(host, shown):
    """Each turn of the run was handed on at most once along one transition."""
    parents = [json.loads(one.value)["key"].rsplit(".", 1)[0] for service in ("alpha", "beta", "gamma")
               for one in host.log.records(host.topic("handoff", service)) if json.loads(one.value)["run_id"] == shown["run_id"]]
    assert len(parents) == len(set(parents)), parents


def requests(host):
    return host.log.records(host.topic("requests", None))


@pytest.mark.core
def test_h13_two_ask_at_once(runs):  # noqa: F811
    """H-13: two coordinators, two people who touch, cancel or hand on at the same moment: exactly one is taken, and its effect is there once."""
    runs.plan(services={"alpha": [{"verdict": "needs_context", "summary": "which one?"}], "beta": [{"until": runs.fake + "/go"}]})
    workers(runs, "alpha", "beta")
    ready(runs.worker("coordinator", "c2"))
    words = ["handoff", "--from", "owner", "--to", "reviewer", "--summary", "go", "--timeout", "30s"]
    for n in range(5):
        run = start(runs, f"t-{n}", "--timeout", "30s")
        stands(runs, run, state="waiting")
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda _: ask(runs, *words, "--run", run), range(3)))  # pylint: disable=cell-var-from-loop
        # Who looked only after the first was taken asks for what is there already (H-15).
        taken_ = [one for one in done if one.one["code"] is None and not one.one["result"]["deduped"]]
        assert len(taken_) == 1 and {one.one["code"] for one in done} <= {None, "duplicate"}, done
        shown = show(runs, run)
        assert taken(shown) == {"start": 1, "review": 1} and len(shown["turns"]) == 2, shown
        assert shown["requests"] == len([one for one in done if one.one["code"] is None]), (shown, done)


@pytest.mark.core
def test_x26_requests_once_more(runs):  # noqa: F811
    """X26: every request sent again changes nothing; one in another's name, or by nobody, is a dead letter; a program touches nothing."""
    runs.plan(turns={"beta": [{"verdict": "changes"}] * 4 + [{"verdict": "approve"}]})
    workers(runs, "alpha", "beta")
    run = start(runs)
    asked = requests(runs)  # each while it is there: who has taken them in trims them
    stands(runs, run, state="waiting", code="cycle_limit")
    ask(runs, "runs", "touch", run, "--reason", "one more").ok()
    asked += requests(runs)[-1:]
    until(runs, run, "completed")
    ask(runs, "runs", "reopen", run, "--reason", "again").ok()
    asked += requests(runs)[-1:]
    shown = stands(runs, run, state="completed", epoch=2)
    assert [one.json()["kind"] for one in asked] == ["start", "touch", "reopen"], asked
    runs.tampered = True
    answers = len(coordinator(runs).events("request.answered"))
    for one in asked:
        runs.log.append(proof.Record(one.topic, one.key, one.value, one.headers))
    wait_until(lambda: len(coordinator(runs).events("request.answered")) == answers + 3, what="three answers")
    assert {one["code"] for one in coordinator(runs).events("request.answered")[answers:]} == {"duplicate"}
    bot = runs.principal("bot", "kind: program\nrequest: [start, touch]\n")
    start_, touch = asked[0], asked[1]
    again = proof.compact(dict(touch.json(), request_no=3, id="f" * 32))
    for value, key, code in ((start_.value, bot, "invalid_envelope"), (again, proof.Key.new(), "unknown_key")):
        signature = proof.proof(key, runs.fleet, "request", run, value)
        runs.log.append(proof.Record(start_.topic, run.encode(), value, [("baton-sig", signature.encode())]))
        wait_until(lambda: any(one.header("baton-code") == code and one.value == value  # pylint: disable=cell-var-from-loop
                               for one in runs.log.records(f"dlq.{runs.prefix}.requests")), 20, lambda: f"the dead letter {code}\n{runs.all_logs()}")
    signature = proof.proof(bot, runs.fleet, "request", run, again)
    runs.log.append(proof.Record(touch.topic, run.encode(), again, [("baton-sig", signature.encode())]))
    wait_until(lambda: coordinator(runs).events("request.answered")[-1]["code"] == "person_required", what="the program's touch to be refused")
    after = show(runs, run)
    assert (after["requests"], after["turns"], after["edges"]) == (2, shown["turns"], shown["edges"])


@pytest.mark.core
def test_s4_a_deadline_passes(runs):  # noqa: F811
    """S4: a run whose deadline passes is expired once, its turn is cancelled where it runs; one that is over before it begins is refused."""
    runs.plan(default=[{"until": runs.fake + "/go"}])
    workers(runs, "alpha")
    words = ["runs", "start", "--workflow", "paired-review", "--summary", "x", "--json", "--timeout", "30s", "--deadline"]
    runs.run(*words, proof.now(-60), "--task", "t-1").refused("deadline_exceeded", 7)
    assert runs.run("runs", "list", "--json").ok().objects == []
    run = runs.run(*words, proof.now(4), "--task", "t-2").ok().one["run_id"]
    shown = until(runs, run, "expired")
    turn, = shown["turns"]
    assert turn["state"] == "cancelled" and shown["why"] == "its deadline has passed"
    wait_until(lambda: runs.state(turn["turn_id"]) in ("cancelled", "parked"), what="the turn to end")
    assert runs.run("runs", "wait", run).status == 7
    sound(runs, shown)
    open(runs.fake + "/go", "w", encoding="ascii").close()


def test_refusals_say_what_is_and_what_helps(runs):  # noqa: F811
    """S7: which run it is, how it stands, what to do."""
    workers(runs, "alpha", "beta")
    run = start(runs)
    until(runs, run, "completed")
    for words in (("runs", "cancel", run, "--reason", "x"), ("runs", "touch", run)):
        done = runs.run(*words, environment={"BATON_MODE": "attended"})
        assert done.status == 6 and f"run {run} is completed" in done.err and f"baton runs reopen {run}" in done.err, done
    runs.plan(default=[{"verdict": "needs_context"}])
    run = start(runs, "t-2")
    stands(runs, run, state="waiting")
    done = runs.run("runs", "reopen", run, "--reason", "x", environment={"BATON_MODE": "attended"})
    assert done.status == 2 and f"run {run} is waiting" in done.err, done


@pytest.mark.core
@pytest.mark.parametrize("way", ["touch", "handoff"])
def test_i3_two_ends_at_once_and_one_of_them_at_a_cap(fresh, way):
    """I3: one reviewer's changes wait at a cap when the other asks for some, too: `why` tells of both, and none is lost: after a
    person's touch both go on; a person's handoff from the second answers both, and once."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=["loop.yaml"])
    text = FORK.replace("ends:", "  back: {from: one, when: [changes], to: dev, max_cycles: 1}\n  again: {from: two, when: [changes], to: dev, max_cycles: 5}\nends:")
    with open(os.open(os.path.join(host.dir, "loop.yaml"), os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as file:
        file.write(text.replace("name: fork", "name: loop"))
    ready(host.worker("coordinator", "c1"))
    host.plan(turns={"beta": [{"until": host.fake + "/first", "verdict": "changes"}],
                     "gamma": [{"verdict": "approve"}, {"until": host.fake + "/go", "verdict": "changes"}]}, default=[{}])
    workers(host)
    run = start(host, workflow="loop")
    # The approval comes first: later, it would be cancelled as one of an older revision.
    wait_until(lambda: any(one["service"] == "gamma" and one["state"] == "completed" for one in show(host, run)["turns"]), 40, "the first approval")
    open(host.fake + "/first", "w", encoding="ascii").close()
    stands(host, run, state="waiting", code="cycle_limit")
    open(host.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: show(host, run)["turns"][-1]["verdict"] == "changes" and all(one["state"] == "completed" for one in show(host, run)["turns"]), 20,
               lambda: f"both ends: {show(host, run)}")
    shown = show(host, run)
    assert shown["state"] == "waiting" and "back was taken" in shown["why"] and "two says changes meanwhile" in shown["why"], shown
    host.plan(default=[{}])
    coordinator(host).kill()  # what waits is in the run's record
    ready(host.worker("coordinator", "c1"))
    if way == "touch":
        ask(host, "runs", "touch", run, "--timeout", "30s").ok()
    else:
        ask(host, "handoff", "--run", run, "--from", "two", "--to", "dev", "--summary", "both", "--timeout", "30s").ok()
    shown = until(host, run, "completed")
    assert {name: n for name, n in taken(shown).items() if name in ("back", "again")} == {"back": 2 if way == "touch" else 1, "again": 1}, shown
    sound_ends(host, shown)


def test_x29_without_proofs_runs_move_all_the_same(fresh):
    """X29: proof: off, on a host of one's own: runs begin, move, are touched and end."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, proof="off")
    ready(host.worker("coordinator", "c1"))
    host.plan(turns={"beta": [{"verdict": "changes"}] * 4 + [{"verdict": "approve"}]})
    workers(host)
    run = start(host)
    stands(host, run, state="waiting", code="cycle_limit")
    ask(host, "runs", "touch", run).ok()
    sound(host, until(host, run, "completed"))


@pytest.mark.core
@pytest.mark.seconds(240)
def test_l47_a_coordinator_that_stands_still(fresh):
    """L-47: coordinators stop by turns for longer than their session, and go on: what they had decided meanwhile is not taken."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta"]}, "arbiter": {"chain": ["beta"]}},
                           session="1500ms", heartbeat="300ms")
    host.plan(turns={"beta": [{"verdict": "changes"}, {"verdict": "approve"}]}, default=[{"sleep": 0.2}])
    pair = [ready(host.worker("coordinator", f"c{n}")) for n in (1, 2)]
    workers(host, "alpha", "beta")
    started = []
    for n in range(4):
        started += [host.run("runs", "start", "--workflow", "paired-review", "--task", f"t-{n}-{i}", "--summary", "x", "--timeout", "0s",
                             "--json").ok().one["run_id"] for i in range(4)]
        still = pair[n % 2]
        still.freeze()
        wait_until(lambda: all(show_or_none(host, run) for run in started), 60,  # the other one has taken over
                   lambda: f"the other one to begin them\n{host.all_logs()}")
        still.process.send_signal(signal.SIGCONT)
    for run in started:
        shown = until(host, run, "completed", 90)
        assert taken(shown) == {"start": 1, "review": 2, "changes": 1}, shown
        sound(host, shown)
    assert len({call["turn"] for call in host.calls()}) == len(started) * 4
    assert all(one.alive for one in pair)
