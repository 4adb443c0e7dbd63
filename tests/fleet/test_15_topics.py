"""Topics, their rights, and what is written before there are any: plan, apply, list, init, config check."""
import os
import re
import sqlite3
import subprocess

import pytest

import acls
import broker
from host import SLOW, wait_until


def alter(host, topic, **settings):
    """Changes settings of a topic behind Baton's back, by the log's own tools."""
    if host.driver == "local":
        with sqlite3.connect(os.path.join(host.dir, "data", "log.db")) as db:
            for name, value in settings.items():
                column = {"retention.ms": "retention_ms", "cleanup.policy": "cleanup",
                          "delete.retention.ms": "tombstone_ms"}[name.replace("_", ".")]
                db.execute(f"UPDATE topic SET {column} = ? WHERE name = ?", (value, topic))
        return
    pairs = ",".join(f"{name.replace('_', '.')}={value}" for name, value in settings.items())
    broker.shared().tool("kafka-configs", "--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", pairs)


def settings_of(topic):
    """What Kafka itself says of a topic's own settings."""
    out = broker.shared().tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    return dict(re.findall(r"^\s+([\w.]+)=(\S+) ", out, re.M))


def step(host, topic, *words):
    return next((one for one in host.run("topics", *(words or ["plan"]), "--json").ok().objects if one["topic"] == topic), None)


# ---- plan and apply ----

def test_plan_says_from_what_to_what_and_apply_mends_that(host):
    topic = host.topic("handoff")
    alter(host, topic, retention_ms=604800000)
    wait_until(lambda: host.run("topics", "plan", "--json").ok().objects, what="the brokers to go by it")
    assert step(host, topic)["changes"] == [{"setting": "retention", "from": "7d", "to": "no limit"}]
    assert f"mend    {topic}: retention 7d -> no limit" in host.run("topics", "plan").ok().out
    refused = host.run("topics", "plan", "--check", "--json")
    assert refused.status == 8 and refused.objects[-1]["code"] == "topic_missing" and topic in refused.objects[-1]["error"]
    worker = host.worker("alpha")
    assert worker.wait() == 8 and topic in worker.log and "baton topics apply" in worker.log, worker.log
    host.run("topics", "apply").ok()
    host.run("topics", "plan", "--check").ok()
    assert step(host, topic, "list")["retention_ms"] == -1


def test_apply_never_changes_the_number_of_partitions(host):
    """Keys would move to other partitions: refused, and said; what can be done is done all the same."""
    host.write({"alpha": None, "beta": None, "gamma": None}, partitions=8)
    plan = {one["topic"]: one for one in host.run("topics", "plan", "--json").ok().objects}
    assert plan[host.topic("handoff")]["action"] == "refuse" and plan[host.topic("handoff", "gamma")]["action"] == "create"
    assert "keys would move" in plan[host.topic("handoff")]["why"] and "set it back to 4" in plan[host.topic("handoff")]["why"]
    done = host.run("topics", "apply", "--json")
    assert done.status == 8 and done.objects[-1]["code"] == "topic_missing" and "fixed" in done.objects[-1]["error"], done
    there = {one["topic"]: one for one in host.run("topics", "list", "--json").ok().objects}
    assert there[host.topic("handoff")]["partitions"] == 4 and there[host.topic("handoff", "gamma")]["partitions"] == 8
    doctor = host.run("doctor")
    assert doctor.status == 8 and "fixed when a topic is made" in doctor.out, doctor
    # A key's partition would be another than the worker's: nothing is sent there, and nothing begins to work on it.
    for refused in (host.publish("alpha", "owner", "t-1"), host.run("worker", "--service", "alpha", "--json")):
        assert "set it back to 4" in refused.refused("topic_missing", 8).out, refused
    assert host.log.records(host.topic("handoff")) == []


@pytest.mark.parametrize("words", [("turns", "list"), ("turns", "show", "abcdef"), ("turns", "show", "ab" * 16), ("dlq", "list"),
                                   ("dlq", "list", "--service", "alpha"), ("services",)], ids=" ".join)
