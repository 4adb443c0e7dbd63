"""One worker dies at a named point while it has some of everything to do; others go on, and all is counted.

Called by test_85_crash.py. The turns, what becomes of each, and the operators' part stand here; chaos/account.py
counts topics and executor calls, invariants.py looks at the rest, outside.py at the topics once more with kcat or
sqlite3. Everything is seen from outside.
"""
import os
import signal
import sqlite3
import time

from chaos.account import Account, Published
from chaos.field import CONFIGURATION, PARTITIONS
from chaos.tail import CallsTail, topics_tail
from host import SLOW, wait_until
from invariants import CANARY, check_outcomes, check_secrets, check_stores, unread
from kafkalog import Broken
from outside import check_topics

SERVICES = ("alpha", "beta")
# What the executors do with the attempts of a task. An attempt may be lost on top: so where a turn shall
# fail, it does so twice.
TASKS = {
    "t-done": [{"stderr": CANARY}],
    "t-retry": [{"class": "unavailable"}, {"class": "unavailable"}, {}],
    "t-crash": [{"signal": 11}, {}],
    "t-slow": [{"sleep": 0.3}],
    "t-cancel": [{"hang": True}],  # cancelled while it runs
    "t-replay": [{"class": "bad_request"}, {"class": "bad_request"}, {}],  # replayed whenever it is parked
    "t-parked": [{"class": "bad_request"}],
}
PASSED = "t-passed"  # alpha cannot do it, beta can
ENDS = {"t-cancel": "cancelled", "t-parked": "parked"}  # all others: completed
ROLES = ("owner", "reviewer", "arbiter")
PATIENCE = 40


