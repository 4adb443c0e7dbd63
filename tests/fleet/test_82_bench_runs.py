"""`baton bench runs`: it measures on either log, and leaves nothing behind."""
import os

import pytest

from host import SLOW


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
