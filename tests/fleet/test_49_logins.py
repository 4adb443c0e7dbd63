"""TLS and SASL by configuration, on real brokers: each way to come in works for all that a host does, and what does not fit is
said as what it is (FIELD B14). Rights, and TLS that cannot come about at all, are in test_46_rights.py.
"""
import os
import subprocess

import pytest

import broker
from host import SLOW, Host
from kafkalog import load

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]

USER = "alpha"
SCRAM_SINCE = 0x020601ff  # librdkafka 2.6.1


def certificate(folder, name, common, *more):
    """A key and a certificate that vouches for itself: (key, certificate, both in one file)."""
    key, cert, both = (os.path.join(folder, f"{name}.{end}") for end in ("key", "pem", "both.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    f"/CN={common}", *more], check=True, stderr=subprocess.DEVNULL)
    os.chmod(key, 0o600)
    with open(both, "w", encoding="ascii") as file:
        for path in (key, cert):
            with open(path, encoding="ascii") as part:
                file.write(part.read())
    return key, cert, both


class Tls:
    """The brokers' certificate, and one that they know a client by."""

    def __init__(self, folder):
        _, self.ca, self.server = certificate(folder, "server", "127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        self.key, self.certificate, _ = certificate(folder, "client", USER)
        self.strange_key, self.stranger, _ = certificate(folder, "stranger", "mallory")

    def settings(self, protocol):
        """The listener that wants a login speaks TLS; USER may do everything."""
        return [f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:{protocol}",
                "ssl.keystore.type=PEM", f"ssl.keystore.location={self.server}",
                "ssl.truststore.type=PEM", f"ssl.truststore.location={self.certificate}",
                "ssl.client.auth=" + ("required" if protocol == "SSL" else "none"),
                "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                *(f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;"
                  for mechanism in ("scram-sha-256", "scram-sha-512")),
                f"super.users=User:ANONYMOUS;User:{USER};User:CN={USER}"]


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    return Tls(str(tmp_path_factory.mktemp("tls")))


@pytest.fixture(scope="module")
def listeners(tmp_path_factory, tls):
    """Brokers by the protocol of their login's listener, begun when they are first asked for."""
    begun = {}

    def of(protocol):
        if protocol not in begun:
            settings = tls.settings(protocol)
            begun[protocol] = broker.Broker(str(tmp_path_factory.mktemp(protocol.lower()) / "broker"), settings=settings).start()
            if protocol.startswith("SASL"):
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                    begun[protocol].tool("kafka-configs", "--alter", "--entity-type", "users", "--entity-name", USER, "--add-config",
                                         f"{mechanism}=[password={broker.password(USER)}]")
        return begun[protocol]

    yield of
    for one in begun.values():
        one.delete()


@pytest.fixture
def come(driver, tmp_path, monkeypatch, listeners, tls):
    """come(protocol, **kafka): a host whose topics are there, and that comes in by these settings."""
    assert driver == "kafka"
    hosts = []

    def by(protocol, mechanism=None, password=None, **kafka):
        at = listeners(protocol)
        if not hosts:
            monkeypatch.setattr(broker, "shared", lambda: at)
            hosts.append(Host(str(tmp_path), "kafka").configure({"alpha": None}))
        host = hosts[0]
        settings = {**host.log_settings()["kafka"], "brokers": [at.sasl], "security": protocol.lower(), **kafka}
        if mechanism:
            with open(os.open(os.path.join(host.dir, "secret"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
                file.write((password or broker.password(USER)) + "\n")
            settings["sasl"] = {"mechanism": mechanism, "username": USER, "password": {"file": "secret"}}
        return host.write({"alpha": None}, kafka={name: value for name, value in settings.items() if value})

    yield by
    for host in hosts:
        host.finish()


def works(host):
    """Publishing, executing, waiting, lists, provisioning and doctor, all by that login."""
    host.run("topics", "apply").ok()
    worker = host.worker("alpha", "w1")
    done = host.publish("alpha", "reviewer", "t-1", "--wait", "--timeout", "60s").ok()
    assert "completed" in done.out, done
    assert [one["state"] for one in host.turns()] == ["completed"]
    found = [one for one in host.run("doctor", "--json").objects if one["check"] == "log"]
    assert {one["level"] for one in found} == {"ok"}, found
    worker.stop()


def refused(host, codes, *words):
    """Everybody is told so soon, in the same words, and nothing is written."""
    before = len(host.log.records(host.topic("handoff")))
    for done in (host.publish("alpha", "reviewer", "t-2"), host.run("topics", "list", "--json")):
        assert done.status != 0 and done.one["code"] in codes and all(word in done.out for word in words), done
        assert done.took < 20 * SLOW
    worker = host.worker("alpha", "w2", "--drain")
    assert worker.wait(30) != 0 and all(word in worker.log for word in words), worker.log
    assert len(host.log.records(host.topic("handoff"))) == before


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_b14_a_password_over_tls(come, tls, mechanism):
    """sasl_ssl works by each mechanism; B14: with a wrong password it is refused as that, without showing it. Where the library is
    too old for what brokers of Kafka 4 want of SCRAM, the right password is refused, too, and that is said beside it."""
    host = come("SASL_SSL", mechanism, ca=tls.ca)
    if mechanism != "PLAIN" and load().rd_kafka_version() < SCRAM_SINCE:
        refused(host, ("not_permitted",), "kafka.sasl", f"User:{USER}", "from 2.6.1 on")
    else:
        works(host)
    host = come("SASL_SSL", mechanism, "wrong-CANARY", ca=tls.ca)
    refused(host, ("not_permitted",), "kafka.sasl", f"User:{USER}")
    assert "CANARY" not in host.publish("alpha", "reviewer", "t-3").out + host.all_logs()


def test_b14_a_certificate_of_our_own(come, tls):
    """ssl works with a certificate that the brokers know; without one, and with another's, that is what is said (B14: it
    is no broker that is away, and nobody waits for it)."""
    works(come("SSL", ca=tls.ca, certificate=tls.certificate, key=tls.key))
    for own in ({}, {"certificate": tls.stranger, "key": tls.strange_key}):
        host = come("SSL", ca=tls.ca, **own)
        refused(host, ("not_permitted",), "kafka.certificate", own.get("certificate", "User:ANONYMOUS"), host.settings["kafka"]["brokers"][0])


def test_b14_brokers_that_nobody_vouches_for(come, tls):
    """Another authority than the brokers' is told as that, before any password is sent."""
    refused(come("SASL_SSL", "PLAIN", ca=tls.stranger), ("bad_config",), "certificate", "kafka.ca")
