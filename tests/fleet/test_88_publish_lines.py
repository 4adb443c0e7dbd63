"""`baton publish --lines`: many turns at once. What is wrong is refused by its line, nothing is doubled, nothing is half said."""
import datetime
import json
import os
import resource
import signal
import subprocess

import pytest

import proof
from host import SLOW, attempts, binary, ready, wait_until


def lines_of(*objects):
    return b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in objects)


def bulk(host, text, *more, **named):
    """Publishes lines to alpha as owner; the answers by line, and the sums."""
    done = host.run("publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json", *more, stdin=text, **named)
    *answers, end = done.objects
    return done, {one["line"]: one for one in answers}, end


def handoffs(host):
    return host.log.records(host.topic("handoff"))


def at(seconds):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


@pytest.mark.core
def test_lines_become_turns_and_bad_ones_are_refused_by_number(host):
    """One object a line; a bad one is named with its reason, the others go on; the same again is the same turns."""
    text = lines_of({"task": "t-1", "payload": "patch one", "summary": "First", "rev": 3, "data": {"a": "b"}}, b"\n",
                    {"task": "t-2", "role": "reviewer", "intent": "review", "key": "k-2"}, {"task": "t-3", "colour": "red"}, b'{"task": \n',
                    {"task": "a b"}, {"task": "t-7", "role": "boss"}, {"task": "t-8", "service": "nobody"}, b'["t-9"]\n',
                    {"task": "t-10", "payload": {"media_type": "application/x-thing", "base64": "AP8="}}, b"\xff\xfe\n",
                    {"task": "t-12", "expires": "9d"}, {"task": "t-13", "not_before": "tomorrow"}, {"rev": 1}, {"task": "t-15", "task_": 1}, b'{"task":"t-16","task":"t-17"}')
    done, answers, end = bulk(host, text)
    assert done.status == 7 and (end["status"], end["published"], end["refused"], end["unknown"]) == ("refused", 3, 12, 0), done
    assert sorted(line for line, one in answers.items() if one["status"] == "queued") == [1, 3, 10]
    assert answers[8]["code"] == "unknown_service" and "colour" in answers[4]["error"] and "task is missing" in answers[14]["error"], answers
    assert all(answers[line]["code"] == "invalid_request" for line in (4, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16)), answers
    found = {record.json()["task_id"]: record for record in handoffs(host)}
    assert set(found) == {"t-1", "t-2", "t-10"}
    first, second, third = (found[name].json() for name in ("t-1", "t-2", "t-10"))
    assert (first["role"], first["task_rev"], first["summary"], first["data"], first["payload"]["text"]) == ("owner", 3, "First", {"a": "b"}, "patch one")
    assert (second["role"], second["intent"], second["key"]) == ("reviewer", "review", "k-2")
    assert proof.decode_payload(third["payload"]) == b"\x00\xff" and third["payload"]["media_type"] == "application/x-thing"
    for record in found.values():
        turn = record.json()
        assert record.key.decode() == turn["turn_id"] == proof.turn_id(host.fleet, turn) and turn["origin"] == host.identity
        key_id, signature = record.header("baton-sig").split(" ")[1:]
        proof.verify(proof.public_keys(os.path.join(host.dir, "trust"))[key_id][1], host.fleet, "turn", turn["turn_id"], record.value, signature)
    again, answers_again, _ = bulk(host, text)
    assert again.status == 7 and {answers_again[n]["turn_id"] for n in (1, 3, 10)} == {answers[n]["turn_id"] for n in (1, 3, 10)}
    host.drain()
    assert len(host.calls()) == 3, "publishing the same lines again executed something twice"


def test_lines_wait_and_run_out_as_one_turn_does(host):
    """not_before: does not start earlier. deadline: what has passed is parked `deadline_exceeded`, and nothing runs."""
    host.worker("alpha", "w1")
    start = at(3 + SLOW)
    done, answers, _ = bulk(host, lines_of({"task": "later", "not_before": start}, {"task": "late", "deadline": at(-60)}, {"task": "now"}))
    assert done.status == 0, done
    later, late, now = (answers[n]["turn_id"] for n in (1, 2, 3))
    host.ends(now, "completed")
    parked = host.ends(late, "parked")
    assert parked["code"] == "deadline_exceeded" and not host.calls(task="late"), parked
    host.ends(later, "completed", 30)
    began = min(one["t"] for one in host.calls(task="later"))
    assert began >= datetime.datetime.fromisoformat(start.replace("Z", "+00:00")).timestamp() - 0.001


