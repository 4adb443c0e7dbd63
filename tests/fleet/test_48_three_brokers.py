"""A cluster of three brokers with three copies: leaders move under load, and each turn still ends once (E12, B rows)."""
import time

import pytest

import broker
from cluster import Cluster
from host import SLOW, Host
from ownbroker import once

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy, pytest.mark.long]


@pytest.fixture
def cluster(tmp_path_factory):
    one = Cluster(str(tmp_path_factory.mktemp("three")))
    yield one.start()
    one.delete()


@pytest.fixture
def host(driver, cluster, tmp_path, monkeypatch):
    assert driver == "kafka"
    monkeypatch.setattr(broker, "shared", lambda: cluster)
    one = Host(str(tmp_path), "kafka").configure({"alpha": None, "beta": None}, session="3s", heartbeat="500ms")
    yield one
    one.finish()


@pytest.mark.seconds(400)
def test_e12_a_broker_of_three_is_killed_under_load(host, cluster):
    """E12, B02: each broker in turn, coordinators among them, is killed while turns come, end, fail and are passed on, and started again; a stop is one, too."""
    host.plan(default=[{"sleep": 0.05}], tasks={
        **{f"t-{n}": [{"class": "unavailable"}, {"sleep": 0.2}] for n in range(0, 400, 7)},
        **{f"t-{n}": [{"sleep": 2}] for n in range(3, 400, 20)}})
    workers = [host.worker("alpha", "w1"), host.worker("alpha", "w2")]
    turns, number = [], 0
    for one in cluster.members + cluster.members[:1]:
        for turn in range(20):
            turns.append(host.published("alpha", ("owner", "reviewer", "arbiter")[number % 3], f"t-{number}"))
            number += 1
            if turn == 8:
                (one.stop if one is cluster.members[1] else one.kill)()
        time.sleep(2 * SLOW)
        one.start()
        time.sleep(2 * SLOW)  # in sync again before the next one goes
    once(host, turns, 90)
    for worker in workers:
        assert worker.alive, worker.log
    assert not [one for worker in workers for one in worker.events("kafka.commit_hangs")], "markers find a leader where there are copies"
