"""Killed at every named point, at an early and at later passings; the same worker goes on, or another one with nothing
in its hands. Then each turn has one continuation and the end that it shall have (RULES S5, ENGINE.md)."""
import pytest

from crash import SERVICES, Crash, configured
from faultpoints import fault_points
from outside import check_topics

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


def test_a_strangers_tools_see_what_is_wrong(fresh):
    """The counter-test of check_topics(): a good story passes; an end that is told twice, a handoff that stands twice and
    a turn that is nowhere do not."""
    host = fresh.configure({name: None for name in SERVICES})
    turn = host.published("alpha", "reviewer", "t-1")
    host.drain()
    roles = {turn: "reviewer"}
    found = check_topics(host, SERVICES, roles)
    assert [one.key for one in found[host.topic("handoff")]] == [turn] and len(found[host.topic("outcomes", None)]) == 1
    with pytest.raises(AssertionError, match="I3"):
        check_topics(host, SERVICES, {**roles, "0" * 32: "owner"})
    with pytest.raises(AssertionError, match="I1"):
        check_topics(host, SERVICES, {turn: "owner"})
    host.tampered = True
    for kind, service, said in (("handoff", "alpha", "handed over twice"), ("outcomes", None, "told twice")):
        record, = host.log.records(host.topic(kind, service))
        host.log.append(record, partition=record.partition)
        with pytest.raises(AssertionError, match=said):
            check_topics(host, SERVICES, roles)
