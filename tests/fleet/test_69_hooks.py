"""Hooks of workflows: what each answer leads to, what a hook is given, and that whatever is no answer refuses (H-27 to H-39, I35)."""
import json
import os
import shutil
import time

import pytest

from host import ready, wait_until
from runs import ask, show, start, until

HOOK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib", "hook.py")
ALLOW = {"answer": {"verdict": "allow"}}
BLOCK = {"answer": {"verdict": "block", "reason": "no ticket"}}


class Hooked:
    """A host whose workflow has a hook between owner and reviewer."""

    def __init__(self, host, tmp):
        self.host = host
        host.configure({"alpha": None, "beta": None}, roles={"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta"]}}, workflows=["hooked.yaml"])
        shutil.copy(HOOK, os.path.join(host.dir, "check"))
        self.go = str(tmp / "go")

    def begin(self, *steps, keys="", workers=True, **environment):
        """Writes workflow and steps, then starts everything; the coordinator."""
        self.write(keys)
        self.steps(*steps)
        coordinator = ready(self.host.worker("coordinator", "c1", environment=environment))
        for service in ("alpha", "beta") if workers else ():
            self.host.worker(service)
        return coordinator

    def write(self, keys):
        self.workflow("nodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\n"
                      f"hooks:\n  check: {{command: [./check, one], data: [pr_url]{keys}}}\n"
                      "transitions:\n  review: {from: dev, when: [done], to: rev, hook: check}\n"
                      "ends:\n  good: {from: rev, when: [approve], as: completed}\n")

    def workflow(self, text):
        path = os.path.join(self.host.dir, "hooked.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: 1\nname: hooked\nstart: dev\n" + text)
        os.chmod(path, 0o644)

    def steps(self, *steps):
        with open(os.path.join(self.host.dir, "hook.json"), "w", encoding="utf-8") as file:
            json.dump(list(steps), file)

    def start(self, task="t-1"):
        return start(self.host, task, workflow="hooked")

    def calls(self):
        path = os.path.join(self.host.dir, "hook.calls")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def called(self, count=1):
        wait_until(lambda: len(self.calls()) >= count, 30, lambda: f"{count} calls of the hook\n{self.host.all_logs()}")
        return self.calls()

    def waits(self, run, code, stage="hook"):
        shown = until(self.host, run, "waiting")
        assert (shown["code"], shown["stage"], len(shown["turns"])) == (code, stage, 1), shown
        return shown

    def scratch(self):
        """What is left of the hooks' scratch directories."""
        top = os.path.join(self.host.dir, "data", "scratch", "coordinator.c1")
        return os.listdir(top) if os.path.isdir(top) else []

    def second(self, shown):
        """What the reviewer's turn said."""
        return json.loads(self.host.calls(turn=shown["turns"][1]["turn_id"])[0]["stdin"])


@pytest.fixture
def hooked(fresh, tmp_path):
    return Hooked(fresh, tmp_path)


@pytest.mark.core
def test_h28_h29_h39_a_hook_that_allows(hooked):
    """H-28, H-29, H-39: it runs once, sees the whole handoff, only the variables it declares, a directory of its own that is gone afterwards; then the turn."""
    coordinator = hooked.begin({**ALLOW, "descend": True}, keys=", env: [GH_TOKEN, UNSET_HERE]", GH_TOKEN="token-of-github", OTHER="not to be seen")
    hooked.host.plan(turns={"alpha": [{"summary": "look", "result": {"data": {"files": "3"}}}]})
    run = hooked.start()
    shown = until(hooked.host, run, "completed")
    [call] = hooked.calls()
    first = shown["turns"][0]
    assert call["argv"] == ["one"] and call["input"] == {
        "hook": "check", "run_id": run, "epoch": 1, "task_id": "t-1", "task_rev": 1, "task_status": "review_ready", "subject": None, "from": "dev", "transition": "review",
        "targets": ["rev"], "summary": "look", "data": {"files": "3"}, "verdict": "done", "turn_id": first["turn_id"], "attempt": 1}
    home = call["env"]["HOME"]
    assert call["env"].pop("PATH").startswith("/usr/local/sbin:") and call["mode"] == "0o700" and call["cwd"] == home == os.path.realpath(home)
    call["env"].pop("LC_CTYPE", None)  # python's own
    assert call["env"] == {"HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "BATON_HOOK": "check", "BATON_RUN_ID": run, "BATON_TASK_ID": "t-1",
                           "BATON_ATTEMPT": "1", "BATON_MODE": "unattended", "BATON_SCRATCH": home, "GH_TOKEN": "token-of-github"}
    assert set(call["fds"]) <= {0, 1, 2, 3, 4} and not os.path.exists(home) and hooked.scratch() == []
    assert hooked.second(shown)["data"] == {"task": "Mend the parser", "from": "dev", "verdict": "done", "files": "3"}
    [ended] = coordinator.events("hook.ended")
    assert (ended["code"], ended["hook"], ended["run"]) == ("ok", "check", run) and "token-of-github" not in coordinator.log


