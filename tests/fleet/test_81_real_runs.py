"""The paired review with the real claude and codex against the stub model server (tests/run --agents)."""
import pytest

import agents
from host import ready
from modelserver import ModelServer
from runs import path, sound, start, taken, until

pytestmark = [pytest.mark.long, pytest.mark.agents, pytest.mark.seconds(300),
              pytest.mark.skipif(not agents.folder(), reason="the agent programs are not installed: tests/run --agents")]


@pytest.fixture(scope="module")
def server():
    one = ModelServer()
    yield one
    one.close()


def fleet(fresh, services, reviewers):
    host = fresh.configure(services, roles={"owner": {"chain": ["claude"]}, "reviewer": {"chain": reviewers, "read_only": True}, "arbiter": {"chain": [reviewers[0]]}})
    ready(host.worker("coordinator", "c1"))
    for service in services:
        ready(host.worker(service))
    return host


def test_claude_does_and_codex_approves(fresh, server):
    host = fleet(fresh, {"claude": agents.real(fresh, server, "claude", "ok"), "codex": agents.real(fresh, server, "codex", "ok")}, ["codex"])
    shown = until(host, start(host, "t-1"), "completed", 200)
    assert path(shown) == [("start", "owner", "owner", "claude", "done"), ("review", "reviewer", "reviewer", "codex", "approve")]
    sound(host, shown)


def test_codex_goes_on_as_reviewer_where_claude_is_refused(fresh, server):
    """The reviewer's provider refuses its credentials: codex has the same turn, as reviewer, and the run sees no transition in it."""
    services = {"claude": agents.real(fresh, server, "claude", "ok"), "critic": agents.real(fresh, server, "claude", "401"),
                "codex": agents.real(fresh, server, "codex", "ok")}
    host = fleet(fresh, services, ["critic", "codex"])
    shown = until(host, start(host, "t-1"), "completed", 200)
    last = shown["turns"][-1]
    assert (last["role"], last["born"], last["service"], last["attempt"], last["verdict"]) == ("reviewer", "critic", "codex", 2, "approve")
    assert taken(shown) == {"start": 1, "review": 1}
    sound(host, shown)


def test_codex_asks_for_changes_until_the_cap(fresh, server):
    """A reviewer that always asks for changes: three rounds, then a person is asked."""
    host = fleet(fresh, {"claude": agents.real(fresh, server, "claude", "ok"), "codex": agents.real(fresh, server, "codex", "ok=changes")}, ["codex"])
    shown = until(host, start(host, "t-1"), "waiting", 280)
    assert shown["code"] == "cycle_limit" and taken(shown) == {"start": 1, "review": 4, "changes": 3}
    sound(host, shown)
