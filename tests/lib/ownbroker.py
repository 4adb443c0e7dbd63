"""A Kafka broker of a test file's own, and hosts on it: for tests that stop, kill and mistreat it.

Imported by tests/fleet/test_45_broker.py, test_46_rights.py, test_47_field_b.py and
test_91_chance_on_kafka.py: `mine` is the broker, running when a test begins, whatever the one before
did; `host` is a host on it.
"""
import os
import time

import pytest

import broker
from host import SLOW, Host, wait_until


@pytest.fixture(scope="module")
def brokers_of_file(tmp_path_factory):
    one = broker.Broker(str(tmp_path_factory.mktemp("own") / "broker"), os.getpid())
    yield one
    if os.path.exists(one.dir):
        one.delete()


@pytest.fixture
def mine(driver, brokers_of_file):
    """The broker of this file, which runs."""
    assert driver == "kafka"
    yield brokers_of_file.start()
    brokers_of_file.start()


@pytest.fixture
def fresh(mine, tmp_path, monkeypatch):
    """A host on it as `baton init` leaves it."""
    monkeypatch.setattr(broker, "shared", lambda: mine)
    one = Host(str(tmp_path), "kafka")
    yield one
    mine.start()
    one.finish()


@pytest.fixture
def host(fresh):
    """A host with the services alpha and beta, both of every role."""
    return fresh.configure({"alpha": None, "beta": None})


def once(host, turns, seconds=60):
    """Every turn has ended completed, with one end, and its executor calls are those of its attempts."""
    for turn in turns:
        host.ends(turn, "completed", seconds)
    ends = [one.json() for one in host.log.records(host.topic("outcomes", None)) if one.json()["event"] == "completed"]
    assert sorted(one["turn_id"] for one in ends) == sorted(turns), "one end for each turn, and none for others"
    for turn in turns:
        attempts = host.show(turn)["attempts"]
        called = sorted(call["attempt"] for call in host.calls(turn=turn))
        assert len(set(called)) == len(called), f"an attempt ran twice: {host.calls(turn=turn)}"
        numbers = [one["no"] for one in attempts]
        assert numbers == list(range(1, len(attempts) + 1)) and set(called) <= set(numbers), (attempts, called)
        unseen = [one for one in attempts if one["no"] not in called]
        assert all(one["class"] == "lost" for one in unseen), f"an attempt that never ran: {attempts}, {called}"
        assert attempts[-1]["state"] == "completed" and all(one["state"] == "failed" for one in attempts[:-1]), attempts


def away(mine, seconds, how="stop"):
    """The broker is gone for so long, and then there again."""
    getattr(mine, how)()
    time.sleep(seconds * SLOW)
    mine.again()


def troubles(worker):
    """What its log has of warnings and errors."""
    return [one for one in worker.events() if one.get("level") in ("warn", "error")]


def waits_for(worker, *events, seconds=20):
    """Until the worker has said one of these."""
    return wait_until(lambda: [one for name in events for one in worker.events(name)], seconds,
                      lambda: f"{events} of the worker, which says:\n{worker.log[-3000:]}")
