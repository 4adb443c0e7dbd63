"""What scripts and people rely on: verbs, help, --json, configuration, exit statuses (RULES S7)."""
import json
import os
import re

import pytest

from host import wait_until

VERBS = [
    "init", "config check", "config show", "doctor", "topics plan", "topics apply", "topics list",
    "keys plan", "keys apply", "keys generate", "keys list", "keys rotate", "keys retire", "keys revoke",
    "publish", "worker", "services", "turns list", "turns show", "turns watch", "turns wait", "turns cancel",
    "dlq list", "dlq show", "dlq replay", "store check", "store backup", "bench", "version",
]


@pytest.mark.drivers("local")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(fresh, verb):
    done = fresh.run(*verb.split(), "--help").ok()
    assert re.search(r"^\s*(# .*|baton .*)$", done.out, re.M) and re.search("example", done.out, re.I), done
    assert f"baton {verb}" in done.out, done
    assert "--json" in done.out, done
    assert not done.err, done


@pytest.mark.drivers("local")
def test_the_program_lists_its_verbs(fresh):
    done = fresh.run("--help").ok()
    for verb in {verb.split()[0] for verb in VERBS}:
        assert re.search(rf"^\s+{verb}\b", done.out, re.M), f"{verb} is not in the help: {done}"


@pytest.mark.drivers("local")
@pytest.mark.parametrize("words, status", [
    (["nonsense"], 2), (["publish", "--nonsense"], 2), (["turns", "nonsense"], 2), (["publish"], 2),
    (["turns", "show"], 2), (["worker"], 2), ([], 2),
])
def test_usage_mistakes_end_with_2(fresh, words, status):
    done = fresh.run(*words)
    assert done.status == status, done
    assert done.err.strip(), f"it says nothing: {done}"


@pytest.mark.drivers("local")
def test_an_unknown_option_names_the_nearest(fresh):
    done = fresh.run("publish", "--servce", "example")
    assert done.status == 2 and "--service" in done.err, done


@pytest.mark.parametrize("words", [
    ["config", "show"], ["config", "check"], ["services"], ["topics", "list"], ["topics", "plan"],
    ["keys", "list"], ["keys", "plan"], ["turns", "list"], ["dlq", "list"], ["version"], ["doctor"],
])
def test_json_is_json(host, words):
    done = host.run(*words, "--json")
    assert done.status == 0, done
    for line in done.out.splitlines():
        json.loads(line)


@pytest.mark.drivers("local")
def test_version_says_which(fresh):
    text = fresh.run("version").ok().out
    assert re.search(r"\d+\.\d+\.\d+", text) and "local, kafka" in text
    assert fresh.run("version", "--json").ok().one["drivers"] == ["local", "kafka"]


# ---- init ----

@pytest.mark.drivers("local")
def test_init_leaves_a_set_up_that_works_at_once(fresh):
    """`baton init`, `publish`, `worker` work at once; the example executor does something real."""
    turn = fresh.published("example", "reviewer", "t-1")
    fresh.drain("example")
    shown = fresh.show(turn)
    assert shown["state"] in ("completed", "parked"), shown
    assert shown["role"] == "reviewer"
    assert fresh.run("config", "check").ok()


@pytest.mark.drivers("local")
def test_init_serves_every_role_of_example(fresh):
    services = fresh.run("services", "--json").ok().objects
    example = next(one for one in services if one.get("service", one.get("name")) == "example")
    assert sorted(example["roles"]) == ["arbiter", "owner", "reviewer"], example


@pytest.mark.drivers("local")
def test_init_keeps_what_is_there(fresh):
    """L-71: a second init changes nothing."""
    def snapshot():
        found = {}
        for where, _, names in os.walk(fresh.dir):
            if "data" in os.path.relpath(where, fresh.dir).split("/")[:1]:
                continue
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    found[os.path.join(where, name)] = file.read()
        return found

    before = snapshot()
    fresh.run("init", fresh.dir)
    assert snapshot() == before


@pytest.mark.drivers("local")
def test_init_modes_of_files(fresh):
    """Keys are their owner's only, trust is everybody's to read (RECORD section 4); data 0700, log 0600."""
    from host import mode
    assert mode(os.path.join(fresh.dir, "keys")) == 0o700
    for name in os.listdir(os.path.join(fresh.dir, "keys")):
        assert mode(os.path.join(fresh.dir, "keys", name)) == 0o600, name
    assert mode(os.path.join(fresh.dir, "trust")) & 0o022 == 0
    assert mode(os.path.join(fresh.dir, "data")) == 0o700
    assert mode(os.path.join(fresh.dir, "data", "log.db")) == 0o600
    with open(os.path.join(fresh.dir, ".gitignore"), encoding="utf-8") as file:
        ignored = file.read()
    assert "keys" in ignored and "data" in ignored


