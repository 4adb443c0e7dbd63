"""A turn that its service cannot do goes on at the next one of its role's chain, as the same turn (R, I rows)."""
import hashlib
import json
import os
import random
import signal

import pytest

import proof
from host import ROLES, wait_until

ALL = {role: {"chain": ["alpha", "beta", "gamma"]} for role in ROLES}


def three(fresh, services=None, **settings):
    """Services alpha, beta and gamma, each role with the chain of all of them."""
    settings.setdefault("roles", ALL)
    made = {"alpha": None, "beta": None, "gamma": None}
    made.update(services or {})
    return fresh.configure(made, **settings)


def ready(*workers):
    for worker in workers:
        wait_until(lambda one=worker: one.events("worker.ready") or not one.alive, what="a worker to be ready")
    return workers[0]


def story(shown):
    """The attempts of a turn as people see them: number, service, state, class."""
    return [(one["no"], one["service"], one["state"], one["class"]) for one in shown["attempts"]]


def handoffs(host, turn, service):
    return [record for record in host.log.records(host.topic("handoff", service)) if record.key == turn.encode()]


def outcomes(host, turn):
    return [one for one in (record.json() for record in host.log.records(host.topic("outcomes", None)))
            if one.get("turn_id") == turn]


def newest(host, turn, service):
    """The turn log's word at a service, None if it does not know the turn."""
    found = [record for record in host.log.records(host.topic("turns", service)) if record.key == turn.encode()]
    return found[-1].json() if found else None


def passes(record):
    return [data.decode().split(" ") for name, data in record.headers if name == "baton-pass"]


@pytest.mark.core
def test_r07_to_r12_a_refused_credential_leaves_one_continuation(fresh):
    """R-07 to R-12, R-48, I25: the attempt is delegated, its handoff the only continuation, role and bytes the same."""
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth", "message": "401"}], "beta": [{}]})
    turn = host.published("alpha", "reviewer", "t-1")
    first, = handoffs(host, turn, "alpha")
    host.drain("alpha")
    # At alpha it is over: delegated, no lease, no retry, no dead letter, one handoff at beta.
    record = newest(host, turn, "alpha")
    assert record["state"] == "delegated" and record["to"] == {"service": "beta", "attempt": 2}, record
    assert "lease" not in record and "handoff" not in record and record["failures"] == 1
    assert [(one["no"], one["state"], one["class"]) for one in record["attempts"]] == [(1, "delegated", "auth")]
    assert not host.letters() and not host.log.records(host.topic("dlq", "alpha"))
    assert [one["event"] for one in outcomes(host, turn)] == ["delegated"]
    passed, = handoffs(host, turn, "beta")
    assert not handoffs(host, turn, "gamma")
    assert passed.value == first.value and passed.header("baton-sig") == first.header("baton-sig")
    hop, = passes(passed)
    assert hop[:8] == ["1", "2", "alpha", "beta", "1", "0", "0", "auth"], hop
    owner, public = proof.public_keys(host.dir + "/trust")[hop[9]]
    assert owner == "alpha"
    proof.verify(public, host.fleet, "pass", turn, passed.value, hop[10], " ".join(hop[:9]))
    history = json.loads(passed.header("baton-attempts"))
    assert [(one["no"], one["service"], one["state"], one["class"]) for one in history] == [(1, "alpha", "delegated", "auth")]
    assert passed.header("traceparent") == first.header("traceparent")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["to"]) == ("delegated", "reviewer", "beta")

    host.drain("beta")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["service"], shown["born"]) == ("completed", "reviewer", "beta", "alpha")
    assert story(shown) == [(1, "alpha", "delegated", "auth"), (2, "beta", "completed", None)]
    assert [(call["service"], call["attempt"], call["role"]) for call in host.calls(turn=turn)] == \
        [("alpha", 1, "reviewer"), ("beta", 2, "reviewer")]
    assert len({hashlib.sha256(call["stdin"].encode()).hexdigest() for call in host.calls(turn=turn)}) == 1, "R-10: the same bytes"
    assert [one["event"] for one in outcomes(host, turn)] == ["delegated", "completed"]
    assert outcomes(host, turn)[1]["service"] == "beta" and outcomes(host, turn)[1]["task_rev"] == shown["task_rev"]
    # Its own log tells the whole story, too: the history came along.
    record = newest(host, turn, "beta")
    assert [(one["no"], one["service"]) for one in record["attempts"]] == [(1, "alpha"), (2, "beta")] and record["since"] == 2


