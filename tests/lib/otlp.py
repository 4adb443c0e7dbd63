"""A collector of spans (OTLP/HTTP, protobuf) that does what a test asks of it, and reads by the official definitions.

tests/fixtures/opentelemetry holds those; protoc makes modules of them once for each process.
"""
import functools
import http.server
import importlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from host import wait_until

LIB = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(LIB))
PROTO = os.path.join(ROOT, "tests", "fixtures", "opentelemetry")
INTERNAL, PRODUCER, CONSUMER = 1, 4, 5


@functools.lru_cache(maxsize=None)
def definitions():
    """The module of trace_service.proto."""
    made = tempfile.TemporaryDirectory(prefix="otlp-")
    definitions.folder = made  # removed at the end of the process
    files = [os.path.join(where, name) for where, _, names in os.walk(PROTO) for name in names if name.endswith(".proto")]
    subprocess.run(["protoc", "-I", PROTO, "--python_out", made.name] + files, check=True)
    sys.path.insert(0, made.name)
    try:
        return importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    finally:
        sys.path.remove(made.name)


def attribute_keys():
    """The closed list: what common/trace/tbl/attributes.h allows."""
    with open(os.path.join(ROOT, "common/trace/tbl/attributes.h"), encoding="utf-8") as file:
        return set(re.findall(r'ATTRIBUTE\(\w+,\s*"([\w.]+)"\)', file.read()))


class Span:
    def __init__(self, resource, raw):
        self.raw, self.name, self.kind = raw, raw.name, raw.kind
        self.trace, self.id, self.parent = raw.trace_id.hex(), raw.span_id.hex(), raw.parent_span_id.hex()
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in raw.links]
        self.start, self.end = raw.start_time_unix_nano, raw.end_time_unix_nano
        self.error = raw.status.message if raw.status.code == 2 else None
        self.at = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in raw.attributes}
        self.whose = {one.key: one.value.string_value for one in resource.attributes}

    def __repr__(self):
        return f"{self.name} {self.id} of {self.parent or '-'} {self.error or ''} {self.at}"


def read(body):
    """The spans of one request. Every byte of it must mean something to the official definitions."""
    message = definitions().ExportTraceServiceRequest.FromString(body)
    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size, "fields that the definitions do not have"
    spans = []
    for of in message.resource_spans:
        for scope in of.scope_spans:
            assert scope.scope.name == "baton"
            spans += [Span(of.resource, raw) for raw in scope.spans]
    assert spans, "an empty request"
    return spans


class Collector:
    """mode: a status to answer with, "hang" (answers never), "slow" (after 2 s), "cut" (200, and then the
    answer breaks off)."""

    def __init__(self, mode=200, certificate=None, headers=()):
        self.mode, self.headers, self.bodies, self.asked = mode, headers, [], []
        self.ended = threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                mode = collector.mode
                collector.asked.append((time.monotonic(), self.path, dict(self.headers), mode))
                if mode == "hang":
                    collector.ended.wait(60)
                    return
                if mode == "slow":
                    collector.ended.wait(2)
                    mode = 200
                if mode == "cut":
                    collector.bodies.append(body)
                    self.send_response(200)
                    self.send_header("Content-Length", "100")
                    self.end_headers()
                    self.close_connection = True
                    return
                if mode == 200:
                    collector.bodies.append(body)
                self.send_response(mode)
                for name, value in collector.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.port}/v1/traces"

    @property
    def spans(self):
        return [span for body in list(self.bodies) for span in read(body)]

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def check(spans, known=()):
    """Each well-formed: ids, times, kinds, closed attributes; one id once; parents that are there, or known."""
    keys, ids = attribute_keys(), {span.id for span in spans}
    assert len(ids) == len(spans), f"an id twice: {sorted((one.id, one.name) for one in spans)}"
    for span in spans:
        assert re.fullmatch(r"[0-9a-f]{32}", span.trace) and re.fullmatch(r"[0-9a-f]{16}", span.id), span
        assert span.kind in (INTERNAL, PRODUCER, CONSUMER) and span.name, span
        assert 10**18 < span.start <= span.end < 10**19, span
        assert set(span.at) <= keys, f"attributes beyond the list: {set(span.at) - keys}"
        assert all(isinstance(value, int) or len(value) <= 256 for value in span.at.values()), span
        assert not span.parent or span.parent in ids or span.parent in known, f"no parent of {span} in {spans}"
        assert (span.at.get("error.type") is not None) == (span.error is not None), span
        assert all(trace == span.trace for trace, _ in span.links), span


def traced(host, collector, services=None, **settings):
    traces = {"endpoint": collector.endpoint, **settings.pop("traces", {})}
    return host.configure(services or {"alpha": None, "beta": None}, traces=traces, **settings)


def spans_of(collector, turn, count, name="attempt"):
    """Waits for so many spans of that name of a turn, then gives all of it."""
    def found():
        spans = [span for span in collector.spans if span.at.get("baton.turn.id") == turn]
        return spans if len([one for one in spans if one.name.split()[0] == name]) >= count else None
    return wait_until(found, 30, lambda: f"{count} spans {name} of {turn} in {collector.spans}")


def named(spans, name):
    return sorted((span for span in spans if span.name.split()[0] == name), key=lambda span: (span.start, span.at.get("baton.attempt", 0)))
