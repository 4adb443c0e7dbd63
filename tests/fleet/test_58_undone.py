"""A store that knows more than the log: what brokers acknowledged and then did not keep (rules 6 and 16)."""
import contextlib
import glob
import os
import shutil
import sqlite3

import pytest

from host import wait_until


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
