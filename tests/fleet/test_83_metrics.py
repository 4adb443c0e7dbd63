"""Metrics and health over HTTP: what a scraper sees of a running fleet, and what the listener refuses."""
import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from host import ready, wait_until
from scrape import LISTEN, get, metrics, number, port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# ---- what is told ----

@pytest.mark.core
def test_g5_metrics_tell_what_the_log_has(host):
    """G5: counters, histograms and gauges of a worker agree with what became of its turns, by service, worker and class."""
    host.plan(default=[{"sleep": 0.1}], tasks={"t-bad": [{"class": "bad_request"}], "t-again": [{"class": "unavailable"}, {}]})
    worker = ready(host.worker("alpha", "w1", *LISTEN))
    where = port(worker)
    good = [host.published("alpha", "owner", f"t-{n}") for n in range(3)] + [host.published("alpha", "owner", "t-again")]
    bad = host.published("alpha", "owner", "t-bad")
    for turn in good:
        host.ends(turn, "completed")
    host.ends(bad, "parked")
    mine_ = {"service": "alpha", "worker": "w1"}
    assert number(where, "baton_handoffs_claimed_total", **mine_) == 5
    assert number(where, "baton_turns_completed_total", **mine_) == 4
    assert number(where, "baton_turns_parked_total", **mine_) == 1
    assert number(where, "baton_attempts_failed_total", **{"class": "unavailable"}, **mine_) == 1
    assert number(where, "baton_attempts_failed_total", **{"class": "bad_request"}, **mine_) == 1
    assert number(where, "baton_attempts_failed_total", **{"class": "auth"}, **mine_) == 0
    assert number(where, "baton_start_delay_seconds_count", **mine_) == 5
    assert number(where, "baton_execution_seconds_count", **mine_) == 6
    assert number(where, "baton_execution_seconds_sum", **mine_) >= 0.4
    assert number(where, "baton_log_commit_seconds_count", **mine_) >= 5
    assert number(where, "baton_attempts_running", **mine_) == 0
    wait_until(lambda: number(where, "baton_turns_waiting_for_operator", **mine_) == 1, 40, "the gauge of what is parked")
    assert number(where, "baton_partitions_owned", **mine_) > 0
    assert get(where, "/readyz")[:2] == (200, "ready\n") and get(where, "/healthz")[:2] == (200, "ok\n")
    status, body, headers = get(where, method="HEAD")
    assert status == 200 and body == "" and int(headers["Content-Length"]) > 1000
    worker.stop()


def test_a06_a_handoff_that_nobody_takes(fresh):
    """A06: what is first in line and not taken ages in a gauge, and lag is told; both are gone once it is taken."""
    host = fresh.configure({"alpha": fresh.service(parallel=1)})
    gate = os.path.join(host.dir, "go")
    host.plan(tasks={"t-long": [{"until": gate}]})
    where = port(ready(host.worker("alpha", "w1", *LISTEN)))
    long = host.published("alpha", "owner", "t-long")
    host.called(1, turn=long)
    more = [host.published("alpha", "owner", f"t-{n}") for n in range(4)]
    wait_until(lambda: number(where, "baton_input_waiting_records", input="handoff") >= 1, 40, "lag to be told")
    wait_until(lambda: number(where, "baton_input_oldest_seconds", input="handoff") >= 1, 40, "its age to be told")
    open(gate, "w", encoding="utf-8").close()
    for turn in [long] + more:
        host.ends(turn, "completed")
    wait_until(lambda: number(where, "baton_input_oldest_seconds", input="handoff") == 0, 40, "nothing to wait any more")
    assert number(where, "baton_input_waiting_records", input="handoff") == 0


def test_coordinators_tell_of_runs(host):
    """A coordinator has the same listener; its series say whose they are."""
    coordinator = ready(host.worker("coordinator", "c1", *LISTEN))
    where = port(coordinator)
    assert number(where, "baton_runs_started_total", coordinator="c1") == 0
    assert number(where, "baton_input_waiting_records", coordinator="c1", input="requests") == 0
    wait_until(lambda: get(where, "/readyz")[0] == 200, 20, "the coordinator to be ready")


# ---- what is refused ----

@pytest.mark.drivers("local")
@pytest.mark.parametrize("ask, status", [
    (dict(method="POST"), 405), (dict(method="DELETE"), 405), (dict(method="POST", body="x=1"), 405),
    (dict(path="/"), 404), (dict(path="/metrics/../etc"), 404), (dict(body="x"), 413),
    (dict(headers={"Host": "evil.example"}), 403), (dict(headers={"Host": "evil.example:80"}), 403),
    (dict(headers={"Host": "localhost"}), 200), (dict(headers={"Host": "[::1]:9464"}), 200), (dict(headers={"Host": "10.0.0.7"}), 200),
    (dict(headers={"X": "y" * 40000}), 431),
])
def test_x_http_asks_that_are_refused(host, ask, status):
    """RECORD.md section 5, HTTP: GET and HEAD alone, no body, a name that is ours, a bounded head."""
    where = port(host.worker("alpha", "w1", *LISTEN))
    assert get(where, **ask)[0] == status
    assert get(where)[0] == 200


