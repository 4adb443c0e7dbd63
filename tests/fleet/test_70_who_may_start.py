"""Who may start and move runs: people, programs, agents under a person's key; where somebody is there and where nobody is (L-01 to L-20, S12)."""
import json
import os
import shlex
import shutil
import subprocess

import pytest

import proof
from host import binary, ready, wait_until
from runs import CHAINS, ask, hand, run_id, show, start, taken, until, workflow

MARKS = ["CLAUDECODE", "GEMINI_CLI", "CODEX_SANDBOX"]
ONE = "start: dev\n%snodes:\n  dev: {role: owner, service: alpha}\nends:\n  good: {from: dev, when: [done], as: completed}\n"
INVOKES = {"absent": "", "deny": "invoke: deny\n", "ask": "invoke: ask\n", "allow": "invoke: allow\n"}
PRESENT, NOBODY = {"BATON_MODE": "attended"}, {"BATON_MODE": "unattended"}


@pytest.fixture
def there(fresh):
    """A host with a workflow for each `invoke`, a program's identity `bot`, and a coordinator; no worker, so that nothing moves by itself."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=[name + ".yaml" for name in INVOKES])
    for name, line in INVOKES.items():
        workflow(host, name, ONE % line)
    host.principal("bot", "kind: program\nrequest: [start, handoff, cancel, touch, reopen]\n")
    ready(host.worker("coordinator", "c1"))
    return host


def begin(host, name, *more, task="t-1", environment=None):
    return host.run("runs", "start", "--workflow", name, "--task", task, "--summary", "Mend it's parser", "--json", *more, environment=environment)


def listed(host):
    return host.run("runs", "list", "--json").ok().objects


def written(host):
    """How many records each topic has that a run could be in."""
    return {topic: len([one for one in host.log.records(topic, every=True) if not one.key.startswith(b"~")])
            for topic in host.log.topics() if ".handoff." in topic or topic.endswith(".runs")}


def append(host, key, run, **members):
    """A request of one's own making, signed with that key."""
    value = proof.compact(dict({"version": 1, "id": proof.sha256(repr(members).encode()).hex()[:32], "run_id": run, "at": proof.now()}, **members))
    signature = proof.proof(key, host.fleet, "request", run, value)
    host.log.append(proof.Record(host.topic("requests", None), run.encode(), value, [("baton-sig", signature.encode())]))


BOT, MARK = ("--set", "identity=bot"), {"CLAUDECODE": "1"}
DENIED = {"absent": "invoke_denied", "deny": "invoke_denied", "ask": "confirm_needed", "allow": None}


@pytest.mark.core
@pytest.mark.parametrize("confirmed", [False, True], ids=["", "confirmed"])
@pytest.mark.parametrize("present", [True, False], ids=["attended", "unattended"])
@pytest.mark.parametrize("who", ["bot", "mark"])
@pytest.mark.few_on_kafka("who", "mark")
def test_l01_l03_l04_l06_l15_what_an_agent_may_start(there, who, present, confirmed):
    """L-01, L-03, L-04, L-06, L-10, L-15: invoke x mode x --confirmed, told by --dry-run as it is then decided, for a program's key and for an agent with a person's key: what is refused leaves nothing
    behind but the request, and names the command for a person; a program's key carries nobody's yes, and nobody confirms where nobody is."""
    for name, code in DENIED.items():
        if code == "confirm_needed" and not present:
            code = "unattended_denied"
        elif code == "confirm_needed" and confirmed and who == "mark":
            code = None
        before, runs = written(there), listed(there)
        words = (["--confirmed"] if confirmed else []) + list(BOT if who == "bot" else ())
        environment = {**(PRESENT if present else NOBODY), **(MARK if who == "mark" else {})}
        tried = begin(there, name, "--dry-run", *words, environment=environment)
        assert (listed(there), written(there)) == (runs, before), tried
        done = begin(there, name, *words, environment=environment)
        assert (tried.one["code"], tried.status, tried.one.get("next_command")) == (done.one["code"], done.status, done.one.get("next_command")), (tried, done)
        assert tried.one["result"]["text"] == done.one["result"]["text"] and tried.one["result"]["slot"] == "dev", (tried, done)
        if code is None:
            assert done.ok().one["answered"] and show(there, done.one["run_id"])["workflow"] == name
            continue
        done.refused(code, 4)
        assert (listed(there), written(there)) == (runs, before), done
        assert shlex.split(done.one["next_command"]) == ["baton", "runs", "start", "--workflow", name, "--task", "t-1", "--summary", "Mend it's parser"], done


@pytest.mark.core
def test_l01_l07_a_person_is_not_limited(there):
    """L-01, L-07: a person's key starts every one, on a terminal, in a pipe, and in CI where nobody is there; what is consumed is no start."""
    for n, environment in enumerate((PRESENT, NOBODY, {"CI": "1"}, {})):
        for name in INVOKES:
            begin(there, name, task=f"t-{n}", environment=environment).ok()
    assert len(listed(there)) == 16
    there.worker("alpha")  # unattended, with a program's key: it takes what is there
    for one in listed(there):
        until(there, one["run_id"], "completed")


