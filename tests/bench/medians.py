#!/usr/bin/env python3
"""Runs `baton bench` several times and prints the median of each figure beside its bound.

    tests/bench/medians.py [--runs N] [--baton PROGRAM] [--log kafka [--brokers LIST]] [any option of baton bench]

With --log kafka a broker of its own is begun and ended, unless --brokers names one. Says how busy the machine was
before each run: figures of a busy one are lower, not wrong. Exit status 0 whatever comes out; it is for people.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BROKER = os.path.join(ROOT, "deploy", "kafka", "broker")
# figure, better when larger, bound of (callback with proofs, callback without): None where there is none
FIGURES = {
    "local": [
        ("turns_per_s", True, (5000, 10000)),
        ("p50_ms", False, (5, 5)),
        ("p99_ms", False, (20, 20)),
        ("first_turn_ms", False, (60, 60)),
        ("restart_ms", False, (None, None)),
        ("idle_rss_kib", False, (16 * 1024, 16 * 1024)),
        ("idle_cpu_percent", False, (0.5, 0.5)),
        ("peak_kib", False, (100 * 1024, 100 * 1024)),
        ("commits_per_s", True, (None, None)),
        ("cpu_s_per_1000", False, (None, None)),
    ],
    "kafka": [
        ("turns_per_s", True, (4000, 8000)),
        ("p50_ms", False, (20, 20)),
        ("p99_ms", False, (80, 80)),
        ("first_turn_ms", False, (400, 400)),
        ("restart_ms", False, (1000, 1000)),
        ("idle_rss_kib", False, (16 * 1024, 16 * 1024)),
        ("idle_cpu_percent", False, (0.5, 0.5)),
        ("peak_kib", False, (None, None)),
        ("commits_per_s", True, (None, None)),
        ("cpu_s_per_1000", False, (None, None)),
    ],
}


@contextlib.contextmanager
def brokers_for(asked):
    """The brokers' addresses: those that were named, or of a broker for the time of the run."""
    if asked.log != "kafka" or asked.brokers:
        yield asked.brokers
        return
    with tempfile.TemporaryDirectory(prefix="baton-medians-") as folder:
        own = os.path.join(folder, "broker")
        try:
            subprocess.run([BROKER, "start", own, "--port", "0", "--while", str(os.getpid())], check=True,
                           stdout=subprocess.DEVNULL)
            state = subprocess.run([BROKER, "status", own, "--json"], check=True, stdout=subprocess.PIPE).stdout
            yield json.loads(state)["brokers"]
        finally:
            subprocess.run([BROKER, "stop", own, "--delete"], check=False, stderr=subprocess.DEVNULL)


def show(log, runs):
    bare = statistics.median(run["bare_turns_per_s"] for run in runs)
    if log == "kafka":
        took = statistics.median(run["bare_commit_ms"] for run in runs)
        print(f"one transaction of the log alone {took:.1f} ms, the log's work alone {bare:.0f} turns/s")
    else:
        took = statistics.median(run["sync_ms"] for run in runs)
        print(f"fdatasync {took:.2f} ms, SQLite work alone {bare:.0f} turns/s")
    for index, first in enumerate(runs[0]["measured"]):
        same = [run["measured"][index] for run in runs]
        print(f"\n{first['executor']}, proofs {'on' if first['proof'] else 'off'}")
        for name, larger, bounds in FIGURES[log]:
            value = statistics.median(one[name] for one in same)
            bound = bounds[0 if first["proof"] else 1] if first["executor"] == "callback" else None
            said = ""
            if bound is not None and value > 0:  # 0: it was not measured
                kept = value >= bound if larger else value <= bound
                said = f"   bound {bound}" + ("" if kept else "   NOT REACHED")
            print(f"  {name:<18} {value:>12.3f}{said}")
        rate = statistics.median(one["turns_per_s"] / run["bare_turns_per_s"] for one, run in zip(same, runs))
        print(f"  {'of the bare work':<18} {rate:>12.2f}")
        if any(one["restart_noticed"] for one in same) and log == "kafka":
            print("  another worker noticed the restart   NOT REACHED")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=os.path.join(ROOT, "build", "release", "deploy", "baton"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--log", choices=("local", "kafka"), default="local")
    parser.add_argument("--brokers")
    asked, rest = parser.parse_known_args()
    runs = []
    with brokers_for(asked) as brokers:
        words = ["--log", asked.log, *(["--brokers", brokers] if brokers else [])]
        for number in range(asked.runs):
            print(f"run {number + 1}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
            out = subprocess.run([asked.baton, "bench", "--json", *words, *rest], check=True, stdout=subprocess.PIPE).stdout
            runs.append(json.loads(out))
    show(asked.log, runs)


if __name__ == "__main__":
    main()
