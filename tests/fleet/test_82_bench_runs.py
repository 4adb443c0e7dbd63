"""`baton bench runs`: it measures on either log, and leaves nothing behind."""
import os
import signal
import subprocess

import pytest

from host import SLOW, binary, wait_until


@pytest.mark.core
@pytest.mark.seconds(120)
def test_bench_runs_measures_a_coordinator(host, tmp_path):
    """Over 2,000 runs that were there: handoffs are done and timed; ended runs take no memory of a coordinator, open ones little."""
    place = tmp_path / "bench"
    place.mkdir()
    log = ["--log", "local"] if host.driver == "local" else ["--log", "kafka", "--brokers", host.brokers]
    done = host.run("bench", "runs", *log, "--runs", "2000", "--open", "100", "--turns", "80", "--rate", "40", "--seconds", "1", "--proof",
                    "required", "--dir", str(place), "--json", seconds=100).ok().one
    assert (done["log"], done["runs"], done["open"]) == (host.driver, 2000, 100), done
    measured, = done["measured"]
    assert measured["proof"] and measured["handoffs_per_s"] > 0 and measured["start_s"] > 0, done
    assert 0 < measured["p50_ms"] <= measured["p99_ms"] <= measured["worst_ms"], done
    if SLOW == 1:  # a sanitizer's memory says nothing
        assert measured["rss_kib"] <= measured["peak_kib"] < 48 * 1024, done
    assert not os.listdir(place), "its folder is removed"


@pytest.mark.drivers("local")
def test_s7_bench_runs_refuses_what_it_cannot_measure(fresh):
    for words in (["--proof", "perhaps"], ["--log", "kafka"], ["--runs", "-1"], ["--open", "many"]):
        done = fresh.run("bench", "runs", *words)
        assert done.status == 2 and done.err.strip(), done


@pytest.mark.drivers("local")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_f08_an_interrupted_bench_leaves_nothing(fresh, tmp_path, sign):
    """F08: Ctrl-C, or worse, in the middle of a measurement: its processes end, and its folder, which may be large, is removed."""
    place = tmp_path / "bench"
    place.mkdir()
    bench = subprocess.Popen([binary(), "bench", "--turns", "20000", "--kind", "callback", "--dir", str(place)], env=fresh.environment,
                             start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        wait_until(lambda: any((one / "data" / "log.db").exists() for one in place.iterdir()), what="a measurement to have begun")
        os.killpg(bench.pid, sign)
        assert bench.wait(20 * SLOW) == -sign
        wait_until(lambda: not os.listdir(place), what="the folder to be removed")
    finally:
        bench.kill()
        bench.wait()


@pytest.mark.drivers("local")
def test_s7_bench_names_what_it_was_given(fresh, tmp_path):
    """S7: a word that is nothing to measure, and a folder that is not there, are mistakes of the caller; nobody's folder is removed."""
    fresh.run("bench", "everything", "--json").refused("usage", 2)
    fresh.run("bench", "--dir", tmp_path / "none", "--json").refused("invalid_request", 2)
    (tmp_path / "mine").mkdir()
    assert fresh.run("bench", "do-clean", tmp_path / "mine").status == 2 and (tmp_path / "mine").exists()
