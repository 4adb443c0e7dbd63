"""Faults by chance, several at once, on workers of two services, and the count of continuations afterwards.

Called by test_90_chance.py and test_91_chance_on_kafka.py. Storm draws what people and processes do on either log and
counts everything from outside: turn logs, outcomes, dead letters, and what the executors noted. What
only one log can suffer its subclasses add (more, suffer).
"""
import collections
import json
import os
import random
import shutil
import signal
import sqlite3
import time

from faultpoints import fault_points
from host import wait_until

QUICK = {"retry": {"first": "20ms", "factor": 2, "max": "200ms", "jitter": 0.2, "each_service": 3, "max_wait": "15m", "rest": "300ms"},
         "circuit": {"after": 1000, "for": "30s", "probe": "15s"},
         "roles": {"owner": {"chain": ["alpha", "beta"]}, "reviewer": {"chain": ["alpha", "beta"]},
                   "arbiter": {"chain": ["beta", "alpha"]}},
         "on_failure": {"auth": ["delegate", "park"], "quota": ["delegate", "retry", "park"]}}
ENDED = ("completed", "cancelled")


class Storm:
    more = []  # faults that only this log can suffer; drawn as often as they stand here
    settings = {}  # what the configuration says of it

    def suffer(self, what, place):
        """One of `more` happens, to that worker if to any."""

    def mend_log(self):
        """Whatever a fault did to the log is over when this returns."""

    def __init__(self, host, seed):
        self.host, self.chance = host, random.Random(seed)
        self.places = [("alpha", "w1"), ("alpha", "w2"), ("alpha", "w3"), ("beta", "w1"), ("beta", "w2")]
        self.workers, self.frozen, self.down = {}, {}, {}
        self.turns, self.tasks, self.copies = {}, {}, []
        self.late = os.path.join(host.fake, "late")
        self.done = []  # (seconds, what): the story, shown when something is wrong
        self.began = time.monotonic()
        self.points = fault_points()

    def tell(self, what, *more):
        self.done.append(f"{time.monotonic() - self.began:7.2f} {what} {' '.join(str(one) for one in more)}")

    # ---- turns ----

    def step(self):
        draw = self.chance.random()
        sleep = round(self.chance.choice([0, 0, 0.05, 0.3, 1.5]), 2)
        if draw < 0.5:
            return {"sleep": sleep}
        return dict(self.chance.choice([
            {"class": "unavailable"}, {"class": "auth"}, {"class": "quota"}, {"class": "bad_request"},
            {"class": "rate_limited", "retry_after_ms": 300}, {"signal": 9}, {"signal": 11}, {"exit": 75}, {"raw": "{"},
            {"hang": True, "ignore_term": True}, {"kill_worker": True}, {"kill_guard": True},
            # Whoever kept one of these alive is found by what ends every test: no process is left.
            {"child_writes": self.late, "after": 600, "sleep": 0.1}, {"child_writes": self.late, "after": 600, "hang": True},
        ]), **({"sleep": sleep} if sleep else {}))

    def publish(self, count):
        signer = self.host.key(self.host.identity)
        fresh = [f"t-{len(self.tasks) + n}" for n in range(count)]
        self.tasks.update({task: [self.step() for _ in range(4)] + [{}] for task in fresh})
        self.host.plan(tasks=self.tasks)
        for task in fresh:
            role, service = self.chance.choice(["owner", "reviewer", "arbiter"]), self.chance.choice(["alpha", "alpha", "beta"])
            record = self.host.handoff(self.host.turn(role=role, task=task, service=service), signer=signer)
            self.turns[record.key.decode()] = (task, role, service)
            for _ in range(2 if self.chance.random() < 0.1 else 1):
                self.append(record)
        self.tell("publish", *fresh)

    def append(self, record):
        self.host.log.append(record)

    def people(self):
        turn = self.chance.choice(list(self.turns))
        what = self.chance.choice(["cancel", "replay", "replay", "replay", "pass", "pause"])
        wait = ["--timeout", "0"] if self.chance.random() < 0.5 else ["--timeout", "2"]
        if what == "cancel":
            done = self.host.cancel(turn, *wait)
        elif what == "pause":
            service = self.chance.choice(["alpha", "beta"])
            self.host.run("services", "pause", service)
            time.sleep(0.3)
            done = self.host.run("services", "resume", service)
        else:
            done = self.host.replay(turn, *wait, *(["--to", self.chance.choice(["alpha", "beta"])] if what == "pass" else []))
        self.tell(what, turn, done.status, done.out.strip()[:300])
        assert done.status in (0, 3, 4, 5, 6, 7, 8), done

    # ---- faults ----

    def start(self, place, fault=None):
        environment = {"BATON_FAULT": fault} if fault else None
        self.workers[place] = self.host.worker(*place, environment=environment)
        self.tell("start", *place, self.workers[place].pid, fault or "")

    def store(self, place):
        return os.path.join(self.host.dir, "data", place[0], place[1], "store.db")

    def forget(self, place):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.store(place) + suffix):
                os.unlink(self.store(place) + suffix)

    def kill(self, place):
        self.workers[place].process.send_signal(signal.SIGKILL)
        self.workers[place].process.wait()
        self.frozen.pop(place, None)
        self.down[place] = time.monotonic() + self.chance.choice([0, 0, 0.3, 2.5])

    def fault(self):
        place = self.chance.choice(self.places)
        worker = self.workers[place]
        what = self.chance.choice(["kill", "kill", "freeze", "freeze", "stop", "twin", "lose", "copy", "back", "foreign",
                                   "point", "point", "stop point", "executor", "guard", "hup", *self.more])
        if not worker.alive or place in self.frozen or not worker.events("worker.started"):
            return
        self.tell(what, *place, worker.pid)
        if what == "kill":
            self.kill(place)
        elif what == "freeze":
            worker.process.send_signal(signal.SIGSTOP)
            self.frozen[place] = time.monotonic() + self.chance.choice([0.4, 1.4, 3, 6])
        elif what == "stop":
            worker.process.send_signal(signal.SIGTERM)
        elif what == "hup":
            worker.process.send_signal(signal.SIGHUP)
        elif what == "twin":
            self.mend_log()
            twin = self.host.worker(*place)
            status = twin.wait(20)
            assert status in (0, 6) or not worker.alive, twin.log
        elif what == "lose":
            self.kill(place)
            self.forget(place)
        elif what == "copy":  # of a running store, as `store backup` makes it
            path = os.path.join(self.host.fake, f"copy-{len(self.copies)}")
            source = sqlite3.connect(f"file:{self.store(place)}?mode=ro", uri=True)
            with sqlite3.connect(path) as target:
                source.backup(target)
            source.close()
            target.close()
            self.copies.append((place, path))
        elif what == "back":
            mine = [path for owner, path in self.copies if owner == place]
            if mine:
                self.kill(place)
                self.forget(place)
                shutil.copy(self.chance.choice(mine), self.store(place))
                os.chmod(self.store(place), 0o600)
        elif what == "foreign":  # another worker's store, perhaps of another service
            others = [path for owner, path in self.copies if owner != place]
            if others:
                self.kill(place)
                self.forget(place)
                shutil.copy(self.chance.choice(others), self.store(place))
                os.chmod(self.store(place), 0o600)
        elif what in self.more:
            self.suffer(what, place)
        elif what in ("point", "stop point"):
            self.kill(place)
            self.down.pop(place)
            action = "stop" if what == "stop point" else self.chance.choice(["kill", "kill", "fail"])
            self.start(place, f"{self.chance.choice(self.points)}:{action}:{self.chance.randint(1, 20)}")
        else:
            self.kill_one("baton-guard" if what == "guard" else "python3")

    def kill_one(self, program):
        """Kills one of this host's processes that run the program."""
        for pid in self.host.processes():
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    if file.read().strip() == program:
                        os.kill(pid, signal.SIGKILL)
                        self.tell("  killed", program, pid)
                        return
            except OSError:
                pass

    def mend(self, everything=False):
        now = time.monotonic()
        for place, until in list(self.frozen.items()):
            if now >= until or everything:
                self.workers[place].process.send_signal(signal.SIGCONT)
                del self.frozen[place]
                self.tell("go on", *place)
        for place in self.places:
            worker = self.workers[place]
            if worker.alive:
                with open(f"/proc/{worker.pid}/stat", encoding="ascii", errors="replace") as file:
                    stopped = file.read().rsplit(")", 1)[1].split()[0] == "T"
                if stopped and place not in self.frozen:  # by its fault point
                    self.frozen[place] = now + 0.3 * self.chance.randint(1, 10)
                    self.tell("stopped itself", *place)
            elif place not in self.down:
                status = worker.process.returncode
                self.tell("ended", *place, worker.pid, status)
                if status not in (0, -9, 6):
                    self.tell("  says", worker.log.strip().splitlines()[-1][:400] if worker.log.strip() else "")
                    self.refused(place, worker)
                self.down[place] = now
            elif now >= self.down[place] or everything:
                del self.down[place]
                self.start(place)

    def refused(self, place, worker):
        """A worker that does not like its store says so before anything else; somebody removes it. 8: later."""
        if worker.process.returncode == 8 and "timed_out" in worker.log:
            return
        assert not worker.events("worker.started") and "store" in worker.log, f"{place} ended with {worker.process.returncode}\n{worker.log[-3000:]}"
        self.forget(place)

    # ---- the end ----

    def settle(self):
        self.tell("settle")

        def over():
            self.mend(True)
            listed = self.host.run("turns", "list", "--json", seconds=60).ok().objects
            known = {one["turn_id"] for one in listed}
            places = {(one["turn_id"], one["service"]) for one in listed}
            return set(self.turns) <= known and not [one for one in listed if one["state"] in ("queued", "running") or
                                                     (one["state"] == "delegated" and (one["turn_id"], one["to"]) not in places)]

        wait_until(over, 90, "every turn to end")

    def unread(self):
        """Partitions whose committed offset is not the end: (topic, number, committed, end)."""
        log, found = self.host.log, []
        for topic in (self.host.topic(kind, service) for kind in ("handoff", "control") for service in ("alpha", "beta")):
            committed = log.committed(f"{self.host.prefix}.worker.{topic.rsplit('.', 1)[1]}", topic)
            found += [(topic, number, committed.get(number), end) for number, (_, end) in log.ends(topic).items()
                      if end and committed.get(number) != end]
        return found

    def check(self):
        host, log = self.host, self.host.log
        last, ends, parked, letters = {}, collections.Counter(), collections.Counter(), collections.Counter()
        for service in ("alpha", "beta"):
            for record in log.records(host.topic("turns", service)):
                if not record.key.startswith(b"~") and record.value:
                    state = record.json()
                    last.setdefault(state["turn_id"], {})[service] = state
            for record in log.records(host.topic("dlq", service)):
                letters[record.key.decode()] += 1
        for record in log.records(host.topic("outcomes", None)):
            one = record.json()
            if one["event"] in ENDED:
                ends[one["turn_id"]] += 1
            if one["event"] == "parked":
                parked[one["turn_id"]] += 1
        calls = {}
        for call in host.calls():
            calls.setdefault(call["turn"], {})[call["attempt"]] = call
        assert set(last) == set(self.turns), "none is lost, none is invented"
        wrong = []
        for turn, (task, role, service) in self.turns.items():
            states = last[turn]
            here = [name for name, state in states.items() if state["state"] != "delegated"]
            if len(here) != 1:
                wrong.append(("one continuation", states))
                continue
            state = states[here[0]]
            if any(one["role"] != role or one["task_id"] != task for one in states.values()):
                wrong.append(("role", states))
            if state["state"] not in ENDED + ("parked",):
                wrong.append(("open", state))
            if ends[turn] != (state["state"] in ENDED):
                wrong.append(("ends", ends[turn], state))
            if parked[turn] != letters[turn] or (state["state"] == "parked" and not letters[turn]):
                wrong.append(("letters", parked[turn], letters[turn], state))
            numbers = sorted(one["no"] for name, each in states.items() for one in each["attempts"] if one["service"] == name)
            if numbers != sorted(set(numbers)):
                wrong.append(("numbers", numbers, states))
            for name, each in states.items():
                if [one["no"] for one in each["attempts"]] != sorted({one["no"] for one in each["attempts"]}):
                    wrong.append(("numbers of", name, each))
            for number in calls.get(turn, {}):
                if number > state["attempt"]:
                    wrong.append(("called beyond", number, state))
            if state["state"] == "completed" and state["attempt"] not in calls.get(turn, {}):
                wrong.append(("completed without a call", state))
        assert not wrong, json.dumps(wrong[:6], indent=1)
        for path in host.stores():
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
                assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",), path
        counts = collections.Counter(state["state"] for states in last.values() for state in states.values())
        print(dict(counts), len(host.calls()), "calls", len(self.done), "events")


def by_chance(kind, fresh, seconds):
    """A storm of that kind on a fresh host for so long, and the count."""
    seed = int(os.environ.get("BATON_TEST_SEED", time.time_ns() % 1000000))
    seconds = int(os.environ.get("BATON_TEST_SECONDS", seconds))
    print("seed", seed)
    host = fresh.configure({"alpha": fresh.service(parallel=6, deadline="3s", grace="500ms"),
                            "beta": fresh.service(kind="child", parallel=6, deadline="3s", grace="500ms")}, **QUICK, **kind.settings)
    storm = kind(host, seed)
    try:
        for place in storm.places:
            storm.start(place)
        while time.monotonic() - storm.began < seconds:
            draw = storm.chance.random()
            if draw < 0.25:
                storm.publish(storm.chance.randint(1, 6))
            elif draw < 0.5 and storm.turns:
                storm.people()
            else:
                storm.fault()
            storm.mend()
            time.sleep(storm.chance.choice([0, 0.05, 0.2, 0.5]))
        storm.settle()
        wait_until(lambda: not storm.unread(), 20, lambda: f"every offset to reach the end: {storm.unread()}")
        storm.check()
    except BaseException:
        print("\n".join(storm.done))
        raise
