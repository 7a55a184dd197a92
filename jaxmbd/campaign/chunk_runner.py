"""Compute the chunks of a study that its store lacks: here, or by the workers of an executor.

Workers are those of a `concurrent.futures` executor; ones that die are replaced.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from typing import Any

from jaxmbd.campaign.parcel import put_parcel
from jaxmbd.campaign.session import Session
from jaxmbd.campaign.store_files import StoreError
from jaxmbd.campaign.store_lock import revoke
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.campaign.worker import (
    ChunkReport,
    Failed,
    Order,
    Work,
    compute_chunk,
    conditions,
    double_precision,
    failures,
    here,
    note,
)
from jaxmbd.plumbing import warn_user

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
            checksums = store.stage(k, arrays, noted=True)
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
