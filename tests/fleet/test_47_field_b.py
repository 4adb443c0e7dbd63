"""Kafka's own troubles, one at a time (FIELD B, A rows): topics that go, records that do not fit or come from
elsewhere, members without work, turns longer than the poll limit, hidden commits."""
import os
import subprocess
import time

import pytest

from host import SLOW, wait_until
from ownbroker import brokers_of_file, fresh, host, mine, once, waits_for  # noqa: F401 (fixtures)
from proof import Record, partition_of

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]


def unavailable(worker, topic, code, seconds=30):
    """Waits until the worker has named that topic, and why."""
    named = wait_until(lambda: [one for one in worker.events("engine.target_unavailable") if one["topic"] == topic], seconds,
                       lambda: f"{topic} to be named\n{worker.log[-3000:]}")[0]
    assert named["code"] == code and topic in named["error"], named
    return named


# ---- topics that are not there ----

def test_b11_a_missing_topic_stops_the_start(host, mine):
    """B11: worker and doctor name it and how it is made."""
    host.log.drop(host.topic("control"))
    wait_until(lambda: host.topic("control") not in host.log.topics(), what="the topic to be gone")
    worker = host.worker("alpha", "w1")
    assert worker.wait(20) == 8 and "topic_missing" in worker.log and host.topic("control") in worker.log, worker.log
    assert "topics apply" in worker.log
    done = host.run("doctor", "--json")
    assert done.status != 0 and any(host.topic("control") in str(one) and one.get("code") == "topic_missing" for one in done.objects), done


@pytest.mark.parametrize("kind", ["dlq", pytest.param("outcomes", marks=pytest.mark.long)])
def test_b10_b08_a_topic_is_deleted_under_a_worker(host, mine, kind):
    """B10, B08: said by name within a minute, never made again by us; what needs it waits and goes on when it is back."""
    host.plan(tasks={"t-bad": [{"class": "bad_request"}]})
    worker = host.worker("alpha", "w1")
    host.ends(host.published("alpha", "owner", "t-first"), "completed")
    topic = host.topic(kind, "alpha" if kind == "dlq" else None)
    host.log.drop(topic)
    wait_until(lambda: topic not in host.log.topics(), what="the topic to be gone")
    bad = host.published("alpha", "owner", "t-bad")
    if kind == "dlq":
        host.called(1, turn=bad)
        goods = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
        for turn in goods:
            host.ends(turn, "completed", 60)
    unavailable(worker, topic, "topic_missing", 60)
    assert topic not in host.log.topics(), "B08: nobody makes it again but `topics apply`"
    assert worker.alive and host.state(bad) != "parked"
    host.run("topics", "apply").ok()
    host.ends(bad, "parked", 90)
    assert len(host.calls(turn=bad)) == 1 and host.letter("executor_failed")["turn_id"] == bad


# ---- records that do not fit ----

def test_c11_a_record_larger_than_its_topic_takes(host, mine):
    """C11, B05: the dead-letter topic takes less than the letter: named, the others go on, and it goes on when mended."""
    host.plan(tasks={"t-bad": [{"class": "bad_request"}]})
    worker = host.worker("alpha", "w1")
    host.ends(host.published("alpha", "owner", "t-first"), "completed")
    topic = host.topic("dlq")
    mine.tool("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=1000")
    payload = os.path.join(host.dir, "large")
    with open(payload, "w", encoding="ascii") as file:
        file.write(os.urandom(10000).hex())  # nothing that compression makes small
    bad = host.published("alpha", "owner", "t-bad", "--payload", payload, "--media-type", "text/plain")
    goods = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    for turn in goods:
        host.ends(turn, "completed", 60)
    unavailable(worker, topic, "record_too_large", 60)
    assert not host.letters() and worker.alive and len(host.calls(turn=bad)) == 1
    mine.tool("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=1048588")
    host.ends(bad, "parked", 90)
    assert len(host.calls(turn=bad)) == 1 and host.letter("executor_failed")["turn_id"] == bad


# ---- records from elsewhere ----

