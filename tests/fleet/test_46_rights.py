"""Passwords and rights on a real broker with SASL and its standard authorizer (FIELD B13, B14, RECORD X27).

Every principal has exactly the rights that `topics plan --acl` prints, and comes under its own name.
"""
import os
import socket
import ssl
import threading
import time

import pytest

import acls
import broker
from host import SLOW, wait_until
from kafkalog import Broken, KafkaLog
from ownbroker import brokers_of_file, fresh, mine, once, waits_for  # noqa: F401 (fixtures)
from proof import Record

pytestmark = [pytest.mark.drivers("kafka"), pytest.mark.heavy]

CHAIN = {"reviewer": {"chain": ["alpha", "beta"]}}
CAROL = "kind: person\ncreate: {'*': [owner, reviewer, arbiter]}\noperate: ['*']\n"


class Hosts:
    """One folder, and a configuration of it for everybody who comes: host.seen_by(NAME)."""

    def __init__(self, host):
        self.host, self.paths = host, {}

    def environment(self, name, password=None, **kafka):
        """The environment under which a command comes to the broker as that user."""
        key = (name, password, str(kafka))
        if key not in self.paths:
            number = len(self.paths)
            secret = os.path.join(self.host.dir, f"secret-{number}")
            with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.write((password or broker.password(name)) + "\n")
            first = os.path.join(self.host.dir, "baton.yaml")
            with open(first, encoding="utf-8") as file:
                kept = file.read()
            settings = dict(self.host.settings["kafka"], brokers=[broker.shared().sasl], security="sasl_plaintext",
                            sasl={"mechanism": "PLAIN", "username": name, "password": {"file": os.path.basename(secret)}})
            settings.update(kafka)
            before = dict(self.host.settings)
            rest = {one: value for one, value in before.items() if one not in ("version", "prefix", "log", "kafka", "services")}
            rest["identity"] = name
            self.host.write(before["services"], kafka=settings, **rest)
            path = os.path.join(self.host.dir, f"as-{number}.yaml")
            os.rename(first, path)
            with open(first, "w", encoding="utf-8") as file:
                file.write(kept)
            self.host.settings = before
            self.paths[key] = {"BATON_CONFIG": path}
        return self.paths[key]

    def run(self, name, *words, **named):
        return self.host.run(*words, environment=self.environment(name), **named)

    def worker(self, service, worker_id="w1", *options):
        return self.host.worker(service, worker_id, *options, environment=self.environment(service))

    def publish(self, name, service, role, task, *more):
        return self.run(name, "publish", "--service", service, "--role", role, "--task", task, "--json", *more)


@pytest.fixture
def seen(fresh):
    """alpha and beta with the chain alpha, beta; carol creates and operates; exactly the printed rights."""
    host = fresh.configure({"alpha": None, "beta": None}, roles=CHAIN)
    host.principal("carol", CAROL)
    hosts = Hosts(host)
    hosts.rights = host.run("topics", "plan", "--acl", "--json").ok().objects
    acls.give(host.brokers, hosts.rights)
    yield hosts
    for worker in host.workers:
        if worker.alive:
            worker.kill()


def told(hosts, topic, who, code="not_permitted", words=("'Write'",), verbs=("doctor", "services")):
    """Waits until each of the commands names the cause: the topic, what is missing, and to whom."""
    def missing():
        for verb in verbs:
            done = hosts.run("alpha", verb, "--json")
            found = [one for row in done.objects for one in row["blocked"]] if verb == "services" else done.objects
            texts = [one["cause"] if verb == "services" else one["text"] for one in found if one["code"] == code]
            if not any(all(word in text for word in (topic, who, *words)) for text in texts):
                return f"{verb} does not name {topic}: {done}"
        return None

    wait_until(lambda: missing() is None, 30, lambda: f"{missing()}\n{hosts.host.all_logs()[-3000:]}")


