"""Copies the sources, puts in one fault after the other, builds what the named test needs, and runs that test.

Started by tests/mutants. A test that fails without a fault, and a fault that does not build, count as errors
and not as kills. The working tree is never touched.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from mutants.table import MUTANTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SECONDS = 300  # for one test
LINE = re.compile(rb"^\[\s*(RUN|OK|FAILED)\s*\] (\w+)")


class Broken(Exception):
    """Why nothing can be said about a mutant."""


class Ground:
    """A copy of the sources with a build of its own."""

    def __init__(self, folder, jobs):
        self.source, self.build, self.jobs = os.path.join(folder, "source"), os.path.join(folder, "build"), jobs
        if not os.path.exists(self.source):
            shutil.copytree(ROOT, self.source, symlinks=True, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        self.call(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DBATON_FAULTS=ON",
                   "-DCMAKE_C_FLAGS=-w"])  # a fault may leave something unused

    @staticmethod
    def call(words):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise Broken(f"{' '.join(words[:4])} …\n" + done.stdout.decode(errors="replace")[-2000:])

    def passes(self, test):
        """Builds what a test needs, and runs it: PROGRAM TEST of tests/unit or tests/conformance, or FILE TEST of tests/fleet,
        on the local log if it does not say `kafka` behind them."""
        where, name, *log = test.split(" ")
        fleet = where.startswith("fleet/")
        self.call(["ninja", "-C", self.build, "-j", str(self.jobs), *(["baton", "baton-guard"] if fleet else [os.path.basename(where)])])
        return self.fleet(where, name, *log) if fleet else self.program(where, name)

    def program(self, program, name):
        """One program runs until the named test has ended; a program that dies in it has failed, too."""
        path = os.path.join(self.build, program)
        only = [name] if program.startswith("conformance/") else []
        environment = {word: value for word, value in os.environ.items() if not word.startswith("BATON_")}
        process = subprocess.Popen(["stdbuf", "-oL", path, *only], cwd=self.build, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, env=environment)
        late = subprocess.Popen(["sh", "-c", f"sleep {SECONDS}; kill -9 -{process.pid}"], start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = {}
        try:
            for line in process.stdout:
                match = LINE.match(line)
                if match:
                    found[match.group(2).decode()] = match.group(1)
                if found.get(name) in (b"OK", b"FAILED"):
                    break
        finally:
            for one in (late, process):
                try:
                    os.killpg(one.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                one.wait()
        if name not in found:
            died = [test for test, word in found.items() if word != b"OK"]
            raise Broken(f"{program} did not come to {name}; it ended in {died}")
        return found[name] == b"OK"

    def fleet(self, path, name, log="local"):
        environment = {word: value for word, value in os.environ.items() if not word.startswith("BATON_")}
        environment.update(BATON_BIN=os.path.join(self.build, "deploy", "baton"), BATON_BUILD=self.build)
        words = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", f"--logs={log}", "-m", "not long", "-k", name]
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", *words, os.path.join(self.source, "tests", path)],
                              cwd=self.source, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode not in (0, 1):  # 5: there is no such test
            raise Broken(f"{path} -k {name}: {done.stdout.decode(errors='replace')[-600:]}")
        return done.returncode == 0

    def judge(self, mutant):
        """Is the mutant killed?"""
        path = os.path.join(self.source, mutant.file)
        with open(path, encoding="utf-8") as file:
            sound = file.read()
        if sound.count(mutant.old) != 1:
            raise Broken(f"{mutant.file} has {sound.count(mutant.old)} times what the mutant replaces")
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(sound.replace(mutant.old, mutant.new))
            return not self.passes(mutant.test)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(sound)


def command_line():
    parser = argparse.ArgumentParser(prog="tests/mutants", description="Puts small faults into a copy of the sources, one at a time; each must "
                                     "be seen by the test that the table names for it. Takes some minutes.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    parser.add_argument("--list", action="store_true", help="names them, with what they break and the test that must see it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many compilers at a time")
    parser.add_argument("--keep", metavar="DIR", help="build there, and leave it for the next time")
    asked = parser.parse_args()
    unknown = set(asked.names) - {one.name for one in MUTANTS}
    if unknown:
        parser.error(f"no mutant {', '.join(sorted(unknown))}; tests/mutants --list names them")
    return asked


def run(ground, chosen):
    killed = survived = errors = 0
    sound = {}
    for mutant in chosen:
        began = time.monotonic()
        try:
            if mutant.test not in sound:
                sound[mutant.test] = ground.passes(mutant.test)
            if not sound[mutant.test]:
                raise Broken(f"{mutant.test} fails without a fault")
            word = "killed" if ground.judge(mutant) else "SURVIVED"
        except Broken as error:
            word, said = "ERROR", str(error)
        killed, survived, errors = killed + (word == "killed"), survived + (word == "SURVIVED"), errors + (word == "ERROR")
        print(f"{word:9} {mutant.name} ({mutant.rule}): {mutant.test}, {time.monotonic() - began:.0f} s" + (f": {said}" if word == "ERROR" else ""), flush=True)
    print(f"{killed} killed, {survived} survived" + (f", {errors} in error" if errors else ""))
    return 0 if killed == len(chosen) else 1


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    asked = command_line()
    chosen = [one for one in MUTANTS if not asked.names or one.name in asked.names]
    if asked.list:
        for one in chosen:
            print(f"{one.name:28} {one.rule:24} {one.test}")
        return 0
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)
    folder = os.path.abspath(asked.keep) if asked.keep else tempfile.mkdtemp(prefix="baton-mutants-")
    os.makedirs(folder, exist_ok=True)
    try:
        return run(Ground(folder, asked.jobs), chosen)
    except Broken as error:
        print(f"tests/mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tests/mutants: interrupted", file=sys.stderr)
        return 130
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
