"""The units of deploy/systemd: what they say is so, and two users keep an agent from the worker (X35, L-13, B19)."""
import os
import re
import shutil
import subprocess
import tempfile

import pytest

import units
from host import binary, wait_until

pytestmark = pytest.mark.drivers("local")

# What an agent could do to the worker; each tried by itself, and told as "done" or the error's name.
TRIES = r"""#!/usr/bin/python3
import ctypes, errno, json, os, signal, subprocess, sys
sys.stdin.read()
told = {}
def attempt(name, action):
    try:
        action()
        told[name] = "done"
    except OSError as error:
        told[name] = errno.errorcode[error.errno]
def read(path):
    with open(path, "rb") as file:
        file.read(1)
def write(path):
    with open(path, "ab"):
        pass
def trace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) != 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(pid, 0)
    libc.ptrace(17, pid, 0, 0)
guard = os.getppid()
with open(f"/proc/{guard}/stat") as file:
    worker = int(file.read().rsplit(")", 1)[1].split()[1])
for name in ("KEY", "STORE", "LOG", "CONFIGURATION"):
    attempt("read " + name, lambda: read(os.environ[name]))
    attempt("write " + name, lambda: write(os.environ[name]))
attempt("list keys", lambda: os.listdir(os.path.dirname(os.environ["KEY"])))
attempt("plant", lambda: write(os.path.join(os.path.dirname(os.environ["CONFIGURATION"]), "planted")))
for name, pid in (("worker", worker), ("guard", guard)):
    attempt("signal " + name, lambda: os.kill(pid, 0))
    attempt("environment of " + name, lambda: read(f"/proc/{pid}/environ"))
    attempt("memory of " + name, lambda: read(f"/proc/{pid}/mem"))
    attempt("trace " + name, lambda: trace(pid))
attempt("become its user", lambda: os.setuid(os.stat(os.environ["CONFIGURATION"]).st_uid))
attempt("become root", lambda: os.setuid(0))
with open("/proc/self/status") as file:
    status = dict(line.split(":", 1) for line in file.read().splitlines())
told["capabilities"] = {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
told["uid"], told["groups"] = os.getuid(), os.getgroups()
os.makedirs(os.path.join(os.environ["HOME"], "below", "it"))
write(os.path.join(os.environ["HOME"], "below", "it", "file"))
left = subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3, close_fds=True)
told["left"] = left.pid
os.write(3, json.dumps({"verdict": "approve", "data": told}).encode())
os._exit(0)
"""
DENIED = {"EACCES", "EPERM"}


def exit_statuses():
    """{status: words of the codes that end with it}, from the one table."""
    with open(os.path.join(units.ROOT, "common", "include", "baton", "codes_table.h"), encoding="utf-8") as file:
        found = {}
        for word, kind, status in re.findall(r"CODE\(\d+,\s*(\w+),\s*(\w+),\s*(\d+),", file.read()):
            found.setdefault(int(status), {})[word] = kind
        return found


@pytest.mark.parametrize("name", [units.WORKER, units.COORDINATOR])
def test_a_unit_starts_again_where_that_may_help(name):
    """Every status of the table is one or the other; what a person has to mend, or another process has, is not tried again."""
    service = units.settings(name)["Service"]
    statuses = exit_statuses()
    assert len(statuses) > 8 and statuses[6]["twin"] == "config"
    prevented = {int(one) for one in service["RestartPreventExitStatus"][0].split()}
    assert prevented <= set(statuses), "a status that Baton does not have"
    assert service["Restart"] == ["on-failure"] and {status for status in statuses if status not in prevented} == {0, 1, 8}
    again = {word for status in (1, 8) for word in statuses[status]}
    assert {"service_unavailable", "disk_full", "topic_missing", "no_memory", "unexpected"} <= again
    assert not again & {"twin", "store_busy", "bad_config", "key_unsafe", "unauthenticated", "unknown_service", "usage"}
    assert units.settings(name)["Unit"]["StartLimitIntervalSec"] == ["0"]


def test_b19_a_stop_has_the_time_that_the_worker_takes(fresh):
    """B19: SIGTERM to the worker alone, and longer than the deadline that stands for a grace which is not set, and what follows it."""
    for name in (units.WORKER, units.COORDINATOR):
        service = units.settings(name)["Service"]
        assert service["KillMode"] == ["mixed"] and service["OOMPolicy"] == ["continue"]
        assert service["ExecReload"] == ["/bin/kill -HUP $MAINPID"] and "BATON_MODE=unattended" in service["Environment"]
    deadline = re.search(r"^services\.<name>\.deadline .*default (\d+)m\)$", fresh.run("config", "show", "--keys").ok().out, re.M).group(1)
    stop = re.fullmatch(r"(\d+)min", units.one(units.settings(units.WORKER), "Service", "TimeoutStopSec"))
    assert int(stop.group(1)) >= int(deadline) + 2


