#!/usr/bin/python3
"""A stand-in for an agent program: notes its call as fake_executor.py does, and prints what the real one printed.

    fake_agent.py PROGRAM ARGV…     PROGRAM: claude, codex, gemini

Its plan is fake_executor's; steps are {"fixture": MODE} (tests/fixtures/agents/PROGRAM-MODE.out, "ok" if none
is named), with "verdict" and "summary" in place of those recorded; {"raw": TEXT, "exit": N}; and those of do()
before it: sleep, until, hang, signal, kill_worker. {"keys": {VALUE: STEP}} chooses by the variable FAKE_KEY.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_executor import VERDICTS, call_line, do, note, step_of  # noqa: E402

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "agents")
STATUS = {"gemini": {"400": 144, "401": 145, "403": 147, "429": 173, "503": 247}}


def printed(program, mode, verdict, summary):
    with open(os.path.join(FIXTURES, f"{program}-{mode}.out"), encoding="utf-8") as file:
        text = file.read()
    # The verdict stands in JSON, and in JSON within a text of JSON.
    text = re.sub(r'(verdict\\?": ?\\?")approve', lambda found: found.group(1) + verdict, text)
    return text.replace("one thing was looked at", summary)


def main():
    if sys.argv[-1] == "--version":
        print(f"9.9.9 (stand-in for {sys.argv[1]})")
        return
    program, prompt = sys.argv[1], sys.stdin.buffer.read().decode("utf-8", "replace")
    role = re.search(r"You are the (\w+)", prompt)
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    line = call_line({"role": role.group(1) if role else None}, "start", env=dict(os.environ), stdin=prompt, cwd=os.getcwd(),
                     fds=descriptors, argv=sys.argv, program=program)
    note(line)
    step = step_of(line["task"], line["fake_service"], line["attempt"])
    while "keys" in step:
        step = step["keys"][os.environ.get("FAKE_KEY", "")]
    do(step, line["role"], {})
    if "raw" in step:
        os.write(1, step["raw"].encode("utf-8", "surrogateescape"))
        os._exit(step.get("exit", 0))
    mode = step.get("fixture", "ok")
    os.write(1, printed(program, mode, step.get("verdict", VERDICTS[line["role"]]), step.get("summary", "as planned")).encode())
    note(dict(line, event="end", env=None, stdin=None))
    os._exit(STATUS.get(program, {}).get(mode, 0 if mode in ("ok", "prose") else 1))


if __name__ == "__main__":
    main()
