#!/usr/bin/env python3
"""Measures the first page of long lists: `baton turns list` and `baton dlq list`, and what reads on.

    tests/bench/lists.py [--turns N] [--letters N] [--log kafka] [--baton PROGRAM]

Makes a log with so many completed turns, then so many parked ones (half) and rejected records (the other half), written in
bulk from one real turn of each kind; then prints time and peak memory of each command beside its bound. With --log kafka a
broker is begun and ended. The last line is JSON. Exit status 0 whatever comes out; it is for people.

example: tests/bench/lists.py --turns 100000 --letters 10000
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
BOUND_S, BOUND_MB = 1.0, 100


def measure(host, *words):
    """(seconds, MB at most, standard output) of a command. What rusage says includes this program, before its exec."""
    import host as hosts
    with tempfile.TemporaryFile() as out:
        started, peak = time.monotonic(), 0
        process = subprocess.Popen([hosts.binary(), *words], cwd=host.dir, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                                   env=host.environment)
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                peak = max([peak, *(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))])
            time.sleep(0.002)
        took = time.monotonic() - started
        assert process.returncode == 0, (words, process.returncode)
        out.seek(0)
        return took, peak / 1024, out.read().decode()


def grown(host, asked):
    """A host whose log holds so many turns and letters."""
    import bulk
    import proof
    host.configure({"alpha": None, "beta": None})
    host.plan(default=[{}], tasks={"t-bad": [{"class": "bad_request"}]})
    host.worker("alpha", "w1")
    good, bad = host.published("alpha", "owner", "t-good"), host.published("alpha", "owner", "t-bad")
    host.ends(good, "completed"), host.ends(bad, "parked")
    host.log.append(proof.Record(host.topic("handoff"), key=b"0" * 32, value=b"junk", headers=[("x", b"1")]), partition=0)
    host.letter("bad_signature")
    host.end_workers()
    # The newest record of each key: as compaction leaves it.
    turns = {one.key.decode(): one for one in host.log.records(host.topic("turns")) if one.value}
    letter, = [one for one in host.log.records(host.topic("dlq")) if one.value == b"junk"]
    bulk.fill(host, host.topic("turns"), bulk.copies(turns[good], good, range(asked.turns)))
    bulk.fill(host, host.topic("turns"), bulk.copies(turns[bad], bad, range(asked.turns, asked.turns + asked.letters // 2)))
    bulk.fill(host, host.topic("dlq"), ((bulk.turn_id(n).encode(), b"junk %d" % n) for n in range(asked.letters // 2)), headers=letter.headers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baton", default=os.path.join(ROOT, "build", "release", "deploy", "baton"))
    parser.add_argument("--turns", type=int, default=1000000)
    parser.add_argument("--letters", type=int, default=100000)
    parser.add_argument("--log", choices=("local", "kafka"), default="local")
    asked = parser.parse_args()
    os.environ["BATON_BIN"] = os.path.abspath(asked.baton)
    import broker
    from host import Host
    measured = []
    with tempfile.TemporaryDirectory(prefix="baton-lists-") as folder:
        host = Host(folder, asked.log)
        try:
            started = time.monotonic()
            grown(host, asked)
            print(f"{asked.turns} turns, {asked.letters} letters, made in {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.2f}\n")
            print(f"{'command':<58}{'s':>8}{'MB':>8}")
            page = json.loads(measure(host, "turns", "list", "--limit", "50", "--json")[2].splitlines()[-1])["position"]
            for words, bound in ((("turns", "list"), True), (("turns", "list", "--state", "parked"), True), (("dlq", "list"), True),
                                 (("turns", "list", "--before", page), True), (("turns", "list", "--state", "completed"), False),
                                 (("dlq", "list", "--where", "class=auth"), False), (("turns", "list", "--state", "running"), False),
                                 (("dlq", "stats"), False)):
                took, mb, _ = measure(host, *words)
                late = "   NOT REACHED" if mb > BOUND_MB or (bound and took > BOUND_S) else ""
                print(f"{' '.join(words)[:57]:<58}{took:>8.2f}{mb:>8.1f}{late}")
                measured.append({"command": words, "s": round(took, 3), "mb": round(mb, 1)})
        finally:
            host.end_workers()
            if asked.log == "kafka":
                host.log.drop(*host.log.topics(), wait=False)
                broker.end_shared()
    print(f"\nbounds: a first page within {BOUND_S:.0f} s, all below {BOUND_MB} MB")
    print(json.dumps({"log": asked.log, "turns": asked.turns, "letters": asked.letters, "measured": measured}))


if __name__ == "__main__":
    main()
