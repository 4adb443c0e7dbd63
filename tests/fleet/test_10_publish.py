"""Publishing: an explicit role, a signed turn, closed errors, nothing half done."""
import os
import re

import pytest

import proof
from host import SLOW, wait_until


def handoffs(host, service="alpha"):
    return host.log.records(host.topic("handoff", service))


def untouched(host):
    """Nothing was published anywhere."""
    return not any(host.log.records(name) for name in host.log.topics())


def test_a_publish_is_one_signed_record(host):
    """The value is the turn; its id is the hash of its identity; its proof verifies (RECORD section 2)."""
    done = host.publish("alpha", "reviewer", "T-41/x#1:2", "--rev", "7", "--intent", "review", "--summary", "Review it").ok()
    assert done.one["status"] == "queued"
    record, = handoffs(host)
    turn = record.json()
    assert record.key.decode() == turn["turn_id"] == done.one["turn_id"] == proof.turn_id(host.fleet, turn)
    assert (turn["role"], turn["service"], turn["task_id"], turn["task_rev"], turn["intent"], turn["summary"]) == \
        ("reviewer", "alpha", "T-41/x#1:2", 7, "review", "Review it")
    assert turn["origin"] == host.identity and turn["version"] == 1 and turn["run_id"] == "" and turn["epoch"] == 0
    assert [name for name, _ in record.headers].count("baton-sig") == 1
    number, key_id, signature = record.header("baton-sig").split(" ")
    principal, public = proof.public_keys(os.path.join(host.dir, "trust"))[key_id]
    assert number == "1" and principal == host.identity and re.fullmatch("[0-9a-f]{128}", signature)
    proof.verify(public, host.fleet, "turn", turn["turn_id"], record.value, signature)
    assert record.partition == proof.partition_of(turn["turn_id"], host.log.partitions(record.topic))


def test_payload_from_a_file_and_from_standard_input(host, tmp_path):
    path = tmp_path / "fix.diff"
    path.write_bytes("äöü\r\n--- a\n".encode())
    host.publish("alpha", "owner", "t-1", "--payload", str(path)).ok()
    host.publish("alpha", "owner", "t-2", "--payload", "-", stdin=b"\x00\xff\xfe binary").ok()
    values = {record.json()["task_id"]: record.json()["payload"] for record in handoffs(host)}
    assert proof.decode_payload(values["t-1"]) == path.read_bytes()
    assert proof.decode_payload(values["t-2"]) == b"\x00\xff\xfe binary"
    host.drain()
    seen = {call["task"]: __import__("json").loads(call["stdin"]) for call in host.calls()}
    assert set(seen) == {"t-1", "t-2"}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("role", ["", "Owner", "OWNER", " owner", "owner ", "human", "owner,reviewer", "reviewer\n",
                                  "own" * 100])
def test_r23_a_role_that_is_none_is_refused(host, role):
    """R-23, R-15: roles are owner, reviewer, arbiter; nothing is guessed."""
    done = host.publish("alpha", role, "t-1")
    assert done.status == 2, done
    assert untouched(host)


@pytest.mark.drivers("local")
def test_r20_the_role_is_never_defaulted(host):
    done = host.run("publish", "--service", "alpha", "--task", "t-1", "--json")
    assert done.status == 2, done
    assert untouched(host)


@pytest.mark.drivers("local")
def test_an_unknown_service_is_refused(host):
    """unknown_service, exit 5; the error lists the services that there are."""
    done = host.publish("gamma", "owner", "t-1").refused("unknown_service", 5)
    assert "alpha" in done.out + done.err and "beta" in done.out + done.err, done
    assert untouched(host)


@pytest.mark.drivers("local")
@pytest.mark.parametrize("name", ["Alpha", "ALPHA", "alpha ", "alpha\u200b", "^alpha.*", "alpha,beta", "../alpha",
                                  "alpha\n", "\x1b[2J", "coordinator", "a.b", ""])
def test_i11_a_service_is_matched_exactly(host, name):
    """I11, H05: never by loose text; what is no name at all is bad_service."""
    done = host.publish(name, "owner", "t-1")
    assert done.status in (2, 5) and done.code in ("bad_service", "unknown_service", "invalid_request"), done
    assert "\x1b" not in done.out + done.err
    assert untouched(host)


@pytest.mark.drivers("local")
def test_r06_a_worker_serves_one_service_by_name(host):
    """R-06: no pattern, no list, no second service."""
    for name in ("^baton.*", "alpha,beta", "*", ""):
        worker = host.worker("alpha", None)  # the process below must fail, this one must not mind
        done = host.run("worker", "--service", name, "--json", seconds=10)
        assert done.status == 2, done
        worker.stop()
    done = host.run("worker", "--service", "alpha", "--service", "beta", "--json", seconds=10)
    assert done.status == 2, done


