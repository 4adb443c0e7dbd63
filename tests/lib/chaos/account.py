"""Counts what became of every published turn, from topics and executor calls alone.

Fed by run.py and crash.py with records in the order of their topics; test_92_chaos.py feeds it made-up
ones. While the run goes on, whoever feeds it holds its lock.
"""
import collections
import threading

from chaos.runs import Runs

ENDS = ("completed", "cancelled")
CLOSED = ENDS + ("delegated",)
LIVE = ("queued", "running")
WRONG = ("lost", "double", "wrong_role", "wrong_service", "calls_twice", "results_twice")

Published = collections.namedtuple("Published", "task role service")


class Seen:
    """What the topics said of one turn."""

    def __init__(self):
        self.states = {}  # service: the newest state
        self.attempts = {}  # number: (service, state, class) of its end, or None
        self.lossy, self.late, self.tokens = set(), set(), {}
        self.ends, self.parked, self.letters = [], 0, 0
        self.calls, self.called = collections.Counter(), []  # by number; (number, service)


class Account:
    def __init__(self):
        self.lock = threading.RLock()
        self.published, self.cancels = {}, set()
        self.seen = collections.defaultdict(Seen)
        self.found = {name: {} for name in WRONG}  # {(turn, what exactly): sentence}
        self.runs = Runs()

    def wrong(self, kind, turn, text, *key):
        self.found[kind].setdefault((turn, *key) if key else (turn, text), f"turn {turn}: {text}")

    def role(self, turn, role, where):
        if turn in self.published and role is not None and role != self.published[turn].role:
            self.wrong("wrong_role", turn, f"was published for {self.published[turn].role}, and is {role} in {where}")

    # ---- what comes in ----

    def record(self, prefix, record):
        """A record of a turn log, a dead-letter topic, or the outcomes of a fleet with that prefix."""
        if record.key is None or record.key.startswith(b"~") or not record.value:
            return
        if record.topic.startswith("dlq."):
            self.letter(record.key.decode())
        elif record.topic.startswith(prefix + ".turns."):
            self.state(record.topic.rsplit(".", 1)[1], record.json())
        elif record.topic == prefix + ".outcomes":
            self.outcome(record.json())
        elif record.topic == prefix + ".runs":
            self.runs.record(record.json())
        elif record.topic.startswith(prefix + ".handoff."):
            self.handoff(record.json())

    def handoff(self, turn):
        """A handoff, of a run's turn: that is how it was published. Passed on it says the same."""
        if turn["run_id"]:
            self.published.setdefault(turn["turn_id"], Published(turn["task_id"], turn["role"], turn["service"]))
            self.runs.handoff(turn)

    def state(self, service, state):
        """A record of a turn log."""
        turn, one = state["turn_id"], self.seen[state["turn_id"]]
        before = one.states.get(service)
        self.runs.state(state)
        self.role(turn, state["role"], f"the log of {service}")
        if turn in self.published and state["task_id"] != self.published[turn].task:
            self.wrong("double", turn, f"has another task in the log of {service}: {state['task_id']}")
        if before is not None:
            if before["state"] in CLOSED and (before["state"], before["attempt"]) != (state["state"], state["attempt"]):
                self.wrong("double", turn, f"was {before['state']} at {service} with attempt {before['attempt']}, "
                                           f"and then {state['state']} with attempt {state['attempt']}")
            if state["attempt"] < before["attempt"]:
                self.wrong("double", turn, f"went back at {service} from attempt {before['attempt']} to {state['attempt']}")
        live = [attempt["no"] for attempt in state["attempts"] if attempt["state"] in LIVE]
        if len(live) != (1 if state["state"] in LIVE else 0):
            self.wrong("double", turn, f"is {state['state']} at {service} with the attempts {live} alive")
        for attempt in state["attempts"]:
            if attempt["service"] == service:
                self.attempt(turn, one, attempt)
        lease = state.get("lease")
        if state["state"] == "running" and lease:
            owners = one.tokens.setdefault(state["attempt"], set())
            owners.add((service, lease["worker"], lease["boot"]))
            if len(owners) > 1:
                self.wrong("double", turn, f"attempt {state['attempt']} was claimed by {sorted(owners)}", state["attempt"])
        one.states[service] = {name: state.get(name) for name in ("state", "attempt", "to")}

    def attempt(self, turn, one, attempt):
        number, end = attempt["no"], None
        if attempt["state"] not in LIVE:
            end = (attempt["service"], attempt["state"], attempt.get("class"))
        before = one.attempts.get(number)
        if before is not None and before != end:
            self.wrong("results_twice", turn, f"attempt {number} ended as {before}, and then as {end}", number)
        elif end or number not in one.attempts:
            one.attempts[number] = end
        if attempt.get("class") in ("lost", "crash", "killed"):
            one.lossy.add(number)
        if attempt.get("late"):
            one.late.add(number)

    def outcome(self, event):
        self.runs.outcome(event)
        if event["event"] == "run_ended" or not event.get("turn_id"):
            return
        turn = event["turn_id"]
        self.role(turn, event.get("role"), "an outcome")
        if event["event"] in ENDS:
            self.seen[turn].ends.append((event["event"], event.get("attempt"), event["service"]))
        elif event["event"] == "parked":
            self.seen[turn].parked += 1

    def letter(self, turn):
        self.seen[turn].letters += 1

    def call(self, call):
        turn, number = call["turn"], call["attempt"]
        one = self.seen[turn]
        one.calls[number] += 1
        if one.calls[number] > 1:
            self.wrong("calls_twice", turn, f"attempt {number} called its executor more than once", number)
        self.role(turn, call["role"], f"the call of attempt {number}")
        self.role(turn, call["stdin_role"], f"what the call of attempt {number} got to read")
        if call["service"] != call["fake_service"]:
            self.wrong("wrong_service", turn, f"attempt {number} of {call['service']} ran what is {call['fake_service']}'s")
        one.attempts.setdefault(number, None)
        one.called.append((number, call["service"]))

    # ---- what came of it ----

    def open(self):
        """Published turns that have not come to rest, as far as was read."""
        with self.lock:
            return [turn for turn in self.published if not self.rests(self.seen.get(turn))]

    def parked(self):
        """Published turns that are parked, old to new."""
        with self.lock:
            return [turn for turn in self.published if turn in self.seen and
                    any(state["state"] == "parked" for state in self.seen[turn].states.values())]

    @staticmethod
    def rests(one):
        here = [state for state in one.states.values() if state["state"] != "delegated"] if one else []
        return len(here) > 0 and all(state["state"] in ENDS + ("parked",) for state in here)

    def addressed(self, turn, number):
        """The service that attempt was for: the published one, or where passes led."""
        service, been = self.published[turn].service, set()
        while service not in been:
            been.add(service)
            state = self.seen[turn].states.get(service)
            if not state or state["state"] != "delegated" or number < state["to"]["attempt"]:
                break
            service = state["to"]["service"]
        return service

    def judge(self):
        """The last look at every turn, when all has been read."""
        for turn, state, service in self.runs.trimmed():
            self.published.setdefault(turn, Published(state["task_id"], state["role"], service))
        for turn in self.seen:
            if turn not in self.published:
                self.wrong("double", turn, "was published by nobody")
        for turn in self.published:
            self.judge_one(turn, self.seen[turn])
        self.runs.judge()

    def judge_one(self, turn, one):
        known = one.states
        here = {service: state for service, state in known.items() if state["state"] != "delegated"}
        story = ", ".join(f"{state['state']} at {service} with attempt {state['attempt']}" for service, state in sorted(known.items()))
        if not known:
            self.wrong("lost", turn, f"was published to {self.published[turn].service}, and no log knows it")
        elif not here:
            self.wrong("lost", turn, f"was passed on, and is nowhere: {story}")
        elif len(here) > 1:
            self.wrong("double", turn, f"is in two services at once: {story}")
        else:
            (service, state), = here.items()
            self.judge_end(turn, one, service, state, story)
        path = {self.addressed(turn, number) for number in range(1, 66)}
        for service in known:
            if service not in path:
                self.wrong("wrong_service", turn, f"is in the log of {service}, to which nobody gave it: {story}")
        for number, service in one.called:
            if service != self.addressed(turn, number):
                self.wrong("wrong_service", turn, f"attempt {number} was executed by {service}, and was for {self.addressed(turn, number)}: {story}")
            if number > max((state["attempt"] for state in known.values()), default=0):
                self.wrong("double", turn, f"attempt {number} was executed, and no log has it: {story}")
        results = collections.Counter(number for event, number, _ in one.ends if event == "completed")
        for number, count in results.items():
            if count > 1:
                self.wrong("results_twice", turn, f"attempt {number} has {count} results", number)

    def judge_end(self, turn, one, service, state, story):
        word = state["state"]
        if word in LIVE:
            self.wrong("lost", turn, f"did not come to an end: {story}")
        if word == "parked" and (not one.letters or one.letters != one.parked):
            self.wrong("lost", turn, f"is parked at {service} with {one.letters} dead letters and {one.parked} outcomes that say so")
        if word in ENDS and not one.ends:
            self.wrong("lost", turn, f"is {word} at {service}, and no outcome says so")
        if len(one.ends) > (word in ENDS):
            self.wrong("double", turn, f"is {word} at {service}, and its ends are {one.ends}")
        elif one.ends and one.ends[0] != (word, state["attempt"], service):
            self.wrong("double", turn, f"is {word} at {service} with attempt {state['attempt']}, and its end says {one.ends[0]}")
        if word == "cancelled" and turn not in self.cancels:
            self.wrong("lost", turn, f"was cancelled at {service}, which nobody asked for")
        if word == "completed" and not one.calls[state["attempt"]]:
            self.wrong("double", turn, f"was completed by attempt {state['attempt']}, which no executor was called for")

    def counts(self, faults):
        """The object of the last line."""
        known = [one for turn, one in self.seen.items() if turn in self.published]
        return {"turns": len(self.published), "faults": faults, "attempts": sum(len(one.attempts) for one in known),
                "losses": sum(len(one.lossy) for one in known), "late": sum(len(one.late) for one in known),
                **{name: len(found) for name, found in self.found.items()}, **(self.runs.counts() if self.runs.started else {})}

    def words(self):
        """How many turns rest in which state."""
        return dict(collections.Counter(state["state"] for turn in self.published for state in self.seen[turn].states.values()))

    def sentences(self):
        with self.lock:
            return [f"{kind}: {text}" for kind, found in self.found.items() for text in found.values()] + self.runs.sentences()
