"""Counts what became of every run that was asked for, from the run log, the handoffs and the outcomes alone.

Fed by run.py through account.py with records in the order of their topics; test_92_chaos.py feeds it made-up ones. What
coordinators counted is held against the turns that were sent and the ends that were told.
"""
import collections

import proof

WRONG = ("runs_open", "runs_ended_twice", "edges_wrong", "no_successor", "two_successors", "early_successor")
OPEN = ("active", "waiting")
LAST = {"approve": "completed", "proceed": "completed"}  # of paired-review: what ends a run; each other verdict has one turn after it

Sent = collections.namedtuple("Sent", "run epoch by parent")


class Runs:
    def __init__(self):
        self.started = {}  # run: task
        self.records = {}  # run: its newest record
        self.sent = {}  # turn: Sent, from the record of its handoff
        self.logged = {}  # turn: its first state in a turn log
        self.fleet, self.services = None, ()
        self.verdicts = {}  # turn: what its completed end says
        self.ended = collections.Counter()  # (run, epoch)
        self.found = {name: {} for name in WRONG}

    def wrong(self, kind, run, text):
        self.found[kind].setdefault((run, text), f"run {run}: {text}")

    # ---- what comes in ----

    def record(self, record):
        self.records[record["run_id"]] = record

    def handoff(self, turn):
        """The value of a handoff: of a new turn, or of one that is passed on, which says the same."""
        self.sent.setdefault(turn["turn_id"], Sent(turn["run_id"], turn["epoch"], turn["intent"], turn["parent"]))

    def state(self, state):
        """A record of a turn log: its handoff may have been trimmed before anybody read it."""
        if state.get("run_id"):
            self.logged.setdefault(state["turn_id"], state)

    def trimmed(self):
        """Turns whose handoffs were not read: (turn, state, service), that to which it was sent. The id of a turn is a hash over
        what it was sent for and after which turn, so it tells them; where it does not, the turn is none of ours."""
        of_run = collections.defaultdict(set)
        for turn, state in self.logged.items():
            of_run[state["run_id"]].add(turn)
        for turn, state in self.logged.items():
            if turn in self.sent:
                continue
            run, by = state["run_id"], state["intent"]
            keys = ((parent, f"{parent}.{by}.{state['role']}.{number}") for parent in {run} | of_run[run] for number in range(1, len(of_run[run]) + 2))
            found = next(((parent, service) for parent, key in keys for service in self.services
                          if proof.turn_id(self.fleet, dict(state, key=key, service=service)) == turn), None)
            if found:
                self.sent[turn] = Sent(run, state["epoch"], by, found[0])
                yield turn, state, found[1]

    def outcome(self, event):
        if event["event"] == "run_ended":
            self.ended[(event["run_id"], event["result"]["epoch"])] += 1
        elif event["event"] == "completed":
            self.verdicts.setdefault(event["turn_id"], (event.get("result") or {}).get("verdict"))

    # ---- what came of it ----

    def open(self):
        return [run for run in self.started if self.records.get(run, {"state": "active"})["state"] in OPEN]

    def states(self):
        return dict(collections.Counter(self.records[run]["state"] if run in self.records else "unknown" for run in self.started))

    def judge(self):
        of_run, after = collections.defaultdict(list), collections.Counter()
        for turn, sent in self.sent.items():
            of_run[sent.run].append(turn)
            after[sent.parent] += 1
            if sent.parent != sent.run and sent.parent not in self.verdicts:
                self.wrong("early_successor", sent.run, f"turn {turn} follows {sent.parent}, which has not completed")
        for run in set(of_run) - set(self.started):
            self.wrong("edges_wrong", run, f"was asked for by nobody, and has the turns {of_run[run]}")
        for run in self.started:
            self.judge_run(run, self.records.get(run), of_run[run], after)

    def judge_run(self, run, record, turns, after):
        if record is None:
            self.wrong("runs_open", run, "is in no run log")
            return
        if record["state"] in OPEN:
            self.wrong("runs_open", run, f"is {record['state']}: {record.get('why', '')}")
        told = {epoch: self.ended[(run, epoch)] for epoch in range(1, record["epoch"] + 1)}
        if record["state"] not in OPEN and any(count != 1 for count in told.values()):
            self.wrong("runs_ended_twice", run, f"is {record['state']} in epoch {record['epoch']}, and its ends were told so often: {told}")
        if after[run] != record["epoch"]:
            self.wrong("no_successor" if after[run] < record["epoch"] else "two_successors", run, f"began with {after[run]} turns")
        counted = {edge["name"]: edge["total"] for edge in record["edges"]}
        taken = dict(collections.Counter(self.sent[turn].by for turn in turns))
        if counted != taken:
            self.wrong("edges_wrong", run, f"counts {counted}, and the log has {taken}")
        if {turn["turn_id"] for turn in record["turns"]} != set(turns):
            self.wrong("edges_wrong", run, f"knows the turns {sorted(turn['turn_id'] for turn in record['turns'])}, and the log has {sorted(turns)}")
        for turn in turns:
            verdict = self.verdicts.get(turn)
            due = 1 if verdict is not None and verdict not in LAST else 0
            if after[turn] > due:
                self.wrong("two_successors", run, f"turn {turn} says {verdict}, and {after[turn]} turns follow it")
            elif after[turn] < due:
                self.wrong("no_successor", run, f"turn {turn} says {verdict}, and no turn follows it")
            elif due == 0 and verdict is not None and record["state"] != LAST[verdict]:
                self.wrong("runs_open", run, f"turn {turn} says {verdict}, and the run is {record['state']}")

    def counts(self):
        edges = collections.Counter(sent.by for sent in self.sent.values())
        return {"runs": len(self.started), "run_ends": sum(self.ended.values()), "handoffs": sum(edges.values()) - edges["start"],
                **{name: len(found) for name, found in self.found.items()}}

    def sentences(self):
        return [f"{kind}: {text}" for kind, found in self.found.items() for text in found.values()]
