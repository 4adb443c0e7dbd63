"""Killed at every named point, at an early and at later passings; the same worker goes on, or another one with nothing
in its hands. Then each turn has one continuation and the end that it shall have (RULES S5, ENGINE.md)."""
import pytest

from crash import Crash, configured
from faultpoints import fault_points

# Points that are passed at each transaction: the first ones are of the start, the third has turns in it.
EACH_TRANSACTION = ("store.before_commit", "store.commit", "store.after_commit", "log.before_commit", "log.after_commit")
# From this passing on, partitions have to move for it.
MOVES = {"revoke": 1, "restore.begin": 2, "restore.end": 2}


def cases():
    """Every point once, restarted; the long run has the others."""
    for point in fault_points():
        short = 3 if point in EACH_TRANSACTION else 1
        for passing in range(1, 7 if point in EACH_TRANSACTION else 4):
            for heir in ("w1", "w9"):
                marks = [] if (passing, heir) == (short, "w1") else [pytest.mark.long]
                yield pytest.param(point, passing, heir, marks=marks, id=f"{point}-{passing}-{heir}")


@pytest.mark.heavy
@pytest.mark.parametrize("point, passing, heir", cases())
def test_i1_to_i12_killed_at_every_fault_point(fresh, point, passing, heir):
    """I1 to I12: the worker w1 dies there; w1 is started again, or w9 takes over with an empty store."""
    crash = Crash(configured(fresh))
    crash.publish()
    crash.die(point, passing, passing >= MOVES.get(point, passing + 1))
    crash.go_on(heir)
    crash.check()
