"""A host under test: a fresh folder made by `baton init`, its configuration, verbs and workers.

On the local log it is alone with its file; on Kafka it has a prefix of its own on the run's broker.
Everything a test asserts on is what a user can see: exit statuses, --json, records in topics, rows in
stores, and the calls that the fake executor noted.
"""
import json
import os
import re
import secrets
import signal
import stat
import subprocess
import time

import broker
import proof
import yamlout
from calls import noted
from kafkalog import KafkaLog
from locallog import LocalLog

LIB = os.path.dirname(os.path.abspath(__file__))
EXECUTOR = os.path.join(LIB, "fake_executor.py")
ROLES = ["owner", "reviewer", "arbiter"]
FAULTS = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL, 99}  # 99: a sanitizer's
SLOW = {"asan": 3.0, "tsan": 6.0}.get(os.environ.get("BATON_TEST_PRESET", ""), 1.0)


def binary():
    root = os.path.dirname(os.path.dirname(LIB))
    return os.environ.get("BATON_BIN") or os.path.join(root, "build", "dev", "deploy", "baton")


class WaitedInVain(AssertionError):
    """What should have come did not come in time, whoever waited for it: never a broken promise (conftest.py)."""


def wait_until(condition, seconds=20, what="the condition"):
    """The first true answer of condition(); fails after so many seconds (longer under sanitizers)."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            text = what() if callable(what) else what
            raise WaitedInVain(f"waited {seconds * SLOW:.0f} s in vain for {text}")
        time.sleep(0.02)


def ready(worker):
    """The worker, once it says that it is ready."""
    wait_until(lambda: worker.events(f"{worker.kind}.ready"), 40, lambda: f"{worker.id} to be ready\n{worker.log[-2000:]}")
    return worker


def attempts(host, turn):
    """What became of each attempt of a turn: (number, state, class)."""
    return [(one["no"], one["state"], one["class"]) for one in host.show(turn)["attempts"]]


class Done:
    """How a command ended."""

    def __init__(self, argv, status, out, err, took):
        self.argv, self.status, self.out, self.err, self.took = argv, status, out, err, took

    @property
    def objects(self):
        return [json.loads(line) for line in self.out.splitlines() if line.strip()]

    @property
    def one(self):
        objects = self.objects
        assert len(objects) == 1, f"one object expected: {self}"
        return objects[0]

    @property
    def code(self):
        """The code that a refused command names."""
        return self.one.get("code")

    def ok(self):
        if self.status == 8 and ('"service_unavailable"' in self.out or '"timed_out"' in self.out):
            raise WaitedInVain(f"the log did not answer in time: {self}")
        assert self.status == 0, f"status 0 expected: {self}"
        return self

    def refused(self, code, status):
        assert self.status == status, f"status {status} ({code}) expected: {self}"
        assert self.code == code, f"{code} expected: {self}"
        return self

    def __repr__(self):
        return str(self)

    def __str__(self):
        return f"{' '.join(self.argv[1:])[:500]}\n  status {self.status}\n  out: {self.out[-3000:]}\n  err: {self.err[-3000:]}"


class Worker:
    """A worker process in a process group of its own, with its log in files."""

    def __init__(self, host, service, worker_id, options=(), environment=None):
        self.host, self.service, self.id = host, service, worker_id
        self.number = len(host.workers)
        base = os.path.join(host.logs, f"{self.number:02d}-{service}-{worker_id or 'default'}")
        self.out_path, self.err_path = base + ".out", base + ".err"
        self.kind = "coordinator" if service == "coordinator" else "worker"
        argv = host.program(self.kind) + [self.kind] + ([] if self.kind == "coordinator" else ["--service", service])
        if worker_id:
            argv += ["--id", worker_id]
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(argv + list(options), cwd=host.dir, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err, start_new_session=True,
                                            env=dict(host.environment, **(environment or {})))
        self.pid = self.process.pid

    @property
    def log(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def events(self, name=None):
        """The JSON lines of its log, those of one event if named; a line that is being written is not one yet."""
        lines = []
        for line in self.log.split("\n")[:-1]:
            if line.startswith("{"):
                event = json.loads(line)
                if name is None or event.get("event") == name:
                    lines.append(event)
        return lines

    @property
    def alive(self):
        return self.process.poll() is None

    def freeze(self):
        """SIGSTOP where it holds up nobody else: who stands still in a transaction of the local log keeps all from writing."""
        def stopped():
            self.process.send_signal(signal.SIGSTOP)
            if self.host.driver != "local" or not self.host.log.held():
                return True
            self.process.send_signal(signal.SIGCONT)
            return False
        wait_until(stopped, what="a moment between two transactions")

    def wait(self, seconds=20):
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            raise WaitedInVain(f"worker {self.service}/{self.id} still runs after {seconds} s\n{self.log[-3000:]}") from None

    def stop(self, seconds=20):
        """SIGTERM, once it has begun, and a clean end."""
        wait_until(lambda: self.events(f"{self.kind}.started") or not self.alive, what="the worker to start")
        self.process.send_signal(signal.SIGTERM)
        status = self.wait(seconds)
        assert status == 0, f"a stopped worker ends with 0, not {status}\n{self.log[-3000:]}"
        return self

    def kill(self):
        """SIGKILL to the worker alone: what it leaves behind is part of the test."""
        self.process.kill()
        self.process.wait()
        return self


class Host:
    def __init__(self, folder, driver="local"):
        self.driver = driver
        self.prefix = "baton" if driver == "local" else "t" + secrets.token_hex(4)
        self.brokers = None if driver == "local" else broker.shared().brokers
        self.dir = os.path.join(folder, "host")
        self.logs = os.path.join(folder, "logs")
        self.fake = os.path.join(folder, "fake")
        for path in (self.logs, self.fake, os.path.join(folder, "home"), os.path.join(folder, "tmp")):
            os.mkdir(path, 0o700)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
            "HOME": os.path.join(folder, "home"), "TMPDIR": os.path.join(folder, "tmp"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "USER", "LOGNAME"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.workers = []
        self.settings = {}
        self.tampered = False  # set by tests that write to topics what a worker would not
        log = [] if driver == "local" else ["--log", "kafka", "--brokers", self.brokers]
        self.init = self.run("init", self.dir, *log, cwd=folder).ok()
        with open(os.path.join(self.dir, "baton.yaml"), encoding="utf-8") as file:
            self.first_configuration = file.read()
        self.identity = re.search(r"^identity:\s*\"?([\w.-]+)", self.first_configuration, re.M).group(1)
        with open(os.path.join(self.dir, "trust", "fleet.yaml"), encoding="utf-8") as file:
            self.fleet = re.search(r"fleet:\s*\"?([\w.-]+)", file.read()).group(1)
        self.plan(default=[{}])

    # ---- configuration ----

    def service(self, roles=None, kind="exec", **more):
        """A service whose executor is the fake one."""
        executor = {"kind": kind, "command": ["/usr/bin/python3", "-S", "-E", EXECUTOR] + (["child"] if kind == "child" else []),
                    "env": {"FAKE_DIR": {"value": self.fake}}}
        executor["env"].update(more.pop("env", {}))
        settings = {"roles": roles or ROLES, "parallel": 4, "deadline": f"{int(20 * SLOW)}s", "grace": "5s",
                    "executor": executor}
        settings.update(more)
        return settings

    def log_settings(self, session=None, heartbeat=None, partitions=None):
        """What baton.yaml says of the log: sessions as short as the log can keep, where none is asked for."""
        more = {"partitions": partitions, "session": session, "heartbeat": heartbeat}
        if self.driver == "local":
            return {"log": "local", "local": {"path": "data/log.db", **{name: value for name, value in more.items() if value}}}
        least = {"partitions": 4, "session": f"{int(1500 * SLOW)}ms", "heartbeat": "300ms"}
        return {"log": "kafka", "kafka": {"brokers": self.brokers.split(","), **{name: value or least[name] for name, value in more.items()}}}

    def write(self, services=None, session=None, heartbeat=None, partitions=None, **settings):
        """Writes baton.yaml. Services is {name: None or what service() gave}."""
        services = {name: made or self.service() for name, made in (services or {"alpha": None}).items()}
        for name, made in services.items():
            if "env" in made["executor"]:
                made["executor"]["env"]["FAKE_SERVICE"] = {"value": name}
        self.settings = {
            "version": 1, "prefix": self.prefix, **self.log_settings(session, heartbeat, partitions),
            "state_dir": "data", "identity": self.identity, "keys": "keys", "trust": "trust",
            "services": services,
            "retry": {"first": "100ms", "factor": 2, "max": "1s", "jitter": 0.1, "each_service": 3, "max_wait": "15m"},
        }
        self.settings.update(settings)
        with open(os.path.join(self.dir, "baton.yaml"), "w", encoding="utf-8") as file:
            file.write(yamlout.dump(self.settings))
        return self

    def configure(self, services=None, **settings):
        """Writes baton.yaml and makes keys and topics for it."""
        self.write(services, **settings)
        self.run("keys", "apply").ok()
        self.run("topics", "apply").ok()
        return self

    def plan(self, default=None, tasks=None, services=None, turns=None):
        """What the fake executor does, see fake_executor.py. An empty step approves."""
        path = os.path.join(self.fake, "plan.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"default": default or [{}], "tasks": tasks or {}, "services": services or {}, "turns": turns or {}}, file)
        os.rename(path + ".new", path)

    # ---- verbs ----

    @staticmethod
    def program(verb):
        """How a verb's process begins: the program; a host whose programs run as others has more in front (units.py)."""
        return [binary()]

    def run(self, *words, cwd=None, stdin=None, environment=None, seconds=60):
        argv = self.program(words[0] if words else None) + [str(word) for word in words]
        started = time.monotonic()
        done = subprocess.run(argv, cwd=cwd or self.dir, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds * SLOW, check=False,
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              env=dict(self.environment, **(environment or {})))
        return Done(argv, done.returncode, done.stdout.decode("utf-8", "surrogateescape"),
                    done.stderr.decode("utf-8", "surrogateescape"), time.monotonic() - started)

    def publish(self, service="alpha", role="reviewer", task="t-1", *more, **named):
        return self.run("publish", "--service", service, "--role", role, "--task", task, *more, "--json", **named)

    def published(self, *words, **named):
        """Publishes, asserts that it worked, and returns the turn's id."""
        answer = self.publish(*words, **named).ok().one
        assert re.fullmatch(r"[0-9a-f]{32}", answer["turn_id"]), answer
        return answer["turn_id"]

    def show(self, turn_id):
        return self.run("turns", "show", turn_id, "--json").ok().one

    def state(self, turn_id):
        """The state of a turn, None while no worker has taken it in."""
        done = self.run("turns", "show", turn_id, "--json")
        return done.one["state"] if done.status == 0 else None

    def turns(self, *options):
        return self.run("turns", "list", *options, "--json").ok().objects

    def ends(self, turn_id, state, seconds=20):
        """Waits for a state and returns the turn as `turns show` has it."""
        wait_until(lambda: self.state(turn_id) == state, seconds,
                   lambda: f"turn {turn_id} to be {state}, it is {self.run('turns', 'show', turn_id, '--json')}\n{self.all_logs()}")
        return self.show(turn_id)

    def cancel(self, turn_id, *more, reason="no longer needed"):
        return self.run("turns", "cancel", turn_id, "--reason", reason, *more, "--json")

    def replay(self, turn_id, *more):
        return self.run("dlq", "replay", turn_id, *more, "--json")

    def letters(self, *options):
        return self.run("dlq", "list", *options, "--json").ok().objects

    def letter(self, code, seconds=20):
        """Waits for a dead letter with that code."""
        return wait_until(lambda: next((one for one in self.letters() if one.get("code") == code), None), seconds,
                          lambda: f"a dead letter {code}; there are {self.letters()}\n{self.all_logs()}")

    # ---- workers ----

    def worker(self, service="alpha", worker_id=None, *options, environment=None):
        worker = Worker(self, service, worker_id, options, environment)
        self.workers.append(worker)
        return worker

    @staticmethod
    def shared(*workers):
        """Waits until each of these workers, of one service, has as many partitions as the others."""
        def even():
            owned = [[one["partitions"] for one in worker.events("engine.assigned")][-1:] for worker in workers]
            return owned[0] > [0] and all(one == owned[0] for one in owned)

        wait_until(even, 40, lambda: f"{[worker.id for worker in workers]} to have their shares\n"
                   + "\n".join(worker.log[-2500:] for worker in workers))

    def drain(self, service="alpha", worker_id=None, seconds=60):
        """A worker that ends when nothing is left."""
        worker = self.worker(service, worker_id, "--drain")
        status = worker.wait(seconds)
        assert status == 0, f"--drain ends with 0, not {status}\n{worker.log[-4000:]}"
        return worker

    def all_logs(self):
        return "\n".join(f"-- {worker.service}/{worker.id}\n{worker.log[-2500:]}" for worker in self.workers)

    # ---- what the executors saw ----

    def lines(self):
        return noted(os.path.join(self.fake, "calls"))

    def calls(self, **match):
        """Starts of executors, those only that match."""
        return [line for line in self.lines() if line["event"] == "start" and
                all(line[name] == value for name, value in match.items())]

    def called(self, count=1, seconds=20, **match):
        """Waits for so many calls."""
        wait_until(lambda: len(self.calls(**match)) >= count, seconds,
                   lambda: f"{count} calls {match}; there are {len(self.calls(**match))}\n{self.all_logs()}")
        return self.calls(**match)

    # ---- from outside ----

    @property
    def log(self):
        if self.driver == "kafka":
            return KafkaLog(self.brokers, self.prefix)
        return LocalLog(os.path.join(self.dir, "data", "log.db"))

    def group(self, service="alpha"):
        return f"{self.prefix}.worker.{service}"

    def topic(self, kind, service="alpha"):
        if kind == "dlq":
            return f"dlq.{self.prefix}.handoff.{service}"
        return f"{self.prefix}.{kind}.{service}" if service else f"{self.prefix}.{kind}"

    def key(self, principal):
        return proof.Key.load(os.path.join(self.dir, "keys", principal + ".pem"))

    def principal(self, name, text):
        """A principal of the trust folder with a key of its own."""
        key = proof.Key.new()
        self.trust_key(name, key, text)
        private = os.path.join(self.dir, "keys", name + ".pem")
        with open(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key.private_pem())
        return key

    def put(self, path, data):
        """A file that is there as a whole, or not."""
        with open(os.path.join(self.dir, "put"), "wb") as file:
            file.write(data)
        os.rename(os.path.join(self.dir, "put"), path)

    def trust_key(self, name, key, text=None):
        # A worker that is just starting must not read the folder between a principal and its key.
        for worker in self.workers:
            wait_until(lambda: worker.events(f"{worker.kind}.ready") or not worker.alive, what="a worker to have started")
        folder = os.path.join(self.dir, "trust")
        if text is not None:
            self.put(os.path.join(folder, name + ".yaml"), text.encode())
        self.put(os.path.join(folder, f"{name}.{key.id}.pem"), key.public_pem())
        if any(worker.alive for worker in self.workers):
            time.sleep(1.1)  # a worker reads the folder again once a second at most

    def turn(self, role="reviewer", task="t-forged", service="alpha", origin=None, **more):
        return proof.turn(self.fleet, origin or self.identity, service, role, task, **more)

    def handoff(self, members, signer=None, **more):
        return proof.handoff(self.prefix, self.fleet, signer or self.key(self.identity), members, **more)

    def stores(self):
        """Paths of every worker's store."""
        found = []
        for where, _, names in os.walk(os.path.join(self.dir, "data")):
            found += [os.path.join(where, name) for name in names
                      if name.endswith(".db") and os.path.join(where, name) != os.path.join(self.dir, "data", "log.db")]
        return sorted(found)

    # ---- the end ----

    def processes(self):
        """Processes that belong to this host: its workers, guards and executors, and what they left."""
        found = []
        marker = os.path.dirname(self.dir).encode()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    mine = marker in file.read()
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    dead = file.read().rsplit(")", 1)[1].split()[0] in "ZX"
            except OSError:
                continue
            if mine and not dead:
                found.append(int(name))
        return found

    def finish(self):
        """Stops what runs and checks what holds at the end of every test (RULES S5)."""
        try:
            self.end_workers()
            self.check_ends()
            self.check_calls()
            if not self.tampered and self.has_topics():
                self.check_topics()
        finally:
            if self.driver == "kafka":
                self.log.drop(*self.log.topics(), wait=False)

    def has_topics(self):
        return self.driver == "kafka" or os.path.exists(self.log.path)

    def end_workers(self):
        for worker in self.workers:
            if worker.alive:
                worker.process.send_signal(signal.SIGCONT)
                worker.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 10 * SLOW
        stuck = []
        for worker in self.workers:
            try:
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                stuck.append(f"{worker.service}/{worker.id}")
                worker.kill()
        try:
            wait_until(lambda: not self.processes(), 3, lambda: f"the processes {self.describe()} to end")
        finally:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
        if stuck:
            raise WaitedInVain(f"did not stop within 10 s: {stuck}\n{self.all_logs()}")

    def describe(self):
        names = []
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    names.append(f"{pid} {file.read().replace(bytes(1), b' ').decode()}")
            except OSError:
                pass
        return names

    def check_topics(self):
        """I1 to I4 over what the topics hold: one role, one live attempt, one end for each turn."""
        roles, ends = {}, {}
        log = self.log
        for topic in log.topics():
            if not topic.startswith((f"{self.prefix}.turns.", f"{self.prefix}.outcomes")):
                continue
            for record in log.records(topic, every=True):
                if not record.value or record.key.startswith(b"~"):
                    continue
                state = record.json()
                if state.get("role"):
                    assert roles.setdefault(state["turn_id"], state["role"]) == state["role"], f"I1: {record}"
                if topic.startswith(f"{self.prefix}.turns."):
                    live = [one for one in state["attempts"] if one["state"] in ("queued", "running")]
                    closed = state["state"] in ("completed", "cancelled", "delegated", "parked")
                    assert len(live) == (0 if closed else 1), f"I2, I3: {record}"
                    assert ("handoff" in state) == (state["state"] in ("queued", "running", "parked")), f"{record}"
                elif state["event"] == "completed":
                    assert state["turn_id"] not in ends, f"I4: two ends: {record} and {ends[state['turn_id']]}"
                    ends[state["turn_id"]] = record
        for call in self.calls():
            assert roles.get(call["turn"], call["role"]) == call["role"], f"I1: called under another role: {call}"

    def check_ends(self):
        """No process of Baton's own ends by a fault in it."""
        for worker in self.workers:
            assert worker.process.returncode not in FAULTS, f"{worker.service}/{worker.id} ended with {worker.process.returncode}\n{worker.log[-4000:]}"

    def check_calls(self):
        seen, roles = {}, {}
        for call in self.calls():
            where = (call["turn"], call["attempt"])
            assert where not in seen, f"I4: two executor calls of one attempt: {call} and {seen[where]}"
            seen[where] = call
            assert call["role"] in ROLES and call["role"] == call["stdin_role"], f"R-21: the role twice alike: {call}"
            assert roles.setdefault(call["turn"], call["role"]) == call["role"], f"I1: the role changed: {call}"
            assert call["service"] == call["fake_service"], f"I5: called for another service: {call}"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)
