"""While its provider is down a worker's turns wait instead of being parked one by one (A28, DESIGN section 6)."""
import time

import pytest

from host import ROLES, wait_until

pytestmark = pytest.mark.heavy  # times in parts of a second

DOWN = [{"class": "unavailable", "message": "503"}]
QUICK = {"after": 5, "for": "1s", "probe": "300ms"}
RETRY = {"first": "50ms", "factor": 1, "max": "100ms", "jitter": 0, "each_service": 3, "max_wait": "15m"}


def ready(worker):
    wait_until(lambda: worker.events("worker.ready") or not worker.alive, what="a worker to be ready")
    return worker


def moves(worker):
    return [(one["from"], one["to"]) for one in worker.events("circuit.moved")]


def circuits(host, service="alpha"):
    return next(one for one in host.run("services", "--json").ok().objects if one["service"] == service)["circuits"]


def opened(worker, what=("closed", "open"), seconds=20):
    wait_until(lambda: what in moves(worker), seconds, lambda: f"the circuit to move {what}: {moves(worker)}\n{worker.log[-3000:]}")
    return worker


def shown(host, *states):
    """Waits until `services` says so: the note is in the log a moment after the state has changed."""
    return wait_until(lambda: next((one for one in circuits(host) if one["state"] in states), None), what=f"services to show {states}")


def spans(host, since):
    """(start, end) of every call that began after that."""
    ends = {(one["turn"], one["attempt"]): one["t"] for one in host.lines() if one["event"] == "end"}
    return sorted((one["t"], ends.get((one["turn"], one["attempt"]), float("inf"))) for one in host.calls() if one["t"] > since)


def notes(host, service="alpha"):
    """The newest note of each partition, those that are gone left out."""
    newest = {}
    for record in host.log.records(host.topic("turns", service), every=True):
        if record.key == b"~circuit":
            newest[record.partition] = record.value
    return {partition: value for partition, value in newest.items() if value}


@pytest.mark.core
def test_a28_nothing_is_dead_lettered_while_the_provider_is_down(fresh):
    """A28: opened after five failures in a row, probed by one turn at a time, closed by the first success; no dead letter."""
    host = fresh.configure({"alpha": None}, retry=RETRY, circuit=QUICK, budget={"failures": 6, "losses": 3, "attempts": 8})
    host.plan(default=DOWN)
    worker = ready(host.worker("alpha", "w1"))
    turns = {host.published("alpha", ROLES[n % 3], f"t-{n}"): ROLES[n % 3] for n in range(6)}
    opened(worker)
    one = shown(host, "open", "half_open")
    assert one["worker"] == "w1" and one["class"] == "unavailable" and one["since"].endswith("Z") and one["partitions"]
    assert "circuit of w1 " in host.run("services").ok().out and "(unavailable)" in host.run("services").ok().out
    opened(worker, ("open", "half_open"))
    since = time.time()
    before = len(host.calls())
    # What comes now is tried as a probe at most; as many probes as would use up every budget of every turn.
    turns[host.published("alpha", "owner", "t-late")] = "owner"
    host.called(before + 24, 60)
    assert not host.letters() and not host.log.records(host.topic("dlq")) and moves(worker)[-1] == ("open", "half_open")
    tries = spans(host, since)
    assert all(after >= ended for (_, ended), (after, _) in zip(tries, tries[1:])), f"one at a time: {tries}"
    assert tries[-1][0] - tries[0][0] >= 0.3 * (len(tries) - 1) - 1, f"one each 300 ms: {tries}"
    assert len({call["turn"] for call in host.calls() if call["t"] > since}) == len(turns), "each has its turn as the probe"
    waiting = wait_until(lambda: next((one for one in map(host.show, turns) if one["state"] == "queued"), None), what="a turn that waits")
    if waiting["waits_for"] is not None:
        assert waiting["waits_for"] == "circuit"
    assert any("waits until the provider is back" in host.run("turns", "show", turn).ok().out for turn in turns)

    host.plan(default=[{}])
    for turn, role in turns.items():
        ended = host.ends(turn, "completed")
        assert (ended["role"], ended["service"]) == (role, "alpha")
        assert ended["failures"] <= 6 and {one["class"] for one in ended["attempts"]} <= {"unavailable", None}
        counted = [one for one in ended["attempts"] if one["state"] == "failed" and not one.get("probe")]
        assert ended["failures"] == len(counted), "a probe counts in no budget"
    assert any(len(host.show(turn)["attempts"]) > 3 for turn in turns)
    assert moves(worker) == [("closed", "open"), ("open", "half_open"), ("half_open", "closed")]
    wait_until(lambda: not circuits(host) and not notes(host), what="the notes to be gone")
    assert not host.letters()
    fresh_one = host.published("alpha", "arbiter", "t-after")
    assert host.ends(fresh_one, "completed")["attempts"][0].get("probe") is None


