"""`baton dev` as a newcomer uses it: in a terminal, with a task in a file, ended by Ctrl-C (L-70)."""
import os
import pty
import select
import signal
import subprocess
import time

import pytest

from host import SLOW, binary, wait_until
from runs import CHAINS, show, start, until

pytestmark = pytest.mark.drivers("local")  # about processes and a terminal


class Dev:
    """`baton dev` in a terminal of its own."""

    def __init__(self, host, *words):
        self.host, self.text = host, ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(host.dir)
            os.execve(binary(), ["baton", "dev", *words], host.environment)
        self.status = None

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                got = os.read(self.terminal, 65536)
            except OSError:  # nobody is at the other end
                break
            if not got:
                break
            self.text += got.decode("utf-8", "replace")
        return self.text

    def says(self, text, count=1, seconds=30):
        wait_until(lambda: self.read().count(text) >= count, seconds, lambda: f"{text!r} in\n{self.text}")
        return self

    def interrupt(self):
        os.write(self.terminal, b"\x03")

    def ended(self):
        self.read()
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def end(self, seconds=20):
        wait_until(self.ended, seconds, lambda: f"dev to end\n{self.text}")
        self.read()
        os.close(self.terminal)
        return self.status

    def kill(self):
        if self.status is None and not self.ended():
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def dev(fresh):
    """A host with three services, and what starts `baton dev` on it."""
    host = fresh.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS)
    started = []

    def begin(*words):
        started.append(Dev(host, *words))
        return started[-1].says("ready\r\n", 4)

    yield host, begin
    for one in started:
        one.kill()


def test_the_first_run_of_a_newcomer(dev):
    """It says what to type next; that starts a run over a task in a file, which is followed to its end; Ctrl-C ends all with 0."""
    host, begin = dev
    terminal = begin()
    assert "3 workers and a coordinator" in terminal.text
    typed = next(one for one in terminal.text.splitlines() if one.startswith("in another terminal: baton ")).split(": baton ")[1].split()
    with open(os.path.join(host.dir, "FILE.md"), "w", encoding="utf-8") as file:
        file.write("# Mend the parser\n")
    done = host.run(*typed)
    assert done.status == 0 and done.out.splitlines()[-1].endswith("is completed: approved: as planned"), done
    terminal.says("active -> completed: approved: as planned").says("reviewer turn ")
    assert "none ->" not in terminal.text
    terminal.interrupt()
    assert terminal.end() == 0
    wait_until(lambda: not host.processes(), 10, lambda: f"nothing to be left: {host.describe()}")


def test_one_interrupt_lets_an_attempt_end(dev):
    """A terminal's Ctrl-C reaches the workers twice, from it and from `dev`: an attempt that runs ends all the same, and its end counts."""
    host, begin = dev
    host.plan(turns={"alpha": [{"until": host.fake + "/go"}]}, default=[{}])
    terminal = begin()
    run = start(host)
    host.called(1, service="alpha")
    terminal.interrupt()
    terminal.says("Ctrl-C once more ends them")
    time.sleep(1)
    open(os.path.join(host.fake, "go"), "w", encoding="ascii").close()
    assert terminal.end() == 0
    begin()
    shown = until(host, run, "completed")
    assert shown["turns"][0]["attempt"] == 1 and len(host.calls(service="alpha")) == 1, shown


def test_two_interrupts_wait_for_nothing(dev):
    """Ctrl-C once more: at once, whatever runs; nothing is left behind, and the next start tries the turn again."""
    host, begin = dev
    host.plan(turns={"alpha": [{"until": host.fake + "/go"}]}, default=[{}])
    terminal = begin()
    run = start(host)
    host.called(1, service="alpha")
    terminal.interrupt()
    terminal.says("Ctrl-C once more ends them")
    terminal.interrupt()
    begun = time.monotonic()
    terminal.end()
    assert time.monotonic() - begun < 4 * SLOW  # the attempt's grace is five seconds
    wait_until(lambda: not host.processes(), 10, lambda: f"nothing to be left: {host.describe()}")
    open(os.path.join(host.fake, "go"), "w", encoding="ascii").close()
    begin()
    assert until(host, run, "completed")["turns"][0]["attempt"] == 2


def test_a_run_that_waits_says_what_helps(dev):
    """`runs start --wait` of a run that waits for a person ends with the command that lets it go on; `baton dev` tells why it waits."""
    host, begin = dev
    host.plan(turns={"alpha": [{"verdict": "needs_context", "summary": "which one?"}]}, default=[{}])
    terminal = begin()
    done = host.run("runs", "start", "--workflow", "paired-review", "--task", "t-1", "--summary", "Mend it", "--wait", "--timeout", "60s")
    last = done.out.splitlines()[-1]
    assert done.status == 4 and last.startswith("next: `baton handoff --run r-") and last.endswith("--from owner --to reviewer --summary TEXT`"), done
    terminal.says("owner says needs_context: which one?")
    words = last.split("`")[1].replace("TEXT", "the-first").split()[1:]
    assert subprocess.run([binary(), *words], cwd=host.dir, env=dict(host.environment, BATON_MODE="attended"), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, check=False).returncode == 0
    until(host, host.run("runs", "list", "--json").ok().one["run_id"], "completed")
    assert show(host, host.run("runs", "list", "--json").ok().one["run_id"])["why"] == "approved: as planned"


def test_each_process_has_an_address_of_its_own(dev):
    """With http.listen set, four processes of one host do not fight for one port."""
    _, begin = dev
    terminal = begin("--set", "http.listen=127.0.0.1:9464")
    terminal.says("metrics and health at 127.0.0.1:", 4)
    terminal.interrupt()
    assert terminal.end() == 0 and "taken by another process" not in terminal.text, terminal.text