def test_a_deadline_is_of_the_whole_turn(host):
    """`--deadline`: not of an attempt. A turn that is still being tried again when it passes is parked, whatever its budget says."""
    host.configure({"alpha": None}, retry={"first": "200ms", "factor": 1, "max": "200ms", "jitter": 0, "each_service": 1000, "max_wait": "15m"},
                   budget={"failures": 1000, "attempts": 1000}, circuit={"after": 1000, "for": "30s", "probe": "15s"})
    host.plan(default=[{"class": "unavailable"}])
    ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1", "--deadline", at(2 + SLOW))
    parked = host.ends(turn, "parked", 30)
    assert parked["code"] == "deadline_exceeded", parked
    assert attempts(host, turn), parked


def test_a_deadline_ends_a_wait(host):
    """A turn that waits for its next try is parked at its deadline, not when its wait would be over, and tried no sooner for it."""
    host.configure({"alpha": None}, retry={"first": "5m", "factor": 1, "max": "5m", "jitter": 0, "each_service": 3, "max_wait": "15m"})
    host.plan(default=[{"class": "unavailable"}], tasks={"t-2": [{"class": "rate_limited", "retry_after_ms": 600000}]})
    ready(host.worker("alpha", "w1"))
    deadline = at(2 + 2 * SLOW)
    turns = [host.published("alpha", "owner", task, "--deadline", deadline) for task in ("t-1", "t-2")]
    for turn in turns:
        parked = host.ends(turn, "parked", 30)
        assert parked["code"] == "deadline_exceeded" and parked["updated_at"] >= deadline, parked
        assert len(host.calls(turn=turn)) == 1


def test_a_deadline_is_met_while_the_circuit_is_open(host):
    """However many wait for the provider: those whose deadline has passed are parked when it is looked at, and each costs no probe."""
    host.configure({"alpha": None}, circuit={"after": 2, "for": f"{int(2 + SLOW)}s", "probe": "60s"}, on_failure={"unavailable": ["park"]})
    host.plan(default=[{"class": "unavailable"}])
    worker = host.worker("alpha", "w1")
    for n in range(2):
        host.published("alpha", "owner", f"t-{n}")
    wait_until(lambda: any(line["to"] == "open" for line in worker.events("circuit.moved")), what="an open circuit")
    done, answers, _ = bulk(host, lines_of(*({"task": f"u-{n}", "deadline": at(0.5)} for n in range(12))))
    assert done.status == 0, done
    for one in answers.values():
        assert host.ends(one["turn_id"], "parked", 30)["code"] == "deadline_exceeded"
    assert not [call for call in host.calls() if call["task"].startswith("u-")]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("way", ["pipe", "file"])
def test_all_or_nothing(host, tmp_path, way):
    """Every line is checked first; one that is wrong, and none is published. Else all are, read a second time."""
    path = tmp_path / "lines"

    def publish(text, *more):
        if way == "pipe":
            return bulk(host, text, "--all-or-nothing", *more)
        path.write_bytes(text)
        done = host.run("publish", "--lines", path, "--service", "alpha", "--role", "owner", "--json", "--all-or-nothing", *more)
        *answers, end = done.objects
        return done, {one["line"]: one for one in answers}, end

    good = [{"task": f"t-{n}", "payload": "x" * 1000} for n in range(1200)]
    done, answers, end = publish(lines_of(*good, {"task": "t-x", "role": "boss"}))
    assert done.status == 7 and list(answers) == [1201] and end["refused"] == 1 and end["would"] == 1200 and not handoffs(host), done
    done, answers, end = publish(lines_of(*good))
    assert done.status == 0 and end["published"] == 1200 == len(answers) == len(handoffs(host)), done
    assert not os.listdir(host.environment["TMPDIR"]), "what was kept of the pipe stayed behind"


@pytest.mark.drivers("local")
def test_a_dry_run_publishes_nothing(host):
    done, answers, end = bulk(host, lines_of({"task": "t-1"}, {"task": "b c"}), "--dry-run")
    assert done.status == 7 and end["would"] == 1 and answers[1]["status"] == "would" and not handoffs(host), done
    text = host.run("publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--dry-run", stdin=lines_of({"task": "t-1"})).ok()
    assert "nothing was published" in text.out, text


