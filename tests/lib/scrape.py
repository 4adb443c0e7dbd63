"""The listener of a process under test (http.listen), as a scraper sees it. Called by fleet tests."""
import http.client
import re

from host import wait_until

LISTEN = ("--set", "http.listen=127.0.0.1:0")


def port(worker):
    told = wait_until(lambda: worker.events("http.listening"), 20, lambda: f"a listener\n{worker.log[-2000:]}")
    return int(told[0]["port"])


def get(where, path="/metrics", method="GET", body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", where, timeout=20)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def metrics(where):
    """{(name, labels): number}"""
    status, text, _ = get(where)
    assert status == 200
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, number = line.rsplit(" ", 1)
            key, _, labels = name.partition("{")
            found[key, frozenset(re.findall(r'(\w+)="([^"]*)"', labels))] = float(number)
    return found


def number(where, name, **labels):
    found = [value for (key, of), value in metrics(where).items() if key == name and set(labels.items()) <= of]
    assert len(found) == 1, (name, labels, found)
    return found[0]