def quiet(hosts):
    """Waits until nobody says any more that something cannot be written."""
    wait_until(lambda: not any("cannot write" in one["text"] for one in hosts.run("alpha", "doctor", "--json").objects), 30,
               lambda: f"nothing to be blocked: {hosts.run('alpha', 'doctor')}\n{hosts.host.all_logs()[-3000:]}")
    assert not any(row["blocked"] for row in hosts.run("alpha", "services", "--json").objects)


def right(hosts, principal, name, operation):
    found, = [one for one in hosts.rights if (one["principal"], one["name"], one["operation"]) ==
              ("User:" + principal, name, operation)]
    return found


# ---- a whole run with exactly these rights ----

def test_x27_the_printed_rights_are_enough(seen):
    """X27: publisher, delegating workers, waiting, cancel, replay, lists, trimming: nothing asks for more."""
    host = seen.host
    host.plan(tasks={"t-passed": [{"class": "auth"}, {}], "t-parked": [{"class": "bad_request"}, {}], "t-hang": [{"hang": True}, {}]})
    workers = [seen.worker("alpha"), seen.worker("beta")]
    done = seen.publish("carol", "alpha", "reviewer", "t-passed", "--wait", "--timeout", "30s").ok()
    passed = done.objects[-1]["turn_id"]
    shown = seen.run("carol", "turns", "show", passed, "--json").ok().one
    assert shown["state"] == "completed" and [one["service"] for one in shown["attempts"]] == ["alpha", "beta"], shown
    parked = seen.publish("carol", "alpha", "owner", "t-parked").ok().one["turn_id"]
    host.ends(parked, "parked")
    assert [one["turn_id"] for one in seen.run("carol", "dlq", "list", "--json").ok().objects] == [parked]
    seen.run("carol", "dlq", "replay", parked, "--json").ok()
    host.ends(parked, "completed")
    hanging = seen.publish("carol", "beta", "arbiter", "t-hang").ok().one["turn_id"]
    host.called(1, turn=hanging)
    seen.run("carol", "turns", "cancel", hanging, "--reason", "no", "--json").ok()
    host.ends(hanging, "cancelled")
    services = seen.run("carol", "services", "--json").ok()
    assert "w1" in services.out and "not_permitted" not in services.out, services
    assert seen.run("carol", "turns", "list", "--json").ok().objects
    looked = [one["text"] for one in seen.run("carol", "doctor", "--json").objects if one["check"] == "rights"]
    assert "3 of 3 groups may be looked at from here" in looked, looked  # of alpha, of beta, of coordinators
    seen.run("carol", "services", "pause", "beta", "--reason", "a look", "--json").ok()
    seen.run("carol", "services", "resume", "beta", "--json").ok()
    workers[0].stop()
    workers[0] = seen.worker("alpha")  # a start trims what was taken in before
    wait_until(lambda: any(low > 0 for low, _ in host.log.ends(host.topic("handoff")).values()), 60,
               lambda: f"records to be trimmed: {host.log.ends(host.topic('handoff'))}\n{workers[0].log[-3000:]}")
    for worker in workers:
        assert worker.alive and "has not the right" not in worker.log and "authorization" not in worker.log.lower(), worker.log


# ---- what the rights keep out ----

def test_x27_beta_gets_nothing_of_alpha(seen):
    """X27: B's principal reads handoff.A, writes turns.A, joins A's group, takes A's transactional id: the broker refuses."""
    host = seen.host
    record = Record(host.topic("turns"), b"k" * 32, b"{}", [])
    beta = KafkaLog(broker.shared().sasl, host.prefix, patience=5, **{
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "beta", "sasl.password": broker.password("beta")})
    with pytest.raises(Broken, match="(?i)authorization"):
        beta.append(record, partition=0)
    assert not host.log.records(host.topic("turns"))
    with pytest.raises(Broken, match="(?i)authorization"):
        beta.records(host.topic("handoff"))
    # Baton itself, as beta, in the place of alpha: the message names right, resource and principal.
    worker = host.worker("alpha", "w9", environment=seen.environment("beta"))
    assert worker.wait(30) == 4, worker.log
    assert "User:beta" in worker.log and "not_permitted" in worker.log, worker.log
    assert host.topic("turns") in worker.log, "what it may write to as somebody who passes turns it may look at"


