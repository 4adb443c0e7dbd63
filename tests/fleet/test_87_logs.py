"""What workers log: JSON lines, or a readable form on a terminal; levels; what repeats is one line with a count; no
content and no secrets in any form (STYLE 1.13, RULES S11; RECORD X31 and X32 are test_70_shown.py and test_77_secrets.py).
"""
import json
import os
import re
import subprocess

import pytest

import proof
from host import binary, ready, wait_until

LEVELS = {"error", "warn", "info", "debug"}


def test_lines_are_json_with_level_and_event(host):
    """One object a line, each with time, level and a stable noun.verb; those of the pipeline carry turn, attempt, role and service."""
    turn = host.published("alpha", "arbiter", "t-1")
    worker = host.drain()
    lines = [json.loads(line) for line in worker.log.splitlines()]
    assert len(lines) > 5
    for line in lines:
        assert line["level"] in LEVELS and re.fullmatch(r"[a-z]+\.[a-z_]+", line["event"]), line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"]), line
    moved = [line for line in lines if line["event"] == "attempt.ended"]
    assert [(one["turn"], one["attempt"], one["role"], one["service"]) for one in moved] == [(turn, 1, "arbiter", "alpha")]


@pytest.mark.drivers("local")
def test_levels_are_chosen(host):
    """--quiet leaves warnings and errors, --verbose adds debug."""
    host.plan(default=[{"stderr": "something is odd"}])
    seen = {}
    for words in ((), ("--quiet",), ("--verbose",)):
        host.published("alpha", "owner", "t-" + "".join(words).strip("-"))
        worker = host.worker("alpha", "w1", "--drain", *words)
        assert worker.wait() == 0, worker.log
        seen[words] = {json.loads(line)["level"] for line in worker.log.splitlines()}
    assert "info" in seen[()] and "debug" not in seen[()]
    assert not seen[("--quiet",)] & {"info", "debug"}
    assert {"info", "debug"} <= seen[("--verbose",)]


@pytest.mark.drivers("local")
def test_on_a_terminal_they_are_readable(host):
    """The same events without braces, a text with blanks quoted, nothing raw of what came from elsewhere."""
    host.plan(default=[{"class": "bad_request", "message": "no \x1b[31m\u202eway"}])
    turn = host.published("alpha", "owner", "t-1", "--summary", "Canary-Summary-31")
    done = subprocess.run(["script", "-qec", f"{binary()} worker --service alpha --drain", "/dev/null"], cwd=host.dir, env=host.environment,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=60)
    text = done.stdout.decode().replace("\r", "")
    assert re.search(rf"^\d\d:\d\d:\d\d\.\d{{3}} info  attempt\.ended turn={turn} role=owner attempt=1 service=alpha class=bad_request", text, re.M), text
    assert re.search(r"^\d\d:\d\d:\d\d\.\d{3} info  worker\.ready ", text, re.M) and "{" not in text, text
    assert "\x1b" not in text and "\u202e" not in text and "Canary-Summary-31" not in text, text


def test_what_repeats_is_a_few_lines(host):
    """A flood of one kind is a few lines (that they are counted: tests/unit/base); each record is in the dead letters."""
    strange = proof.Key.new()
    worker = ready(host.worker("alpha", "w1"))
    for _ in range(200):
        host.log.append(host.handoff(host.turn(task=f"t-{_}"), signer=strange))
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == 200, 40, "all to be rejected")
    refused = worker.events("record.rejected")
    assert 1 <= len(refused) <= 40 and all(one["code"] == "unknown_key" for one in refused), f"{len(refused)} lines\n{worker.log[-2000:]}"


def test_other_codes_are_not_hidden_by_a_flood(host):
    """A flood of one code leaves room for another one."""
    worker = ready(host.worker("alpha", "w1"))
    strange = proof.Key.new()
    for number in range(60):
        host.log.append(host.handoff(host.turn(task=f"t-{number}"), signer=strange))
    host.log.append(proof.Record(host.topic("handoff"), b"k" * 32, b"junk", []))
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == 61, 40, "all to be rejected")
    codes = {one["code"] for one in worker.events("record.rejected")}
    assert len(codes) == 2, codes


@pytest.mark.parametrize("words", [(), ("--verbose",)], ids=["usual", "verbose"])
@pytest.mark.few_on_kafka("words", ())
def test_s11_no_content_and_no_secret(fresh, words):
    """S11, G3: summary, payload, data, the verdict's text, output and credentials are in no line; with --verbose an executor's
    standard error and what it says of a failure are, for who looks for its fault, and nothing else."""
    token = "canary-token-7712-secret"
    with open(os.open(os.path.join(fresh.dir, "token"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    host = fresh.configure({"alpha": fresh.service(profiles=[{"name": "p", "env": {"TOKEN": {"file": "token"}}}])})
    told = {"summary": "Canary-Summary-41", "stdout": "Canary-Output-42", "stderr": f"Canary-Error-43 {token}", "message": "Canary-Message-44"}
    host.plan(default=[{"class": "unavailable", **told}, told])
    turn = host.run("publish", "--service", "alpha", "--role", "owner", "--task", "t-1", "--summary", "Canary-Prompt-45", "--payload", "-",
                    "--json", stdin=b"Canary-Payload-47").ok().one["turn_id"]
    worker = host.worker("alpha", "w1", *words)
    host.ends(turn, "completed")
    found = set(re.findall(r"Canary-\w+-4\d", worker.log))
    assert found == ({"Canary-Error-43", "Canary-Message-44"} if words else set()) and token not in worker.log, found
    assert len(worker.events()) > 5