@pytest.mark.drivers("local")
@pytest.mark.parametrize("task", ["", "a b", "a\nb", "ä", "x" * 65, "\x1b[2J", "a\u202e"])
def test_task_ids_have_a_grammar(host, task):
    done = host.publish("alpha", "owner", task)
    assert done.status == 2, done
    assert "\x1b" not in done.out + done.err
    assert untouched(host)


@pytest.mark.drivers("local")
@pytest.mark.parametrize("options", [["--rev", "-1"], ["--rev", "2147483648"], ["--rev", "x"], ["--key", "a b"],
                                     ["--key", "k" * 201], ["--intent", "Review it"], ["--summary", ""],
                                     ["--summary", "x" * 4097], ["--timeout", "-1"], ["--payload", "/nowhere/file"]])
def test_unusable_options_are_refused(host, options):
    done = host.publish("alpha", "owner", "t-1", *options)
    assert done.status == 2, done
    assert untouched(host)


def test_c09_a_payload_too_large_is_refused_with_the_limit(host):
    """C09: refused before anything is published, saying which limit; the next one runs."""
    done = host.publish("alpha", "owner", "t-1", "--payload", "-", stdin=b"x" * (10 << 20))
    done.refused("record_too_large", 2)
    assert re.search(r"256 ?KiB|262,?144", done.out + done.err), done
    assert untouched(host)
    host.published("alpha", "owner", "t-2")
    host.drain()
    assert [call["task"] for call in host.calls()] == ["t-2"]


@pytest.mark.core
@pytest.mark.parametrize("over", [-2000, -400])
def test_c11_every_size_below_the_limit_passes(host, over):
    """C11: what fits the handoff fits everything that follows from it."""
    host.plan(default=[{"class": "bad_request"}])
    turn = host.publish("alpha", "owner", "t-1", "--payload", "-", stdin=b"x" * (262144 + over - 600)).ok().one["turn_id"]
    host.drain()
    assert host.show(turn)["state"] == "parked"
    assert host.log.records(host.topic("dlq"))


@pytest.mark.drivers("local")
def test_c14_nul_and_invalid_utf8_in_a_summary_are_refused(host):
    """C14: rejected with a clear reason, never cut."""
    import subprocess
    from host import binary
    argv = [binary().encode(), b"publish", b"--service", b"alpha", b"--role", b"owner", b"--task", b"t-1", b"--json",
            b"--summary", b"a\xff\xfeb"]
    done = subprocess.run(argv, cwd=host.dir, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=60)
    assert done.returncode == 2, done
    assert untouched(host)


