"""Agent programs as executors, with stand-ins that print what the real ones printed (tests/fixtures/agents).

The scenario that the product exists for: a reviewer whose provider refuses its credentials is another service's
reviewer, as the same turn. test_73 does the same with the real programs.
"""
import json
import os
import re
import shutil
import subprocess

import pytest

import agents
from host import ROLES, binary, wait_until

CHAIN = {role: {"chain": ["claude", "codex"], "read_only": role != "owner"} for role in ROLES}


def pair(host, claude=None, codex=None, **settings):
    settings.setdefault("roles", CHAIN)
    return host.configure({"claude": claude or agents.service(host, "claude", "claude"),
                           "codex": codex or agents.service(host, "codex", "codex")}, **settings)


def story(shown):
    return [(one["no"], one["service"], one["state"], one["class"]) for one in shown["attempts"]]


def patch(host):
    path = os.path.join(host.dir, "fix.diff")
    with open(path, "w", encoding="utf-8") as file:
        file.write("-old\n+the payload's own line\n")
    return path


@pytest.mark.core
def test_r07_claude_is_refused_and_codex_reviews(fresh):
    """R-07, R-12, R-45, I25: one turn, two attempts; the second is a reviewer's, of another program, with the same prompt."""
    host = pair(fresh)
    host.plan(services={"claude": [{"fixture": "401"}], "codex": [{"verdict": "changes", "summary": "one bug"}]})
    turn = host.published("claude", "reviewer", "t-1", "--payload", patch(host))
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["service"], shown["verdict"]) == ("completed", "reviewer", "codex", "changes")
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "completed", None)]
    assert "Invalid API key" in shown["attempts"][0]["note"]
    first, second = host.calls(turn=turn)
    assert (first["program"], first["role"], second["program"], second["role"]) == ("claude", "reviewer", "codex", "reviewer")
    same = [re.sub(r"[0-9a-f]{16}", "MARK", call["stdin"]) for call in (first, second)]
    assert same[0] == same[1] and "+the payload's own line" in same[0] and "claude" not in same[0].lower()
    assert len(host.turns("--state", "completed")) == 1
    assert shown["result"]["summary"] == "one bug"
    # What each attempt took, and both together: also what the service before it told travels along.
    took = [one["usage"] for one in shown["attempts"]]
    assert [(one["agent"], one.get("verdict_from"), one["output_tokens"]) for one in took] == [("claude", None, 0), ("codex", "schema", 7)]
    assert took[0]["model"].startswith("claude-") and took[1]["session"] and shown["usage"]["output_tokens"] == 7
    assert took[0]["cost_micros"] == 0 and shown["usage"]["cost_micros"] == 0 and shown["usage"]["input_tokens"] == 7
    assert shown["result"]["cost"]["output_tokens"] == 7
    text = host.run("turns", "show", turn).ok().out
    assert re.search(r"^ *2 +codex .* schema +7 +4 +7 ", text, re.M) and re.search(r"^ *all .* 7 +4 +7 +\$0\.000000", text, re.M), text


def test_r38_codex_is_killed_in_the_middle(fresh):
    """R-38: the fallback's process is killed while it works: another attempt there, the same role."""
    host = pair(fresh)
    host.plan(services={"claude": [{"fixture": "401"}], "codex": [{}, {"signal": 9}, {}]})
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "failed", "killed"), (3, "codex", "completed", None)]
    assert (shown["role"], shown["losses"], shown["verdict"]) == ("reviewer", 1, "approve")


def test_r39_both_are_refused(fresh):
    """R-39: parked under its role; a replay goes on when the credentials are mended."""
    host = pair(fresh)
    host.plan(default=[{"fixture": "401"}])
    turn = host.published("claude", "arbiter", "t-1")
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["service"]) == ("parked", "arbiter", "codex")
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "failed", "auth")]
    host.plan(default=[{}])
    host.worker("codex")
    host.replay(turn).ok()
    shown = host.ends(turn, "completed")
    assert shown["role"] == "arbiter" and shown["verdict"] == "proceed"
    assert story(shown)[2] == (3, "codex", "completed", None)


def test_r33_a_second_profile_works(fresh):
    """R-33: rotated, not delegated: the same service, the same program, other credentials."""
    claude = agents.service(fresh, "claude", "claude", profiles=[
        {"name": "team", "env": {"FAKE_KEY": {"value": "bad"}, "ANTHROPIC_API_KEY": {"file": agents.secret(fresh)}}},
        {"name": "backup", "env": {"FAKE_KEY": {"value": "good"}, "ANTHROPIC_API_KEY": {"file": agents.secret(fresh, "backup")}}}])
    host = pair(fresh, claude)
    host.plan(services={"claude": [{"keys": {"bad": {"fixture": "401"}, "good": {}}}]})
    turn = host.published("claude", "owner", "t-1")
    host.drain("claude")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "failed", "auth"), (2, "claude", "completed", None)]
    assert [one["profile"] for one in shown["attempts"]] == ["team", "backup"] and shown["verdict"] == "done"


