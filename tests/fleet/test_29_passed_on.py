"""Passing a turn on while things break, and what people may do with a turn that went on elsewhere (R, X, E rows)."""
import json
import os

import pytest

import proof
from host import ROLES, wait_until
from test_28_delegation import handoffs, newest, outcomes, passes, ready, story, three

BOTH = {role: {"chain": ["alpha", "beta"]} for role in ROLES}
POINTS = ["store.before_commit", "store.after_commit", "log.before_commit", "log.after_commit", "executor.ended"]


def one_continuation(host, turn, role):
    """R-12: in all logs together the turn has exactly one place where it is not `delegated`."""
    here = {}
    for service in host.settings["services"]:
        record = newest(host, turn, service)
        if record:
            assert record["role"] == role, record
            here[service] = record["state"]
    ends = [service for service, state in here.items() if state != "delegated"]
    assert len(ends) == 1, here
    return ends[0]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("point", POINTS)
def test_r12_killed_around_a_delegation(fresh, point, number):
    """R-12, U5: the passing worker is killed at each point; after its restart there is one handoff, one continuation, one end."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    turns = [host.published("alpha", "reviewer", f"t-{n}") for n in range(3)]
    worker = host.worker("alpha", "w1", environment={"BATON_FAULT": f"{point}:kill:{number}"})
    wait_until(lambda: not worker.alive or all(host.state(turn) == "delegated" for turn in turns), what="the fault, or the end")
    if worker.alive:
        worker.kill()
    host.worker("alpha", "w1")
    for turn in turns:
        host.ends(turn, "delegated")
    host.drain("beta")
    for turn in turns:
        shown = host.show(turn)
        assert (shown["state"], shown["service"], shown["role"]) == ("completed", "beta", "reviewer")
        assert one_continuation(host, turn, "reviewer") == "beta"
        assert len(handoffs(host, turn, "beta")) == 1 and len(host.calls(turn=turn, service="beta")) == 1
        assert [one["event"] for one in outcomes(host, turn)] == ["delegated", "completed"]
        numbers = [one["no"] for one in shown["attempts"]]
        assert numbers == list(range(1, len(numbers) + 1)), shown["attempts"]
        assert shown["attempts"][-2]["state"] == "delegated"


@pytest.mark.drivers("local")
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS + ["executor.before_start", "executor.after_start"])
def test_r12_killed_where_it_goes_on(fresh, point, number):
    """R-12, R-31: the receiving worker is killed at each point: what it took in is the same turn, once."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    turn = host.published("alpha", "arbiter", "t-1")
    host.drain("alpha")
    worker = host.worker("beta", "w1", environment={"BATON_FAULT": f"{point}:kill:{number}"})
    wait_until(lambda: not worker.alive or host.state(turn) == "completed", what="the fault, or the end")
    if worker.alive:
        worker.kill()
    host.worker("beta", "w1")
    shown = host.ends(turn, "completed")
    assert one_continuation(host, turn, "arbiter") == "beta" and shown["attempts"][0]["state"] == "delegated"
    assert {call["role"] for call in host.calls()} == {"arbiter"}
    assert [one["event"] for one in outcomes(host, turn)] == ["delegated", "completed"]


def test_r44_e22_a_pass_that_comes_twice_is_a_duplicate(fresh):
    """E22, R-44: the pass itself, delivered again, is answered as a duplicate; the first service's handoff, too."""
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    born, = handoffs(host, turn, "alpha")
    passed, = handoffs(host, turn, "beta")
    host.log.append(passed.copy())
    host.drain("beta")
    host.log.append(born.copy())
    host.drain("alpha")
    told = outcomes(host, turn)
    assert [one["event"] for one in told].count("completed") == 1 and len(host.calls(turn=turn)) == 2
    repeats = {one["service"]: one["state"] for one in told if one["event"] == "duplicate"}
    assert set(repeats) == {"alpha", "beta"} and repeats["alpha"] == "delegated" and repeats["beta"] != "delegated"


