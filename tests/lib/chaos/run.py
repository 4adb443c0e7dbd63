"""One run: turns are published, faults happen, operators meddle; then all is mended, and counted.

Started by main.py. Four threads follow the plan (publisher, operators, broker and network), one reads the
topics; the workers are the main thread's, which also mends what is due.
"""
import collections
import contextlib
import json
import os
import signal
import sqlite3
import threading
import time

from host import SLOW, wait_until
from kafkalog import Broken, KafkaLog
from locallog import LocalLog
from proof import partition_of

from chaos import field, plan, proxy
from chaos.account import Account, Published
from chaos.tail import CallsTail, topics_tail

TICK = 0.05
STILL = 60  # seconds without a new record, after which nothing more is waited for
HEAL = 30  # and after which a broker is started again, as an operator would: its group coordinator may have failed for good
HEALS = 2
HIDDEN = 10  # seconds in which a transaction that was begun meanwhile ends, by far
AFTER = 5  # apart: seconds after the broker's return in which workers are let alone
CALM = 8  # the least time between two faults of the broker; longer where it is slow to come back


class Run:
    def __init__(self, drawn, ground, folder, show):
        self.plan, self.field, self.host, self.show = drawn, ground, ground.host, show
        self.account, self.lock = Account(), threading.Lock()
        self.over, self.mending = threading.Event(), threading.Event()
        self.faults, self.troubles = collections.Counter(), []
        self.frozen, self.down, self.leaving, self.stopping, self.pauses = {}, {}, {}, set(), {}
        self.order = []  # ids of published turns, old to new
        self.broker_away, self.apart_until = None, 0
        self.story = open(os.path.join(folder, "story"), "w", encoding="utf-8", buffering=1)
        self.tail = topics_tail(self.host, plan.SERVICES, field.PARTITIONS, bool(drawn.runs))
        self.calls, self.asked_again = CallsTail(self.host.fake), {}
        self.account.runs.fleet, self.account.runs.services = self.host.fleet, plan.SERVICES
        self.began = time.monotonic()
        self.threads = []

    @property
    def now(self):
        return time.monotonic() - self.began

    def tell(self, *words):
        with self.lock:
            self.story.write(f"{self.now:8.2f} {' '.join(str(word) for word in words)}\n")

    def fault(self, *words):
        self.faults[words[0]] += 1
        self.tell(*words)

    # ---- lanes: each follows its part of the plan in a thread ----

    def lane(self, name, events, do):
        def follow():
            try:
                for event in events:
                    while self.now < event.at and not self.over.is_set():
                        time.sleep(min(0.1, max(0.001, event.at - self.now)))
                    if self.over.is_set():
                        return
                    do(event)
            except BaseException as error:  # said at the end; whoever waits for this lane must not wait for ever
                self.troubles.append(f"the {name} of this run failed: {type(error).__name__} {error}")
                raise

        thread = threading.Thread(target=follow, name=name, daemon=True)
        self.threads.append(thread)
        thread.start()
        return thread

    def publish(self, one):
        record = self.host.handoff(self.host.turn(role=one.role, task=one.task, service=one.service,
                                                  payload={"media_type": "text/plain", "text": one.text}), signer=self.signer)
        turn = record.key.decode()
        with self.account.lock:
            self.account.published[turn] = Published(one.task, one.role, one.service)
        for _ in range(one.copies):
            while not self.over.is_set():
                try:
                    self.append(record)
                    break
                except (Broken, sqlite3.OperationalError) as error:
                    self.tell("not published yet", one.task, error)
        self.order.append(turn)
        self.tell("published", one.task, turn, one.role, one.service)

    def start_run(self, one):
        """Asks until the log has the request: the same key is the same run. Nobody waits for the answer."""
        path = os.path.join(self.host.dir, one.task)
        with open(path, "w", encoding="utf-8") as file:
            file.write(one.text)
        while not self.over.is_set():
            done = self.host.run("runs", "start", "--workflow", "paired-review", "--task", one.task, "--summary", "Mend it", "--key", one.task,
                                 "--payload", path, "--timeout", "0", "--json", seconds=60)
            if done.status == 0:
                with self.account.lock:
                    self.account.runs.started[done.one["run_id"]] = one.task
                self.tell("asked", one.task, done.one["run_id"])
                return
            self.tell("not asked yet", one.task, done.status, done.err.strip()[-200:])

    def replay_parked(self):
        """Nothing fails any more: what is parked goes on, so that runs get to their ends."""
        for turn in self.account.parked():
            if self.now > self.asked_again.get(turn, 0):
                self.asked_again[turn] = self.now + 3
                self.tell("replay", turn, self.host.replay(turn, "--timeout", "2s").status)

    def append(self, record):
        if self.plan.log == "local":  # a frozen worker may hold the lock
            LocalLog(self.host.log.path, 0.5).append(record)
        else:
            KafkaLog(self.host.brokers, self.host.prefix, **{"client.id": "publisher"}).append(
                record, partition_of(record.key, field.PARTITIONS))

    def operate(self, event):
        turns = self.order[-40:] if event.what == "cancel" else self.account.parked()
        if not turns or self.mending.is_set():
            return
        turn = turns[int(event.more["which"] * len(turns))]
        wait = ["--timeout", event.more["wait"]]
        if event.what == "cancel":
            self.account.cancels.add(turn)
            done = self.host.cancel(turn, *wait, "--service", self.account.published[turn].service, reason="by chance")
        else:
            done = self.host.replay(turn, *wait, *(["--to", event.more["to"]] if "to" in event.more else []))
        self.fault(event.what, turn, done.status, done.out.strip()[:200])
        if done.status not in (0, 3, 4, 5, 6, 7, 8):
            self.troubles.append(f"{event.what} of {turn} ended with {done.status}: {done.err.strip()[-300:]}")

    def suffer_broker(self, event):
        if self.mending.is_set():
            return
        self.fault(event.what, event.more["pause"])
        since = self.now
        if event.what == "broker freeze":
            self.broker_away = "frozen"
            os.kill(self.field.broker.pid, signal.SIGSTOP)
        else:
            self.broker_away, self.apart_until = "down", float("inf")
            getattr(self.field.broker, event.what.split()[1])()
        self.mending.wait(event.more["pause"])
        self.mend_broker()
        self.mending.wait(max(CALM, 1.5 * (self.now - since)))

    def mend_broker(self):
        if self.broker_away == "frozen":
            self.field.thaw_broker()
        elif self.broker_away == "down":
            self.field.broker.again()
        self.tell("the broker is there again")
        self.broker_away, self.apart_until = None, self.now + AFTER

    def apart(self):
        """Is the broker down, or has it just come back, and is nothing else to happen then? What a worker was told last
        can be undone while it is replaced (common/log/LOG.md, "Not covered")."""
        return self.plan.apart and self.now < self.apart_until

    def suffer_network(self, event):
        if self.mending.is_set() or self.apart():
            return
        self.fault(event.what, *plan.PROXIED, event.more["pause"])
        self.field.proxy.set(proxy.SILENT if event.what == "cut silent" else proxy.RESET)
        self.mending.wait(event.more["pause"])
        self.field.proxy.set(proxy.OPEN)
        self.tell("the network is there again")

    # ---- workers ----

    def start(self, place, point=None):
        worker = self.field.start(place, point)
        self.tell("start", *place, worker.pid, point or "")

    def suffer_worker(self, event):
        what, more, place = event.what, event.more, event.more["place"]
        if self.apart():
            return
        if what == "join":
            if not self.field.alive(place):
                self.fault(what, *place, more["pause"], more["leave"])
                self.start(place)
                self.leaving[place] = (self.now + more["pause"], more["leave"])
            return
        if what in ("executor", "guard"):
            found = self.field.programs("python3" if what == "executor" else "baton-guard")
            if found:
                self.fault(what, pid := found[int(more["which"] * len(found))])
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        if not self.field.alive(place) or place in self.frozen or place in self.stopping:
            return
        self.fault(what, *place, self.field.workers[place].pid, more)
        if what.startswith("freeze"):
            self.field.signal(place, signal.SIGSTOP)
            self.frozen[place] = self.now + more["pause"]
        elif what == "stop":
            self.field.signal(place, signal.SIGTERM)
            self.stopping.add(place)
        else:
            self.field.kill(place)
            if what == "lose":
                self.field.forget(place)
            elif "point" in more:
                self.start(place, more["point"])
                self.pauses[place] = more["pause"]
        if what in ("kill", "lose", "stop"):
            self.down[place] = self.now + more["down"]

    def mend(self, everything=False):
        """What is due: frozen workers go on, guests leave, who is gone comes back."""
        for place, until in list(self.frozen.items()):
            if everything or self.now >= until:
                self.field.signal(place, signal.SIGCONT)
                del self.frozen[place]
                self.tell("go on", *place)
        for place, (until, how) in list(self.leaving.items()):
            if everything or (self.now >= until and not self.apart()):
                del self.leaving[place]
                if self.field.alive(place):
                    self.field.signal(place, signal.SIGTERM if how == "stop" or everything else signal.SIGKILL)
                    self.tell("leave", *place, how)
        for place in self.plan.places:
            if self.field.alive(place):
                if place not in self.frozen and self.field.stopped(place):  # by its fault point
                    self.frozen[place] = self.now + self.pauses.get(place, 0)
                    self.tell("stopped itself", *place)
                continue
            if place not in self.down:
                self.down[place] = self.now + 0.3
            self.stopping.discard(place)
            if everything or self.now >= self.down[place]:
                del self.down[place]
                self.start(place)

    def deaths(self):
        """Workers that ended as none should: by a signal that nobody sent, or with an error of their own."""
        found = []
        for worker in self.host.workers:
            status = worker.process.returncode
            if status is not None and status not in (0, -signal.SIGKILL):
                last = worker.log.strip().splitlines()
                said = f"the worker {worker.service}/{worker.id} (pid {worker.pid}) ended with {status}: {last[-1][:300] if last else ''}"
                self.tell(said)
                if status < 0 or status == 1:
                    found.append(said)
        return found

    # ---- what is seen ----

    def look(self):
        """Reads on, and counts; how many records there were."""
        try:
            found = self.tail.more()
        except (Broken, sqlite3.OperationalError) as error:
            self.tell("not read", error)
            time.sleep(0.5)
            return 0
        with self.account.lock:
            for record in found:
                self.account.record(self.host.prefix, record)
            for call in self.calls.more():
                self.account.call(call)
        return len(found)

    def watch(self):
        try:
            while not self.mending.is_set():
                self.look()
                self.mending.wait(0.1 if self.plan.log == "local" else 0.5)
        except BaseException as error:
            self.troubles.append(f"the reader of this run failed: {type(error).__name__} {error}")
            raise

    # ---- from beginning to end ----

    def go(self):
        self.signer = self.host.key(self.host.identity)
        for place in self.plan.places:
            self.start(place)
        for place in self.plan.places:  # on a busy machine that takes a while
            wait_until(lambda at=place: self.field.workers[at].events(f"{self.field.workers[at].kind}.ready") or not self.field.alive(at), 120,
                       lambda at=place: f"{at} to be ready\n{self.field.workers[at].log[-3000:]}")
        self.began = time.monotonic()
        watch = threading.Thread(target=self.watch, daemon=True)
        watch.start()
        published = ("publisher", self.plan.runs, self.start_run) if self.plan.runs else ("publisher", self.plan.turns, self.publish)
        for name, events, do in (published, ("operators", self.plan.operators, self.operate),
                                 ("broker", self.plan.broker, self.suffer_broker), ("network", self.plan.network, self.suffer_network)):
            self.lane(name, events, do)
        left = collections.deque(self.plan.workers)
        while self.now < self.plan.seconds:
            while left and left[0].at <= self.now:
                self.suffer_worker(left.popleft())
            self.mend()
            self.show(self, "")
            time.sleep(TICK)
        self.settle(watch)

    def settle(self, watch):
        """No more faults; everything that was published comes to rest, within a bound."""
        self.tell("settle")
        self.mending.set()
        for thread in self.threads[1:] + [watch]:
            thread.join(90)
        self.mend(True)
        began = moved = time.monotonic()
        heals = HEALS if self.field.broker else 0
        while time.monotonic() < min(moved + STILL * SLOW, began + (300 + self.plan.seconds) * SLOW):
            if self.look():
                moved = time.monotonic()
            self.mend()
            self.show(self, "settling")
            if self.plan.runs:
                self.replay_parked()
            if not self.threads[0].is_alive() and not self.account.open() and not self.account.runs.open() and not self.behind():
                break
            if heals > 0 and time.monotonic() - moved > HEAL * SLOW:
                heals -= 1
                self.heal()
                moved = time.monotonic()
            time.sleep(0.2)
        for topic, number, read, end in self.hidden():
            self.troubles.append(f"{topic}/{number} can be read to {read}, and ends at {end}: a transaction lies unfinished")
        self.tell("rest")
        self.troubles += self.field.stop_workers()
        while self.look():
            pass
        self.troubles += self.deaths()
        self.account.judge()

    def heal(self):
        """Kafka 4.3.0 under kills: "the state machine of the coordinator is out of sync with the underlying log", and that
        coordinator serves nobody until its broker has been started again."""
        self.fault("broker heal")
        self.field.broker.stop()
        self.field.broker.again()

    def behind(self):
        try:
            return self.tail.behind()
        except Broken as error:
            self.tell("not read", error)
            return [("the broker", 0, 0, str(error))]

    def hidden(self):
        """What readers are not given: not what was written after the last look, so that is looked at again for a while."""
        until = time.monotonic() + HIDDEN * SLOW
        while (found := self.behind()) and time.monotonic() < until:
            self.look()
        return found

    def dump(self, folder):
        """What the topics hold, for looking at afterwards."""
        with open(os.path.join(folder, "topics.jsonl"), "w", encoding="utf-8") as file:
            log = self.host.log
            for topic in log.topics():
                for one in log.records(topic, every=True):
                    file.write(json.dumps({"topic": topic, "partition": one.partition, "offset": one.offset, "at": one.at,
                                           "key": (one.key or b"").decode("utf-8", "replace"),
                                           "headers": {name: (data or b"").decode("utf-8", "replace") for name, data in one.headers},
                                           "value": (one.value or b"").decode("utf-8", "replace")}) + "\n")

    def end(self):
        self.over.set()
        self.mending.set()
        for thread in self.threads:
            thread.join(10)
        self.story.close()
