"""The collector of traces: how it is reached and with what, what is refused before that, and what its answers mean."""
import os
import re
import shutil
import subprocess

import pytest

import otlp
from host import SLOW, binary, ready, wait_until
from otlp import named, spans_of, traced
from scrape import LISTEN, number, port

CANARY = "Zanzibar-7391"


def certificate(folder, name):
    where = [os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}.key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-out", where[0], "-keyout", where[1]], check=True, capture_output=True)
    return where


@pytest.mark.drivers("local")
def test_https_is_checked_and_headers_come_from_a_file(fresh, tmp_path):
    """The collector's certificate is checked with traces.ca; Authorization is read again for each export, and stands nowhere else."""
    right, wrong = certificate(str(tmp_path), "right"), certificate(str(tmp_path), "wrong")
    headers = os.path.join(fresh.dir, "headers")
    with open(os.open(headers, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write(f"Authorization: Bearer {CANARY}\n")
    with otlp.Collector(certificate=right) as collector:
        host = traced(fresh, collector, traces={"ca": right[0], "headers": {"file": "headers"}})
        worker = ready(host.worker("alpha", "w1"))
        host.ends(host.published("alpha", "owner", "t-1"), "completed")
        wait_until(lambda: named(collector.spans, "attempt"), 20, "a span over TLS")
        with open(headers, "w", encoding="utf-8") as file:
            file.write("Authorization: Bearer second\nX-Scope-OrgID: fleet\n")
        host.ends(host.published("alpha", "owner", "t-2"), "completed")
        wait_until(lambda: len(named(collector.spans, "attempt")) == 2, 20, "another one")
        asked = [one for _, _, one, _ in collector.asked]
        assert asked[0]["Authorization"] == f"Bearer {CANARY}" and asked[0]["Content-Type"] == "application/x-protobuf"
        assert asked[-1]["Authorization"] == "Bearer second" and asked[-1]["X-Scope-OrgID"] == "fleet"
        assert CANARY not in worker.stop().log and CANARY not in host.run("config", "show").ok().out
        # another certificate than the collector's: nothing is told, nothing waits
        before = len(collector.asked)
        stranger = ready(host.worker("alpha", "w1", "--set", f"traces.ca={wrong[0]}"))
        host.ends(host.published("alpha", "owner", "t-3", "--set", f"traces.ca={wrong[0]}"), "completed")
        wait_until(lambda: stranger.events("traces.not_sent"), 20, "the refusal in the log")
        assert len(collector.asked) == before
        os.chmod(headers, 0o644)
        done = host.run("worker", "--service", "alpha", "--id", "w2")
        assert done.status == 2 and headers in done.err, done


@pytest.mark.drivers("local")
def test_traces_ca_is_instead_of_the_systems_certificates(fresh, tmp_path):
    """A certificate that the system knows is not believed where traces.ca names others."""
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run(alone + ["true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this machine lets nobody make a mount namespace")
    known, named_one = certificate(str(tmp_path), "known"), certificate(str(tmp_path), "named")
    system = tmp_path / "certs"
    system.mkdir()
    name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", known[0]], check=True, capture_output=True, text=True).stdout.strip()
    for at in (f"{name}.0", "ca-certificates.crt"):
        shutil.copy(known[0], system / at)
    with otlp.Collector(certificate=known) as collector:
        host = traced(fresh, collector)
        for more, asked in ((["--set", f"traces.ca={named_one[0]}"], 0), ([], 1)):
            words = [binary(), "publish", "--service", "alpha", "--role", "owner", "--task", "t-1", *more]
            done = subprocess.run(alone + ["sh", "-c", f'mount --bind {system} /etc/ssl/certs && exec "$@"', "sh", *words], cwd=host.dir, env=host.environment,
                                  capture_output=True, text=True, check=False, timeout=60 * SLOW)
            assert done.returncode == 0 and len(collector.asked) == asked, (done, collector.asked)
            assert ("traces.ca" in done.stderr) == (not asked), done


@pytest.mark.drivers("local")
def test_what_cannot_be_used_is_refused_at_the_start(fresh):
    """A host that is none, and headers that are none: said with the key and the line, never with what stands there."""
    def publish(*more):
        return host.run("publish", "--service", "alpha", "--role", "owner", "--task", "t-1", *more)

    with otlp.Collector() as collector:
        host = traced(fresh, collector, traces={"headers": {"file": "headers"}})
        path = os.path.join(host.dir, "headers")
        for text, right in ((f"A: {CANARY}\n\n" * 16, True), (f"A: {CANARY}\r\nB: b", True), (f"A: b\n\n{CANARY}", 3), (f"A: {CANARY}\rB: b\n", 1), (f"Host: {CANARY}\n", 1),
                            (f"A: {CANARY}\n" * 17, 17)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as file:
                file.write(text)
            done = publish()
            assert done.status == (0 if right is True else 2) and CANARY not in done.err + done.out, (text, done)
            assert right is True or ("traces.headers.file" in done.err and f"line {right}:" in done.err), done
        os.chmod(path, 0o640 + 0o007)
        assert publish().status == 2 and "traces.headers.file" in publish().err
        os.unlink(path)
        done = publish()
        assert done.status == 2 and f"traces.headers.file: there is no file {path}" in done.err, done
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8"):
            pass
        done = publish("--set", "traces.endpoint=http://[]/v1/traces")
        assert done.status == 2 and "traces.endpoint" in done.err, done


@pytest.mark.drivers("local")
def test_without_libcurl_it_says_what_to_install(fresh, tmp_path):
    """Loaded by processes that export alone; where it cannot be, the start says which package has it."""
    with open(tmp_path / "libcurl.so.4", "wb") as file:
        file.write(b"no library")
    host = fresh.configure({"alpha": None})
    worker = ready(host.worker("alpha", "w1"))
    with open(f"/proc/{worker.pid}/maps", encoding="ascii") as file:
        assert "/libcurl." not in file.read()
    for words in (("worker", "--service", "alpha", "--id", "w2"), ("coordinator",), ("publish", "--service", "alpha", "--role", "owner", "--task", "t-1")):
        done = host.run(*words, "--set", "traces.endpoint=http://127.0.0.1:9/v1/traces", environment={"LD_LIBRARY_PATH": str(tmp_path)})
        assert done.status == 2 and "libcurl4" in done.err and "traces.endpoint" in done.err, done
    assert host.published("alpha", "owner", "t-1")


@pytest.mark.drivers("local")
def test_x_the_environment_sends_spans_nowhere_else(fresh):
    """RECORD.md section 5: the endpoint comes from the configuration; proxies and OpenTelemetry's own variables are not read."""
    with otlp.Collector() as collector, otlp.Collector() as other:
        host = traced(fresh, collector)
        elsewhere = {name: f"http://127.0.0.1:{other.port}/" for name in
                     ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")}
        worker = ready(host.worker("alpha", "w1", environment=elsewhere))
        turn = host.published("alpha", "owner", "t-1", environment=elsewhere)
        host.ends(turn, "completed")
        assert len(spans_of(collector, turn, 1)) >= 3
        worker.stop()
        assert not other.asked
        done = subprocess.run([binary(), "publish", "--service", "alpha", "--role", "owner", "--task", "t-2", "--set", "traces.endpoint="], cwd=host.dir,
                              env=dict(host.environment, **elsewhere), capture_output=True, check=False, timeout=60 * SLOW)
        assert done.returncode == 2 and not other.asked


@pytest.mark.drivers("local")
def test_an_answer_that_breaks_off_after_its_status_is_one(fresh):
    """The collector took the spans: they are not sent again. And no program that the process starts inherits the connection."""
    def connections(worker):
        with open("/proc/net/tcp", encoding="ascii") as file:
            ours = {line.split()[9] for line in file.readlines()[1:] if line.split()[2].endswith(f":{collector.port:04X}")}
        flags = []
        for fd in os.listdir(f"/proc/{worker.pid}/fd"):
            try:
                if os.readlink(f"/proc/{worker.pid}/fd/{fd}") in {f"socket:[{inode}]" for inode in ours}:
                    with open(f"/proc/{worker.pid}/fdinfo/{fd}", encoding="ascii") as file:
                        flags.append(int(re.search(r"flags:\s*(\d+)", file.read()).group(1), 8))
            except OSError:
                pass
        return flags

    with otlp.Collector() as collector:
        host = traced(fresh, collector)
        worker = ready(host.worker("alpha", "w1", *LISTEN))
        where = port(worker)
        host.ends(host.published("alpha", "owner", "t-1"), "completed")
        wait_until(lambda: number(where, "baton_trace_spans_exported_total") == 3, 20, "spans of the first")
        flags = connections(worker)
        assert flags and all(one & os.O_CLOEXEC for one in flags), flags
        collector.mode = "cut"
        host.ends(host.published("alpha", "owner", "t-2"), "completed")
        wait_until(lambda: number(where, "baton_trace_spans_exported_total") == 6, 20, "spans of the second")
        collector.mode = 200
        host.ends(host.published("alpha", "owner", "t-3"), "completed")
        wait_until(lambda: number(where, "baton_trace_spans_exported_total") == 9, 20, "spans of the third")
        otlp.check(collector.spans)
        assert not worker.stop().events("traces.not_sent")
