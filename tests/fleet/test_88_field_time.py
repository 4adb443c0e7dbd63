"""Delays, expiries and deadlines over the changes of daylight saving time (FIELD J01): everything is UTC milliseconds."""
import datetime
import time

import pytest

from host import SLOW, ready, wait_until
from wallclock import Clock

# In New York clocks go from 02:00 to 01:00, and from 02:00 to 03:00, at these moments.
CHANGES = {"autumn": "2026-11-01T06:00:00+00:00", "spring": "2027-03-14T07:00:00+00:00"}


def utc(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def seconds(text):
    assert text.endswith("Z"), text
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.heavy
@pytest.mark.drivers("local")
@pytest.mark.parametrize("season", sorted(CHANGES))
def test_j01_nothing_is_skipped_or_doubled_over_the_change(fresh, tmp_path, season):
    """J01: not_before before and after, a retry's wait across, deadlines in the hour that comes twice or never: each runs once, in its time."""
    change = datetime.datetime.fromisoformat(CHANGES[season]).timestamp()
    host = fresh.configure({"alpha": None})
    lead = 4 * SLOW
    offset = int(change - lead - time.time())  # the host's clock stands so long before the change
    clock = Clock(str(tmp_path), "all", offset)
    host.environment.update(clock.environment, TZ="America/New_York")
    host.plan(tasks={"t-retry": [{"class": "rate_limited", "retry_after_ms": int(lead * 1000) + 500}, {}]}, default=[{}])
    worker = ready(host.worker("alpha", "w1"))
    start = {"t-before": change - 1, "t-after": change + 1}
    turns = {task: host.published("alpha", "owner", task, "--not-before", utc(at)) for task, at in start.items()}
    turns["t-retry"] = host.published("alpha", "owner", "t-retry")
    turns["t-repeated"] = host.published("alpha", "owner", "t-repeated", "--deadline", utc(change + 1800), "--expires", "1h")
    turns["t-late"] = host.published("alpha", "owner", "t-late", "--deadline", utc(change - 3600))
    for task in ("t-before", "t-after", "t-retry", "t-repeated"):
        host.ends(turns[task], "completed", 30)
    assert host.ends(turns["t-late"], "parked")["code"] == "deadline_exceeded"
    after = host.published("alpha", "owner", "t-2", "--not-before", utc(time.time() + offset + 0.5))
    host.ends(after, "completed")
    for task, at in start.items():
        one, = host.calls(task=task)  # executors see the right time
        assert -0.05 <= one["t"] + offset - at < 8 * SLOW, (task, one["t"] + offset - at)
    first, second = host.calls(task="t-retry")
    assert second["t"] - first["t"] >= lead
    assert [len(host.calls(task=task)) for task in ("t-repeated", "t-late", "t-2")] == [1, 0, 1]
    for turn in turns.values():
        shown = host.show(turn)
        assert abs(seconds(shown["created_at"]) - change) < 120 * SLOW and abs(seconds(shown["ended_at"] or shown["updated_at"]) - change) < 120 * SLOW, shown
    listed = wait_until(lambda: host.turns(), what="a list")
    assert all(abs(seconds(one["updated_at"]) - change) < 120 * SLOW for one in listed) and worker.alive
