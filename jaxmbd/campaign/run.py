"""Run a study into a store, with progress; verify a store and mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from jaxmbd.campaign.runner import ChunkReport, Work, run_chunks, session
from jaxmbd.campaign.store import Damage, Layout, StudyStore, verify
from jaxmbd.numerics.extras import optional

Told = Callable[[ChunkReport], None]


class Runs(Work, Protocol):
    """What can be run into a store: a `Study`."""

    title: str

    @property
    def samples(self) -> int:
        """Number of samples."""
        ...

    def layout(self) -> Layout:
        """The arrays of its store."""
        ...

    def attributes(self) -> Mapping[str, Any]:
        """What is noted of it in its store."""
        ...


def run_study(
    study: Runs, path: str | Path, *, executor: Any = None, progress: Any = True
) -> StudyStore:
    """`Study.run`; the results are the `dataset` of the store that it returns, or its `arrays`."""
    if executor is not None and (
        not hasattr(executor, "submit") or hasattr(executor, "get_executor")
    ):
        raise TypeError(
            f"a {type(executor).__name__} is no executor of concurrent.futures; of a Dask client "
            "give client.get_executor()"
        )
    layout, attributes = study.layout(), study.attributes()
    with session(path, layout, attributes) as opened:
        store = opened.store
        todo = store.missing()
        before = study.samples - _samples(store, todo)
        with _shown(progress, study.title or "samples", study.samples, before) as told:
            run_chunks(opened, study, chunks=todo, executor=executor, progress=told)
    return store


def verify_study(study: Runs, path: str | Path, *, progress: Any) -> list[Damage]:
    """`Study.verify`."""
    layout, attributes = study.layout(), study.attributes()
    with session(path, layout, attributes, restore=True) as opened:
        store = opened.store
        with _counted(progress, "verify", store.chunks) as told:
            found = [*opened.restored, *verify(store, told)]
        damaged = sorted({d.chunk for d in found if d.chunk is not None})
        for k in damaged:
            store.discard(k)
        with _shown(progress and damaged, "mend", _samples(store, damaged), 0) as told:
            run_chunks(opened, study, chunks=damaged, progress=told)
    return found


def _samples(store: StudyStore, chunks: Iterable[int]) -> int:
    """Number of samples in some chunks."""
    return sum(stop - start for start, stop in map(store.rows, chunks))


@contextmanager
def _shown(progress: Any, text: str, count: int, done: int) -> Iterator[Told | None]:
    """A bar with rate, failures and time left; or the caller's own function of a `ChunkReport`."""
    if callable(progress) or not progress:
        own: Any = progress or None
        yield own
        return
    tqdm = optional("tqdm", "campaign", "a progress bar").tqdm
    failed = 0
    with tqdm(total=count, initial=done, desc=text, unit="sample", unit_scale=True) as bar:

        def told(report: ChunkReport) -> None:
            nonlocal failed
            failed += report.failures
            bar.set_postfix(failed=failed, refresh=False)
            bar.update(report.rows)

        yield told


@contextmanager
def _counted(progress: Any, text: str, count: int) -> Iterator[Callable[[int, int], None] | None]:
    if callable(progress) or not progress:
        yield None
        return
    tqdm = optional("tqdm", "campaign", "a progress bar").tqdm
    with tqdm(total=count, desc=text, unit="chunk") as bar:
        yield lambda done, total: bar.update(done - bar.n)
