"""The command line of tests/chaos: draws the plan, runs it, prints what came of it."""
import argparse
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time

from host import binary

from chaos.field import Field
from chaos.plan import Plan
from chaos.run import Run

ABOUT = """Two services with fallback to each other, three workers each, under random faults for so many seconds:
workers are killed, frozen past their lease, stopped, lose their stores; others join and leave; executors fail
in every way; operators cancel and replay; on Kafka the broker is killed, stopped and frozen, and the network of
one worker is cut. Then all is mended, and every turn is accounted for from outside. With --runs the turns are those of so
many paired reviews, and the coordinators that move them are killed, frozen and stopped, too."""
AFTER = """The last line is one JSON object. Exit status: 0 every turn is accounted for once; 1 one of lost, double,
wrong_role, wrong_service, calls_twice, results_twice is not 0 (of runs also runs_open, runs_ended_twice, edges_wrong,
no_successor, two_successors, early_successor), or a worker or process misbehaved (standard error says what, and names the
turns; the folder is kept); 2 wrong usage; 3 it could not be run.

example: tests/chaos --log kafka --seconds 90
example: tests/chaos --log local --seconds 30 --runs 40 --coordinators 2"""

MANY = 40  # sentences on standard error; the folder has all


def words():
    parser = argparse.ArgumentParser(prog="tests/chaos", description=ABOUT, epilog=AFTER, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", choices=["kafka", "local"], required=True, help="which log; kafka begins a broker of its own")
    parser.add_argument("--seconds", type=int, default=90, help="how long faults go on (default: 90)")
    parser.add_argument("--turns", type=int, help="how many are published meanwhile (default: six a second)")
    parser.add_argument("--runs", type=int, default=0, help="how many paired reviews are asked for meanwhile, instead of turns")
    parser.add_argument("--coordinators", type=int, default=2, help="that move them (default: 2)")
    parser.add_argument("--seed", type=int, help="repeats the plan of turns and faults (default: a new one, which is printed)")
    parser.add_argument("--apart", action="store_true", help="the milder form: while the broker is down, and just after, workers and "
                        "network are let alone")
    parser.add_argument("--keep", metavar="DIR", help="work in this folder, new or empty, and leave everything there")
    asked = parser.parse_args()
    if asked.seconds < 5 or (asked.turns is not None and asked.turns < 1):
        parser.error("--seconds is 5 or more, --turns 1 or more")
    if asked.runs < 0 or asked.coordinators < 1 or (asked.runs and asked.turns):
        parser.error("--runs is 1 or more and goes without --turns, --coordinators 1 or more")
    if asked.keep and os.path.exists(asked.keep) and (not os.path.isdir(asked.keep) or os.listdir(asked.keep)):
        parser.error(f"{asked.keep} is not empty")
    return asked


class Progress:
    """A line each second on a terminal, else every ten."""

    def __init__(self):
        self.terminal, self.next = sys.stdout.isatty(), 0

    def __call__(self, run, what):
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + (1 if self.terminal else 10)
        published, rests = len(run.account.published), len(run.account.published) - len(run.account.open())
        runs = run.account.runs
        of_runs = f"{len(runs.started)} runs, {len(runs.started) - len(runs.open())} ended, " if run.plan.runs else ""
        line = f"{run.now:6.0f} s  {of_runs}{published} turns published, {rests} at rest, {sum(run.faults.values())} faults  {what}".rstrip()
        found = len(run.account.sentences()) + len(run.troubles)
        line += f"  {found} wrong so far" if found else ""
        print("\r" + line.ljust(78) if self.terminal else line, end="" if self.terminal else "\n", flush=True)

    def done(self):
        if self.terminal:
            print()


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    asked = words()
    if not os.access(binary(), os.X_OK):
        print(f"tests/chaos: there is no program {binary()}: build it, or set BATON_BIN", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)  # a shell's background hands down an ignored one
    turns = 0 if asked.runs else asked.turns or 6 * asked.seconds
    drawn = Plan(asked.log, asked.seconds, turns, asked.seed if asked.seed is not None else secrets.randbelow(10 ** 9), asked.apart, asked.runs,
                 asked.coordinators)
    again = (f" --turns {asked.turns}" if asked.turns else "") + (" --apart" if asked.apart else "")
    again += f" --runs {asked.runs} --coordinators {asked.coordinators}" if asked.runs else ""
    print(f"seed {drawn.seed}: tests/chaos --log {asked.log} --seconds {asked.seconds}{again} --seed {drawn.seed}", flush=True)
    folder = os.path.abspath(asked.keep) if asked.keep else tempfile.mkdtemp(prefix="baton-chaos-")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    field, run, progress = None, None, Progress()
    try:
        field = Field(folder, asked.log, bool(asked.keep), bool(asked.runs))
        run = Run(drawn, field, folder, progress)
        run.go()
        progress.done()
        return report(run, folder)
    except KeyboardInterrupt:
        progress.done()
        print("tests/chaos: interrupted", file=sys.stderr)
        return 130
    finally:
        kept = bool(asked.keep) or sys.exc_info()[0] is not None or (run is not None and bad(run))
        if run:
            run.end()
        if field:
            field.end()
        if kept:
            print(f"tests/chaos: everything is kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def bad(run):
    return bool(run.account.sentences() or run.troubles)


def report(run, folder):
    counts = run.account.counts(sum(run.faults.values()))
    print("faults:", ", ".join(f"{name} {count}" for name, count in sorted(run.faults.items())))
    print("turns:", ", ".join(f"{name} {count}" for name, count in sorted(run.account.words().items())))
    if run.plan.runs:
        print("runs:", ", ".join(f"{name} {count}" for name, count in sorted(run.account.runs.states().items())))
    said = run.account.sentences() + run.troubles
    for sentence in said[:MANY]:
        print(f"tests/chaos: {sentence}", file=sys.stderr)
    if len(said) > MANY:
        print(f"tests/chaos: and {len(said) - MANY} more, see {os.path.join(folder, 'wrong')}", file=sys.stderr)
    if said:
        with open(os.path.join(folder, "wrong"), "w", encoding="utf-8") as file:
            file.writelines(sentence + "\n" for sentence in said)
        run.dump(folder)
    print(json.dumps(counts), flush=True)
    return 1 if bad(run) else 0
