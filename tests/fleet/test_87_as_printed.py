"""Every command that README, RUNBOOK and the pages of the folders print runs as it is printed.

Placeholders (ID, NAME, TEXT …) are filled from a fleet that has what the command is about. What cannot be run here is
in a closed list with its reason; a command that is neither run nor in that list fails, and so does an entry that no
page prints any more.
"""
import os
import re
import shutil

import pytest

import proof
from host import ready
from kafkalog import KafkaLog
from printed import ROOT, as_printed, blocks, indented, inline, is_name, pages, read
from runs import ask
from test_67_runs import runs, start, until  # noqa: F401 (a fixture)

# command: why it is not run here, and what does instead
NOT_HERE = {
    "deploy/quickstart": "builds: test_71_quickstart.py runs it",
    "deploy/quickstart --kafka": "builds, and begins a broker: test_71_quickstart.py runs it",
    "tests/run": "it is what runs this",
    "tests/run --all": "it is what runs this",
    "tests/run --agents": "it is what runs test_73_real_agents.py",
    "tests/run --bench": "measures for minutes",
    "cmake --install build/release": "installs into /usr/local: tests/run installs into a folder of its own",
    "cmake --preset release && cmake --build --preset release && cmake --install build/release":
        "builds and installs: tests/run does, into folders of its own",
    "baton worker --service codex & baton worker --service claude":
        "needs the agents' programs, and runs until it is stopped: test_73_real_agents.py has both",
}