def test_lists_do_not_say_nothing_where_no_topic_is(host, words):
    """Another prefix, other brokers: who looks there is told so; a single service without topics is passed over."""
    elsewhere = host.run(*words, "--set", "prefix=elsewhere", "--json")
    elsewhere.refused("topic_missing", 8)
    assert "elsewhere." in elsewhere.out and "baton topics apply" in elsewhere.out, elsewhere
    host.write({"alpha": None, "beta": None, "gamma": None})
    assert host.run("turns", "list", "--json").ok().objects == [] == host.run("dlq", "list", "--json").ok().objects


def test_doctor_says_once_what_mends_several(host):
    doctor = host.run("doctor", "--set", "prefix=elsewhere")
    assert doctor.status == 8 and doctor.out.count(" is missing\n") == 12 and doctor.out.count("-> baton topics apply --set prefix=elsewhere\n") == 1, doctor
    assert doctor.out.index("elsewhere.runs is missing") < doctor.out.index("-> baton topics apply --set"), "below the last of them"
    assert all(one["mend"] == "baton topics apply --set prefix=elsewhere" for one in host.run("doctor", "--set", "prefix=elsewhere", "--json").objects
               if one["check"] == "topics"), "for programs with each"


def test_list_shows_what_is_there(host):
    host.published()
    listed = {one["topic"]: one for one in host.run("topics", "list", "--records", "--json").ok().objects}
    kept = [name for name, one in listed.items() if one["action"] == "keep"]
    assert len(kept) == 2 * 4 + 4 and {listed[name]["service"] for name in kept} == {"alpha", "beta", None}
    assert {one["service"] for one in listed.values() if one["action"] != "keep"} <= {"example"}, "left from init"
    assert listed[host.topic("handoff")]["records"] == 1 and listed[host.topic("handoff", "beta")]["records"] == 0
    assert listed[host.topic("turns")]["cleanup"] == "compact" and listed[host.topic("turns")]["copies"] == 1
    assert "records" not in step(host, host.topic("turns"), "list")


@pytest.mark.drivers("kafka")
def test_what_kafka_needs_beside_is_set_and_mended_and_the_rest_is_kept(host):
    """LogAppendTime (a publisher's clock must not delete its record), soon compaction; foreign settings stay."""
    handoff, turns = host.topic("handoff"), host.topic("turns")
    made = settings_of(turns)
    assert made["cleanup.policy"] == "compact" and made["message.timestamp.type"] == "LogAppendTime", made
    assert made["segment.bytes"] == str(64 << 20) and made["min.cleanable.dirty.ratio"] == "0.1", made
    assert made["max.compaction.lag.ms"] == "3600000" and made["delete.retention.ms"] == str(14 * 86400000), made
    alter(host, turns, message_timestamp_type="CreateTime", flush_messages=777)
    alter(host, handoff, message_timestamp_type="CreateTime", flush_messages=778, retention_ms=1000)
    for topic in (turns, handoff):  # a broker shows it a moment later
        wait_until(lambda: (step(host, topic) or {}).get("action") == "mend", 40, lambda: f"{topic} to differ: {step(host, topic)}")
    assert "message.timestamp.type" in step(host, turns)["differs"]
    doctor = host.run("doctor")
    assert doctor.status == 8 and "message.timestamp.type" in doctor.out, doctor
    assert host.worker("alpha").wait() == 8
    host.run("topics", "apply").ok()
    host.run("topics", "plan", "--check").ok()
    for topic, flush, was in ((turns, "777", made), (handoff, "778", None)):
        now = settings_of(topic)
        assert now["message.timestamp.type"] == "LogAppendTime" and now.pop("flush.messages") == flush, now
        assert was is None or now == was


@pytest.mark.drivers("kafka")
@pytest.mark.long
def test_a_hundred_services_in_ten_seconds(fresh, tmp_path):
    """On a broker of its own: deleting 404 topics takes longer than all of this."""
    own, shared = broker.Broker(str(tmp_path / "broker")).start(), fresh.brokers
    try:
        fresh.brokers = own.brokers
        fresh.write({f"s{number:02d}": fresh.service(roles=["reviewer"]) for number in range(100)})
        made = fresh.run("topics", "apply", "--json").ok()
        assert len(made.objects) == 404 and made.took < 10 * SLOW, f"{made.took:.1f} s"
        again = fresh.run("topics", "plan", "--check").ok()
        assert again.took < 5, f"{again.took:.1f} s"
    finally:
        fresh.tampered, fresh.brokers = True, shared  # its topics are gone with their broker
        own.kill()
        own.delete()


