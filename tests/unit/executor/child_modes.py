#!/usr/bin/env python3
# A child that behaves as its first argument says; the second is a directory to note things in.
import json
import os
import signal
import sys
import time

mode, notes = sys.argv[1], sys.argv[2]


def note(name, text):
    path = os.path.join(notes, name)
    new = f"{path}.{os.getpid()}"  # several children may note the same thing
    with open(new, "w") as file:
        file.write(f"{text}\n")
    os.rename(new, path)


def say(**message):
    print(json.dumps(message), flush=True)


def result(turn, verdict="approve", **more):
    say(type="result", id=turn["id"], result={"verdict": verdict, **more})


with open(os.path.join(notes, "starts"), "a") as file:
    file.write("x")
note(f"pid-{os.environ.get('PROFILE', 'none')}", os.getpid())
if mode == "exit-before-hello":
    sys.exit(3)
if mode == "no-hello":
    time.sleep(1000)
hello = json.loads(sys.stdin.readline())
assert hello["type"] == "hello" and hello["protocol"] == 1, hello
assert hello["service"] == "lint" and hello["profile"], hello
if mode == "wrong-protocol":
    say(type="hello", protocol=2, name="modes")
    time.sleep(1000)
if mode == "junk-hello":
    print("hello there", flush=True)
    time.sleep(1000)
if mode == "result-before-hello":
    say(type="result", id="x", result={})
    time.sleep(1000)
say(type="hello", protocol=1, name="modes", **({"parallel": 3} if mode.startswith("parallel") else {}))
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
if mode == "second-hello":
    sys.stdin.readline()
    say(type="hello", protocol=1, name="modes")
    time.sleep(1000)

waiting = []
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "cancel":
        note("cancelled", 1)
        note("reason", message["reason"])
        if mode == "cancel-answers":
            result({"id": message["id"]})
        continue
    assert message["type"] == "turn", message
    if mode == "answer":
        print(f"working on {message['id']}", file=sys.stderr, flush=True)
        result(message, summary=os.environ.get("TOKEN", ""), data={
            "role": message["role"], "place": message["place"], "attempt": str(message["attempt"]),
            "version": message["turn"]["version"], "marker": os.environ["BATON_ATTEMPT"],
            "profile": os.environ.get("PROFILE", "none")})
    elif mode == "environment":
        result(message, items=sorted(os.environ))
    elif mode == "progress":
        for i in range(3):
            say(type="progress", id=message["id"], text=f"step {i} {os.environ.get('TOKEN', '')}")
        result(message)
    elif mode == "slow-progress":
        for i in range(40):
            say(type="progress", id=message["id"], text=f"step {i}")
            time.sleep(0.1)
        say(type="result", id=message["id"], result={"verdict": "approve"})
    elif mode == "class":
        say(type="result", id=message["id"], result={"class": "quota", "message": "spent"})
    elif mode == "illegal":
        result(message, verdict="done")
    elif mode == "crash":
        print("about to fall", file=sys.stderr, flush=True)
        sys.exit(9)
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "close-output":
        os.close(1)
        time.sleep(1000)
    elif mode == "answer-and-exit":
        result(message)
        sys.exit(0)
    elif mode == "junk":
        print("{not json", flush=True)
    elif mode == "too-long":
        sys.stdout.write("x" * (1 << 21) + "\n")
        sys.stdout.flush()
    elif mode == "unknown-member":
        say(type="result", id=message["id"], result={"verdict": "approve"}, colour="red")
    elif mode == "unknown-type":
        say(type="thought", id=message["id"])
    elif mode == "unknown-id":
        say(type="result", id="0" * 32 + ".1", result={"verdict": "approve"})
    elif mode == "two-results":
        note("two", os.getpid())
        result(message)
        result(message)
    elif mode == "no-result-member":
        say(type="result", id=message["id"])
    elif mode == "large-result":
        result(message, data={"text": "x" * 70000})
    elif mode in ("hang", "cancel-answers", "parallel-hang"):
        note(f"hang-{message['attempt']}", os.getpid())
    elif mode == "parallel":
        waiting.append(message)
        if len(waiting) == 3:
            for turn in reversed(waiting):
                result(turn, summary=f"one of {len(waiting)}")
            waiting = []
    elif mode == "parallel-junk":
        waiting.append(message)
        if len(waiting) == 3:
            print("junk", flush=True)
note("stdin-ended", 1)
