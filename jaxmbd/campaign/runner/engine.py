"""Chunks by the workers of a `concurrent.futures` executor; workers that die are replaced."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TYPE_CHECKING, Any

from jaxmbd.campaign.runner.parcel import put_parcel
from jaxmbd.campaign.runner.report import ChunkReport, Work, note
from jaxmbd.campaign.runner.worker import (
    Failed,
    Order,
    compute_chunk,
    conditions,
    double_precision,
)
from jaxmbd.campaign.store import StoreError, revoke
from jaxmbd.model.user_warning import warn_user

if TYPE_CHECKING:
    from jaxmbd.campaign.runner.study_session import Session
    from jaxmbd.campaign.store import StudyStore

IN_FLIGHT = 256
"""Chunks handed to the executor at a time; it must keep all its workers busy."""
TRIES = 4
"""Times that a chunk is handed out if workers die of it."""
_SILENCE = 300.0
"""Seconds without any chunk after which the user is told that there may be no workers."""
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
