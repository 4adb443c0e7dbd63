"""What is written when a turn ends, is passed on, cancelled or claimed can itself not be written: the turn waits, the
cause is named by `services` and `doctor`, and once it is gone the work goes on by itself (DESIGN section 4, FIELD B13, D02).

One table: what is written, and what is wrong with its topic. A dead letter without its right or too large for its
topic, and topics that go under workers of Kafka, are in test_46_rights.py and test_47_field_b.py too.
"""
import os
import time

import pytest

import broker
import proof
from host import SLOW, Host, ready, wait_until
from test_80_thousand import fill, small_disk  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.heavy, pytest.mark.seconds(200)]

# what is written: (its topic, the service that the topic is of, the step of its turn, how the turn ends)
WRITTEN = {
    "dead letter": ("dlq", "alpha", [{"class": "bad_request"}], "parked"),
    "outcome": ("outcomes", None, [{}], "completed"),
    "pass": ("handoff", "beta", [{"class": "auth"}, {}], "parked"),
    "claim": ("turns", "alpha", [{}], "completed"),
}
CHAIN = {"reviewer": {"chain": ["alpha", "beta"]}}


def blocked(host, service="alpha"):
    """What `services` says that workers of a service cannot write to."""
    done = host.run("services", "--json")
    return [one for line in done.objects if line.get("service") == service for one in line["blocked"]] if done.status == 0 else []


def findings(host):
    return [one for one in host.run("doctor", "--json").objects if one["level"] == "error"]


def named(host, topic, code):
    """Waits until `doctor` and `services` name topic and code; what `services` itself reads stands in that service's row."""
    wait_until(lambda: any(one["code"] == code and topic in one["text"] for one in findings(host)), 20,
               lambda: f"doctor to name {topic} {code}: {findings(host)}\n{host.all_logs()}")

    def told():
        rows = host.run("services", "--json").ok().objects
        return any(row.get("code") == code and topic in row["error"] for row in rows) or \
            any((one["topic"], one["code"]) == (topic, code) and topic in one["cause"] for one in blocked(host))

    wait_until(told, 20, lambda: f"services to name {topic} {code}: {host.run('services', '--json')}\n{host.all_logs()}")


def forgotten(host, seconds=20):
    """Waits until nothing is said to be blocked, and doctor finds no error."""
    wait_until(lambda: not blocked(host) and not findings(host), seconds,
               lambda: f"nothing to be blocked: {blocked(host)}, {findings(host)}\n{host.all_logs()}")


def taken(host, control):
    """Has the owner taken all of its control topic?"""
    done = host.log.committed(f"{host.prefix}.worker.alpha", control)
    return all(done.get(part, 0) >= end for part, (_, end) in host.log.ends(control).items())


@pytest.mark.few_on_kafka("what", "outcome")
@pytest.mark.parametrize("what", list(WRITTEN))
def test_its_topic_is_missing(fresh, what):
    """A27, C08 (poison without a dead-letter topic): the topic goes under a running worker: no loop, nothing is lost, `topics apply`, and it goes on with no rebalance."""
    kind, service, steps, end = WRITTEN[what]
    host = fresh.configure({"alpha": None, "beta": None}, roles=CHAIN)
    topic = host.topic(kind, service)
    worker = ready(host.worker("alpha", "w1"))
    host.plan(tasks={"t-bad": [dict(steps[0], until=host.fake + "/go")] + steps[1:]})
    if what != "claim":
        turn = host.published("alpha", "reviewer", "t-bad")
        host.called(1, turn=turn)
    host.log.drop(topic)
    wait_until(lambda: topic not in host.log.topics(), what="the topic to be gone")
    if what == "claim":
        turn = host.published("alpha", "reviewer", "t-bad")
    open(host.fake + "/go", "w", encoding="ascii").close()
    if what == "pass":
        host.ends(turn, end)  # the next action of its list
    named(host, topic, "topic_missing")
    lines = len(worker.log.splitlines())
    time.sleep(3 * SLOW)
    assert len(worker.log.splitlines()) - lines < 100, f"a loop\n{worker.log[-3000:]}"
    host.run("topics", "apply").ok()
    if what == "claim" and not worker.alive:  # without its own log it may end, as it does not start: whoever keeps it starts it again
        assert worker.wait() == 8 and topic in worker.log, worker.log[-3000:]
        worker = ready(host.worker("alpha", "w1"))
    host.ends(turn, end, 90)
    assert len(host.calls(turn=turn)) == 1
    if what != "pass":
        forgotten(host)
    assert worker.alive