def test_records_that_no_baton_wrote(host, mine):
    """X2, X11, C20: 33 and more headers, null key, null value, both, by kcat, on any partition: dead letters, and the next turn runs."""
    worker = host.worker("alpha", "w1")
    topic = host.topic("handoff")
    good = host.handoff(host.turn())
    many = [(f"h{n}", b"x") for n in range(40)]
    records = [good.copy(headers=good.headers + many), Record(topic, None, good.value, good.headers), Record(topic, good.key, None, good.headers),
               Record(topic, None, None, []), Record(topic, b"", b"", []), Record(topic, good.key, b"\xff" * 300, many + many)]
    for number, record in enumerate(records):
        host.log.append(record, partition=number % 4)
    done = subprocess.run(["kcat", "-P", "-b", mine.brokers, "-t", topic, "-k", "some key", "-X", "partitioner=random"], input=b'{"role":"owner"}',
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == len(records) + 1, 30,
               lambda: f"the dead letters: {[one.header('baton-code') for one in host.log.records(host.topic('dlq'))]}\n{worker.log[-2000:]}")
    for letter in host.log.records(host.topic("dlq")):
        assert letter.header("baton-code") in ("invalid_envelope", "bad_signature", "record_too_large", "wrong_partition", "schema_unsupported"), letter.headers
    assert not host.calls() and not host.turns()
    host.ends(host.published("alpha", "owner", "t-next"), "completed")
    listed = host.run("dlq", "list", "--json").ok()
    assert len(listed.objects) == len(records) + 1 and worker.alive


def test_x11_written_with_another_partitioner(host, mine):
    """X11: a good record where another partitioner puts it is wrong_partition; on its own partition it runs."""
    host.worker("alpha", "w1")
    record = host.handoff(host.turn())
    right = partition_of(record.key, 4)
    host.log.append(record, partition=(right + 1) % 4)
    host.letter("wrong_partition")
    assert not host.calls()
    host.log.append(record, partition=right)
    host.ends(record.key.decode(), "completed")


# ---- members ----

def test_a24_three_workers_one_partition(fresh):
    """A24: one works, two are idle, all are well; when it dies another takes over."""
    host = fresh.configure({"alpha": None}, partitions=1)
    workers = [host.worker("alpha", f"w{n}") for n in range(3)]
    for worker in workers:
        waits_for(worker, "worker.ready")
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(10)]
    once(host, turns)
    names = {call["env"]["BATON_WORKER"] for call in host.calls()}
    assert len(names) <= 2 and all(worker.alive for worker in workers), names
    working = next(worker for worker in workers if f"alpha/{worker.id}" == host.calls()[-1]["env"]["BATON_WORKER"])
    working.kill()
    once(host, turns + [host.published("alpha", "owner", "t-last")])


def test_a07_offsets_carry_no_state(fresh):
    """A07: every second turn is slow: the others end, the offsets pass all of them, and nothing is kept in their metadata."""
    host = fresh.configure({"alpha": fresh.service(parallel=40)})
    host.plan(default=[{}], tasks={f"t-{n}": [{"until": host.fake + "/go"}] for n in range(0, 60, 2)})
    waits_for(host.worker("alpha", "w1"), "worker.ready")
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(60)]
    once(host, turns[1::2])
    host.called(60)
    topic = host.topic("handoff")
    wait_until(lambda: all(host.log.committed(host.group(), topic).get(part, 0) >= end for part, (_, end) in host.log.ends(topic).items()),
               20, lambda: f"the offsets to pass the slow ones: {host.log.noted(host.group(), topic)}")
    noted = host.log.noted(host.group(), topic)
    assert noted and all(size == 0 for _, size in noted.values()), noted
    open(host.fake + "/go", "w", encoding="ascii").close()
    once(host, turns)


