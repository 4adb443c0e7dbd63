"""Faults by chance, several at once, on workers of two services: whatever dies, each turn has one continuation.

Workers are killed, stopped for longer than a session, ended cleanly, doubled, and started with a fault point;
their stores are lost, go back to an old copy, or are another worker's; executors and guards are killed; people
publish, cancel, replay, pause, pass on; bells and member files vanish. Then everything is counted from outside
(test_91_chance_on_kafka.py: the same on a broker).

BATON_TEST_SEED repeats a choice of faults (not their timing), BATON_TEST_SECONDS says for how long.
"""
import os
import sqlite3

import pytest

from locallog import LocalLog
from storm import Storm, by_chance


class OnOneFile(Storm):
    more = ["bells", "member"]
    settings = {"local": {"path": "data/log.db", "session": "1s", "heartbeat": "150ms"}, "lease": "1s", "lease_grace": "300ms"}

    def append(self, record):
        """A frozen worker may hold the lock: it goes on when its time has come."""
        while True:
            try:
                return LocalLog(self.host.log.path, 0.5).append(record)
            except sqlite3.OperationalError:
                self.mend()

    def suffer(self, what, place):
        folder = os.path.join(self.host.log.path + ".d", "bells" if what == "bells" else "members")
        names = os.listdir(folder)
        if names:
            os.unlink(os.path.join(folder, self.chance.choice(names)))


@pytest.mark.drivers("local")
@pytest.mark.heavy
@pytest.mark.seconds(400)
@pytest.mark.parametrize("seconds", [10, pytest.param(90, marks=pytest.mark.long)])
def test_faults_by_chance(fresh, seconds):
    """E, F, I rows at once: I1 to I5 hold under faults, drawn by chance, of everything that can fail on one host."""
    by_chance(OnOneFile, fresh, seconds)
