"""SIGHUP: configuration, credentials, keys and trust are read again while turns run; an attempt keeps what it started with."""
import os
import signal
import threading
import time

import pytest

import runs
import scrape
import yamlout
from host import SLOW, attempts, ready, wait_until


def rewrite(host, **settings):
    """Writes baton.yaml with these settings changed."""
    host.settings.update(settings)
    path = os.path.join(host.dir, "baton.yaml")
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(yamlout.dump(host.settings))
    os.chmod(path + ".new", 0o600)
    os.rename(path + ".new", path)


def hup(worker, event="reloaded"):
    """Sends it, and gives the line by which the process answers."""
    name = event if "." in event else f"{worker.kind}.{event}"
    before = len(worker.events(name))
    worker.process.send_signal(signal.SIGHUP)
    return wait_until(lambda: worker.events(name)[before:], 20, lambda: f"{name} of {worker.id}\n{worker.log[-3000:]}")[0]


def secret(host, name, text):
    path = os.path.join(host.dir, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return {"file": path}


def alpha(host, *names, **more):
    """The service with these profiles, each with a secret of its own; `more` as Host.service takes it."""
    profiles = [{"name": name, "env": {"WHO": secret(host, f"secret-{name}", f"secret-of-{name}")}} for name in names]
    made = host.service(**more, **({"profiles": profiles} if names else {}))
    made["executor"]["env"]["FAKE_SERVICE"] = {"value": "alpha"}
    return made


@pytest.mark.core
def test_an_attempt_keeps_what_it_started_with(fresh, tmp_path):
    """Profile, credential, environment and deadline change while an attempt runs: it ends as it began, the next has the new."""
    host, go = fresh, tmp_path / "go"
    host.configure({"alpha": alpha(fresh, "one")})
    host.plan(default=[{}], tasks={"t-1": [{"until": str(go)}]})
    worker = ready(host.worker("alpha", "w1"))
    running = host.published("alpha", "owner", "t-1")
    host.called(1, task="t-1")
    rewrite(host, services={"alpha": alpha(host, "two", "three", deadline="50ms", env={"MORE": {"value": "yes"}})})
    line = hup(worker)
    assert "services.alpha.profiles" in line["changed"] and "services.alpha.deadline" in line["changed"], line
    assert host.state(running) == "running"
    rewrite(host, services={"alpha": alpha(host, "two", "three", env={"MORE": {"value": "yes"}})})
    hup(worker)
    ended = host.ends(host.published("alpha", "owner", "t-3"), "completed")
    assert ended["attempts"][0]["profile"] == "two", ended
    assert host.state(running) == "running"
    go.touch()
    done = host.ends(running, "completed")
    assert [(one["profile"], one["state"]) for one in done["attempts"]] == [("one", "completed")], done
    (first,), (third,) = host.calls(task="t-1"), host.calls(task="t-3")
    assert first["env"]["WHO"] == "secret-of-one" and "MORE" not in first["env"]
    assert third["env"]["WHO"] == "secret-of-two" and third["env"]["MORE"] == "yes"
    assert "secret-of-" not in worker.log


def test_a_deadline_that_changes_is_the_next_attempts(fresh, tmp_path):
    host, go = fresh, tmp_path / "go"
    host.configure({"alpha": None}, on_failure={"timeout": ["park"]})
    host.plan(tasks={"t-1": [{"until": str(go)}], "t-2": [{"hang": True}]})
    worker = ready(host.worker("alpha", "w1"))
    running = host.published("alpha", "owner", "t-1")
    host.called(1, task="t-1")
    rewrite(host, services={"alpha": alpha(host, deadline=f"{int(700 * SLOW)}ms")})
    hup(worker)
    assert host.ends(host.published("alpha", "owner", "t-2"), "parked")["attempts"][0]["class"] == "timeout"
    assert host.state(running) == "running"
    go.touch()
    host.ends(running, "completed")


def test_a_budget_that_is_lowered_holds(fresh):
    """budget and retry: the turn that waits for its next try is judged by the new ones."""
    host = fresh
    host.configure({"alpha": None}, budget={"failures": 60}, circuit={"after": 1000, "for": "1s", "probe": "1s"},
                   retry={"first": "100ms", "factor": 1, "max": "100ms", "jitter": 0, "each_service": 900, "max_wait": "15m"})
    host.plan(default=[{"class": "unavailable"}])
    worker = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    wait_until(lambda: len(host.calls()) >= 4, what="some attempts")
    rewrite(host, budget={"failures": 3})
    assert "budget.failures" in hup(worker)["changed"]
    parked = host.ends(turn, "parked")
    assert 4 <= len(parked["attempts"]) < 30 and parked["code"] == "attempts_exhausted", parked
    rewrite(host, on_failure={"unavailable": ["park"]})
    assert hup(worker)["changed"] == "on_failure.unavailable"
    assert len(host.ends(host.published("alpha", "owner", "t-2"), "parked")["attempts"]) == 1


@pytest.mark.drivers("local")
def test_what_does_not_load_changes_nothing(fresh):
    """A mistake is told with file, line and what to do, and counted; the old configuration goes on, and the mended one is taken."""
    host = fresh
    host.configure({"alpha": alpha(fresh, "one")})
    worker = ready(host.worker("alpha", "w1", *scrape.LISTEN))
    where = scrape.port(worker)
    path = os.path.join(host.dir, "baton.yaml")
    with open(path, encoding="utf-8") as file:
        good = file.read()

    def broken(text, says, event="config.not_read"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        line = hup(worker, event)
        assert says in line["error"], line
        return line

    line = broken(good + "budgett: {failures: 1}\n", "budget")
    number = good.count("\n") + 1
    assert f"baton.yaml:{number}:" in line["error"] and "stays in force" in line["meaning"] and "baton config check" in line["mend"], line
    broken(good + "a: [\n", "baton.yaml:")
    broken(good.replace("alpha", "gamma"), "no service 'alpha'", "worker.not_reloaded")
    broken(good.replace("secret-one", "secret-gone"), "secret-gone", "worker.not_reloaded")
    os.rename(path, path + ".away")
    hup(worker, "config.not_read")
    assert host.run("publish", "--config", path + ".away", "--service", "alpha", "--role", "owner", "--task", "t-1", "--wait", "--json").ok()
    assert host.calls()[0]["env"]["WHO"] == "secret-of-one"
    assert scrape.number(where, "baton_reloads_failed_total") == 5 and scrape.number(where, "baton_reloads_total") == 0
    os.rename(path + ".away", path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(good)
    assert hup(worker)["changed"] == "nothing"
    assert scrape.number(where, "baton_reloads_total") == 1


@pytest.mark.drivers("local")
def test_sighup_to_every_process_ends_no_attempt(fresh, tmp_path):
    """A terminal that is closed, or a service manager, tells the guards of executors, too: what runs goes on."""
    host, go = fresh, tmp_path / "go"
    host.configure({"alpha": None})
    host.plan(default=[{"until": str(go)}])
    worker = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    with open(f"/proc/{host.called(1)[0]['pid']}/stat", encoding="utf-8") as file:
        guard = int(file.read().rsplit(")", 1)[1].split()[1])
    with open(f"/proc/{guard}/comm", encoding="utf-8") as file:
        assert file.read().strip() == "baton-guard"
    os.kill(guard, signal.SIGHUP)
    hup(worker)
    assert host.state(turn) == "running"
    go.touch()
    assert [one["state"] for one in host.ends(turn, "completed")["attempts"]] == ["completed"]


@pytest.mark.drivers("local")
def test_half_a_file_is_not_taken(fresh):
    """The first half of a file is a configuration, too: while somebody writes, it is waited for, and then refused."""
    host = fresh
    host.configure({"alpha": alpha(fresh, "one")})
    worker = ready(host.worker("alpha", "w1"))
    path = os.path.join(host.dir, "baton.yaml")
    with open(path, encoding="utf-8") as file:
        good = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(good)
        file.flush()
        before = len(worker.events("worker.reloaded"))
        worker.process.send_signal(signal.SIGHUP)
        file.write("budget: {failures: 7}\n")
    line = wait_until(lambda: worker.events("worker.reloaded")[before:], 20, "a reload")[0]
    if SLOW == 1:
        assert line["changed"] == "budget.failures", line
    enough = threading.Event()

    def write():
        with open(path, "a", encoding="utf-8") as file:
            while not enough.is_set():
                file.write("# more\n")
                file.flush()
                time.sleep(0.002)

    def answered():
        return worker.events("config.not_read") + worker.events("worker.reloaded")[before + 1:]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):  # the writer may have stood still for a moment
            asked = len(answered())
            worker.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(answered()) > asked, 20, "an answer")
            if worker.events("config.not_read"):
                break
        assert "is being written" in worker.events("config.not_read")[0]["error"]
    finally:
        enough.set()
        writer.join()
    assert hup(worker)


@pytest.mark.drivers("local")
def test_what_is_no_file_stops_nothing(fresh):
    """A pipe, a folder or a huge file in the place of the configuration: told, and the worker goes on."""
    host = fresh
    host.configure({"alpha": None})
    worker = ready(host.worker("alpha", "w1"))
    path = os.path.join(host.dir, "baton.yaml")
    os.rename(path, path + ".away")
    os.mkfifo(path)
    assert "no regular file" in hup(worker, "config.not_read")["error"]
    os.unlink(path)
    os.mkdir(path)
    assert "no regular file" in hup(worker, "config.not_read")["error"]
    os.rmdir(path)
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    assert hup(worker, "config.not_read")["error"]
    os.rename(path + ".away", path)
    assert hup(worker)["changed"] == "nothing"
    host.published("alpha", "owner", "t-1", "--wait")


@pytest.mark.drivers("local")
def test_what_needs_a_restart_is_named(fresh):
    """It stays as it was, and the log says so by name; what may change beside it does."""
    host = fresh
    host.configure({"alpha": None, "beta": None})
    worker = ready(host.worker("alpha", "w1", "--set", "budget.losses=7"))
    rewrite(host, state_dir="elsewhere", lease="9s", budget={"failures": 5}, roles={"owner": {"chain": ["alpha", "beta"], "read_only": True}},
            services={"alpha": alpha(host, parallel=9, roles=["owner"]), "beta": alpha(host, parallel=7)})
    before = len(worker.events("config.needs_restart"))
    line = hup(worker)
    told, = worker.events("config.needs_restart")[before:]
    for key in ("state_dir", "lease", "services.alpha.parallel", "services.alpha.roles", "roles.owner.chain"):
        assert key in told["keys"], (key, told)
        assert key not in line["changed"]
    assert "beta" not in told["keys"] and "budget" not in told["keys"] and "restart" in told["meaning"], told
    assert "budget.failures" in line["changed"] and "roles.owner.read_only" in line["changed"] and "losses" not in line["changed"], line
    assert not os.path.exists(os.path.join(host.dir, "elsewhere"))
    turn = host.published("alpha", "owner", "t-1")
    host.ends(turn, "completed")


def test_a_key_that_is_rotated_signs_from_then_on(fresh):
    """The new pair is taken without a restart, and what was signed by either is believed; a lease goes on under the new one."""
    host = fresh
    host.configure({"alpha": None})
    worker = ready(host.worker("alpha", "w1"))
    first = host.published("alpha", "owner", "t-1", "--wait")
    host.run("keys", "rotate", "alpha").ok()
    line = hup(worker)
    second = host.published("alpha", "owner", "t-2", "--wait")
    signed = {record.json()["turn_id"]: record.header("baton-sig").split(" ")[1] for record in host.log.records(host.topic("outcomes", None))
              if record.json()["event"] == "completed"}
    assert signed[first] != signed[second] and f"the key, {signed[second]} now" in line["changed"], (signed, line)
    assert hup(worker)["changed"] == "nothing"


@pytest.mark.core
def test_a_key_is_rotated_while_leases_are_held(fresh, tmp_path):
    """Partitions move while attempts run: renewals and reports go on under the new key, and no attempt is lost."""
    host, go = fresh, tmp_path / "go"
    host.configure({"alpha": alpha(fresh, parallel=8)})
    host.plan(default=[{"until": str(go)}])
    first = ready(host.worker("alpha", "w1"))
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(8)]
    host.called(8)
    second = ready(host.worker("alpha", "w2"))
    host.shared(first, second)
    host.run("keys", "rotate", "alpha").ok()
    assert "the key," in hup(first)["changed"]
    go.touch()
    for turn in turns:
        host.ends(turn, "completed", 40)
        assert [state for _, state, _ in attempts(host, turn)] == ["completed"]
    assert not [record for record in host.letters() if record.get("code") in ("bad_signature", "unknown_key")]


