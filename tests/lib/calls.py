"""Reads what executors noted: FAKE_DIR/calls, one JSON object a line (fake_executor.py, chaos/executor.py).

A note is one write, "\\n{…}\\n". The kernel lets a kill end a write between two pages, so a call whose worker is
killed may leave the beginning of a note, which ends where the next one begins. It had done nothing yet, and counts
as one that never began.
"""
import json
import os


def whole(data):
    """The objects of the whole notes in these bytes."""
    found = []
    for line in data.split(b"\n"):
        try:
            found += [json.loads(line)] if line else []
        except ValueError:
            pass  # the beginning of a note
    return found


def noted(path):
    """All that was noted so far; nothing, if nothing was."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        data = file.read()
    return whole(data[:data.rfind(b"\n") + 1])
