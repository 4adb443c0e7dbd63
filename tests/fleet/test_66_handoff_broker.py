"""A broker that is away while people hand on: refused with a code, nothing counted, nothing twice, and the next one is taken (H-12, H-24)."""
import pytest

from host import ready, wait_until
from ownbroker import brokers_of_file, fresh, mine  # noqa: F401 (fixtures)
from runs import hand, show, sound, start, taken, until, with_workflows
from test_66_handoff_counts import LOOP
from test_66_handoff_faults import told, verbs

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]


@pytest.mark.seconds(300)
def test_h12_h24_the_broker_is_away(fresh, mine):  # noqa: F811
    """H-12, H-24: at a cap of one, three handoffs while the broker is down fail with one object and a code, and so do verbs that ask or read; once it is there again the
    fourth is taken, the edge says one, and the coordinator is the same process."""
    host = with_workflows(fresh, {"w": LOOP % 1})
    host.plan(default=[{"verdict": "blocked"}])
    host.worker("alpha"), host.worker("beta")
    run = start(host, workflow="w")
    before = until(host, run, "waiting")
    mine.stop()
    for n in range(3):
        told(hand(host, run, "dev", "rev", summary=f"go {n}", seconds=5), "service_unavailable", "timed_out", "publish_failed")
    for words in verbs(run)[1:6:4]:  # one that asks, one that reads
        told(host.run(*words, "--json", environment={"BATON_MODE": "attended"}), "service_unavailable", "timed_out", "publish_failed")
    mine.again()
    ready(host.worker("coordinator", "c2"))
    wait_until(lambda: host.run("runs", "show", run, "--json").status == 0, 60, "the run log to be read")
    assert show(host, run) == before and taken(before) == {"start": 1}
    done = hand(host, run, "dev", "rev", summary="go 3", seconds=60).ok()
    assert done.one["code"] is None and done.one["result"]["status"] == "queued", done
    shown = wait_until(lambda: (lambda one: one if one["state"] == "waiting" and len(one["turns"]) == 2 and one["turns"][1]["state"] == "completed" else None)
                       (show(host, run)), 60, lambda: f"the review: {show(host, run)}\n{host.all_logs()}")
    assert taken(shown) == {"start": 1, "go": 1} and len(host.calls(service="beta")) == 1
    assert hand(host, run, "dev", "rev", summary="go 4", seconds=30).one["code"] == "cycle_limit"
    assert host.workers[0].alive
    sound(host, shown)
