"""What the documents of the core name is there: functions as `name()`, tests as `test_name`, files of a folder's map."""
import fnmatch
import glob
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINE = os.path.join("common", "engine", "ENGINE.md")


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def sources(folders, endings):
    for folder in folders:
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(endings):
                    yield read(where, name)


def named_functions(text):
    return set(re.findall(r"`(\w+)\(\)`", text))


def named_tests(text):
    return set(re.findall(r"`(test_\w+)`", text))


def defined_functions():
    """Names at the beginning of a definition or declaration: no indentation, a type before them."""
    found = set()
    for text in sources(("common", "topics", "producer", "worker"), (".c", ".h")):
        found |= set(re.findall(r"^[a-z][\w *]*?\b(\w+)\(", text, re.M))
    return found


def defined_tests():
    found = set()
    for text in sources(("tests",), (".c", ".py")):
        found |= set(re.findall(r"^(?:static void|def) (test_\w+)\(", text, re.M))
    return found


def test_functions_that_engine_md_names_exist():
    named = named_functions(read(ENGINE))
    assert len(named) > 40
    assert not named - defined_functions()


def test_tests_that_engine_md_names_exist():
    named = named_tests(read(ENGINE))
    assert len(named) > 50
    assert not named - defined_tests()


def test_every_rule_and_every_row_has_a_function_and_a_test():
    text = read(ENGINE)
    rules = re.findall(r"^\| (\d+) \|(.*)$", text, re.M)
    assert [int(number) for number, _ in rules] == list(range(1, 31))
    rows = re.findall(r"^\| (?:before|after|while|with) .*$", text, re.M)
    assert len(rows) == 5
    for row in [rest for _, rest in rules] + rows:
        assert named_functions(row) and named_tests(row), row


def test_a_name_that_is_not_there_would_be_found():
    assert named_functions("kept by `no_such_function()`") - defined_functions()
    assert named_tests("shown by `test_no_such_test`") - defined_tests()


PARTS = ("common", "topics", "producer", "worker", "deploy")
MAPS = sorted(os.path.relpath(where, ROOT) for part in PARTS for where, _, names in os.walk(os.path.join(ROOT, part))
              if "README.md" in names)
FEW = 3 # so many files may be named by their folder alone


def of_map(folder, name):
    """Is it there, as the map of that folder names it: a path, without its ending, or with a `*`?"""
    for base in (os.path.join(ROOT, folder), ROOT):
        if any(glob.glob(os.path.join(base, name + ending)) for ending in ("", ".c", ".h", ".*")):
            return True
    return any(glob.glob(os.path.join(where, name + ending)) for ending in ("", ".c")
               for where, _, _ in os.walk(os.path.join(ROOT, folder)))


def without_map(folder):
    """(path, how many beside it) of each .c file of a folder and those below that have no map of their own."""
    for where, below, names in os.walk(os.path.join(ROOT, folder)):
        below[:] = [one for one in below if not os.path.exists(os.path.join(where, one, "README.md"))]
        mine = sorted(name for name in names if name.endswith(".c"))
        for name in mine:
            yield os.path.relpath(os.path.join(where, name), os.path.join(ROOT, folder)), len(mine)


def not_in_map(folder, text):
    named = {one.rstrip("/") for one in re.findall(r"`([\w./*-]+)`", text)}
    for path, beside in without_map(folder):
        where, name = os.path.split(path)
        names = {path, name, path[:-2], name[:-2]}
        if where and beside <= FEW:
            names.add(where)
        if not names & named and not any(fnmatch.fnmatch(path, one) for one in named if "*" in one):
            yield path


@pytest.mark.parametrize("folder", MAPS)
def test_a_map_names_what_is_there_and_all_of_it(folder):
    text = read(folder, "README.md")
    assert len(text.splitlines()) <= 60  # one screen
    named = set(re.findall(r"`([\w./-]+\.(?:c|h|md))`", text))
    for table in re.findall(r"^\| (?:file|folder) \|.*\n\|---.*\n((?:\|.*\n)*)", text, re.M):
        for cell in re.findall(r"^\| (`.*?) \|", table, re.M):
            named |= set(re.findall(r"`([\w./*-]+)`", cell))
    lacking = sorted(name for name in named if not of_map(folder, name))
    assert not lacking, f"{folder}/README.md names what is not there"
    assert not list(not_in_map(folder, text)), f"{folder}/README.md does not name it"


def test_a_file_that_is_in_no_map_would_be_found():
    text = read("worker", "README.md")
    assert list(not_in_map("worker", text.replace("`settle.c`", ""))) == ["settle.c"]
    assert not of_map("worker", "settled.c") and not of_map("worker", "settled")


def commands_of(text):
    """The lines of a document's code blocks that call the program, without their comments."""
    return [line.split("#")[0].strip() for line in re.findall(r"^    (baton .*)$", text, re.M)]


RUNBOOK = os.path.join("deploy", "RUNBOOK.md")


def test_runbook_entries_name_tests_that_exist():
    text = read(RUNBOOK)
    entries = text.split("\n## ")[1:]
    assert len(entries) > 12
    for entry in entries:
        assert named_tests(entry), entry.splitlines()[0]
    assert not named_tests(text) - defined_tests()


@pytest.mark.parametrize("command", commands_of(read(RUNBOOK)))
def test_runbook_commands_are_the_programs(command):
    """Every verb and every option that is printed there is one that --help knows."""
    words = command.split(" >")[0].split()[1:]
    binary = os.environ.get("BATON_BIN") or os.path.join(ROOT, "build", "dev", "deploy", "baton")
    verbs = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
    done = subprocess.run([binary, *verbs, "--help"], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    known = set(re.findall(r"--[a-z-]+", done.stdout.decode()))
    assert {word for word in words if word.startswith("--")} <= known, command
