"""Compute the chunks of a study that its store lacks: here, or by the workers of an executor.

Workers are those of a `concurrent.futures` executor; ones that die are replaced.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import socket
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from functools import cache, lru_cache
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from jaxmbd.campaign.origin import provenance
from jaxmbd.campaign.parcel import put_parcel, take_parcel
from jaxmbd.campaign.session import Session, differences
from jaxmbd.campaign.store_files import StoreError, holder, revoke
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.lanes import stopping
from jaxmbd.plumbing import warn_user

_IMPORTED_BY = os.getpid()
_LOOK = 0.3
"""Seconds between two looks whether the run still goes on."""


class Work(Protocol):
    """What a study is to those who run it.

    It may also have ``prepare(start, stop)``: embedded runs call it for the next chunk while one is
    computed, and give `compute` what it returns as a third argument.
    """

    def compute(self, start: int, stop: int, /) -> Mapping[str, Any]:
        """Every field of the layout for samples from `start` to before `stop`."""
        ...


class ChunkReport(NamedTuple):
    """One stored chunk.

    Attributes:
        chunk: its number.
        rows: number of its samples.
        failures: how many of them have a ``status`` that is not 0.
        computing: seconds in which it was computed.
        storing: seconds in which it was written.
        where: host and process.
        unlike: in what that process differs from the one that runs the study (versions, processor).
    """

    chunk: int
    rows: int
    failures: int
    computing: float
    storing: float
    where: str
    unlike: tuple[str, ...] = ()


def failures(arrays: Mapping[str, Any]) -> int:
    """Number of samples of a chunk that failed."""
    return int(np.count_nonzero(arrays["status"])) if "status" in arrays else 0


def here() -> str:
    """Host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def log_file(path: Path) -> Path:
    """The record of runs, beside the store: JSON lines. Nothing depends on it."""
    return path.with_name(path.name + ".log")


def note(path: Path, event: str, **about: Any) -> None:
    """Append a line to the record; it does not matter if that fails."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "where": here(), "event": event, **about}
    try:
        with open(log_file(path), "ab", buffering=0) as file:
            file.write((json.dumps(line) + "\n").encode())
    except OSError:
        pass


class Order(NamedTuple):
    """What a worker needs to know of a run.

    Attributes:
        path: of the store.
        token: of the run; another one in the lock means that the run has ended.
        parcel: name of the pickled study.
        x64: whether numbers are of double precision.
        conditions: of the process that runs the study, as JSON (`conditions`).
    """

    path: str
    token: str
    parcel: str
    x64: bool
    conditions: str


class Failed(NamedTuple):
    """Why a worker could not do a chunk.

    Attributes:
        error: what was raised.
        trace: where, as text.
        where: host and process.
        over: the run had ended.
    """

    error: BaseException
    trace: str
    where: str
    over: bool = False


class RunIsOver(RuntimeError):
    """The run that a chunk belongs to was stopped, or another took the store."""


def compute_chunk(order: Order, k: int, attempt: int) -> ChunkReport | Failed:
    """Compute chunk `k` and write it into the store; errors are returned, so that they travel.

    Dask gives calls with equal arguments one result; the number of the attempt makes them differ.
    """
    del attempt
    try:
        _check_place(order)
        return _compute(order, k)
    except RunIsOver as error:
        return Failed(error, "", here(), over=True)
    except Exception as error:  # of the user's function, or of writing
        over = not _goes_on(order)
        return Failed(_sendable(error), traceback.format_exc(), here(), over)


def _compute(order: Order, k: int) -> ChunkReport:
    path, store = Path(order.path), _opened(order)
    start, stop = store.rows(k)
    if (path / store.mark(k)).exists():  # only the report was lost, with the worker that wrote it
        return ChunkReport(k, stop - start, failures(store.read(k)), 0.0, 0.0, here())
    study = take_parcel(path, order.parcel)
    note(path, "computing", chunk=k)
    begun = time.perf_counter()
    with _watched(order):
        arrays = study.compute(start, stop)
    computed = time.perf_counter()
    if not _goes_on(order):
        raise RunIsOver(f"the run into {path} has ended")
    store.write(k, arrays)
    stored = time.perf_counter()
    times = (computed - begun, stored - computed)
    return ChunkReport(k, stop - start, failures(arrays), *times, here(), _unlike(order))


@lru_cache(4)
def _opened(order: Order) -> StudyStore:
    return StudyStore.open(order.path)


def _check_place(order: Order) -> None:
    """Is this process able to take part, and does it see the run's folder?"""
    if os.getpid() != _IMPORTED_BY:
        raise ValueError(
            "a process made by fork cannot use JAX. Start fresh ones: ProcessPoolExecutor("
            "mp_context=multiprocessing.get_context('spawn'))"
        )
    path = Path(order.path)
    if not path.is_dir():
        raise StoreError(
            f"worker {here()} sees no {path}: all workers must see the store's folder by the same "
            f"path. Put it on a file system that {socket.gethostname()} shares with the others"
        )
    if not _goes_on(order):
        raise RunIsOver(f"the run into {path} has ended, or {here()} sees another folder there")
    if double_precision() != order.x64:
        jax.config.update("jax_enable_x64", order.x64)
    _end_with_parent()


