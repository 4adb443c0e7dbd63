"""Where a run takes place: the folder, the broker with its proxy, the configuration, and the workers.

Called by run.py, which says what happens to them.
"""
import os
import random
import signal
import socket
import time

import broker
from host import SLOW, Host

from chaos import plan
from chaos.proxy import Proxy

EXECUTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "executor.py")
PARTITIONS = 4
CONFIGURATION = {
    "retry": {"first": "20ms", "factor": 2, "max": "300ms", "jitter": 0.2, "each_service": 3, "max_wait": "15m", "rest": "300ms"},
    "circuit": {"after": 20, "for": "1s", "probe": "200ms"},
    "roles": {role: {"chain": ["alpha", "beta"]} for role in ("owner", "reviewer", "arbiter")},
}
# Who reviews sits elsewhere than who is reviewed.
OF_RUNS = {"roles": {"owner": {"chain": ["alpha", "beta"]}, "reviewer": {"chain": ["beta", "alpha"]}, "arbiter": {"chain": ["alpha", "beta"]}}}


def free_ports(count):
    """The first of so many free ports in a row, below what the kernel gives to clients."""
    while True:
        first, held = random.randrange(15000, 32000), []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for one in held:
                one.close()


class ProxiedBroker(broker.Broker):
    """A broker with a listener of its own for who comes through the proxy, who is sent back to the proxy."""

    def __init__(self, folder, proxy, keep):
        super().__init__(folder)
        self.proxy, self.keep = proxy, ["--keep"] if keep else []

    def start(self):
        words = ["start", self.dir, "--while", str(self.owner), *self.keep]
        if self.brokers is None:
            port = free_ports(3)
            self.proxy.target = f"127.0.0.1:{port + 2}"
            own, others = f"PLAINTEXT://127.0.0.1:{port}", f"CONTROLLER://127.0.0.1:{port + 1}"
            words += ["--port", str(port), "--set", f"listeners={own},{others},PROXIED://{self.proxy.target}",
                      "--set", f"advertised.listeners={own},PROXIED://{self.proxy.address}",
                      "--set", "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT"]
        self.call(*words)
        return self.look()

    again = start


class Field:
    def __init__(self, folder, log, keep, runs=False):
        self.log, self.broker, self.proxy, self.runs = log, None, None, runs
        if log == "kafka":
            self.proxy = Proxy()
            self.broker = ProxiedBroker(os.path.join(folder, "broker"), self.proxy, keep).start()
            broker.shared = lambda: self.broker
        place = os.path.join(folder, "fleet")  # by which what runs there is known
        os.mkdir(place, 0o700)
        self.host = Host(place, log)
        self.workers = {}
        self.configure()

    def configure(self):
        kafka = self.log == "kafka"
        session, beat, lease, grace = (1500, 300, 1500, 600) if kafka else (1000, 150, 1000, 300)
        times = {name: f"{int(value * SLOW)}ms" for name, value in
                 (("session", session), ("heartbeat", beat), ("lease", lease), ("lease_grace", grace))}
        services = {name: self.service(kind) for name, kind in zip(plan.SERVICES, ("exec", "child"))}
        self.host.configure(services, partitions=PARTITIONS, **dict(CONFIGURATION, **(OF_RUNS if self.runs else {})), **times)
        if kafka:
            self.write_proxied()

    def service(self, kind):
        command = ["/usr/bin/python3", "-S", "-E", EXECUTOR] + (["child"] if kind == "child" else [])
        return self.host.service(parallel=6, deadline="3s", grace="500ms",
                                 executor={"kind": kind, "command": command, "env": {"FAKE_DIR": {"value": self.host.fake}}})

    def write_proxied(self):
        """The same configuration for who meets the broker through the proxy."""
        with open(os.path.join(self.host.dir, "baton.yaml"), encoding="utf-8") as file:
            text = file.read()
        assert text.count(self.broker.brokers) == 1
        with open(os.path.join(self.host.dir, "proxied.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace(self.broker.brokers, self.proxy.address))

    # ---- workers ----

    def start(self, place, point=None):
        options = ["--config", "proxied.yaml"] if self.proxy and place == plan.PROXIED else []
        self.workers[place] = self.host.worker(*place, *options, environment={"BATON_FAULT": point} if point else None)
        return self.workers[place]

    def alive(self, place):
        return place in self.workers and self.workers[place].alive

    def signal(self, place, number):
        self.workers[place].process.send_signal(number)

    def kill(self, place):
        self.workers[place].kill()

    def stopped(self, place):
        """Has it stopped itself, or been stopped?"""
        try:
            with open(f"/proc/{self.workers[place].pid}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "T"
        except OSError:
            return False

    def forget(self, place):
        """Deletes the store of a worker that is down."""
        for suffix in ("", "-wal", "-shm"):
            path = os.path.join(self.host.dir, "data", *place, "store.db" + suffix)
            if os.path.exists(path):
                os.unlink(path)

    def programs(self, name):
        """Processes of this run that run a program, by its short name."""
        found = []
        for pid in self.host.processes():
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    if file.read().strip() == name:
                        found.append(pid)
            except OSError:
                pass
        return sorted(found)

    # ---- the end ----

    def stop_workers(self):
        """Clean ends for all; returns what went wrong with them, in sentences."""
        troubles, deadline = [], time.monotonic() + 15 * SLOW
        for worker in self.host.workers:
            if worker.alive:
                worker.process.send_signal(signal.SIGTERM)
        while any(worker.alive for worker in self.host.workers) and time.monotonic() < deadline:
            for worker in self.host.workers:
                if worker.alive:
                    worker.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        for worker in self.host.workers:
            if worker.alive:
                troubles.append(f"the worker {worker.service}/{worker.id} (pid {worker.pid}) did not stop within {15 * SLOW:.0f} s")
                worker.kill()
        deadline = time.monotonic() + 3 * SLOW
        while self.host.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        left = self.host.describe()
        if left:
            troubles.append(f"processes were left behind: {left}")
        return troubles

    def end(self):
        """Leaves no process behind."""
        for worker in self.host.workers:
            if worker.alive:
                worker.kill()
        deadline = time.monotonic() + 10
        while self.host.processes() and time.monotonic() < deadline:
            for pid in self.host.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
        if self.broker:
            self.thaw_broker()
            self.broker.stop()
            self.proxy.close()

    def thaw_broker(self):
        try:
            os.kill(self.broker.pid, signal.SIGCONT)
        except (AssertionError, ProcessLookupError):  # it does not run
            pass