def test_x14_x15_real_passes_in_wrong_places(fresh):
    """X14, X15: passes that services made, on another turn, without their middle hop, back where the turn has been."""
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth"}], "beta": [{"class": "quota"}]}, default=[{}])
    turn, other = host.published("alpha", "reviewer", "t-1"), host.published("alpha", "reviewer", "t-2")
    for service in ("alpha", "beta", "gamma"):
        host.drain(service)
    last, = handoffs(host, turn, "gamma")
    strange, = handoffs(host, other, "gamma")
    hops = [(name, data) for name, data in last.headers if name == "baton-pass"]
    rest = [(name, data) for name, data in last.headers if name != "baton-pass"]
    members = host.turn(role="reviewer", service="alpha", task="t-new")
    fresh_record = host.handoff(members, service="gamma")
    calls = len(host.calls())
    forged = [
        (fresh_record.copy(headers=fresh_record.headers + hops), "bad_signature"),  # of another turn
        (host.handoff(host.turn(role="reviewer", service="alpha", task="t-x"), service="gamma").copy(), "wrong_service"),
    ]
    for record, code in forged:
        host.log.append(record)
    # A known turn under a broken chain: rejected before it is known, and goes on as it was.
    for headers, code in ((rest + hops[1:], "wrong_service"), (rest + hops[::-1], "invalid_envelope"),
                          (rest + hops + hops[1:], "invalid_envelope"),
                          (rest + [(n, d) for n, d in strange.headers if n == "baton-pass"], "bad_signature")):
        record = last.copy(headers=headers)
        host.log.append(record)
        forged.append((record, code))
    host.drain("gamma")
    found = [letter.header("baton-code") for letter in host.log.records(host.topic("dlq", "gamma"))]
    assert sorted(found) == sorted(code for _, code in forged)
    # Back to alpha, which has had it: signed by gamma, which may pass to alpha, and refused all the same.
    hop = proof.pass_header(host.key("gamma"), host.fleet, turn, last.value, 4, "alpha", "gamma", failures=3)
    host.log.append(last.copy(topic=host.topic("handoff", "alpha"), headers=last.headers + [("baton-pass", hop.encode())]))
    host.drain("alpha")
    letter, = host.log.records(host.topic("dlq", "alpha"))
    assert letter.header("baton-code") == "invalid_envelope"
    assert host.show(turn)["state"] == "completed" and len(host.calls()) == calls


def test_x16_the_budget_goes_with_the_turn(fresh):
    """X16, R-34: failures of all services count; the last one parks at the budget, not at its own count."""
    host = three(fresh, budget={"failures": 4}, retry={"first": "5ms", "factor": 1, "max": "10ms", "jitter": 0, "each_service": 1, "max_wait": "1s"})
    host.plan(default=[{"class": "overloaded"}])
    turn = host.published("alpha", "reviewer", "t-1")
    for service in ("alpha", "beta", "gamma"):
        host.drain(service)
    shown = host.show(turn)
    assert (shown["state"], shown["service"], shown["code"], shown["failures"]) == ("parked", "beta", "attempts_exhausted", 4)
    assert len(host.calls()) == 4


# ---- people ----

def test_who_waits_follows_the_turn(fresh):
    """`publish --wait`, `turns wait` and `turns watch` end with the end at the next service; a repeat hears of it."""
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{"sleep": 0.3}])
    ready(host.worker("alpha"), host.worker("beta"))
    done = host.publish("alpha", "reviewer", "t-1", "--key", "k-1", "--wait", "--timeout", "30s").ok()
    answer = done.one
    turn = answer["turn_id"]
    assert "completed" in done.out and '"approve"' in done.out, done
    assert [one["service"] for one in host.show(turn)["attempts"]] == ["alpha", "beta"]
    again = host.publish("alpha", "reviewer", "t-1", "--key", "k-1", "--wait", "--timeout", "30s").ok()
    assert again.one["turn_id"] == turn and "completed" in again.out and len(host.calls()) == 2, again
    waited = host.run("turns", "wait", turn, "--timeout", "20s", "--json").ok().one
    assert (waited["state"], waited["service"]) == ("completed", "beta")
    host.run("turns", "watch", turn, "--json", seconds=20).ok()