class Fleet:
    """A host with one of everything that a command of the pages is about."""

    def __init__(self, host):
        self.host = host
        host.plan(default=[{}], tasks={"t-auth": [{"class": "auth"}], "t-bad": [{"class": "bad_request"}], "t-hang": [{"hang": True}]},
                  turns={})
        for service in ("alpha", "beta", "gamma"):
            ready(host.worker(service, "w1"))
        self.unknown()
        self.parked("t-auth")
        self.number = 0

    def unknown(self):
        """A record that was rejected, since nobody here trusts its key."""
        self.host.log.append(self.host.handoff(self.host.turn(), signer=proof.Key.new()))
        self.host.letter("unknown_key")

    def parked(self, task="t-bad"):
        turn = self.host.published("alpha", "owner", task)
        self.host.ends(turn, "parked")
        return turn

    def done(self):
        turn = self.host.published("alpha", "owner", "t-1")
        self.host.ends(turn, "completed")
        return turn

    def hanging(self):
        turn = self.host.published("alpha", "owner", "t-hang")
        self.host.called(1, turn=turn)
        return turn

    def run(self):
        """Its owner hangs, so it stays as it is."""
        self.number += 1
        return start(self.host, "t-hang", "--key", f"k-{self.number}")

    def cancelled(self):
        run = self.run()
        ask(self.host, "runs", "cancel", run, "--reason", "by mistake").ok()
        until(self.host, run, "cancelled")
        return run

    def workflow(self):
        path = os.path.join(self.host.dir, "a-workflow.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.host.run("workflow", "show", "paired-review").ok().out)
        return "a-workflow.yaml"

    def task(self):
        with open(os.path.join(self.host.dir, "task.yaml"), "w", encoding="utf-8") as file:
            file.write("id: t-hang\nsummary: Mend the parser\n")
        return "task.yaml"

    # what a placeholder stands for: (commands, word, value)
    TABLE = [
        (r"baton turns why|baton dlq discard", "ID", parked),
        (r"baton turns watch", "ID", done),
        (r"baton turns cancel", "ID", hanging),
        (r"baton runs (?:show|touch)", "ID", run),
        (r"baton runs reopen", "ID", cancelled),
        (r"baton runs start", "NAME", lambda self: "paired-review"),
        (r"baton runs start", "FILE", task),
        (r"baton workflow", "FILE", workflow),
        (r"baton", "NAME", lambda self: "alpha"),
        (r"baton", "PROFILE", lambda self: "default"),
        (r"baton", "TEXT", lambda self: "'a look'"),
    ]

    def filled(self, command):
        for commands, word, value in self.TABLE:
            if re.match(commands, command) and re.search(rf"\b{word}\b", command):
                command = re.sub(rf"\b{word}\b", value(self), command, count=1)
        left = re.findall(r"(?<![\w'-])[A-Z]{2,}\b", command)
        assert not left, f"a placeholder that the table does not know: {left} in {command}"
        return command


def all_commands():
    """Commands in blocks and in sentences of every page, each once, but for those of the README's blocks, which are stories."""
    found = {}
    for page in pages():
        lines = indented(page) + [one for one in inline(page) if not is_name(one)]
        if page != "README.md":
            lines += [line for block in blocks(page) for line in block]
        for line in lines:
            found.setdefault(line, page)
    return found


def test_every_command_is_known():
    """Nothing that is printed is passed over, and the list of what is not run here has no old entries."""
    printed = set(all_commands()) | {line for block in blocks("README.md") for line in block}
    assert len(printed) > 50
    assert {one for one in NOT_HERE if one not in printed} == set()
    unknown = [one for one in printed if not one.startswith(("baton ", "cp ", "cd ", "tests/run --list")) and one not in NOT_HERE]
    assert not unknown


@pytest.mark.drivers("local")
def test_names_of_verbs_in_sentences_are_verbs(fresh):
    names = {one for page in pages() for one in inline(page) if is_name(one)}
    assert len(names) > 25
    for name in sorted(names):
        done = fresh.run(*name.split()[1:], "--help")
        assert done.status == 0 and name.split()[1] in done.out, (name, done)


@pytest.mark.drivers("local")
def test_commands_of_the_pages_run_as_printed(runs):  # noqa: F811
    """RUNBOOK and the folders' pages, in their order, against a fleet that has what they are about."""
    fleet, failed, count = Fleet(runs), [], 0
    for command, page in all_commands().items():
        if command in NOT_HERE:
            continue
        count += 1
        try:
            as_printed(runs, fleet.filled(command), cwd=ROOT if command.startswith("tests/") else None)
        except AssertionError as error:
            failed.append(f"{page}: {command}\n{error}")
    assert not failed, "\n\n".join(failed)
    assert count > 25


# ---- the README's blocks: each is a story, run from its first line to its last ----

def story(first):
    """The lines of the README's block that begins with this command, or with this and more options."""
    every = blocks("README.md")
    found, = [block for block in every if block[0] == first] or [block for block in every if block[0].startswith(first)]
    return [line for line in found if line not in NOT_HERE]


def told(fresh, lines):
    """Runs the lines as one script in the repository, as they are printed; ~ is the test's home."""
    return as_printed(fresh, "set -e\n" + "\n".join(lines) + "\n", cwd=ROOT)


@pytest.mark.drivers("local")
@pytest.mark.skipif(not shutil.which("patch"), reason="the example executor needs patch(1)")
def test_the_readmes_set_up_of_your_own(fresh):
    out = told(fresh, story("baton init ~/baton"))
    assert "completed" in out and "example" in out and "ok     log " in out, out


@pytest.mark.drivers("local")
def test_the_readmes_set_up_with_agents(fresh):
    out = told(fresh, story("baton init ~/agents"))
    assert "queued" in out and "agents" in out, out


@pytest.mark.drivers("kafka")
def test_the_readmes_set_up_on_kafka(fresh):
    """The brokers' names are placeholders; all else as printed."""
    lines = [line.replace("kafka-1:9092,kafka-2:9092", fresh.brokers) for line in story("baton init ~/baton --log kafka")]
    home = os.path.join(fresh.environment["HOME"], "baton")
    try:
        out = told(fresh, lines[:1] + [f"cd {home}"] + lines[1:])
        assert "ok     topics" in out, out
        with open(os.path.join(home, "acls.sh"), encoding="utf-8") as file:
            assert "allow " in file.read()
    finally:
        log = KafkaLog(fresh.brokers, "baton")
        log.drop(*log.topics())


@pytest.mark.drivers("local")
def test_the_readmes_first_example(fresh):
    """What a newcomer sees first: one turn, refused by the first service's provider, done by the second in the same role."""
    host = fresh.configure({"claude-review": None, "codex-review": None}, roles={"reviewer": {"chain": ["claude-review", "codex-review"]}})
    host.plan(services={"claude-review": [{"class": "auth"}], "codex-review": [{}, {"verdict": "changes"}]})
    for service in ("claude-review", "codex-review"):
        ready(host.worker(service, "w1"))
    shutil.copy(os.path.join(ROOT, "deploy", "examples", "fix.diff"), host.dir)
    publish, show = story("baton publish --service claude-review")
    out = as_printed(host, publish)
    turn = re.match(r"delivered  ([0-9a-f]{32})  reviewer at claude-review\n", out).group(1)
    assert "completed: changes" in out, out
    shown = as_printed(host, show.replace("1895df", turn[:6]))
    shape = re.findall(r"^NO .*$", shown, re.M), re.findall(r"^NO .*$", read("README.md"), re.M)
    assert [re.split(r"  +", one[0].strip()) for one in shape][0] == [re.split(r"  +", one[0].strip()) for one in shape][1]
    for words in ("role       reviewer", "state      completed", "verdict    changes"):
        assert words in shown, shown