# ---- rights ----

@pytest.mark.drivers("local")
def test_x27_the_rights_need_no_log(host):
    """RECORD.md section 5: from names and trust alone, as a table, as JSON, as a script."""
    host.run("keys", "generate", "carol", "--create", "alpha=owner", "--json").ok()
    os.rename(os.path.join(host.dir, "data"), os.path.join(host.dir, "away"))
    rights = {(one["principal"], one["resource"], one["pattern"], one["name"], one["operation"])
              for one in host.run("topics", "plan", "--acl", "--json").ok().objects}
    assert ("User:alpha", "topic", "literal", "baton.handoff.alpha", "Read") in rights
    assert ("User:alpha", "transactional-id", "prefixed", "baton.worker.alpha.", "Write") in rights
    assert not [one for one in rights if one[0] == "User:alpha" and "beta" in one[3]]
    assert {one[4] for one in rights if one[0] == "User:carol" and one[3] == "baton.handoff.alpha"} == {"Write", "DescribeConfigs"}
    table = host.run("topics", "plan", "--acl").ok()
    assert len(table.out.splitlines()) == len(rights) + 1 and "one right" in table.err, table
    assert host.run("topics", "plan", "--acl", "--check").status == 2
    assert host.run("topics", "plan", "--format", "kafka-acls").status == 2
    os.rename(os.path.join(host.dir, "away"), os.path.join(host.dir, "data"))


@pytest.mark.drivers("local")
def test_x27_the_script_says_the_same(host, tmp_path):
    """Run with a tool that notes its arguments, the script gives exactly the rights of the list."""
    script = host.run("topics", "plan", "--acl", "--format", "kafka-acls").ok().out
    tool, noted = tmp_path / "kafka-acls.sh", tmp_path / "noted"
    tool.write_text(f'#!/bin/sh\necho "$*" >>{noted}\n')
    tool.chmod(0o755)
    subprocess.run(["sh", "-c", script], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "BROKERS": "k:1"})
    given = set()
    for line in noted.read_text().splitlines():
        words = line.split()
        assert words[:3] == ["--bootstrap-server", "k:1", "--add"], line
        principal = words[words.index("--allow-principal") + 1]
        option = next(word for word in words if word in ("--topic", "--group", "--transactional-id"))
        pattern = "prefixed" if "--resource-pattern-type prefixed" in line else "literal"
        for operation in re.findall(r"--operation (\w+)", line):
            given.add((principal, option[2:], pattern, words[words.index(option) + 1], operation))
    assert given == {(one["principal"], one["resource"], one["pattern"], one["name"], one["operation"])
                     for one in host.run("topics", "plan", "--acl", "--json").ok().objects}


# ---- init and configuration for Kafka ----

@pytest.mark.drivers("local")
def test_init_for_kafka_asks_no_broker(fresh, tmp_path):
    folder = str(tmp_path / "for-kafka")
    made = fresh.run("init", folder, "--log", "kafka", "--brokers", "localhost:1,[::1]:1", "--json").ok()
    assert made.one["log"] == "kafka" and "baton topics apply" in made.one["next"] and made.took < 5
    assert os.path.exists(os.path.join(folder, "trust", "example.yaml"))
    assert os.listdir(os.path.join(folder, "data")) == []
    fresh.run("config", "check", cwd=folder).ok()
    shown = {one["key"]: one["value"] for one in fresh.run("config", "show", "--json", cwd=folder).ok().one["settings"]}
    assert shown["log"] == "kafka" and shown["kafka.brokers"] == "[localhost:1, [::1]:1]"
    again = fresh.run("init", folder, "--json").ok()
    assert again.one["made"] == [] and again.one["log"] == "kafka"
    fresh.run("init", folder, "--log", "local", "--json").refused("invalid_request", 2)
    other = fresh.run("init", folder, "--log", "kafka", "--brokers", "localhost:2", "--json")
    assert "localhost:1,[::1]:1" in other.refused("invalid_request", 2).out, "it would be kept, and the request forgotten"
    fresh.run("init", folder, "--log", "kafka", "--brokers", "localhost:1,[::1]:1").ok()


