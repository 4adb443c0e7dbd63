"""What people do with runs, for the tests of them: start one, look at it, wait for a state; and what must hold of each."""
from host import wait_until

CHAINS = {"owner": {"chain": ["alpha"]}, "reviewer": {"chain": ["beta", "gamma"]}, "arbiter": {"chain": ["gamma"]}}


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


def path(shown):
    return [(one["by"], one["slot"], one["role"], one["service"], one["verdict"]) for one in shown["turns"]]


def taken(shown):
    return {one["name"]: one["total"] for one in shown["edges"]}


def sound(host, shown):
    """Each turn of the run was executed under its slot's role, was sent once, and each edge counts its turns (I7, I9)."""
    ends = [one.json() for one in host.log.records(host.topic("outcomes", None))]
    counted = {}
    for turn in shown["turns"]:
        counted[turn["by"]] = counted.get(turn["by"], 0) + 1
        for call in host.calls(turn=turn["turn_id"]):
            assert call["role"] == turn["role"], (call, turn)
        completed = [one for one in ends if one["event"] == "completed" and one.get("turn_id") == turn["turn_id"]]
        assert len(completed) == (1 if turn["state"] == "completed" else 0), (turn, completed)
    assert counted == taken(shown), shown
    told = [one for one in ends if one["event"] == "run_ended" and one["run_id"] == shown["run_id"]]
    assert len(told) == (0 if shown["state"] in ("active", "waiting") else shown["epoch"]), told
