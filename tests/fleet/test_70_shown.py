"""What is shown: nothing secret, nothing that steers a terminal (X31, X32, H, S11 rows)."""
import json
import os
import re

import pytest

import proof
from host import wait_until

NASTY = "a\x1b[2Jb\x07c\u009b31md\u202ee\u200bf\u2028g\U000e0041h\ni"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def test_x32_foreign_text_is_escaped_in_every_printing_verb(host):
    """X32: ESC, C1, bidi, zero width, line separators, tags in summary, reason, verdict text, output, message."""
    host.plan(default=[{"summary": NASTY, "stdout": NASTY, "stderr": NASTY}],
              tasks={"t-parked": [{"class": "bad_request", "message": NASTY, "stdout": NASTY}],
                     "t-cancel": [{"class": "rate_limited", "retry_after_ms": 60000, "message": NASTY}]})
    turns = {}
    host.worker("alpha")
    # One after the other: the profile rests after the last, whichever partitions they are in.
    for task, state in (("t-1", "completed"), ("t-parked", "parked"), ("t-cancel", "queued")):
        record = host.handoff(host.turn(task=task, summary=NASTY, data={"k": NASTY}))
        host.log.append(record)
        turns[task] = record.key.decode()
        host.ends(turns[task], state)
    host.called(3)
    host.cancel(turns["t-cancel"], reason=NASTY.replace("\n", " "))
    host.log.append(proof.Record(host.topic("handoff"), NASTY.encode(), NASTY.encode(), [("x", NASTY.encode())]), partition=0)
    wait_until(lambda: len(host.log.records(host.topic("dlq"))) == 2, what="two letters")
    verbs = [["turns", "list"], ["dlq", "list"], ["services"], ["doctor"], ["topics", "list"], ["keys", "list"]]
    verbs += [["turns", "show", turn] for turn in turns.values()] + [["dlq", "show", turns["t-parked"]]]
    for words in verbs:
        done = host.run(*words)
        found = FORBIDDEN.search(done.out + done.err)
        assert not found, (words, found, done.out)
        machine = host.run(*words, "--json")
        for line in machine.out.splitlines():
            json.loads(line)
        assert not FORBIDDEN.search(machine.out), (words, "--json escapes them too")
    for worker in host.workers:
        assert not FORBIDDEN.search(worker.log.replace("\n", "")), "the log"


@pytest.mark.parametrize("words", [["turns", "show", NASTY], ["dlq", "show", NASTY], ["publish", "--service", NASTY, "--role", "owner", "--task", "t"],
                                   ["publish", "--service", "alpha", "--role", NASTY, "--task", "t"], ["nonsense" + NASTY],
                                   ["config", "check", "--config", "/tmp/" + NASTY], ["publish", "--" + NASTY], ["keys", "list", "--set", NASTY]])
def test_x32_h05_what_is_typed_is_escaped_in_the_error(host, words):
    for more in ([], ["--json"]):
        done = host.run(*words, *more)
        assert done.status != 0
        assert not FORBIDDEN.search(done.out + done.err), (words, done)


CANARY = "canary-7f3a91d2-secret"