def test_units_call_what_there_is(fresh, tmp_path):
    """Installed to another prefix they name it; verbs and options are the program's; and where there is systemd, it takes them."""
    build = os.environ.get("BATON_BUILD") or os.path.dirname(os.path.dirname(binary()))
    prefix = str(tmp_path / "usr")
    subprocess.run(["cmake", "--install", build, "--component", "systemd", "--prefix", prefix], check=True, capture_output=True)
    folder = os.path.join(prefix, "lib", "systemd", "system")
    assert sorted(os.listdir(folder)) == [units.COORDINATOR, units.WORKER]
    for name in (units.WORKER, units.COORDINATOR):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        assert "/usr/local" not in text and f"file:{prefix}/share/baton/systemd/README.md" in text
        words = units.one(units.settings(name, text), "Service", "ExecStart").split()
        assert words[0] == prefix + "/bin/baton"
        help_ = fresh.run(words[1], "--help").ok().out
        named = re.findall(r"(?<!\w)--[a-z-]+", " ".join(words) + " ".join(re.findall(r"^# .*_OPTIONS.*$", text, re.M)))
        assert named and not [option for option in named if option not in help_], named
        program = re.match(r"\S+", units.one(units.settings(name, text), "Service", "ExecReload")).group()
        assert os.access(program, os.X_OK)
    assert os.path.exists(os.path.join(prefix, "share", "baton", "systemd", "README.md"))
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here: what there is beside it was looked at")
    os.makedirs(os.path.join(prefix, "bin"))
    os.symlink(binary(), os.path.join(prefix, "bin", "baton"))
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *paths], capture_output=True, check=False, text=True)
    assert done.returncode == 0 and "baton" not in done.stderr, done


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("systemd-tmpfiles") or not shutil.which("systemd-sysusers"),
                    reason="systemd-sysusers and systemd-tmpfiles, as root, make users and folders")
def test_users_and_folders_are_made_as_they_say(tmp_path):
    """By systemd's own programs, in a root of the test's own; a second time changes nothing."""
    root = str(tmp_path / "root")
    os.makedirs(os.path.join(root, "etc"))
    for _ in range(2):
        for program in (["systemd-sysusers"], ["systemd-tmpfiles", "--create"]):
            done = subprocess.run([*program, f"--root={root}", os.path.join(units.UNITS, f"baton.{program[0].removeprefix('systemd-')}")],
                                  capture_output=True, check=False, text=True)
            assert done.returncode == 0, done
    with open(os.path.join(root, "etc", "passwd"), encoding="utf-8") as file:
        users = {line.split(":")[0]: [int(one) for one in line.split(":")[2:4]] for line in file}
    with open(os.path.join(root, "etc", "group"), encoding="utf-8") as file:
        members = {line.split(":")[0]: line.strip().split(":")[3] for line in file}
    assert members == {"baton": "", "baton-agent": "baton"} and set(users) == set(members)
    for _, path, mode, user, group in (row for row in units.rows("baton.tmpfiles") if row[0] == "d"):
        made = os.stat(root + path)
        assert (made.st_mode & 0o7777, made.st_uid, made.st_gid) == (int(mode, 8), users[user][0], users[group][1]), path
    # What executors have left goes when it is old; here that is at once.
    scratch = os.path.join(root, "var", "lib", "baton", "data-scratch", "alpha.w1")
    for name in ("turn.1.abc", "child.default.abc"):
        os.makedirs(os.path.join(scratch, name, "closed"), mode=0o700)
    conf = tmp_path / "baton.conf"
    conf.write_text(units.text_of("baton.tmpfiles").replace("31d", "0"), encoding="utf-8")
    subprocess.run(["systemd-tmpfiles", "--clean", f"--root={root}", str(conf)], check=True, capture_output=True)
    assert os.listdir(scratch) == ["child.default.abc"]