def test_l01_another_value_is_a_mistake(there):
    """L-01, L-02: `yes` is no invoke: the file is refused with its place, before any run."""
    for line in ("invoke: yes\n", "invoke: Allow\n", "invoke: true\n", "agents: true\n"):
        workflow(there, "deny", ONE % line)
        checked = there.run("workflow", "check", "deny.yaml", "--json")
        assert checked.status == 2 and json.loads(checked.out)[0]["findings"], checked
        done = begin(there, "deny")
        assert done.status == 2 and done.one["code"] == "invalid_request", done
    assert listed(there) == []


@pytest.mark.core
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.few_on_kafka("mark", "CLAUDECODE")
def test_l03_a_marker_goes_before_the_key(there, mark):
    """L-03, S12: with a person's key and somebody there, an agent's session starts, touches, reopens and takes a verdict's transition as an agent: not at all."""
    agent = {**PRESENT, mark: "1"}
    begin(there, "deny", environment=agent).refused("invoke_denied", 4)
    begin(there, "deny", environment={**PRESENT, mark: ""}).ok()  # set to nothing is not set
    run = begin(there, "paired-review", task="t-2", environment=PRESENT).ok().one["run_id"]
    for words in (("touch", run), ("reopen", run, "--reason", "x")):
        done = there.run("runs", *words, "--json", environment=agent).refused("person_required", 4)
        assert mark in done.one["error"], done
    assert show(there, run)["requests"] == 0
    there.plan(turns={"alpha": [{"verdict": "needs_context"}]}, default=[{}])
    there.worker("alpha"), there.worker("beta")
    until(there, run, "waiting")
    words = ("handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "go", "--json")
    done = there.run(*words, environment=agent)
    assert (done.one["code"], done.one["result"]["stage"]) == ("unknown_target", "resolve_transition"), done
    there.run(*words, environment=PRESENT).ok()
    until(there, run, "completed")


@pytest.mark.core
def test_l06_a_yes_in_a_record_is_nobodys(there):
    """L-06: a request that says `confirmed`, signed by a program's key, is answered confirm_needed; with a member `by` or `actor` it is none."""
    there.tampered = True
    begin(there, "ask", *BOT, environment=PRESENT).refused("confirm_needed", 4)
    bot = there.key("bot")
    coordinator = there.workers[0]

    def put(body, key):
        run = run_id(there.fleet, "bot", key)
        append(there, bot, run, kind="start", request_no=0, body=dict({"workflow": "ask", "task_id": "t-1", "task_rev": 0, "key": key, "summary": "x", "data": {}}, **body))

    put({"asker": "confirmed"}, "k-1")
    wait_until(lambda: len(coordinator.events("request.answered")) == 2, what="the answer")
    assert coordinator.events("request.answered")[-1]["code"] == "confirm_needed"
    for n, body in enumerate(({"asker": "person"}, {"by": "person"}, {"actor": "person"}, {"confirmed": True})):
        put(body, f"k-{n + 2}")
        wait_until(lambda: len(there.log.records(f"dlq.{there.prefix}.requests")) == n + 1, what="a dead letter")  # pylint: disable=cell-var-from-loop
    assert listed(there) == []


@pytest.mark.core
def test_l09_nothing_is_started_from_inside(fresh):
    """L-09, L-10, L-14: an executor, elsewhere, and a grandchild in a session of its own start no run, with or without --confirmed; every one has marker and mode."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=["allow.yaml"])
    workflow(host, "allow", ONE % INVOKES["allow"])
    script = os.path.join(host.dir, "starts")
    out = os.path.join(host.fake, "said")
    call = f"{binary()} --config {host.dir}/baton.yaml runs start --workflow allow --task t-in --summary x --json"
    with open(os.open(script, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{call} >>{out}\n{call} --confirmed >>{out}\ncd /tmp && {call} >>{out}\n"
                   f"setsid -w sh -c '{call}' >>{out}\nBATON_MODE=attended {call} >>{out}\n"
                   f"echo \"$BATON_MODE $BATON_ATTEMPT\" >>{out}.env\n"
                   f"setsid -w sh -c 'echo \"$BATON_MODE $BATON_ATTEMPT\" >>{out}.env'\nprintf '{{\"verdict\":\"done\"}}' >&3\n")
    service = host.service()
    service["executor"] = {"kind": "exec", "command": [script]}
    host.settings["services"]["alpha"] = service
    host.write({"alpha": service, "beta": None, "gamma": None}, roles=CHAINS, workflows=["allow.yaml"])
    ready(host.worker("coordinator", "c1"))
    host.worker("alpha")
    until(host, start(host, "t-1", workflow="allow"), "completed")
    with open(out, encoding="utf-8") as file:
        said = [json.loads(line) for line in file]
    assert [one["code"] for one in said] == ["nested_start"] * 5, said
    with open(out + ".env", encoding="utf-8") as file:
        assert file.read().split("\n") == ["unattended 1"] * 2 + [""]
    assert len(listed(host)) == 1 and len(host.log.records(host.topic("requests", None))) <= 1


@pytest.mark.core
def test_l10_l18_l19_a_refused_request_leaves_the_run_as_it_was(there):
    """L-10, L-18, L-19: touch and reopen by a program, unattended, or on what is no more so: the run's record says the same, byte for byte."""
    run = begin(there, "paired-review", environment=PRESENT).ok().one["run_id"]
    there.plan(turns={"beta": [{"verdict": "changes"}] * 5}, default=[{}])
    there.worker("alpha"), there.worker("beta")
    shown = until(there, run, "waiting")
    record, = [one for one in there.log.records(there.topic("runs", None)) if one.key == run.encode()]
    for words, environment, code in ((("touch", run), NOBODY, "person_required"), (("touch", run), {**PRESENT, **MARK}, "person_required"),
                                     (("touch", run), {"CI": "1"}, "person_required"), (("reopen", run, "--reason", "x"), NOBODY, "person_required"),
                                     (("touch", run, *BOT), PRESENT, "person_required"), (("reopen", run, "--reason", "x", *BOT), PRESENT, "person_required")):
        there.run("runs", *words, "--json", environment=environment).refused(code, 4)
    after, = [one for one in there.log.records(there.topic("runs", None)) if one.key == run.encode()]
    assert after.value == record.value and show(there, run) == shown
    ask(there, "runs", "touch", run).ok()
    wait_until(lambda: show(there, run)["code"] == "cycle_limit" and len(show(there, run)["turns"]) > 8, 30, "the cap once more")
    # What somebody decided on an older copy is told so, and changes nothing (L-19).
    there.tampered = True
    counted = taken(show(there, run))
    answers = len(there.workers[0].events("request.answered"))
    append(there, there.key(there.identity), run, kind="touch", request_no=1, body={})
    wait_until(lambda: len(there.workers[0].events("request.answered")) > answers, what="the answer")
    assert there.workers[0].events("request.answered")[-1]["code"] == "duplicate" and taken(show(there, run)) == counted


@pytest.mark.drivers("local")
def test_l13_the_mode(there):
    """L-13: BATON_MODE, else CI, else somebody is there; another value is bad_mode, for every verb that asks."""
    run = begin(there, "paired-review").ok().one["run_id"]
    for environment, code in (({"BATON_MODE": "attended", "CI": "1"}, None), ({"CI": "1"}, "person_required"), ({"CI": "false"}, None), ({}, None),
                              ({"BATON_MODE": "unattended", "CI": ""}, "person_required"), ({"BATON_MODE": "Attended"}, "bad_mode"),
                              ({"BATON_MODE": "yes", "CI": "1"}, "bad_mode")):
        done = there.run("runs", "touch", run, "--json", environment=environment)
        assert done.status == 0 if code is None else (done.code == code and done.status in (2, 4)), (environment, done)
    for words in (("runs", "start", "--workflow", "allow", "--task", "t", "--summary", "x"), ("runs", "cancel", run, "--reason", "x"),
                  ("runs", "reopen", run, "--reason", "x"), ("handoff", "--run", run, "--from", "owner", "--to", "reviewer", "--summary", "x")):
        there.run(*words, "--json", environment={"BATON_MODE": "maybe"}).refused("bad_mode", 2)


@pytest.mark.drivers("local")
@pytest.mark.skipif(not shutil.which("script"), reason="needs script(1) for a terminal")
def test_l24_nobody_is_asked(there):
    """L-24: under a terminal, unattended, nothing waits for a word: it is refused at once."""
    run = begin(there, "paired-review").ok().one["run_id"]
    done = subprocess.run(["script", "-qec", f"{binary()} runs touch {run} --json", "/dev/null"], cwd=there.dir, env=dict(there.environment, **NOBODY),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    assert b"person_required" in done.stdout, done


@pytest.mark.core
def test_l52_a_run_that_is_not_there(there):
    """L-52: every verb says run_not_found, exit 5, and sends nothing."""
    for words in (("runs", "show", "r-none"), ("runs", "wait", "r-none"), ("runs", "watch", "r-none"), ("runs", "cancel", "r-none", "--reason", "x"),
                  ("runs", "touch", "r-none"), ("runs", "reopen", "r-none", "--reason", "x")):
        there.run(*words, "--json", environment=PRESENT).refused("run_not_found", 5)
    assert hand(there, "r-none", "owner", "reviewer").refused("run_not_found", 5)
    assert there.log.records(there.topic("requests", None)) == []
