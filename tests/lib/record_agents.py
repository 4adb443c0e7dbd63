#!/usr/bin/python3
"""Records what the real agent programs print, into tests/fixtures/agents: for when their versions change.

    tests/run --agents                      installs them into build/agents
    python3 tests/lib/record_agents.py      every program and answer; or: PROGRAM MODE, for one

Values that identify a session, a folder or a moment are replaced. A program that does not end by itself
within half a minute leaves no fixture. What each recorded end must be stands in test_agent_outputs.c.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "deploy", "examples"))

from modelserver import ModelServer  # noqa: E402

PROGRAMS = os.path.join(ROOT, "build", "agents", "node_modules", ".bin")
FIXTURES = os.path.join(ROOT, "tests", "fixtures", "agents")
MODES = ["ok", "400", "401", "403", "429", "500", "503", "overloaded", "die", "junk", "prose"]
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["verdict", "summary"],
          "properties": {"verdict": {"type": "string", "enum": ["approve", "changes"]}, "summary": {"type": "string"}}}
GEMINI = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"maxAttempts": 1, "plan": {"modelRouting": False}}}


def command(program, url, home):
    """argv and environment, as the adapters have them (worker/agent)."""
    path, env = os.path.join(PROGRAMS, program), {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}
    if program == "claude":
        env.update(ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="sk-record", CLAUDE_CODE_MAX_RETRIES="0", DISABLE_TELEMETRY="1",
                   CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
        return [path, "-p", "--output-format", "stream-json", "--verbose", "--json-schema", json.dumps(SCHEMA), "--permission-mode", "plan"], env
    if program == "codex":
        with open(os.path.join(home, "schema.json"), "w", encoding="utf-8") as file:
            json.dump(SCHEMA, file)
        env["OPENAI_API_KEY"] = "sk-record"
        provider = f'model_providers.stub={{name="stub",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}}'
        return [path, "exec", "--json", "--ephemeral", "--skip-git-repo-check", "-s", "read-only", "--output-schema",
                os.path.join(home, "schema.json"), "-c", 'model_provider="stub"', "-c", provider, "-"], env
    os.makedirs(os.path.join(home, ".gemini"))
    with open(os.path.join(home, ".gemini", "settings.json"), "w", encoding="utf-8") as file:
        json.dump(GEMINI, file)
    env.update(GOOGLE_GEMINI_BASE_URL=url, GEMINI_API_KEY="sk-record")
    return [path, "--skip-trust", "-p", "", "--output-format", "stream-json", "--approval-mode", "plan", "-m", "gemini-2.5-flash"], env


def clean(text, home):
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "01234567-89ab-4cde-8f01-23456789abcd", text)
    text = text.replace(home, "/scratch").replace(home.replace("/", "-"), "-scratch")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
    text = re.sub(r"20\d\d-\d\d-\d\dT[0-9:.]+Z", "2026-11-30T00:00:00.000Z", text)
    lines = text.splitlines()
    if lines and '"subtype":"init"' in lines[0]:  # long lists of what the program has
        first = json.loads(lines[0])
        first.update({name: first[name][:2] for name in ("tools", "slash_commands", "agents", "skills") if name in first})
        lines[0] = json.dumps(first, separators=(",", ":"), ensure_ascii=False)
    return "\n".join(lines) + "\n"


def record(server, program, mode):
    with tempfile.TemporaryDirectory() as home:
        argv, env = command(program, server.url(mode), home)
        process = subprocess.Popen(argv, cwd=home, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            out, _ = process.communicate(b"Review this patch please.\n", timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            print(f"{program} {mode}: does not end by itself")
            return
        with open(os.path.join(FIXTURES, f"{program}-{mode}.out"), "w", encoding="utf-8") as file:
            file.write(clean(out.decode("utf-8", "replace"), home))
        print(f"{program} {mode}: exit status {process.returncode}")


if __name__ == "__main__":
    stub = ModelServer()
    for name in sys.argv[1:2] or ["claude", "codex", "gemini"]:
        for answer in sys.argv[2:3] or MODES:
            record(stub, name, answer)
    stub.close()
