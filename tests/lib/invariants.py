"""What must hold on a host whose workers have stopped, whatever they died of before (RULES S5), beside what
chaos/account.py counts: outcomes, stores, secrets, offsets. Looked at from outside; the stores by the sqlite3 program.

Called by crash.py.
"""
import collections
import os

from outside import rows

CANARY = "sekret-canary-8125"  # a declared secret of the executors, which one of them prints


def unread(host, services):
    """Inputs whose committed offset is not the end: (topic, partition, committed, end)."""
    log, found = host.log, []
    for service in services:
        for topic in (host.topic(kind, service) for kind in ("handoff", "control")):
            committed = log.committed(host.group(service), topic)
            found += [(topic, number, committed.get(number), end) for number, (_, end) in log.ends(topic).items()
                      if end and committed.get(number) != end]
    return found


def check_outcomes(host):
    """I8: what happened to an attempt is told once; a pass is handed over once."""
    told = collections.Counter()
    for record in host.log.records(host.topic("outcomes", None)):
        one = record.json()
        if "attempt" in one:
            told[(one["turn_id"], one["attempt"], one["event"])] += 1
    assert told and not [what for what, count in told.items() if count > 1], told
    for topic in host.log.topics():
        if topic.startswith(host.prefix + ".handoff."):
            handed = collections.Counter(record.key for record in host.log.records(topic))
            assert not [key for key, count in handed.items() if count > 1], (topic, handed)


def check_stores(host, services, roles):
    """I1 to I3 and I10 in every store, and that its image is of the log: of each turn the newest record stands in the
    store of who had it last, and no store knows one that the log does not have."""
    newest = {}
    for service in services:
        for record in host.log.records(host.topic("turns", service)):
            if not record.key.startswith(b"~") and record.value:
                newest[(service, record.key.decode())] = (record.offset, record.json()["state"], record.json()["attempt"])
    current = set()
    for path in host.stores():
        service, worker = path.split(os.sep)[-3:-1]
        assert rows(path, "PRAGMA integrity_check") == [{"integrity_check": "ok"}], path
        assert [row["worker"] for row in rows(path, "SELECT worker FROM owner")] in ([f"{service}/{worker}"], []), path
        live = {row["turn_id"]: row["n"] for row in rows(path, "SELECT turn_id, count(*) AS n FROM attempt WHERE state IN "
                                                               "('queued', 'running') GROUP BY turn_id")}
        for row in rows(path, "SELECT turn_id, role, state, attempt, log_offset FROM turn"):
            where, said = (service, row["turn_id"]), (row["log_offset"], row["state"], row["attempt"])
            assert row["role"] == roles[row["turn_id"]], f"I1: {path}: {row}"
            assert live.get(row["turn_id"], 0) == (row["state"] in ("queued", "running")), f"I2, I3: {path}: {said} {live}"
            assert said[0] <= newest[where][0], f"{path} is ahead of the log: {said}, {newest[where]}"
            if said[0] == newest[where][0]:
                assert said == newest[where], f"{path} is not what the log says: {said}, {newest[where]}"
                current.add(where)
        for row in rows(path, "SELECT turn_id, role FROM attempt"):
            assert row["role"] == roles[row["turn_id"]], f"I1: {path}: {row}"
    assert current == set(newest), f"in no store as the log has it: {set(newest) - current}"
    for worker in host.workers:
        if worker.process.returncode == 0:
            path = os.path.join(host.dir, "data", worker.service, worker.id, "store.db")
            assert not rows(path, "SELECT turn_id, attempt FROM recorded_end"), f"{path}: an end that was settled is forgotten"


def check_secrets(host):
    """I12: neither a declared secret nor a private key is in a topic, a store, or what workers say."""
    secrets = [CANARY.encode()]
    for name in os.listdir(os.path.join(host.dir, "keys")):
        with open(os.path.join(host.dir, "keys", name), "rb") as file:
            secrets += [line for line in file.read().splitlines() if len(line) > 40]
    assert len(secrets) > 1
    data = []
    for topic in host.log.topics():
        for record in host.log.records(topic, every=True):
            data.append((topic, b"\n".join([record.key or b"", record.value or b"", *(value or b"" for _, value in record.headers)])))
    for path in host.stores() + [path for worker in host.workers for path in (worker.out_path, worker.err_path)]:
        for suffix in ("", "-wal"):
            if os.path.exists(path + suffix):
                with open(path + suffix, "rb") as file:
                    data.append((path + suffix, file.read()))
    for where, text in data:
        assert not [secret for secret in secrets if secret in text], f"I12: a secret stands in {where}"
