"""The real agent programs against a stub model server (tests/run --agents installs them).

For each program and each way in which a provider can answer: the class. And the scenario that the product
exists for, with real programs on both sides.
"""
import json
import os
import re
import shutil
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
    "hang": "timeout", "die": "unavailable", "junk": "unavailable", "prose": "no_verdict",
}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("program", agents.KEYS)
def test_each_answer_is_a_class(fresh, server, program):
    services = {}
    for mode in EXPECTED:
        services[f"{program}-{mode}"] = agents.real(fresh, server, program, mode, deadline="6s" if mode == "hang" else "60s")
    host = fresh.configure(services, on_failure={name: ["park"] for name in EXPECTED.values() if name})
    turns = {mode: host.published(f"{program}-{mode}", "reviewer", f"t-{mode}") for mode in EXPECTED}
    wrong = []
    for mode, expected in EXPECTED.items():
        host.drain(f"{program}-{mode}", seconds=90)
        shown = host.show(turns[mode])
        end, = shown["attempts"]
        if (end["class"], shown.get("verdict")) != (expected, None if expected else "approve"):
            wrong.append(f"{program} {mode}: {expected} expected: {end} {shown.get('verdict')}")
        if (program, mode) == ("gemini", "429"):  # the only one that prints how long to wait
            worker = host.workers[-1]
            assert [one["ms"] for one in worker.events("profile.rests")] == [3600000], worker.log[-1500:]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("role, verdict", [("reviewer", "approve"), ("arbiter", "proceed")])
def test_claude_is_refused_and_codex_has_the_role(fresh, server, role, verdict):
    """R-07: claude with a broken key, codex as the fallback: one turn, two attempts, and a verdict of the role."""
    host = fresh.configure({"claude": agents.real(fresh, server, "claude", "401"), "codex": agents.real(fresh, server, "codex", "ok")},
                           roles=CHAIN)
    turn = host.published("claude", role, "t-1", "--summary", "Look at the fix")
    host.drain("claude")
    host.drain("codex")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "delegated", "auth"), (2, "codex", "completed", None)]
    assert (shown["role"], shown["state"], shown["verdict"]) == (role, "completed", verdict)
    # What the provider was asked: the prompt of the role, the schema of its verdicts, the credential in a header.
    asked = server.requests("ok")[-1]
    body = json.dumps(asked["body"])
    assert f"You are the {role}" in body and "Look at the fix" in body
    words = asked["body"]["text"]["format"]["schema"]["properties"]["verdict"]["enum"]
    assert verdict in words and "done" not in words
    assert agents.SECRET in asked["headers"]["authorization"] and agents.SECRET not in body


@pytest.mark.drivers("local")
def test_a_second_profile_works(fresh, server):
    """R-33: the first key is refused, the second one is not: rotated."""
    claude = agents.real(fresh, server, "claude", "keyed")
    claude["profiles"] = [{"name": name, "env": {"ANTHROPIC_API_KEY": {"file": agents.secret(fresh, name, value)}}}
                          for name, value in (("team", "sk-bad-00000001"), ("backup", "sk-good-00000001"))]
    host = fresh.configure({"claude": claude, "codex": agents.real(fresh, server, "codex", "ok")}, roles=CHAIN)
    turn = host.published("claude", "owner", "t-1")
    host.drain("claude")
    shown = host.show(turn)
    assert story(shown) == [(1, "claude", "failed", "auth"), (2, "claude", "completed", None)] and shown["verdict"] == "done"
    assert [one["profile"] for one in shown["attempts"]] == ["team", "backup"]


@pytest.mark.drivers("local")
def test_codex_is_killed_in_the_middle(fresh, server):
    """R-38: the real program is killed while it waits for its provider: killed, and the role stays."""
    host = fresh.configure({"codex": agents.real(fresh, server, "codex", "hang")}, on_failure={"killed": ["park"]})
    turn = host.published("codex", "reviewer", "t-1")
    before = len(server.requests("hang"))
    host.worker("codex", "w1")
    wait_until(lambda: len(server.requests("hang")) > before, what="codex to ask its provider")
    worker, = host.workers
    killed = 0
    for pid in host.processes():
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        if pid != worker.pid and not re.search(rb"baton-guard", words[0]) and b"exec" in words:
            os.kill(pid, 9)
            killed += 1
    assert killed > 0
    shown = host.ends(turn, "parked")
    assert shown["role"] == "reviewer" and [one["class"] for one in shown["attempts"]] in (["killed"], ["crash"])


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