@pytest.mark.core
def test_h32_a_block_waits_for_a_person_and_a_touch_asks_again(hooked):
    """H-32: the run waits with the hook's reason, nothing is published; a person's touch runs it again, once."""
    hooked.begin(BLOCK, ALLOW)
    run = hooked.start()
    shown = hooked.waits(run, "hook_blocked")
    assert "no ticket" in shown["why"] and len(hooked.calls()) == 1
    time.sleep(2.5)  # two looks of the coordinator: nothing happens by itself
    assert len(hooked.calls()) == 1 and show(hooked.host, run)["state"] == "waiting"
    ask(hooked.host, "runs", "touch", run, "--reason", "ticket is there").ok()
    shown = until(hooked.host, run, "completed")
    assert len(hooked.calls()) == 2 and len(shown["turns"]) == 2


@pytest.mark.core
def test_h32_h42_a_retry_comes_by_itself_and_not_too_early(hooked):
    """H-32, H-42: `retryable_block` puts the handoff back for as long as it says, then the hook runs again by itself."""
    hooked.begin({"answer": {"verdict": "retryable_block", "reason": "ci runs", "retry_after_ms": 3000}}, ALLOW)
    run = hooked.start()
    shown = hooked.waits(run, "hook_retry")
    assert "ci runs" in shown["why"]
    until(hooked.host, run, "completed")
    first, second = hooked.calls()
    assert second["at"] - first["at"] >= 3.0


@pytest.mark.core
def test_h34_h35_a_patch(hooked):
    """H-34, H-35: summary and data of the patch count, keys that it does not name stay, and what it may not touch is left out with a warning."""
    patch = {"summary": "patched", "data": {"pr_url": "https://x/1", "from": "boss"}, "target": "dev", "role": "owner", "turn_id": "0" * 32, "service": "alpha"}
    coordinator = hooked.begin({"answer": {"verdict": "patch", "patch": patch}})
    hooked.host.plan(turns={"alpha": [{"summary": "as it was", "result": {"data": {"files": "3"}}}]})
    shown = until(hooked.host, hooked.start(), "completed")
    assert [(one["slot"], one["role"], one["service"]) for one in shown["turns"]] == [("dev", "owner", "alpha"), ("rev", "reviewer", "beta")]
    turn = hooked.second(shown)
    assert turn["summary"] == "patched" and turn["data"] == {"task": "Mend the parser", "from": "dev", "verdict": "done", "files": "3", "pr_url": "https://x/1"}
    assert sorted(one["member"] for one in coordinator.events("hook.patch_stripped")) == ["from", "role", "service", "target", "turn_id"]


