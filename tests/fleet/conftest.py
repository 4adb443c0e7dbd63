"""Fixtures of the fleet tests: a fresh host for each test, on each log driver.

A test runs on both logs unless its mark says otherwise: `drivers("local")` is about the local log's
file, or not about a log at all. --logs chooses among them: both, local, kafka, or the two that
tests/run has, which together are both: core, for a run under sanitizers (all on the local log, on
Kafka only what is marked `core`), and rest, for the run beside it (all on Kafka, otherwise only what
is marked `heavy` or `alone`).
"""
import os
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import broker  # noqa: E402
from host import SLOW, Host, WaitedInVain, binary  # noqa: E402

# Who starts the tests in the background of a shell hands down an ignored SIGINT; programs inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

DRIVERS = ["local", "kafka"]
TEST_SECONDS = 120


def pytest_addoption(parser):
    parser.addoption("--logs", choices=["both", "local", "kafka", "core", "rest"], default="both", help="which log drivers")


def pytest_generate_tests(metafunc):
    if "driver" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("drivers")
    drivers, logs = list(mark.args) if mark else DRIVERS, metafunc.config.getoption("logs")
    if logs == "core":
        drivers = [one for one in drivers if one == "local" or metafunc.definition.get_closest_marker("core")]
    elif logs not in ("both", "rest"):
        drivers = [one for one in drivers if one == logs]
    metafunc.parametrize("driver", drivers or ["none"])


def driver_of(item):
    return item.callspec.params.get("driver") if hasattr(item, "callspec") else None


def seconds_of(item):
    marker = item.get_closest_marker("seconds")
    return int(marker.args[0]) if marker else TEST_SECONDS


def marked(item, *names):
    return any(item.get_closest_marker(name) for name in names)


def left_out_on_kafka(callspec, name, *values):
    return callspec.params[name] not in values if values else callspec.indices[name] > 0


def slow_early(items):
    """So that a run does not wait for one of them at its end: spread over the first quarter, which is dealt out first."""
    slow = [item for item in items if seconds_of(item) > TEST_SECONDS]
    rest = [item for item in items if seconds_of(item) <= TEST_SECONDS]
    step = max(1, len(items) // 4 // max(1, len(slow)))
    for number, item in enumerate(slow):
        rest.insert(number * step, item)
    return rest


@pytest.hookimpl(tryfirst=True, hookwrapper=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """A test for which no driver is left is left out, not skipped; a table may be shorter on Kafka."""
    for item in items:
        few = item.get_closest_marker("few_on_kafka")
        if few and item.callspec.params["driver"] == "kafka" and left_out_on_kafka(item.callspec, *few.args):
            item.add_marker("long")
    out = [item for item in items if driver_of(item) == "none"]
    if config.getoption("logs") == "rest":
        out += [item for item in items if driver_of(item) not in ("none", "kafka") and not marked(item, "heavy", "alone", "long", "agents")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]
    yield
    items[:] = slow_early(items)


def pytest_unconfigure():
    broker.end_shared()


def pytest_configure(config):
    config.addinivalue_line("markers", "drivers(name…): the log drivers that the test is about (default: both)")
    config.addinivalue_line("markers", "core: on Kafka under sanitizers, too")
    config.addinivalue_line("markers", "few_on_kafka(name, value…): with other values of that parameter (none given: but the first) it is long on Kafka")
    config.addinivalue_line("markers", "long: runs with tests/run --all only")
    config.addinivalue_line("markers", "alone: bounds a time, so tests/run runs nothing of the fleet beside it")
    config.addinivalue_line("markers", "agents: needs the real agent programs (tests/run --agents)")
    config.addinivalue_line("markers", "heavy: not repeated under sanitizers")
    config.addinivalue_line("markers", "seconds(n): may take so long")


# Who sees that a promise was broken. What they say is final; what else goes wrong on a busy machine may be its haste.
JUDGES = {"invariants.py", "outside.py", "account.py"}
JUDGING = {"check_calls", "check_topics", "check_ends"}


def is_final(excinfo):
    """Whether a failure is judged at once, and not tried once more with nothing beside it."""
    if excinfo.errisinstance((WaitedInVain, TimeoutError, subprocess.TimeoutExpired)):
        return False
    return any(os.path.basename(str(entry.path)) in JUDGES or entry.name in JUDGING for entry in excinfo.traceback)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Says of a test that it may be tried once more: tests/run does so at the end, with nothing beside it."""
    if call.excinfo and not is_final(call.excinfo):
        item.user_properties.append(("once_more", item.nodeid))


@pytest.fixture(scope="session", autouse=True)
def program():
    if not os.access(binary(), os.X_OK):
        pytest.exit(f"there is no program {binary()}: build it, or set BATON_BIN", returncode=3)


@pytest.fixture(autouse=True)
def hostile_environment(monkeypatch):
    """Whatever surrounds the tests must not matter (L-68): each begins among misleading variables."""
    for name, value in (("CI", "1"), ("BATON_ATTEMPT", "7"), ("BATON_ROLE", "owner"), ("BATON_CONFIG", "/nowhere")):
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def bounded(request):
    seconds = int(seconds_of(request.node) * SLOW)

    def late(*_):
        raise TimeoutError(f"the test is not over after {seconds} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def own_broker(request, tmp_path):
    """A broker of the test's own, not started yet: to be stopped, killed and started again."""
    if request.config.getoption("logs") == "local":
        pytest.skip("asked for the local log only")
    one = broker.Broker(str(tmp_path / "broker"))
    yield one
    if os.path.exists(one.dir):
        one.delete()


@pytest.fixture
def fresh(tmp_path, driver):
    """A host as `baton init` leaves it."""
    host = Host(str(tmp_path), driver)
    yield host
    host.finish()


@pytest.fixture
def host(fresh):
    """A host with the services alpha and beta, both of every role, executed by the fake executor."""
    return fresh.configure({"alpha": None, "beta": None})