@pytest.mark.parametrize("kinds", [("turns",), ("handoff",), ("turns", "handoff")], ids="-".join)
def test_services_show_what_is_there(fresh, kinds):
    """One service without its topics: its row says which is missing, and shows the rest; the other services show as ever."""
    host = fresh.configure({"alpha": None, "beta": None})
    ready(host.worker("beta", "w1"))
    host.published("alpha", "owner", "t-1")
    host.ends(host.published("beta", "owner", "t-2"), "completed")
    for kind in kinds:
        host.log.drop(host.topic(kind))
    wait_until(lambda: not any(host.topic(kind) in host.log.topics() for kind in kinds), what="the topics to be gone")
    alpha, beta = host.run("services", "--json").ok().objects
    assert (alpha["service"], alpha["code"]) == ("alpha", "topic_missing"), alpha
    assert any(host.topic(kind) in alpha["error"] for kind in kinds), alpha
    assert alpha["lag"] == (1 if kinds == ("turns",) else 0), alpha
    assert "code" not in beta and [one["worker"] for one in beta["workers"]] == ["w1"], beta
    shown = host.run("services").ok()
    assert "beta" in shown.out and any(host.topic(kind) in shown.out for kind in kinds), shown
    host.run("topics", "apply").ok()
    assert not any("code" in row for row in host.run("services", "--json").ok().objects)


@pytest.mark.drivers("local")  # of Kafka: test_46_rights.py
@pytest.mark.parametrize("kind", ["dlq", "outcomes"])
def test_its_topic_takes_too_little(fresh, kind):
    """What is too large for its topic waits, named with topic and cause, and goes on by itself."""
    host = fresh.configure({"alpha": None})
    topic = host.topic(kind, "alpha" if kind == "dlq" else None)
    host.plan(default=[{"class": "bad_request"}])
    ready(host.worker("alpha", "w1"))
    host.log.execute(("UPDATE topic SET record_bytes_max = 200 WHERE name = ?", (topic,)))
    turn = host.published("alpha", "owner", "t-1")
    named(host, topic, "record_too_large")
    assert not host.letters() and host.state(turn) in ("running", "queued")
    host.run("topics", "apply").ok()
    host.ends(turn, "parked", 60)
    assert len(host.calls(turn=turn)) == 1
    forgotten(host, 40)


def test_a_renewal_waits_for_no_other_topic(fresh):
    """L-33, R-13: nobody is answered, nothing is buried: it is taken though dead letters cannot be written, and what lies
    behind it goes on."""
    host = fresh.configure({"alpha": None})
    topic = host.topic("dlq")
    ready(host.worker("alpha", "w1"))
    host.plan(tasks={"t-bad": [{"class": "bad_request", "until": host.fake + "/go"}]})
    turn = host.published("alpha", "reviewer", "t-bad")
    host.called(1, turn=turn)
    boot = next(one for one in host.log.records(host.topic("turns")) if one.key == turn.encode()).json()["lease"]["boot"]
    host.log.drop(topic)
    wait_until(lambda: topic not in host.log.topics(), what="the topic to be gone")
    open(host.fake + "/go", "w", encoding="ascii").close()
    named(host, topic, "topic_missing")
    control = host.topic("control")
    host.log.append(proof.control(host.prefix, host.fleet, host.key("alpha"), "alpha", "renew", turn, attempt=1, boot=boot, seq=1))
    wait_until(lambda: taken(host, control), 15, lambda: f"the renewal to be taken\n{host.all_logs()}")
    assert topic not in host.log.topics() and host.state(turn) == "running"


