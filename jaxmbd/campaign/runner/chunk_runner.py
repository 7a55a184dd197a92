"""Compute the chunks of a study that its store lacks: here, or by the workers of an executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from jaxmbd.campaign.runner.engine import run_by_workers
from jaxmbd.campaign.runner.report import ChunkReport, RunReport, Work, failures, here, note

if TYPE_CHECKING:
    from jaxmbd.campaign.runner.study_session import Session
    from jaxmbd.campaign.store import StudyStore

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
) -> RunReport:
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
    begun = time.perf_counter()
    total = RunReport()

    def told(report: ChunkReport) -> None:
        nonlocal total
        total = total.with_chunk(report, time.perf_counter() - begun)
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
    note(store.path, "end", **total._asdict())
    return total._replace(seconds=time.perf_counter() - begun)


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
