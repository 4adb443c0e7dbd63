"""Turns, passes and control records as common/record/RECORD.md defines them, written a second time.

Tests make records with this that Baton itself would never make: forged, altered, misrouted. It also
checks the bytes that Baton makes, so both sides must read the document in the same way.
"""
import base64
import datetime
import hashlib
import json
import os
import re
import secrets
import struct

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

DAY = 24 * 3600


def lp(part):
    part = part.encode() if isinstance(part, str) else part
    return struct.pack(">I", len(part)) + part


def sha256(data):
    return hashlib.sha256(data).digest()


def now(offset=0.0, base=None):
    """RFC 3339 UTC with milliseconds, so many seconds from now (or from a base)."""
    at = (base or datetime.datetime.now(datetime.timezone.utc)) + datetime.timedelta(seconds=offset)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def murmur2(data):
    """The hash that Kafka's partitioner for Java takes over a key."""
    mask, m, length = 0xFFFFFFFF, 0x5BD1E995, len(data)
    h = (0x9747B28C ^ length) & mask
    for i in range(0, length - length % 4, 4):
        k = int.from_bytes(data[i:i + 4], "little")
        k = (k * m) & mask
        k ^= k >> 24
        k = (k * m) & mask
        h = ((h * m) & mask) ^ k
    rest = data[length - length % 4:]
    if rest:
        h ^= int.from_bytes(rest, "little")
        h = (h * m) & mask
    h ^= h >> 13
    h = (h * m) & mask
    return h ^ (h >> 15)


def partition_of(key, count):
    key = key.encode() if isinstance(key, str) else key
    return (murmur2(key) & 0x7FFFFFFF) % count


class Key:
    """An Ed25519 pair of a principal."""

    def __init__(self, private):
        self.private = private
        der = private.public_key().public_bytes(serialization.Encoding.DER,
                                                serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id = hashlib.sha256(der).hexdigest()[:16]

    @classmethod
    def new(cls):
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of_seed(cls, seed_hex):
        return cls(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed_hex)))

    @classmethod
    def load(cls, path):
        with open(path, "rb") as file:
            return cls(serialization.load_pem_private_key(file.read(), None))

    def public_pem(self):
        return self.private.public_key().public_bytes(serialization.Encoding.PEM,
                                                      serialization.PublicFormat.SubjectPublicKeyInfo)

    def private_pem(self):
        return self.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                          serialization.NoEncryption())

    def sign(self, message):
        return self.private.sign(message).hex()


def signed_bytes(fleet, kind, key, statement, value):
    return b"BATON-PROOF-1\0" + lp(fleet) + lp(kind) + lp(key) + lp(statement) + sha256(value)


def proof(signer, fleet, kind, key, value, statement=""):
    """The value of the header baton-sig."""
    return f"1 {signer.id} {signer.sign(signed_bytes(fleet, kind, key, statement, value))}"


def verify(public, fleet, kind, key, value, signature_hex, statement=""):
    public.verify(bytes.fromhex(signature_hex), signed_bytes(fleet, kind, key, statement, value))


def pass_header(signer, fleet, turn_id, value, attempt, to, come_from, failures=1, losses=0, replays=0,
                why="auth", at=None, costs=0):
    statement = f"{2 if costs else 1} {attempt} {come_from} {to} {failures} {losses} {replays} {why} {at or now()}"
    statement += f" {costs}" if costs else ""
    return f"{statement} {signer.id} {signer.sign(signed_bytes(fleet, 'pass', turn_id, statement, value))}"


def turn_id(fleet, turn):
    parts = [fleet] + [str(turn[name]) for name in ("origin", "service", "role", "task_id", "task_rev",
                                                    "run_id", "epoch", "intent", "key")]
    return sha256(b"BATON-TURN-1\0" + b"".join(lp(part) for part in parts)).hex()[:32]


def turn(fleet, origin, service, role, task, created=0.0, life=7 * DAY, drop=(), **more):
    """The members of a turn as a dictionary, its id computed; `more` replaces and adds, then drops."""
    base = datetime.datetime.now(datetime.timezone.utc)
    members = {
        "version": 1, "turn_id": "", "origin": origin, "service": service, "role": role,
        "task_id": task, "task_rev": 0, "run_id": "", "epoch": 0, "intent": "review",
        "key": secrets.token_hex(8), "parent": "", "created_at": now(created, base),
        "expires_at": now(created + life, base), "summary": "A forged turn", "data": {},
        "payload": {"media_type": "text/plain", "text": "hello"},
    }
    members.update({name: value for name, value in more.items() if name != "turn_id"})
    members["turn_id"] = more.get("turn_id") or turn_id(fleet, members)
    for name in drop:
        del members[name]
    return members


class Record:
    """What stands in a topic, or is to be put there."""

    def __init__(self, topic, key, value, headers, partition=None, offset=None, at=None):
        self.topic, self.key, self.value = topic, key, value
        self.headers = [(name, data) for name, data in headers]
        self.partition, self.offset, self.at = partition, offset, at

    def header(self, name):
        found = [data for known, data in self.headers if known == name]
        return found[0].decode() if found and found[0] is not None else None

    def json(self):
        return json.loads(self.value)

    def copy(self, **changes):
        fields = dict(topic=self.topic, key=self.key, value=self.value, headers=self.headers)
        fields.update(changes)
        return Record(**fields)

    def __repr__(self):
        return f"Record({self.topic}/{self.partition}@{self.offset} {self.key!r} {self.value!r:.200})"


def handoff(prefix, fleet, signer, members, service=None, key=None, kind="turn", value=None):
    """A signed handoff of a turn, addressed to the topic of a service (its own by default)."""
    value = compact(members) if value is None else value
    key = members["turn_id"] if key is None else key
    return Record(f"{prefix}.handoff.{service or members['service']}", key.encode(), value,
                  [("baton-sig", proof(signer, fleet, kind, key, value).encode())])


def control(prefix, fleet, signer, service, kind, turn, **more):
    """A signed control record for the owner of a turn at a service."""
    members = {"version": 1, "kind": kind, "id": secrets.token_hex(8), "turn_id": turn, "at": now()}
    members.update(more)
    value = compact(members)
    return Record(f"{prefix}.control.{service}", turn.encode(), value,
                  [("baton-sig", proof(signer, fleet, "control", turn, value).encode())])


def public_keys(folder):
    """{key id: (principal, public key)} of a trust folder."""
    keys = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"(.+)\.([0-9a-f]{16})\.pem", name)
        if match:
            with open(os.path.join(folder, name), "rb") as file:
                public = serialization.load_pem_public_key(file.read())
            assert isinstance(public, Ed25519PublicKey)
            keys[match.group(2)] = (match.group(1), public)
    return keys


def decode_payload(payload):
    if "text" in payload:
        return payload["text"].encode()
    return base64.b64decode(payload["base64"])
