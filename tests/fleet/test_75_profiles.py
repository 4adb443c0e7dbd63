"""Credential profiles that were refused: kept so over restarts, shown, and cleared by a deed."""
import os
import re
import shutil

import pytest

import agents
from host import ROLES, ready, wait_until


def pair(fresh, names=("team", "backup"), **settings):
    """claude with so many profiles, whose keys the stand-in tells apart, and codex behind it."""
    claude = agents.service(fresh, "claude", "claude", profiles=[
        {"name": name, "env": {"FAKE_KEY": {"file": agents.secret(fresh, "key-" + name, "key-of-" + name)}, "ANTHROPIC_API_KEY": {"file": agents.secret(fresh)}}}
        for name in names])
    settings.setdefault("roles", {"reviewer": {"chain": ["claude", "codex"]}})
    return fresh.configure({"claude": claude, "codex": agents.service(fresh, "codex", "codex")}, **settings)


def keys(host, **steps):
    """What the provider answers to each key."""
    host.plan(services={"claude": [{"keys": {"key-of-" + name: step for name, step in steps.items()}}]}, default=[{}])


REFUSED = {"fixture": "401"}


def resting(host, expected, service="claude"):
    """Waits until `services` shows these profiles as resting, and gives what it says of each."""
    def look():
        shown = [one for one in host.run("services", "--json").objects if one.get("service") == service and "profiles" in one]
        found = {one["profile"]: one["rests"] for one in shown[0]["profiles"] if one["rests"]} if shown else None
        return (found,) if found is not None and sorted(found) == sorted(expected) else None
    return wait_until(look, 40, f"{expected} to be shown as resting")[0]


def profile_of(host, task, role="owner"):
    """The profile of a new turn's one attempt."""
    one, = host.ends(host.published("claude", role, task), "completed")["attempts"]
    return one["profile"]


def refused(host):
    """A worker that knows team to be refused."""
    keys(host, team=REFUSED, backup={})
    worker = ready(host.worker("claude", "w1"))
    shown = host.ends(host.published("claude", "owner", "t-1"), "completed")
    assert [(one["profile"], one["class"]) for one in shown["attempts"]] == [("team", "auth"), ("backup", None)]
    return worker


@pytest.mark.core
def test_r33_a_refused_profile_is_kept_and_a_person_clears_it(fresh):
    """R-33: refused with no end, kept over a kill and over a lost store, shown with since when and what clears it, until a person does."""
    host = pair(fresh)
    worker = refused(host)
    rest, = resting(host, ["team"])["team"]
    assert (rest["worker"], rest["class"], rest["state"], rest["next_try"]) == ("w1", "auth", "refused", None)
    assert rest["cleared_by"] == "baton services clear claude --profile team"
    text = host.run("services").ok().out
    assert re.search(r"profile team of w1 refused since .*\(auth\).*baton services clear claude --profile team", text), text
    worker.kill()
    worker = ready(host.worker("claude", "w1"))
    assert profile_of(host, "t-2") == "backup"
    assert worker.events("profile.refused_before")[0]["profile"] == "team" and resting(host, ["team"])["team"][0]["since"] == rest["since"]
    # Another worker, without a store of before, finds it in the log.
    worker.kill()
    shutil.rmtree(os.path.join(host.dir, "data", "claude"))
    worker = ready(host.worker("claude", "w2"))
    wait_until(lambda: profile_of(host, "t-3"), 60)
    assert not host.calls(task="t-3", program="claude")[1:] and host.calls(task="t-3")[0]["env"]["FAKE_KEY"] == "key-of-backup"
    assert resting(host, ["team"])["team"][0]["worker"] == "w2"
    # That the provider would take it by now is known to nobody.
    keys(host, team={}, backup={})
    assert profile_of(host, "t-4") == "backup"
    assert host.run("services", "clear", "claude", "--profile", "team", "--json").ok().one == {"service": "claude", "status": "cleared"}
    assert profile_of(host, "t-5") == "team" and not resting(host, [])
    event, = worker.events("profile.cleared")
    assert (event["profile"], event["why"]) == ("team", "cleared by an operator")
    worker.kill()
    worker = ready(host.worker("claude", "w2"))
    assert profile_of(host, "t-6") == "team" and not worker.events("profile.refused_before")