@pytest.mark.long
@pytest.mark.seconds(300)
def test_b16_a_backlog_on_many_partitions_stays_in_the_log(fresh):
    """B16: 32 partitions with about 8 MiB each: a worker holds 1 MiB of each and a fetch more (LOG.md), whatever waits."""
    host = fresh.configure({"alpha": fresh.service(parallel=1)}, partitions=32)
    host.plan(default=[{"hang": True}])
    signer, text = host.key(host.identity), "x" * 200_000
    for n in range(32 * 40):
        host.log.append(host.handoff(host.turn(task=f"t-{n}", role="owner", payload={"media_type": "text/plain", "text": text}), signer=signer))
    worker = host.worker("alpha", "w1")
    host.called(1)
    deadline, most = time.monotonic() + 30, 0
    while time.monotonic() < deadline:  # long enough for every queue to fill as far as it ever will
        with open(f"/proc/{worker.pid}/status", encoding="ascii") as file:
            most = max(most, int(next(line for line in file if line.startswith("VmRSS")).split()[1]))
        time.sleep(0.2)
    assert most < (32 * 3 + 32) * 1024, f"{most} KiB for 256 MiB that wait"
    host.cancel(host.calls()[0]["turn"]).ok()
    worker.kill()


@pytest.mark.seconds(150)
def test_a16_a18_a19_turns_longer_than_the_poll_limit(fresh):
    """A16, A18, A19: at capacity for longer than max.poll.interval (ten sessions), and a wait behind that: still a member, each
    attempt once."""
    host = fresh.configure({"alpha": fresh.service(parallel=1, deadline="60s")})
    host.plan(default=[{}], tasks={"t-long": [{"sleep": 20, "class": "rate_limited", "retry_after_ms": 3000}, {}]})
    workers = [host.worker("alpha", "w1"), host.worker("alpha", "w2")]
    host.shared(*workers)
    turns = [host.published("alpha", "owner", "t-long")] + [host.published("alpha", "owner", f"t-{n}") for n in range(12)]
    host.called(1, turn=turns[0])
    busy = next(one for one in workers if f"alpha/{one.id}" == host.calls(turn=turns[0])[0]["env"]["BATON_WORKER"])
    before = len(busy.events("engine.moved"))
    once(host, turns, 60)
    assert len(host.calls()) == len(turns) + 1 and len(busy.events("engine.moved")) == before, busy.log
    assert "MAXPOLL" not in busy.log and "SESSTMOUT" not in busy.log, busy.log


def test_e07_killed_and_started_again_nobody_else_notices(fresh):
    """E07: the same worker id within its session: its partitions are its own again at once, what ran there goes on there, and the
    other member of its group sees no rebalance."""
    host = fresh.configure({"alpha": fresh.service(parallel=8)}, session="15s", heartbeat="1s")
    host.plan(default=[{"hang": True}, {}])
    first, other = host.worker("alpha", "w1"), host.worker("alpha", "w2")
    host.shared(first, other)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    ran = [call["turn"] for call in host.called(8) if call["env"]["BATON_WORKER"] == "alpha/w1"]
    before = [len(other.events(name)) for name in ("engine.assigned", "engine.moved")]
    assert ran, "w1 has some of the partitions"
    first.kill()
    started = time.time()
    again = host.worker("alpha", "w1")
    calls = host.called(len(ran), attempt=2)
    assert sorted(call["turn"] for call in calls) == sorted(ran) and {call["env"]["BATON_WORKER"] for call in calls} == {"alpha/w1"}
    assert max(call["t"] for call in calls) - started < 8 * SLOW, "at once: who waits out a session needs twice that"
    for turn in ran:
        host.ends(turn, "completed")
    assert [len(other.events(name)) for name in ("engine.assigned", "engine.moved")] == before, other.log[-3000:]
    assert again.alive and other.alive
    for turn in set(turns) - set(ran):
        host.cancel(turn).ok()


def test_b20_closing_commits_nothing(fresh):
    """B20: a stop with handoffs that were fetched and not taken leaves the group's offsets where they were."""
    host = fresh.configure({"alpha": fresh.service(parallel=1, grace="500ms")}, partitions=1)
    host.plan(default=[{"hang": True}, {}])
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(10)]
    worker = host.worker("alpha", "w1")
    host.called(1)
    time.sleep(1.5 * SLOW)  # an idle second commits what an emptied partition ends with
    before = host.log.committed(host.group(), host.topic("handoff"))
    worker.stop()
    after = host.log.committed(host.group(), host.topic("handoff"))
    assert before == after and list(after.values())[0] < 10, (before, after)
    host.plan(default=[{}])
    host.worker("alpha", "w1")
    for turn in turns:
        host.ends(turn, "completed", 40)
    assert len(host.calls()) == 11, "the one that the stop killed ran again, the others once"
