"""What will happen in a run, drawn from the seed before it begins: turns, faults, and what operators do.

Called by run.py. The same seed, seconds, turns and log give the same plan; when things happen to the
processes themselves is up to the machine.
"""
import collections
import json
import random

from faultpoints import fault_points

Turn = collections.namedtuple("Turn", "at task role service text copies")
Start = collections.namedtuple("Start", "at task text")
Event = collections.namedtuple("Event", "at what more")

SERVICES = ("alpha", "beta")
PLACES = [(service, worker) for service in SERVICES for worker in ("w1", "w2", "w3")]
PROXIED = ("alpha", "w2")  # the worker whose network is cut
GUESTS = [(service, worker) for service in SERVICES for worker in ("x1", "x2")]  # they join for a while

FAILURES = [{"class": name} for name in ("auth", "access_denied", "quota", "overloaded", "unavailable", "timeout", "crash",
                                         "invalid_output", "no_verdict", "bad_request", "policy", "readonly_violated")] + [
    {"class": "rate_limited", "retry_after_ms": 300}, {"exit": 0}, {"exit": 1}, {"exit": 65}, {"exit": 75}, {"exit": 77},
    {"raw": "{"}, {"raw": "{} {}"}, {"signal": 9}, {"signal": 11}, {"signal": 6}]
MISCHIEF = [{"hang": True}, {"hang": True, "ignore_term": True}, {"flood": 2}, {"flood": 4, "class": "unavailable"},
            {"fork": True}, {"fork": True, "hang": True, "ignore_term": True}, {"fork": True, "signal": 9}]

# As often as they stand here; each pack is dealt to its end before the next one.
WORKER_FAULTS = ["kill"] * 4 + ["freeze"] * 2 + ["freeze long"] * 3 + ["stop"] * 3 + ["join"] * 3 + ["lose"] * 2 + [
    "executor", "guard"] + ["point kill"] * 3 + ["point stop"] * 4
BROKER_FAULTS = ["broker kill", "broker stop", "broker freeze"]
COORDINATOR_FAULTS = ["kill"] * 4 + ["freeze"] + ["freeze long"] * 2 + ["stop"] * 2 + ["point kill"] * 3 + ["point stop"] * 3
CUTS = ["cut silent", "cut silent", "cut reset"]
RUN_OPERATORS = ["replay"] * 4 + ["replay to"]
OPERATORS = ["cancel"] * 4 + ["replay"] * 5 + ["replay to"]


def points():
    """Names of the places in the program at which it can be told to kill or stop itself (BATON_FAULT); those
    around a transaction of the log come often, since whoever is replaced there must be refused."""
    return [name for name in fault_points() if name != "store.commit"] + ["log.before_commit"] * 4 + ["log.after_commit"]


class Pack:
    """Deals what is in it in a shuffled order, and begins again."""

    def __init__(self, chance, cards):
        self.chance, self.cards, self.left = chance, list(cards), []

    def deal(self):
        if not self.left:
            self.left = list(self.cards)
            self.chance.shuffle(self.left)
        return self.left.pop()


