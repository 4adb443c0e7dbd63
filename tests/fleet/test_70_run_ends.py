"""An end that is reached while other turns of its run are open (H-23, S4)."""
import pytest

from runs import show, sound, taken, until
from test_68_runs_broken import fork, stands, start, wait_until, workers  # noqa: F401 (a fixture)


@pytest.mark.core
@pytest.mark.parametrize("how", ["running", "parked"])
def test_s4_the_last_open_turn_is_cancelled(fork, how):  # noqa: F811
    """S4: one reviewer approves, the other one's turn is cancelled: the end that was reached counts, and nobody is asked."""
    fork.plan(services={"gamma": [{"until": fork.fake + "/go"} if how == "running" else {"class": "bad_request"}], "beta": [{"summary": "as it should be"}]}, default=[{}])
    workers(fork)
    run = start(fork, workflow="fork")
    wait_until(lambda: sorted((one["slot"], one["state"]) for one in show(fork, run)["turns"])[1:] == [("one", "completed"), ("two", how)], 20,
               lambda: f"an approval and a turn that is {how}: {show(fork, run)}")
    shown = stands(fork, run, state="active" if how == "running" else "waiting")
    assert "good is reached" in shown["why"] if how == "running" else "is parked" in shown["why"], shown
    fork.cancel(next(one["turn_id"] for one in shown["turns"] if one["slot"] == "two")).ok()
    shown = until(fork, run, "completed")
    assert shown["why"] == "good: as it should be" and taken(shown) == {"start": 1, "review": 1}, shown
    sound(fork, shown)


def test_s4_what_is_taken_after_it_counts(fork):  # noqa: F811
    """S4: an end that was reached counts no more once the other turn has led on; what is cancelled then asks a person."""
    with open(f"{fork.dir}/fork.yaml", "a", encoding="utf-8") as file:
        file.write("  never: {from: two, when: [escalate], as: failed}\n")
    with open(f"{fork.dir}/fork.yaml", encoding="utf-8") as file:
        text = file.read()
    with open(f"{fork.dir}/fork.yaml", "w", encoding="utf-8") as file:
        file.write(text.replace("ends:\n", "  again: {from: two, when: [changes], to: dev, max_cycles: 2}\nends:\n"))
    fork.plan(turns={"alpha": [{}, {"until": fork.fake + "/never"}], "gamma": [{"verdict": "changes", "until": fork.fake + "/go"}]}, default=[{}])
    workers(fork)
    run = start(fork, workflow="fork")
    stands(fork, run, why="good is reached, and other turns are still open")
    open(fork.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: [(one["by"], one["state"]) for one in show(fork, run)["turns"]][3:] == [("again", "running")], 20, "the owner's second turn")
    fork.cancel(show(fork, run)["turns"][3]["turn_id"]).ok()
    assert "was cancelled" in until(fork, run, "waiting")["why"]
