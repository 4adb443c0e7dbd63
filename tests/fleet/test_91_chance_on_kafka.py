"""Faults by chance on a broker of its own: what test_90_chance.py does, and what only Kafka can suffer.

The broker is killed, stopped and frozen in the middle of transactions; transactional ids are taken away from
live workers; members come and go, so that the group rebalances while turns run and are passed on.
"""
import contextlib
import os
import signal
import time

import pytest

from host import SLOW
from kafkalog import Broken
from ownbroker import brokers_of_file, fresh, mine  # noqa: F401 (fixtures)
from storm import Storm, by_chance

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]


class OnABroker(Storm):
    more = ["fence", "fence", "rebalance", "rebalance", "broker kill", "broker stop", "broker freeze"]
    settings = {"lease": f"{int(1500 * SLOW)}ms", "lease_grace": f"{int(600 * SLOW)}ms"}
    broker = None  # the test's
    frozen_broker, lost_broker = None, None  # until when

    def publish(self, count):
        self.mend_log()
        super().publish(count)

    def suffer(self, what, place):
        pause = time.monotonic() + self.chance.choice([0, 0.3, 1, 4])
        if what == "fence":
            self.mend_log()
            try:
                self.host.log.fence(f"{self.host.group(place[0])}.{place[1]}")
            except Broken as error:
                self.tell("  not fenced", error)
        elif what == "rebalance":
            extra = self.host.worker(place[0], f"x{len(self.host.workers)}")
            time.sleep(self.chance.choice([0, 0.3, 1]))
            extra.process.send_signal(self.chance.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGKILL]))
        elif self.frozen_broker is None and self.lost_broker is None:
            if what == "broker freeze":
                os.kill(self.broker.pid, signal.SIGSTOP)
                self.frozen_broker = pause
            else:
                getattr(self.broker, what.split()[1])()
                self.lost_broker = pause

    def mend_broker(self, everything):
        now = time.monotonic()
        if self.frozen_broker is not None and (everything or now >= self.frozen_broker):
            os.kill(self.broker.pid, signal.SIGCONT)
            self.frozen_broker = None
            self.tell("broker goes on")
        if self.lost_broker is not None and (everything or now >= self.lost_broker):
            self.broker.again()
            self.lost_broker = None
            self.tell("broker is there again")

    def mend_log(self):
        self.mend_broker(True)

    def mend(self, everything=False):
        self.mend_broker(everything)
        super().mend(everything)


@pytest.mark.seconds(500)
@pytest.mark.parametrize("seconds", [15, pytest.param(120, marks=pytest.mark.long)])
def test_faults_by_chance_on_kafka(fresh, mine, seconds):
    """E, F, I, R rows at once: I1 to I5 hold under faults, drawn by chance, of everything that can fail on Kafka."""
    storm = type("Mine", (OnABroker,), {"broker": mine})
    try:
        by_chance(storm, fresh, seconds)
    finally:
        with contextlib.suppress(AssertionError, OSError):  # a frozen one could not be ended
            os.kill(mine.pid, signal.SIGCONT)
