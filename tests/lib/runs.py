"""What people do with runs, for the tests of them: start one, look at it, wait for a state."""
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
