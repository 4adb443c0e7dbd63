"""A worker as the first process of a container: no shell between it and its signals (FIELD B17)."""
import os
import shutil
import signal
import subprocess

import pytest

from host import binary, wait_until

pytestmark = pytest.mark.heavy

# What makes a container's processes: a namespace in which the worker is process 1, with its own /proc.
ALONE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture
def contained(host, monkeypatch):
    """host, whose workers begin as process 1."""
    if not shutil.which("unshare") or subprocess.run(ALONE + ["true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this machine lets nobody make a process namespace")
    plain = subprocess.Popen
    monkeypatch.setattr("host.subprocess.Popen", lambda argv, **more: plain(ALONE + argv if argv[:2] == [binary(), "worker"] else argv, **more))
    return host


def child_of(worker):
    """The worker as this machine knows it: what unshare began."""
    def begun():
        with open(f"/proc/{worker.pid}/task/{worker.pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    return wait_until(begun, what="the worker to begin")[0]


def test_b17_the_first_process_drains_when_it_is_told_to_stop(contained):
    """B17: SIGTERM reaches it though it is process 1; what runs ends with its verdict, nothing is killed, nothing is left."""
    host, go = contained, os.path.join(contained.fake, "go")
    host.plan(default=[{"until": go}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.called(1)
    with open(f"/proc/{child_of(worker)}/status", encoding="ascii") as file:
        assert next(line for line in file if line.startswith("NSpid:")).split()[-1] == "1"
    waiting = host.published("alpha", "owner", "t-2")
    host.called(2)
    os.kill(child_of(worker), signal.SIGTERM)
    wait_until(lambda: worker.events("worker.stopping"), what="the stop to be heard")
    later = host.published("alpha", "owner", "t-3")
    open(go, "w", encoding="ascii").close()
    assert worker.wait() == 0, worker.log
    assert host.state(turn) == host.state(waiting) == "completed" and len(host.calls()) == 2
    assert host.state(later) is None, "who stops takes nothing more"
    assert not host.processes(), host.describe()