def test_services_show_which_profile_rests(fresh):
    """A profile that was refused: `services` says where, why and since when; what was mended is tried, and the note goes (test_75)."""
    claude = agents.service(fresh, "claude", "claude", profiles=[
        {"name": name, "env": {"FAKE_KEY": {"file": agents.secret(fresh, "key-" + name, value)}}} for name, value in (("team", "bad-one"), ("backup", "good-one"))])
    host = pair(fresh, claude)
    host.plan(services={"claude": [{"keys": {"bad-one": {"fixture": "401"}, "good-one": {}}}]})

    def profiles(resting):
        """Waits until so many rest: a broker may be slow to tell of a group."""
        def look():
            shown = [one for one in host.run("services", "--json").objects if one.get("service") == "claude"]
            found = {one["profile"]: one["rests"] for one in shown[0]["profiles"]} if shown else {}
            return found if sorted(name for name in found if found[name]) == resting and len(found) == 2 else None
        return wait_until(look, 40, f"{resting} to be shown as resting")

    worker = host.worker("claude", "w1")
    profiles([])
    host.ends(host.published("claude", "owner", "t-1"), "completed")
    rest, = profiles(["team"])["team"]
    assert (rest["worker"], rest["class"], rest["state"], rest["next_try"]) == ("w1", "auth", "refused", None)
    text = wait_until(lambda: host.run("services").out, 40, "services to answer")
    assert re.search(r"profile team of w1 refused since .*\(auth\)", text), text
    host.ends(host.published("claude", "owner", "t-2"), "completed")
    assert [call["attempt"] for call in host.calls(task="t-2")] == [1], "the next turn begins with the other one"
    # A person mends it: the next start tries it, and nothing rests.
    worker.stop()
    agents.secret(host, "key-team", "good-one")
    host.worker("claude", "w1")
    assert host.ends(host.published("claude", "owner", "t-3"), "completed")["attempts"][0]["profile"] == "team"
    profiles([])


CLASSES = {  # what each recorded end is, and what its retry waits for
    "claude": {"400": "bad_request", "401": "auth", "403": "access_denied", "429": "rate_limited", "500": "unavailable",
               "overloaded": "overloaded", "die": "unavailable", "junk": "unavailable", "prose": "no_verdict"},
    "codex": {"400": "bad_request", "401": "auth", "403": "access_denied", "429": "rate_limited", "500": "overloaded",
              "overloaded": "overloaded", "die": "unavailable", "junk": "unavailable", "prose": "no_verdict"},
    "gemini": {"400": "auth", "401": "auth", "403": "access_denied", "429": "rate_limited", "503": "overloaded",
               "die": "unavailable", "junk": "unavailable", "prose": "no_verdict"},
}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", CLASSES)
def test_each_end_is_a_class_and_never_another(fresh, program):
    """Every recorded end of a program, one turn each: its class in `turns show`, none of them a success."""
    actions = {name: ["park"] for name in set(CLASSES[program].values())}
    host = fresh.configure({program: agents.service(fresh, program, program)}, on_failure=actions, circuit={"after": 1000})
    host.plan(tasks={f"t-{mode}": [{"fixture": mode}] for mode in CLASSES[program]})
    turns = {}
    for number, mode in enumerate(CLASSES[program]):
        # A refused credential rests: what comes after it is tried all the same by parking at once.
        turns[mode] = host.published(program, "reviewer", f"t-{mode}")
        host.drain(program, f"w{number}")
    for mode, expected in CLASSES[program].items():
        shown = host.show(turns[mode])
        assert story(shown) == [(1, program, "failed", expected)], f"{program} {mode}: {shown}"
        assert shown["state"] == "parked" and shown["role"] == "reviewer"


