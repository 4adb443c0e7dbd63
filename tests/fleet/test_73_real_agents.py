"""The real agent programs against a stub model server (tests/run --agents installs them).

For each program and each way in which a provider can answer: the class. And the scenario that the product
exists for, with real programs on both sides.
"""
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

import agents
from host import ROLES, wait_until
from modelserver import ModelServer

pytestmark = [pytest.mark.long, pytest.mark.agents,
              pytest.mark.skipif(not agents.folder(), reason="the agent programs are not installed: tests/run --agents")]
CHAIN = {role: {"chain": ["claude", "codex"], "read_only": role != "owner"} for role in ROLES}


@pytest.fixture(scope="module")
def server():
    one = ModelServer()
    yield one
    one.close()


def story(shown):
    return [(one["no"], one["service"], one["state"], one["class"]) for one in shown["attempts"]]


EXPECTED = {  # the answer: the class that its attempt ends with
    "ok": None, "401": "auth", "403": "access_denied", "429": "rate_limited", "overloaded": "overloaded",
    "hang": "timeout", "die": "unavailable", "junk": "unavailable", "prose": "no_verdict", "nobody": "unavailable",
}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("mode", EXPECTED)
@pytest.mark.parametrize("program", agents.KEYS)
def test_each_answer_is_a_class(fresh, server, program, mode):
    made = agents.real(fresh, server, program, mode, deadline="15s" if mode == "hang" else "100s")
    if mode == "nobody":  # listens there
        variable, suffix = agents.ADDRESSES[program]
        made["executor"]["env"][variable] = {"value": f"http://127.0.0.1:{free_port()}{suffix}"}
    expected = EXPECTED[mode]
    host = fresh.configure({program: made}, on_failure={expected: ["park"]} if expected else {})
    turn = host.published(program, "reviewer", "t-1")
    worker = host.drain(program, seconds=110)
    shown = host.show(turn)
    end, = shown["attempts"]
    assert (end["class"], shown.get("verdict")) == (expected, None if expected else "approve"), (end, worker.log[-1500:])
    if (program, mode) == ("gemini", "429"):  # the only one that prints how long to wait
        assert [one["ms"] for one in worker.events("profile.rests")] == [3600000], worker.log[-1500:]
    if mode == "hang":
        assert server.requests("hang"), "it was waiting for its provider"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def refused_then(host, server, fallback, **more):
    """claude, whose key is refused, and codex behind it, in every role."""
    return host.configure({"claude": agents.real(host, server, "claude", "401"), "codex": agents.real(host, server, "codex", fallback)},
                          roles=CHAIN, **more)


def nothing_else(host, turn, events=("delegated", "completed")):
    """Of this turn nothing is left to do, and there is no other one: topics, outcomes, dead letters, what waits."""
    assert {one["turn_id"] for one in host.turns()} == {turn}
    told = []
    for topic in host.log.topics():
        if topic.startswith((f"{host.prefix}.handoff.", f"dlq.{host.prefix}.", f"{host.prefix}.outcomes")):
            found = [one for one in host.log.records(topic) if one.value and not one.key.startswith(b"~")]
            assert all(one.key == turn.encode() for one in found), (topic, found)
            told += [one.json()["event"] for one in found if topic.endswith(".outcomes")]
    assert told == list(events)
    waits = {one["service"]: (one["lag"], one["queued"], one["running"], one["parked"]) for one in host.run("services", "--json").ok().objects}
    assert waits == {"claude": (0, 0, 0, 0), "codex": (0, 0, 0, 0)} and host.letters() == []


@pytest.mark.parametrize("role, verdict", [("reviewer", "approve"), ("arbiter", "proceed")])
def test_claude_is_refused_and_codex_has_the_role(fresh, server, role, verdict):
    """R-07: claude with a broken key, codex as the fallback: one turn, two attempts, and a verdict of the role."""
    host = refused_then(fresh, server, "ok")
    turn = host.published("claude", role, "t-1", "--summary", "Look at the fix")
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "completed", None)]
    assert (shown["role"], shown["state"], shown["verdict"]) == (role, "completed", verdict)
    nothing_else(host, turn)
    # What the provider was asked: the prompt of the role, the schema of its verdicts, the credential in a header.
    asked = server.requests("ok")[-1]
    body = json.dumps(asked["body"])
    assert f"You are the {role}" in body and "Look at the fix" in body
    words = asked["body"]["text"]["format"]["schema"]["properties"]["verdict"]["enum"]
    assert verdict in words and "done" not in words
    assert agents.SECRET in asked["headers"]["authorization"] and agents.SECRET not in body


