"""The points at which a test build can be told to kill, stop or fail itself (BATON_FAULT).

Called by crash.py, storm.py, chaos/plan.py and test_50_stopped_and_killed.py.
"""
import os
import re

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common", "base", "tbl", "fault_points.h")


def fault_points():
    """Their names, as the table has them."""
    with open(TABLE, encoding="utf-8") as file:
        return re.findall(r'FAULT\(\w+,\s*"([\w.]+)"', file.read())
