"""Follows the topics of a run from outside while it goes on, so that history is seen before it is compacted.

Called by run.py and crash.py. more() gives what was committed since the last call, oldest first; behind() says where
there is more than was read. On the local log a record that was replaced between two calls is not seen.
"""
import os
import time

from calls import whole
from kafkalog import CONSUMER, PARTITION_EOF, KafkaLog
from locallog import OFFSET_BITS, LocalLog, headers_decode
from proof import Record


def topics_tail(host, services, partitions, runs=False):
    """Of the turn logs and dead letters of these services, and the outcomes; of runs also what was handed on and what they count."""
    topics = [host.topic(kind, service) for kind in ("turns", "dlq") for service in services] + [host.topic("outcomes", None)]
    if runs:
        topics += [host.topic("handoff", service) for service in services] + [host.topic("runs", None)]
    if host.driver == "kafka":
        return KafkaTail(host.brokers, host.prefix, topics, partitions)
    return LocalTail(host.log.path, topics)


class CallsTail:
    """The calls that the executors noted, as far as whole lines go."""

    def __init__(self, folder):
        self.path, self.read = os.path.join(folder, "calls"), 0

    def more(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, "rb") as file:
            file.seek(self.read)
            data = file.read()
        data = data[:data.rfind(b"\n") + 1]
        self.read += len(data)
        return [line for line in whole(data) if line["event"] == "start"]


class LocalTail:
    def __init__(self, path, topics):
        self.log, self.topics, self.at = LocalLog(path), topics, {}

    def more(self):
        found = []
        for topic in self.topics:
            for part in self.log.query("SELECT part.id, part.no FROM topic JOIN part ON part.topic = topic.id WHERE topic.name = ?", topic):
                key = (topic, part["no"])
                rows = self.log.query("SELECT * FROM record WHERE id >= ? AND id < ? ORDER BY id",
                                      part["id"] << OFFSET_BITS | self.at.get(key, 0), (part["id"] + 1) << OFFSET_BITS)
                for row in rows:
                    offset = row["id"] & ((1 << OFFSET_BITS) - 1)
                    self.at[key] = offset + 1
                    found.append(Record(topic, row["key"], row["value"], headers_decode(row["headers"]), part["no"], offset, row["at"]))
        return found

    def behind(self):
        """What more() has not reached: here a read is always of all there is."""
        return []


class KafkaTail:
    def __init__(self, brokers, prefix, topics, partitions):
        self.log = KafkaLog(brokers, prefix, patience=5, **{"client.id": "tail"})
        self.client = self.log.clients.get("tail", CONSUMER, group_id="tail", enable_auto_commit="false",
                                           enable_partition_eof="true", isolation_level="read_committed",
                                           auto_offset_reset="earliest", fetch_wait_max_ms=20,
                                           allow_auto_create_topics="false", fetch_error_backoff_ms=20)
        self.at = {(topic, number): 0 for topic in topics for number in range(partitions)}
        self.assigned = False

    def assign(self):
        lib = self.log.lib
        wanted = lib.rd_kafka_topic_partition_list_new(len(self.at))
        for (topic, number), offset in self.at.items():
            lib.rd_kafka_topic_partition_list_add(wanted, topic.encode(), number)[0].offset = offset
        self.log.check(lib.rd_kafka_assign(self.client.rk, wanted), "assign")
        lib.rd_kafka_topic_partition_list_destroy(wanted)
        self.assigned = True

    def more(self, seconds=1.0):
        """What comes until nothing came for a fifth of a second, or so long."""
        if not self.assigned:
            self.assign()
        lib, found, deadline, quiet = self.log.lib, [], time.monotonic() + seconds, 0
        while time.monotonic() < deadline and quiet < 2:
            message = lib.rd_kafka_consumer_poll(self.client.rk, 100)
            if not message:
                quiet += 1
                continue
            try:
                code, place, offset = message[0].err, None, message[0].offset
                if code in (0, PARTITION_EOF):
                    place = (lib.rd_kafka_topic_name(message[0].rkt).decode(), message[0].partition)
                    self.at[place] = max(self.at[place], offset if code else offset + 1)
                if code == 0:
                    found.append(self.log.record(place[0], message))
                    quiet = 0
            finally:
                lib.rd_kafka_message_destroy(message)
        return found

    def behind(self):
        """Partitions that have more than was read: (topic, number, read, end)."""
        found = []
        for topic in sorted({topic for topic, _ in self.at}):
            for number, (_, end) in self.log.ends(topic).items():
                if end > self.at[(topic, number)]:
                    found.append((topic, number, self.at[(topic, number)], end))
        return found