def conditions() -> str:
    """On what the last bits of results depend, as JSON: versions, commit, processor, devices."""
    return json.dumps({k: x for k, x in provenance().items() if k != "machine"})


@lru_cache(4)
def _unlike(order: Order) -> tuple[str, ...]:
    return tuple(differences(json.loads(order.conditions), json.loads(conditions())))


def double_precision() -> bool:
    """Whether JAX computes in float64 here."""
    return bool(jax.config.read("jax_enable_x64"))


def _goes_on(order: Order) -> bool:
    try:
        return holder(Path(order.path)).get("token") == order.token
    except OSError:
        return False


@contextmanager
def _watched(order: Order) -> Iterator[None]:
    """While a chunk is computed: kernels stop when its run ends, by Ctrl-C or a newer one."""
    finished = threading.Event()

    def look() -> None:
        while not finished.wait(_LOOK):
            if not _goes_on(order):
                break
        # Kernels notice between pieces of their work, however long these are. In between, other
        # threads of this process may begin theirs.
        hold = 0.1
        while not finished.wait(0.02):
            with stopping.stopped():
                finished.wait(hold)
            hold *= 2

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield
    finally:
        finished.set()
        watch.join()


@cache
def _end_with_parent() -> None:
    """A worker of a pool whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


Progress = Callable[[ChunkReport], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run; the text says what is stored and how to go on.

    Example:
        >>> from jaxmbd.campaign import Interrupted
        >>> issubclass(Interrupted, KeyboardInterrupt)
        True
    """


