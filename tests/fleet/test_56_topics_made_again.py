"""Somebody deletes topics and makes them again while their workers run: offsets begin at 0 once more."""
import pytest

pytestmark = [pytest.mark.drivers("kafka")]


@pytest.mark.parametrize("kinds", [("handoff",), ("control",), ("handoff", "control"), ("turns",), ("outcomes",)])
def test_topics_made_again_under_their_workers(host, kinds):
    """B12: what is published then is taken once and trimmed no sooner; what ended before stays ended; people are heard."""
    host.plan(default=[{"sleep": 0.05}], tasks={"c-0": [{"hang": True}], "c-1": [{"hang": True}]})
    workers = [host.worker("alpha", "w1"), host.worker("alpha", "w2")]
    host.shared(*workers)
    # More than comes later: whoever writes more at once than was ever written is not noticed.
    before = [host.published("alpha", "reviewer", f"t-{n}") for n in range(48)]
    for turn in before:
        host.ends(turn, "completed")
    host.log.drop(*(host.topic(kind, None if kind == "outcomes" else "alpha") for kind in kinds))
    host.run("topics", "apply").ok()
    after = [host.published("alpha", "reviewer", f"u-{n}") for n in range(8)]
    for turn in after:
        host.ends(turn, "completed", 60)
    # Said to owners who had heard more of the topic before.
    for n in range(2):
        turn = host.published("alpha", "owner", f"c-{n}")
        host.called(1, task=f"c-{n}")
        host.cancel(turn, "--timeout", "0")
        host.ends(turn, "cancelled", 60)
    assert len(host.calls()) == 58 and all(worker.alive for worker in workers), host.all_logs()
    # Nothing of it is behind the one who comes next.
    for worker in workers:
        worker.stop()
    last = [host.published("alpha", "arbiter", f"v-{n}") for n in range(6)]
    host.drain("alpha", "w1")
    for turn in last:
        host.ends(turn, "completed")
    assert len(host.calls()) == 64
