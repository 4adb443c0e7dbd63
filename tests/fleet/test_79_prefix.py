"""A prefix that makes the executor another user's: it gets to its scratch directory, and to nothing else of the worker."""
import os
import pwd
import shutil

import pytest

import agents
from host import mode

pytestmark = [pytest.mark.drivers("local"),
              pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another user")]

LOOKS = """#!/bin/sh
cat >/dev/null
id -u
echo kept >"$HOME/file" && cat "$HOME/file"
for path in {dir}/keys/*.pem {dir}/data/log.db {dir}/data/alpha/w1/store.db; do cat "$path" >/dev/null 2>&1 && echo "read $path"; done
ls {dir}/data {dir}/data/alpha/w1 2>/dev/null && echo listed
echo '{{"verdict":"approve"}}' >&3
"""


def test_another_user_gets_to_its_scratch_directory_only(fresh, tmp_path):
    nobody = pwd.getpwnam("nobody")
    path = os.path.join(fresh.dir, "looks")
    with open(path, "w", encoding="utf-8") as file:
        file.write(LOOKS.format(dir=fresh.dir))
    os.chmod(path, 0o755)
    service = fresh.service()
    service["executor"] = {"kind": "exec", "command": [path],
                           "prefix": ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--no-new-privs",
                                      "--inh-caps=-all", "--ambient-caps=-all"]}
    host = fresh.configure({"alpha": service})
    data = os.path.join(host.dir, "data")
    scratch = agents.shared_scratch(host, nobody.pw_gid)
    for at in (tmp_path, *tmp_path.parents):
        if str(at).startswith("/tmp/") and not os.stat(at).st_mode & 0o001:
            os.chmod(at, os.stat(at).st_mode | 0o011)
    for number in (1, 2):  # what a worker of before has opened does not stop the next one
        turn = host.published("alpha", "reviewer", f"t-{number}")
        host.drain("alpha", "w1")
        shown = host.show(turn)
        assert (shown["state"], shown["verdict"]) == ("completed", "approve"), shown
        assert shown["result"]["output"].splitlines() == [str(nobody.pw_uid), "kept"], shown["result"]
    closed = [data, *(os.path.join(data, *below) for below in (("alpha",), ("alpha", "w1"))), os.path.join(host.dir, "keys")]
    assert [mode(path) for path in closed] == [0o700] * 4 and mode(os.path.join(data, "log.db")) == 0o600
    assert [mode(path) & 0o777 for path in (scratch, os.path.join(scratch, "alpha.w1"))] == [0o711] * 2
    assert os.listdir(os.path.join(scratch, "alpha.w1")) == [], "nothing of an attempt is left"
    assert [one["level"] for one in host.run("doctor", "--json").objects if "is ours alone" in one["text"]] == ["ok"]


def test_x35_doctor_tries_the_prefix_as_a_worker_would(fresh, tmp_path):
    """X35: with what every executor gets, and a scratch directory, of which nothing is left. Where the prefix leads to no shell nothing
    is found wrong, and nothing is claimed; a callback has no prefix that was tried."""
    nobody = pwd.getpwnam("nobody")
    apart = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--inh-caps=-all", "--ambient-caps=-all"]
    empty = tmp_path / "empty"
    empty.mkdir()

    def found(*executors):
        host = fresh.configure({name: {**fresh.service(), "executor": executor} for name, executor in zip(("alpha", "beta"), executors)})
        told = [(one["level"], one["text"]) for one in host.run("doctor", "--json").objects if one["check"] == "executors"]
        assert not os.path.exists(os.path.join(host.dir, "data-scratch"))
        return told

    def program(*prefix):
        return {"kind": "exec", "command": ["/bin/true"], "prefix": list(prefix)}

    uses = ('[ -n "$BATON_SCRATCH" ] && [ "$HOME:$TMPDIR:$PWD" = "$BATON_SCRATCH:$BATON_SCRATCH:$BATON_SCRATCH" ] && '
            'mkdir -p here/there && echo kept >here/there/file && exec "$@"')
    assert found(program("sh", "-c", uses, "sh", *apart)) == [("ok", "no executor can read the keys as this user")]
    (level, text), = found(program("chroot", str(empty)))
    assert level == "ok" and "alpha could not be tried" in text and "/bin/sh" in text and "not known" in text, text
    (level, text), = found(program("env", "SOME=thing", "no-such-program"))
    assert level == "warn" and "alpha does not work from here" in text and "no-such-program" in text, text
    (level, text), = found({"kind": "callback", "prefix": ["env", "SOME=thing"]}, program("env", "SOME=thing"))
    assert level == "warn" and "executors of beta can read" in text, text


def test_without_a_prefix_nobody_gets_through(fresh):
    host = fresh.configure({"alpha": None})
    host.published("alpha", "reviewer", "t-1")
    host.drain("alpha", "w1")
    assert [mode(os.path.join(host.dir, "data", *below)) for below in ((), ("alpha",), ("alpha", "w1"))] == [0o700] * 3
