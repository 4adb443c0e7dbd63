"""Traces: one for each turn through everything that can happen to it; and a collector that is away costs nothing."""
import os
import re
import signal
import time

import pytest

import otlp
import runs
from host import SLOW, ready, wait_until
from otlp import named, spans_of, traced
from scrape import LISTEN, number, port

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CANARY = "Zanzibar-7391"


def traceparents(host):
    """Of every record with a turn's handoff, outcome or dead letter: (topic, its traceparent headers)."""
    found = []
    for topic in host.log.topics():
        if ".handoff." in topic or topic.endswith(".outcomes"):
            for record in host.log.records(topic, every=True):
                found.append((topic, [data.decode() for name, data in record.headers if name == "traceparent"]))
    return found


@pytest.mark.core
def test_d10_d11_one_trace_through_everything(fresh):
    """D10, D11: retries, a pass, a dead letter and a replay have one trace id, and each record exactly one traceparent."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector, services={"alpha": fresh.service(env={"TOKEN": {"file": "token"}}), "beta": fresh.service(kind="child")}, roles={"reviewer": {"chain": ["alpha", "beta"]}},
                      on_failure={"unavailable": ["retry", "delegate", "park"], "bad_request": ["park"]})
        with open(os.open(os.path.join(host.dir, "token"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(f"token-{CANARY}")
        secret = {"message": f"message-{CANARY}", "stdout": f"output-{CANARY}"}
        host.plan(services={"alpha": [{"class": "unavailable", **secret}], "beta": [{"class": "bad_request", "message": secret["message"]}] * 5 + [{"summary": f"summary-{CANARY}"}]})
        with open(os.path.join(host.dir, "payload"), "w", encoding="utf-8") as file:
            file.write(f"payload-{CANARY}")
        for service in ("alpha", "beta"):
            ready(host.worker(service, "w1"))
        turn = host.published("alpha", "reviewer", "t-1", "--payload", "payload", "--summary", f"asked-{CANARY}", "--data", f"what=data-{CANARY}",
                              environment={"TRACEPARENT": GIVEN})
        host.ends(turn, "parked")
        assert host.replay(turn).ok().one["status"] == "replayed"
        host.ends(turn, "completed")
        calls = [call for call in host.calls() if call["event"] == "start"]
        spans = spans_of(collector, turn, len(calls))
        spans = wait_until(lambda: (lambda all_: all_ if len(named(all_, "settle")) == len(calls) else None)(spans_of(collector, turn, len(calls))))
        otlp.check(spans, known=[GIVEN[36:52]])
        assert {span.trace for span in spans} == {GIVEN[3:35]}
        # 4 at alpha (one and its retries), 2 at beta; what each was, and that the executor was told of it
        attempts = named(spans, "attempt")
        assert [(one.at["baton.service"], one.at["baton.attempt"], one.error) for one in attempts] == \
            [("alpha", 1, "unavailable"), ("alpha", 2, "unavailable"), ("alpha", 3, "unavailable"), ("alpha", 4, "unavailable"), ("beta", 5, "bad_request"), ("beta", 6, None)]
        assert [call.get("traceparent") or call["env"]["TRACEPARENT"] for call in calls] == [f"00-{GIVEN[3:35]}-{one.id}-01" for one in attempts]
        # the tree: publish <- receive, attempts; the last attempt of alpha <- the pass <- receive and attempts of beta
        publish, pass_ = named(spans, "send")
        assert publish.parent == GIVEN[36:52] and publish.kind == otlp.PRODUCER and publish.whose["service.name"] == host.identity
        assert {one.parent for one in attempts[:4]} == {publish.id} and pass_.parent == attempts[3].id and pass_.at["baton.to"] == "beta"
        assert {one.parent for one in attempts[4:]} == {pass_.id}
        assert [(one.at["baton.service"], one.parent) for one in named(spans, "receive")] == [("alpha", publish.id), ("beta", pass_.id)]
        assert [one.parent for one in named(spans, "settle")] == [one.id for one in attempts]
        letter, = named(spans, "dead_letter")
        assert letter.parent == attempts[4].id and letter.error == "executor_failed"
        replay, = named(spans, "replay")
        assert replay.parent == pass_.id and replay.start >= letter.start
        assert {one.whose["service.instance.id"] for one in attempts} == {"w1"} and {one.whose["service.namespace"] for one in spans} == {host.prefix}
        # the records
        heads = traceparents(host)
        assert len(heads) >= 5 and all(len(one) == 1 and one[0].startswith(GIVEN[:35]) for _, one in heads), heads
        assert not any(CANARY.encode() in body for body in collector.bodies), "content or a secret in a span"
        for worker in host.workers:
            worker.stop()
        otlp.check(collector.spans, known=[GIVEN[36:52]])


@pytest.mark.drivers("local")
def test_each_replay_is_a_span_of_its_own(fresh):
    """One here and the next one at another service: the trace has both, and no id twice."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector, roles={"reviewer": {"chain": ["alpha", "beta"]}}, on_failure={"bad_request": ["park"]})
        host.plan(services={"alpha": [{"class": "bad_request"}] * 2})
        for service in ("alpha", "beta"):
            ready(host.worker(service, "w1"))
        turn = host.published("alpha", "reviewer", "t-1")
        host.ends(turn, "parked")
        host.replay(turn).ok()
        wait_until(lambda: host.show(turn)["state"] == "parked" and len(host.show(turn)["attempts"]) == 2, 20, "the second dead letter")
        host.replay(turn, "--to", "beta").ok()
        host.ends(turn, "completed")
        for worker in host.workers:
            worker.stop()
        spans = collector.spans
        otlp.check(spans)
        assert len({span.trace for span in spans}) == 1
        assert [(one.at["baton.attempt"], one.at["baton.state"]) for one in named(spans, "replay")] == [(2, "queued"), (3, "delegated")]
        assert [one.at["baton.attempt"] for one in named(spans, "dead_letter")] == [1, 2]