def test_a28_a_lone_turn_outlives_every_budget(fresh):
    """DESIGN section 4: probes count in no budget, not in the attempts' either, or an hour's outage would park the probed turn."""
    host = fresh.configure({"alpha": None}, retry=RETRY, circuit={"after": 3, "for": "100ms", "probe": "50ms"},
                           budget={"failures": 3, "losses": 3, "attempts": 4})
    host.plan(default=DOWN)
    worker = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "reviewer", "t-1")
    host.called(15, 40, turn=turn)
    assert host.show(turn)["state"] in ("queued", "running") and not host.letters()
    host.plan(default=[{}])
    ended = host.ends(turn, "completed")
    assert (ended["role"], ended["failures"]) == ("reviewer", 3) and ended["attempt"] > 15
    assert moves(worker)[-1] == ("half_open", "closed")


def test_one_bad_turn_does_not_hold_up_the_others(fresh):
    """A turn that its provider refuses each time opens it alone; the next one is the probe, and then it is parked as its list says."""
    host = fresh.configure({"alpha": None}, retry=RETRY, circuit={"after": 3, "for": "300ms", "probe": "2s"})
    host.plan(default=[{}], tasks={"t-bad": DOWN})
    worker = ready(host.worker("alpha", "w1"))
    bad = host.published("alpha", "reviewer", "t-bad")
    opened(worker, ("open", "half_open"))
    good = [host.published("alpha", "owner", f"t-{n}") for n in range(3)]
    for turn in good:
        assert host.ends(turn, "completed")["attempt"] == 1
    shown_bad = host.ends(bad, "parked")
    assert shown_bad["code"] == "executor_failed" and shown_bad["role"] == "reviewer" and len(host.letters()) == 1
    assert moves(worker)[-1] == ("half_open", "closed")