def test_r31_three_services_three_attempts(fresh):
    """R-31, R-34, R-38, R-51: the fallback fails, too: the next one has it under the same role, numbers count up."""
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth"}], "beta": [{"class": "auth"}], "gamma": [{}]})
    turn = host.published("alpha", "arbiter", "t-1")
    for service in ("alpha", "beta", "gamma"):
        host.drain(service)
    shown = host.show(turn)
    assert story(shown) == [(1, "alpha", "delegated", "auth"), (2, "beta", "delegated", "auth"), (3, "gamma", "completed", None)]
    assert (shown["role"], shown["failures"]) == ("arbiter", 2) and len(host.turns("--state", "completed")) == 1
    last, = handoffs(host, turn, "gamma")
    assert [hop[1:5] for hop in passes(last)] == [["2", "alpha", "beta", "1"], ["3", "beta", "gamma", "2"]]
    completed = [record for record in host.log.records(host.topic("outcomes", None)) if record.json()["event"] == "completed"][0]
    assert passes(completed) == passes(last), "X25: the passes travel with what the last service says"


def test_r39_every_service_fails_and_the_role_is_parked(fresh):
    """R-39, R-02: with all credentials broken the turn is parked where it came to, under its role; a replay goes on."""
    host = three(fresh)
    host.plan(default=[{"class": "auth"}])
    turn = host.published("beta", "arbiter", "t-1")
    for service in ("beta", "alpha", "gamma"):
        host.drain(service)
    shown = host.show(turn)
    assert (shown["state"], shown["service"], shown["role"]) == ("parked", "gamma", "arbiter")
    assert story(shown) == [(1, "beta", "delegated", "auth"), (2, "alpha", "delegated", "auth"), (3, "gamma", "failed", "auth")]
    letter, = host.letters()
    assert (letter["turn_id"], letter["role"], letter["service"]) == (turn, "arbiter", "gamma")
    host.plan(default=[{}])
    ready(host.worker("gamma"))
    assert host.replay(turn).ok().one["status"] in ("replayed", "queued")  # Kafka tells of a worker a little later
    assert story(host.ends(turn, "completed"))[3] == (4, "gamma", "completed", None)
    assert {call["role"] for call in host.calls()} == {"arbiter"}


CLASSES = {  # I23, I26: the class, and where a turn whose first two services fail by it ends
    "auth": "gamma", "access_denied": "gamma", "quota": "gamma", "rate_limited": "gamma", "overloaded": "gamma",
    "unavailable": "gamma", "timeout": "gamma", "invalid_output": "gamma", "no_verdict": "gamma", "crash": "gamma",
    "bad_request": "alpha", "policy": "alpha",
}


