"""A Kafka cluster of several brokers on this host, each with three copies of everything.

For tests/fleet/test_48_three_brokers.py: what one broker cannot show, leaders that move under load.
"""
import base64
import concurrent.futures
import os
import socket

import broker


def free_ports(count):
    """So many ports, each with the two above it free (a broker takes three)."""
    ports = []
    while len(ports) < count:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port < 65000 and all(abs(port - other) > 3 for other in ports) and all(is_free(port + n) for n in range(3)):
            ports.append(port)
    return ports


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Cluster:
    def __init__(self, folder, size=3):
        os.makedirs(folder, exist_ok=True)
        self.dir, ports = folder, free_ports(size)
        cluster = base64.urlsafe_b64encode(b"\x01" + os.urandom(15)).decode().rstrip("=")
        voters = ",".join(f"{n + 1}@127.0.0.1:{port + 1}" for n, port in enumerate(ports))
        self.members = []
        for n, port in enumerate(ports):
            one = broker.Broker(os.path.join(folder, f"broker-{n + 1}"), settings=[
                f"node.id={n + 1}", f"controller.quorum.voters={voters}", "default.replication.factor=3", "min.insync.replicas=2",
                "offsets.topic.replication.factor=3", "transaction.state.log.replication.factor=3",
                "transaction.state.log.min.isr=2", "group.min.session.timeout.ms=1000"])
            one.words = ["--port", str(port), "--cluster", cluster]
            self.members.append(one)
        self.brokers = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.sasl = None

    def start(self):
        """All at once: the first waits for a majority."""
        def begin(one):
            words = ["start", one.dir, "--while", str(one.owner)] + one.words
            for setting in one.settings:
                words += ["--set", setting]
            one.call(*words)
            return one.look()

        with concurrent.futures.ThreadPoolExecutor(len(self.members)) as pool:
            list(pool.map(begin, self.members))
        return self

    def delete(self):
        for one in self.members:
            if os.path.exists(one.dir):
                one.delete()
