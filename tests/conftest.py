"""Settings that must be in place before any test computes: float64 and the compilation cache.

Also: which tests share a worker, and what each worker has cost.
"""

import ctypes
import gc
import os
import resource
from collections import Counter
from pathlib import Path

# Loading from the compilation cache logs harmless lines by the page.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import small_programs  # noqa: E402

small_programs.prepare()

import jax  # noqa: E402
import pytest  # noqa: E402
import runtime_shapes  # noqa: E402
from comparisons import Comparisons, compared  # noqa: E402, F401

runtime_shapes.check()

from graph_verifier import verify  # noqa: E402
from room_for_frames import with_room  # noqa: E402

from jaxmbd.lanes.ir import graph  # noqa: E402
from jaxmbd.lanes.targets import cpu  # noqa: E402

HERE = Path(__file__).resolve().parent
USUAL_EFFORT = cpu.effort
graph.CHECKS.append(verify)
# Tracing makes millions of objects that live on: the default collects every 700 of them.
gc.set_threshold(100_000, 20, 20)
jax.config.update("jax_enable_x64", True)

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    cache = HERE.parent / ".cache" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Comparisons())


COSTS = pytest.StashKey[dict[str, str]]()
BUDGETS = {
    "dynamics": 120, "(whole package)": 110, "lanes": 90, "analysis": 65, "model": 50,
    "suspension": 35, "zoo": 30, "formulations": 30, "io": 28, "observe": 28, "viz": 25,
    "benchmarks": 20, "torch": 15, "ml": 25, "synthesis": 15, "identification": 15,
    "campaign": 12,
}  # fmt: skip
"""CPU seconds that the tests of a directory may take, slow ones apart, on a quiet machine; of any
other 10. Together they are six minutes of two cores. What grows beyond makes room first."""


DEAREST = (
    "test_doctests.py",
    "test_examples.py",
    "dynamics/test_identities.py",
    "dynamics/test_chains_of_loops.py",
    "formulations/test_particles.py",
    "dynamics/test_runs.py",
)
"""Files that take longest; they start first, so that no worker waits for another at the end."""


def pytest_collection_modifyitems(items):
    """The dearest files first. A file's tests share a worker (``--dist loadfile``)."""
    order = {name: k for k, name in enumerate(DEAREST)}

    def place(item):
        return order.get(item.path.relative_to(HERE).as_posix(), len(order))

    items.sort(key=place)


AROUND = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """The tests, with room for Python's frames."""
    if session.stash.get(AROUND, False):
        return None  # let others run the tests
    session.stash[AROUND] = True
    return with_room(lambda: session.config.hook.pytest_runtestloop(session=session))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """LLVM generates code as for users where that is what is tested, else as fast as it can."""
    usual = item.path.parent.name == "lanes" or item.path.name == "test_default_optimisation.py"
    cpu.effort = USUAL_EFFORT if usual else 0


def resident() -> float:
    """What this process holds in memory now [GiB]; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 2**30


LEFT = pytest.StashKey[float]()
"""What stayed in memory when it was last cleared [GiB]."""


def pytest_runtest_teardown(item, nextitem):
    """Compiled programs that no test shares any more go, before a worker fills the machine.

    Within a file tests share what they compile, so there it takes more for them to go. Each time
    costs three seconds and new traces of what all tests share. What stays grows to 1.4 GiB, as
    kernels are kept: a limit near that clears after each file, and the suite takes twice as long.
    Slow tests share little and compile much: there the limit is lower, but above what stays.
    """
    together = nextitem is not None and nextitem.path == item.path
    most = 1.95 if together else 1.75
    if item.get_closest_marker("slow"):
        most = max(most - 0.55, min(most, item.config.stash.get(LEFT, 0.0) + 0.3))
    if resident() > most:
        jax.clear_caches()
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc keeps freed memory otherwise
            libc.malloc_trim(0)
        item.config.stash[LEFT] = resident()


@pytest.fixture
def few_objects():
    """Python's collector, and its list of all objects, leave out what there was before."""
    gc.freeze()
    yield
    gc.unfreeze()


SPENT = pytest.StashKey[Counter[str]]()
"""CPU seconds of the tests of each directory."""


def seconds() -> float:
    """CPU seconds that this process, and those it started, have used so far."""
    used = (resource.getrusage(x) for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


def cost() -> str:
    """What this process, and those it started, have used so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{seconds():.0f} s of CPU, peak memory {peak:.2f} GiB"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    begun = seconds()
    result = yield
    place = item.path.relative_to(HERE).parts
    spent = item.config.stash.setdefault(SPENT, Counter())
    spent[place[0] if len(place) > 1 else "(whole package)"] += seconds() - begun
    return result


def pytest_unconfigure():
    """The end of the process: what is left needs no collector, which takes seconds for it."""
    gc.freeze()
    gc.disable()


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cost"] = cost()
        session.config.workeroutput["spent"] = dict(session.config.stash.get(SPENT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    costs = node.config.stash.setdefault(COSTS, {})
    costs[node.gateway.id] = output.get("cost", "crashed")
    node.config.stash.setdefault(SPENT, Counter()).update(output.get("spent", {}))


def pytest_terminal_summary(terminalreporter, config):
    for worker, text in sorted(config.stash.get(COSTS, {"the only process": cost()}).items()):
        terminalreporter.write_line(f"{worker}: {text}")
    spent = config.stash.get(SPENT, Counter()).most_common()
    if len(spent) > 1:
        each = ", ".join(f"{place} {x:.0f} of {BUDGETS.get(place, 10)}" for place, x in spent)
        terminalreporter.write_line(f"CPU seconds of each directory, and its budget: {each}")
