"""What people do with runs, for the tests of them: start one, look at it, wait for a state; and what must hold of each."""
import os

import proof
from host import ready, wait_until

CHAINS = {"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta", "gamma"]}, "arbiter": {"chain": ["gamma"]}}


def workflow(host, name, text):
    """Writes a workflow's file beside the configuration, whole or not at all, readable as files of people are."""
    path = os.path.join(host.dir, name + ".yaml")
    with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), "w", encoding="utf-8") as file:
        file.write(f"version: 1\nname: {name}\n" + text)
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def with_workflows(host, texts, **settings):
    """Configures a host with three services, these workflows ({name: text}) and a coordinator that is ready."""
    host.configure({"alpha": None, "beta": None, "gamma": None}, roles=CHAINS, workflows=[name + ".yaml" for name in texts], **settings)
    for name, text in texts.items():
        workflow(host, name, text)
    ready(host.worker("coordinator", "c1"))
    return host


def start(host, task="t-1", *more, workflow="paired-review"):
    done = host.run("runs", "start", "--workflow", workflow, "--task", task, "--summary", "Mend the parser", *more, "--json").ok().one
    assert done["answered"], done
    return done["run_id"]


def show(host, run):
    return host.run("runs", "show", run, "--json").ok().one


def until(host, run, state, seconds=40):
    return wait_until(lambda: (lambda one: one if one["state"] == state else None)(show(host, run)), seconds,
                      lambda: f"run {run} to be {state}: {show(host, run)}\n{host.all_logs()}")


def ask(host, *words):
    return host.run(*words, "--json", environment={"BATON_MODE": "attended"})


def run_id(fleet, requester, key):
    """The id of the run that a start asks for (RECORD.md, Requests)."""
    return "r-" + proof.sha256(b"BATON-RUN-1\0" + proof.lp(fleet) + proof.lp(requester) + proof.lp(key)).hex()[:30]


def hand(host, run, from_, to, *more, summary="go on", seconds=30):
    """What a person hands on; the answer as the command printed it."""
    return ask(host, "handoff", "--run", run, "--from", from_, "--to", to, "--summary", summary, "--timeout", f"{seconds}s", *more)


def sent(host, run):
    """Ids of the run's turns that lie in handoff topics (owners trim what they have taken in), by service."""
    found = {}
    for service in host.settings["services"]:
        for one in host.log.records(host.topic("handoff", service)):
            if one.json()["run_id"] == run:
                found.setdefault(service, set()).add(one.key.decode())
    return found


def path(shown):
    return [(one["by"], one["slot"], one["role"], one["service"], one["verdict"]) for one in shown["turns"]]


def taken(shown):
    return {one["name"]: one["total"] for one in shown["edges"]}


def sound(host, shown):
    """Each turn of the run was executed under its slot's role, was sent once, and each edge counts its turns (I7, I9)."""
    ends = [one.json() for one in host.log.records(host.topic("outcomes", None))]
    counted = {}
    for turn in shown["turns"]:
        slots = counted.setdefault(turn["by"], {})  # one taking gives each slot of its target a turn
        slots[turn["slot"]] = slots.get(turn["slot"], 0) + 1
        for call in host.calls(turn=turn["turn_id"]):
            assert call["role"] == turn["role"], (call, turn)
        completed = [one for one in ends if one["event"] == "completed" and one.get("turn_id") == turn["turn_id"]]
        assert len(completed) == (1 if turn["state"] == "completed" else 0), (turn, completed)
    assert {by: max(slots.values()) for by, slots in counted.items()} == taken(shown), shown
    told = [one for one in ends if one["event"] == "run_ended" and one["run_id"] == shown["run_id"]]
    assert len(told) == (0 if shown["state"] in ("active", "waiting") else shown["epoch"]), told
