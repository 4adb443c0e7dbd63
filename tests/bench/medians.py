#!/usr/bin/env python3
"""Runs `baton bench` several times and prints the median of each figure beside its bound.

    tests/bench/medians.py [--runs N] [--baton PROGRAM] [any option of baton bench]

Says how busy the machine was before each run: figures of a busy one are lower, not wrong. Exit status 0 whatever
comes out; it is for people.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# figure, better when larger, bound of (callback with proofs, callback without): None where there is none
FIGURES = [
    ("turns_per_s", True, (5000, 10000)),
    ("p50_ms", False, (5, 5)),
    ("p99_ms", False, (20, 20)),
    ("first_turn_ms", False, (60, 60)),
    ("idle_rss_kib", False, (16 * 1024, 16 * 1024)),
    ("idle_cpu_percent", False, (0.5, 0.5)),
    ("peak_kib", False, (100 * 1024, 100 * 1024)),
    ("cpu_s_per_1000", False, (None, None)),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=os.path.join(ROOT, "build", "release", "deploy", "baton"))
    parser.add_argument("--runs", type=int, default=3)
    asked, rest = parser.parse_known_args()
    runs = []
    for number in range(asked.runs):
        print(f"run {number + 1}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
        out = subprocess.run([asked.baton, "bench", "--json", *rest], check=True, stdout=subprocess.PIPE).stdout
        runs.append(json.loads(out))
    bare = statistics.median(run["bare_turns_per_s"] for run in runs)
    print(f"fdatasync {statistics.median(run['sync_ms'] for run in runs):.2f} ms, SQLite work alone {bare:.0f} turns/s")
    for index, first in enumerate(runs[0]["measured"]):
        same = [run["measured"][index] for run in runs]
        print(f"\n{first['executor']}, proofs {'on' if first['proof'] else 'off'}")
        for name, larger, bounds in FIGURES:
            value = statistics.median(one[name] for one in same)
            bound = bounds[0 if first["proof"] else 1] if first["executor"] == "callback" else None
            said = ""
            if bound is not None:
                kept = value >= bound if larger else value <= bound
                said = f"   bound {bound}" + ("" if kept else "   NOT REACHED")
            print(f"  {name:<18} {value:>12.3f}{said}")
        rate = statistics.median(one["turns_per_s"] / run["bare_turns_per_s"] for one, run in zip(same, runs))
        print(f"  {'of bare SQLite':<18} {rate:>12.2f}")


if __name__ == "__main__":
    main()
