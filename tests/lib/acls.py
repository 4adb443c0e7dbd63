"""Rights on a broker, given and taken: CreateAcls and DeleteAcls of Kafka's protocol by hand.

librdkafka 2.0.2 knows no transactional ids in ACLs, and one run of Kafka's own program takes a second and
a half. Called by tests/fleet/test_46_rights.py; a right is what `topics plan --acl --json` prints of one.
"""
import socket
import struct

from host import wait_until

RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional-id": 5}
PATTERNS = {"literal": 3, "prefixed": 4}
OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Delete": 6, "Alter": 7, "Describe": 8, "DescribeConfigs": 10,
              "AlterConfigs": 11}
ALLOW, DESCRIBE, CREATE, DELETE, VERSION = 3, 29, 30, 31, 1


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def request(brokers, key, body):
    """One request to the listener that may do everything, and what follows the head of its answer."""
    host, port = brokers.split(",")[0].rsplit(":", 1)
    body = struct.pack(">hhi", key, VERSION, 1) + text("acls") + body
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        stream = connection.makefile("rb")
        return stream.read(struct.unpack(">i", stream.read(4))[0])[8:]


def call(brokers, key, entries):
    answer = request(brokers, key, struct.pack(">i", len(entries)) + b"".join(entries))
    count, = struct.unpack_from(">i", answer)
    assert count == len(entries), answer
    return answer, 4


def in_force(brokers, right):
    """Does the broker go by it already? It hears of changes in their order, a moment after they are made."""
    answer = request(brokers, DESCRIBE, entry(right))
    error, size = struct.unpack_from(">hh", answer)
    assert error == 0, answer
    return struct.unpack_from(">i", answer, 4 + max(size, 0))[0] > 0


def entry(right):
    return (struct.pack(">b", RESOURCES[right["resource"]]) + text(right["name"]) +
            struct.pack(">b", PATTERNS[right["pattern"]]) + text(right["principal"]) + text("*") +
            struct.pack(">bb", OPERATIONS[right["operation"]], ALLOW))


def give(brokers, rights):
    """Gives every right of the list."""
    answer, at = call(brokers, CREATE, [entry(right) for right in rights])
    for right in rights:
        error, size = struct.unpack_from(">hh", answer, at)
        at += 4 + max(size, 0)
        assert error == 0, (right, answer)
    wait_until(lambda: in_force(brokers, rights[-1]), 10, f"{rights[-1]} to be in force")


def take(brokers, *rights):
    """Takes exactly these rights; each must have been there."""
    for right in rights:
        answer, at = call(brokers, DELETE, [entry(right)])
        error, size = struct.unpack_from(">hh", answer, at)
        found, = struct.unpack_from(">i", answer, at + 4 + max(size, 0))
        assert (error, found) == (0, 1), (right, error, found)
        wait_until(lambda one=right: not in_force(brokers, one), 10, f"{right} to be out of force")
