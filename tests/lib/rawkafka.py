"""Two requests of Kafka's protocol by hand, for what no client library lets one write: a record of a transaction that its
coordinator knows nothing of. It stays open for ever, as after a coordinator that passed a partition over (LOG.md, "What
a coordinator calls complete may still lie open"). The broker has to believe its producers:
`transaction.partition.verification.enable=false`.

Called by test_58_undone.py.
"""
import socket
import struct
import time

PRODUCE, INIT_PRODUCER_ID = 0, 22
TRANSACTIONAL = 0x10


def crc_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(number):
    number, out = (number << 1) ^ (number >> 63), b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def batch(producer, epoch, key, value):
    """A record batch (version 2) of one record in a transaction."""
    record = b"\0" + varint(0) + varint(0) + varint(len(key)) + key + varint(len(value)) + value + varint(0)
    record = varint(len(record)) + record
    now = int(time.time() * 1000)
    after = struct.pack(">hiqqqhii", TRANSACTIONAL, 0, now, now, producer, epoch, 0, 1) + record
    rest = struct.pack(">ibI", -1, 2, crc32c(after)) + after
    return struct.pack(">qi", 0, len(rest)) + rest


class RawKafka:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket, self.number = socket.create_connection((host, int(port)), 10), 0

    def close(self):
        self.socket.close()

    def ask(self, kind, version, body):
        self.number += 1
        request = struct.pack(">hhi", kind, version, self.number) + text("raw") + body
        self.socket.sendall(struct.pack(">i", len(request)) + request)
        size, = struct.unpack(">i", self.read(4))
        answer = self.read(size)
        assert struct.unpack(">i", answer[:4])[0] == self.number
        return answer[4:]

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data

    def producer(self, transactional_id):
        """Takes the id over: (producer id, epoch)."""
        for _ in range(50):
            _, code, producer, epoch = struct.unpack(">ihqh", self.ask(INIT_PRODUCER_ID, 1, text(transactional_id) + struct.pack(">i", 60000)))
            if code not in (15, 16, 51):  # the coordinator is loading, or ends what was open
                break
            time.sleep(0.1)
        assert code == 0, f"InitProducerId: error {code}"
        return producer, epoch

    def leave_open(self, transactional_id, topic, partition, key, value):
        """Writes one record under that id, in a transaction of which nobody tells the coordinator."""
        data = batch(*self.producer(transactional_id), key, value)
        body = text(transactional_id) + struct.pack(">hii", -1, 10000, 1) + text(topic) + struct.pack(">iii", 1, partition, len(data)) + data
        answer = self.ask(PRODUCE, 3, body)
        skip = 4 + 2 + len(topic.encode()) + 4
        _, code, offset = struct.unpack(">ihq", answer[skip:skip + 14])
        assert code == 0, f"Produce: error {code}"
        return offset