@pytest.mark.drivers("local")
def test_lines_are_bounded(host):
    """A line longer than a turn can be is refused without being kept; what follows it goes on. Nothing runs together."""
    long = b'{"task":"t-1","payload":"' + b"x" * (3 << 20) + b'"}\n'
    done, answers, end = bulk(host, long + lines_of({"task": "t-2"}, {"task": "t-3", "payload": "y" * 300000}, {"task": "t-4"}))
    assert done.status == 7 and answers[1]["code"] == answers[3]["code"] == "record_too_large", done
    assert "1048576" in answers[1]["error"] and sorted(record.json()["task_id"] for record in handoffs(host)) == ["t-2", "t-4"]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("words", [("--task", "t"), ("--payload", "-"), ("--key", "k"), ("--wait",), ("--data", "a=b"), ("--summary", "s")])
def test_what_is_of_one_turn_does_not_go_with_lines(host, words):
    done = host.run("publish", "--lines", "-", "--service", "alpha", "--role", "owner", *words, "--json", stdin=lines_of({"task": "t-1"}))
    assert done.status == 2 and not handoffs(host), done
    done = host.run("publish", "--service", "alpha", "--role", "owner", "--task", "t", "--all-or-nothing", "--json")
    assert done.status == 2, done


@pytest.mark.drivers("local")
def test_r20_a_line_without_a_role_gets_none(host):
    """R-20, R-23: neither the line nor the options name a role: refused, never guessed."""
    done = host.run("publish", "--lines", "-", "--service", "alpha", "--json", stdin=lines_of({"task": "t-1"}, {"task": "t-2", "role": "owner"}))
    assert done.status == 7 and done.objects[0]["error"].endswith("role is missing"), done
    assert [record.json()["task_id"] for record in handoffs(host)] == ["t-2"]


@pytest.mark.drivers("local")
def test_x6_lines_are_held_to_rights(host):
    """X6: an identity without the right is refused line by line, before anything is written."""
    host.principal("ci", "kind: program\ncreate: {alpha: [owner]}\n")
    done, answers, _ = bulk(host, lines_of({"task": "t-1", "role": "reviewer"}, {"task": "t-2"}, {"task": "t-3", "service": "beta"}), "--set", "identity=ci")
    assert done.status == 7 and answers[1]["code"] == answers[3]["code"] == "not_permitted" and answers[2]["status"] == "queued", done


@pytest.mark.drivers("local")
def test_x32_foreign_text_in_lines_is_escaped(host):
    """X32: what a line says is never shown raw, and no file that it names is read."""
    nasty = "\x1b[2J\u202e"
    done = host.run("publish", "--lines", "-", "--service", "alpha", "--role", "owner",
                    stdin=lines_of({"task": nasty}, {nasty: 1}, {"task": "t", "role": nasty}, {"task": "t", "not_before": nasty}, {"task": "p", "payload": "/etc/passwd"}))
    assert done.status == 7 and "\x1b" not in done.out + done.err and "\u202e" not in done.out + done.err, done
    assert [record.json()["payload"]["text"] for record in handoffs(host)] == ["/etc/passwd"]


def test_ctrl_c_says_how_far_it_came(host, tmp_path):
    """What was published is told while lines still come; interrupted, the sums say how many, and the same again goes on."""
    objects = [{"task": f"t-{n}"} for n in range(1500)]
    argv = [binary(), "publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json"]
    with open(tmp_path / "out", "wb") as out:
        publish = subprocess.Popen(argv, cwd=host.dir, env=host.environment, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, start_new_session=True)
    try:
        publish.stdin.write(lines_of(*objects[:700]))
        publish.stdin.flush()
        wait_until(lambda: len(handoffs(host)) == 700, 40, "what came so far, though the input is still open")
        publish.send_signal(signal.SIGINT)
        status = publish.wait(30 * SLOW)
    finally:
        publish.kill()
    *answers, end = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert status == 8 and end["status"] == "interrupted" and end["published"] == 700 == len(answers) and end["last_line"] == 700, end
    done, _, end = bulk(host, lines_of(*objects))
    assert done.status == 0 and end["published"] == 1500, done
    assert len({record.key for record in handoffs(host)}) == 1500


