"""What a stranger's tools say of a host: kcat at read_committed of a broker's topics, the sqlite3 program of files. No
line of Baton, and none of the readers that the other tests have.

Called by invariants.py and crash.py.
"""
import collections
import json
import subprocess

SECONDS = 30
CLOSED = ("completed", "cancelled")
Read = collections.namedtuple("Read", "topic partition offset key value headers")


def ended(process, what):
    """The output of a program that has to end well."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"{what} did not end: something lies open before the end of a partition") from None
    assert process.returncode == 0, f"{what}: {err.decode(errors='replace')[-500:]}"
    return out


def started(words):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# ---- files ----

def rows(path, sql):
    """The rows of a query, each a dictionary of its columns; a BLOB is asked for as text or hex."""
    out = ended(started(["sqlite3", "-readonly", "-batch", "-json", path, sql]), f"sqlite3 {path}")
    return json.loads(out) if out.strip() else []


# ---- topics ----

def headers_of(pairs):
    return list(zip(pairs[::2], pairs[1::2]))


def kcat(brokers, topics):
    """{topic: all that a consumer at read_committed is given of it, by partition and offset}. One kcat for each topic, all
    at the same time; each ends at the end of every partition."""
    running = {topic: started(["kcat", "-C", "-b", brokers, "-t", topic, "-o", "beginning", "-e", "-q", "-J",
                               "-X", "isolation.level=read_committed", "-X", "fetch.wait.max.ms=10",
                               "-X", "allow.auto.create.topics=false", "-X", "check.crcs=true"]) for topic in topics}
    found = {}
    for topic, process in running.items():
        lines = [json.loads(line) for line in ended(process, f"kcat -t {topic}").splitlines()]
        found[topic] = sorted((Read(topic, one["partition"], one["offset"], one["key"], one["payload"], headers_of(one.get("headers", [])))
                               for one in lines), key=lambda one: one[1:3])
    return found


def sqlite(path, topics):
    """The same of the local log's file. Of a compacted topic it holds the newest record of each key."""
    found = {topic: [] for topic in topics}
    for one in rows(path, "SELECT topic.name AS topic, part.no AS partition, record.id & ((1 << 40) - 1) AS offset, "
                          "CAST(record.key AS TEXT) AS key, CAST(record.value AS TEXT) AS value "
                          "FROM record JOIN part ON part.id = record.id >> 40 JOIN topic ON topic.id = part.topic ORDER BY record.id"):
        if one["topic"] in found:
            found[one["topic"]].append(Read(one["topic"], one["partition"], one["offset"], one["key"], one["value"], []))
    return found


def read(host, services):
    """All that the topics of these services, and the outcomes, hold."""
    topics = [host.topic(kind, service) for kind in ("handoff", "turns", "dlq") for service in services] + [host.topic("outcomes", None)]
    return kcat(host.brokers, topics) if host.driver == "kafka" else sqlite(host.log.path, topics)


def check_topics(host, services, roles):
    """I1 to I3, I8, I10 and "each turn has one end", for the turns {id: role}, as such a reader has to conclude."""
    found = read(host, services)
    newest, told, ends, parked = {}, collections.Counter(), collections.Counter(), collections.Counter()
    for service in services:
        for one in found[host.topic("turns", service)]:
            if one.value and not one.key.startswith("~"):
                state = json.loads(one.value)
                assert (state["turn_id"], state["role"]) == (one.key, roles[one.key]), f"I1: {one}"
                live = [attempt["no"] for attempt in state["attempts"] if attempt["state"] in ("queued", "running")]
                assert len(live) == (state["state"] in ("queued", "running")), f"I2: {one}"
                before = newest.get((one.key, service))
                assert before is None or before[0] not in CLOSED + ("delegated",) or before == (state["state"], state["attempt"]), \
                    f"I10: {before} and then {one}"
                newest[(one.key, service)] = (state["state"], state["attempt"])
    for one in found[host.topic("outcomes", None)]:
        outcome = json.loads(one.value)
        if "attempt" in outcome:
            told[(outcome["turn_id"], outcome["attempt"], outcome["event"])] += 1
            ends[outcome["turn_id"]] += outcome["event"] in CLOSED
            parked[outcome["turn_id"]] += outcome["event"] == "parked"
    assert told and max(told.values()) == 1, f"I8: told twice: {[what for what, count in told.items() if count > 1]}"
    letters = collections.Counter(one.key for service in services for one in found[host.topic("dlq", service)])
    for turn in roles:
        here = {service: state for (key, service), state in newest.items() if key == turn and state[0] != "delegated"}
        assert len(here) == 1, f"I3: {turn} is at {here}"
        (state, _), = here.values()
        assert state in CLOSED + ("parked",) and ends[turn] == (state in CLOSED), f"I3: {turn} is {state}, and ended {ends[turn]} times"
        assert letters[turn] == parked[turn] >= (state == "parked"), f"I3: {turn} was parked {parked[turn]} times, and has {letters[turn]} letters"
    for service in services:
        handed = collections.Counter(one.key for one in found[host.topic("handoff", service)])
        assert not handed or max(handed.values()) == 1, f"I8: handed over twice: {handed}"
    return found