@pytest.mark.parametrize("failure", CLASSES)
def test_i23_each_class_ends_as_its_list_says(fresh, failure):
    """I23, I26: with the default lists; retries first where the list says so, request-side refusals are parked at once."""
    host = three(fresh, retry={"first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 1, "max_wait": "15m"},
                 budget={"failures": 20, "losses": 20})
    step = {"class": failure} if failure != "timeout" else {"hang": True}
    host.plan(services={"alpha": [step], "beta": [step], "gamma": [{}]})
    for service in ("alpha", "beta"):
        host.settings["services"][service]["deadline"] = "500ms" if failure == "timeout" else "20s"
        if failure == "crash":  # a loss: its retries are bounded by the budget alone, so its list is given
            host.settings["on_failure"] = {"crash": ["delegate", "retry", "park"]}
    host.write(**{name: value for name, value in host.settings.items() if name not in ("version", "prefix", "log", "local", "kafka")})
    turn = host.published("alpha", "reviewer", "t-1")
    for service in ("alpha", "beta", "gamma"):
        host.drain(service)
    shown = host.show(turn)
    end = CLASSES[failure]
    assert (shown["service"], shown["state"]) == (end, "completed" if end == "gamma" else "parked"), shown
    assert {one["class"] for one in shown["attempts"]} == ({failure, None} if end == "gamma" else {failure})
    tries = [call["service"] for call in host.calls(turn=turn)]
    again = 1 if failure in ("auth", "access_denied", "quota", "bad_request", "policy", "crash") else 2
    assert tries == (["alpha"] * again + ["beta"] * again + ["gamma"] if end == "gamma" else ["alpha"])


@pytest.mark.parametrize("actions", [["retry", "park"], ["delegate", "park"]], ids="-".join)
@pytest.mark.parametrize("failure", ["killed", "lost"])
def test_i23_what_was_lost_ends_as_its_list_says(fresh, failure, actions):
    """I23: a SIGKILL that was not ours, a worker that dies: at the budget of losses parked where it was, as the first list (the
    default) says; elsewhere at once where a list says so."""
    host = three(fresh, retry={"first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 1, "max_wait": "15m"},
                 budget={"losses": 3}, **({"on_failure": {failure: actions}} if "delegate" in actions else {}))
    host.plan(services={"alpha": [{"signal": 9} if failure == "killed" else {"kill_worker": True}]})
    turn, end = host.published("alpha", "reviewer", "t-1"), "delegated" if "delegate" in actions else "parked"
    for _ in range(5):
        worker = host.worker("alpha", "w1")
        wait_until(lambda one=worker: not one.alive or host.state(turn) == end, what="the worker to die, or the end")
        if worker.alive:
            break
    if end == "delegated":
        host.drain("beta")
        assert story(host.show(turn)) == [(1, "alpha", "delegated", failure), (2, "beta", "completed", None)]
        return
    shown = host.ends(turn, end)
    assert story(shown) == [(no, "alpha", "failed", failure) for no in (1, 2, 3)], shown
    assert (shown["role"], shown["losses"], shown["code"]) == ("reviewer", 3, "worker_killed") and not handoffs(host, turn, "beta")


def test_i23_a_place_that_had_to_stay_as_it_is(fresh):
    """I23: readonly_violated, from an executor with a verdict: parked at once, whatever the chain has."""
    place = os.path.join(fresh.dir, "project")
    os.mkdir(place)
    host = three(fresh, {"alpha": fresh.service(place="project")}, roles={"reviewer": {"chain": ["alpha", "beta"], "read_only": True}})
    host.plan(default=[{"child_writes": os.path.join(place, "file"), "after": 0, "sleep": 0.3}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    shown = host.show(turn)
    assert story(shown) == [(1, "alpha", "failed", "readonly_violated")] and (shown["state"], shown["verdict"]) == ("parked", None), shown
    assert host.letter("readonly_violated")["turn_id"] == turn


@pytest.mark.parametrize("failure", ["bad_request", "policy"])
def test_i26_a_refused_request_goes_on_where_its_list_says_so(fresh, failure):
    """I26: parked at once by default (above); a gateway's "terminal" 400 falls back once the configuration has it."""
    host = three(fresh, on_failure={failure: ["delegate", "park"]})
    host.plan(services={"alpha": [{"class": failure, "message": "400"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    host.drain("beta")
    assert story(host.show(turn)) == [(1, "alpha", "delegated", failure), (2, "beta", "completed", None)]


# ---- when the fallback cannot be had ----

@pytest.mark.parametrize("what, told", [("right", None), ("topic", "fallback.unavailable"), ("role", None)])
def test_r13_without_a_fallback_the_next_action_applies(fresh, what, told):
    """R-13, R-30: no right to pass, no topic at the start, no role there: retry and park here, under the same role."""
    beta = fresh.service(roles=["owner"]) if what == "role" else None
    host = fresh.configure({"alpha": None, "beta": beta}, roles={} if what == "role" else
                           {"reviewer": {"chain": ["alpha", "beta"]}}, on_failure={"overloaded": ["delegate", "retry", "park"]})
    if what == "right":
        with open(host.dir + "/trust/alpha.yaml", "w", encoding="utf-8") as file:
            file.write("kind: service\nserve: [owner, reviewer, arbiter]\n")
    elif what == "topic":
        host.log.drop(host.topic("handoff", "beta"))
    host.plan(default=[{"class": "overloaded"}, {}], tasks={"t-2": [{"class": "auth"}]})
    turn, parked = host.published("alpha", "reviewer", "t-1"), host.published("alpha", "reviewer", "t-2")
    worker = host.drain("alpha")
    assert story(host.show(turn)) == [(1, "alpha", "failed", "overloaded"), (2, "alpha", "completed", None)]
    assert host.show(parked)["state"] == "parked" and {call["role"] for call in host.calls()} == {"reviewer"}
    if told:
        event, = [one for one in worker.events(told) if one["topic"] == host.topic("handoff", "beta")]
        assert event["service"] == "beta" and "baton topics apply" in event["meaning"]


def test_r13_a_missing_fallback_is_passed_over(fresh):
    """DESIGN section 3: a fallback whose topic is missing makes only itself unavailable; the chain goes on behind it."""
    host = three(fresh)
    host.log.drop(host.topic("handoff", "beta"))
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    host.drain("gamma")
    assert story(host.show(turn)) == [(1, "alpha", "delegated", "auth"), (2, "gamma", "completed", None)]


@pytest.mark.parametrize("ends", ["apart", "together"])
def test_r13_one_bad_target_does_not_stop_the_others(fresh, ends):
    """DESIGN section 4: the topic vanishes under a running worker: what it meant to pass on takes the next action, the rest ends;
    also when all of it is one transaction, of which the broker refuses every partition for that one's sake."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}})
    host.plan(default=[{"until": host.fake + "/go"}], tasks={"t-bad": [{"until": host.fake + "/go", "class": "auth"}]})
    bad = host.published("alpha", "reviewer", "t-bad")
    good = [host.published("alpha", "owner", f"t-{n}") for n in range(3)]
    worker = ready(host.worker("alpha"))
    host.called(4)
    assert not worker.events("fallback.unavailable")
    host.log.drop(host.topic("handoff", "beta"))
    if ends == "together":
        worker.freeze()
    open(host.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: len([line for line in host.lines() if line["event"] == "end"]) == 4, what="all executors to end")
    worker.process.send_signal(signal.SIGCONT)
    for turn in good:
        host.ends(turn, "completed")
    shown = host.ends(bad, "parked")
    assert story(shown) == [(1, "alpha", "failed", "auth")] and shown["role"] == "reviewer"
    event, = worker.events("engine.target_unavailable")
    assert event["topic"] == host.topic("handoff", "beta") and event["code"] == "topic_missing"
    assert len(worker.events("turn.delegated")) == 1, f"who is to blame is known at once\n{worker.log}"
    assert not worker.events("kafka.producer_broken"), worker.log
    assert len([one for one in outcomes(host, bad) if one["event"] == "delegated"]) == 0


@pytest.mark.long
def test_r13_a_fallback_that_is_provisioned_later_is_used(fresh):
    """After half a minute its topic is looked for again."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}}, retry={"rest": "0s"},
                           circuit={"after": 1000, "for": "30s", "probe": "15s"})  # it is turned down more often than that
    host.log.drop(host.topic("handoff", "beta"))
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    worker = ready(host.worker("alpha"))
    parked = host.published("alpha", "reviewer", "t-0")
    host.ends(parked, "parked")
    host.run("topics", "apply").ok()
    host.worker("beta")
    numbers = iter(range(1, 1000))

    def passed():
        turn = host.published("alpha", "reviewer", f"t-{next(numbers)}")
        wait_until(lambda: host.state(turn) in ("parked", "delegated", "completed"), what="an end")
        return host.state(turn) != "parked"

    wait_until(passed, 60, "a turn to be passed on")
    assert worker.events("fallback.available")


# ---- profiles that rest ----

def profiles(fresh, *names, **more):
    return fresh.service(profiles=[{"name": name, "env": {"TOKEN": {"value": name}}} for name in names], **more)


def tokens(host, turn):
    return [call["env"].get("TOKEN") for call in host.calls(turn=turn)]


def test_r33_a_refused_profile_rests_for_other_turns(fresh):
    """R-33: rotate, and the next turn begins with what does not rest, also after a restart (test_75: what ends it)."""
    host = fresh.configure({"alpha": profiles(fresh, "first", "second", parallel=1)})
    host.plan(default=[{}], tasks={"t-1": [{"class": "auth"}, {}]})
    worker = host.worker("alpha", "w1")
    one = host.published("alpha", "reviewer", "t-1")
    host.ends(one, "completed")
    two = host.published("alpha", "owner", "t-2")
    host.ends(two, "completed")
    assert tokens(host, one) == ["first", "second"] and tokens(host, two) == ["second"]
    event, = worker.events("profile.refused")
    assert (event["profile"], event["class"]) == ("first", "auth")
    worker.kill()
    host.worker("alpha", "w1")
    three = host.published("alpha", "owner", "t-3")
    host.ends(three, "completed")
    assert tokens(host, three) == ["second"], "nobody has mended it"


def test_r33_when_all_rest_the_list_goes_on(fresh):
    """The next turn is passed on without a try; without a fallback it is tried all the same, and ends as its list says."""
    host = fresh.configure({"alpha": profiles(fresh, "first", "second", parallel=1), "beta": None},
                           roles={"reviewer": {"chain": ["alpha", "beta"]}})
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    ready(host.worker("alpha"), host.worker("beta"))
    first = host.published("alpha", "reviewer", "t-1")
    assert story(host.ends(first, "completed")) == [(1, "alpha", "failed", "auth"), (2, "alpha", "delegated", "auth"), (3, "beta", "completed", None)]
    assert [one["lag"] for one in host.run("services", "--json").ok().objects] == [0, 0], "a commit's marker is no handoff"
    assert tokens(host, first) == ["first", "second", None]
    second = host.published("alpha", "reviewer", "t-2")
    shown = host.ends(second, "completed")
    assert story(shown) == [(1, "alpha", "delegated", "auth"), (2, "beta", "completed", None)]
    assert shown["failures"] == 0 and shown["attempts"][0]["started_at"] is None and "rests" in shown["attempts"][0]["note"]
    assert [call["service"] for call in host.calls(turn=second)] == ["beta"]
    lonely = host.published("alpha", "owner", "t-3")
    assert story(host.ends(lonely, "parked")) == [(1, "alpha", "failed", "auth")], "one try, no rotation to what rests"
    # An operator's replay is tried at once, and its success ends the rest.
    host.plan(default=[{}])
    assert host.replay(lonely).ok().one["status"] == "replayed"
    host.ends(lonely, "completed")
    assert tokens(host, lonely)[1] == "first"
    again = host.published("alpha", "owner", "t-4")
    host.ends(again, "completed")
    assert tokens(host, again) == ["first"]


def test_i28_other_turns_wait_for_the_time_that_the_provider_named(fresh):
    """I28: one retry layer: a 429 with Retry-After holds the next turn's first attempt, too; neither is early."""
    host = fresh.configure({"alpha": fresh.service(parallel=2)})
    host.plan(default=[{}], tasks={"t-1": [{"class": "rate_limited", "retry_after_ms": 2000}, {}]})
    first = host.published("alpha", "reviewer", "t-1")
    worker = ready(host.worker("alpha"))
    wait_until(lambda: worker.events("profile.rests"), what="the refusal")
    second = host.published("alpha", "reviewer", "t-2")
    host.ends(first, "completed")
    host.ends(second, "completed")
    refused = next(line["t"] for line in host.lines() if line["event"] == "end")
    starts = [call["t"] - refused for call in host.calls()[1:]]
    assert len(starts) == 2 and min(starts) >= 2.0, starts


@pytest.mark.parametrize("after", [3600000, "junk", -1])
def test_i28_a_retry_after_that_is_not_waited_for_is_delegated(fresh, after):
    """I28: beyond retry.max_wait, or none: the next action of the list."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}},
                           retry={"first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 1, "max_wait": "15m"})
    host.plan(services={"alpha": [{"raw": json.dumps({"class": "rate_limited", "message": "429", "retry_after_ms": after})}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    host.drain("beta")
    shown = host.show(turn)
    assert shown["state"] == "completed" and shown["service"] == "beta" and shown["attempts"][-2]["state"] == "delegated"


# ---- chance ----

@pytest.mark.heavy
@pytest.mark.seconds(300)
def test_r03_r40_no_failure_ever_changes_a_role(fresh, driver):
    """R-03, R-40: random failures over three services: the role of every call is the turn's, and what followed is in the closed set."""
    chance = random.Random(28)
    count = 500 if driver == "local" else 120
    quick = {"kind": "child", "parallel": 8}
    host = three(fresh, {name: fresh.service(profiles=[{"name": "one"}, {"name": "two"}], **quick) for name in ("alpha", "beta", "gamma")},
                 retry={"first": "1ms", "factor": 1, "max": "5ms", "jitter": 0.5, "each_service": 2, "max_wait": "1s", "rest": "50ms"},
                 circuit={"after": 1000, "for": "30s", "probe": "15s"})  # failures are rolled here, no provider is down
    failures = [one for one in CLASSES if one != "timeout"] + ["killed", "readonly_violated"]
    tasks = {f"t-{n}": [{"class": chance.choice(failures)} for _ in range(chance.randint(1, 7))] + [{}] for n in range(count)}
    host.plan(tasks=tasks)
    turns = {}
    signer = host.key(host.identity)
    for task in tasks:
        members = host.turn(role=chance.choice(["reviewer", "arbiter"]), task=task, service=chance.choice(["alpha", "beta", "gamma"]))
        turns[members["turn_id"]] = members
        host.log.append(host.handoff(members, signer=signer))
    for name in ("alpha", "beta", "gamma"):
        host.worker(name)

    def over():
        listed = host.turns()
        ended = {one["turn_id"] for one in listed if one["state"] in ("completed", "parked")}
        return set(turns) == ended and listed

    listed = wait_until(over, 200, "every turn to end")
    assert {call["role"] for call in host.calls()} <= {"reviewer", "arbiter"}
    for call in host.calls():
        assert call["role"] == turns[call["turn"]]["role"], call
    assert all(one["role"] == turns[one["turn_id"]]["role"] for one in listed)
    for turn in chance.sample(sorted(turns), 40):
        attempts = host.show(turn)["attempts"]
        assert [one["no"] for one in attempts] == list(range(1, len(attempts) + 1)), "R-34"
        for one, after in zip(attempts, attempts[1:]):
            assert (one["state"] == "delegated") == (one["service"] != after["service"]), (one, after)
            assert one["state"] in ("failed", "delegated"), one
