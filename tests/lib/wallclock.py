"""Wall clocks that jump: a host's own clock for programs that are started with its environment. Called by fleet tests.

Only CLOCK_REALTIME is wrong, and waits that go by it (wallclock.c is preloaded); the monotonic clocks go on as they are.
"""
import os
import struct
import subprocess

import pytest

HOUR, DAY = 3600, 24 * 3600
MONTH = 30 * DAY


class Clock:
    def __init__(self, folder, name, seconds=0):
        if os.environ.get("BATON_TEST_PRESET", "") in ("asan", "tsan"):
            pytest.skip("a sanitizer's runtime must be loaded first")
        self.path, library = os.path.join(folder, f"clock-{name}"), os.path.join(folder, "wallclock.so")
        if not os.path.exists(library):
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wallclock.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": library, "WALL_OFFSET": self.path}
        self.jump(seconds)

    def jump(self, seconds):
        """It is so many seconds off from now on."""
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(handle, struct.pack("=q", seconds), 0)
        os.close(handle)
        return self
