"""Services whose executor is an agent program: a stand-in, or the real one against a stub model server."""
import os
import sys

LIB = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(LIB)), "deploy", "examples"))  # the stub model server
FAKE = os.path.join(LIB, "fake_agent.py")
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
ADDRESSES = {"claude": ("ANTHROPIC_BASE_URL", ""), "codex": ("OPENAI_BASE_URL", "/v1"), "gemini": ("GOOGLE_GEMINI_BASE_URL", "")}
SECRET = "sk-canary-1f0c7a5e93"


def service(host, name, program, executor=None, **more):
    """A service of an agent program with the stand-in in its place."""
    made = {"kind": "agent", "agent": program, "command": ["/usr/bin/python3", "-S", "-E", FAKE, program],
            "env": {"FAKE_DIR": {"value": host.fake}, "FAKE_SERVICE": {"value": name}}}
    made.update(executor or {})
    settings = {"roles": ["owner", "reviewer", "arbiter"], "parallel": 4, "deadline": "20s", "grace": "5s", "executor": made,
                "profiles": [{"name": "team", "env": {KEYS[program]: {"file": secret(host)}}}]}
    settings.update(more)
    return settings


def secret(host, name="team", value=SECRET):
    """A file with a credential, relative to the configuration."""
    folder = os.path.join(host.dir, "secrets")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(value + "\n")
    return f"secrets/{name}"


def shared_scratch(host, group):
    """The folder of scratch directories that a prefix's user shares by its group, made as worker/EXECUTOR.md says. Whoever
    gets to the host's folder gets there."""
    path = os.path.join(host.dir, "data-scratch")
    os.mkdir(path)
    os.chown(path, -1, group)
    os.chmod(path, 0o2711)
    return path


def folder():
    """Where the real programs are installed (tests/run --agents), or None."""
    return os.environ.get("BATON_AGENTS")


def real(host, server, program, mode, value=SECRET, **more):
    """A service of the real program against the stub, which answers as mode says."""
    variable, suffix = ADDRESSES[program]
    model = {"gemini": "gemini-2.5-flash"}.get(program)
    executor = {"kind": "agent", "agent": program, "command": [os.path.join(folder(), "node_modules", ".bin", program)],
                "env": {variable: {"value": server.url(mode) + suffix}}}
    if model:
        executor["model"] = model
    settings = {"roles": ["owner", "reviewer", "arbiter"], "parallel": 4, "deadline": "60s", "grace": "5s", "executor": executor,
                "profiles": [{"name": "team", "env": {KEYS[program]: {"file": secret(host, f"{program}-{mode}".replace("=", "-"), value)}}}]}
    settings.update(more)
    return settings
