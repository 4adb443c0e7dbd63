"""What a run is about is said once, by a sender or by a hook, and stays (H-40)."""
import json

import pytest

from runs import ask, hand, sound, taken, until
from test_69_hooks import hooked  # noqa: F401 (a fixture)

FLOW = ("nodes:\n  dev: {role: owner}\n  rev: {role: reviewer}\nhooks:\n  check: {command: [./check], data: [pr_url, note], subject: pr_url}\n"
        "transitions:\n  review: {from: dev, when: [done], to: rev, hook: check}\n  again: {from: rev, when: [changes], to: dev, max_cycles: 5}\n"
        "ends:\n  good: {from: rev, when: [approve], as: completed}\n")


def begin(hooked, *steps):  # noqa: F811
    hooked.begin(*steps, workers=False)
    hooked.workflow(FLOW)
    for service in ("alpha", "beta"):
        hooked.host.worker(service)


def allow(**data):
    return {"answer": {"verdict": "patch", "patch": {"data": data}} if data else {"verdict": "allow"}}


@pytest.mark.core
def test_h40_what_a_hook_has_found_stays(hooked):  # noqa: F811
    """H-40: the hook finds the pull request in the first round; in the second it names none and is told of it, and so is the turn; in the third another is found:
    `subject_changed`, and nothing is sent; after a person's touch it looks once more."""
    begin(hooked, allow(pr_url="https://x/1"), allow(), allow(pr_url="https://x/2"), allow(note="mended"))
    hooked.host.plan(turns={"beta": [{"verdict": "changes"}, {"verdict": "changes"}, {}]}, default=[{}])
    run = hooked.start()
    shown = until(hooked.host, run, "waiting")
    assert (shown["code"], shown["stage"], len(shown["turns"])) == ("subject_changed", "resolve_transition", 5), shown
    assert "https://x/1" in shown["why"] and "https://x/2" in shown["why"], shown
    assert [call["input"]["subject"] for call in hooked.calls()] == [None, "https://x/1", "https://x/1"]
    ask(hooked.host, "runs", "touch", run).ok()
    shown = until(hooked.host, run, "completed")
    assert taken(shown)["review"] == 3 and len(hooked.calls()) == 4
    for number in (1, 3, 5):
        turn = json.loads(hooked.host.calls(turn=shown["turns"][number]["turn_id"])[0]["stdin"])
        assert turn["data"]["pr_url"] == "https://x/1", turn
    sound(hooked.host, shown)


@pytest.mark.core
def test_h40_what_a_sender_has_named_stays(hooked):  # noqa: F811
    """H-40: an owner's result names it; when the next one names another the hook does not even run; a person who names the first lets it go on; a run that is
    reopened begins without one."""
    begin(hooked, allow())
    owner = [{"result": {"data": {"pr_url": f"https://x/{n}"}}} for n in (1, 2)]
    hooked.host.plan(turns={"alpha": owner, "beta": [{"verdict": "changes"}, {}]}, default=[{}])
    run = hooked.start()
    shown = until(hooked.host, run, "waiting")
    assert (shown["code"], len(shown["turns"]), len(hooked.calls())) == ("subject_changed", 3, 1), shown
    done = hand(hooked.host, run, "dev", "rev", "--data", "pr_url=https://x/3")
    assert (done.one["code"], done.status, done.one["result"]["stage"]) == ("subject_changed", 6, "resolve_transition"), done
    hand(hooked.host, run, "dev", "rev", "--data", "pr_url=https://x/1").ok()
    shown = until(hooked.host, run, "completed")
    assert len(hooked.calls()) == 2
    sound(hooked.host, shown)
    hooked.host.plan(turns={"alpha": [{"result": {"data": {"pr_url": "https://x/9"}}}]}, default=[{}])
    ask(hooked.host, "runs", "reopen", run, "--reason", "another one").ok()
    until(hooked.host, run, "completed")
    assert hooked.calls()[-1]["input"]["subject"] is None
