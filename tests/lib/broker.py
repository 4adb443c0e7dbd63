"""A Kafka broker for tests, by deploy/kafka/broker: its jars, its settings, in one place.

Two kinds. `shared()` is the one that all tests of a run fill, each under a prefix of its own: the
folder in BATON_TEST_BROKER_DIR (tests/run sets it) or the address in BATON_TEST_BROKER, else one that
the first test begins and that ends with the pytest that was called (under xdist the controller),
however that ends. `Broker(folder)` is a
test's own, to be stopped, killed and started again.
"""
import json
import os
import select
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "deploy", "kafka", "broker")
# Who may come by SASL/PLAIN, NAME with the password NAME-secret; rights are given by ACLs alone.
USERS = ("alpha", "beta", "alice", "bob", "carol", "mallory", "worker.alpha", "worker.beta", "worker.gamma", "coordinator", "operator")


def password(name):
    return name + "-secret"


class Broker:
    """The broker of a folder; it ends with the process `owner` (default: this one)."""

    def __init__(self, folder, owner=None, settings=()):
        self.dir, self.owner, self.settings = folder, owner or os.getpid(), list(settings)
        self.brokers = self.sasl = None

    def call(self, *words, stdin=""):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
        done = subprocess.run([PROGRAM, *words], input=stdin.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {done.stderr.decode()}")
        return done.stdout.decode()

    def start(self):
        """Begins it, or begins it again with its data, at the same address."""
        words = ["start", self.dir, "--while", str(self.owner)]
        if self.brokers is None:
            words += ["--port", "0", "--users", "/dev/stdin"]
            for setting in self.settings:
                words += ["--set", setting]
        self.call(*words, stdin="".join(f"{name} {password(name)}\n" for name in USERS))
        return self.look()

    again = start

    def look(self):
        answer = json.loads(self.call("status", self.dir, "--json"))
        self.brokers, self.sasl = answer["brokers"], answer["sasl"]
        return self

    @property
    def pid(self):
        return json.loads(self.call("status", self.dir, "--json"))["pid"]

    def stop(self):
        self.call("stop", self.dir)

    def kill(self):
        """SIGKILL, and no word of farewell to anybody."""
        pid = self.pid
        gone = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([gone], [], [])
        os.close(gone)

    def delete(self):
        self.call("stop", self.dir, "--delete")

    def tool(self, *words):
        """Kafka's own programs: tool("kafka-acls", "--list")."""
        return self.call("tool", self.dir, *words)


# Nobody restarts the shared one, so it need not be soon there again: it must not be taken for dead on a busy machine.
PATIENT = ("broker.session.timeout.ms=30000", "broker.heartbeat.interval.ms=1000")


def begun_for_all(folder, owner):
    """The shared one, before the programs that it serves in the queue for processors, where that is allowed."""
    one = Broker(folder, owner, PATIENT).start()
    try:
        os.setpriority(os.PRIO_PROCESS, one.pid, -10)
        for thread in os.listdir(f"/proc/{one.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -10)
    except OSError:
        pass
    return one


def owner_of_run():
    """The pytest that was called: of a worker of xdist its parent."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


_shared = None


def folder_of_run():
    return os.path.join(tempfile.gettempdir(), f"baton-broker-{os.getuid()}-{owner_of_run()}")


def shared():
    """The broker that all tests of this run fill."""
    global _shared
    if _shared is None:
        if "BATON_TEST_BROKER_DIR" in os.environ:
            _shared = Broker(os.environ["BATON_TEST_BROKER_DIR"]).look()
        elif "BATON_TEST_BROKER" in os.environ:
            _shared = Broker("")
            _shared.brokers = os.environ["BATON_TEST_BROKER"]
        else:
            _shared = begun_for_all(folder_of_run(), owner_of_run())  # one that runs already is left alone
    return _shared


def end_shared():
    """At the end of the pytest that was called: sooner than its watch would notice."""
    if os.getpid() == owner_of_run() and os.path.exists(folder_of_run()):
        Broker(folder_of_run()).delete()


if __name__ == "__main__":  # tests/run: broker.py FOLDER OWNER
    print(begun_for_all(sys.argv[1], int(sys.argv[2])).brokers)