def run_chunks(
    session: Session,
    study: Work,
    *,
    chunks: Sequence[int] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> None:
    """Compute chunks and store each as soon as it is there.

    Without an executor they run in this process, in order: a kill costs what was computed of one
    chunk, and no more. With one, each worker computes a chunk and writes it itself, so that all of
    them must see the store's folder.

    Args:
        session: an open `session`.
        study: computes samples; must pickle if there is an executor.
        chunks: their numbers; by default those that the store lacks.
        executor: any of `concurrent.futures` (processes not made by fork), or another library's.
        progress: called after each chunk.

    Raises:
        Interrupted: Ctrl-C.
        StoreError: a chunk cannot be written.
        Exception: whatever the study raises.
    """
    store = session.store
    todo = store.missing() if chunks is None else list(chunks)

    def told(report: ChunkReport) -> None:
        note(store.path, "stored", **report._asdict())
        if progress is not None:
            progress(report)

    note(store.path, "begin", chunks=len(todo), of=store.chunks, executor=type(executor).__name__)
    try:
        if executor is None:
            _run_here(store, study, todo, told)
        else:
            run_by_workers(session, study, todo, executor, told)
    except KeyboardInterrupt:
        note(store.path, "interrupted")
        stored = store.chunks - len(store.missing())
        raise Interrupted(
            f"stopped by Ctrl-C: {stored} of {store.chunks} chunks are stored in {store.path}; "
            "run the same study into it again to go on"
        ) from None
    except BaseException as error:
        note(store.path, "failed", error=repr(error))
        raise
    note(store.path, "end")


def _run_here(store: StudyStore, study: Work, todo: list[int], told: Progress) -> None:
    """While a chunk is computed, the next one's inputs are drawn and the last one goes to disk.

    What goes to disk is in the hands of the operating system by then and survives a kill: only the
    chunk that is being computed is lost. A power cut loses the one before too.
    """
    prepare: Any = getattr(study, "prepare", None)
    stored: Future[ChunkReport] | None = None
    with ThreadPoolExecutor(1) as drawer, ThreadPoolExecutor(1) as writer:
        ahead = drawer.submit(prepare, *store.rows(todo[0])) if prepare and todo else None
        for i, k in enumerate(todo):
            note(store.path, "computing", chunk=k)
            (start, stop), begun = store.rows(k), time.perf_counter()
            prepared = [] if ahead is None else [ahead.result()]
            if prepare and i + 1 < len(todo):
                ahead = drawer.submit(prepare, *store.rows(todo[i + 1]))
            arrays = study.compute(start, stop, *prepared)
            computing = time.perf_counter() - begun
            if stored is not None:
                told(stored.result())
            begun = time.perf_counter()
            checksums = store.stage(k, arrays)
            times = (computing, time.perf_counter() - begun)
            report = ChunkReport(k, stop - start, failures(arrays), *times, here())
            stored = writer.submit(_settled, store, report, checksums)
        if stored is not None:
            told(stored.result())


def _settled(store: StudyStore, report: ChunkReport, checksums: Mapping[str, int]) -> ChunkReport:
    store.settle(report.chunk, checksums)
    return report


IN_FLIGHT = 256
"""Chunks handed to the executor at a time; it must keep all its workers busy."""
TRIES = 4
"""Times that a chunk is handed out if workers die of it."""
_SILENCE = 300.0
"""Seconds without any chunk after which the user is warned that there may be no workers."""
_NOBODY = (
    f"no chunk has come back for {_SILENCE:.0f} s: unless chunks take that long, the executor has "
    "no workers that live. The run waits for them; stop it by Ctrl-C, nothing is lost"
)
_SEEN_WITHIN = 10.0
"""Seconds in which a shared file system shows what a worker has written."""


def run_by_workers(
    session: Session,
    study: Work,
    todo: Sequence[int],
    executor: Executor,
    told: Callable[[ChunkReport], None],
) -> None:
    """Let workers compute and store chunks; returns when all are stored.

    Raises:
        TypeError: the study cannot be pickled.
        RuntimeError: workers died too often, or all of them.
        Exception: what a worker raised.
    """
    store = session.store
    parcel = put_parcel(store.path, study)
    order = Order(str(store.path), session.token, parcel, double_precision(), conditions())
    waiting, running, tries = deque(todo), {}, Counter[int]()
    unlike: set[tuple[str, ...]] = {()}
    silent = False
    try:
        while waiting or running:
            while waiting and len(running) < IN_FLIGHT:
                k = waiting.popleft()
                tries[k] += 1
                running[_submitted(executor, order, k, tries[k])] = k
            ended = wait(running, timeout=_SILENCE, return_when=FIRST_COMPLETED).done
            if not ended and not silent:
                silent = True
                warn_user(_NOBODY)
            for future in ended:
                k = running.pop(future)
                found = _result(future, k, tries[k], store)
                if found is None:
                    waiting.append(k)
                else:
                    _warn_of(found, unlike)
                    told(found)
    except BaseException:
        revoke(store.path)  # workers stop what they compute
        for future in running:
            future.cancel()
        raise


def _warn_of(report: ChunkReport, known: set[tuple[str, ...]]) -> None:
    """Warn of a worker that is not like this process, once for each way to differ."""
    if report.unlike not in known:
        known.add(report.unlike)
        begin = f"worker {report.where} is not like this process (here -> there): bits may differ"
        warn_user("\n  - ".join([begin, *report.unlike]))


def _submitted(executor: Executor, order: Order, k: int, attempt: int) -> Future[Any]:
    try:
        return executor.submit(compute_chunk, order, k, attempt)
    except BrokenExecutor as error:
        raise _broken(k) from error


def _result(future: Future[Any], k: int, tries: int, store: StudyStore) -> ChunkReport | None:
    """The report of a chunk; None if its worker died and it should be tried again."""
    try:
        found = future.result()
    except BrokenExecutor as error:
        raise _broken(k) from error
    except Exception as error:  # the executor's own: the worker died, or could not be reached
        if tries < TRIES:
            note(store.path, "worker lost", chunk=k, error=repr(error))
            return None
        raise RuntimeError(
            f"chunk {k} was lost {tries} times with its worker ({error!r}): look into the workers' "
            "own logs; too little memory is the usual cause. What is stored is safe: run the same "
            "study again to go on"
        ) from error
    if isinstance(found, Failed):
        found.error.add_note(f"in chunk {k}, by worker {found.where}\n{found.trace}".rstrip())
        raise found.error
    end = time.monotonic() + _SEEN_WITHIN
    while not (store.path / store.mark(k)).exists():
        if time.monotonic() > end:
            raise StoreError(
                f"worker {found.where} stored chunk {k}, but not into the {store.path} seen here: "
                "it must be on a file system that all share"
            )
        time.sleep(0.1)
    return found


def _broken(k: int) -> RuntimeError:
    return RuntimeError(
        f"a worker process ended suddenly, and its pool with it (about chunk {k}): too little "
        "memory is the usual cause. What is stored is safe: run the same study again, with a new "
        "executor, to go on"
    )
