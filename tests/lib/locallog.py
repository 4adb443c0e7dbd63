"""The local log from outside: plain sqlite3, no line of Baton (common/log/local/schema.sql).

Reads what topics hold, and writes what Baton would never write: forged, misrouted, aged records.
"""
import fcntl
import os
import sqlite3
import struct
import time

from proof import Record, partition_of

OFFSET_BITS = 40


def headers_decode(data):
    at, headers = 0, []
    while data and at < len(data):
        length = int.from_bytes(data[at:at + 2], "big")
        name = data[at + 2:at + 2 + length].decode()
        at += 2 + length
        length = int.from_bytes(data[at:at + 4], "big")
        at += 4
        if length == 0xFFFFFFFF:
            headers.append((name, None))
        else:
            headers.append((name, bytes(data[at:at + length])))
            at += length
    return headers


def headers_encode(headers):
    data = b""
    for name, value in headers:
        data += len(name.encode()).to_bytes(2, "big") + name.encode()
        data += b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
    return data or None


class LocalLog:
    def __init__(self, path, patience=30):
        self.path, self.patience = path, patience  # seconds for which a lock is waited for

    def connect(self, write=False):
        connection = sqlite3.connect(f"file:{self.path}?mode={'rw' if write else 'ro'}", uri=True, timeout=self.patience,
                                     isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection

    def query(self, sql, *values):
        connection = self.connect()
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def held(self):
        """Does somebody stand in a transaction that writes, or in the queue for one?"""
        with open(self.path + ".d/write.lock", "r+b") as lock:  # two bytes: the gate and the pen
            found = fcntl.fcntl(lock, fcntl.F_OFD_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 2, 0))
            if struct.unpack("hhqqi", found)[0] != fcntl.F_UNLCK:
                return True
        connection = sqlite3.connect(f"file:{self.path}?mode=rw", uri=True, timeout=0.2, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            return False
        except sqlite3.OperationalError as error:
            assert "locked" in str(error), error
            return True
        finally:
            connection.close()

    def topics(self):
        return [row["name"] for row in self.query("SELECT name FROM topic ORDER BY name")]

    def partitions(self, topic):
        return self.query("SELECT partitions FROM topic WHERE name = ?", topic)[0]["partitions"]

    def records(self, topic, every=False):  # every: this log keeps only the newest of a key anyway
        """The records of a topic, by partition and offset; notes (keys that begin with ~) too."""
        rows = self.query("SELECT part.no, record.* FROM topic JOIN part ON part.topic = topic.id "
                          "JOIN record ON record.id >= part.id << 40 AND record.id < (part.id + 1) << 40 "
                          "WHERE topic.name = ? ORDER BY record.id", topic)
        return [Record(topic, row["key"], row["value"], headers_decode(row["headers"]), row["no"],
                       row["id"] & ((1 << OFFSET_BITS) - 1), row["at"]) for row in rows]

    def ends(self, topic):
        """{partition: (first offset that is there, offset of the next record)}"""
        rows = self.query("SELECT part.no, part.low, part.next FROM topic JOIN part ON part.topic = topic.id "
                          "WHERE topic.name = ?", topic)
        return {row["no"]: (row["low"], row["next"]) for row in rows}

    def committed(self, group, topic):
        """{partition: the group's next offset}, those only that it has committed."""
        rows = self.query("SELECT part.no, committed.next FROM consumer JOIN committed ON committed.consumer = consumer.id "
                          "JOIN part ON part.id = committed.part JOIN topic ON topic.id = part.topic "
                          "WHERE consumer.name = ? AND topic.name = ?", group, topic)
        return {row["no"]: row["next"] for row in rows}

    def append(self, record, partition=None, at=None):
        """Puts a record in its topic, by its key unless a partition is named; at: wall clock, seconds."""
        connection = self.connect(write=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            topic = connection.execute("SELECT * FROM topic WHERE name = ?", (record.topic,)).fetchone()
            assert topic is not None, f"there is no topic {record.topic}"
            if partition is None:
                partition = partition_of(record.key or b"", topic["partitions"])
            part = connection.execute("SELECT * FROM part WHERE topic = ? AND no = ?", (topic["id"], partition)).fetchone()
            compact = part["id"] if topic["cleanup"] == "compact" else None
            if compact is not None:
                connection.execute("DELETE FROM record WHERE compact = ? AND key = ?", (compact, record.key))
            connection.execute("INSERT INTO record (id, at, key, value, headers, compact) VALUES (?, ?, ?, ?, ?, ?)",
                               (part["id"] << OFFSET_BITS | part["next"], int((at or time.time()) * 1000), record.key,
                                record.value, headers_encode(record.headers), compact))
            connection.execute("UPDATE part SET next = next + 1 WHERE id = ?", (part["id"],))
            connection.execute("COMMIT")
        finally:
            connection.close()
        self.ring(record.topic)
        return partition, part["next"]

    def ring(self, topic):
        """Wakes who waits for the topic, as a writer does after its commit."""
        bell = os.path.join(self.path + ".d", "bells", "t." + topic)
        if os.path.exists(bell):
            with open(bell, "r+b") as file:
                file.write(b"!")

    def drop(self, *topics):
        """Deletes topics, as an operator's mistake could."""
        for topic in topics:
            self.drop_one(topic)

    def drop_one(self, topic):
        self.execute(("DELETE FROM record WHERE id >> 40 IN (SELECT part.id FROM part JOIN topic ON topic.id = part.topic "
                      "WHERE topic.name = ?)", (topic,)),
                     ("DELETE FROM committed WHERE part IN (SELECT part.id FROM part JOIN topic ON topic.id = part.topic "
                      "WHERE topic.name = ?)", (topic,)),
                     ("DELETE FROM part WHERE topic = (SELECT id FROM topic WHERE name = ?)", (topic,)),
                     ("DELETE FROM topic WHERE name = ?", (topic,)))

    def execute(self, *statements):
        """Plain SQL in one transaction: what somebody with write access to the file could do."""
        connection = self.connect(write=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                connection.execute(statement, values)
            connection.execute("COMMIT")
        finally:
            connection.close()