def test_x27_beta_neither_joins_alphas_group_nor_takes_its_transactional_id(seen):
    """X27: even where beta may read and write every topic of alpha: the broker refuses the id, then the group, each named."""
    host = seen.host
    owned = [dict(one, principal="User:beta") for one in seen.rights if one["principal"] == "User:alpha"]
    steps = (("topic", "transactional-id", "'Write'"), ("transactional-id", "group", "'Read'"))
    host.published("alpha", "owner", "t-1")
    for given, refused, operation in steps:
        acls.give(host.brokers, [one for one in owned if one["resource"] == given])
        worker = host.worker("alpha", "w9", environment=seen.environment("beta"))
        assert worker.wait(30) == 4, worker.log
        assert all(word in worker.log for word in ("User:beta", operation, refused.replace("-", " ") + " " + host.group())), worker.log
    assert not host.calls() and not host.log.committed(host.group(), host.topic("handoff")) and not host.log.records(host.topic("turns"))


@pytest.mark.parametrize("operation, resource", [("Read", "group"), ("Write", "transactional-id")])
def test_x27_b13_group_and_transactional_id(seen, operation, resource):
    """X27, B13: without that one right a worker ends and names it."""
    host = seen.host
    name = host.group() + ("." if resource == "transactional-id" else "")
    taken = [one for one in seen.rights if one["principal"] == "User:alpha" and one["name"] == name and one["resource"] == resource and
             one["operation"] in (operation, "Describe")]
    acls.take(host.brokers, *taken)
    worker = seen.worker("alpha")
    assert worker.wait(30) == 4, worker.log
    assert "User:alpha" in worker.log and f"'{operation}'" in worker.log and host.group() in worker.log, worker.log
    assert resource.replace("-", " ") in worker.log, worker.log


# ---- one right is missing ----

def test_b13_no_write_on_the_dead_letter_topic(seen):
    """B13, D02: named; the parked turn waits, others go on, and it goes on by itself once the right is there."""
    host = seen.host
    missing = right(seen, "alpha", host.topic("dlq"), "Write")
    describe = right(seen, "alpha", host.topic("dlq"), "DescribeConfigs")
    host.plan(tasks={"t-bad": [{"class": "bad_request"}]})
    worker = seen.worker("alpha")
    waits_for(worker, "worker.ready")
    acls.take(host.brokers, missing)
    bad = host.published("alpha", "owner", "t-bad")
    good = [host.published("alpha", "owner", f"t-{n}") for n in range(12)]
    for turn in good:
        host.ends(turn, "completed")
    named = wait_until(lambda: [one for one in worker.events("engine.target_unavailable") if one["topic"] == host.topic("dlq")], 20,
                       lambda: f"the missing right\n{worker.log[-3000:]}")[0]
    assert named["code"] == "not_permitted" and "'Write'" in named["error"] and "User:alpha" in named["error"], named
    assert host.state(bad) in ("running", "queued") and not host.letters()
    told(seen, host.topic("dlq"), "User:alpha")
    acls.give(host.brokers, [missing, describe])
    host.ends(bad, "parked", 60)
    assert len(host.calls(turn=bad)) == 1 and host.letter("executor_failed")["turn_id"] == bad and worker.alive
    quiet(seen)