@pytest.mark.drivers("local")
def test_a_key_that_nobody_trusts_is_not_taken(fresh):
    """What it signs would be believed by nobody: the one before goes on, and the log says why."""
    host = fresh
    host.configure({"alpha": None})
    worker = ready(host.worker("alpha", "w1"))
    path = os.path.join(host.dir, "keys", "alpha.pem")
    with open(os.path.join(host.dir, "keys", host.identity + ".pem"), "rb") as file, open(path, "rb+") as mine:
        other, old = file.read(), mine.read()
        mine.seek(0), mine.write(other), mine.truncate()
    os.rename(os.path.join(host.dir, "trust"), os.path.join(host.dir, "away"))
    os.mkdir(os.path.join(host.dir, "trust"), 0o755)
    for name in os.listdir(os.path.join(host.dir, "away")):
        if not name.startswith(host.identity):
            os.rename(os.path.join(host.dir, "away", name), os.path.join(host.dir, "trust", name))
    line = hup(worker, "worker.not_reloaded")
    assert line["what"] == "the key" and line["code"] == "unauthenticated" and "not known" in line["error"], line
    os.chmod(path, 0o644)
    assert hup(worker, "worker.not_reloaded")["code"] == "key_unsafe"
    os.chmod(path, 0o600)
    for name in os.listdir(os.path.join(host.dir, "away")):
        os.rename(os.path.join(host.dir, "away", name), os.path.join(host.dir, "trust", name))
    with open(path, "wb") as file:
        file.write(old)
    hup(worker)
    host.published("alpha", "owner", "t-1", "--wait")


