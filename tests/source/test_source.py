"""The source tree against the checks, and each check against a tree that it must object to."""
import os

import pytest

from checks import BAD, CHECKS, GOOD, long_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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


def test_long_files_are_named():
    """A note, no failure: tests/run shows it."""
    notes = os.environ.get("BATON_TEST_NOTES")
    found = list(long_files(ROOT))
    if notes and found:
        with open(notes, "a", encoding="utf-8") as file:
            file.write("files past 600 lines, is there a second subject in them?\n  " + "\n  ".join(found) + "\n")
