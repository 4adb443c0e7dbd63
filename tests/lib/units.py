"""The units of deploy/systemd without systemd: read, and their programs run with the user, capabilities and folders that they name.

Called by tests/fleet/test_79_units.py. As `baton` and `baton-agent` two users stand in that every Debian has, below a
folder of the test's own in place of /.
"""
import os
import pwd
import re
import shlex
import shutil
import subprocess

from host import Host, binary
from locallog import LocalLog

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNITS = os.path.join(ROOT, "deploy", "systemd")
WORKER, COORDINATOR = "baton-worker@.service", "baton-coordinator.service"
STAND_IN = {"baton": "daemon", "baton-agent": "nobody"}


def text_of(name):
    with open(os.path.join(UNITS, name), encoding="utf-8") as file:
        return file.read()


def settings(name, text=None):
    """{section: {key: [values]}} of a unit; a line that is no setting fails."""
    found, section = {}, None
    for line in (text or text_of(name)).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
            continue
        key, equals, value = line.partition("=")
        assert equals and re.fullmatch(r"[A-Z]\w+", key), line
        section.setdefault(key, []).append(value)
    return found


def one(unit, section, key):
    value, = unit[section][key]
    return value


def rows(name):
    """The lines of sysusers.d and tmpfiles.d files as their words."""
    return [shlex.split(line) for line in text_of(name).splitlines() if line.strip() and not line.startswith("#")]


def ids(name):
    """Uid and gid of who stands in for a user."""
    entry = pwd.getpwnam(STAND_IN[name])
    return entry.pw_uid, entry.pw_gid


def as_user(user, group, others, capabilities, umask="022"):
    """The words that run a program as a unit does: `capabilities` of it are ambient, and no others can be had."""
    words = ["setpriv", f"--reuid={ids(user)[0]}", f"--regid={ids(group)[1]}",
             "--groups=" + ",".join(str(ids(name)[1]) for name in [group, *others]), "--no-new-privs"]
    only = ",".join(["-all"] + ["+" + name.removeprefix("CAP_").lower() for name in capabilities])
    words += [f"{option}={only}" for option in ("--inh-caps", "--ambient-caps", "--bounding-set")]
    return words + ["sh", "-c", f'umask {umask}; exec "$@"', "sh"]


def of_doctor():
    """The capabilities that the page gives `baton doctor`."""
    inherited, ambient = re.search(r"--inh-caps=(\S+) --ambient-caps=(\S+) baton doctor$", text_of("README.md"), re.M).groups()
    assert inherited == ambient
    return ["CAP_" + one.lstrip("+").upper() for one in ambient.split(",")]


def prefix():
    """`executor.prefix` as the page of the units prints it, with the users' numbers."""
    words = re.search(r"^    prefix: \[(.*?)\]", text_of("README.md"), re.M | re.S).group(1)
    uid, gid = ids("baton-agent")
    named = [word.strip() for word in words.split(",")]
    return [word.replace("--reuid=baton-agent", f"--reuid={uid}").replace("--regid=baton-agent", f"--regid={gid}") for word in named]


class UnitHost(Host):
    """A host that was set up as deploy/systemd/README.md says: what it prints is run, below a folder in place of /."""

    def __init__(self, folder):  # pylint: disable=super-init-not-called
        self.driver, self.prefix, self.brokers = "local", "baton", None
        self.root, self.worker_unit = folder, settings(WORKER)
        self.dir, self.state = self.at("/etc/baton"), self.at("/var/lib/baton")
        self.logs, self.fake = self.at("/logs"), self.at("/fake")
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": self.state, "TMPDIR": "/tmp"}
        self.environment.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})
        self.workers, self.settings, self.tampered = [], {}, False
        self.held = []  # capabilities of the verbs that a person runs
        for path in ("/logs", "/fake", "/etc", "/var/lib", "/usr/local/bin", "/usr/local/libexec/baton"):
            os.makedirs(self.at(path), mode=0o755)
        self.binary = shutil.copy(binary(), self.at("/usr/local/bin/baton"))
        shutil.copy(os.path.join(os.path.dirname(binary()), "baton-guard"), self.at("/usr/local/libexec/baton/baton-guard"))
        self.make_folders()
        self.set_up()

    def at(self, path):
        return self.root + path

    def make_folders(self):
        """What systemd-tmpfiles does."""
        for kind, path, mode, user, group in (row for row in rows("baton.tmpfiles") if row[0] == "d"):
            os.makedirs(self.at(path), exist_ok=True)
            os.chown(self.at(path), ids(user)[0], ids(group)[1])
            os.chmod(self.at(path), int(mode, 8))
            assert kind == "d"

    def set_up(self):
        """The commands of the page, but for those that ask systemd."""
        by_hand = " ".join(map(shlex.quote, as_user("baton", "baton", ["baton-agent"], [])))
        lines = [line for line in re.findall(r"^    (\S.*)$", text_of("README.md"), re.M) if "baton init" in line or line.startswith("sed ")]
        assert len(lines) == 2, lines
        for line in lines:
            line = line.replace("runuser -u baton --", by_hand).replace(" baton init", f" {self.binary} init")
            line = re.sub(r"(?<![\w/])(/etc/baton|/var/lib/baton)", lambda found: self.at(found.group(1)), line)
            subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True, cwd="/", env=self.environment, timeout=60)
        with open(os.path.join(self.dir, "baton.yaml"), encoding="utf-8") as file:
            self.first_configuration = file.read()
        self.identity = re.search(r"^identity:\s*\"?([\w.-]+)", self.first_configuration, re.M).group(1)

    def program(self, verb):
        """Workers as their unit has them, verbs as a person runs them, as `baton`."""
        service = self.worker_unit["Service"]
        if verb != "worker":
            return as_user("baton", "baton", ["baton-agent"], self.held) + [self.binary]
        assert one(self.worker_unit, "Service", "CapabilityBoundingSet") == one(self.worker_unit, "Service", "AmbientCapabilities")
        words = as_user(*(one(self.worker_unit, "Service", key) for key in ("User", "Group")), service["SupplementaryGroups"],
                        one(self.worker_unit, "Service", "AmbientCapabilities").split(), one(self.worker_unit, "Service", "UMask"))
        run = one(self.worker_unit, "Service", "ExecStart").split()
        assert run[1:4] == ["worker", "--service", "%i"] and service["NoNewPrivileges"] == ["yes"]
        return words + ["env", *(line.replace("/etc/baton", self.dir) for line in service["Environment"]), self.at(run[0])]

    def write(self, services=None, session=None, heartbeat=None, partitions=None, **more):
        """As Host.write(); the file stays its owner's."""
        more = {"state_dir": os.path.join(self.state, "data"), "local": {"path": os.path.join(self.state, "data", "log.db")}, **more}
        return super().write(services, session, heartbeat, partitions, **more)

    @property
    def log(self):
        return LocalLog(os.path.join(self.state, "data", "log.db"))
