"""The source tree against the checks, and each check against a tree that it must object to."""
import os
import re
import sys

import pytest

from checks import BAD, CHECKS, GOOD, long_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "lib"))

from mutants.table import MUTANTS  # noqa: E402


def plant(tree, folder):
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_tree(name):
    findings = list(CHECKS[name](ROOT))
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("name, number", [(name, n) for name in sorted(BAD) for n in range(len(BAD[name]))])
def test_bad_sample_is_found(name, number, tmp_path):
    plant(BAD[name][number], tmp_path)
    assert list(CHECKS[name](str(tmp_path)))


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_good_sample_passes(name, tmp_path):
    plant(GOOD, tmp_path)
    assert not list(CHECKS[name](str(tmp_path)))


def test_every_check_has_a_bad_sample():
    assert set(BAD) == set(CHECKS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_a_mutant_has_its_place_and_its_test(mutant):
    """Without running it: what it replaces is there once, and so is the test that must see it."""
    with open(os.path.join(ROOT, mutant.file), encoding="utf-8") as file:
        assert file.read().count(mutant.old) == 1, f"{mutant.file} has not once what {mutant.name} replaces"
    where, name = mutant.test.split(" ")[:2]
    kind, program = where.split("/")
    text = ""
    for folder, _, names in os.walk(os.path.join(ROOT, "tests", kind)):
        for found in names:
            if found == program or (kind != "fleet" and found.endswith((".c", ".h"))):
                with open(os.path.join(folder, found), encoding="utf-8") as file:
                    text += file.read()
    assert re.search(rf"\b{name.partition('[')[0]}", text), f"there is no {name} in {where}"


def test_names_of_mutants_are_their_own():
    names = [one.name for one in MUTANTS]
    assert sorted(set(names)) == sorted(names)


def test_long_files_are_named():
    """A note, no failure: tests/run shows it."""
    notes = os.environ.get("BATON_TEST_NOTES")
    found = list(long_files(ROOT))
    if notes and found:
        with open(notes, "a", encoding="utf-8") as file:
            file.write("files past 600 lines, is there a second subject in them?\n  " + "\n  ".join(found) + "\n")