def configured(fresh):
    """A host with both services, and leases as short as the sessions."""
    kafka = fresh.driver == "kafka"
    times = {"session": 1500, "heartbeat": 300, "lease": 1500, "lease_grace": 600} if kafka else \
            {"session": 1000, "heartbeat": 150, "lease": 1000, "lease_grace": 300}
    with open(os.open(os.path.join(fresh.dir, "canary"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(CANARY)
    services = {name: fresh.service(parallel=4, env={"CANARY": {"file": "canary"}}) for name in SERVICES}
    return fresh.configure(services, partitions=PARTITIONS, **CONFIGURATION,
                           **{name: f"{int(value * SLOW)}ms" for name, value in times.items()})


class Crash:
    def __init__(self, host):
        self.host, self.account = host, Account()
        self.tail, self.calls = topics_tail(host, SERVICES, PARTITIONS), CallsTail(host.fake)
        self.turns, self.replayed, self.operators = {}, set(), True
        host.plan(tasks=TASKS, services={"alpha": [{"class": "access_denied"}], "beta": [{}]})

    # ---- what is to be done ----

    def publish(self):
        signer = self.host.key(self.host.identity)
        for number, task in enumerate([*TASKS, PASSED]):
            record = self.host.handoff(self.host.turn(role=ROLES[number % 3], task=task, service="alpha"), signer=signer)
            self.turns[task] = record.key.decode()
            self.account.published[self.turns[task]] = Published(task, ROLES[number % 3], "alpha")
            self.host.log.append(record)

    def look(self):
        """Reads on; operators do their part when its time has come."""
        try:
            found = self.tail.more()
        except (Broken, sqlite3.OperationalError):
            return 0
        for record in found:
            self.account.record(self.host.prefix, record)
        for call in self.calls.more():
            self.account.call(call)
        if self.operators:
            self.operate()
        return len(found)

    def operate(self):
        turn, state = self.turns["t-cancel"], self.state("t-cancel")
        if state["state"] == "running" and turn not in self.account.cancels:
            self.account.cancels.add(turn)
            self.host.cancel(turn, "--timeout", "0", "--service", "alpha").ok()
        state = self.state("t-replay")
        if state["state"] == "parked" and state["attempt"] not in self.replayed:
            self.replayed.add(state["attempt"])
            self.host.replay(self.turns["t-replay"], "--timeout", "0").ok()

    def state(self, task):
        """What the topics said last of a turn: where it is not passed on, or else where it came from."""
        seen = self.account.seen[self.turns[task]].states
        here = [state for state in seen.values() if state["state"] != "delegated"]
        return (here or list(seen.values()) or [{"state": "unknown", "attempt": 0}])[0]

    def over(self):
        """Has every turn come to where it shall?"""
        return all(self.state(task)["state"] == ENDS.get(task, "completed") for task in self.turns) and \
            self.state("t-replay")["attempt"] > 2

    # ---- who dies, and who goes on ----

    def die(self, point, passing, moves):
        """A worker kills itself at that passing of the point, all else being at work. Where partitions have to
        move for it, others come and go."""
        self.operators = not moves
        self.host.worker("beta", "b1")
        victim = self.host.worker("alpha", "w1", environment={"BATON_FAULT": f"{point}:kill:{passing}"})

        def calm():
            self.look()
            return not victim.alive or (self.state("t-cancel")["state"] == "running" if moves else self.over())

        wait_until(calm, PATIENCE, lambda: f"the death, or the end of all: {self.story()}")
        for number in range(passing if moves else 0):
            if victim.alive:
                self.come_and_go(victim, f"j{number}")
        assert not victim.alive, f"{point} was not passed {passing} times: {self.story()}"
        assert victim.wait() == -signal.SIGKILL, victim.log[-3000:]
        self.operators = True

    def come_and_go(self, victim, name):
        def assigned():
            self.look()
            return not victim.alive or len(victim.events("engine.assigned")) > before

        before = len(victim.events("engine.assigned"))
        guest = self.host.worker("alpha", name)
        wait_until(assigned, PATIENCE, lambda: f"partitions to move to {name}: {self.story()}")
        if victim.alive:
            before = len(victim.events("engine.assigned"))
            guest.stop()
            wait_until(assigned, PATIENCE, lambda: f"the partitions of {name} to come back: {self.story()}")

    def go_on(self, heir):
        """That worker brings all to its end; then everybody stops."""
        self.host.worker("alpha", heir)

        def over():
            self.look()
            return self.over()

        wait_until(over, PATIENCE, lambda: f"every turn to end: {self.story()}")
        wait_until(lambda: not unread(self.host, SERVICES), PATIENCE, lambda: f"every offset to reach the end: {unread(self.host, SERVICES)}")
        for worker in self.host.workers:
            if worker.alive:
                worker.stop()
        still = time.monotonic() + 0.3
        while self.look() or time.monotonic() < still:
            pass

    # ---- what came of it ----

    def check(self):
        """I1 to I5, I8, I10 to I12; there are no runs here, of which I6, I7 and I9 speak."""
        self.account.judge()
        assert not self.account.sentences(), "\n".join(self.account.sentences()) + self.story()
        for task, turn in self.turns.items():
            seen = self.account.seen[turn]
            assert sorted(seen.attempts) == list(range(1, len(seen.attempts) + 1)), f"{task}: attempts follow each other: {seen.attempts}"
            lost = [number for number, end in seen.attempts.items() if end[2] == "lost"]
            assert len(lost) <= 1, f"{task}: one death costs one attempt at most: {seen.attempts}"
            assert seen.parked == (len(self.replayed) if task == "t-replay" else task == "t-parked"), f"{task}: parked {seen.parked} times"
        service = {service for service, state in self.account.seen[self.turns[PASSED]].states.items() if state["state"] == "completed"}
        assert service == {"beta"}
        roles = {turn: one.role for turn, one in self.account.published.items()}
        check_topics(self.host, SERVICES, roles)
        check_outcomes(self.host)
        check_stores(self.host, SERVICES, roles)
        check_secrets(self.host)

    def story(self):
        states = {task: (self.state(task)["state"], self.account.seen[turn].attempts) for task, turn in self.turns.items()}
        return f"{states}\n{self.host.all_logs()}"