def test_b13_no_write_on_the_turn_log(seen):
    """B13: nothing is decided without it, so nothing runs; the worker's log and `doctor` of its host name right, topic and principal,
    and it goes on by itself once the right is there, with an end that fell into that time and a partition that came in it."""
    host = seen.host
    missing = right(seen, "alpha", host.topic("turns"), "Write")
    host.plan(tasks={"t-runs": [{"until": host.fake + "/go"}]})
    worker = seen.worker("alpha")
    waits_for(worker, "worker.ready")
    runs = host.published("alpha", "owner", "t-runs")
    host.called(1, turn=runs)
    acls.take(host.brokers, missing)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(4)]
    open(host.fake + "/go", "w", encoding="ascii").close()
    named = wait_until(lambda: [one for one in worker.events("engine.waits") if one["code"] == "not_permitted"], 20,
                       lambda: f"the missing right\n{worker.log[-3000:]}")[0]
    assert all(word in named["error"] for word in (host.topic("turns"), "'Write'", "User:alpha")), named
    told(seen, host.topic("turns"), "User:alpha", verbs=("doctor",))
    other = seen.worker("alpha", "w2")  # its partitions cannot be taken either
    lines = len(worker.log.splitlines())
    time.sleep(3 * SLOW)
    assert worker.alive and len(worker.log.splitlines()) - lines < 100, f"a loop\n{worker.log[-3000:]}"
    assert not host.calls(turn=turns[0]) and host.state(runs) == "running"
    acls.give(host.brokers, [missing, right(seen, "alpha", host.topic("turns"), "DescribeConfigs")])
    if not other.alive:  # it may not begin with a turn log that it cannot write
        assert other.wait(1) == 4 and host.topic("turns") in other.log, other.log
    once(host, [runs, *turns])
    quiet(seen)


@pytest.mark.parametrize("kind", ["dlq", "outcomes"])
def test_b13_a_topic_that_takes_too_little(seen, kind):
    """B13, C05: what is too large for its topic waits, with the cause in `doctor` and `services`, and goes on by itself."""
    host = seen.host
    topic = host.topic(kind, "alpha" if kind == "dlq" else None)
    host.plan(default=[{"class": "bad_request"}])
    worker = seen.worker("alpha")
    waits_for(worker, "worker.ready")

    def limit(size):
        broker.shared().tool("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config",
                             f"max.message.bytes={size}")

    limit(200)
    turn = host.published("alpha", "owner", "t-1")
    told(seen, topic, "", "record_too_large", words=())
    assert not host.letters() and host.state(turn) in ("running", "queued")
    limit(1048588)
    host.ends(turn, "parked", 60)
    assert len(host.calls(turn=turn)) == 1 and worker.alive
    quiet(seen)


def test_b13_no_write_on_the_fallbacks_topic(seen):
    """B13: what cannot be delegated takes the next action, or waits; the others are delegated or done."""
    host = seen.host
    missing = right(seen, "alpha", host.topic("handoff", "beta"), "Write")
    host.plan(tasks={"t-auth": [{"class": "auth"}, {}]})
    worker = seen.worker("alpha")
    waits_for(worker, "worker.ready")
    acls.take(host.brokers, missing)
    turn = host.published("alpha", "reviewer", "t-auth")
    good = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    for one in good:
        host.ends(one, "completed")
    named = wait_until(lambda: [one for one in worker.events("engine.target_unavailable") if "beta" in one["topic"]], 20,
                       lambda: f"the missing right\n{worker.log[-3000:]}")[0]
    assert named["code"] == "not_permitted" and "'Write'" in named["error"] and host.topic("handoff", "beta") in named["error"], named
    wait_until(lambda: host.state(turn) in ("parked", "queued", "delegated"), 40, lambda: f"a next action: {host.state(turn)}")
    assert {call["role"] for call in host.calls(turn=turn)} == {"reviewer"} and worker.alive


@pytest.mark.long
def test_b13_no_write_on_outcomes(seen):
    """B13: no end is recorded without its outcome; nothing is lost, and it goes on when the right is there."""
    host = seen.host
    missing = right(seen, "alpha", host.topic("outcomes", None), "Write")
    worker = seen.worker("alpha")
    waits_for(worker, "worker.ready")
    acls.take(host.brokers, missing)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(5)]
    named = wait_until(lambda: worker.events("engine.target_unavailable"), 20, lambda: f"the missing right\n{worker.log[-3000:]}")[0]
    assert named["topic"] == host.topic("outcomes", None) and "'Write'" in named["error"] and "User:alpha" in named["error"], named
    assert not any(host.state(turn) == "completed" for turn in turns)
    acls.give(host.brokers, [missing])
    once(host, turns)
    assert len(host.calls()) == 5


