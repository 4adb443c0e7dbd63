"""A store that knows more than the log: what brokers acknowledged and then did not keep (rules 6 and 16)."""
import contextlib
import glob
import os
import shutil
import sqlite3

import pytest

import broker
from host import Host, wait_until
from proof import partition_of
from rawkafka import RawKafka


def checkpoints(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        return dict(store.execute("SELECT partition, next_offset FROM checkpoint"))


@pytest.mark.drivers("kafka")
@pytest.mark.core
def test_rule_06_an_image_that_the_log_does_not_show_is_dropped(host, tmp_path):
    """Rules 6, 16: its newest record is in no transaction that readers see: the image is read anew, and nothing runs twice."""
    go = host.fake + "/go"
    host.plan(default=[{"until": go}])
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.called(1)
    path, = glob.glob(os.path.join(host.dir, "data", "**", "store.db"), recursive=True)
    older = str(tmp_path / "older.db")
    with contextlib.closing(sqlite3.connect(path)) as live, contextlib.closing(sqlite3.connect(older)) as copy:
        live.backup(copy)
    open(go, "w", encoding="ascii").close()
    host.ends(turn, "completed")
    worker.stop()
    # The image of the moment before, as if it had been told of a transaction that readers do not see.
    topic = host.topic("turns", "alpha")
    ends = host.log.ends(topic)
    with contextlib.closing(sqlite3.connect(older)) as store:
        for partition in checkpoints(older):
            store.execute("UPDATE checkpoint SET next_offset = ? WHERE partition = ?", (ends[partition][1], partition))
        store.commit()
    for rest in glob.glob(path + "-*"):
        os.unlink(rest)
    shutil.copyfile(older, path)
    worker = host.worker("alpha", "w1")
    wait_until(lambda: worker.events("store.image_undone"), what=lambda: f"the image to be dropped\n{worker.log}")
    after = host.published("alpha", "owner", "t-2")
    host.ends(after, "completed")
    shown = host.show(turn)
    assert shown["state"] == "completed" and [one["no"] for one in shown["attempts"]] == [1], shown
    assert len(host.calls(turn=turn)) == 1 and not host.letters()


@pytest.fixture
def believing(driver, tmp_path, monkeypatch):
    """A host on a broker of its own that takes records of transactions of which no coordinator knows."""
    assert driver == "kafka"
    mine = broker.Broker(str(tmp_path / "broker"), settings=["transaction.partition.verification.enable=false"]).start()
    monkeypatch.setattr(broker, "shared", lambda: mine)
    (tmp_path / "place").mkdir(0o700)
    one = Host(str(tmp_path / "place"), "kafka").configure({"alpha": None, "beta": None}, roles={"reviewer": {"chain": ["alpha", "beta"]}})
    yield one
    one.finish()
    mine.delete()


@pytest.mark.drivers("kafka")
@pytest.mark.heavy
def test_what_lies_open_of_an_id_is_dropped_by_who_takes_it_over(believing):
    """LOG.md: what no marker ever ended is ended as undone by the next process of its worker, in its own topics and in that
    of another service; nothing waits for it, nobody is given the note that ends it, and the inputs are read again, since
    offsets of that transaction may stand."""
    host = believing
    host.worker("beta", "b1")
    turn = host.published("alpha", "reviewer", "t-1")
    worker = host.worker("alpha", "w1")
    host.ends(turn, "completed")
    worker.kill()
    topic = host.topic("turns", "alpha")
    number = partition_of(turn.encode(), host.log.partitions(topic))
    raw = RawKafka(host.brokers)
    offset = raw.leave_open(f"{host.group('alpha')}.w1", topic, number, b"~forged", b"{}")
    theirs = {part: raw.leave_open(f"{host.group('alpha')}.w1", host.topic("handoff", "beta"), part, b"forged", b"{}") for part in range(2)}
    raw.close()
    later = [host.published("alpha", "owner", f"t-{n}") for n in range(2, 14)]
    assert any(partition_of(one.encode(), host.log.partitions(topic)) == number for one in later)
    passed = [host.published("beta", "owner", f"t-{n}") for n in range(20, 28)]
    host.worker("alpha", "w1")
    for one in later + passed:
        host.ends(one, "completed", 40)

    def told_again():
        return [one for one in host.log.records(host.topic("outcomes", None)) if one.key.decode() == turn and one.json()["event"] == "duplicate"]

    wait_until(told_again, 20, lambda: f"the handoff of before to be read again\n{host.all_logs()}")
    kept = [one.offset for one in host.log.records(topic, every=True) if one.partition == number]
    assert offset not in kept and max(kept) > offset, (offset, kept)
    assert not [one for one in host.log.records(host.topic("handoff", "beta")) if theirs.get(one.partition) == one.offset]
    assert len(host.calls(turn=turn)) == 1 and not host.letters()