def test_turns_wait_begun_before_the_delegation(fresh):
    host = three(fresh)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain("alpha")
    text = host.run("turns", "show", turn).ok().out
    assert "delegated to beta, which has not taken it in yet" in text
    assert host.run("turns", "wait", turn, "--timeout", "1s", "--json").status == 8
    host.drain("beta")
    assert host.run("turns", "wait", turn, "--timeout", "20s", "--json").ok().one["service"] == "beta"


@pytest.mark.core
def test_a_replay_names_the_service(fresh):
    """DESIGN "Operators": replay --to passes a parked turn on; never back, never where its role is not served."""
    host = three(fresh, {"gamma": fresh.service(roles=["owner"])}, roles={"reviewer": {"chain": ["alpha", "beta"]}})
    host.plan(services={"alpha": [{"class": "bad_request"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"))
    host.ends(turn, "parked")
    host.replay(turn, "--to", "nowhere").refused("unknown_service", 5)
    would = host.run("dlq", "replay", turn, "--to", "beta", "--dry-run")
    assert "at alpha, to beta: nothing was done" in would.ok().out and host.state(turn) == "parked", would
    host.replay(turn, "--to", "alpha").refused("not_permitted", 4)
    host.replay(turn, "--to", "gamma").refused("not_permitted", 4)
    assert host.state(turn) == "parked" and len(host.calls()) == 1
    answer = host.replay(turn, "--to", "beta").ok().one
    assert (answer["status"], answer["service"], answer["to"], answer["role"]) == ("passed", "alpha", "beta", "reviewer")
    hop, = passes(handoffs(host, turn, "beta")[0])  # before its owner may trim it
    ready(host.worker("beta"))
    shown = host.ends(turn, "completed")
    assert story(shown) == [(1, "alpha", "failed", "bad_request"), (2, "beta", "completed", None)]
    assert (shown["service"], shown["replays"], shown["role"]) == ("beta", 1, "reviewer")
    assert hop[1:8] == ["2", "alpha", "beta", "1", "0", "1", "bad_request"]
    host.replay(turn, "--to", "alpha").refused("turn_closed", 6)
    assert [one["answers"]["code"] for one in outcomes(host, turn) if one["event"] == "answer"] == ["not_permitted", "not_permitted", "ok"]


def test_d19_the_same_replay_twice_is_one(fresh):
    """D19: a turn that was passed on is not passed on again, whether it was taken in there or not."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "bad_request"}]}, default=[{}])
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"))
    host.ends(turn, "parked")
    assert host.replay(turn, "--to", "beta").ok().one["status"] == "passed"
    assert host.replay(turn, "--to", "beta").ok().one["status"] == "already"
    host.plan(default=[{"until": host.fake + "/go"}])
    host.worker("beta")
    host.called(1, service="beta")
    assert host.replay(turn, "--to", "beta").ok().one["status"] == "already"
    host.replay(turn).ok()
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed")
    assert len(handoffs(host, turn, "beta")) == 1 and len(host.calls()) == 2


def test_replays_are_budgeted_over_all_services(fresh):
    """D19: the count of replays travels in the pass."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH, budget={"replays": 2, "failures": 50})
    host.plan(default=[{"class": "bad_request"}])
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"), host.worker("beta"))
    host.ends(turn, "parked")
    assert host.replay(turn).ok().one["status"] == "replayed"
    host.called(2)
    host.ends(turn, "parked")
    assert host.replay(turn, "--to", "beta").ok().one["status"] == "passed"
    host.called(1, service="beta")
    wait_until(lambda: host.show(turn)["service"] == "beta" and host.state(turn) == "parked", what="it to be parked at beta")
    host.replay(turn).refused("replays_exhausted", 6)
    assert host.replay(turn, "--again").ok().one["status"] == "replayed"


@pytest.mark.core
def test_a_cancel_follows_the_turn(fresh):
    """Rule 28: of a delegated turn the operator's own record goes on, unchanged, and settles it where it is."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "auth"}], "beta": [{"hang": True}]})
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"))
    host.ends(turn, "delegated")
    # Nobody has taken it in at beta: the cancel goes to alpha, which sends it on; it waits there for the handoff.
    answer = host.cancel(turn).ok().one
    assert (answer["status"], answer["service"]) == ("queued", "beta"), answer
    sent, = [record for record in host.log.records(host.topic("control", "alpha")) if record.json()["kind"] == "cancel"]
    forwarded, = [record for record in host.log.records(host.topic("control", "beta")) if record.json()["kind"] == "cancel"]
    assert (forwarded.value, forwarded.header("baton-sig"), forwarded.key) == (sent.value, sent.header("baton-sig"), sent.key)
    host.worker("beta")
    shown = host.ends(turn, "cancelled")
    assert shown["service"] == "beta" and not host.calls(service="beta")
    assert host.cancel(turn).status == 6


def test_a_cancel_that_names_the_first_service_reaches_the_second(fresh):
    """Rule 28: sent to where the turn was, while it runs where it is: its executor is killed, the turn cancelled once."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "auth"}], "beta": [{"hang": True}]})
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"), host.worker("beta"))
    call, = host.called(1, service="beta")
    host.log.append(proof.control(host.prefix, host.fleet, host.key(host.identity), "alpha", "cancel", turn, reason="enough"))
    shown = host.ends(turn, "cancelled")
    assert (shown["service"], shown["cancelled_by"]) == ("beta", host.identity)
    wait_until(lambda: not os.path.exists(f"/proc/{call['pid']}"), what="the executor to end")
    answers = [(one["service"], one["answers"]["code"]) for one in outcomes(host, turn) if one["event"] == "answer"]
    assert answers == [("alpha", "ok"), ("beta", "ok")]
    assert [one["event"] for one in outcomes(host, turn)].count("cancelled") == 1


def test_x21_a_cancel_by_who_may_not_is_not_sent_on(fresh):
    """X21: who may not cancel the turn at the first service does not reach the second through it."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=BOTH)
    host.plan(services={"alpha": [{"class": "auth"}]}, default=[{"until": host.fake + "/go"}])
    turn = host.published("alpha", "reviewer", "t-1")
    ready(host.worker("alpha"), host.worker("beta"))
    host.called(1, service="beta")
    stranger = host.principal("stranger", "kind: person\ncreate: {alpha: [owner]}\n")
    host.log.append(proof.control(host.prefix, host.fleet, stranger, "alpha", "cancel", turn, reason="mine"))
    host.letter("not_permitted")
    assert not [record for record in host.log.records(host.topic("control", "beta")) if record.json()["kind"] == "cancel"]
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.ends(turn, "completed")


# ---- configuration ----

def test_config_check_proves_lists_and_chains(fresh):
    """DESIGN section 6: which turns would never be delegated, and the line that is missing, in file and trust folder."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": fresh.service(roles=["owner"])},
                           roles={"owner": {"chain": ["alpha", "beta", "gamma"]}, "reviewer": {"chain": ["alpha"]}})
    warnings = host.run("config", "check", "--json").ok().one["warnings"]
    assert any("reviewer at alpha are never delegated" in one and "`reviewer: {chain: [alpha, beta]}`" in one for one in warnings), warnings
    assert any("arbiter at alpha, beta are never delegated" in one for one in warnings), warnings
    assert not any("owner" in one for one in warnings), warnings
    with open(host.dir + "/trust/gamma.yaml", "w", encoding="utf-8") as file:
        file.write("kind: service\nserve: [owner]\n")
    warnings = host.run("config", "check", "--json").ok().one["warnings"]
    assert [one for one in warnings if "gamma.yaml put `pass: {alpha: [owner]}`" in one], warnings
    host.write(host.settings["services"], roles={"owner": {"chain": ["alpha", "nobody", "alpha"]}, "reviewer": {"chain": ["gamma"]}},
               on_failure={"auth": ["rotate"], "quota": ["park", "retry", "retry"]})
    done = host.run("config", "check", "--json")
    assert done.status == 2
    for text in ("names 'nobody'", "names alpha twice", "gamma, which does not serve reviewer", "`auth: [rotate, park]`",
                 "nothing after park", "names retry twice"):
        assert text in done.out, (text, done)
    assert json.loads(done.out)["status"] == "failed"
