#!/usr/bin/python3 -B
"""A workflow's hook for tests: notes each call beside itself in `hook.calls`, then does what `hook.json` says.

hook.json is a list of steps, one for each call; the last one goes on. Members of a step: answer (an object, or a text that is
written as it is), status (of its exit), signal (that ends it), until (a path that it waits for), descend (leaves a process behind).
"""
import json
import os
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
CALLS = os.path.join(FOLDER, "hook.calls")

call = {"at": time.time(), "argv": sys.argv[1:], "input": json.load(sys.stdin), "env": dict(os.environ), "cwd": os.getcwd(),
        "mode": oct(os.stat(os.getcwd()).st_mode & 0o777), "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:5]}
with open(os.path.join(os.environ["HOME"], "left"), "w", encoding="ascii") as file:
    file.write("x")
with open(CALLS, "a", encoding="utf-8") as file:
    file.write(json.dumps(call) + "\n")
with open(CALLS, encoding="utf-8") as file:
    number = len(file.read().split("\n")) - 1
with open(os.path.join(FOLDER, "hook.json"), encoding="utf-8") as file:
    steps = json.load(file)
step = steps[min(number, len(steps)) - 1]
if step.get("descend"):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
while "until" in step and not os.path.exists(step["until"]):
    time.sleep(0.02)
answer = step.get("answer")
if answer is not None:
    os.write(3, (answer if isinstance(answer, str) else json.dumps(answer)).encode())
if "signal" in step:
    os.kill(os.getpid(), step["signal"])
sys.exit(step.get("status", 0))