@pytest.mark.drivers("local")
def test_x_http_connections_are_bounded(host):
    """16 connections; who says nothing is let go after some seconds, and others are answered then."""
    where = port(host.worker("alpha", "w1", *LISTEN))
    slow = [socket.create_connection(("127.0.0.1", where), timeout=30) for _ in range(40)]
    try:
        slow[0].sendall(b"GET /metrics HTTP/1.1\r\n")

        def answered():
            try:
                return get(where, "/healthz")[0] == 200
            except OSError:
                return False
        wait_until(answered, 30, "an answer once the slow ones are let go")
    finally:
        for one in slow:
            one.close()


@pytest.mark.drivers("local")
def test_http_addresses_that_cannot_be_had(host):
    """Taken, foreign, or no address: refused before anything is started, with what to do."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen(1)
    for listen, words in ((f"127.0.0.1:{taken.getsockname()[1]}", "taken by another process"), ("192.0.2.1:9", "http.listen"),
                          ("no-such-host.invalid:9", "http.listen")):
        done = host.run("worker", "--service", "alpha", "--set", f"http.listen={listen}")
        assert done.status == 2 and words in done.err and "http.listen" in done.err, done
    taken.close()
    assert host.run("config", "check", "--set", "http.listen=nonsense").status == 2


# ---- what reads it ----

@pytest.mark.drivers("local")
def test_alert_rules_and_names_are_prometheus_s(host):
    """promtool accepts the metrics (names, units, types, help) and the alert rules."""
    where = port(host.worker("alpha", "w1", *LISTEN))
    done = subprocess.run(["promtool", "check", "metrics"], input=get(where)[1].encode(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    done = subprocess.run(["promtool", "check", "rules", os.path.join(ROOT, "deploy/metrics/alerts.yml")], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout.decode()
    names = {name for name, _ in metrics(where)}
    for file in ("alerts.yml", "dashboard.json"):
        with open(os.path.join(ROOT, "deploy/metrics", file), encoding="utf-8") as text:
            used = set(re.findall(r"\bbaton_\w+", text.read()))
        assert used and used <= names, f"{file} uses what is not there: {sorted(used - names)}"


@pytest.mark.drivers("local")
@pytest.mark.heavy
def test_a_real_prometheus_scrapes_a_fleet(host):
    """A real Prometheus with the shipped rules scrapes worker and coordinator; every panel of the dashboard can be drawn."""
    host.plan(default=[{"sleep": 0.05}])
    worker, coordinator = ready(host.worker("alpha", "w1", *LISTEN)), ready(host.worker("coordinator", "c1", *LISTEN))
    for n in range(3):
        host.ends(host.published("alpha", "owner", f"t-{n}"), "completed")
    folder = os.path.join(host.dir, "prometheus")
    os.mkdir(folder)
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as file:
        file.write(f"""global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{ROOT}/deploy/metrics/alerts.yml"]
scrape_configs:
  - job_name: baton
    static_configs: [{{targets: ["127.0.0.1:{port(worker)}", "127.0.0.1:{port(coordinator)}"]}}]
""")
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    at = free.getsockname()[1]
    free.close()
    with open(os.path.join(folder, "log"), "wb") as log:
        server = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                   f"--web.listen-address=127.0.0.1:{at}"], stdout=log, stderr=log, start_new_session=True)
    try:
        def asked(path, **words):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{at}{path}?{urllib.parse.urlencode(words)}", timeout=10) as answer:
                    return json.load(answer)["data"]
            except (OSError, urllib.error.URLError):
                return None

        def query(expr):
            answer = asked("/api/v1/query", query=expr)
            return answer["result"] if answer else []

        wait_until(lambda: [one["value"][1] for one in query("up")] == ["1", "1"], 60, "both to be scraped")
        assert [one["value"][1] for one in query('baton_turns_completed_total{service="alpha",worker="w1"}')] == ["3"]
        with open(os.path.join(ROOT, "deploy/metrics/dashboard.json"), encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        exprs = [target["expr"].replace("$service", ".*") for panel in panels for target in panel["targets"]]
        for expr in exprs:
            answer = asked("/api/v1/query", query=expr)
            assert answer is not None, f"a panel cannot be drawn: {expr}"
        rules = [rule for group in asked("/api/v1/rules")["groups"] for rule in group["rules"]]
        wait_until(lambda: all(rule["health"] == "ok" for group in asked("/api/v1/rules")["groups"] for rule in group["rules"]), 60, "the rules to be evaluated")
        assert len(rules) == 10
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        wait_until(lambda: [one for one in query("ALERTS") if one["metric"]["alertname"] == "BatonDown"], 60, "the alert that it is down")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
