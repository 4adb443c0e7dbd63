"""The example executor does real work on a patch, in every role."""
import os
import re
import shutil

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "deploy", "examples")

pytestmark = pytest.mark.skipif(not shutil.which("patch"), reason="the example executor needs patch(1)")


@pytest.fixture
def example(fresh):
    """The service `example` with a tree to apply patches to."""
    shutil.copytree(os.path.join(EXAMPLES, "project"), os.path.join(fresh.dir, "project"))
    service = fresh.service(place="project")
    service["executor"] = {"kind": "exec", "command": ["examples/review-patch"]}
    return fresh.configure({"example": service})


def end_of(host, role, patch, task="t-1"):
    done = host.run("publish", "--service", "example", "--role", role, "--task", task, "--payload", "-", "--json", stdin=patch).ok()
    host.drain("example")
    shown = host.show(done.one["turn_id"])
    assert shown["state"] == "completed", shown
    assert shown["role"] == role
    return shown["verdict"], shown["result"]


def patch_of(name):
    with open(os.path.join(EXAMPLES, name), "rb") as file:
        return file.read()


def tree(host):
    found = {}
    for name in sorted(os.listdir(os.path.join(host.dir, "project"))):
        with open(os.path.join(host.dir, "project", name), "rb") as file:
            found[name] = file.read()
    return found


def test_a_reviewer_finds_what_is_wrong_and_where(example):
    before = tree(example)
    verdict, result = end_of(example, "reviewer", patch_of("fix.diff"))
    assert verdict == "changes"
    assert any(item["text"] == "trailing white space" and item["file"] == "count.c" and item["line"] == 13
               for item in result["items"]), result
    if shutil.which("cc", path="/usr/local/bin:/usr/bin:/bin"):
        assert any("longest" in item["text"] for item in result["items"]), result
    assert tree(example) == before, "a scratch copy is patched, never the place"


def test_a_reviewer_approves_what_holds(example):
    verdict, result = end_of(example, "reviewer", patch_of("fix-2.diff"))
    assert (verdict, result["items"]) == ("approve", [])


@pytest.mark.drivers("local")
@pytest.mark.parametrize("patch, verdict", [
    (patch_of("fix-2.diff").replace(b" #include <ctype.h>", b" #include <other.h>"), "changes"),  # does not apply
    (b"--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n", "changes"),
    (b"--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+if true; fi\n", "changes"),  # does not parse
    (b"--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n", "approve"),
    (b"no patch at all", "needs_context"), (b"", "needs_context")])
def test_what_a_reviewer_says_to(example, patch, verdict):
    before = tree(example)
    assert end_of(example, "reviewer", patch)[0] == verdict
    assert tree(example) == before and not os.path.exists(os.path.join(example.dir, "x"))


def test_an_owner_mends_what_can_be_mended(example):
    verdict, result = end_of(example, "owner", patch_of("fix.diff"))
    assert verdict in ("done", "done_with_concerns")
    mended, = result["artifacts"]
    assert "'\\n';\n" in mended["text"] and ";  \n" not in mended["text"]


def test_an_arbiter_decides(example):
    assert end_of(example, "arbiter", patch_of("fix.diff"))[0] == "proceed", "white space is not worth another round"
    broken = patch_of("fix-2.diff").replace(b" #include <ctype.h>", b" #include <other.h>")
    assert end_of(example, "arbiter", broken, "t-2")[0] == "revise"


def test_a_provider_that_refuses_is_a_failed_attempt(example):
    """Exit 77 of the provider is `auth`: the turn is parked with its role, and ends once it is mended."""
    path = os.path.join(example.dir, "provider")
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n[ \"$PROVIDER_TOKEN\" = good ] || { echo 401 >&2; exit 77; }\n")
    os.chmod(path, 0o755)
    service = example.settings["services"]["example"]
    service["executor"]["env"] = {"PROVIDER": {"value": path}}
    service["profiles"] = [{"name": name, "env": {"PROVIDER_TOKEN": {"value": "bad"}}} for name in ("team", "backup")]
    example.write(example.settings["services"])
    turn = example.published("example", "reviewer", "t-1")
    example.drain("example", "w1")
    shown = example.show(turn)
    assert shown["state"] == "parked" and [(one["profile"], one["class"]) for one in shown["attempts"]] == \
        [("team", "auth"), ("backup", "auth")]
    service["profiles"][0]["env"]["PROVIDER_TOKEN"] = {"value": "good"}
    example.write(example.settings["services"])
    assert example.run("dlq", "replay", turn, "--timeout", "0", "--json").ok().one["status"] == "queued"
    example.drain("example", "w1")
    shown = example.show(turn)
    assert (shown["state"], shown["role"], len(shown["attempts"])) == ("completed", "reviewer", 3)