REFUSED = {
    "h36_empty_summary": ({"answer": {"verdict": "patch", "patch": {"summary": " "}}}, "patch_invalid"),
    "h36_undeclared_data": ({"answer": {"verdict": "patch", "patch": {"data": {"other": "x"}}}}, "patch_invalid"),
    "h38_junk": ({"answer": "allow"}, "hook_unavailable"),
    "h38_two_answers": ({"answer": '{"verdict":"allow"}{"verdict":"block","reason":"x"}'}, "hook_unavailable"),
    "h38_nothing": ({}, "hook_unavailable"),
    "h38_status": ({**ALLOW, "status": 1}, "hook_unavailable"),
    "h38_too_long": ({"answer": '{"verdict":"allow"}' + 70000 * " "}, "hook_unavailable"),
    "h24_segfault": ({**ALLOW, "signal": 11}, "hook_unavailable"),
    "h38_timeout": ({**ALLOW, "until": "/nowhere/at/all", "descend": True}, "hook_unavailable"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.few_on_kafka("case", "h24_segfault", "h36_empty_summary", "h38_junk", "h38_timeout")
def test_h38_whatever_is_no_answer_refuses(hooked, case):
    """H-24, H-36, H-38: the run waits with the code, nothing is published, nothing is left of the hook."""
    step, code = REFUSED[case]
    hooked.begin(step, keys=", timeout: 1500ms" if case == "h38_timeout" else "")
    hooked.waits(hooked.start(), code)
    assert len(hooked.calls()) == 1 and hooked.scratch() == []


def test_h38_a_program_that_is_missing(hooked):
    """H-38: a hook whose program, or whose workflow, is not on the coordinator's disk refuses; one that is put there again runs after a touch."""
    hooked.begin(ALLOW)
    os.rename(os.path.join(hooked.host.dir, "check"), os.path.join(hooked.host.dir, "gone"))
    run = hooked.start()
    shown = hooked.waits(run, "hook_unavailable")
    assert "check" in shown["why"] and hooked.scratch() == []
    os.rename(os.path.join(hooked.host.dir, "gone"), os.path.join(hooked.host.dir, "check"))
    os.rename(os.path.join(hooked.host.dir, "hooked.yaml"), os.path.join(hooked.host.dir, "away.yaml"))
    ask(hooked.host, "runs", "touch", run, "--reason", "again").ok()
    assert "no workflow" in hooked.waits(run, "hook_unavailable")["why"] and hooked.calls() == []
    os.rename(os.path.join(hooked.host.dir, "away.yaml"), os.path.join(hooked.host.dir, "hooked.yaml"))
    ask(hooked.host, "runs", "touch", run, "--reason", "again").ok()
    until(hooked.host, run, "completed")


@pytest.mark.parametrize("step", [BLOCK, {"answer": "junk"}], ids=["block", "junk"])
def test_h33_a_side_effect_holds_nothing_up(hooked, step):
    """H-33: its block is noted in the log, and the turn exists."""
    coordinator = hooked.begin(step, keys=", class: side_effect")
    shown = until(hooked.host, hooked.start(), "completed")
    [ended] = coordinator.events("hook.ended")
    assert len(shown["turns"]) == 2 and ended["code"] == ("hook_blocked" if step is BLOCK else "hook_unavailable")


def test_h30_a_hook_for_people_only(hooked):
    """H-30: what an executor asks for is refused `hook_denied` and the hook does not run; what its verdict takes does run it."""
    hooked.begin(ALLOW, keys=", people_only: true")
    hooked.host.plan(turns={"alpha": [{"result": {"handoff": {"target": "rev", "summary": "look"}}}]})
    hooked.waits(hooked.start("t-1"), "hook_denied")
    assert hooked.calls() == []
    hooked.host.plan()
    until(hooked.host, hooked.start("t-2"), "completed")
    assert len(hooked.calls()) == 1


@pytest.mark.core
def test_h14_at_the_cap_no_hook_is_asked(hooked):
    """H-14: the cap is looked at before the hook: at the cap it is `cycle_limit`, and the hook has not run once more."""
    hooked.begin(ALLOW, workers=False)
    hooked.workflow("nodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\nhooks:\n  check: {command: [./check]}\n"
                    "transitions:\n  review: {from: dev, when: [done], to: rev}\n  again: {from: rev, when: [changes], to: dev, hook: check, max_cycles: 1}\n"
                    "ends:\n  good: {from: rev, when: [approve], as: completed}\n")
    hooked.host.plan(services={"beta": [{"verdict": "changes"}]}, default=[{}])
    for service in ("alpha", "beta"):
        hooked.host.worker(service)
    run = hooked.start()
    shown = until(hooked.host, run, "waiting")
    assert (shown["code"], shown["stage"], len(shown["turns"]), len(hooked.calls())) == ("cycle_limit", "cycle_limit", 4, 1), shown
    ask(hooked.host, "runs", "touch", run).ok()
    shown = wait_until(lambda: (lambda one: one if one["code"] and len(one["turns"]) == 6 else None)(show(hooked.host, run)), 30, "the next time at the cap")
    assert (shown["code"], len(hooked.calls())) == ("cycle_limit", 2), shown


def test_h30_a_hook_that_is_switched_off(hooked):
    """H-30: neither a verdict nor an executor nor a person passes it, and it does not run; once the file has it on again, a new run does."""
    hooked.begin(ALLOW, keys=", enabled: false")
    run = hooked.start("t-1")
    hooked.waits(run, "hook_denied")
    done = ask(hooked.host, "handoff", "--run", run, "--from", "dev", "--to", "rev", "--summary", "go")
    assert (done.one["code"], done.one["result"]["stage"]) == ("hook_denied", "hook"), done
    assert hooked.calls() == []
    hooked.write("")
    until(hooked.host, hooked.start("t-2"), "completed")
    assert len(hooked.calls()) == 1


def test_h39_only_the_hook_that_declares_it_sees_it(hooked):
    """H-39: of two hooks the one whose declaration names the variable has it, the other has not."""
    hooked.begin(ALLOW, workers=False, GH_TOKEN="token-of-github")
    hooked.workflow("nodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\nhooks:\n  with: {command: [./check, with], env: [GH_TOKEN]}\n  bare: {command: [./check, bare]}\n"
                    "transitions:\n  review: {from: dev, when: [done], to: rev, hook: with}\n  again: {from: rev, when: [changes], to: dev, hook: bare, max_cycles: 1}\n"
                    "ends:\n  good: {from: rev, when: [approve], as: completed}\n")
    hooked.host.plan(turns={"beta": [{"verdict": "changes"}, {}]}, default=[{}])
    for service in ("alpha", "beta"):
        hooked.host.worker(service)
    until(hooked.host, hooked.start(), "completed")
    assert [(call["argv"], call["env"].get("GH_TOKEN")) for call in hooked.calls()] == [
        (["with"], "token-of-github"), (["bare"], None), (["with"], "token-of-github")]


@pytest.mark.core
def test_h27_i35_slow_once_and_cancelled_meanwhile(hooked):
    """H-27, I35: a slow hook runs once, whatever else happens, and others' runs go on; when its run is cancelled it is ended and nothing is published."""
    coordinator = hooked.begin({"until": hooked.go, "descend": True}, ALLOW)
    run = hooked.start("t-1")
    [call] = hooked.called()
    other = hooked.start("t-2")
    until(hooked.host, other, "completed")
    assert show(hooked.host, run)["state"] == "active" and len(hooked.calls()) == 2  # one each
    ask(hooked.host, "runs", "touch", run, "--reason", "go on").ok()
    time.sleep(1.5)  # a look of the coordinator
    assert len(hooked.calls()) == 2
    ask(hooked.host, "runs", "cancel", run, "--reason", "not needed").ok()
    wait_until(lambda: len(coordinator.events("hook.ended")) == 2, 20, lambda: "the hook to be ended\n" + coordinator.log[-2000:])
    shown = until(hooked.host, run, "cancelled")
    assert len(shown["turns"]) == 1 and not os.path.exists(call["env"]["HOME"]) and hooked.scratch() == []
    assert not hooked.host.calls(service="beta", task="t-1")


@pytest.mark.core
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_runs_it_again(hooked, end):
    """A coordinator that ends while a hook runs takes it along; the next one runs it again, and the turn exists once."""
    coordinator = hooked.begin({"until": hooked.go}, ALLOW)
    run = hooked.start()
    hooked.called()
    getattr(coordinator, end)()
    ready(hooked.host.worker("coordinator", "c1"))
    shown = until(hooked.host, run, "completed")
    assert len(hooked.calls()) == 2 and len(shown["turns"]) == 2 and hooked.scratch() == []


@pytest.mark.core
def test_another_turns_end_meanwhile(hooked):
    """Two turns end while the hook of the first is slow: the second is answered after it, with a hook of its own; each handoff exists once."""
    hooked.begin({**ALLOW, "until": hooked.go}, ALLOW, workers=False)
    hooked.workflow("nodes:\n  dev: {role: owner}\n  rev: {slots: {a: reviewer, b: reviewer}}\n"
                    "hooks:\n  check: {command: [./check]}\n"
                    "transitions:\n  review: {from: dev, when: [done], to: rev}\n"
                    "  a: {from: rev.a, when: [changes], to: dev, hook: check}\n  b: {from: rev.b, when: [changes], to: dev, hook: check}\n"
                    "ends:\n  good: {from: dev, when: [done_with_concerns], as: completed}\n")
    hooked.host.plan(turns={"alpha": [{"verdict": "done"}, {"verdict": "done_with_concerns"}, {"verdict": "done_with_concerns"}],
                            "beta": [{"verdict": "changes"}, {"verdict": "changes"}]})
    for service in ("alpha", "beta"):
        hooked.host.worker(service)
    run = hooked.start()
    hooked.called()
    wait_until(lambda: [one["state"] for one in show(hooked.host, run)["turns"]] == ["completed"] * 3, 30, lambda: f"{show(hooked.host, run)}")
    assert len(hooked.calls()) == 1 and show(hooked.host, run)["state"] == "active"
    open(hooked.go, "w", encoding="ascii").close()
    shown = until(hooked.host, run, "completed")
    assert sorted(one["by"] for one in shown["turns"]) == ["a", "b", "review", "review", "start"] and len(hooked.calls()) == 2
    assert {call["input"]["transition"] for call in hooked.calls()} == {"a", "b"}


@pytest.mark.core
@pytest.mark.seconds(180)
def test_coordinators_are_killed_and_each_handoff_exists_once(hooked):
    """Two coordinators, killed by turns at any point of hooks and commits: each run is handed on once, and no process of a hook is left."""
    hooked.begin(ALLOW)
    killed = [hooked.host.workers[0], ready(hooked.host.worker("coordinator", "c2"))]
    runs = []
    for round_ in range(4):
        runs += [start(hooked.host, f"t-{round_}-{n}", "--timeout", "60s", workflow="hooked") for n in range(3)]
        hooked.called(len(runs) - 2)
        killed[round_ % 2].kill()
        killed[round_ % 2] = ready(hooked.host.worker("coordinator", f"c{round_ % 2 + 1}"))
    for run in runs:
        shown = until(hooked.host, run, "completed", 120)
        assert [one["by"] for one in shown["turns"]] == ["start", "review"], shown
    assert len(hooked.host.calls(service="beta")) == len(runs) <= len(hooked.calls())


@pytest.mark.drivers("local")
@pytest.mark.parametrize("there", [True, False])
def test_h28_a_hook_starts_where_the_sender_worked(hooked, there):
    """H-28: in the place of the sender's service, HOME apart; on a host that has no such directory in one of its own."""
    place = os.path.join(hooked.host.dir, "place")
    os.mkdir(place)
    roles = {"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta"]}}
    hooked.host.configure({"alpha": hooked.host.service(place=place), "beta": None}, roles=roles, workflows=["hooked.yaml"])
    hooked.write("")
    hooked.steps(ALLOW)
    ready(hooked.host.worker("coordinator", "c1"))
    if not there:  # the worker's host has it under another name
        os.rename(place, place + ".moved")
        hooked.host.write({"alpha": hooked.host.service(place=place + ".moved"), "beta": None}, roles=roles, workflows=["hooked.yaml"])
    hooked.host.worker("alpha"), hooked.host.worker("beta")
    run = hooked.start()
    [call] = hooked.called()
    assert call["cwd"] == (os.path.realpath(place) if there else call["env"]["HOME"]), call
    assert call["env"]["HOME"] != place and call["env"]["HOME"].startswith(os.path.join(hooked.host.dir, "data", "scratch"))
    until(hooked.host, run, "completed")
