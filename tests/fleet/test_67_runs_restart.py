"""What is alive is left alone, and nothing else is taken for it, whoever dies along a run (H-21, H-27, H-56)."""
import pytest

from host import ready, wait_until
from runs import CHAINS, ask, show, sound, start, until


@pytest.mark.core
def test_h21_only_a_live_lease_is_left_alone(fresh):
    """H-21: one of two workers is killed: what ran there begins anew, what runs at the other goes on; what was parked, cancelled, completed or waits for its
    time is neither taken for alive nor begun once more."""
    host = fresh.configure({"alpha": fresh.service(parallel=16)})
    go = host.fake + "/go"
    host.plan(tasks={"parked": [{"class": "bad_request"}], "completed": [{}], "later": [{"class": "unavailable", "result": {"retry_after_ms": 600000}}]},
              default=[{"until": go}])
    pair = [ready(host.worker("alpha", one)) for one in ("w1", "w2")]
    host.shared(*pair)
    ended = {name: host.published("alpha", "reviewer", name) for name in ("parked", "completed", "later")}
    host.ends(ended["parked"], "parked"), host.ends(ended["completed"], "completed")
    wait_until(lambda: host.state(ended["later"]) == "queued" and host.show(ended["later"])["attempts"][0]["state"] == "failed", what="the retry to be planned")
    ended["cancelled"] = host.published("alpha", "reviewer", "cancelled")
    host.called(1, task="cancelled")
    host.cancel(ended["cancelled"]).ok()
    host.ends(ended["cancelled"], "cancelled")
    turns = [host.published("alpha", "reviewer", f"t-{n}") for n in range(8)]
    at = {}
    for turn in turns:
        host.called(1, turn=turn)
        at[turn] = wait_until(lambda: host.show(turn)["attempts"][-1].get("worker"), what="the claim")  # pylint: disable=cell-var-from-loop
    assert set(at.values()) == {"w1", "w2"}, at
    pair[0].kill()
    for turn in turns:
        if at[turn] == "w1":
            host.called(2, 40, turn=turn)
    open(go, "w", encoding="ascii").close()
    for turn in turns:
        shown = host.ends(turn, "completed", 40)
        tried = [(one["no"], one["state"], one["class"]) for one in shown["attempts"]]
        assert tried == ([(1, "failed", "lost"), (2, "completed", None)] if at[turn] == "w1" else [(1, "completed", None)]), (at[turn], shown)
    assert [len(host.calls(turn=ended[name])) for name in ("parked", "completed", "cancelled", "later")] == [1, 1, 1, 1]
    assert [host.state(ended[name]) for name in ("parked", "completed", "cancelled", "later")] == ["parked", "completed", "cancelled", "queued"]


@pytest.mark.core
def test_h56_a_mass_stop_cancels_no_run(fresh):
    """H-56, I11: every process of the fleet is told to stop while runs go on: no run and no turn is cancelled; started again, all come to their end. One that was
    cancelled by mistake is reopened."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    go = host.fake + "/go"
    host.plan(services={"beta": [{"until": go}]}, default=[{}])
    names = ("coordinator", "alpha", "beta")
    for name in names:
        ready(host.worker(name, f"{name[0]}1", *([] if name == "coordinator" else ["--set", "services.beta.grace=1s"])))
    started = [start(host, f"t-{n}") for n in range(4)]
    for run in started:
        wait_until(lambda: len(show(host, run)["turns"]) == 2, 30, lambda: f"{show(host, run)}")  # pylint: disable=cell-var-from-loop
    host.called(4, service="beta")
    for one in host.workers:
        one.process.terminate()
    for one in host.workers:
        assert one.wait(30) == 0, one.log[-2000:]
    for run in started:
        shown = show(host, run)
        assert shown["state"] == "active" and {one["state"] for one in shown["turns"]} <= {"completed", "queued", "running"}, shown
        assert host.state(shown["turns"][1]["turn_id"]) in ("queued", "running")
    open(go, "w", encoding="ascii").close()
    for name in names:
        host.worker(name, f"{name[0]}1")
    for run in started:
        sound(host, until(host, run, "completed", 60))
    host.plan(default=[{"verdict": "blocked"}])
    run = start(host, "t-x")
    until(host, run, "waiting")
    ask(host, "runs", "cancel", run, "--reason", "the wrong one").ok()
    host.plan(default=[{}])
    ask(host, "runs", "reopen", run, "--reason", "by mistake").ok()
    sound(host, until(host, run, "completed"))
