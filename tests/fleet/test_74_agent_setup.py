"""Setting agent programs up: `baton init --agent`, and what `baton doctor` says of them."""
import os
import re
import resource

import pytest

import agents
from host import mode

pytestmark = pytest.mark.drivers("local")
KEYS = {"ANTHROPIC_API_KEY": agents.SECRET, "OPENAI_API_KEY": agents.SECRET + "-2"}


def stand_ins(path, fake, programs):
    """Puts stand-ins in the place of the programs that a configuration names."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for program in programs:
        text, n = re.subn(rf"( +)agent: {program}\n", rf"\1agent: {program}\n\1command: [/usr/bin/python3, -S, -E, {agents.FAKE}, {program}]\n"
                          rf"\1env: {{FAKE_DIR: {{value: {fake}}}, FAKE_SERVICE: {{value: {program}}}}}\n", text)
        assert n == 1, text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_init_writes_what_works(fresh, tmp_path):
    """init --agent claude --fallback codex: config check is content, and the scenario runs with nothing else written."""
    folder = str(tmp_path / "agents")
    made = fresh.run("init", folder, "--agent", "claude", "--fallback", "codex", "--json", cwd=str(tmp_path)).ok().one
    assert "baton.yaml" in made["made"] and "baton worker --service codex &" in made["next"]
    assert not os.path.exists(os.path.join(folder, "examples")) and mode(os.path.join(folder, "keys")) == 0o700
    fresh.run("config", "check", cwd=folder).ok()
    stand_ins(os.path.join(folder, "baton.yaml"), fresh.fake, ("claude", "codex"))
    fresh.dir = folder
    assert "warning:" not in fresh.run("config", "check").ok().out
    fresh.plan(services={"claude": [{"fixture": "401"}], "codex": [{}]})
    turn = fresh.published("claude", "reviewer", "t-1")
    for service in ("claude", "codex"):
        worker = fresh.worker(service, "w1", "--drain", environment=KEYS)
        assert worker.wait() == 0, worker.log
    shown = fresh.show(turn)
    assert (shown["service"], shown["role"], shown["verdict"]) == ("codex", "reviewer", "approve")
    first, second = fresh.calls(turn=turn)
    assert "plan" in first["argv"] and "read-only" in second["argv"], "reviewers only look"
    assert first["env"]["ANTHROPIC_API_KEY"] == agents.SECRET and "OPENAI_API_KEY" not in first["env"]
    # Again: nothing is changed.
    assert "baton.yaml" in fresh.run("init", folder, "--agent", "claude", "--fallback", "codex", "--json").ok().one["kept"]


def test_init_refuses_what_makes_no_sense(fresh, tmp_path):
    for words in (["--agent", "clade"], ["--fallback", "codex"], ["--agent", "claude", "--fallback", "claude"]):
        assert fresh.run("init", str(tmp_path / "x"), *words).status == 2
    assert not os.path.exists(tmp_path / "x")


def findings(host, *words, **named):
    done = host.run("doctor", "--json", *words, **named)
    return done, [one for one in done.objects if one["check"] == "agents"]


def test_doctor_says_what_is_there_and_what_is_missing(fresh):
    """Program, path, version; a credential that is not declared or cannot be read; keys that an executor could read."""
    claude = agents.service(fresh, "claude", "claude")
    codex = agents.service(fresh, "codex", "codex", profiles=[{"name": "none"}, {"name": "gone", "env": {"OPENAI_API_KEY": {"file": "secrets/gone"}}}])
    gemini = agents.service(fresh, "gemini", "gemini", executor={"command": ["/nowhere/gemini"]}, profiles=[
        {"name": "other", "env": {"GOOGLE_API_KEY": {"file": agents.secret(fresh)}}}])
    host = fresh.configure({"claude": claude, "codex": codex, "gemini": gemini})
    done, found = findings(host)
    done.ok()
    texts = {one["text"].split(":")[0] + " " + one["level"] + " " + one["text"] for one in found}

    def said(start, part):
        return [text for text in texts if text.startswith(start) and part in text]

    assert said("claude ok", "/usr/bin/python3 is 9.9.9 (stand-in for claude)"), texts
    assert said("codex warn", "profile none declares no credential") and said("codex warn", "secrets/gone"), texts
    assert said("gemini warn", "the program /nowhere/gemini is not there"), texts
    assert said("gemini warn", "profile other declares no credential"), "GOOGLE_API_KEY does not sign in"
    assert any(one["check"] == "executors" and one["level"] == "warn" for one in done.objects), "they could read the worker's keys"
    assert agents.SECRET not in done.out + done.err and not host.calls(), "nothing was asked of a provider"


def test_doctor_tries_credentials_when_asked(fresh):
    """--probe: one that works, one that is refused, and one whose provider is down; nothing of it is kept."""
    profiles = [{"name": name, "env": {"FAKE_KEY": {"value": name}, "ANTHROPIC_API_KEY": {"file": agents.secret(fresh)}}}
                for name in ("good", "bad", "slow")]
    host = fresh.configure({"claude": agents.service(fresh, "claude", "claude", profiles=profiles)})
    host.plan(services={"claude": [{"keys": {"good": {}, "bad": {"fixture": "401"}, "slow": {"fixture": "overloaded"}}}]})
    done, found = findings(host, "--probe")
    levels = {name: [one["level"] for one in found if f"profile {name} " in one["text"]] for name in ("good", "bad", "slow")}
    assert levels == {"good": ["ok"], "bad": ["error"], "slow": ["warn"]}, found
    assert done.status == 4 and agents.SECRET not in done.out
    assert len(host.calls()) == 3 and all("plan" in call["argv"] for call in host.calls())
    assert not [name for name in os.listdir(host.environment["TMPDIR"]) if "doctor" in name]
    # They were no turns: what each host checks at its end (one call for each attempt) is not about them.
    os.remove(os.path.join(host.fake, "calls"))


def test_doctor_reads_a_program_to_its_end(fresh, tmp_path):
    """One that prints far more than its version is neither left standing in front of a full pipe nor waited for awake."""
    program = str(tmp_path / "claude")
    with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 7.7.7; head -c 300000 /dev/zero | tr '\\0' x; exec >&- 2>&-; sleep 3\n")
    host = fresh.configure({"claude": agents.service(fresh, "claude", "claude", executor={"command": [program]})})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, found = findings(host)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [one["level"] for one in found if "is 7.7.7" in one["text"]] == ["ok"], found
    # Awake it takes all of the 3 seconds that the program sleeps.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


def test_doctor_lets_the_user_of_a_prefix_through(fresh, tmp_path):
    """--probe with a prefix: whoever it changes to gets as far as the scratch directory, its HOME, whatever the umask is."""
    prefix, modes = str(tmp_path / "prefix"), str(tmp_path / "modes")
    with open(os.open(prefix, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/sh
at=$BATON_SCRATCH
while at=${{at%/*}}; case $at in *baton-doctor*) true ;; *) false ;; esac; do stat -c %a "$at" >>{modes}; done
exec "$@"
""")
    plain = agents.service(fresh, "plain", "claude")
    prefixed = agents.service(fresh, "prefixed", "claude", executor={"prefix": [prefix]})
    host = fresh.configure({"plain": plain, "prefixed": prefixed})
    host.plan(services={"plain": [{}], "prefixed": [{}]})
    before = os.umask(0o077)
    try:
        _, found = findings(host, "--probe")
    finally:
        os.umask(before)
    assert len([one for one in found if one["level"] == "ok" and "works" in one["text"]]) == 2, found
    with open(modes, encoding="utf-8") as file:
        assert file.read().split() == ["711", "711", "711"]
    os.remove(os.path.join(host.fake, "calls"))