class Plan:
    """turns, runs: what is published or asked for; workers (and coordinators), broker, network, operators: lists of events,
    each by its time."""

    def __init__(self, log, seconds, turns, seed, apart=False, runs=0, coordinators=0):
        self.log, self.seconds, self.seed, self.apart = log, seconds, seed, apart
        chance = random.Random(seed)
        self.failures, self.mischief, self.points = Pack(chance, FAILURES), Pack(chance, MISCHIEF), Pack(chance, points())
        times = sorted(chance.uniform(0, seconds) for _ in range(turns))
        self.turns = [self.turn(chance, at, f"t-{number}") for number, at in enumerate(times)]
        self.workers = self.lane(chance, WORKER_FAULTS, 2, (0.4, 1.6), self.worker_fault)
        self.operators = self.lane(chance, OPERATORS, 1, (0.4, 1.4), self.operator)
        kafka = log == "kafka"
        self.broker = self.lane(chance, BROKER_FAULTS, 8, (20, 36), self.pause) if kafka else []
        self.network = self.lane(chance, CUTS, 4, (4, 9), self.pause) if kafka else []
        self.runs, self.places = [], list(PLACES)
        if runs:
            times = sorted(chance.uniform(0, seconds) for _ in range(runs))
            self.runs = [Start(at, f"r-{number}", self.run_text(chance)) for number, at in enumerate(times)]
            self.operators = self.lane(chance, RUN_OPERATORS, 1, (0.4, 1.4), self.operator)
            self.coordinators = [("coordinator", f"c{number + 1}") for number in range(coordinators)]
            self.places += self.coordinators
            self.workers = sorted(self.workers + self.lane(chance, COORDINATOR_FAULTS, 1, (1.5, 4), self.coordinator_fault),
                                  key=lambda event: event.at)

    def step(self, chance):
        draw, sleep = chance.random(), chance.choice([0, 0, 0.05, 0.3, 1.5])
        if draw < 0.6:
            return {"sleep": sleep}
        return dict((self.failures if draw < 0.9 else self.mischief).deal(), sleep=sleep)

    def turn(self, chance, at, task):
        steps = [self.step(chance) for _ in range(4)] + [{}]
        return Turn(at, task, chance.choice(["owner", "reviewer", "arbiter"]), chance.choice(SERVICES), json.dumps(steps),
                    2 if chance.random() < 0.05 else 1)

    def run_text(self, chance):
        """What the executors of a run do: for each revision of its task the words of reviewer and arbiter, as far as the caps of
        paired-review go, and some lists of steps that its turns take in turn."""
        words, left, taken = [], {"changes": 3, "revise": 2, "reset": 1, "approve": 1, "proceed": 1}, None
        while taken not in ("approve", "proceed"):
            reviewer, arbiter = chance.choice(["changes", "changes", "approve", "escalate"]), chance.choice(["revise", "reset", "proceed"])
            taken = arbiter if reviewer == "escalate" else reviewer
            if left[taken] > 0:
                words.append({"reviewer": reviewer, "arbiter": arbiter, "owner": chance.choice(["done", "done", "done_with_concerns"])})
            left[taken] -= 1
            taken = taken if left[taken] >= 0 else None
        return json.dumps({"words": words, "steps": [[self.step(chance) for _ in range(4)] + [{}] for _ in range(5)]})

    def lane(self, chance, cards, first, between, make):
        pack, at, found = Pack(chance, cards), first, []
        while at < self.seconds:
            what = pack.deal()
            found.append(Event(round(at, 2), what, make(chance, what)))
            at += chance.uniform(*between)
        return found

    @staticmethod
    def pause(chance, _what):
        """For how long it lasts."""
        return {"pause": chance.choice([0.2, 0.8, 1.4, 2.5, 5])}

    def worker_fault(self, chance, what):
        more = {"place": chance.choice(GUESTS if what == "join" else PLACES), "down": chance.choice([0, 0, 0.3, 2.5, 6])}
        if what.startswith("freeze"):
            more["pause"] = chance.choice([2.5, 3.5, 6] if what == "freeze long" else [0.2, 0.6, 1.2])
        if what.startswith("point"):  # the worker is killed, and started with this
            more["point"] = f"{self.points.deal()}:{what.split()[1]}:{chance.randint(1, 12)}"
            more["pause"] = chance.choice([0.3, 2.5, 4, 6])
        if what == "join":
            more["pause"], more["leave"] = chance.choice([0.5, 2, 5]), chance.choice(["stop", "stop", "kill"])
        if what in ("executor", "guard"):
            more["which"] = chance.random()
        return more

    def coordinator_fault(self, chance, what):
        more = self.worker_fault(chance, what)
        more["place"] = chance.choice(self.coordinators)
        if "point" in more:
            more["point"] = f"{chance.choice(['log.before_commit', 'log.before_commit', 'log.after_commit'])}:{what.split()[1]}:{chance.randint(1, 12)}"
        return more

    @staticmethod
    def operator(chance, what):
        """which: a share of the turns that are there for it, old to new."""
        more = {"which": chance.random() ** 0.3 if what == "cancel" else chance.random(), "wait": chance.choice(["0", "2s"])}
        if what == "replay to":
            more["to"] = chance.choice(SERVICES)
        return more
