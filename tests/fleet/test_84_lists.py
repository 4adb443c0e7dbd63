"""`turns list` and `dlq list` of many: pages from the ends of the logs, newest first, and `--where`."""
import pytest

import bulk
import proof
from host import wait_until

BAD = {"class": "bad_request"}


def many(host, parked=150, letters=150, completed=300):
    """So many of each at alpha, a real one of each kind at beta; the ids of those that are dead."""
    host.plan(default=[BAD], tasks={"t-good": [{}]})
    host.worker("alpha", "w1"), host.worker("beta", "w1")
    good, bad = host.published("alpha", "owner", "t-good"), host.published("alpha", "reviewer", "t-bad")
    other = host.published("beta", "owner", "t-bad")
    host.ends(good, "completed"), host.ends(bad, "parked"), host.ends(other, "parked")
    host.log.append(proof.Record(host.topic("handoff"), key=b"0" * 32, value=b"junk", headers=[("x", b"1")]), partition=0)
    first = host.letter("bad_signature")["id"]
    host.end_workers()
    host.tampered = True
    turns = {one.key.decode(): one for one in host.log.records(host.topic("turns")) if one.value}
    letter, = [one for one in host.log.records(host.topic("dlq")) if one.value == b"junk"]
    bulk.fill(host, host.topic("turns"), bulk.copies(turns[good], good, range(completed)))
    bulk.fill(host, host.topic("turns"), bulk.copies(turns[bad], bad, range(completed, completed + parked)))
    bulk.fill(host, host.topic("dlq"), ((bulk.turn_id(n).encode(), b"junk %d" % n) for n in range(letters)), headers=letter.headers)
    return good, bad, other, first


def pages(host, *words, limit=70):
    """Every object of every page, in turn."""
    found, before = [], []
    for _ in range(20):
        page = host.run(*words, "--limit", limit, *before, "--json").ok().objects
        found += page
        if len(page) < limit:
            return found
        before = ["--before", page[-1]["position"]]
    raise AssertionError(f"pages without an end: {found[-3:]}")


@pytest.mark.core
def test_d_pages_are_whole_and_newest_first(host):
    """D: page after page gives each one once, newest first over all partitions and both kinds; a filter that nothing passes ends."""
    good, bad, other, first = many(host)
    letters = pages(host, "dlq", "list")
    ids = [one["id"] for one in letters]
    assert len(ids) == len(set(ids)) == 303 and {bad, other, first} <= set(ids), len(ids)
    assert sorted(ids) == sorted(one["id"] for one in host.letters()), "as the list that is read in the order of the log"
    places = [int(one["position"].split(":")[0]) for one in letters]
    assert places == sorted(places, reverse=True)
    turns = pages(host, "turns", "list")
    assert len({one["turn_id"] for one in turns}) == len(turns) == 453 and {good, bad, other} <= {one["turn_id"] for one in turns}
    assert {one["state"] for one in turns} == {"completed", "parked"}, "of each turn its newest record counts"
    assert pages(host, "turns", "list", "--state", "running", "--state", "queued") == []
    assert {one["id"] for one in pages(host, "dlq", "list", "--service", "beta")} == {other}
    text = host.run("dlq", "list").ok()
    assert len(text.out.splitlines()) == 51 and "--before" in text.err
    rest = host.run("dlq", "list", "--before", text.err.split("--before ")[1].split()[0], "--limit", 400).ok()
    assert len(rest.out.splitlines()) == 254 and "--before" not in rest.err, "the last page says nothing of a next one"
    for words in ("dlq", "turns"):
        for position in ("x", "1:t:alpha:0", "1:q:alpha:0:0", "1:t:Alpha:0:0", "1:t:alpha:-1:0", "1:t:alpha:0:1x"):
            host.run(words, "list", "--before", position, "--json").refused("invalid_request", 2)


def test_d_what_was_replayed_is_on_no_page(host):
    """D: of a turn that is not parked any more an older record says otherwise, on a log that keeps it for a while."""
    host.plan(default=[BAD, {}])
    host.worker("alpha", "w1")
    turn = host.published("alpha", "owner", "t-1")
    host.ends(turn, "parked")
    assert [one["id"] for one in pages(host, "dlq", "list")] == [turn]
    host.replay(turn).ok()
    host.ends(turn, "completed")
    assert pages(host, "dlq", "list") == [] and [one["state"] for one in pages(host, "turns", "list")] == ["completed"]


def test_d05_where_chooses_exactly_those(host):
    """D05: `replay --where class=auth,service=x --limit 2` takes exactly those; every key is one of a closed list, said once."""
    host.plan(default=[BAD], tasks={"t-auth": [{"class": "policy"}, {}]})
    host.worker("alpha", "w1"), host.worker("beta", "w1")
    mine = [host.published("alpha", "owner", "t-auth", "--key", f"k-{n}") for n in range(3)]
    others = [host.published("beta", "owner", "t-auth", "--key", "k"), host.published("alpha", "reviewer", "t-1")]
    for turn in mine + others:
        host.ends(turn, "parked")
    def listed(where, *more):
        return {one["id"] for one in host.run("dlq", "list", "--where", where, *more, "--json").ok().objects}
    assert listed("class=policy,service=alpha") == set(mine) == listed("class=policy", "--where", "service=alpha") == listed("class=policy", "--service", "alpha")
    assert listed("role=reviewer") == {others[1]} and listed(f"origin={host.identity},newer=1h") == set(mine + others)
    assert listed("older=1h") == listed("run=r-1") == listed("code=unknown_key") == set()
    assert host.run("dlq", "stats", "--where", "service=beta", "--json").ok().one["total"] == 1
    assert len(host.run("dlq", "export", "--where", "role=reviewer").ok().objects) == 1
    assert {one["id"] for one in host.run("dlq", "discard", "--where", "role=reviewer", "--reason", "x", "--dry-run", "--json").ok().objects} == {others[1]}
    for where, named in (("colour=red", "colour"), ("class", "class"), ("class=", "class"), ("class=red", "red"), ("role=boss", "boss"), ("older=soon", "soon"),
                         ("role=owner,role=reviewer", "twice"), ("class=auth,", "KEY=VALUE"), ("service=" + "x" * 200, "KEY=VALUE"), ("code=no", "no code")):
        for words in (("list",), ("replay",), ("discard", "--reason", "x", "--yes"), ("stats",)):
            done = host.run("dlq", *words, "--where", where, "--json").refused("invalid_request", 2)
            assert named in done.one["error"], (where, done)
    host.run("dlq", "list", "--where", "role=owner", "--role", "owner", "--json").refused("invalid_request", 2)
    host.run("dlq", "list", "--where", "service=nope", "--json").refused("unknown_service", 5)
    done = host.run("dlq", "replay", "--where", "class=policy,service=alpha", "--limit", "2", "--json").ok()
    taken = [one["turn_id"] for one in done.objects]
    assert len(taken) == 2 and set(taken) < set(mine), done
    for turn in taken:
        host.ends(turn, "completed")
    wait_until(lambda: {one["id"] for one in host.letters()} == set(mine + others) - set(taken), what="the others, still dead")
