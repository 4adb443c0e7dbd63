#!/usr/bin/python3
"""Turns what pytest wrote (JUnit XML) into counts and failures for tests/run.

A sanitizer's finding in any process counts as a failure, also when no test noticed it. With --again, tests that
may be tried once more (tests/fleet/conftest.py) are not judged yet but named in that file, and what they said
stands in the kind's notes, unless there are so many that it is no chance: tests/run tries them once more, with
nothing beside them.
"""
import argparse
import os
import sys
import xml.etree.ElementTree as ElementTree


CHANCE = 6
SAID = 1500  # of each failure that is tried once more, so much of its beginning and of its end


def cases(path):
    """Of each test: its name, its failures, why it was left out, and what it is called if it may be tried once more."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = [child for child in case if child.tag in ("failure", "error")]
        more = [one.get("value") for one in case.iter("property") if one.get("name") == "once_more"]
        left = [child for child in case if child.tag == "skipped"]
        yield name, bad, left, more[0] if len(more) >= len(bad) > 0 else None


def ends_of(text):
    return text if len(text) <= 2 * SAID else f"{text[:SAID]}\n[…]\n{text[-SAID:]}"


def findings(folder):
    for where, _, names in os.walk(folder):
        for name in names:
            if name.startswith("sanitizer."):
                path = os.path.join(where, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    yield path, file.read()


def main():
    parser = argparse.ArgumentParser()
    for option in ("xml", "log", "findings", "kind", "results"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--again")
    args = parser.parse_args()
    passed = failed = skipped = 0
    failures, skips, again, notes = [], [], [], []
    try:
        found = list(cases(args.xml))
        if args.again and 0 < sum(more is not None for _, _, _, more in found) <= CHANCE:
            again = [more for _, _, _, more in found if more]
            with open(args.again, "w", encoding="utf-8") as file:
                file.write("\n".join(again) + "\n")
        for name, bad, left, more in found:
            if more and more in again:
                notes.append(f"---- {name} failed among the others, so it was tried once more with nothing beside it; it had said:")
                notes += [ends_of(part.text or part.get("message") or "") for part in bad]
                continue
            if bad:
                failed += 1
                failures.append(f"---- {name}")
                failures += [part.text or part.get("message") or "" for part in bad]
            elif left:
                skipped += 1
                skips.append(f"{name}: {left[0].get('message')}")
            else:
                passed += 1
    except (OSError, ElementTree.ParseError) as error:
        failed += 1
        with open(args.log, encoding="utf-8", errors="replace") as log:
            failures.append(f"pytest left no result ({error}); its output:\n{log.read()[-8000:]}")
    for path, text in findings(args.findings):
        failed += 1
        failures.append(f"---- a sanitizer found something ({os.path.basename(path)}):\n{text[:6000]}")
    base = os.path.join(args.results, args.kind)
    for ending, lines in (("failures", failures), ("skips", skips), ("notes", notes)):
        if lines:
            with open(f"{base}.{ending}", "a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
    with open(base + ".counts", "w", encoding="ascii") as counts:
        counts.write(f"{passed} {failed} {skipped}\n")


if __name__ == "__main__":
    sys.exit(main())
