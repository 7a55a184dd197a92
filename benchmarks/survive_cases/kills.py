"""Kills at random moments: of the process that runs alone, of workers, of the driver of workers."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from survive_cases.damage import error_of
from survive_cases.stores import Outcome, Record, done, files, leftovers


def forked(act: Callable[[], Any]) -> int:
    """Run `act` in a child; this process must not have used JAX, zarr or dask yet.

    The child has everything imported, so that a trial is not mostly the import of JAX.
    """
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        act()
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def killed_runs(
    act: Callable[[Path], None],
    folder: Path,
    kills: int,
    seed: int,
    settle: Callable[[int], Any],
    workers: int = 1,
) -> Outcome:
    """Kill children that run a study until `kills` are sent; each store is run to its end.

    Args:
        act: runs the study into a path.
        folder: for the stores.
        kills: how many.
        seed: of the moments.
        settle: called with the killed child after each kill, before the store is looked at.
        workers: of the run, each of which may lose a chunk by a kill.
    """
    rng, begun = random.Random(seed), time.monotonic()
    whole = folder / "whole.zarr"
    took = _to_the_end(act, whole)
    expected, out = files(whole), Outcome(chunks=len(done_now(whole)), allowed=workers)
    while out.kills < kills:
        path = folder / f"killed{out.stores}.zarr"
        record, before = Record(path), set()
        while True:
            child = forked(lambda p=path: act(p))
            status = _wait(child, rng.uniform(0.0, took) if out.kills < kills else None)
            if status is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                out = out._replace(kills=out.kills + 1)
                settle(child)
            elif status != 0:
                raise SystemExit(f"a run into {path} failed")
            after, computed = done_now(path), record.begun()
            lost = len(computed) - len(after - before)
            out = out._replace(
                lost=out.lost + lost,
                most_lost=max(out.most_lost, lost),
                twice=out.twice + len(before & set(computed)),
            )
            before = after
            if status == 0:
                break
        same = files(path) == expected and not leftovers(path)
        out = out._replace(stores=out.stores + 1, identical=out.identical + same)
    return out._replace(seconds=time.monotonic() - begun)


def told(act: Callable[[], Any]) -> Any:
    """What `act` returns in a child, as JSON: this process must not use zarr, because it forks."""
    read, write = os.pipe()

    def tell() -> None:
        with os.fdopen(write, "w") as pipe:
            json.dump(act(), pipe)

    child = forked(tell)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("a child failed")
    return json.loads(text)


def done_now(path: Path) -> set[int]:
    """`done`, in a process of its own."""
    return set(told(lambda: sorted(done(path))))


def two_at_once(act: Callable[[Path], None], path: Path, expected: Path) -> dict[str, Any]:
    """A second process while one runs, stopped meanwhile: the second's error; the first's store."""
    child = forked(lambda: act(path))
    while not path.exists():
        time.sleep(0.002)
    os.kill(child, signal.SIGSTOP)
    error = told(lambda: error_of(act, path))
    os.kill(child, signal.SIGCONT)
    status = _wait(child, None)
    return {"error": error, "identical": status == 0 and files(path) == files(expected)}


def _to_the_end(act: Callable[[Path], None], path: Path) -> float:
    """Run twice, to have the time without compiling."""
    for target in (path.with_name("first.zarr"), path):
        begun = time.monotonic()
        if _wait(forked(lambda t=target: act(t)), None):
            raise SystemExit("the uninterrupted run failed")
    return time.monotonic() - begun


def _wait(child: int, within: float | None) -> int | None:
    """Exit status of a child, or None if it runs for longer than `within` seconds."""
    end = None if within is None else time.monotonic() + within
    while end is None or time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def killed_workers(
    act: Callable[[Path], None],
    folder: Path,
    kills: int,
    seed: int,
    workers: Callable[[], list[int]],
    pause: float,
) -> Outcome:
    """Kill workers one by one while studies run; nobody starts a run again.

    Args:
        act: runs the study into a path by the workers.
        folder: for the stores; `whole.zarr` is the uninterrupted one.
        kills: how many.
        seed: of the moments and the victims.
        workers: process numbers of those that live.
        pause: most seconds between two kills.
    """
    rng, begun = random.Random(seed), time.monotonic()
    whole = folder / "whole.zarr"
    if not whole.exists():
        _to_the_end(act, whole)
    expected, out = files(whole), Outcome(chunks=len(done_now(whole)))
    while out.kills < kills:
        path = folder / f"workers{out.stores}.zarr"
        child = forked(lambda p=path: act(p))
        while (status := _wait(child, rng.uniform(0.0, pause))) is None:
            living = workers()
            if living and out.kills < kills:
                os.kill(rng.choice(living), signal.SIGKILL)
                out = out._replace(kills=out.kills + 1)
        if status:
            raise SystemExit(f"a run into {path} failed")
        same = files(path) == expected and not leftovers(path)
        lost = len(Record(path).begun()) - out.chunks
        out = out._replace(
            stores=out.stores + 1, identical=out.identical + same, lost=out.lost + lost
        )
    return out._replace(seconds=time.monotonic() - begun)


def gone(child: int, within: float = 20.0) -> None:
    """Wait until no process is left of a killed child's session; it is an error if one stays."""
    end = time.monotonic() + within
    while left := [p for p in Path("/proc").glob("[0-9]*") if _session(p) == child]:
        if time.monotonic() > end:
            raise SystemExit(f"orphans of a killed run stay: {sorted(p.name for p in left)}")
        time.sleep(0.05)


def _session(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError):
        return -1