@pytest.mark.drivers("local")
def test_a_turn_that_is_published_twice_has_one_trace(fresh):
    """Both publishes are there, and everything is below the first; two lines of a bulk have two traces."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector)
        worker = ready(host.worker("alpha", "w1"))
        words = ("alpha", "owner", "t-1", "--key", "k-1")
        turn = host.published(*words)
        host.ends(turn, "completed")
        assert host.published(*words) == turn
        lines = "".join(f'{{"service": "alpha", "role": "owner", "task": "t-{n}"}}\n' for n in (2, 3))
        told = host.run("publish", "--lines", "-", "--json", stdin=lines.encode()).ok().objects
        others = {one["turn_id"]: one["traceparent"][3:35] for one in told if "traceparent" in one}
        for other in others:
            host.ends(other, "completed")
        worker.stop()
        spans = collector.spans
        otlp.check(spans)
        mine = [span for span in spans if span.at["baton.turn.id"] == turn]
        first, again = named(mine, "send")
        assert {span.trace for span in mine} == {turn} and not first.parent and not again.parent
        assert {span.parent for span in mine if span.name in ("receive alpha", "attempt alpha")} == {first.id}
        assert len(others) == 2 and all({span.trace for span in spans if span.at["baton.turn.id"] == other} == {trace} for other, trace in others.items())


@pytest.mark.drivers("local")
def test_who_tells_no_spans_is_nobodys_parent(fresh):
    """Publisher and coordinator without traces.endpoint: what the worker tells is whole all the same, below the trace that was given, if one was."""
    with otlp.Collector() as collector:
        host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=runs.CHAINS, workflows=[])
        ready(host.worker("coordinator", "c1"))
        workers = [ready(host.worker(service, "w1", "--set", f"traces.endpoint={collector.endpoint}")) for service in ("alpha", "beta")]
        turns = [host.published("alpha", "owner", "t-2"), host.published("alpha", "owner", "t-3", environment={"TRACEPARENT": GIVEN})]
        for turn in turns:
            host.ends(turn, "completed")
        runs.until(host, runs.start(host), "completed")
        for worker in workers:
            worker.stop()
        spans = collector.spans
        otlp.check(spans, known=[GIVEN[36:52]])
        assert {span.name.split()[0] for span in spans if not span.parent} == {"receive"}
        given = [span for span in spans if span.parent == GIVEN[36:52]]
        assert {(span.name, span.trace, span.at["baton.turn.id"]) for span in given} == {(name, GIVEN[3:35], turns[1]) for name in ("receive alpha", "attempt alpha")}
        assert len({span.trace for span in spans if "baton.run.id" in span.at}) == 1


HEADERS = {"none": "", "zeros": "00-00000000000000000000000000000000-b7ad6b7169203331-01", "version": "ff" + GIVEN[2:], "upper": GIVEN.replace("af", "AF"),
           "longer": GIVEN + "-x", "path": "../../etc", "unsampled": GIVEN[:-1] + "0"}


@pytest.mark.few_on_kafka("which", "unsampled")
@pytest.mark.parametrize("which", HEADERS)
def test_x_a_traceparent_is_information(fresh, which):
    """RECORD.md section 5: a malformed one gives a new trace, one that is not sampled no spans; neither changes what becomes of the turn."""
    given = HEADERS[which]
    with otlp.Collector() as collector:
        host = traced(fresh, collector)
        worker = ready(host.worker("alpha", "w1"))
        forged = host.turn(service="alpha")
        record = host.handoff(forged)
        record.headers.append(("traceparent", given.encode()))
        host.log.append(record)
        host.ends(forged["turn_id"], "completed")
        said = host.published("alpha", "reviewer", "t-2", environment={"TRACEPARENT": given})
        host.ends(said, "completed")
        calls = {call["turn"]: call["env"]["TRACEPARENT"] for call in host.calls() if call["event"] == "start"}
        worker.stop()
        spans = collector.spans
        if which == "unsampled":
            assert spans == [] and all(one.startswith(given[:35]) and one.endswith("-00") for one in calls.values()), (calls, spans)
            return
        otlp.check(spans)
        mine = [span for span in spans if span.at["baton.turn.id"] == forged["turn_id"]]
        assert {span.trace for span in mine} == {forged["turn_id"]}, "named by the turn, where nobody else has"
        assert [span.name for span in mine if not span.parent] == ["receive alpha"]
        assert {span.trace for span in spans if span.at["baton.turn.id"] == said} != {GIVEN[3:35]}
        assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", one) for one in calls.values())


@pytest.mark.drivers("local")
def test_turns_of_a_run_share_its_trace(fresh):
    """The run, its decisions, and every turn that they send: one trace, each decision linked to the attempt that it follows from."""
    with otlp.Collector() as collector:
        host = fresh
        host.configure({"alpha": None, "beta": None, "gamma": None}, roles=runs.CHAINS, workflows=[], traces={"endpoint": collector.endpoint})
        ready(host.worker("coordinator", "c1"))
        for service in ("alpha", "beta"):
            ready(host.worker(service, "w1"))
        run = runs.start(host)
        runs.until(host, run, "completed")
        for worker in host.workers:
            worker.stop()
        spans = collector.spans
        otlp.check(spans)
        assert len({span.trace for span in spans}) == 1 and len({span.at.get("baton.turn.id") for span in spans} - {None}) >= 2
        whole, = named(spans, "run")
        assert not whole.parent and whole.error is None and whole.at["baton.state"] == "completed"
        assert [span for span in spans if not span.parent] == [whole]
        attempts = {span.id: span for span in named(spans, "attempt")}
        decisions = {span.id: span for span in named(spans, "decide")}
        assert decisions and all(one.parent == whole.id and one.links and one.links[0][1] in attempts for one in decisions.values())
        sends = named(spans, "send")
        assert {one.parent for one in sends} == {whole.id} | set(decisions) and {one.whose["service.name"] for one in sends} == {"coordinator"}
        assert {one.at["baton.run.id"] for one in spans} == {run}


@pytest.mark.drivers("local")
def test_a_run_that_is_reopened_has_a_span_for_each_epoch(fresh):
    """The second begins with its first turn, not with the run; both are in one trace."""
    with otlp.Collector() as collector:
        host = fresh
        host.configure({"alpha": None, "beta": None, "gamma": None}, roles=runs.CHAINS, workflows=[], traces={"endpoint": collector.endpoint})
        for service in ("coordinator", "alpha", "beta"):
            ready(host.worker(service, "w1"))
        run = runs.start(host)
        runs.until(host, run, "completed")
        host.run("runs", "reopen", run, "--reason", "once more").ok()
        wait_until(lambda: (lambda one: one["epoch"] == 2 and one["state"] == "completed")(runs.show(host, run)), 40, "the second end")
        for worker in host.workers:
            worker.stop()
        otlp.check(collector.spans)
        first, second = sorted(named(collector.spans, "run"), key=lambda one: one.at["baton.run.epoch"])
        assert first.trace == second.trace and (first.at["baton.run.epoch"], second.at["baton.run.epoch"]) == (1, 2)
        assert first.end <= second.start <= min(one.start for one in named(collector.spans, "send") if one.parent == second.id)


# ---- the collector ----

@pytest.mark.drivers("local")
@pytest.mark.parametrize("mode", ["away", "hang", "slow", 503, 500, 302])
def test_a_collector_that_does_not_take_spans_costs_no_turn_anything(fresh, mode):
    """Outcomes are the same, nobody waits, what is lost is counted, and the log of the worker says so once."""
    with otlp.Collector(200 if mode == "away" else mode) as collector:
        if mode == "away":
            collector.close()
        host = traced(fresh, collector, traces={"queue": 64, "timeout": "60s"})
        host.plan(default=[{}], tasks={"t-bad": [{"class": "bad_request"}]})
        worker = ready(host.worker("alpha", "w1", *LISTEN))
        where = port(worker)
        turns = [host.published("alpha", "owner", f"t-{n}", "--set", "traces.endpoint=http://127.0.0.1:9/") for n in range(12)] + [
            host.published("alpha", "owner", "t-bad")]
        for turn in turns[:-1]:
            host.ends(turn, "completed")
        host.ends(turns[-1], "parked")
        # 3 spans a turn: receive, attempt, settle; and the dead letter
        if mode in (500, 302):  # refused: dropped, never sent again
            wait_until(lambda: number(where, "baton_trace_spans_dropped_total") == 40, 30, "what was refused to be counted")
        assert number(where, "baton_turns_completed_total") == 12
        begun = time.monotonic()
        worker.stop()
        assert time.monotonic() - begun < 15 * SLOW, "the end waits for the collector a second, not a minute"
        said = worker.events("traces.not_sent")
        assert len(said) == (1 if mode not in ("hang", "slow") else 0), said
        if mode == 302:
            assert {path for _, path, _, _ in collector.asked} == {"/v1/traces"}, "no redirection is followed"


@pytest.mark.drivers("local")
def test_what_waits_is_bounded_and_sent_when_the_collector_is_back(fresh):
    """The queue keeps the newest, counts what it drops, and everything that it kept is there once, when the collector is."""
    with otlp.Collector(503, headers=[("Retry-After", "1")]) as collector:
        host = traced(fresh, collector, services={"alpha": fresh.service(parallel=16)}, traces={"queue": 64})
        worker = ready(host.worker("alpha", "w1", *LISTEN))
        where = port(worker)
        first = host.published("alpha", "owner", "t-first", "--set", "traces.endpoint=http://127.0.0.1:9/")
        host.ends(first, "completed")
        wait_until(lambda: collector.asked, 20, "the first try")
        turns = [host.published("alpha", "owner", f"t-{n}", "--set", "traces.endpoint=http://127.0.0.1:9/") for n in range(30)]
        for turn in turns:
            host.ends(turn, "completed")
        wait_until(lambda: number(where, "baton_trace_spans_dropped_total") > 0, 20, "the queue to be full")
        dropped = number(where, "baton_trace_spans_dropped_total")
        assert 0 < dropped <= 3 * 31 - 64 and number(where, "baton_trace_spans_exported_total") == 0
        collector.mode = 200
        wait_until(lambda: number(where, "baton_trace_spans_exported_total") == 3 * 31 - dropped, 60, "the rest to be sent")
        assert number(where, "baton_trace_spans_dropped_total") == dropped
        spans = collector.spans
        assert len({span.id for span in spans}) == len(spans) == 3 * 31 - dropped
        assert {turns[-1], turns[-2]} <= {span.at["baton.turn.id"] for span in spans}, "the newest are kept"
        assert worker.events("traces.sent_again")


@pytest.mark.drivers("local")
def test_a_killed_worker_loses_spans_and_nothing_else(fresh):
    """SIGKILL with spans on their way: the turn goes on under the same trace, its attempts are told by who settles them."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector)
        gate = os.path.join(host.dir, "gate")
        host.plan(default=[{"until": gate}])
        worker = ready(host.worker("alpha", "w1"))
        turn = host.published("alpha", "owner", "t-1")
        host.called(1, turn=turn)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        open(gate, "w", encoding="utf-8").close()
        host.worker("alpha", "w1")
        host.ends(turn, "completed")
        spans = spans_of(collector, turn, 2)
        assert len({span.trace for span in spans}) == 1
        assert [(one.at["baton.attempt"], one.error) for one in named(spans, "attempt")] == [(1, "lost"), (2, None)]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("number_of", [2, 3, 4])