@pytest.mark.drivers("local")
def test_a_profile_keeps_its_refusal_by_name(fresh):
    """R-33: in another order, and beside others, a refused profile stays refused; with another credential it is tried again."""
    host = fresh
    host.configure({"alpha": alpha(fresh, "one", "two")}, on_failure={"auth": ["rotate", "park"]})
    host.plan(tasks={"t-1": [{"class": "auth"}, {}]}, default=[{}])
    worker = ready(host.worker("alpha", "w1"))
    assert [one["profile"] for one in host.ends(host.published("alpha", "owner", "t-1"), "completed")["attempts"]] == ["one", "two"]
    rewrite(host, services={"alpha": alpha(host, "three", "one", "two")})
    hup(worker)
    rewrite(host, services={"alpha": alpha(host, "one", "two")})
    hup(worker)
    assert not worker.events("profile.cleared"), worker.log
    assert [one["profile"] for one in host.ends(host.published("alpha", "owner", "t-2"), "completed")["attempts"]] == ["two"]
    secret(host, "secret-one", "another")
    assert hup(worker)["changed"] == "credential of profile one"
    assert worker.events("profile.cleared")[0]["profile"] == "one"
    assert [one["profile"] for one in host.ends(host.published("alpha", "owner", "t-3"), "completed")["attempts"]] == ["one"]
    assert host.calls(task="t-3")[0]["env"]["WHO"] == "another"


