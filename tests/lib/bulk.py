"""Many records at once, as a long life leaves them: for lists and replays of many (test_84_many_letters.py, bench/lists.py).

A turn that really ended is the pattern: its record in the turn log again under other ids, by their numbers.
"""
import ctypes as c
import time

from kafkalog import COPY, FLAGS, HEADERS, KEY, PARTITION, TOPIC, VALUE, Argument, Broken, Memory, Value
from locallog import OFFSET_BITS, headers_encode
from proof import partition_of


def turn_id(number):
    return f"{number:08x}".rjust(32, "a")


def copies(record, old_id, numbers):
    """(key, value) of that turn's record under other ids."""
    assert record.value.count(old_id.encode()) >= 1, record
    before, after = record.value.split(old_id.encode(), 1)
    for number in numbers:
        name = turn_id(number).encode()
        yield name, before + name + after.replace(old_id.encode(), name)


def fill(host, topic, pairs, headers=()):
    """Appends (key, value) pairs, each by its key, all with those headers; or (key, value, headers of its own)."""
    records = ((one[0], one[1], list(one[2]) if len(one) > 2 else list(headers)) for one in pairs)
    (fill_local if host.driver == "local" else fill_kafka)(host.log, topic, records)


def fill_local(log, topic, records):
    connection = log.connect(write=True)
    try:
        connection.execute("PRAGMA cache_size = -200000")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        about = connection.execute("SELECT * FROM topic WHERE name = ?", (topic,)).fetchone()
        parts = [dict(one) for one in connection.execute("SELECT * FROM part WHERE topic = ? ORDER BY no", (about["id"],))]
        compact, now = about["cleanup"] == "compact", int(time.time() * 1000)

        def rows():
            for key, value, headers in records:
                part = parts[partition_of(key, len(parts))]
                yield part["id"] << OFFSET_BITS | part["next"], now, key, value, headers_encode(headers), part["id"] if compact else None
                part["next"] += 1

        connection.executemany("INSERT INTO record (id, at, key, value, headers, compact) VALUES (?, ?, ?, ?, ?, ?)", rows())
        connection.executemany("UPDATE part SET next = :next WHERE id = :id", parts)
        connection.execute("COMMIT")
    finally:
        connection.close()
    log.ring(topic)


def fill_kafka(log, topic, records):
    partitions = log.partitions(topic)
    lib, client = log.lib, log.clients.get("bulk", 0, linger_ms=20, queue_buffering_max_messages=100000, acks="all")
    sent, client.bad, full = 0, [], b"Queue full"
    for key, value, headers in records:
        kept = [c.create_string_buffer(data, len(data) + 1) for data in (key, value)]
        while True:
            arguments = [Argument(TOPIC, Value(text=topic.encode())), Argument(PARTITION, Value(number=partition_of(key, partitions))),
                         Argument(FLAGS, Value(number=COPY)),
                         Argument(KEY, Value(memory=Memory(c.addressof(kept[0]), len(key)))),
                         Argument(VALUE, Value(memory=Memory(c.addressof(kept[1]), len(value))))]
            if headers:
                made = lib.rd_kafka_headers_new(len(headers))
                for name, data in headers:
                    lib.rd_kafka_header_add(made, name.encode(), -1, data, len(data))
                arguments.append(Argument(HEADERS, Value(pointer=made)))
            error = lib.rd_kafka_produceva(client.rk, (Argument * len(arguments))(*arguments), len(arguments))
            if not error:
                break
            if full not in lib.rd_kafka_error_string(error):
                raise Broken(lib.rd_kafka_error_string(error).decode())
            lib.rd_kafka_poll(client.rk, 100)
        sent += 1
        if sent % 1000 == 0:
            lib.rd_kafka_poll(client.rk, 0)
    deadline = time.monotonic() + 300
    while len(client.delivered) < sent and time.monotonic() < deadline:
        lib.rd_kafka_poll(client.rk, 100)
    assert len(client.delivered) == sent and not any(code for code, *_ in client.delivered), "every record is acknowledged"
    log.clients.forget("bulk")
