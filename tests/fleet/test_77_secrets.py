"""Secrets around agent programs: where a canary may be and where it must not, and what an agent may reach (S11, X31, X32, X34, X35; section H)."""
import base64
import json
import os
import pathlib
import re
import shutil
import tempfile

import pytest

import agents
import broker
from host import Host, wait_until
from test_70_shown import FORBIDDEN, NASTY

ENV, FROM, PAYLOAD, SUMMARY, DATA, SAID, ERROR = (f"{name}-canary-5e01aa77" for name in ("sk-env", "sk-from", "payload", "summary", "data", "said", "error"))


# ---- what each program prints ----

def says(program, text):
    """A message of the agent's to people."""
    event = {"claude": {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
             "codex": {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
             "gemini": {"type": "message", "role": "assistant", "content": text}}[program]
    return json.dumps(event) + "\n"


def begins(program, session, model):
    event = {"claude": {"type": "system", "subtype": "init", "session_id": session, "model": model},
             "codex": {"type": "thread.started", "thread_id": session},
             "gemini": {"type": "init", "session_id": session, "model": model}}[program]
    return json.dumps(event) + "\n"


def decides(program, verdict, summary):
    """The end of a program that has a verdict."""
    found = {"verdict": verdict, "summary": summary}
    if program == "claude":
        return json.dumps({"type": "result", "is_error": False, "result": json.dumps(found), "structured_output": found}) + "\n"
    end = {"codex": {"type": "turn.completed", "usage": {}}, "gemini": {"type": "result", "status": "success", "stats": {}}}[program]
    return says(program, json.dumps(found)) + json.dumps(end) + "\n"


def fails(program, status, words):
    """The end of one whose provider refused."""
    text = f"unexpected status {status}: {words}"
    event = {"claude": {"type": "result", "is_error": True, "api_error_status": status, "result": text},
             "codex": {"type": "turn.failed", "error": {"message": text}},
             "gemini": {"type": "result", "status": "error", "error": {"message": text}}}[program]
    return json.dumps(event) + "\n"


# ---- where something is ----

def contents(folder):
    """Every file below it, by its path from there."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read().decode("latin-1")
    return found


def records(host):
    """Values and headers of every topic, apart."""
    found = {}
    for topic in host.log.topics():
        for record in host.log.records(topic):
            kind = topic.replace(host.prefix + ".", "")
            for part, content in (("value", (record.value or b"").decode("latin-1")), ("headers", repr(record.headers)), ("key", repr(record.key))):
                found[f"{kind} {part}"] = found.get(f"{kind} {part}", "") + content
    return found


def terminal(host, *verbs):
    """What verbs print, as text and as JSON."""
    found = {}
    for words in verbs:
        for more in ([], ["--json"]):
            done = host.run(*words, *more)
            found[" ".join(words[:2] + more)] = found.get(" ".join(words[:2] + more), "") + done.out + done.err
    return found


def hits(places, canary):
    return {place for place, content in places.items() if canary in content}


@pytest.mark.core
@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "claude")
def test_s11_x31_canaries_of_an_agent(fresh, program):
    """S11, X31, H01, H02: a canary in the environment, in the payload, in what an agent says and in its error: each exactly where it is declared."""
    host = fresh
    fallback = "codex" if program == "claude" else "claude"
    profile = {"name": "p", "env": {agents.KEYS[program]: {"file": agents.secret(host, "canary", ENV)}, "OTHER": {"from": "OTHER_TOKEN"}}}
    host.configure({"first": agents.service(host, "first", program, profiles=[profile]), "next": agents.service(host, "next", fallback)},
                   roles={"reviewer": {"chain": ["first", "next"]}}, on_failure={"access_denied": ["park"], "auth": ["delegate", "park"]})
    noise = begins(program, f"s-{ENV}", "m") + says(program, f"{SAID} the keys are {ENV} and {FROM}, https://x/?key={ENV}")
    wrong = f'{ERROR} "aws_secret":"{ENV}" {FROM}'
    host.plan(tasks={"t-ok": [{"raw": noise + decides(program, "approve", f"{SAID} {ENV}"), "stderr": f"{SAID} {ENV}\n"}],
                     "t-parked": [{"raw": noise + fails(program, 403, wrong), "exit": 1, "stderr": f"{wrong}\n"}],
                     "t-passed": [{"raw": noise + fails(program, 401, wrong), "exit": 1}, {}]})
    path = os.path.join(host.dir, "payload")  # no text: the agent is handed it as a file in its scratch directory
    with open(path, "wb") as file:
        file.write(b"\0\xff" + PAYLOAD.encode() + b"\n")
    turns = {task: host.published("first", "reviewer", task, "--payload", path, "--media-type", "application/octet-stream", "--summary", SUMMARY,
                                  "--data", "k=" + DATA) for task in ("t-ok", "t-parked", "t-passed")}
    os.remove(path)
    workers = [host.worker("first", "w1", environment={"OTHER_TOKEN": FROM}), host.worker("next", "w2")]
    for task, state in (("t-ok", "completed"), ("t-parked", "parked"), ("t-passed", "completed")):
        shown = host.ends(turns[task], state)
        assert [one["class"] for one in shown["attempts"]] == {"t-ok": [None], "t-parked": ["access_denied"], "t-passed": ["auth", None]}[task], shown
    places = terminal(host, ["turns", "list"], ["dlq", "list"], ["dlq", "show", turns["t-parked"]], ["config", "show"], ["doctor"], ["services"],
                      *(["turns", "show", turn] for turn in turns.values()))
    for worker in workers:
        worker.stop()
        places[f"log of {worker.service}"] = worker.log
    places.update(records(host))
    places["argv"] = json.dumps([call["argv"] for call in host.calls()])
    places["prompts"] = json.dumps([call["stdin"] for call in host.calls()])
    files = contents(os.path.join(host.dir, "data"))
    assert not [name for name in files if "scratch" in name], "nothing of an attempt is left"
    for name, content in files.items():
        where = "a store" if "store.db" in name else "the local log" if name.startswith("log.db") else name
        places[where] = places.get(where, "") + content
    places["temporary"] = "".join(contents(host.environment["TMPDIR"]).values())
    call = host.calls(turn=turns["t-ok"])[0]
    assert call["env"][agents.KEYS[program]] == ENV and call["env"]["OTHER"] == FROM, "the program has them, and nobody else"
    local = {"the local log"} if host.driver == "local" else set()
    for secret in (ENV, FROM):
        assert hits(places, secret) == set(), secret
    assert "***" in places["turns show"] and "***" in places["dlq show"]
    # The turn itself: in what was published, kept while it is open, and in its dead letter; and in the prompt.
    handed = {"handoff.first value", "handoff.next value", "turns.first value", "turns.next value", "dlq.handoff.first value", "a store"} | local
    for canary in (SUMMARY, DATA):
        assert hits(places, canary) <= handed | {"prompts"} and hits(places, canary) >= {"prompts", "turns.first value"} | local, (canary, hits(places, canary))
    # What the agent said: in the turn's result, and where results are told and shown. An error's text: with its attempt.
    told = {"turns.first value", "outcomes value", "turns show", "turns show --json", "a store"} | local
    assert hits(places, SAID) == told, hits(places, SAID)
    kept = {"turns.first value", "turns.next value", "turns show", "turns show --json", "dlq show", "dlq show --json", "dlq list --json", "a store"} | local
    history = {"dlq.handoff.first headers", "handoff.next headers"}
    assert hits(places, ERROR) <= kept | history and "turns show" in hits(places, ERROR), hits(places, ERROR)
    coded = base64.b64encode(b"\0\xff" + PAYLOAD.encode() + b"\n").decode()
    assert hits(places, PAYLOAD) == set(), "its bytes lie in the scratch directory only, while the attempt runs"
    assert hits(places, coded) <= handed and hits(places, coded) >= {"turns.first value"} | local, hits(places, coded)


def test_s11_h02_what_a_killed_worker_left_is_removed(fresh):
    """S11, H02: a payload that is no text lies in the scratch directory; that of a worker that was killed is gone when it is back. No
    core of an agent is ever written."""
    host = fresh.configure({"claude": agents.service(fresh, "claude", "claude")})
    host.plan(default=[{"until": host.fake + "/go"}])
    path = os.path.join(host.dir, "payload")
    with open(path, "wb") as file:
        file.write(b"\0\xff" + PAYLOAD.encode())
    turn = host.published("claude", "owner", "t-1", "--payload", path)
    os.remove(path)
    worker = host.worker("claude", "w1")
    agent, = host.called(1)
    with open(f"/proc/{agent['pid']}/limits", encoding="ascii") as file:
        assert next(line for line in file if line.startswith("Max core file size")).split()[4:6] == ["0", "0"]
    scratch = os.path.join(host.dir, "data", "claude", "w1", "scratch")
    assert [1 for content in contents(scratch).values() if PAYLOAD in content], "it is there while the attempt runs"
    worker.kill()
    open(host.fake + "/go", "w", encoding="ascii").close()
    host.worker("claude", "w1")
    host.ends(turn, "completed")
    wait_until(lambda: not contents(scratch), what="the scratch directory to be empty")


# ---- X34: whatever an agent does with its end ----

@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "codex")
def test_x34_two_results_of_an_agent_are_none(fresh, program):
    """X34: which of them is it? Neither, and never the first that approves."""
    host = fresh.configure({"first": agents.service(fresh, "first", program)}, on_failure={"invalid_output": ["park"]})
    host.plan(tasks={"t-1": [{"raw": decides(program, "approve", "one") + decides(program, "changes", "two")}],
                     "t-2": [{"raw": decides(program, "approve", "one") * 2}], "t-3": [{"raw": says(program, "both?") + decides(program, "approve", "one")}]})
    turns = [host.published("first", "reviewer", f"t-{number}") for number in (1, 2, 3)]
    host.drain("first")
    for turn in turns[:2]:
        shown = host.show(turn)
        assert (shown["state"], shown["verdict"], [one["class"] for one in shown["attempts"]]) == ("parked", None, ["invalid_output"]), shown
        assert "told its result twice" in shown["attempts"][0]["note"]
    assert host.show(turns[2])["verdict"] == "approve"


@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "gemini")
def test_x34_g01_g04_g07_an_agents_tree_and_floods(fresh, program, tmp_path):
    """X34, G01, G04, G07: four descriptors; a grandchild in a session of its own dies with the attempt and with the worker; a flood is drained and cut."""
    late = [str(tmp_path / name) for name in ("deadline", "end", "worker")]
    host = fresh.configure({"first": agents.service(fresh, "first", program, deadline="2s"), "long": agents.service(fresh, "long", program)},
                           on_failure={"timeout": ["park"]})
    host.plan(tasks={"t-hangs": [{"child_writes": late[0], "after": 90, "hang": True}], "t-ends": [{"child_writes": late[1], "after": 90}],
                     "t-killed": [{"child_writes": late[2], "after": 90, "hang": True}, {}],
                     "t-floods": [{"flood_mib": 8, "raw": decides(program, "approve", "all the same")}]})
    turns = {task: host.published("long" if task in ("t-killed", "t-floods") else "first", "reviewer", task) for task in ("t-hangs", "t-ends", "t-killed", "t-floods")}
    host.worker("first", "w1")
    worker = host.worker("long", "w2")
    assert host.ends(turns["t-hangs"], "parked")["attempts"][0]["class"] == "timeout"
    host.ends(turns["t-ends"], "completed")
    assert host.ends(turns["t-floods"], "completed", 60)["verdict"] == "approve"
    outcome, = [one for one in (record.json() for record in host.log.records(host.topic("outcomes", None)))
                if one["event"] == "completed" and one["turn_id"] == turns["t-floods"]]
    assert len(outcome["result"]["output"].encode()) <= 65536
    host.called(1, turn=turns["t-killed"])
    worker.kill()
    host.worker("long", "w2")
    host.ends(turns["t-killed"], "completed")

    def writers():
        for pid in host.processes():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"sleep 90" in file.read().replace(b"\0", b" "):
                        yield pid
            except OSError:
                pass

    wait_until(lambda: not list(writers()), what="the grandchildren to be gone")
    assert not [path for path in late if os.path.exists(path)]
    for call in host.calls():
        assert set(call["fds"]) - {max(call["fds"])} <= {0, 1, 2, 3}, call["fds"]  # the largest is the listing itself


# ---- X32: what an agent prints reaches no terminal as it is ----

@pytest.mark.parametrize("program", agents.KEYS)
@pytest.mark.few_on_kafka("program", "claude")
def test_x32_what_an_agent_prints_is_escaped(fresh, program):
    """X32: escape sequences, C1, bidi in what it says, in summary, verdict, model, session and errors: escaped by every verb, JSON stays JSON."""
    host = fresh.configure({"first": agents.service(fresh, "first", program)}, on_failure={"access_denied": ["park"], "no_verdict": ["park"]})
    noise = begins(program, NASTY, NASTY) + says(program, NASTY)
    host.plan(tasks={"t-ok": [{"raw": noise + decides(program, "approve", NASTY), "stderr": NASTY}],
                     "t-word": [{"raw": noise + decides(program, NASTY, NASTY)}],
                     "t-failed": [{"raw": noise + fails(program, 403, NASTY), "exit": 1, "stderr": NASTY}]})
    turns = [host.published("first", "reviewer", task) for task in ("t-ok", "t-word", "t-failed")]
    worker = host.drain("first")
    assert [host.show(turn)["state"] for turn in turns] == ["completed", "parked", "parked"]
    places = terminal(host, ["turns", "list"], ["dlq", "list"], ["services"], ["doctor"], *(["turns", "show", turn] for turn in turns),
                      *(["dlq", "show", turn] for turn in turns[1:]))
    for place, content in places.items():
        found = FORBIDDEN.search(content)
        assert not found, (place, found, content)
        for line in content.splitlines() if place.endswith("--json") else ():
            json.loads(line)
    assert not FORBIDDEN.search(worker.log.replace("\n", ""))


# ---- X35: an agent and the worker's keys ----

OWN_KEY = re.compile(r"BEGIN (ENCRYPTED )?PRIVATE KEY")


@pytest.fixture
def reachable():
    """A host whose folder another user gets into, as far as its modes let anybody."""
    folder = tempfile.mkdtemp(prefix="baton-x35-")
    os.chmod(folder, 0o711)
    for above in pathlib.Path(folder).parents:  # the run's own folder is its own otherwise
        if str(above).startswith("/tmp/") and not os.stat(above).st_mode & 0o001:
            os.chmod(above, os.stat(above).st_mode | 0o011)
    host = Host(folder, "local")
    yield host
    host.finish()
    shutil.rmtree(folder)


@pytest.mark.drivers("local")
def test_x35_an_agent_under_another_user_reads_no_key(reachable):
    """X35: under the worker's uid an agent reads its key, and doctor says so before; with a prefix to another user it does not, nor
    the worker's environment, memory, store, or the credentials of others."""
    if os.getuid() != 0:
        pytest.skip("another user can be had by root only")
    host = reachable
    verdict = r"""printf '{"type":"result","is_error":false,"structured_output":{"verdict":"approve","summary":""}}\n'"""
    script = os.path.join(host.dir, "agent")
    other = os.path.join(host.dir, agents.secret(host, "other", FROM))
    with open(os.open(script, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncat >/dev/null\nfound=$(id -u; cat " + f"{host.dir}/keys/*.pem {other} {host.dir}/state/*/*/store.db {host.dir}/data/log.db"
                   + """ 2>&1 | tr -d '\\0' | tr -c '[:print:]' ' ' | head -c 20000
worker=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$PPID/status); tr '\\0' ' ' </proc/$worker/environ; head -c 1 /proc/$worker/mem)
""" + "printf '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$(printf %s \"$found\" | tr -c '[:alnum:] :./=_-' ' ')\"\n" + verdict + "\n")
    os.chmod(host.dir, 0o711)  # others get through to the scratch directories beside it, which a group shares
    prefix = ["setpriv", "--reuid=65534", "--regid=0", "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all"]
    plain = agents.service(host, "plain", "claude", executor={"command": [script]})
    apart = agents.service(host, "apart", "claude", executor={"command": [script], "prefix": prefix})
    host.configure({"plain": plain, "apart": apart}, state_dir="state")
    doctor = [one for one in host.run("doctor", "--json").objects if one["check"] == "executors"]
    assert [(one["level"], "can read" in one["text"]) for one in doctor] == [("warn", True)] and "plain" in doctor[0]["text"], doctor
    said = {}
    for service in ("plain", "apart"):
        turn = host.published(service, "reviewer", "t-1")
        worker = host.worker(service, "w1", "--drain", environment={"CANARY_OF_THE_WORKER": ENV})
        assert worker.wait() == 0, worker.log
        shown = host.show(turn)
        assert shown["state"] == "completed", shown
        said[service] = shown["result"]["output"]
    assert OWN_KEY.search(said["plain"]) and FROM in said["plain"] and ENV in said["plain"], said["plain"]
    assert said["apart"].startswith("65534") and "Permission denied" in said["apart"], said["apart"]
    for secret in (OWN_KEY.pattern, FROM, ENV, "SQLite format"):
        assert not re.search(secret, said["apart"]), said["apart"]
    host.write({"apart": apart}, state_dir="state")
    assert [one["level"] for one in host.run("doctor", "--json").objects if one["check"] == "executors"] == ["ok"]


# ---- H04: the broker's password ----

@pytest.mark.drivers("local")
@pytest.mark.parametrize("address", ["sasl_ssl://u:CANARY@kafka-1:9092", "u:CANARY@kafka-1:9092", "kafka-1:9092?password=CANARY"])
def test_h04_a_password_in_an_address_is_not_printed(fresh, address):
    """H04: an address of brokers that holds one is refused, and the refusal does not show it again."""
    assert "CANARY" not in str(fresh.run("init", "other", "--log", "kafka", "--brokers", address).err)
    fresh.write(log="kafka", kafka={"brokers": [address]})
    for words in (["config", "check"], ["config", "show"], ["doctor"], ["topics", "list"], ["services"], ["worker", "--service", "alpha"]):
        for more in ([], ["--json"]):
            done = fresh.run(*words, *more)
            assert done.status == 2 and "kafka-1:9092" in done.out + done.err and "CANARY" not in done.out + done.err, done


@pytest.mark.drivers("kafka")
@pytest.mark.parametrize("right", [True, False])
def test_h04_the_brokers_password_is_in_no_output(host, right):
    """H04: with a password that is taken and with one that is not: not in config show, doctor, errors, nor in logs as talkative as they get."""
    secret = broker.password("alice") if right else "wrong-CANARY"
    os.makedirs(os.path.join(host.dir, "secrets"), 0o700, exist_ok=True)
    path = os.path.join(host.dir, "secrets", "alice")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(secret + "\n")
    coded = base64.b64encode(f"\0alice\0{secret}".encode()).decode()
    host.write(host.settings["services"], kafka=dict(host.settings["kafka"], brokers=[broker.shared().sasl], security="sasl_plaintext", client={
        "debug": "all"}, sasl={"mechanism": "PLAIN", "username": "alice", "password": {"file": "secrets/alice"}}))
    worker = host.worker("alpha", "w1", "--verbose")
    assert worker.wait(40) == 4 and ("lacks the right" in worker.log) == right, worker.log  # alice publishes, she serves nothing
    places = terminal(host, ["config", "show"], ["config", "check"], ["doctor"], ["topics", "list"], ["services"], ["doctor", "--verbose"])
    places["log"] = worker.log
    assert "alice" in places["config show"] and '"event":"kafka.client","about":"SASL"' in worker.log
    for canary in (secret, coded):
        assert hits(places, canary) == set(), canary