def test_while_it_is_open_a_fallback_takes_what_it_may(fresh):
    """With a fallback in the chain of the role nothing waits: passed on without a try; a role without one waits, and is not held up."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}}, retry=RETRY,
                           circuit={"after": 5, "for": "60s", "probe": "60s"})
    host.plan(services={"alpha": DOWN}, default=[{}])
    worker = ready(host.worker("alpha", "w1"))
    owners = [host.published("alpha", "owner", f"t-{n}") for n in range(5)]
    opened(worker)
    tried = len(host.calls(service="alpha"))
    ready(host.worker("beta", "w2"))
    owners.append(host.published("alpha", "owner", "t-waits"))
    reviewer = [host.published("alpha", "reviewer", f"r-{n}") for n in range(4)]
    for turn in reviewer:
        ended = host.ends(turn, "completed")
        assert [(one["service"], one["state"], one["class"]) for one in ended["attempts"]] == \
            [("alpha", "delegated", "unavailable"), ("beta", "completed", None)]
        assert (ended["role"], ended["failures"]) == ("reviewer", 0) and "circuit" in ended["attempts"][0]["note"]
        assert [call["service"] for call in host.calls(turn=turn)] == ["beta"]
    waits = wait_until(lambda: host.state(owners[-1]) == "queued" and host.show(owners[-1]), what="the last owner's turn to be taken in")
    assert waits["waits_for"] == "circuit" and waits["attempts"][-1]["started_at"] is None
    assert not host.letters() and len(host.calls(service="alpha")) <= tried + 4, "what ran when it opened, nothing else"
    assert {host.state(turn) for turn in owners} == {"queued"}
    # The operator need not wait for it: a new boot begins with a probe, and its success closes it.
    host.plan(default=[{}])
    worker.stop()
    again = host.worker("alpha", "w1")
    for turn in owners:
        assert host.ends(turn, "completed")["role"] == "owner"
    assert moves(again) == [("closed", "half_open"), ("half_open", "closed")]


@pytest.mark.parametrize("how", ["killed", "elsewhere"])
def test_a_new_boot_goes_on_with_probes(fresh, how):
    """The note in the turn log: a worker that is killed, or another on a new disk, probes once instead of failing five times again."""
    host = fresh.configure({"alpha": None}, retry=RETRY, circuit={"after": 5, "for": "300ms", "probe": "60s"})
    host.plan(default=DOWN)
    worker = ready(host.worker("alpha", "w1"))
    turns = {host.published("alpha", ROLES[n % 3], f"t-{n}"): ROLES[n % 3] for n in range(6)}
    opened(worker, ("open", "half_open"))
    shown(host, "half_open")
    wait_until(lambda: all(host.state(turn) in ("queued", None) for turn in turns), what="what ran to be settled")
    worker.kill()
    before = len(host.calls())
    again = ready(host.worker("alpha", "w1" if how == "killed" else "w2"))
    host.called(before + 1, 40)
    opened(again, ("closed", "half_open"))
    wait_until(lambda: [one["worker"] for one in circuits(host)] == ["w1" if how == "killed" else "w2"], 30,
               lambda: f"its own notes: {circuits(host)}\n{again.log[-3000:]}")
    time.sleep(1)
    assert len(host.calls()) == before + 1 and not host.letters(), "one probe, then a minute's wait"
    host.plan(default=[{}])
    again.stop()
    last = host.worker("alpha", "w1")
    for turn, role in turns.items():
        assert host.ends(turn, "completed")["role"] == role
    assert moves(last) == [("closed", "half_open"), ("half_open", "closed")] and not host.letters()


def test_a28_no_more_dead_letters_once_it_is_open(fresh):
    """Where the list says park at once (auth): those before it opened have their letters, nobody after; a replay goes on."""
    host = fresh.configure({"alpha": None}, retry=RETRY, circuit={"after": 3, "for": "300ms", "probe": "100ms"})
    host.plan(default=[{"class": "auth", "message": "401"}])
    turns = [host.published("alpha", ROLES[n % 3], f"t-{n}") for n in range(8)]
    worker = ready(host.worker("alpha", "w1"))
    opened(worker, ("open", "half_open"))
    host.called(len(host.calls()) + 8)
    assert len(host.letters()) == 2, "the third failure in a row opened it"
    host.plan(default=[{}])
    parked = {one["turn_id"] for one in host.letters()}
    for turn in turns:
        if turn not in parked:
            host.ends(turn, "completed")
    assert len(host.letters()) == 2
    for turn in parked:
        assert host.replay(turn).ok().one["status"] in ("replayed", "queued")
        host.ends(turn, "completed")


def test_what_waits_goes_on_when_it_closes(fresh):
    """Also in a service with fallbacks, where each turn that waits is put off until the next probe: a success ends that."""
    host = fresh.configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}},
                           retry=RETRY, circuit={"after": 5, "for": "4s", "probe": "60s"})
    host.plan(default=DOWN)
    worker = ready(host.worker("alpha", "w1"))
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(5)]
    opened(worker)
    wait_until(lambda: {host.state(turn) for turn in turns} == {"queued"}, what="what ran to be settled")
    tried = len(host.calls())
    host.plan(default=[{"until": host.fake + "/go"}])
    turns.append(host.published("alpha", "owner", "t-late"))
    wait_until(lambda: host.state(turns[-1]) == "queued", what="the last turn to be taken in")
    probe = host.called(tried + 1)[-1]
    time.sleep(2)  # the others are looked at again meanwhile, and put off for a minute
    assert len(host.calls()) == tried + 1 and host.show(probe["turn"])["attempts"][-1]["probe"] is True
    host.plan(default=[{}])
    open(host.fake + "/go", "w", encoding="ascii").close()
    for turn in turns:
        host.ends(turn, "completed")
    assert moves(worker)[-1] == ("half_open", "closed") and not host.letters()
