"""deploy/quickstart, with what was built already: stand-ins where no agent program is installed, else the real ones.

It must end well, and say plainly which is which. On Kafka, with building and from nothing: tests/bare-machine.
"""
import json
import os
import re
import shutil
import subprocess

import pytest

import agents
from host import SLOW, binary

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = "/usr/bin:/bin"
needs_agents = pytest.mark.skipif(not agents.folder(), reason="the agent programs are not installed: tests/run --agents")
nothing_there = pytest.mark.skipif(bool(shutil.which("claude", path=PATH) or shutil.which("codex", path=PATH)),
                                   reason="agent programs are installed for everybody here")


def quickstart(folder, path=PATH, **environment):
    """Runs it; what it printed, its set-up's newest turn, and the turns that it left."""
    build = os.environ.get("BATON_BUILD") or os.path.dirname(os.path.dirname(binary()))
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run([os.path.join(ROOT, "deploy", "quickstart"), "--built", build, str(folder)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=150 * SLOW,
                          cwd=str(folder.parent), env={"PATH": path, "HOME": str(home), "BATON_CONFIG": "/nowhere", **environment})
    assert done.returncode == 0, done.stdout
    turn = re.search(r"^delivered +([0-9a-f]{32})", done.stdout, re.M).group(1)
    shown = json.loads(subprocess.run([binary(), "turns", "show", turn, "--json"], stdout=subprocess.PIPE, check=True, cwd=str(folder),
                                      env={"PATH": PATH}).stdout)
    assert (shown["role"], shown["state"], shown["verdict"]) == ("reviewer", "completed", "changes"), shown
    assert [(one["service"], one["state"], one["class"]) for one in shown["attempts"]] == \
        [("claude-review", "delegated", "auth"), ("codex-review", "completed", None)], shown["attempts"]
    assert "Nothing else waits, runs or is parked at either service." in done.stdout
    assert left_behind(folder) == []
    return done.stdout, shown


def left_behind(folder):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(folder)):
                found.append(words)
        except OSError:
            continue
    return found


def players(out):
    """{service: who plays it}, as it is said before and after."""
    before, after = out.split("== 3.")[0], out.split("== Done")[1]
    found = [dict(re.findall(r"^  (claude-review|codex-review): (.*)$", text, re.M)) for text in (before, after)]
    assert found[0] == found[1] and len(found[0]) == 2, out
    return found[0]


@nothing_there
def test_stand_ins_where_nothing_is_installed(tmp_path):
    """It says that they are stand-ins, and why; and may be run again, when it has a provider's refusal to forget."""
    folder = tmp_path / "set-up"
    for _ in range(2):
        out, _ = quickstart(folder)
        assert players(out) == {
            "claude-review": "a stand-in, examples/refused: claude is not installed here",
            "codex-review": "a stand-in, examples/review-patch, which tries the patch out: codex is not installed here"}
    assert "modelserver" not in out and "kind: agent" not in (folder / "baton.yaml").read_text()


def test_a_program_that_does_not_start_is_no_program(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\necho 'needs a newer node' >&2\nexit 1\n")
    (programs / "claude").chmod(0o755)
    out, _ = quickstart(tmp_path / "set-up", f"{programs}:{PATH}")
    assert players(out)["claude-review"] == f"a stand-in, examples/refused: {programs}/claude does not start"


@needs_agents
@pytest.mark.long
@pytest.mark.agents
@pytest.mark.parametrize("installed", ["claude codex", "claude", "codex"])
def test_real_programs_where_they_are_installed(tmp_path, installed):
    """They work against its own model server: with no key of the person's, who may have some in the environment."""
    programs, real = tmp_path / "bin", os.path.join(agents.folder(), "node_modules", ".bin")
    programs.mkdir()
    for program in installed.split():
        (programs / program).symlink_to(os.path.join(real, program))
    folder = tmp_path / "set-up"
    out, shown = quickstart(folder, f"{programs}:{PATH}", ANTHROPIC_API_KEY=agents.SECRET, OPENAI_API_KEY=agents.SECRET)
    said, used = players(out), [(one.get("usage") or {}).get("agent") for one in shown["attempts"]]
    for number, (service, program) in enumerate((("claude-review", "claude"), ("codex-review", "codex"))):
        there = program in installed.split()
        assert said[service].startswith(f"the real {program} ({programs}/{program}, " if there else "a stand-in, "), said
        assert used[number] == (program if there else None), shown["attempts"]
    if "claude" in installed:
        assert "Invalid API key" in shown["attempts"][0]["note"]
    if "codex" in installed:
        assert shown["result"]["summary"] == "one thing was looked at", "the model server's answer"
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as file:
                assert agents.SECRET.encode() not in file.read(), os.path.join(where, name)
