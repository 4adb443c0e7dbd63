#!/usr/bin/env python3
"""Measures how long a scrape of /metrics takes, of a worker and of a coordinator, with few and with many services.

    tests/bench/scrape.py [--services N,N,…] [--scrapes N] [--baton PROGRAM]

On the local log, in a folder of its own. Each number of services is measured in the same run, so that the ratio tells what
they cost. The last line is JSON. Exit status 0 whatever comes out; it is for people.

example: tests/bench/scrape.py --services 1,200
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

from medians import ROOT

BOUND_MS = 10  # of p50_ms, with 200 services


def scrapes(where, count):
    from scrape import get
    took = []
    for _ in range(count):
        begun = time.monotonic()
        status, text, _ = get(where)
        took.append((time.monotonic() - begun) * 1000)
        assert status == 200
    return {"p50_ms": statistics.median(took), "p99_ms": sorted(took)[len(took) * 99 // 100], "bytes": len(text)}


def measure(services, count):
    from host import Host, ready
    from scrape import LISTEN, port
    with tempfile.TemporaryDirectory(prefix="baton-scrape.") as folder:
        host = Host(folder, "local").configure({f"s{number:03d}": None for number in range(services)})
        try:
            turns = [host.published("s000", "reviewer", f"t-{number}") for number in range(20)]
            processes = {"worker": host.worker("s000", None, *LISTEN), "coordinator": host.worker("coordinator", None, *LISTEN)}
            for process in processes.values():
                ready(process)
            for turn in turns:
                host.ends(turn, "completed")
            return [dict(scrapes(port(process), count), services=services, process=name) for name, process in processes.items()]
        finally:
            host.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=os.path.join(ROOT, "build", "release", "deploy", "baton"))
    parser.add_argument("--services", default="1,200")
    parser.add_argument("--scrapes", type=int, default=500)
    asked = parser.parse_args()
    sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
    os.environ["BATON_BIN"] = os.path.abspath(asked.baton)
    measured = [one for services in map(int, asked.services.split(",")) for one in measure(services, asked.scrapes)]
    print(f"{'services':>8}  {'process':<12}{'p50, ms':>9}{'p99, ms':>9}{'bytes':>8}")
    for one in measured:
        said = "" if one["p50_ms"] <= BOUND_MS else "   NOT REACHED"
        print(f"{one['services']:>8}  {one['process']:<12}{one['p50_ms']:>9.2f}{one['p99_ms']:>9.2f}{one['bytes']:>8}{said}")
    print(json.dumps({"measured": measured}))


if __name__ == "__main__":
    main()
