"""One chunk, computed and stored by a worker, and what is reported of it."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from jaxmbd.campaign.origin import provenance
from jaxmbd.campaign.parcel import take_parcel
from jaxmbd.campaign.session import differences
from jaxmbd.campaign.store_files import StoreError
from jaxmbd.campaign.store_lock import holder
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.lanes import stopping

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
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