def test_s11_no_secret_leaves_the_environment(fresh):
    """S11, X31: argv, prompt, notes, output, logs, stores, topics: none holds the credential, though the program prints it."""
    host = pair(fresh)
    words = agents.SECRET
    event = '{"type":"assistant","message":{"content":[{"type":"text","text":"the key is %s"}]}}\n' % words
    refused = '{"type":"result","is_error":true,"api_error_status":401,"result":"Invalid API key %s"}\n' % words
    host.plan(services={"claude": [{"raw": event + refused, "exit": 1, "stderr": f"key {words}\n"}], "codex": [{}]})
    turn = host.published("claude", "reviewer", "t-1")
    worker = host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert "Invalid API key ***" in shown["attempts"][0]["note"]
    call = host.calls(turn=turn)[0]
    assert call["env"]["ANTHROPIC_API_KEY"] == words and words not in " ".join(call["argv"]) and words not in call["stdin"]
    assert call["fds"][:4] == [0, 1, 2, 3]
    assert words not in worker.log and words not in str(shown)
    for topic in host.log.topics():
        for record in host.log.records(topic):
            assert words.encode() not in (record.value or b""), f"{topic}: {record}"
    for path in host.stores():
        with open(path, "rb") as file:
            assert words.encode() not in file.read(), path
    assert words not in host.run("config", "show").ok().out


def test_costs_add_up_over_retries_services_and_a_lost_store(fresh):
    """What a turn took is in the log: over retries, another service, and a store that is gone."""
    host = pair(fresh, on_failure={"no_verdict": ["retry", "delegate", "park"]}, retry={
        "first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 1, "max_wait": "15m"})
    host.plan(services={"claude": [{"fixture": "prose"}, {"fixture": "prose"}], "codex": [{}]})
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    shutil.rmtree(os.path.join(host.dir, "data", "claude"))
    host.drain("codex")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "failed", "no_verdict"), (2, "claude", "delegated", "no_verdict"), (3, "codex", "completed", None)]
    assert [one["usage"].get("cost_micros") for one in shown["attempts"]] == [578, 578, None]
    assert shown["usage"]["cost_micros"] == 2 * 578 and shown["usage"]["output_tokens"] == 18 + 18 + 7


def test_costs_end_a_turn(fresh):
    """budget.max_cost: what is left is told to the program; spent, over services too, the turn is parked with a code of its own."""
    host = fresh.configure({name: agents.service(fresh, name, "claude") for name in ("claude", "claude-2")}, budget={"max_cost": 0.001},
                           on_failure={"no_verdict": ["delegate", "retry", "park"]}, roles={"reviewer": {"chain": ["claude", "claude-2"]}})
    host.plan(default=[{"fixture": "prose"}])
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    host.drain("claude-2")
    shown = host.show(turn)
    assert (shown["state"], shown["code"], shown["role"]) == ("parked", "cost_exhausted", "reviewer")
    assert story(shown) == [(1, "claude", "delegated", "no_verdict"), (2, "claude-2", "failed", "no_verdict")]
    assert shown["usage"]["cost_micros"] == 2 * 578 and host.letter("cost_exhausted")["turn_id"] == turn
    told = [call["argv"][call["argv"].index("--max-budget-usd") + 1] for call in host.calls(turn=turn)]
    assert told == ["0.001000", "0.000422"]
    # An operator may have it tried all the same.
    host.plan(default=[{}])
    host.worker("claude-2")
    host.replay(turn).ok()
    assert host.ends(turn, "completed")["verdict"] == "approve"


@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "codex")
def test_i22_a_retry_goes_on_in_the_session(fresh, program):
    """I22: another attempt here continues the agent's session where that is switched on; one that is gone is begun anew, no failure."""
    home = os.path.join(fresh.dir, "agent-home")
    os.mkdir(home)
    executor = {"resume": True, "home": "agent-home"}
    retry = {"first": "10ms", "factor": 1, "max": "20ms", "jitter": 0, "each_service": 3, "max_wait": "15m"}
    host = fresh.configure({"on": agents.service(fresh, "on", program, executor=executor), "off": agents.service(fresh, "off", program)},
                           retry=retry, on_failure={"no_verdict": ["retry", "park"]})
    host.plan(tasks={"t-on": [{"fixture": "prose"}, {}], "t-gone": [{"fixture": "prose"}, {"gone": True}], "t-off": [{"fixture": "prose"}, {}]})
    on, gone, off = host.published("on", "reviewer", "t-on"), host.published("on", "reviewer", "t-gone"), host.published("off", "reviewer", "t-off")
    worker = host.drain("on")
    host.drain("off")
    for turn in (on, gone, off):
        shown = host.show(turn)
        assert [(one["state"], one["class"]) for one in shown["attempts"]] == [("failed", "no_verdict"), ("completed", None)], shown
    session = host.show(on)["attempts"][0]["usage"]["session"]
    assert [call["resumed"] for call in host.calls(turn=on)] == [None, session]
    assert [call["resumed"] for call in host.calls(turn=gone)] == [None, None] and [one["event"] for one in host.lines() if one["turn"] == gone and one["event"] == "gone"] == ["gone"]
    assert worker.events("executor.session_gone") and host.show(gone)["losses"] == 0 and host.show(gone)["failures"] == 1
    assert [call["resumed"] for call in host.calls(turn=off)] == [None, None]
    assert {call["env"]["HOME"] for call in host.calls() if call["service"] == "on"} == {home}