@pytest.mark.drivers("local")
def test_a_log_that_is_not_there(host):
    """service_unavailable, exit 8, and no new log is made."""
    path = os.path.join(host.dir, "data", "log.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, path + suffix + ".away")
    done = host.publish("alpha", "owner", "t-1")
    assert done.status == 8, done
    assert not os.path.exists(path)


@pytest.mark.drivers("local")
def test_no_key_is_unauthenticated(host):
    """unauthenticated, exit 4, with the command that makes a key."""
    os.rename(os.path.join(host.dir, "keys", host.identity + ".pem"), os.path.join(host.dir, "away.pem"))
    done = host.publish("alpha", "owner", "t-1").refused("unauthenticated", 4)
    assert "baton keys generate" in done.out + done.err, done
    assert untouched(host)


@pytest.mark.drivers("local")
def test_x6_no_right_is_not_permitted(host):
    """X6 at the publisher: an identity without the right for role or service publishes nothing."""
    host.principal("ci", "kind: program\ncreate: {alpha: [owner]}\n")
    words = ["--set", "identity=ci"]
    host.publish("alpha", "reviewer", "t-1", *words).refused("not_permitted", 4)
    host.publish("beta", "owner", "t-1", *words).refused("not_permitted", 4)
    assert untouched(host)
    host.publish("alpha", "owner", "t-1", *words).ok()


@pytest.mark.drivers("local")
def test_x30_an_unsafe_key_is_refused_before_anything_else(host):
    """X30: group or others may read it, it is no file, or trust can be written by others."""
    path = os.path.join(host.dir, "keys", host.identity + ".pem")
    trust = os.path.join(host.dir, "trust")
    log = os.path.join(host.dir, "data", "log.db")
    os.rename(log, log + ".away")  # had it been opened first, this would be the complaint

    def unsafe():
        done = host.publish("alpha", "owner", "t-1")
        done.refused("key_unsafe", 2)

    os.chmod(path, 0o644)
    unsafe()
    os.chmod(path, 0o640)
    if os.getuid() != 0:
        unsafe()
    os.chmod(path, 0o600)
    os.rename(path, path + ".away")
    os.mkdir(path, 0o600)
    unsafe()
    os.rmdir(path)
    os.mkfifo(path, 0o600)
    unsafe()
    os.unlink(path)
    os.rename(path + ".away", path)
    os.chmod(trust, 0o775)
    unsafe()
    os.chmod(trust, 0o755)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
        unsafe()
        os.chown(path, 0, 0)
    os.rename(log + ".away", log)
    host.publish("alpha", "owner", "t-1").ok()


@pytest.mark.drivers("local")
def test_x30_a_key_id_that_is_not_its_name_is_reported(host):
    key = proof.Key.new()
    with open(os.path.join(host.dir, "trust", f"alpha.{'0' * 16}.pem"), "wb") as file:
        file.write(key.public_pem())
    done = host.run("config", "check")
    assert done.status == 2 and key.id in done.out + done.err, done


# ---- repeating and waiting ----

def test_r29_the_same_key_is_the_same_turn(host):
    first = host.published("alpha", "owner", "t-1", "--key", "k-1")
    assert host.published("alpha", "owner", "t-1", "--key", "k-1") == first
    assert host.published("alpha", "owner", "t-1", "--key", "k-2") != first
    assert host.published("alpha", "owner", "t-1") != host.published("alpha", "owner", "t-1")
    assert host.published("beta", "owner", "t-1", "--key", "k-1") != first, "H-17: the service is in the id"
    assert host.published("alpha", "reviewer", "t-1", "--key", "k-1") != first, "the role is in the id"


def test_a_plain_publish_says_queued(host):
    assert host.publish("alpha", "owner", "t-1").ok().one["status"] == "queued"
    host.worker("alpha")
    host.called(1)
    assert host.publish("alpha", "owner", "t-2").ok().one["status"] == "queued", "H-22: delivered needs proof"


def test_h22_wait_claim_says_delivered(host):
    """H-22, H-20: delivered means that a worker of the target claimed it."""
    without = host.publish("alpha", "owner", "t-1", "--wait-claim", "--timeout", "1")
    assert without.one["status"] == "queued" and without.status in (0, 8), without
    assert without.took < 20 * SLOW
    host.worker("alpha")
    host.called(1)
    assert host.publish("alpha", "owner", "t-2", "--wait-claim", "--timeout", "20").ok().one["status"] == "delivered"


@pytest.mark.core
def test_wait_brings_the_outcome(host):
    host.worker("alpha")
    host.plan(tasks={"t-1": [{"verdict": "changes", "summary": "Rename it"}]})
    answer = host.publish("alpha", "reviewer", "t-1", "--wait", "--timeout", "30").ok().one
    outcome = answer["outcome"]
    assert outcome["event"] == "completed" and outcome["turn_id"] == answer["turn_id"]
    assert outcome["role"] == "reviewer" and outcome["result"]["verdict"] == "changes"
    assert outcome["result"]["summary"] == "Rename it"


def test_wait_ends_after_its_time(host):
    done = host.publish("alpha", "owner", "t-1", "--wait", "--timeout", "1")
    assert done.status == 8 and done.took < 6 * SLOW, done
    assert done.one["turn_id"] in [record.key.decode() for record in handoffs(host)]


@pytest.mark.core
def test_wait_of_a_repeat_brings_the_end_that_was(host):
    """A duplicate answers with the turn's present state and result."""
    host.worker("alpha")
    host.publish("alpha", "owner", "t-1", "--key", "k", "--wait", "--timeout", "30").ok()
    again = host.publish("alpha", "owner", "t-1", "--key", "k", "--wait", "--timeout", "30").ok().one
    assert again["outcome"]["result"]["verdict"] == "done", again
    assert len(host.calls()) == 1


def test_turns_wait_ends_when_the_turn_does(host):
    turn = host.published("alpha", "owner", "t-1")
    host.plan(default=[{"sleep": 0.5}])
    host.worker("alpha")
    done = host.run("turns", "wait", turn, "--timeout", "30", "--json").ok()
    assert "completed" in done.out, done


def test_outcomes_are_signed_by_the_service(host):
    turn = host.published("alpha", "owner", "t-1")
    host.drain()
    record, = [record for record in host.log.records(host.topic("outcomes", None)) if record.json()["event"] == "completed"]
    _, key_id, signature = record.header("baton-sig").split(" ")
    principal, public = proof.public_keys(os.path.join(host.dir, "trust"))[key_id]
    assert principal == "alpha" and record.key.decode() == turn
    proof.verify(public, host.fleet, "outcome", turn, record.value, signature)
    assert record.json()["role"] == "owner" and record.json()["state"] == "completed"


def test_two_publishers_at_once_with_one_key(host):
    """I20, R-29: concurrent publishes of one key are one turn and one execution."""
    from concurrent.futures import ThreadPoolExecutor
    host.worker("alpha")
    with ThreadPoolExecutor(8) as pool:
        ids = {done.ok().one["turn_id"] for done in pool.map(
            lambda n: host.publish("alpha", "owner", "t-1", "--key", "k"), range(8))}
    turn, = ids
    host.ends(turn, "completed")
    wait_until(lambda: host.run("turns", "list", "--state", "running", "--json").ok().objects == [], what="nothing to run")
    assert len(host.calls()) == 1