@pytest.fixture
def unit_host():
    """A host set up as the page of the units says, in a folder that others get into as far as its modes let them."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root becomes another user")
    with tempfile.TemporaryDirectory(prefix="baton-unit-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        host = units.UnitHost(folder)
        yield host
        host.finish()


def test_x35_the_shipped_units_two_users(unit_host):
    """X35: under the worker's uid an agent reads its key, and doctor warns; with the unit's two users it can read neither key, store
    nor log, and neither signal nor trace worker and guard, which end what it leaves."""
    host = unit_host
    path = os.path.join(host.at("/usr/local/bin"), "tries")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
        file.write(TRIES)
    os.chmod(path, 0o755)
    services = {}
    for name in ("same", "apart"):
        services[name] = {"roles": ["reviewer"], "deadline": "20s", "grace": "5s", "executor": {"kind": "exec", "command": [path], "env": {
            "KEY": {"value": os.path.join(host.dir, "keys", name + ".pem")}, "LOG": {"value": os.path.join(host.state, "data", "log.db")},
            "STORE": {"value": os.path.join(host.state, "data", name, "w1", "store.db")},
            "CONFIGURATION": {"value": os.path.join(host.dir, "baton.yaml")}}}}
    services["apart"]["executor"]["prefix"] = units.prefix()
    host.configure(services)
    doctor = [one for one in host.run("doctor", "--json").objects if one["check"] == "executors"]
    assert [one["level"] for one in doctor if "same" in one["text"]] == ["warn"], doctor
    told = {}
    for name in services:
        turn = host.published(name, "reviewer", "t-1")
        host.drain(name, "w1")
        shown = host.show(turn)
        assert shown["state"] == "completed", (shown, host.all_logs())
        told[name] = shown["result"]["data"]
    tries = {name for name, end in told["same"].items() if isinstance(end, str)}
    assert len(tries) > 15 and {told["same"][name] for name in ("read KEY", "read STORE", "read LOG", "signal worker")} == {"done"}
    assert told["same"]["become root"] in DENIED and told["same"]["uid"] == units.ids("baton")[0]
    permitted = {"read CONFIGURATION"} | {name for name in tries if told["apart"][name] not in DENIED}
    assert permitted == {"read CONFIGURATION"}, told["apart"]
    assert told["apart"]["uid"] == units.ids("baton-agent")[0] and told["apart"]["groups"] == []
    for name, one in told.items():
        held = [what for what, bits in one["capabilities"].items() if bits]
        assert held in ([], ["CapInh"] if name == "same" else []), (name, one)  # inheritable by itself gives nothing
        assert not os.path.exists(f"/proc/{one['left']}"), f"what the executor of {name} left still runs"
    assert os.listdir(os.path.join(host.state, "data-scratch", "apart.w1")) == [], "nothing of an attempt is left"
    host.write({"apart": services["apart"]})
    host.held = units.of_doctor()
    assert sorted(host.held) == sorted(units.one(host.worker_unit, "Service", "AmbientCapabilities").split())
    assert [one["level"] for one in host.run("doctor", "--json").objects if one["check"] == "executors"] == ["ok"]


def left_by_doctor():
    """Processes of whom executors become that doctor has left, since it may not end them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")[:2]
            if words == [b"sleep", b"8"] and os.stat(f"/proc/{pid}").st_uid == units.ids("baton-agent")[0]:
                found.append(pid)
        except OSError:
            pass
    return found


def test_x35_doctor_tries_the_prefix(unit_host):
    """X35: a prefix that leaves the executor the worker's user does not count; one that cannot be used from here, or whose processes
    cannot be ended, is told, with what it says itself; two services with one prefix are one finding."""
    host = unit_host
    service = {"roles": ["reviewer"], "executor": {"kind": "exec", "command": ["/bin/true"]}}

    def found(prefix, *held):
        host.held = list(held)
        host.write({name: {**service, "executor": {**service["executor"], "prefix": prefix}} for name in ("first", "second")})
        return [(one["level"], one["text"], one["mend"]) for one in host.run("doctor", "--json").objects if one["check"] == "executors"]

    every = units.of_doctor()
    (level, text, mend), = found(["env", "SOME=thing"])
    assert level == "warn" and f"first can read {host.dir}/keys" in text and "another user" in mend, text
    (level, text, mend), = found(units.prefix())
    assert level == "warn" and "does not work from here: setpriv: " in text and "deploy/systemd" in mend, text
    (level, text, mend), = found(units.prefix(), *[one for one in every if one != "CAP_KILL"])
    assert level == "warn" and "may not be ended" in text and "CAP_KILL" in mend, text
    assert left_by_doctor()
    wait_until(lambda: not left_by_doctor(), 20, "what could not be ended to end by itself")
    (level, text, _), = found(["no-such-program"])
    assert level == "warn" and "no-such-program is not there" in text, text
    assert [level for level, _, _ in found(units.prefix(), *every)] == ["ok"]
