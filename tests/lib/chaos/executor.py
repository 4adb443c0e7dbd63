#!/usr/bin/python3
"""The executor of the long run: notes its call, then does what the turn's own payload says of the attempt.

Started by workers, as a program for each attempt or (with the argument `child`) a long-lived one. The
payload's text is a JSON list of steps, made by plan.py; the last one stands for all attempts that follow. Of a run's
turns it is an object of such lists, and of the verdicts of each revision of the task.
FAKE_DIR/calls gets one JSON line for each call, before anything else happens.
"""
import json
import os
import sys
import time

VERDICTS = {"owner": "done", "reviewer": "approve", "arbiter": "proceed"}


def note(record, **named):
    environment = os.environ
    line = {"event": "start", "t": time.time(), "pid": os.getpid(), "service": environment.get("BATON_SERVICE"),
            "fake_service": environment.get("FAKE_SERVICE"), "worker": environment.get("BATON_WORKER"),
            "boot": environment.get("BATON_BOOT"), "task": record.get("task_id"), "stdin_role": record.get("role"), **named}
    handle = os.open(os.path.join(environment["FAKE_DIR"], "calls"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, ("\n" + json.dumps(line) + "\n").encode())  # as the fake executor: see calls.py
    os.close(handle)


def step_of(turn, attempt, role):
    plan = json.loads(turn["payload"]["text"])
    if isinstance(plan, list):
        return plan[min(attempt, len(plan)) - 1]
    revision = turn["task_rev"]  # an owner's word raises it; who comes next is told the higher one
    words = plan["words"][min(revision - (role != "owner"), len(plan["words"]) - 1)]
    steps = plan["steps"][(3 * revision + len(role)) % len(plan["steps"])]
    return dict(steps[min(attempt, len(steps)) - 1], verdict=words[role])


def fork_away():
    """A grandchild in a session of its own, which nobody here waits for."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.closerange(3, 64)
            os.execv("/bin/sleep", ["sleep", "900"])
        os._exit(0)
    os.wait()


def flood(mib, handles):
    block = (b"x" * 1023 + b"\n") * 64
    for _ in range(mib * 16):
        for handle in handles:
            os.write(handle, block)


def act(step, role, out):
    """Everything before the result, which is returned as text; None: there is none."""
    if step.get("ignore_term"):
        import signal  # pylint: disable=import-outside-toplevel
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if step.get("fork"):
        fork_away()
    if "flood" in step:
        flood(step["flood"], out)
    time.sleep(step.get("sleep", 0))
    if step.get("hang"):
        while True:
            time.sleep(60)
    if "signal" in step:
        os.kill(os.getpid(), step["signal"])
    if "exit" in step:
        os._exit(step["exit"])
    if "raw" in step:
        return step["raw"]
    if "class" in step:
        return json.dumps({name: step[name] for name in ("class", "retry_after_ms") if name in step})
    return json.dumps({"verdict": step.get("verdict", VERDICTS[role]), "summary": "as planned"})


def once():
    turn = json.load(sys.stdin)
    role, attempt = os.environ["BATON_ROLE"], int(os.environ["BATON_ATTEMPT"])
    note(turn, turn=os.environ["BATON_TURN_ID"], attempt=attempt, role=role)
    os.write(3, act(step_of(turn, attempt, role), role, (1, 2)).encode())


def child():
    def say(text):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    for text in sys.stdin:
        message = json.loads(text)
        if message["type"] == "hello":
            say(json.dumps({"type": "hello", "protocol": 1, "name": "chaos"}))
        elif message["type"] == "turn":
            turn = message["turn"]
            note(turn, turn=message["turn_id"], attempt=message["attempt"], role=message["role"])
            result = act(step_of(turn, message["attempt"], message["role"]), message["role"], (2,))
            try:
                say(json.dumps({"type": "result", "id": message["id"], "result": json.loads(result)}))
            except ValueError:
                say(result)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        child()
    else:
        once()