@pytest.mark.drivers("local")
def test_a_profile_that_is_gone_ends_as_it_began(fresh, tmp_path):
    """The attempt that runs with it fails: the turn goes on with one that is there."""
    host, go = fresh, tmp_path / "go"
    host.configure({"alpha": alpha(fresh, "one")}, on_failure={"auth": ["rotate", "park"]})
    host.plan(default=[{"until": str(go), "class": "auth"}, {}])
    worker = ready(host.worker("alpha", "w1"))
    turn = host.published("alpha", "owner", "t-1")
    host.called(1)
    rewrite(host, services={"alpha": alpha(host, "two")})
    hup(worker)
    go.touch()
    assert [(one["profile"], one["class"]) for one in host.ends(turn, "completed")["attempts"]] == [("one", "auth"), ("two", None)]


@pytest.mark.core
def test_reloads_while_partitions_move(fresh):
    """Two workers, one joins and leaves, SIGHUP all the while, with another configuration each time: every turn ends once."""
    host = fresh
    host.configure({"alpha": alpha(fresh, "one")})
    host.plan(default=[{"sleep": 0.05}])
    first = host.worker("alpha", "w1")
    wait_until(lambda: first.events("worker.started"), 20, "a start")
    first.process.send_signal(signal.SIGHUP)
    turns = [host.published("alpha", "owner", f"t-{n}") for n in range(12)]
    second = host.worker("alpha", "w2")
    for n in range(12):
        rewrite(host, services={"alpha": alpha(host, *(["one", "two"] if n % 2 else ["two", "one", "three"]))}, budget={"failures": 3 + n})
        for worker in (first, second):
            if worker.events("worker.started") and worker.alive:
                worker.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(first.events("worker.reloaded")) > n, what="a reload: two signals at once are one")
        turns.append(host.published("alpha", "owner", f"u-{n}"))
        if n == 8:
            second.stop()
    for turn in turns:
        host.ends(turn, "completed", 40)
        assert [state for _, state, _ in attempts(host, turn)] == ["completed"]
    assert wait_until(lambda: len(first.events("worker.reloaded")) >= 6, what="reloads"), first.log
    assert not first.events("worker.not_reloaded") and first.alive