@pytest.mark.drivers("local")
def test_keys_are_documented_without_a_configuration(fresh, tmp_path):
    """`config show --keys` is what somebody reads who has none yet."""
    text = fresh.run("config", "show", "--keys", cwd=tmp_path).ok().out
    for key in ("services.<name>.heartbeat", "services.<name>.executor.prices.cached", "budget.max_cost"):
        assert f"\n{key}" in text, key


# ---- where the configuration comes from ----

@pytest.mark.drivers("local")
def test_configuration_by_option_environment_and_place(host, tmp_path):
    path = os.path.join(host.dir, "baton.yaml")
    elsewhere = str(tmp_path)
    assert host.run("config", "check", "--config", path, cwd=elsewhere).status == 0
    assert host.run("config", "check", cwd=elsewhere, environment={"BATON_CONFIG": path}).status == 0
    assert host.run("config", "check").status == 0
    missing = host.run("config", "check", "--config", "/nowhere/baton.yaml", "--json", environment={"BATON_CONFIG": path})
    assert missing.status == 2, missing
    assert "/nowhere/baton.yaml" in missing.out + missing.err


@pytest.mark.drivers("local")
def test_set_wins_over_the_file_and_is_shown_with_its_source(host):
    shown = host.run("config", "show", "--set", "budget.failures=5")
    assert shown.status == 0, shown
    line = next(line for line in shown.out.splitlines() if "budget.failures" in line)
    assert "5" in line and "--set" in line, line


@pytest.mark.drivers("local")
def test_environment_sets_nothing_else(host):
    """The environment gives only BATON_CONFIG and BATON_MODE: what executors get is no setting."""
    plain = host.run("config", "show").ok().out
    loud = host.run("config", "show", environment={"BATON_IDENTITY": "mallory", "BATON_PREFIX": "evil",
                                                   "BATON_ROLE": "owner", "BATON_SERVICE": "beta"}).ok().out
    assert plain == loud


@pytest.mark.drivers("local")
def test_mode_with_a_bad_value_is_refused(host):
    """L-13: attended or unattended, nothing else."""
    done = host.publish(environment={"BATON_MODE": "sometimes"})
    done.refused("bad_mode", 2)
    assert host.publish(environment={"BATON_MODE": "unattended"}).status == 0


YAML_FAULTS = {
    "alias": "version: 1\nbudget: &b {failures: 6}\nretry: *b\n",
    "merge": "version: 1\nbudget:\n  <<: {failures: 6}\n",
    "duplicate": "version: 1\nprefix: a\nprefix: b\n",
    "tag": "version: 1\nprefix: !!str a\n",
    "documents": "version: 1\n---\nversion: 1\n",
    "unknown": "version: 1\nprefx: a\n",
    "depth": "version: 1\nprefix: " + "[" * 100 + "]" * 100 + "\n",
    "control": "version: 1\nprefix: \"a\\0b\"\n",
    "type": "version: 1\nbudget: {failures: many}\n",
    "utf8": "version: 1\nprefix: \udcff\n",
}


@pytest.mark.drivers("local")
@pytest.mark.parametrize("fault", sorted(YAML_FAULTS))
def test_x33_yaml_is_refused_with_line_and_column(fresh, fault):
    """X33: alias, duplicate key, tag, two documents and the like: refused, with the place."""
    path = os.path.join(fresh.dir, "bad.yaml")
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(YAML_FAULTS[fault])
    done = fresh.run("config", "check", "--config", path)
    assert done.status == 2, done
    assert re.search(r"bad\.yaml:\d+:\d+: ", done.out + done.err), done
    if fault == "unknown":
        assert "prefix" in done.out + done.err, "the nearest known key is named"


@pytest.mark.drivers("local")
@pytest.mark.alone
def test_x33_alias_bomb_is_refused_at_once(fresh):
    path = os.path.join(fresh.dir, "bomb.yaml")
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    done = fresh.run("config", "check", "--config", path, seconds=10)
    assert done.status == 2 and done.took < 2, done


@pytest.mark.drivers("local")
def test_all_mistakes_are_reported_at_once(host):
    host.write({"alpha": host.service(roles=["owner", "reveiwer"], parallel=0)}, budget={"failures": -1})
    done = host.run("config", "check")
    assert done.status == 2
    text = done.out + done.err
    assert "reveiwer" in text and "parallel" in text and "failures" in text, done


