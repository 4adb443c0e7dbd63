#!/usr/bin/python3
"""A stand-in for an agent program: notes its call as fake_executor.py does, and prints what the real one printed.

    fake_agent.py PROGRAM ARGV…     PROGRAM: claude, codex, gemini

Its plan is fake_executor's; steps are {"fixture": MODE} (tests/fixtures/agents/PROGRAM-MODE.out, "ok" if none
is named; {"gone": true} knows no session that it is to go on in), with "verdict" and "summary" in place of those recorded; {"raw": TEXT, "exit": N}; and those of do()
before it: sleep, until, hang, signal, kill_worker; {"events": N, "every": SECONDS}: so many events of work. {"keys": {VALUE: STEP}} chooses by the variable FAKE_KEY.
"""
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_executor import VERDICTS, call_line, do, note, step_of  # noqa: E402

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "agents")
EVENTS = {"claude": b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read"}]}}\n',
          "codex": b'{"type":"item.started","item":{"type":"command_execution","command":"ls"}}\n',
          "gemini": b'{"type":"tool_use","tool_name":"read_file"}\n'}
STATUS = {"gemini": {"400": 144, "401": 145, "403": 147, "429": 173, "503": 247}}


def printed(program, mode, verdict, summary):
    with open(os.path.join(FIXTURES, f"{program}-{mode}.out"), encoding="utf-8") as file:
        text = file.read()
    # The verdict stands in JSON, and in JSON within a text of JSON.
    text = re.sub(r'(verdict\\?": ?\\?")approve', lambda found: found.group(1) + verdict, text)
    return text.replace("one thing was looked at", summary)


def gone(program, session):
    """What each program says of a session that it does not have."""
    if program == "claude":
        print(json.dumps({"type": "result", "subtype": "error_during_execution", "is_error": True, "num_turns": 0, "session_id": session,
                          "errors": [f"No conversation found with session ID: {session}"]}))
    elif program == "codex":
        print(f"Error: thread/resume: thread/resume failed: no rollout found for thread id {session} (code -32600)", file=sys.stderr)
    else:
        print(f'Error resuming session: Invalid session identifier "{session}".\n  Use --list-sessions to see available sessions.', file=sys.stderr)
    sys.stdout.flush()
    os._exit(42 if program == "gemini" else 1)


def main():
    if sys.argv[-1] == "--version":
        print(f"9.9.9 (stand-in for {sys.argv[1]})")
        return
    program, prompt = sys.argv[1], sys.stdin.buffer.read().decode("utf-8", "replace")
    role = re.search(r"You are the (\w+)", prompt)
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    resumed = next((sys.argv[i + 1] for i, word in enumerate(sys.argv) if word in ("--resume", "resume")), None)
    line = call_line({"role": role.group(1) if role else None}, "start", env=dict(os.environ), stdin=prompt, cwd=os.getcwd(),
                     fds=descriptors, argv=sys.argv, program=program, resumed=resumed)
    step = step_of(line["task"], line["fake_service"], line["attempt"], line["turn"])
    while "keys" in step:
        step = step["keys"][os.environ.get("FAKE_KEY", "")]
    if resumed and step.get("gone"):
        note(dict(line, event="gone"))
        gone(program, resumed)
    note(line)
    for _ in range(step.get("events", 0)):
        os.write(1, EVENTS[program])
        time.sleep(step.get("every", 0.1))
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