@pytest.mark.drivers("local")
def test_a_workflow_is_added_without_a_restart(fresh):
    """A coordinator: a start that names it is refused with what to do, and taken after SIGHUP; a new service needs a restart, and is named."""
    host = runs.with_workflows(fresh, {})
    coordinator = host.workers[-1]
    text = host.run("workflow", "show", "paired-review").ok().out.replace("name: paired-review", "name: mine")
    with open(os.open(os.path.join(host.dir, "mine.yaml"), os.O_WRONLY | os.O_CREAT, 0o644), "w", encoding="utf-8") as file:
        file.write(text)
    rewrite(host, workflows=["mine.yaml"])

    def begin(task):
        return host.run("runs", "start", "--workflow", "mine", "--task", task, "--summary", "Mend it", "--json")

    refused = begin("t-1")
    assert refused.status != 0 and "SIGHUP" in refused.out + coordinator.log, refused
    assert hup(coordinator)["changed"] == "workflows"
    assert begin("t-2").ok().one["answered"]
    rewrite(host, services=dict(host.settings["services"], delta=host.service()))
    hup(coordinator)
    assert "services.delta.roles" in coordinator.events("config.needs_restart")[-1]["keys"]
    rewrite(host, nonsense=1)
    assert "nonsense" in hup(coordinator, "config.not_read")["error"]
    del host.settings["nonsense"]
    rewrite(host)
    assert begin("t-3").ok().one["answered"], "the one before stays in force"
    host.run("keys", "rotate", "coordinator").ok()
    assert "the key," in hup(coordinator)["changed"]
    assert begin("t-4").ok().one["answered"]


@pytest.mark.drivers("local")
def test_a_workflow_that_is_removed_keeps_its_runs(fresh, tmp_path):
    """A run goes on with the bytes that it began with: the list has lost its workflow, and the file is gone. No new one starts."""
    host, go = fresh, tmp_path / "go"
    host.plan(tasks={"t-1": [{"until": str(go)}]})
    text = runs.with_workflows(fresh, {}).run("workflow", "show", "paired-review").ok().out.split("name: paired-review\n")[1]
    coordinator = host.workers[-1]
    runs.workflow(host, "mine", text)
    rewrite(host, workflows=["mine.yaml"])
    hup(coordinator)
    run = runs.start(host, workflow="mine")
    ready(host.worker("alpha", "w1"))
    host.called(1, task="t-1")
    os.unlink(os.path.join(host.dir, "mine.yaml"))
    rewrite(host, workflows=[])
    assert hup(coordinator)["changed"] == "workflows"
    before = len(runs.show(host, run)["turns"])
    go.touch()
    wait_until(lambda: len(runs.show(host, run)["turns"]) > before, 30, lambda: f"the run to go on: {runs.show(host, run)}\n{coordinator.log}")
    assert host.run("runs", "start", "--workflow", "mine", "--task", "t-2", "--summary", "Mend it", "--json").status != 0