def test_a_commit_whose_outcome_is_unknown_is_told_once(fresh, number_of):
    """The commit is repeated; the trace has what the log has, once."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector)
        host.plan(tasks={"t-1": [{"class": "unavailable"}, {}]})
        turn = host.published("alpha", "owner", "t-1")
        worker = host.worker("alpha", "w1", environment={"BATON_FAULT": f"log.before_commit:fail:{number_of}"})
        wait_until(lambda: not worker.alive or host.state(turn) == "completed", 40, lambda: f"the turn's end\n{worker.log[-2000:]}")
        if not worker.alive:
            host.worker("alpha", "w1")
        shown = host.ends(turn, "completed")
        for one in host.workers:
            if one.alive:
                one.stop()
        spans = collector.spans
        otlp.check(spans)
        assert [(one.at["baton.attempt"], one.at["baton.state"]) for one in named(spans, "attempt")] == [(one["no"], one["state"]) for one in shown["attempts"]]
        assert len(named(spans, "receive")) == 1 and len(named(spans, "settle")) == len(shown["attempts"])


def test_a_batch_that_the_log_does_not_take_tells_nothing(fresh):
    """The fallback's topic vanishes under a worker: what it meant to pass on is decided anew, and no trace has the pass."""
    with otlp.Collector() as collector:
        host = traced(fresh, collector, roles={"reviewer": {"chain": ["alpha", "beta"]}})
        host.plan(default=[{"until": host.fake + "/go", "class": "auth"}])
        worker = ready(host.worker("alpha", "w1"))
        turn = host.published("alpha", "reviewer", "t-1")
        host.called(1)
        host.log.drop(host.topic("handoff", "beta"))
        open(host.fake + "/go", "w", encoding="ascii").close()
        host.ends(turn, "parked")
        worker.stop()
        assert worker.events("engine.target_unavailable"), "a batch was dropped"
        spans = collector.spans
        otlp.check(spans)
        assert [span.name for span in sorted(spans, key=lambda one: one.name)] == [
            "attempt alpha", "dead_letter alpha", "receive alpha", f"send {host.topic('handoff', 'alpha')}", "settle alpha"]