@pytest.mark.drivers("local")
def test_a_log_that_gives_up_is_told(host):
    """Full: nothing is claimed that is not so; afterwards the same lines are published, none twice."""
    objects = [{"task": f"t-{n}", "payload": "z" * 4000} for n in range(1500)]
    path = os.path.join(host.dir, "data", "log.db")
    limit = os.path.getsize(path) + (2 << 20)
    done = subprocess.run([binary(), "publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json"], cwd=host.dir, env=host.environment,
                          input=lines_of(*objects), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * SLOW, check=False,
                          preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    *answers, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 8 and end["status"] == "failed" and end["unknown"] > 0, (done.returncode, done.stdout[-2000:], done.stderr)
    told = {one["turn_id"] for one in answers if one["status"] == "queued"}
    assert end["published"] == len(told) and told <= {record.key.decode() for record in handoffs(host)}
    done, _, end = bulk(host, lines_of(*objects))
    assert done.status == 0 and end["published"] == 1500 == len({record.key for record in handoffs(host)}), done


@pytest.mark.drivers("local")
def test_lines_are_the_same_however_they_end(host, tmp_path):
    """CRLF, a byte order mark, a last line without an end: the same turns."""
    _, plain, _ = bulk(host, b'{"task":"t-1"}\n{"task":"t-2"}\n')
    done, other, end = bulk(host, b'\xef\xbb\xbf{"task":"t-1"}\r\n\r\n{"task":"t-2"}\r')
    assert done.status == 0 and end["published"] == 2 and [other[n]["turn_id"] for n in (1, 3)] == [plain[n]["turn_id"] for n in (1, 2)], done
    done, other, _ = bulk(host, b'{"task":"t-3"}\n\xef\xbb\xbf{"task":"t-4"}\n')
    assert done.status == 7 and other[2]["code"] == "invalid_request", "within, it is no line's"
    folder = host.run("publish", "--lines", tmp_path, "--service", "alpha", "--role", "owner")
    assert folder.status == 2 and "it is a folder" in folder.err and "the log" not in folder.err, folder


@pytest.mark.drivers("local")
def test_a_reader_that_goes_away_is_no_success(host, tmp_path):
    """`| head`: what is published and not told of is not all; it ends with 8, and the same again publishes the rest."""
    path = tmp_path / "lines"
    path.write_bytes(lines_of(*({"task": f"t-{n}"} for n in range(3000))))
    argv = [binary(), "publish", "--lines", str(path), "--service", "alpha", "--role", "owner", "--json"]
    publish = subprocess.Popen(argv, cwd=host.dir, env=host.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert json.loads(publish.stdout.readline())["status"] == "queued"
        publish.stdout.close()
        assert publish.wait(30 * SLOW) == 8 and len(handoffs(host)) < 3000
    finally:
        publish.kill()
        publish.wait()
    host.run(*argv[1:]).ok()
    assert len({record.key for record in handoffs(host)}) == 3000


@pytest.mark.drivers("local")
def test_nohup_goes_on_without_its_terminal(host, tmp_path):
    argv = [binary(), "publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json"]
    for ignored in (True, False):
        with open(tmp_path / "out", "wb") as out:
            publish = subprocess.Popen(argv, cwd=host.dir, env=host.environment, stdin=subprocess.PIPE, stdout=out,
                                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL))
        try:
            publish.stdin.write(lines_of({"task": f"t-{ignored}"}))
            publish.stdin.flush()
            wait_until(lambda: (tmp_path / "out").read_bytes(), 20, "the first line's answer")
            publish.send_signal(signal.SIGHUP)
            if ignored:
                publish.stdin.write(lines_of({"task": "t-3"}))
                publish.stdin.close()
            assert publish.wait(30 * SLOW) == (0 if ignored else 8)
        finally:
            publish.kill()
            publish.wait()
    assert len(handoffs(host)) == 3


@pytest.mark.drivers("local")
def test_progress_is_for_a_terminal_only(host):
    """Plain when piped: nothing on standard error but what was refused."""
    done = host.run("publish", "--lines", "-", "--service", "alpha", "--role", "owner", stdin=lines_of(*({"task": f"t-{n}"} for n in range(2000)))).ok()
    assert done.err == "" and done.out == "published 2000, refused 0\n", done


def peak(host, count):
    """The most memory that publishing so many lines took, KiB."""
    text = lines_of(*({"task": f"m-{n}", "payload": "p" * 200} for n in range(count)))
    code = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(["/usr/bin/python3", "-c", code, binary(), "publish", "--lines", "-", "--service", "alpha", "--role", "owner", "--json"],
                          cwd=host.dir, env=host.environment, input=text, stdout=subprocess.PIPE, timeout=110 * SLOW, check=True)
    return int(done.stdout)


@pytest.mark.drivers("local")
@pytest.mark.heavy
@pytest.mark.parametrize("count", [pytest.param(5000), pytest.param(100000, marks=[pytest.mark.long, pytest.mark.seconds(300)])])
def test_memory_stays_flat(host, count):
    """However many lines: the memory of one batch."""
    few = peak(host, 1000)
    many = peak(host, count)
    assert many < few + 4096, (few, many)
