#!/usr/bin/env python3
"""Measures runs through a coordinator (`baton bench runs`) over run logs of several sizes, and prints what grows.

    tests/bench/runs.py [--sizes N,N,…] [--log kafka [--brokers LIST]] [--baton PROGRAM] [--turns N] [--rate N] [--seconds N]

With --log kafka a broker of its own is begun and ended, unless --brokers names one. Each size is measured beside what a
single turn waits from its publish to its executor in the same minute (two transactions of the log; a handoff has three):
ratios mean more than milliseconds on a busy machine. The last line is JSON. Exit status 0 whatever comes out; it is for
people.

example: tests/bench/runs.py --sizes 1000,100000
"""
import argparse
import json
import os
import subprocess
import sys

from medians import ROOT, brokers_for

BOUNDS = {"local": 10, "kafka": 40}  # of p50_ms
# title, figure, digits; each is shown with its ratio to the smallest size
FIGURES = [("start, s", "start_s", 2), ("  CPU, s", "start_cpu_s", 2), ("memory then, MB", "rss_mb", 1), ("handoffs/s", "handoffs_per_s", 0),
           ("  CPU s for 1,000", "cpu_s_per_1000", 2), ("handoff p50, ms", "p50_ms", 1), ("handoff p99, ms", "p99_ms", 1),
           ("one turn p50, ms", "turn_p50_ms", 1), ("handoff to turn, p50", "to_turn", 2)]


def bench(asked, words, *more):
    out = subprocess.run([asked.baton, "bench", *more, *words, "--proof", "required", "--rate", str(asked.rate), "--seconds",
                          str(asked.seconds), "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(out)["measured"][0]


def measure(asked, words, size):
    turn = bench(asked, words, "--kind", "callback", "--measure", "latency", "--turns", "500")
    one = bench(asked, words, "runs", "--runs", str(size), "--open", str(min(asked.open, size)), "--turns", str(asked.turns))
    return dict(one, runs=size, rss_mb=one["rss_kib"] / 1024, turn_p50_ms=turn["p50_ms"], to_turn=one["p50_ms"] / turn["p50_ms"])


def show(sizes):
    print(f"\n{'runs in the run log':<24}" + "".join(f"{one['runs']:>18}" for one in sizes))
    for title, name, digits in FIGURES:
        first = sizes[0][name]
        cells = (f"{one[name]:.{digits}f}" + (f" ({one[name] / first:.2f})" if first else "") for one in sizes)
        print(f"{title:<24}" + "".join(f"{cell:>18}" for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=os.path.join(ROOT, "build", "release", "deploy", "baton"))
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--open", type=int, default=1000, help="of them wait for a person")
    parser.add_argument("--log", choices=("local", "kafka"), default="local")
    parser.add_argument("--brokers")
    parser.add_argument("--turns", type=int, default=8000)
    parser.add_argument("--rate", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=5)
    asked = parser.parse_args()
    sizes = []
    with brokers_for(asked) as brokers:
        words = ["--log", asked.log, *(["--brokers", brokers] if brokers else [])]
        for size in map(int, asked.sizes.split(",")):
            print(f"{size} runs, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
            sizes.append(measure(asked, words, size))
    show(sizes)
    said = "" if sizes[0]["p50_ms"] <= BOUNDS[asked.log] else "   NOT REACHED"
    print(f"bound of the first p50: {BOUNDS[asked.log]} ms{said}")
    print(json.dumps({"log": asked.log, "measured": sizes}))


if __name__ == "__main__":
    main()