@pytest.mark.drivers("local")
@pytest.mark.parametrize("name", ["a.b", "a_b", "x/y", "a" * 240, "ä", "..", "coordinator", "__consumer_offsets",
                                  "../x", "A", "a b", "a\u200b"])
def test_d14_service_names_are_refused_in_the_configuration(fresh, name):
    """D14, H05: an illegal service name is found when the configuration is read, so no two can collide."""
    fresh.write({name: None})
    done = fresh.run("config", "check")
    assert done.status == 2, done
    assert re.search(r"baton\.yaml:\d+:\d+: ", done.out + done.err), done


# ---- doctor, topics ----

def test_doctor_is_content_with_a_good_host(host):
    assert host.run("doctor").status == 0


@pytest.mark.drivers("local")
def test_doctor_sees_what_a_worker_or_publisher_would_refuse(fresh):
    """A private key that is missing, or open to others; a trust folder that others may write: named, and what to do."""
    fresh.configure({"alpha": None})
    key = os.path.join(fresh.dir, "keys", "alpha.pem")
    mine = os.path.join(fresh.dir, "keys", fresh.identity + ".pem")
    trust = os.path.join(fresh.dir, "trust")
    assert fresh.run("doctor").ok()
    os.rename(key, key + ".away")
    done = fresh.run("doctor").ok()
    assert "alpha has no private key here" in done.out and "baton keys generate alpha" in done.out, done
    os.rename(key + ".away", key)
    os.chmod(mine, 0o644)
    done = fresh.run("doctor")
    assert done.status == 2 and mine in done.out and "chmod 600" in done.out, done
    os.chmod(mine, 0o600)
    os.chmod(trust, 0o777)
    done = fresh.run("doctor")
    assert done.status == 2 and "chmod go-w" in done.out and "keys apply" not in done.out, done


def test_b11_a_missing_topic_is_named_with_the_command_that_mends_it(host):
    """B11: a worker refuses to start without its topics and says what to do; so does doctor."""
    host.configure({"alpha": None, "beta": None, "gamma": None})
    host.log.drop(host.topic("handoff", "gamma"))
    worker = host.worker("gamma")
    assert worker.wait() == 8, worker.log
    assert host.topic("handoff", "gamma") in worker.log and "baton topics apply" in worker.log, worker.log
    doctor = host.run("doctor")
    assert doctor.status != 0 and "gamma" in doctor.out + doctor.err, doctor


@pytest.mark.core
def test_topics_plan_then_apply_then_nothing_to_do(host):
    host.configure({"alpha": None, "beta": None, "gamma": None})
    host.log.drop(host.topic("handoff", "gamma"))
    plan = host.run("topics", "plan").ok()
    assert host.topic("handoff", "gamma") in plan.out, plan
    assert host.topic("handoff", "gamma") not in host.log.topics(), "plan changes nothing"
    host.run("topics", "apply").ok()
    assert host.topic("handoff", "gamma") in json.dumps(host.run("topics", "list", "--json").objects)
    again = host.run("topics", "plan").ok()
    assert host.topic("handoff", "gamma") not in again.out, again


@pytest.mark.drivers("local")
def test_keys_plan_shows_and_apply_makes(host):
    host.write({"alpha": None, "beta": None, "gamma": None})
    plan = host.run("keys", "plan").ok()
    assert "gamma" in plan.out, plan
    assert not os.path.exists(os.path.join(host.dir, "keys", "gamma.pem"))
    host.run("keys", "apply").ok()
    assert os.path.exists(os.path.join(host.dir, "keys", "gamma.pem"))
    assert "gamma" in host.run("keys", "list").ok().out


@pytest.mark.drivers("local")
def test_a_command_on_a_full_or_closed_output_says_so(host):
    """Standard output that cannot be written is an error, not a success."""
    import subprocess
    from host import binary
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary(), "config", "show"], cwd=host.dir, env=host.environment, stdout=full,
                              stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode != 0, done


@pytest.mark.alone
def test_l70_interrupt_during_a_wait_ends_at_once(host):
    """L-70: SIGINT during any wait exits within a second."""
    import signal
    import subprocess
    import time
    from host import SLOW, binary
    waiting = subprocess.Popen([binary(), "publish", "--service", "alpha", "--role", "owner", "--task", "t", "--wait",
                                "--json"], cwd=host.dir, env=host.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: host.log.records(host.topic("handoff")), what="the handoff in the log")
    started = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=10)
    assert time.monotonic() - started < 1 * SLOW
    assert waiting.returncode != 0