def test_b13_without_describe_configs_it_is_named(seen):
    """B13: a topic whose settings may not be looked at is not used unseen."""
    host = seen.host
    acls.take(host.brokers, right(seen, "alpha", host.topic("turns"), "DescribeConfigs"))
    worker = seen.worker("alpha")
    assert worker.wait(30) == 4, worker.log
    assert "'DescribeConfigs'" in worker.log and host.topic("turns") in worker.log and "User:alpha" in worker.log, worker.log


def test_b13_a_publisher_without_the_right(seen):
    """B13: refused at once, named, and nothing is written."""
    host = seen.host
    acls.take(host.brokers, *[one for one in seen.rights if one["principal"] == "User:carol" and one["operation"] == "Write" and
                              "handoff" in one["name"]])
    done = seen.publish("carol", "alpha", "owner", "t-1")
    done.refused("not_permitted", 4)
    assert host.topic("handoff") in done.out and "User:carol" in done.out and "Write" in done.out, done
    assert not host.log.records(host.topic("handoff")) and done.took < 10 * SLOW


# ---- passwords, TLS ----

def test_b14_a_wrong_password_ends_it_at_once(seen):
    """B14: its own code and text, at once, for worker, publisher, doctor; the password is in none of it."""
    host, wrong = seen.host, seen.environment("alpha", "wrong-CANARY")
    worker = host.worker("alpha", "w1", environment=wrong)
    started = time.monotonic()
    assert worker.wait(15) == 4, worker.log
    assert time.monotonic() - started < 10 * SLOW
    done = host.run("publish", "--service", "alpha", "--role", "owner", "--task", "t", "--json",
                    environment=seen.environment("carol", "wrong-CANARY")).refused("not_permitted", 4)
    doctor = host.run("doctor", "--json", environment=wrong)
    found = next(one for one in doctor.objects if one["check"] == "log")
    assert found["code"] == "not_permitted", doctor
    for text in (worker.log, done.out + done.err, doctor.out + doctor.err):
        assert "password" in text and "kafka.sasl" in text and "CANARY" not in text, text
        assert broker.shared().sasl in text, text


class Tls:
    """Something that speaks TLS with a certificate that nobody knows."""

    def __init__(self, folder):
        key, self.ca = os.path.join(folder, "tls.key"), os.path.join(folder, "tls.pem")
        assert os.system(f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {self.ca} -days 2 -subj /CN=127.0.0.1"
                         f" -addext subjectAltName=IP:127.0.0.1 2>/dev/null") == 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"

        def serve():
            while True:
                try:
                    connection, _ = self.server.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(connection, server_side=True) as one:
                        one.recv(1)
                except OSError:
                    connection.close()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()


def test_b14_tls_that_cannot_come_about(seen, tmp_path):
    """B14: an unknown authority, plain text to a TLS port, TLS to a plain port: each says what it is."""
    host, tls = seen.host, Tls(str(tmp_path))
    try:
        unknown = host.run("topics", "list", "--json", environment=seen.environment("alpha", brokers=[tls.address], security="sasl_ssl"))
        assert unknown.status in (2, 8) and "certificate" in unknown.out and tls.address in unknown.out and unknown.took < 10 * SLOW, unknown
        plain = host.run("topics", "list", "--json", environment=seen.environment("alpha", brokers=[tls.address]))
        assert plain.status == 8 and tls.address in plain.out and "kafka.security" in plain.out, plain
        reverse = host.run("topics", "list", "--json", environment=seen.environment("alpha", security="sasl_ssl"))
        assert reverse.status in (2, 8) and "kafka.security" in reverse.out and broker.shared().sasl in reverse.out, reverse
    finally:
        tls.server.shutdown(socket.SHUT_RDWR)
        tls.server.close()