def test_x31_a_secret_is_nowhere(fresh):
    """X31, H01, H02, S11: a declared secret and the private keys: in no argv, log, store, topic, output or error."""
    import base64
    path = os.path.join(fresh.dir, "token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(CANARY + "\n")
    host = fresh.configure({"alpha": fresh.service(profiles=[{"name": "p", "env": {
        "TOKEN": {"file": "token"}, "OTHER": {"from": "OTHER_TOKEN"}}}])})
    other = "canary-other-5521-secret"
    forms = [CANARY, other, base64.b64encode(CANARY.encode()).decode().rstrip("="), CANARY.encode().hex()]
    text = "\n".join([f"token={CANARY}", f'"aws_secret":"{CANARY}"', f"https://x/?key={other}", f"https://u:{CANARY}@x/"]
                     + [forms[2]])
    host.plan(default=[{"class": "unavailable", "message": text, "stdout": text, "stderr": text},
                       {"summary": text.replace("\n", " "), "stdout": text, "stderr": text}],
              tasks={"t-parked": [{"class": "bad_request", "message": text, "stdout": text}]})
    turns = [host.published("alpha", "reviewer", "t-1"), host.published("alpha", "reviewer", "t-parked")]
    worker = host.worker("alpha", None, environment={"OTHER_TOKEN": other})
    host.ends(turns[0], "completed")
    host.ends(turns[1], "parked")
    assert host.calls()[0]["env"]["TOKEN"] == CANARY and host.calls()[0]["env"]["OTHER"] == other
    seen = {"log of the worker": worker.log}
    for words in (["turns", "list"], ["turns", "show", turns[0]], ["turns", "show", turns[1]], ["dlq", "list"], ["dlq", "show", turns[1]],
                  ["config", "show"], ["doctor"], ["services"], ["keys", "list"], ["topics", "list"]):
        for more in ([], ["--json"]):
            done = host.run(*words, *more)
            seen[" ".join(words + more)] = done.out + done.err
    for pid in host.processes():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                seen[f"argv of {pid}"] = file.read().decode("utf-8", "replace")
        except OSError:
            pass
    worker.stop()
    for where, _, names in os.walk(os.path.join(host.dir, "data")):
        for name in names:
            with open(os.path.join(where, name), "rb") as file:
                seen[os.path.join(where, name)] = file.read().decode("latin-1")
    keys = []
    for name in os.listdir(os.path.join(host.dir, "keys")):
        with open(os.path.join(host.dir, "keys", name), encoding="ascii") as file:
            keys.append(file.read().split("\n")[1])
    assert keys
    for place, content in seen.items():
        for secret in forms[:3] + keys:
            assert secret not in content, f"{secret} in {place}"


def test_x31_a_process_with_a_key_is_not_dumped(host):
    """No core, not traceable: nobody with the same uid reads the key out of the worker."""
    worker = host.worker("alpha")
    host.published()
    host.called(1)
    with open(f"/proc/{worker.pid}/limits", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("Max core file size"))
    assert line.split()[4:6] == ["0", "0"], line
    if os.getuid() != 0:
        with pytest.raises(PermissionError):
            open(f"/proc/{worker.pid}/mem", "rb").close()


def test_p99_text_of_agents_is_shown_as_plain_text(host):
    """P-99: what looks like markup is text, and stays what it is."""
    host.plan(default=[{"summary": "<script>alert(1)</script> | a | b |"}])
    turn = host.published()
    host.drain()
    assert "<script>alert(1)</script> | a | b |" in host.run("turns", "show", turn).ok().out


def test_r17_the_log_names_what_a_person_asks_for(host):
    """R-17, G1: the lines of the pipeline carry turn, attempt, role, service, for what ran and what was refused."""
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha")
    host.ends(turn, "completed")
    lines = [event for event in worker.events() if event.get("turn") == turn]
    assert lines, worker.log[-3000:]
    assert all({"ts", "level", "event"} <= set(line) for line in lines)
    assert any(line.get("role") == "reviewer" and line.get("attempt") in (1, "1") and line.get("service") == "alpha" for line in lines)
    host.log.append(host.handoff(host.turn(), signer=proof.Key.new()))
    wait_until(lambda: "unknown_key" in worker.log, what="the refusal in the log")


def test_s11_the_log_has_no_prompt(host):
    """S11, G3: no summary, payload or data in the log."""
    host.publish("alpha", "owner", "t-1", "--summary", "Canary-Summary-11", "--payload", "-", stdin=b"Canary-Payload-12").ok()
    worker = host.drain()
    assert "Canary-Summary-11" not in worker.log and "Canary-Payload-12" not in worker.log


@pytest.mark.drivers("local")
def test_config_show_names_secrets_and_does_not_print_them(fresh):
    path = os.path.join(fresh.dir, "token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(CANARY)
    host = fresh.configure({"alpha": fresh.service(profiles=[{"name": "p", "env": {"TOKEN": {"file": "token"}}}])})
    shown = host.run("config", "show").ok().out
    assert "TOKEN" in shown and CANARY not in shown