def test_r33_a_clear_reaches_a_worker_that_starts_later(fresh):
    """R-33: said while no worker runs; every profile without a name; what it does not know is refused."""
    host = pair(fresh)
    refused(host).stop()
    host.run("services", "clear", "claude", "--profile", "nobody", "--json").refused("invalid_request", 2)
    assert host.run("services", "clear", "claude", "--reason", "a new contract", "--json").ok().one["status"] == "queued"
    keys(host, team={}, backup={})
    host.worker("claude", "w1")
    wait_until(lambda: not resting(host, []), what="it to be cleared")
    assert profile_of(host, "t-2") == "team"


def test_x22_a_clear_that_is_sent_again_clears_nothing(fresh):
    """X22: whoever can write to the control topic does not have a refused credential tried again and again."""
    host = pair(fresh)
    worker = refused(host)
    host.run("services", "clear", "claude", "--json").ok()
    wait_until(lambda: worker.events("profile.cleared"), what="it to be cleared")
    old = [one for one in host.log.records(host.topic("control", "claude")) if one.key == b"~rest"]
    assert old, "it is trimmed once a minute"
    assert [one["profile"] for one in host.ends(host.published("claude", "owner", "t-2"), "completed")["attempts"]] == ["team", "backup"]
    resting(host, ["team"])
    for record in old:
        host.log.append(record, record.partition)
    host.run("services", "clear", "claude", "--profile", "backup", "--json").ok()  # was answered: those before it on its partition were read
    assert profile_of(host, "t-3") == "backup"
    assert len(worker.events("profile.cleared")) == 1 and resting(host, ["team"])


def test_r33_a_clear_reaches_every_worker(fresh):
    """R-33: each worker learns of a refusal by itself; one clear reaches all of them, and each shows its own."""
    host = pair(fresh)
    keys(host, team=REFUSED, backup={})
    workers = [ready(host.worker("claude", name)) for name in ("w1", "w2")]
    host.shared(*workers)
    numbers = iter(range(1000))

    def both():
        host.ends(host.published("claude", "owner", f"t-{next(numbers)}"), "completed")
        return all(worker.events("profile.refused") for worker in workers)

    wait_until(both, 60, "both to have been refused")
    wait_until(lambda: sorted(one["worker"] for one in resting(host, ["team"])["team"]) == ["w1", "w2"], 40, "both to be shown")
    keys(host, team={}, backup={})
    assert host.run("services", "clear", "claude", "--json").ok().one["status"] == "cleared"
    resting(host, [])
    for number in range(6):
        assert profile_of(host, f"after-{number}") == "team"
    assert all(len(worker.events("profile.cleared")) == 1 for worker in workers)


def test_r33_a_probe_that_succeeds_clears(fresh):
    """R-33: doctor --probe: one that is refused again stays so; one that works is taken again, and the finding says so."""
    host = pair(fresh, ("team", "spare", "backup"))
    keys(host, team=REFUSED, spare=REFUSED, backup={})
    worker = ready(host.worker("claude", "w1"))
    host.ends(host.published("claude", "owner", "t-1"), "completed")
    resting(host, ["spare", "team"])
    found = [one for one in host.run("doctor", "--json").objects if one["check"] == "services" and "was refused (auth)" in one["text"]]
    assert [one["level"] for one in found] == ["warn", "warn"] and "services clear claude --profile team" in found[0]["mend"], found
    keys(host, team={}, spare=REFUSED, backup={})
    before = len(host.calls())
    done = host.run("doctor", "--probe", "--json")
    assert [one["text"] for one in done.objects if "is taken again" in one["text"]] == ["claude: profile team was refused, works, and is taken again"], done
    os.rename(os.path.join(host.fake, "calls"), os.path.join(host.fake, "probes"))  # they were no turns: see the end of each host
    assert before == 3 and resting(host, ["spare"])
    assert worker.events("profile.cleared")[0]["profile"] == "team" and profile_of(host, "t-2") == "team"


@pytest.mark.parametrize("running", [True, False])
def test_r33_another_credential_clears(fresh, running):
    """R-33: a new key in the place of the refused one is a person's deed, seen by a worker that runs and by one that starts."""
    host = pair(fresh)
    worker = refused(host)
    resting(host, ["team"])
    if not running:
        worker.stop()
    keys(host, **{"team-2": {}, "backup": {}})
    agents.secret(host, "key-team", "key-of-team-2")
    worker = worker if running else ready(host.worker("claude", "w1"))
    resting(host, [])
    assert profile_of(host, "t-2") == "team" and not worker.events("profile.refused_before")
    assert not running or worker.events("profile.cleared")[0]["why"] == "its credential has changed"