def test_watch_shows_what_an_agent_says(fresh):
    """What an agent says and does is seen by `turns watch` while it works, masked and escaped; nothing is left of it afterwards."""
    host = pair(fresh)
    said = '{"type":"assistant","message":{"content":[{"type":"text","text":"I look at it with %s\\u001b[2J"}]}}\n' % agents.SECRET
    host.plan(services={"claude": [{"stdout": said, "until": host.fake + "/go"}]})
    turn = host.published("claude", "reviewer", "t-1")
    host.worker("claude", "w1")
    host.called(1)
    out = os.path.join(host.fake, "watched")
    with open(out, "wb") as file:
        watch = subprocess.Popen([binary(), "turns", "watch", turn, "--json"], cwd=host.dir, stdout=file, stderr=subprocess.DEVNULL, env=host.environment)

    def lines():
        with open(out, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    told = wait_until(lambda: [one for one in lines() if "progress" in one], what="progress to be told")
    assert (told[0]["progress"], told[0]["worker"], told[0]["attempt"]) == ("I look at it with ***\x1b[2J", "w1", 1)
    with open(out, "rb") as file:
        assert b"\x1b" not in file.read()
    open(host.fake + "/go", "w", encoding="ascii").close()
    assert watch.wait(30) == 0 and lines()[-1]["state"] == "completed" and lines()[-1]["verdict"] == "approve"
    folder = os.path.join(host.dir, "data", "claude", "w1", "progress")
    wait_until(lambda: not os.listdir(folder), what="the file to be gone")


def test_watch_does_not_show_what_a_killed_worker_left(fresh):
    """What a killed worker's attempt said last stays on its host; `turns watch` does not take it for a parked or queued turn's."""
    host = pair(fresh, on_failure={"lost": ["park"]})
    said = '{"type":"assistant","message":{"content":[{"type":"text","text":"the last words"}]}}\n'
    host.plan(services={"claude": [{"stdout": said, "until": host.fake + "/never"}, {}]})
    turn = host.published("claude", "reviewer", "t-1")
    worker = host.worker("claude", "w1")
    host.called(1)
    left = os.path.join(host.dir, "data", "claude", "w1", "progress", turn)
    wait_until(lambda: os.path.exists(left), what="progress to be told")
    worker.kill()
    host.worker("claude", "w2")
    host.ends(turn, "parked")
    out = os.path.join(host.fake, "watched")
    with open(out, "wb") as file:
        watch = subprocess.Popen([binary(), "turns", "watch", turn, "--json"], cwd=host.dir, stdout=file, stderr=subprocess.DEVNULL, env=host.environment)
    wait_until(lambda: os.path.getsize(out) > 0, what="the watch to begin")
    host.replay(turn).ok()
    assert watch.wait(30) == 0 and os.path.exists(left)
    with open(out, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert lines[-1]["state"] == "completed" and not [one for one in lines if "progress" in one], lines


def test_l36_read_only_roles_only_look(fresh):
    """L-36: what a program is allowed to do follows from the role, and from the configuration where that says otherwise."""
    host = pair(fresh, codex=agents.service(fresh, "codex", "codex", executor={"access": "write"}))
    host.published("claude", "reviewer", "t-1")
    host.published("claude", "owner", "t-2")
    host.published("codex", "reviewer", "t-3")
    host.drain("claude")
    host.drain("codex")
    mode = {call["task"]: " ".join(call["argv"]) for call in host.calls()}
    assert "--permission-mode plan" in mode["t-1"] and "--permission-mode acceptEdits" in mode["t-2"]
    assert "-s workspace-write" in mode["t-3"]


def test_l36_a_reviewer_that_writes_is_found_out(fresh):
    """L-36: a place that a read-only role has changed all the same is readonly_violated: parked, and its verdict counts for nothing."""
    place = os.path.join(fresh.dir, "project")
    os.mkdir(place)
    with open(os.path.join(place, "file"), "w", encoding="utf-8") as file:
        file.write("as it is\n")
    host = pair(fresh, agents.service(fresh, "claude", "claude", place="project"),
                agents.service(fresh, "codex", "codex", executor={"access": "write"}, place="project"))
    host.plan(default=[{"child_writes": os.path.join(place, "file"), "after": 0, "sleep": 0.3}])
    writes, owner, allowed = (host.published(*words) for words in
                              (("claude", "reviewer", "t-1"), ("claude", "owner", "t-2"), ("codex", "reviewer", "t-3")))
    host.settings["services"]["claude"]["parallel"] = 1  # who else writes there is taken for the attempt
    host.configure(host.settings["services"], roles=CHAIN)
    host.drain("claude")
    host.drain("codex")
    shown = host.show(writes)
    assert story(shown) == [(1, "claude", "failed", "readonly_violated")] and shown["state"] == "parked", shown
    assert shown["verdict"] is None and shown["attempts"][0]["usage"]["agent"] == "claude"
    assert host.show(owner)["verdict"] == "done" and host.show(allowed)["verdict"] == "approve"


@pytest.mark.drivers("local")
def test_prompts_of_people(fresh):
    """A folder of prompts replaces the shipped ones; one that names no value stops the worker before it takes anything."""
    folder = os.path.join(fresh.dir, "prompts")
    os.mkdir(folder)
    with open(os.path.join(folder, "reviewer.txt"), "w", encoding="utf-8") as file:
        file.write("You are the {{role}}. Look at this: {{summary}}\n{{payload}}\n")
    host = pair(fresh, agents.service(fresh, "claude", "claude", executor={"prompts": "prompts"}))
    host.published("claude", "reviewer", "t-1", "--summary", "the fix {{task}}", "--payload", patch(host))
    host.drain("claude")
    prompt, = [call["stdin"] for call in host.calls()]
    assert prompt.startswith("You are the reviewer. Look at this: the fix {{task}}\nWhat it is about") and "Give verdict" in prompt
    with open(os.path.join(folder, "owner.txt"), "w", encoding="utf-8") as file:
        file.write("{{verdict}}")
    worker = host.worker("claude", "w2", "--drain")
    assert worker.wait() == 2 and "names no value" in worker.log, worker.log


@pytest.mark.drivers("local")
def test_a_program_that_is_not_there(fresh):
    """Its worker does not start, and says what is missing; `config check` says it before."""
    host = pair(fresh, agents.service(fresh, "claude", "claude", executor={"command": ["/nowhere/claude"]}))
    host.published("claude", "reviewer", "t-1")
    worker = host.worker("claude", "w1", "--drain")
    assert worker.wait() == 2 and "/nowhere/claude" in worker.log
    checked = host.run("config", "check")
    assert "/nowhere/claude" in checked.out + checked.err
    shown = {one["key"]: one["value"] for one in host.run("config", "show", "--json").ok().one["settings"]}
    assert shown["services.claude.executor.agent"] == "claude" and shown["services.claude.executor.access"] == "auto"


@pytest.mark.core
@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "claude")
def test_e06_progress_renews_the_heartbeat(fresh, program):
    """E06: what a program's events tell renews its heartbeat: alive far longer than that; silent, it is ended as a timeout and the fallback has the turn."""
    host = fresh.configure({"first": agents.service(fresh, "first", program, heartbeat="2s", deadline="100s"), "next": agents.service(fresh, "next", "codex")},
                           roles={"reviewer": {"chain": ["first", "next"]}}, on_failure={"timeout": ["delegate", "park"]})
    host.plan(tasks={"t-works": [{"events": 60, "every": 0.1}], "t-silent": [{"events": 3, "hang": True}, {}]})
    works, silent = host.published("first", "reviewer", "t-works"), host.published("first", "reviewer", "t-silent")
    host.drain("first")
    host.drain("next")
    shown = host.show(works)
    assert story(shown) == [(1, "first", "completed", None)] and shown["verdict"] == "approve", shown
    shown = host.show(silent)
    assert story(shown) == [(1, "first", "delegated", "timeout"), (2, "next", "completed", None)] and shown["role"] == "reviewer"
    assert "no progress for 2.000 s" in shown["attempts"][0]["note"]
    wait_until(lambda: not host.processes(), what="the agent's processes to be gone")


def test_a_deadline_ends_a_program_that_hangs(fresh):
    """A provider that never answers: the deadline, its class, nothing left behind, and the fallback has the turn."""
    host = pair(fresh, agents.service(fresh, "claude", "claude", deadline="1s"), on_failure={"timeout": ["delegate", "park"]})
    host.plan(services={"claude": [{"hang": True, "ignore_term": False}], "codex": [{}]})
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    wait_until(lambda: not [pid for pid in host.processes()], what="the agent's processes to be gone")
    host.drain("codex")
    assert story(host.show(turn)) == [(1, "claude", "delegated", "timeout"), (2, "codex", "completed", None)]
