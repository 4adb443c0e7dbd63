"""deploy/kafka/broker: what people, quickstart and these tests start Kafka with."""
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

import acls
from broker import PROGRAM, password
from host import wait_until
from kafkalog import Broken, KafkaLog
from proof import Record

pytestmark = pytest.mark.heavy


def call(*words):
    return subprocess.run([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)


def test_what_is_written_outlives_kill_9_and_a_stop(own_broker):
    own_broker.start()
    first, pid, log = own_broker.brokers, own_broker.pid, KafkaLog(own_broker.brokers, "p")
    log.create("p.x", 1)
    log.append(Record("p.x", b"k", b"1", [("h", None)]))
    assert own_broker.start().pid == pid, "one that runs is left alone"
    own_broker.kill()
    assert call("status", own_broker.dir).returncode == 3
    assert own_broker.again().brokers == first and own_broker.pid != pid
    log.append(Record("p.x", b"k", b"2", []))
    own_broker.stop()
    own_broker.again()
    assert [(one.value, one.headers) for one in log.records("p.x")] == [(b"1", [("h", None)]), (b"2", [])]


def test_users_may_do_what_acls_allow_and_no_more(own_broker):
    own_broker.start()
    all_of_it = KafkaLog(own_broker.brokers, "p")
    all_of_it.create("p.x", 1)
    acls.give(own_broker.brokers, [{"principal": "User:alice", "resource": "topic", "pattern": "prefixed", "name": "p.", "operation": "Read"}])
    who = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": password("alice")}
    alice = KafkaLog(own_broker.sasl, "p", **who)
    assert alice.topics() == ["p.x"] and alice.records("p.x") == []
    with pytest.raises(Broken, match="authorization"):
        alice.append(Record("p.x", b"k", b"v", []), partition=0)
    assert "User:alice" in own_broker.tool("kafka-acls", "--list")
    wrong = KafkaLog(own_broker.sasl, "p", patience=2, **dict(who, **{"sasl.password": "wrong"}))
    with pytest.raises(Broken):
        wrong.topics()


def test_it_is_gone_with_the_process_that_wanted_it(own_broker):
    """Also after kill -9 of that process; its folder is deleted."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        own_broker.owner = owner.pid
        pid = own_broker.start().pid
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") and not os.path.exists(own_broker.dir), 30, "broker and folder to be gone")


def test_it_takes_no_foreign_folder_port_or_process(own_broker, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine").write_text("mine")
    done = call("start", foreign, "--port", 0)
    assert done.returncode == 1 and "holds something else" in done.stderr, done
    assert call("stop", foreign, "--delete").returncode == 1 and (foreign / "mine").exists()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = call("start", own_broker.dir, "--port", port)
        assert done.returncode == 1 and str(port) in done.stderr and "--port" in done.stderr, done
    with open(os.path.join(own_broker.dir, "pid"), "w", encoding="ascii") as file:
        file.write(f"{os.getpid()} 1\n")  # a pid that the kernel gave to somebody else since
    assert call("stop", own_broker.dir).returncode == 0  # and this process goes on
    answer = call("status", own_broker.dir, "--json")
    assert answer.returncode == 3 and json.loads(answer.stdout)["state"] == "stopped", answer


@pytest.mark.parametrize("words", [["nonsense"], ["start", "--nonsense"], ["start", "--port", "x"], ["start", "a", "b"], []])
def test_usage_mistakes_end_with_2(words):
    assert call(*words).returncode == 2


def test_help_names_every_verb():
    done = call("--help")
    assert done.returncode == 0 and all(word in done.stdout for word in ("start", "stop", "status", "--users", "--while", "example:")), done