def test_what_is_asked_waits_for_no_dead_letter(fresh):
    """L-33, R-13: while dead letters cannot be written a cancel, a replay, a pause and a report are taken as ever; only what must be
    buried waits."""
    host = fresh.configure({"alpha": None})
    topic, control = host.topic("dlq"), host.topic("control")
    host.plan(tasks={"t-bad": [{"class": "bad_request"}], "t-parked": [{"class": "bad_request"}, {}], "t-hang": [{"hang": True}, {}]})
    ready(host.worker("alpha", "w1"))
    parked, hang = host.published("alpha", "owner", "t-parked"), host.published("alpha", "owner", "t-hang")
    host.ends(parked, "parked")
    host.called(1, turn=hang)
    host.log.drop(topic)
    wait_until(lambda: topic not in host.log.topics(), what="the topic to be gone")
    bad = host.published("alpha", "owner", "t-bad")
    named(host, topic, "topic_missing")
    host.cancel(hang).ok()
    host.ends(hang, "cancelled")
    host.replay(parked).ok()
    host.ends(parked, "completed")
    host.run("services", "pause", "alpha", "--reason", "a look").ok()
    host.run("services", "resume", "alpha").ok()
    host.log.append(proof.control(host.prefix, host.fleet, host.key("alpha"), "alpha", "report", parked, attempt=1, boot="0" * 32,
                                  result={"verdict": "proceed"}))
    wait_until(lambda: taken(host, control), 20, lambda: f"the report to be taken\n{host.all_logs()}")
    assert topic not in host.log.topics() and host.state(bad) == "running"
    host.run("topics", "apply").ok()
    host.ends(bad, "parked", 90)
    assert len(host.calls(turn=bad)) == 1


# ---- disks that fill up, a broker that is gone ----

def full(host, small_disk):
    """An end and a dead letter wait for room, `doctor` names the disk, nothing runs twice, and both go on by themselves."""
    steps = {"until": host.fake + "/go"}
    host.plan(default=[steps], tasks={"t-bad": [dict(steps, **{"class": "bad_request"})]})
    worker = ready(host.worker("alpha", "w1"))
    good, bad = host.published("alpha", "owner", "t-good"), host.published("alpha", "owner", "t-bad")
    host.called(2)
    ballast = fill(small_disk)
    open(host.fake + "/go", "w", encoding="ascii").close()
    wait_until(lambda: any(one["code"] == "disk_full" and small_disk in one["text"] for one in findings(host)), 20,
               lambda: f"doctor to name the disk: {findings(host)}\n{host.all_logs()}")
    lines = len(worker.log.splitlines())
    time.sleep(3 * SLOW)
    assert worker.alive and len(worker.log.splitlines()) - lines < 100, f"a loop\n{worker.log[-3000:]}"
    os.unlink(ballast)
    host.ends(good, "completed", 40)
    host.ends(bad, "parked", 40)
    assert len(host.calls()) == 2 and len(host.letters()) == 1 and worker.alive


def test_f04_the_disk_of_the_store_is_full(fresh, small_disk):  # noqa: F811
    full(fresh.configure({"alpha": None}, state_dir=small_disk), small_disk)


@pytest.mark.drivers("local")
def test_f04_the_disk_of_the_log_is_full(fresh, small_disk):  # noqa: F811
    full(fresh.configure({"alpha": None}, local={"path": small_disk + "/log/log.db"}), small_disk)


@pytest.mark.drivers("kafka")
def test_the_broker_is_gone(own_broker, tmp_path, monkeypatch):
    """An end, a dead letter and a pass that fall into an outage: said by `doctor` and `services`, written when it is over."""
    monkeypatch.setattr(broker, "shared", own_broker.start)
    folder = tmp_path / "here"  # the broker's processes are not the host's
    folder.mkdir()
    host = Host(str(folder), "kafka").configure({"alpha": None, "beta": None}, roles=CHAIN, session="30s")
    try:
        go = {"until": host.fake + "/go"}
        host.plan(default=[go], tasks={"t-bad": [dict(go, **{"class": "bad_request"})], "t-auth": [dict(go, **{"class": "auth"}), {}]})
        worker = ready(host.worker("alpha", "w1"))
        good, bad, passed = (host.published("alpha", "reviewer", task) for task in ("t-good", "t-bad", "t-auth"))
        host.called(3)
        own_broker.stop()
        open(host.fake + "/go", "w", encoding="ascii").close()
        assert any(one["check"] == "log" and one["code"] in ("broker_unavailable", "service_unavailable", "log_unavailable")
                   for one in findings(host)), findings(host)
        services = host.run("services", "--json")
        assert services.status == 8 and host.brokers in services.out, services
        assert worker.alive
        own_broker.again()
        ready(host.worker("beta", "w1"))
        host.ends(good, "completed", 60)
        host.ends(bad, "parked", 60)
        host.ends(passed, "completed", 60)
        assert sorted(call["attempt"] for call in host.calls()) == [1, 1, 1, 2] and len(host.letters()) == 1
    finally:
        own_broker.start()
        host.finish()
