#!/usr/bin/python3
"""Runs the test programs that ctest knows below a prefix and counts their cases. Called by tests/run.

A cmocka program counts with each of its cases; any other program with one. A program that ends badly
without naming a case, or a cmocka program without a case, is a failure. Terminated itself, it takes
what runs with it.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

NAMED = re.compile(rb"^\[ +(OK|FAILED|SKIPPED|ERROR) +\] (.*?)\s*$", re.M)
RUNNING = set()


def end(*_):
    for pid in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(130)


def discover(build, prefix):
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True,
                             stdout=subprocess.PIPE)
    for test in json.loads(listing.stdout)["tests"]:
        if test["name"].startswith(prefix) and "command" in test:
            yield test


def run(test, build):
    properties = {p["name"]: p["value"] for p in test.get("properties", [])}
    environment = dict(os.environ)
    for entry in properties.get("ENVIRONMENT", []):
        name, _, value = entry.partition("=")
        environment[name] = value
    seconds = properties.get("TIMEOUT", 120)
    started = time.monotonic()
    process = subprocess.Popen(test["command"], cwd=properties.get("WORKING_DIRECTORY", build),
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    RUNNING.add(process.pid)
    try:
        output, _ = process.communicate(timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        late = True
    RUNNING.discard(process.pid)
    return judge(test["name"], process.returncode, output, late, seconds), time.monotonic() - started


def judge(name, status, output, late, seconds):
    """(name, passed, failed, skipped, reason) of one program."""
    passed, failed, skipped = 0, set(), 0
    for word, what in NAMED.findall(output):
        if b"test(s)" in what:
            continue
        if word == b"OK":
            passed += 1
        elif word == b"SKIPPED":
            skipped += 1
        else:
            failed.add(what)
    reason = ""
    if late:
        reason = f"still running after {seconds} s"
    elif status != 0 and not failed:
        reason = f"ended with status {status}"
    elif b"[==========]" in output and passed + len(failed) + skipped == 0:
        reason = "has no case"
    elif status == 0 and failed:
        reason = "ended with status 0 although a case failed"
    if reason:
        failed.add(reason.encode())
    if status == 0 and not reason and passed + len(failed) + skipped == 0:
        passed = 1
    return name, passed, len(failed), skipped, reason, output


def main():
    parser = argparse.ArgumentParser()
    for option in ("build", "prefix", "kind", "results"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, end)
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run, test, args.build) for test in discover(args.build, args.prefix)]
        with open(os.path.join(args.results, args.kind + ".failures"), "ab") as failures:
            for future in futures:
                (name, ok, bad, left, reason, output), took = future.result()
                passed, failed, skipped = passed + ok, failed + bad, skipped + left
                if bad:
                    print(f"        {name}: {bad} failed", flush=True)
                    failures.write(f"---- {name} {reason} ({took:.1f} s)\n".encode() + output + b"\n")
                elif took > 20:
                    print(f"        {name}: {took:.0f} s", flush=True)
    failures_path = os.path.join(args.results, args.kind + ".failures")
    if os.path.getsize(failures_path) == 0:
        os.unlink(failures_path)
    with open(os.path.join(args.results, args.kind + ".counts"), "w", encoding="ascii") as counts:
        counts.write(f"{passed} {failed} {skipped}\n")


if __name__ == "__main__":
    sys.exit(main())