def test_a_second_profile_works(fresh, server):
    """R-33: the first key is refused, the second one is not: rotated."""
    claude = agents.real(fresh, server, "claude", "keyed")
    claude["profiles"] = [{"name": name, "env": {"ANTHROPIC_API_KEY": {"file": agents.secret(fresh, name, value)}}}
                          for name, value in (("team", "sk-bad-00000001"), ("backup", "sk-good-00000001"))]
    host = fresh.configure({"claude": claude, "codex": agents.real(fresh, server, "codex", "ok")}, roles=CHAIN)
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "failed", "auth"), (2, "claude", "completed", None)]
    assert (shown["role"], shown["verdict"]) == ("reviewer", "approve")
    assert [one["profile"] for one in shown["attempts"]] == ["team", "backup"]


def killed(host, word):
    """Kills the programs of the host with that word in argv, the outermost first, and says how many it were."""
    n = 0
    for pid in sorted(host.processes()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"baton" not in os.path.basename(words[0]) and word in words:
                os.kill(pid, 9)
                n += 1
        except (FileNotFoundError, ProcessLookupError):
            pass
    return n


def test_codex_is_killed_in_the_middle(fresh, server):
    """R-38: claude is refused, codex is killed while it waits for its provider: it is started again, the role stays."""
    mode = f"hang1.{fresh.driver}"
    host = refused_then(fresh, server, mode)
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    host.worker("codex", "w1")
    wait_until(lambda: server.requests(mode), 60, what="codex to ask its provider")
    assert killed(host, b"exec") > 0
    shown = host.ends(turn, "completed", 60)
    assert [(one[0], one[1], one[2]) for one in story(shown)] == [(1, "claude", "delegated"), (2, "codex", "failed"), (3, "codex", "completed")]
    assert (shown["role"], shown["verdict"], shown["attempts"][1]["class"], shown["losses"]) == ("reviewer", "approve", "killed", 1)
    nothing_else(host, turn)


def test_both_are_refused_and_a_key_is_mended(fresh, server):
    """R-39: both keys are refused: parked under its role, with a dead letter. The key is mended: a replay ends it there."""
    host = fresh.configure({name: agents.real(fresh, server, name, "keyed", value="sk-bad-00000001") for name in ("claude", "codex")}, roles=CHAIN)
    turn = host.published("claude", "reviewer", "t-1")
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert (shown["state"], shown["role"], shown["service"]) == ("parked", "reviewer", "codex")
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "failed", "auth")]
    letter, = host.letters()
    assert letter["turn_id"] == turn, letter
    agents.secret(host, "codex-keyed", "sk-good-00000001")
    host.worker("codex", "w1")
    host.replay(turn).ok()
    shown = host.ends(turn, "completed", 60)
    assert (shown["role"], shown["verdict"]) == ("reviewer", "approve") and story(shown)[2:] == [(3, "codex", "completed", None)]
    nothing_else(host, turn, ["delegated", "parked", "answer", "completed"])


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_doctor_tries_the_real_program(fresh, server, program):
    """`doctor --probe`: version, and which of two credentials the provider takes."""
    made = agents.real(fresh, server, program, "keyed")
    made["profiles"] = [{"name": name, "env": {agents.KEYS[program]: {"file": agents.secret(fresh, f"{program}-{name}", f"sk-{name}-00000001")}}}
                        for name in ("good", "bad")]
    host = fresh.configure({program: made})
    done = host.run("doctor", "--probe", "--json", seconds=150)
    found = [one for one in done.objects if one["check"] == "agents"]
    assert re.search(r" is .*\d+\.\d+\.\d+", found[0]["text"]) and found[0]["level"] == "ok", found
    assert [one["level"] for one in found[1:]] == ["ok", "error"] and done.status == 4, found
    assert "00000001" not in done.out


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_i22_sessions_go_on_and_may_be_gone(fresh, server, program):
    """I22: the real program goes on in its session; one that somebody removed is begun anew, and is no failure."""
    for name in ("home", "project"):
        os.mkdir(os.path.join(fresh.dir, name))
    made = agents.real(fresh, server, program, "prose", place="project")
    made["executor"].update(resume=True, home="home")
    if program == "gemini":  # its way to sign in is a setting of whose home it is
        os.mkdir(os.path.join(fresh.dir, "home", ".gemini"))
        with open(os.path.join(fresh.dir, "home", ".gemini", "settings.json"), "w", encoding="utf-8") as file:
            json.dump({"security": {"auth": {"selectedType": "gemini-api-key"}}}, file)
    host = fresh.configure({program: made}, on_failure={"no_verdict": ["park"]})
    turn = host.published(program, "reviewer", "t-1")
    host.drain(program, "w1")
    sessions, told = [], []
    for number, keep in ((2, True), (3, False)):
        if not keep:
            for folder in (".claude", ".codex", os.path.join(".gemini", "tmp")):
                shutil.rmtree(os.path.join(host.dir, "home", folder), ignore_errors=True)
        worker = host.worker(program, f"w{number}")
        host.replay(turn).ok()
        wait_until(lambda n=number: host.show(turn)["attempt"] == n and host.state(turn) == "parked", 40, "the replay to end")
        worker.stop()
        told.append(len(worker.events("executor.session_gone")))
    shown = host.show(turn)
    assert [one["class"] for one in shown["attempts"]] == ["no_verdict"] * 3, shown
    sessions = [one["usage"]["session"] for one in shown["attempts"]]
    assert sessions[0] == sessions[1] != sessions[2] and told == [0, 1], (sessions, told)
    if program == "codex":  # which tells the tokens of the whole session
        assert len({one["usage"]["output_tokens"] for one in shown["attempts"]}) == 1, shown


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_a_large_prompt_arrives_whole(fresh, server, program):
    """Far more than argv takes: the provider is shown the end of it."""
    host = fresh.configure({program: agents.real(fresh, server, program, "ok=changes")})
    path = os.path.join(host.dir, "large.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("0123456789 abcdefghij \u00e9\n" * 8000 + "the very last line\n")
    turn = host.published(program, "reviewer", "t-1", "--payload", path)
    host.drain(program)
    assert host.show(turn)["verdict"] == "changes"
    asked = [json.dumps(one["body"]) for one in server.requests("ok=changes")]
    assert any("the very last line" in body and len(body) > 200000 for body in asked), [len(body) for body in asked]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_l36_looking_changes_nothing(fresh, server, program):
    """L-36: a program that may only look leaves a place with a repository in it as it was."""
    place = os.path.join(fresh.dir, "project")
    os.mkdir(place)
    with open(os.path.join(place, "file"), "w", encoding="utf-8") as file:
        file.write("as it is\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", place] + words, check=True, env=fresh.environment)
    host = fresh.configure({program: agents.real(fresh, server, program, "ok", place="project")}, roles={"reviewer": {"read_only": True}})
    turn = host.published(program, "reviewer", "t-1")
    host.drain(program)
    shown = host.show(turn)
    assert (shown["state"], shown["verdict"]) == ("completed", "approve"), shown
    assert sorted(os.listdir(place)) == [".git", "file"]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_nothing_of_a_secret_is_kept(fresh, server, program):
    """S11: the credential is in no output, log, store or topic, whatever the program prints of it."""
    host = fresh.configure({program: agents.real(fresh, server, program, "401")}, on_failure={"auth": ["park"]})
    turn = host.published(program, "reviewer", "t-1")
    worker = host.drain(program)
    assert agents.SECRET not in str(host.show(turn)) and agents.SECRET not in worker.log
    for topic in host.log.topics():
        for record in host.log.records(topic):
            assert agents.SECRET.encode() not in (record.value or b"")