def test_r33_signed_in_anew_clears(fresh):
    """R-33: where the program has signed in by itself (home), its login is the credential."""
    home = os.path.join(fresh.dir, "agent-home", ".claude")
    os.makedirs(home)
    host = pair(fresh)
    host.settings["services"]["claude"]["executor"]["home"] = "agent-home"
    host.configure(host.settings["services"], roles=host.settings["roles"])
    with open(os.path.join(home, ".credentials.json"), "w", encoding="utf-8") as file:
        file.write('{"token": "old"}')
    refused(host).kill()
    worker = ready(host.worker("claude", "w1"))
    wait_until(lambda: worker.events("profile.refused_before"), what="the refusal to be known")
    worker.kill()
    with open(os.path.join(home, ".credentials.json"), "w", encoding="utf-8") as file:
        file.write('{"token": "new"}')
    worker = ready(host.worker("claude", "w1"))
    keys(host, team={}, backup={})
    assert profile_of(host, "t-2") == "team" and not worker.events("profile.refused_before")


@pytest.mark.core
def test_r39_with_every_profile_refused_nothing_is_tried(fresh):
    """R-39, R-10: after a restart, too, a turn goes on at its fallback at once: no attempt is spent on a key that is known to be refused."""
    host = pair(fresh)
    keys(host, team=REFUSED, backup=REFUSED)
    worker = ready(host.worker("claude", "w1"))
    host.worker("codex", "w2")
    first = host.ends(host.published("claude", "reviewer", "t-1"), "completed")
    assert [(one["service"], one["state"], one["class"]) for one in first["attempts"]] == \
        [("claude", "failed", "auth"), ("claude", "delegated", "auth"), ("codex", "completed", None)]
    resting(host, ["backup", "team"])
    worker.kill()
    ready(host.worker("claude", "w1"))
    for number in range(3):
        shown = host.ends(host.published("claude", "reviewer", f"r-{number}"), "completed")
        assert [(one["service"], one["state"], one["class"]) for one in shown["attempts"]] == [("claude", "delegated", "auth"), ("codex", "completed", None)]
        assert (shown["failures"], shown["role"], shown["attempts"][0]["started_at"]) == (0, "reviewer", None)
    assert len(host.calls(program="claude")) == 2
    # Without a fallback no turn is parked untried: the one try is a probe, of what was tried longest ago, and its success clears.
    lonely = host.published("claude", "owner", "t-2")
    assert [one["profile"] for one in host.ends(lonely, "parked")["attempts"]] == ["team"]
    keys(host, team=REFUSED, backup={})
    assert profile_of(host, "t-3") == "backup"
    resting(host, ["team"])


def test_r33_who_may_not_operate_clears_nothing(fresh):
    """R-33, X21: a clear is an operator's: refused before anything is sent, and by the owner."""
    host = pair(fresh)
    refused(host)
    resting(host, ["team"])
    host.principal("eve", "kind: person\ncreate: {claude: [owner]}\n")
    host.run("services", "clear", "claude", "--set", "identity=eve", "--json").refused("not_permitted", 4)
    assert profile_of(host, "t-2") == "backup"


def test_r33_a_spent_quota_rests_for_a_time_only(fresh):
    """R-33, I28: what is not the credential's refusal has a time, and a restart tries it again."""
    host = pair(fresh, retry={"rest": "10m"})
    keys(host, team={"raw": '{"type":"result","is_error":true,"api_error_status":402,"result":"Your credit balance is too low"}\n', "exit": 1}, backup={})
    worker = ready(host.worker("claude", "w1"))
    shown = host.ends(host.published("claude", "owner", "t-1"), "completed")
    assert [(one["profile"], one["class"]) for one in shown["attempts"]] == [("team", "quota"), ("backup", None)]
    rest, = resting(host, ["team"])["team"]
    assert rest["state"] == "rests" and rest["since"] < rest["next_try"] and "cleared_by" not in rest
    assert profile_of(host, "t-2") == "backup"
    worker.kill()
    keys(host, team={}, backup={})
    ready(host.worker("claude", "w1"))
    assert profile_of(host, "t-3") == "team"


def test_r33_resting_can_be_switched_off(fresh):
    """retry.rest 0s: no profile rests, not even one that was refused."""
    host = pair(fresh, retry={"rest": "0s"})
    refused(host)
    keys(host, team={}, backup={})
    assert profile_of(host, "t-2") == "team" and not resting(host, [])
