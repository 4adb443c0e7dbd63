"""What a turn costs, over services: signed by each that passes it on, so nobody can talk a budget away or spend it for others.

Stand-ins of the agent programs, as in test_72: claude tells what it cost, 578 millionths of a dollar for a try without a
verdict; codex and gemini tell tokens, and prices make costs of them.
"""
import json
import os
import re

import pytest

import agents
import proof
from modelserver import ModelServer

ROLES = {"reviewer": {"chain": ["claude", "claude-2"]}}
RETRY = {"first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 3, "max_wait": "15m"}
TRY = 578  # what one try of the stand-in for claude costs
PRICES = {"input": 10000000, "cached": 1000000, "output": 50000000}  # a millionth of a dollar is a tenth of an input token
PRICED = {"model": "m-1", "prices": PRICES}
CODEX, GEMINI = 7 * 10 + 4 * 1 + 7 * 50, 5 * 10 + 4 * 50  # what one try of theirs costs then


def two(fresh, **settings):
    """A turn may cost less than two tries of claude's."""
    settings.setdefault("budget", {"max_cost": 0.001})
    return fresh.configure({name: agents.service(fresh, name, "claude") for name in ("claude", "claude-2")}, retry=RETRY, roles=ROLES,
                           on_failure={"no_verdict": ["delegate", "retry", "park"]}, **settings)


def history(costs):
    """baton-attempts of one attempt at claude that cost so much; None: there is no such header."""
    told = [{"no": 1, "service": "claude", "profile": "team", "state": "delegated", "class": "no_verdict", "usage": {"cost_micros": costs}}]
    return [] if costs is None else [("baton-attempts", json.dumps(told).encode())]


def passed(host, members, costs, told):
    """A handoff at claude-2 that claude has signed a pass for, with these costs, and what anybody may write beside it."""
    record = host.handoff(members, service="claude-2")
    hop = proof.pass_header(host.key("claude"), host.fleet, members["turn_id"], record.value, 2, "claude-2", "claude", why="no_verdict", costs=costs)
    record.headers += [("baton-pass", hop.encode())] + history(told)
    return record


def told(host, turn):
    """What each attempt was told that is left for it, in millionths of a dollar."""
    words = [call["argv"][call["argv"].index("--max-budget-usd") + 1] for call in host.calls(turn=turn) if call["program"] == "claude"]
    return [int(one.replace(".", "")) for one in words]


@pytest.mark.parametrize("header", [None, 0, TRY, 2**53])
def test_x16_forged_costs_change_nothing(fresh, header):
    """X16: what the services before spent is what the signed pass tells. A header that makes it nothing talks no budget away,
    and one that makes it huge ends no turn."""
    host = two(fresh)
    host.plan(default=[{"fixture": "prose"}])
    spent, fresh_one = host.turn(service="claude", task="t-spent"), host.turn(service="claude", task="t-new")
    host.log.append(passed(host, spent, TRY, header))
    host.log.append(passed(host, fresh_one, 0, header))
    host.drain("claude-2")
    shown = host.show(spent["turn_id"])
    assert (shown["state"], shown["code"], shown["failures"]) == ("parked", "cost_exhausted", 2), shown
    assert told(host, spent["turn_id"]) == [1000 - TRY]
    shown = host.show(fresh_one["turn_id"])
    assert (shown["state"], shown["code"], shown["failures"]) == ("parked", "cost_exhausted", 3), shown
    assert told(host, fresh_one["turn_id"]) == [1000, 1000 - TRY]


def test_x16_costs_of_a_pass_that_was_altered(fresh):
    """X16: costs are under the signature: changed, added or taken away they are bad_signature; ones that cannot be are refused."""
    host = two(fresh)
    members = host.turn(service="claude")
    good = passed(host, members, TRY, None)
    words = good.header("baton-pass").split(" ")

    def hop(*changed):
        return good.copy(headers=[good.headers[0], ("baton-pass", " ".join(changed).encode())])

    host.log.append(hop(*words[:9], "1", *words[10:]))
    host.log.append(hop(*words[:9], str(2**53), *words[10:]))
    host.log.append(hop("1", *words[1:9], *words[10:]))
    host.log.append(passed(host, members, -1, None))
    host.log.append(passed(host, members, "0578", None))
    host.drain("claude-2")
    codes = sorted(letter.header("baton-code") for letter in host.log.records(host.topic("dlq", "claude-2")))
    assert codes == ["bad_signature"] * 3 + ["invalid_envelope"] * 2 and not host.calls()
    host.log.append(good)
    host.drain("claude-2")
    assert host.show(members["turn_id"])["state"] == "completed" and told(host, members["turn_id"]) == [1000 - TRY]


def test_costs_go_on_over_services_that_cost_nothing(fresh):
    """A pass tells the costs of all services before it, also of those before one that costs nothing; it has none to tell where nothing was spent."""
    roles = {"reviewer": {"chain": ["codex", "claude", "gemini", "claude-2"]}}
    programs = {"codex": "codex", "claude": "claude", "gemini": "gemini", "claude-2": "claude"}
    free = {"model": "m", "prices": {"input": 0, "output": 0}}
    host = fresh.configure({name: agents.service(fresh, name, program, None if program == "claude" else free) for name, program in programs.items()}, roles=roles, retry=RETRY,
                           budget={"max_cost": 0.001}, on_failure={"no_verdict": ["delegate", "park"]})
    host.plan(default=[{"fixture": "prose"}])
    turn = host.published("codex", "reviewer", "t-1")
    for service in programs:
        host.drain(service)
    hops = [data.decode().split(" ") for name, data in host.log.records(host.topic("handoff", "claude-2"))[0].headers if name == "baton-pass"]
    assert [(hop[0], hop[2], hop[9] if hop[0] == "2" else None) for hop in hops] == \
        [("1", "codex", None), ("2", "claude", str(TRY)), ("2", "gemini", str(TRY))]
    for hop in hops:
        public = proof.public_keys(host.dir + "/trust")[hop[-2]]
        assert public[0] == hop[2]
        proof.verify(public[1], host.fleet, "pass", turn, host.log.records(host.topic("handoff", "claude-2"))[0].value, hop[-1], " ".join(hop[:-2]))
    shown = host.show(turn)
    assert (shown["state"], shown["code"], shown["service"]) == ("parked", "cost_exhausted", "claude-2"), shown
    assert told(host, turn) == [1000, 1000 - TRY]
    assert shown["usage"]["cost_micros"] == 2 * TRY and [one["usage"].get("cost_micros") for one in shown["attempts"]] == [0, TRY, 0, TRY]


def test_a_turn_that_comes_with_its_budget_spent(fresh):
    """A service that ignores the bound, or has another one, passes on a turn that has cost too much: no try more is made, but for an operator."""
    host = two(fresh)
    spent, asked = host.turn(service="claude", task="t-spent"), host.turn(service="claude", task="t-asked")

    def handed_on(members, replays):
        record = host.handoff(members, service="claude-2")
        hop = proof.pass_header(host.key("claude"), host.fleet, members["turn_id"], record.value, 2, "claude-2", "claude", replays=replays, costs=1000)
        record.headers.append(("baton-pass", hop.encode()))
        return record

    host.log.append(handed_on(spent, 0))
    host.log.append(handed_on(asked, 1))
    host.worker("claude-2")
    assert host.ends(asked["turn_id"], "completed")["verdict"] == "approve"
    shown = host.ends(spent["turn_id"], "parked")
    assert (shown["code"], shown["role"]) == ("cost_exhausted", "reviewer") and host.letter("cost_exhausted")["turn_id"] == spent["turn_id"]
    assert [call["task"] for call in host.calls()] == ["t-asked"]
    host.replay(spent["turn_id"]).ok()
    assert host.ends(spent["turn_id"], "completed")["role"] == "reviewer"


def test_costs_go_on_where_nothing_is_proven(fresh):
    """proof: off: passes tell costs there, too, unsigned as all of them."""
    host = two(fresh, proof="off")
    host.plan(default=[{"fixture": "prose"}])
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    host.drain("claude-2")
    assert host.show(turn)["code"] == "cost_exhausted" and told(host, turn) == [1000, 1000 - TRY]


# ---- costs that nobody tells ----

def test_prices_make_costs_of_tokens_and_bind_them(fresh):
    """Each agent's tokens have the prices of its model: a chain of all three adds up to one budget, and `turns show` tells whose word each is."""
    programs = ("codex", "gemini", "claude")
    host = fresh.configure({name: agents.service(fresh, name, name, None if name == "claude" else PRICED) for name in programs},
                           roles={"reviewer": {"chain": list(programs)}}, budget={"max_cost": 0.001}, on_failure={"no_verdict": ["delegate", "retry", "park"]})
    host.plan(default=[{"fixture": "prose"}])
    turn = host.published("codex", "reviewer", "t-1")
    for service in programs:
        host.drain(service)
    shown = host.show(turn)
    assert (shown["state"], shown["code"], shown["service"]) == ("parked", "cost_exhausted", "claude"), shown
    took = [(one["service"], one["usage"]["cost_micros"], one["usage"]["cost_from"]) for one in shown["attempts"]]
    assert took == [("codex", CODEX, "prices"), ("gemini", GEMINI, "prices"), ("claude", TRY, "program")]
    assert shown["usage"]["cost_micros"] == CODEX + GEMINI + TRY and told(host, turn) == [1000 - CODEX - GEMINI]
    text = host.run("turns", "show", turn).ok().out
    assert re.search(rf"^ *1 +codex .* \$0\.000{CODEX} +prices ", text, re.M) and re.search(rf"^ *3 +claude .* \$0\.000{TRY} +program ", text, re.M), text
    assert re.search(rf"^ *all .* \$0\.00{CODEX + GEMINI + TRY} ", text, re.M), text


@pytest.mark.parametrize("program, one", [("codex", CODEX), ("gemini", GEMINI)])
def test_max_cost_ends_a_turn_of_an_agent_that_tells_no_costs(fresh, program, one):
    """Tokens that have cost so much park the turn at the service that spent them; without a bound it goes on."""
    name = "bound"
    host = fresh.configure({name: agents.service(fresh, name, program, PRICED)}, retry=RETRY, budget={"max_cost": (2 * one - 1) / 1e6},
                           on_failure={"no_verdict": ["retry", "park"]})
    host.plan(default=[{"fixture": "prose"}])
    turn = host.published(name, "reviewer", "t-1")
    host.drain(name)
    shown = host.show(turn)
    assert (shown["state"], shown["code"], shown["failures"], shown["usage"]["cost_micros"]) == ("parked", "cost_exhausted", 2, 2 * one), shown
    host.plan(default=[{}])
    host.worker(name)
    host.replay(turn).ok()
    shown = host.ends(turn, "completed")
    assert shown["usage"]["cost_micros"] == 3 * one and shown["result"]["cost"]["cost_micros"] == one


def test_prices_are_of_what_an_attempt_took_itself(fresh):
    """codex tells the tokens of its whole session: what an earlier attempt took of it is not charged twice, in usage or result."""
    os.mkdir(os.path.join(fresh.dir, "agent-home"))
    host = fresh.configure({"codex": agents.service(fresh, "codex", "codex", dict(PRICED, resume=True, home="agent-home"))}, retry=RETRY,
                           on_failure={"no_verdict": ["retry", "park"]})
    host.plan(default=[{"fixture": "prose"}, {}])
    turn = host.published("codex", "reviewer", "t-1")
    host.drain("codex")
    shown = host.show(turn)
    assert [one["usage"]["cost_micros"] for one in shown["attempts"]] == [CODEX, 0] and shown["usage"]["cost_micros"] == CODEX
    assert shown["state"] == "completed" and shown["result"]["cost"]["cost_micros"] == 0 and shown["result"]["cost"]["output_tokens"] == 0


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", ["codex", "gemini"])
def test_a_bound_that_would_be_none_is_refused(fresh, program):
    """budget.max_cost with an agent that tells no costs and has no prices: refused where it stands, by check, doctor and worker; 0 says that nothing is charged."""
    host = fresh
    host.write({"a": agents.service(fresh, "a", program)}, budget={"max_cost": 2})
    why = f"budget.max_cost cannot bind services.a: {program} tells tokens and no costs"
    for words in (("config", "check"), ("doctor",), ("worker", "--service", "a", "--drain")):
        done = host.run(*words)
        assert done.status == 2 and why in done.out + done.err and re.search(r"baton\.yaml:\d+:\d+: ", done.out + done.err), done
    free = {"model": "m", "prices": {"input": 0, "cached": 0, "output": 0}}
    host = fresh.configure({"a": agents.service(fresh, "a", program, free)}, budget={"max_cost": 2})
    host.run("config", "check").ok()
    shown = {one["key"]: one["value"] for one in host.run("config", "show", "--json").ok().one["settings"]}
    assert shown["services.a.executor.prices.input"] == "0"


@pytest.mark.drivers("local")
def test_init_says_what_prices_are_for(fresh, tmp_path):
    """`init --agent codex`: budget and prices stand there as comments that are right as they are; claude needs none."""
    folder = str(tmp_path / "agents")
    fresh.run("init", folder, "--agent", "codex", "--fallback", "claude", cwd=str(tmp_path)).ok()
    path = os.path.join(folder, "baton.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.count("# prices:") == 1 and text.index("agent: codex") < text.index("# prices:") < text.index("agent: claude")
    text = re.sub(r"# (prices:|budget:)", r"\1", text)

    def check(changed):
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        return fresh.run("config", "check", cwd=folder)

    assert check(text).status == 2, "a price is that of a model"
    assert check(text.replace("model: default", "model: gpt-5.1-codex")).status == 0


@pytest.mark.long
@pytest.mark.agents
@pytest.mark.drivers("local")
@pytest.mark.skipif(not agents.folder(), reason="the agent programs are not installed: tests/run --agents")
def test_real_agents_spend_one_budget(fresh):
    """The real programs, whose answers have no verdict: what each took by its tokens or its own word, all of it in one budget."""
    programs, server = ("codex", "gemini", "claude"), ModelServer()
    services = {name: agents.real(fresh, server, name, "prose", deadline="100s") for name in programs}
    for name in ("codex", "gemini"):
        services[name]["executor"]["prices"] = PRICES
    services["codex"]["executor"]["model"] = "gpt-5.1-codex"
    host = fresh.configure(services, roles={"reviewer": {"chain": list(programs)}}, budget={"max_cost": 0.001}, on_failure={"no_verdict": ["delegate", "retry", "park"]})
    turn = host.published("codex", "reviewer", "t-1")
    for name in programs:
        host.drain(name, seconds=110)
    server.close()
    shown = host.show(turn)
    took = [(one["service"], one["class"], one["usage"]["cost_from"]) for one in shown["attempts"]]
    assert took == [("codex", "no_verdict", "prices"), ("gemini", "no_verdict", "prices"), ("claude", "no_verdict", "program")], shown
    for one in shown["attempts"][:2]:
        tokens = one["usage"]
        assert tokens["cost_micros"] == tokens["input_tokens"] * 10 + tokens["cached_tokens"] + tokens["output_tokens"] * 50 > 0, tokens
    assert shown["usage"]["cost_micros"] == sum(one["usage"]["cost_micros"] for one in shown["attempts"])
    assert (shown["state"], shown["code"]) == ("parked", "cost_exhausted"), shown
