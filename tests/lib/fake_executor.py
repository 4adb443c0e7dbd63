#!/usr/bin/python3
"""An executor for tests: notes every call in CALLS and then does what the plan says.

Kind exec: one call, the turn on standard input, the result on descriptor 3. With the argument `child`
it stays and speaks the protocol of long-lived executors, one JSON object a line. FAKE_DIR holds
`calls` (one JSON line for each start and end) and `plan.json`:

    {"default": [STEP…], "tasks": {TASK: [STEP…]}, "services": {SERVICE: [STEP…]}}

The step of an attempt is the one with its number, the last one stands for all that follow. With
{"turns": {SERVICE: [STEP…]}} it is the one with the number of the turn among those of its task that this
service has begun; another attempt of a turn has the same.
"""
import json
import os
import signal
import subprocess
import sys
import time

from calls import noted

FOLDER = os.environ.get("FAKE_DIR", "")
VERDICTS = {"owner": "done", "reviewer": "approve", "arbiter": "proceed"}


def note(line):
    """One write that begins a line of its own: who is killed in the middle of it leaves a piece behind (calls.py)."""
    data = ("\n" + json.dumps(line) + "\n").encode()
    handle = os.open(os.path.join(FOLDER, "calls"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, data)
    os.close(handle)


def turn_number(task, service, turn):
    """Which of the turns of this task at this service it is; its start is noted already."""
    seen = []
    for call in noted(os.path.join(FOLDER, "calls")):
        if call["event"] == "start" and (call["task"], call["fake_service"]) == (task, service) and call["turn"] not in seen:
            seen.append(call["turn"])
    return seen.index(turn) + 1


def step_of(task, service, attempt, turn):
    with open(os.path.join(FOLDER, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    turns = plan.get("turns", {}).get(service)
    if turns:
        return turns[min(turn_number(task, service, turn), len(turns)) - 1]
    steps = plan.get("tasks", {}).get(task) or plan.get("services", {}).get(service) or plan["default"]
    return steps[min(attempt, len(steps)) - 1]


def parents():
    """The worker's pid: the parent of the guard that is our parent."""
    with open(f"/proc/{os.getppid()}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def result_of(step, role):
    if step.get("raw") is not None:
        return step["raw"]
    if "class" in step:
        answer = {"class": step["class"], "message": step.get("message", "as planned")}
        if "retry_after_ms" in step:
            answer["retry_after_ms"] = step["retry_after_ms"]
    else:
        answer = {"verdict": step.get("verdict", VERDICTS.get(role, "done")),
                  "summary": step.get("summary", "as planned")}
    answer.update(step.get("result", {}))
    return json.dumps(answer)


def do(step, role, turn):
    """Everything a step asks for before its result; returns the result's text or None."""
    if step.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child_writes" in step:  # a grandchild in a session of its own that writes after a while
        subprocess.Popen(["/bin/sh", "-c", f"sleep {step['after']}; echo late $BATON_SERVICE >>'{step['child_writes']}'"],
                         start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if "stdout" in step:
        os.write(1, step["stdout"].encode("utf-8", "surrogateescape"))
    if "stderr" in step:
        os.write(2, step["stderr"].encode("utf-8", "surrogateescape"))
    if "flood_mib" in step:
        block = (b"x" * 1023 + b"\n") * 64
        for _ in range(step["flood_mib"] * 16):
            os.write(1, block)
            os.write(2, block)
    if "sleep" in step:
        time.sleep(step["sleep"])
    if "until" in step:
        while not os.path.exists(step["until"]):
            time.sleep(0.01)
    if step.get("kill_guard"):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(30)
    if step.get("kill_worker"):
        os.kill(parents(), signal.SIGKILL)
        time.sleep(30)
    if step.get("hang"):
        while True:
            time.sleep(60)
    if "signal" in step:
        os.kill(os.getpid(), step["signal"])
    return None if "exit" in step and "raw" not in step and "result" not in step else result_of(step, role)


def call_line(value, event, **more):
    environment = dict(os.environ)
    line = {"event": event, "t": time.time(), "pid": os.getpid(), "ppid": os.getppid(),
            "pgid": os.getpgrp(), "role": environment.get("BATON_ROLE"),
            "turn": environment.get("BATON_TURN_ID"), "attempt": int(environment.get("BATON_ATTEMPT", "0")),
            "service": environment.get("BATON_SERVICE"), "task": environment.get("BATON_TASK_ID"),
            "fake_service": environment.get("FAKE_SERVICE"), "stdin_role": value.get("role")}
    line.update(more)
    return line


def run_exec():
    raw = sys.stdin.buffer.read()
    try:
        turn = json.loads(raw)
    except ValueError:
        turn = {}
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    line = call_line(turn, "start", env=dict(os.environ), stdin=raw.decode("utf-8", "replace"),
                     cwd=os.getcwd(), fds=descriptors, argv=sys.argv)
    note(line)
    step = step_of(line["task"], line["fake_service"], line["attempt"], line["turn"])
    result = do(step, line["role"], turn)
    note(call_line(turn, "end"))
    if result is not None:
        os.write(3, result.encode("utf-8", "surrogateescape"))
    if "exit" in step:
        os._exit(step["exit"])


def run_child():
    """hello, then for each turn one result (worker/EXECUTOR.md)."""
    def say(**message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    for text in sys.stdin:
        message = json.loads(text)
        if message["type"] == "hello":
            say(type="hello", protocol=1, name="fake", parallel=1)
        if message["type"] != "turn":
            continue
        turn = message["turn"]
        line = call_line(turn, "start", env=dict(os.environ), stdin=json.dumps(turn), role=message["role"],
                         turn=message["turn_id"], attempt=message["attempt"], task=message["task_id"], traceparent=message["traceparent"])
        note(line)
        step = step_of(line["task"], line["fake_service"], line["attempt"], line["turn"])
        say(type="progress", id=message["id"], text="at it")
        result = do(step, line["role"], turn)
        if "exit" in step:
            os._exit(step["exit"])
        note(dict(line, event="end", env=None, stdin=None, t=time.time()))
        say(type="result", id=message["id"], result=json.loads(result))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "child":
        run_child()
    else:
        run_exec()