@pytest.mark.drivers("local")
@pytest.mark.parametrize("words", [["--log", "kafka"], ["--brokers", "a:1"], ["--log", "kafka", "--brokers", "a"], ["--log", "kafka", "--brokers", "a:1,"],
                                   ["--log", "kafka", "--brokers", "a:1]\nproof: off #"], ["--log", "redis"]])
def test_init_refuses_before_it_writes(fresh, tmp_path, words):
    done = fresh.run("init", str(tmp_path / "nothing"), *words)
    assert done.status == 2 and not os.path.exists(tmp_path / "nothing"), done


def for_kafka(fresh, tmp_path, more=""):
    """A folder for brokers that are not there, with lines added to its kafka section."""
    folder = str(tmp_path / "for-kafka")
    fresh.run("init", folder, "--log", "kafka", "--brokers", "localhost:1").ok()
    path = os.path.join(folder, "baton.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("kafka:\n  brokers", f"kafka:\n{more}  brokers"))
    return folder


SASL = "  security: sasl_ssl\n  sasl: {mechanism: PLAIN, username: u, password: {file: secrets/kafka}}\n"


@pytest.mark.drivers("local")
def test_x30_the_password_file_is_held_to_the_rules_of_a_key(fresh, tmp_path):
    folder = for_kafka(fresh, tmp_path, SASL)
    fresh.run("config", "check", "--json", cwd=folder).refused("key_not_found", 5)
    os.mkdir(os.path.join(folder, "secrets"), 0o700)
    path = os.path.join(folder, "secrets", "kafka")
    with open(path, "w", encoding="utf-8") as file:
        file.write("CANARY\n")
    os.chmod(path, 0o644)
    done = fresh.run("config", "check", "--json", cwd=folder).refused("key_unsafe", 2)
    assert "kafka.sasl.password.file" in done.one["findings"][0] and "CANARY" not in done.out + done.err
    os.chmod(path, 0o600)
    fresh.run("config", "check", cwd=folder).ok()
    shown = fresh.run("config", "show", cwd=folder).ok()
    assert "secrets/kafka" in shown.out and "CANARY" not in shown.out + shown.err


@pytest.mark.drivers("local")
@pytest.mark.parametrize("setting,expected", [
    ("transactional.id: x", "transactional.id"), ("group.id: x", "group.id"), ("acks: 1", "acks"),
    ("enable.auto.commit: 'true'", "enable.auto.commit"), ("isolation.level: read_uncommitted", "isolation.level"),
    ("linger.mss: 5", "linger.mss"), ("socket.timeout.ms: many", "socket.timeout.ms"),
    ("sasl.password: CANARY", "sasl.password"),
])
def test_c1_what_is_passed_through_is_judged_when_it_is_read(fresh, tmp_path, setting, expected):
    """Baton's own names and unknown ones are refused by name, by every command that would open the log."""
    folder = for_kafka(fresh, tmp_path, f"  client: {{{setting}}}\n")
    for words in (["config", "check"], ["topics", "plan"], ["worker", "--service", "example"]):
        done = fresh.run(*words, "--json" if words[0] != "worker" else "--quiet", cwd=folder)
        assert done.status == 2 and expected in done.out + done.err and "CANARY" not in done.out + done.err, done
        assert re.search(r"baton\.yaml:\d+:\d+", done.out + done.err), done


@pytest.mark.drivers("local")
def test_c1_what_may_be_passed_through_is(fresh, tmp_path):
    folder = for_kafka(fresh, tmp_path, "  client: {debug: broker, metadata.max.age.ms: 10000}\n")
    fresh.run("config", "check", cwd=folder).ok()
    fresh.run("config", "check", "--set", "kafka.client.socket.timeout.ms=5000", cwd=folder).ok()


# ---- doctor ----

@pytest.mark.drivers("local")
def test_b14_doctor_names_brokers_that_cannot_be_reached(fresh, tmp_path):
    folder = for_kafka(fresh, tmp_path)
    done = fresh.run("doctor", "--json", cwd=folder)
    found = next(one for one in done.objects if one["check"] == "log")
    assert done.status == 8 and found["code"] == "service_unavailable" and "localhost:1" in found["text"], done
    assert "topics apply" not in (found["mend"] or ""), "no topic is made where no broker answers"


def by_sasl(host, user, password=None):
    """The host's configuration, coming by SASL as that user."""
    secrets = os.path.join(host.dir, "secrets")
    os.makedirs(secrets, 0o700, exist_ok=True)
    path = os.path.join(secrets, user)
    with open(path, "w", encoding="utf-8") as file:
        file.write((password or broker.password(user)) + "\n")
    os.chmod(path, 0o600)
    host.write(host.settings["services"], identity=user if user == "alice" else host.identity,
               kafka=dict(host.settings["kafka"], brokers=[broker.shared().sasl], security="sasl_plaintext",
                          sasl={"mechanism": "PLAIN", "username": user, "password": {"file": f"secrets/{user}"}}))


@pytest.mark.drivers("kafka")
def test_b14_a_wrong_password_is_no_broker_that_is_away(host):
    by_sasl(host, "alice", "wrong-CANARY")
    done = host.run("doctor", "--json")
    found = next(one for one in done.objects if one["check"] == "log")
    assert found["code"] == "not_permitted" and "alice" in found["text"] and done.took < 10, done
    assert "CANARY" not in done.out + done.err
    host.run("topics", "list", "--json").refused("not_permitted", 4)


@pytest.mark.drivers("kafka")
def test_b13_a_principal_without_rights_is_told_which(host):
    """Whoever may see nothing gets names of topics and of itself, and no list that looks complete."""
    by_sasl(host, "mallory")
    plan = host.run("topics", "plan", "--json").ok()
    assert {one["action"] for one in plan.objects} == {"hidden"}, plan
    assert all("User:mallory" in one["why"] and one["topic"] in one["why"] for one in plan.objects), plan
    assert host.run("topics", "plan", "--check", "--json").status == 4
    assert host.run("topics", "apply", "--json").objects[-1]["code"] == "not_permitted"


@pytest.mark.drivers("kafka")
@pytest.mark.heavy
def test_x27_exactly_these_rights_suffice(host, tmp_path):
    """The script of `topics plan --acl` gives what a worker, an origin and an operator need, and no more."""
    host.run("keys", "generate", "alice", "--create", "alpha=all", "--operate", "alpha", "--json").ok()
    script = host.run("topics", "plan", "--acl", "--format", "kafka-acls").ok().out
    wanted = re.sub(r"^allow (?!alpha |alice ).*\n", "", script, flags=re.M)
    assert wanted.count("\nallow ") == 7 + 7, wanted
    tool = tmp_path / "kafka-acls"
    tool.write_text(f'#!/bin/sh\nexec "{broker.PROGRAM}" tool "{broker.shared().dir}" kafka-acls "$@" >/dev/null\n')
    tool.chmod(0o755)
    subprocess.run(["sh", "-c", wanted], check=True, timeout=100,
                   env=dict(host.environment, KAFKA_ACLS=str(tool), BROKERS=host.brokers))
    rights = [right for right in host.run("topics", "plan", "--acl", "--json").ok().objects
              if right.get("principal") in ("User:alpha", "User:alice")]
    assert len(rights) >= 7 + 7
    wait_until(lambda: all(acls.in_force(host.brokers, right) for right in rights), what="the rights to be in force")
    by_sasl(host, "alpha")
    worker = host.worker("alpha")
    wait_until(lambda: worker.events("worker.started") or not worker.alive, what="the worker to start")
    assert worker.alive, worker.log
    by_sasl(host, "alice")
    turn = host.published("alpha", "reviewer", "t-1", "--wait", "--timeout", "30")
    assert host.ends(turn, "completed")["role"] == "reviewer"
    assert [one["turn_id"] for one in host.turns()] == [turn], "beta's turns are hidden, alpha's are not"
    assert host.run("services", "--json").status in (0, 4)
    host.run("dlq", "list", "--json").ok()
    host.publish("beta", "reviewer", "t-2").refused("not_permitted", 4)
    host.run("turns", "list", "--service", "beta", "--json").refused("not_permitted", 4)
    worker.stop()
    by_sasl(host, "alpha")
    other = host.worker("beta")
    assert other.wait() == 4 and "User:alpha" in other.log and host.topic("handoff", "beta") in other.log, other.log