# ---- what the documents say ----

def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


@pytest.mark.drivers("local")
def test_the_example_of_topics_md_is_what_the_command_prints(host):
    host.write({"alpha": None, "beta": None, "lint": host.service(roles=["reviewer"])})
    shown = re.search(r"\$ baton topics plan\n(.*?)\n\$ ", page("topics/TOPICS.md"), re.S).group(1)
    printed = [line for line in host.run("topics", "plan").ok().out.splitlines() if line.startswith("create")]
    assert printed == shown.splitlines()


@pytest.mark.drivers("local")
def test_the_executor_of_the_readme_works(fresh):
    script = re.search(r"```sh\n(#!/bin/sh\n.*?)```", page("README.md"), re.S).group(1)
    path = os.path.join(fresh.dir, "executor")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(path, 0o755)
    service = fresh.service()
    service["executor"] = {"kind": "exec", "command": [path]}
    host = fresh.configure({"example": service})
    assert end_of(host, "reviewer", b"all is well")[0] == "approve"
    assert end_of(host, "reviewer", b"FIXTHIS soon", "t-2")[0] == "changes"


def test_the_example_with_two_reviewers_goes_on_at_the_other(fresh):
    """What quickstart shows, with its file: one turn, two attempts, one role."""
    with open(os.path.join(EXAMPLES, "fallback", "baton.yaml"), encoding="utf-8") as file:
        text = file.read().replace("identity: alice", f"identity: {fresh.identity}").replace("version: 1", f"version: 1\nprefix: {fresh.prefix}")
    if fresh.driver == "kafka":
        text = re.sub("^log: local .*", "log: kafka", text, flags=re.M)
        text = re.sub("^# kafka: .*", f"kafka: {{brokers: [{fresh.brokers}]}}", text, flags=re.M)
    with open(os.path.join(fresh.dir, "baton.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    shutil.copytree(os.path.join(EXAMPLES, "project"), os.path.join(fresh.dir, "project"))
    shutil.copy(os.path.join(EXAMPLES, "fallback", "refused"), os.path.join(fresh.dir, "examples"))
    fresh.run("init", ".").ok()
    fresh.run("topics", "apply").ok()
    fresh.run("config", "check").ok()
    for service in ("claude-review", "codex-review"):
        fresh.worker(service, "w1")
    done = fresh.run("publish", "--service", "claude-review", "--role", "reviewer", "--task", "count-lines", "--payload", "-", "--wait",
                     "--json", stdin=patch_of("fix.diff")).ok()
    shown = fresh.show(done.one["turn_id"])
    assert (shown["role"], shown["state"], shown["verdict"]) == ("reviewer", "completed", "changes"), shown
    assert [(one["service"], one["state"], one["class"]) for one in shown["attempts"]] == \
        [("claude-review", "delegated", "auth"), ("codex-review", "completed", None)], shown["attempts"]


def test_the_readme_names_files_that_exist():
    """STYLE 2.1: the path of a handoff is kept true."""
    text = page("README.md")
    path = re.search(r"## The path of a handoff\n\n```\n(.*?)```", text, re.S).group(1)
    named = set(re.findall(r"(?:common|topics|producer|worker|deploy)/[\w./-]*\w/?", path))
    named |= {target for target in re.findall(r"\]\(([\w./-]+)\)", text)}
    assert len(named) > 15, named
    missing = [name for name in sorted(named) if not os.path.exists(os.path.join(ROOT, name))]
    assert not missing


@pytest.mark.drivers("local")
def test_the_commands_of_the_readme_exist(fresh):
    verbs = set(re.findall(r"\bbaton ((?:init|config|keys|topics|publish|worker|turns|services|dlq|doctor|store|bench)"
                           r"(?: (?:show|list|replay|pause|cancel|check|apply))?)\b", page("README.md")))
    assert len(verbs) >= 8, verbs
    for verb in sorted(verbs):
        fresh.run(*verb.split(), "--help").ok()
