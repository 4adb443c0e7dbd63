"""Runs while coordinators and workers die by chance: each ends once, each edge's count is the number of handoffs taken, no turn
without a successor and none with two (S5 I7, I9)."""
import random
import time

import pytest

from host import ready, wait_until
from runs import show, sound, start, taken

CHAINS = {"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta", "gamma"]}, "arbiter": {"chain": ["gamma"]}}
SERVICES = ("alpha", "beta", "gamma")


def storm(host, count, seconds, seed):
    chance = random.Random(seed)
    host.plan(turns={"beta": [{"verdict": "changes"}, {"class": "auth"}, {"verdict": "escalate"}, {"verdict": "approve"}], "gamma": [{}]})
    alive = {f"c{n}": ("coordinator", ready(host.worker("coordinator", f"c{n}"))) for n in (1, 2)}
    for service in SERVICES:
        for n in (1, 2):
            alive[f"{service}-{n}"] = (service, ready(host.worker(service, f"w{n}")))
    started, until, kills = [], time.monotonic() + seconds, 0
    while time.monotonic() < until or len(started) < count:
        if len(started) < count and chance.random() < 0.8:
            started.append(start(host, f"t-{len(started)}", "--key", f"k-{len(started)}", "--timeout", "60s"))
        if time.monotonic() < until:
            name = chance.choice(sorted(alive))
            service, one = alive[name]
            if one.alive:
                one.kill()
                kills += 1
            alive[name] = (service, host.worker(service, one.id))
        time.sleep(chance.random() * 0.4)
    wait_until(lambda: all(show(host, run)["state"] in ("completed", "waiting") for run in started), 240,
               lambda: f"all to come to rest: {[(show(host, run)['state'], show(host, run)['why']) for run in started if show(host, run)['state'] == 'active']}")
    for run in started:
        shown = show(host, run)
        assert shown["state"] == "completed", (seed, kills, shown)
        assert taken(shown)["start"] == 1 and len({turn["turn_id"] for turn in shown["turns"]}) == len(shown["turns"]), shown
        assert sum(taken(shown).values()) == len(shown["turns"]), shown
        sound(host, shown)
    return kills


def configured(fresh):
    return fresh.configure({service: fresh.service(parallel=20, profiles=[{"name": "only", "env": {}}]) for service in SERVICES}, roles=CHAINS,
                           budget={"losses": 40, "failures": 40}, retry={"rest": "0s", "first": "100ms", "each_service": 20})


@pytest.mark.core
@pytest.mark.seconds(400)
def test_i7_i9_forty_runs_in_a_storm(fresh):
    assert storm(configured(fresh), 40, 20, 20261130) > 20


@pytest.mark.long
@pytest.mark.seconds(1500)
def test_i7_i9_two_hundred_runs_in_a_storm(fresh):
    assert storm(configured(fresh), 200, 180, 20261201) > 200
