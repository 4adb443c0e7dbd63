"""Commands as the pages print them: collected from every page, and run by a shell as they stand.

Called by tests/fleet/test_87_as_printed.py and test_87_planted_faults.py. A command is a line of a block (fenced as
sh or console, or indented), or code within a sentence, that begins with a program of ours. What is fenced as sh and
begins with #! is a program, no command; files, rows and output are none either.
"""
import os
import re
import subprocess

from host import SLOW, binary

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OURS = re.compile(r"(?:baton|tests/run|deploy/quickstart|cmake|cp|cd)(?: |$)")
FOLDERS = ("common", "topics", "producer", "worker", "deploy", "tests")


def pages():
    """Every page but the history of changes, and pages of others."""
    found = ["README.md"]
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            found += [os.path.relpath(os.path.join(where, name), ROOT) for name in names
                      if name.endswith(".md") and "fixtures" not in where]
    return sorted(found)


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def bare(line):
    """Without the comment behind it."""
    return re.sub(r"\s+#.*$", "", line).strip()


def blocks(page):
    """The fenced blocks of commands: of each its lines."""
    found = []
    for kind, text in re.findall(r"^```(sh|console)\n(.*?)^```", read(page), re.M | re.S):
        if kind == "console":
            found.append([line[2:] for line in text.splitlines() if line.startswith("$ ")])
        elif not text.startswith("#!"):
            found.append([bare(line) for line in text.splitlines() if line.strip()])
    return found


def indented(page):
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S)
    lines = [bare(line) for line in re.findall(r"^    (\S.*)$", text, re.M)]
    return [line for line in lines if OURS.match(line) and not re.match(r"baton \w+ {2,}", line)]


def inline(page):
    """Code in sentences. A path of verbs alone is a name for a verb, and no command."""
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S).replace("\n", " ")
    return [" ".join(one.split()) for one in re.findall(r"`([^`]*)`", text) if OURS.match(one) and len(one.split()) > 1
            or one in ("tests/run", "deploy/quickstart")]


def is_name(command):
    return re.fullmatch(r"baton [a-z]+(?: [a-z-]+)?", command) is not None


def as_printed(host, command, cwd=None, status=0, **environment):
    """Runs a line as somebody would who copies it: by a shell, in the folder of the configuration. What it printed."""
    path = os.path.join(host.environment["HOME"], "bin")
    os.makedirs(path, exist_ok=True)
    if not os.path.exists(os.path.join(path, "baton")):
        os.symlink(binary(), os.path.join(path, "baton"))
    named = dict(host.environment, PATH=path + ":" + host.environment["PATH"], **environment)
    done = subprocess.run(["/bin/sh", "-c", command], cwd=cwd or host.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=60 * SLOW, env=named)
    assert done.returncode == status, f"{command}\n  status {done.returncode}\n  out: {done.stdout.decode()[-2000:]}\n  err: {done.stderr.decode()[-2000:]}"
    return done.stdout.decode()
