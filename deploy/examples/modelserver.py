#!/usr/bin/python3
"""A stub model server on 127.0.0.1: the three APIs that agent programs speak, with fixed answers.

    server = ModelServer(); server.url("401") -> the base address that answers every request with 401
    modelserver.py [PORT] [--while PID]       prints its address; ends with that process

deploy/quickstart and the tests put it in the place of real programs' providers: no network, no key that matters.

The first part of the path says what is answered (MODES below), so one server serves many tests at once:
`/ok/v1/messages`, `/429/v1beta/models/x:generateContent`. `ok=changes` answers with that verdict; behind a dot stands
anything that keeps two users apart: `401.mine`. `hang1` hangs the first time and is `ok` then; `keyed` is `ok` for a key
with `good` in it, else `401`.
What was asked is kept: `server.requests(mode)` has path, headers (keys, too) and the parsed body.
"""
import argparse
import http.server
import json
import os
import re
import threading
import time

# mode: (status for claude, codex, gemini, further headers)
MODES = {
    "400": (400, {}), "401": (401, {}), "403": (403, {}), "429": (429, {"retry-after": "3600"}),
    "500": (500, {}), "overloaded": (529, {}), "503": (503, {}),
}
CLAUDE_ERRORS = {
    400: ("invalid_request_error", "messages: this request cannot be served"),
    401: ("authentication_error", "invalid x-api-key"), 403: ("permission_error", "Your organization does not have access"),
    429: ("rate_limit_error", "Number of requests has exceeded your rate limit"), 500: ("api_error", "Internal"),
    529: ("overloaded_error", "Overloaded"), 503: ("overloaded_error", "Overloaded"),
}
CODEX_ERRORS = {
    400: ("invalid_request_error", "this request cannot be served"), 401: ("invalid_api_key", "Incorrect API key provided"),
    403: ("access_denied", "You do not have access to this organization"), 429: ("rate_limit_exceeded", "Rate limit reached"),
    500: ("server_error", "Internal"), 503: ("server_is_overloaded", "The model is overloaded"),
}
GEMINI_ERRORS = {
    400: ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
          [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]),
    401: ("UNAUTHENTICATED", "API keys are not supported by this API.", []),
    403: ("PERMISSION_DENIED", "The caller does not have permission", []),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).",
          [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}]),
    500: ("INTERNAL", "Internal", []), 503: ("UNAVAILABLE", "The model is overloaded.", []),
}
HANG_S = 120


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, chunks, die=False):
        """Server-sent events; die: the connection breaks off in the middle."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        chunks = list(chunks)
        for chunk in chunks[:len(chunks) // 2] if die else chunks:
            self.wfile.write(chunk.encode())
            self.wfile.flush()
        self.close_connection = True

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        self.send(404, {"error": {"message": "nothing here"}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        mode, _, path = self.path.lstrip("/").partition("/")
        try:
            body = json.loads(body)
        except ValueError:
            body = {}
        first = self.server.note({"mode": mode, "path": "/" + path, "headers": dict(self.headers), "body": body})
        mode, _, verdict = mode.partition("=")
        mode = mode.partition(".")[0]
        if mode == "hang1":
            mode = "hang" if first else "ok"
        if mode == "keyed":
            mode = "ok" if "good" in str(dict(self.headers)) else "401"
        if mode == "hang":
            self.server.ended.wait(HANG_S)
            self.close_connection = True
        elif mode == "junk":
            self.send(200, b"<html>not what you asked for</html>")
        elif "/messages" in path:
            self.claude(mode, verdict, body)
        elif path.endswith("/responses"):
            self.codex(mode, verdict, body)
        elif "enerateContent" in path or "countTokens" in path:
            self.gemini(mode, verdict, body, path)
        else:
            self.send(404, {"error": {"message": "nothing here"}})

    # ---- the APIs ----

    def claude(self, mode, verdict, body):
        if mode in MODES:
            status, headers = MODES[mode]
            word, text = CLAUDE_ERRORS[status]
            self.send(status, {"type": "error", "error": {"type": word, "message": text}}, headers)
            return
        tool = next((one for one in body.get("tools") or [] if re.search("structured", one["name"], re.I)), None)
        answered = "tool_result" in json.dumps((body.get("messages") or [])[-1:])  # sessions that go on have older ones
        usage = {"input_tokens": 10, "output_tokens": 9, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
        if tool and not answered and mode != "prose":
            kind = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {}}
            text = json.dumps(answer(tool["input_schema"], verdict))
            delta, stop = {"type": "input_json_delta", "partial_json": text}, "tool_use"
        else:
            kind = {"type": "text", "text": ""}
            delta, stop = {"type": "text_delta", "text": "Looks good."}, "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": dict(usage, output_tokens=1)}
        events = [("message_start", {"message": message}), ("content_block_start", {"index": 0, "content_block": kind}),
                  ("content_block_delta", {"index": 0, "delta": delta}), ("content_block_stop", {"index": 0}),
                  ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}),
                  ("message_stop", {})]
        self.stream((f"event: {name}\ndata: {json.dumps(dict(data, type=name))}\n\n" for name, data in events), mode == "die")

    def codex(self, mode, verdict, body):
        if mode in MODES:
            status, headers = MODES[mode]
            status = 503 if status == 529 else status
            word, text = CODEX_ERRORS[status]
            self.send(status, {"error": {"message": text, "type": word, "code": word}}, headers)
            return
        schema = ((body.get("text") or {}).get("format") or {}).get("schema")
        text = json.dumps(answer(schema, verdict)) if schema and mode != "prose" else "Looks good."
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        usage = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7,
                 "output_tokens_details": None, "total_tokens": 18}
        events = [("response.created", {"response": {"id": "resp_1"}}),
                  ("response.output_item.done", {"output_index": 0, "item": item}),
                  ("response.completed", {"response": {"id": "resp_1", "usage": usage}})]
        self.stream((f"event: {name}\ndata: {json.dumps(dict(data, type=name))}\n\n" for name, data in events), mode == "die")

    def gemini(self, mode, verdict, body, path):
        if mode in MODES:
            status = 503 if MODES[mode][0] == 529 else MODES[mode][0]
            word, text, details = GEMINI_ERRORS[status]
            self.send(status, {"error": {"code": status, "message": text, "status": word, "details": details}})
            return
        if "countTokens" in path:
            self.send(200, {"totalTokens": 5})
            return
        text = "Looks good." if mode == "prose" else \
            "I have read it.\n```json\n" + json.dumps({"verdict": verdict or "approve", "summary": "fine"}) + "\n```\n"
        whole = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
                 "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 4, "totalTokenCount": 9}, "modelVersion": "x"}
        if "stream" in path:
            data = f"data: {json.dumps(whole)}\n\n"
            self.stream([data[:40], data[40:]], mode == "die")
        elif mode == "die":
            self.close_connection = True
        else:
            self.send(200, whole)


def answer(schema, verdict):
    """What a model would say to that schema."""
    words = ((schema.get("properties") or {}).get("verdict") or {}).get("enum") or ["?"]
    first = next((word for word in ("approve", "done", "proceed") if word in words), words[0])
    return {"verdict": verdict or first, "summary": "one thing was looked at"}


class ModelServer:
    def __init__(self, port=0):
        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, client_address):
                pass  # a program that was killed in the middle is part of the tests

        self.http = Server(("127.0.0.1", port), Handler)
        self.port = self.http.server_address[1]
        self.asked, self.lock = [], threading.Lock()
        self.http.ended = threading.Event()
        self.http.note = self.note
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def note(self, request):
        """Keeps it. Is it the first of its mode?"""
        with self.lock:
            self.asked.append(request)
            return sum(one["mode"] == request["mode"] for one in self.asked) == 1

    def url(self, mode):
        return f"http://127.0.0.1:{self.port}/{mode}"

    def requests(self, mode=None):
        with self.lock:
            return [one for one in self.asked if mode is None or one["mode"] == mode]

    def close(self):
        self.http.ended.set()
        self.http.shutdown()
        self.http.server_close()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main():
    parser = argparse.ArgumentParser(description="A stub model server with fixed answers.")
    parser.add_argument("port", nargs="?", type=int, default=0, help="default: a free one")
    parser.add_argument("--while", dest="pid", type=int, help="ends when that process has ended")
    options = parser.parse_args()
    server = ModelServer(options.port)
    print(f"http://127.0.0.1:{server.port}", flush=True)
    while options.pid is None or alive(options.pid):
        time.sleep(0.5)
    server.close()


if __name__ == "__main__":
    main()
