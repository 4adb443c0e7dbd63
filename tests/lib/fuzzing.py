#!/usr/bin/python3
"""Runs every fuzz target of a build for a bounded time, beginning with its corpus. Called by tests/run.

A target is an executable fuzz_* below the build's folder. What it finds is written to a temporary
folder and shown; the corpus in the tree is only read.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile


def targets(build):
    for where, folders, names in os.walk(build):
        folders[:] = [f for f in folders if f != "CMakeFiles" and not f.endswith(".dir")]
        for name in names:
            path = os.path.join(where, name)
            if re.fullmatch(r"fuzz_[a-z0-9_]+", name) and os.access(path, os.X_OK):
                yield path


def fuzz(path, corpus, seconds):
    name = os.path.basename(path)
    seeds = [folder for folder in (os.path.join(corpus, name), os.path.join(corpus, name[5:]))
             if os.path.isdir(folder)]
    with tempfile.TemporaryDirectory() as work:
        found = os.path.join(work, "found")
        os.makedirs(os.path.join(work, "new"))
        os.makedirs(found)
        command = [os.path.abspath(path), f"-max_total_time={seconds}", "-timeout=10",
                   "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={found}/",
                   os.path.join(work, "new")] + [os.path.abspath(folder) for folder in seeds]
        done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds * 3 + 120, check=False)
        text = done.stdout.decode("utf-8", "replace")
        for artifact in sorted(os.listdir(found)):
            with open(os.path.join(found, artifact), "rb") as file:
                text += f"\n{artifact}: {file.read(4096)!r}"
    return name, done.returncode, text


def main():
    parser = argparse.ArgumentParser()
    for option in ("build", "corpus", "kind", "results"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    passed, failures = 0, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, status, text in pool.map(lambda p: fuzz(p, args.corpus, args.seconds),
                                           sorted(targets(args.build))):
            runs = re.search(r"number_of_executed_units: (\d+)", text)
            runs = int(runs.group(1)) if runs else 0
            print(f"        {name}: {runs} inputs", flush=True)
            if status == 0 and runs > 0:
                passed += 1
            else:
                failures.append(f"---- {name} (status {status})\n{text[-8000:]}")
    base = os.path.join(args.results, args.kind)
    if failures:
        with open(base + ".failures", "a", encoding="utf-8") as file:
            file.write("\n".join(failures) + "\n")
    with open(base + ".counts", "w", encoding="ascii") as counts:
        counts.write(f"{passed} {len(failures)} 0\n")


if __name__ == "__main__":
    sys.exit(main())
