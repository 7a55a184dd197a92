"""Run a study into a store, with progress; verify a store and mend it.

The nominal sample is judged before any other is computed; implausible scatter, such as negative
masses or points far outside of the drawing, is warned of.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.analysis import REDUNDANT, Status, mobility
from jaxmbd.campaign.chunk_runner import ChunkReport, run_chunks
from jaxmbd.campaign.model import Input
from jaxmbd.campaign.session import Damage, session, verify
from jaxmbd.campaign.store_files import lock
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.model import Mechanism
from jaxmbd.observe import Output, status_text, stays_open
from jaxmbd.plumbing import listed, optional, warn_user

Told = Callable[[ChunkReport], None]


def run_study(study: Any, path: str | Path, *, executor: Any = None, progress: Any = True) -> Any:
    """`Study.run`, without its warnings."""
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
    return store.dataset()


def remove_study(path: str | Path) -> None:
    """Remove a study's store with its log; nothing else.

    Raises:
        StoreError: it is something else.
    """
    store = Path(path)
    StudyStore.open(store)
    with lock(store):
        shutil.rmtree(store)
        store.with_name(store.name + ".log").unlink(missing_ok=True)


def verify_study(study: Any, path: str | Path, *, progress: Any) -> list[Damage]:
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


def judge(
    found: Mapping[str, np.ndarray],
    outputs: Mapping[str, Output],
    observed: Callable[[], Mapping[str, Any]],
) -> None:
    """Refuse a study whose nominal sample fails; warn of outputs of which it has no value.

    Args:
        found: the nominal outputs.
        outputs: what is declared of them.
        observed: computes the nominal outputs as they are before those of a failed sample are
            blanked.

    Raises:
        ValueError: it fails; says how, and which joint stays open or which output has no value.
    """
    status = int(found["status"])
    if status != Status.OK:
        how = status_text(status) + _reason(found, outputs)
        if status == Status.NON_FINITE and (missing := _missing(observed(), outputs)):
            how += f" (no value of {missing})"
        raise ValueError(
            f"the nominal sample fails: {how}. "
            "No sample was run: mend the nominal mechanism or inputs first (jaxmbd.assemble and "
            "check_state of it say more)"
        )
    if missing := _missing(found, outputs):
        warn_user(
            f"the nominal sample has no value of {missing}, though it does not fail: what is asked "
            "for is not there. A crossing needs a level that the curve reaches: give another, or a "
            "wider range. Samples without a value are left out of means and do not keep limits"
        )


def _missing(found: Mapping[str, Any], outputs: Mapping[str, Output]) -> str:
    """The outputs that have no value, and how many of their numbers are missing."""
    texts = []
    for name, x in found.items():
        wrong = np.size(x) - np.count_nonzero(np.isfinite(np.asarray(x)))
        if wrong and outputs.get(name, Output()).role != "reason":
            part = f" ({wrong} of {np.size(x)} numbers)" if np.ndim(x) else ""
            texts.append(f"'{name}'{part}")
    return ", ".join(texts)


def _reason(found: Mapping[str, np.ndarray], outputs: Mapping[str, Output]) -> str:
    """Which joint stays open and how far, where the experiment has it, or what is not held."""
    if int(found["status"]) == Status.SINGULAR:
        return (
            " (a degree of freedom is not determined: hold it by known=, let it settle, or give "
            "it inertia)"
        )
    return f" ({open_})" if (open_ := stays_open(outputs, found)) else ""


POSITIVE = ("mass", "stiffness", "damping", "radius")
"""Last part of the paths of numbers that are not negative in any mechanism that can be built."""
WIDE = 0.3
"""Scatter of lengths, as a share of the size of what is drawn, above which it looks wrong."""
SAME = 1e-12
"""Change of an output, as a share of the largest number in it, that counts as rounding."""


def warn_of_odd_draws(
    inputs: Mapping[str, Input], drawn: Mapping[str, np.ndarray], mech: Mechanism | None
) -> None:
    """Warn, with the numbers, of drawn inputs that look wrong.

    Args:
        inputs: the study's inputs.
        drawn: some samples of those that vary, name to array (n, …).
        mech: the nominal mechanism; None for a study of a function.
    """
    for name, x in drawn.items():
        last, unit = name.rpartition("/")[2], inputs[name].unit
        if last in POSITIVE and np.any(x < 0.0) and np.all(inputs[name].nominal >= 0.0):
            share = 100.0 * np.mean(np.any((x < 0.0).reshape(len(x), -1), axis=1))
            warn_user(
                f"input '{name}' is negative in {share:.2g} % of the samples, down to "
                f"{x.min():.4g} {unit}: is its scatter in {unit}? A LogNormal or TruncatedNormal "
                "distribution stays positive"
            )
    size = 0.0 if mech is None else _drawn_size(mech)
    wide = {n: float(np.max(np.std(x, axis=0))) for n, x in drawn.items() if inputs[n].unit == "m"}
    name = max(wide, key=lambda n: wide[n], default="")
    if name and wide[name] > WIDE * size > 0.0:
        warn_user(
            f"input '{name}' scatters by {wide[name]:.4g} m (one standard deviation), but the "
            f"whole mechanism is {size:.4g} m large: is its scatter in metres? 0.1 mm is 1e-4, or "
            "the text '0.1 mm'"
        )


def _drawn_size(mech: Mechanism) -> float:
    """Largest extent of the drawing along x, y or z [m]."""
    places = [mech.point(name) for name in mech.structure.points]
    places += [mech.com(body) for body in mech.structure.bodies]
    return float(np.max(np.ptp(np.stack([np.asarray(x) for x in places]), axis=0)))


def warn_of_unused(
    given: Iterable[str], changed: list[str], rows: Mapping[str, np.ndarray]
) -> None:
    """Warn of inputs that no output depends on.

    Of a pattern only if that is so of all that it fits: it is not meant to fit what matters alone.

    Args:
        given: names or patterns of inputs, as the user gave them.
        changed: names of inputs.
        rows: outputs, without the reasons of failures, of the nominal sample, then of as many
            samples for each of these inputs, in which it alone is not nominal.
    """
    same = np.all([_same(x[0], x[1:]) for x in rows.values()], axis=0)
    each = dict(zip(changed, np.all(same.reshape(len(changed), -1), axis=1), strict=True))
    fitting = {p: [x for n, x in each.items() if n == p or fnmatchcase(n, p)] for p in given}
    if unused := [f"'{p}'" for p, found in fitting.items() if found and all(found)]:
        warn_user(
            f"no output changes when {listed(unused, 5)} varies by itself: what is observed does "
            "not use it. Is another variable meant, or is an output missing?"
        )


def warn_of_jamming(changed: list[str], status: np.ndarray, mech: Mechanism | None) -> None:
    """Warn of inputs that no loop with redundant rows can close with.

    Args:
        changed: names of inputs.
        status: of the nominal sample, then of as many samples for each of these inputs, in which
            it alone is not nominal.
        mech: the nominal mechanism; None for a study of a function.
    """
    failed = (status[1:] == Status.NOT_ASSEMBLED).reshape(len(changed), -1).all(axis=1)
    if mech is None or status[0] != Status.OK or not failed.any():
        return
    if rows := mobility(mech).redundant:
        named = listed([f"'{n}'" for n, bad in zip(changed, failed, strict=True) if bad], 5)
        warn_user(
            f"the loops do not close where {named} varies by itself, and they have redundant "
            f"constraint rows ({listed(rows)}): {REDUNDANT}"
        )


def _same(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether values of an output differ from x by rounding at most; not if x has no value."""
    change = np.abs(others - x).reshape(len(others), -1)
    return np.all(change <= SAME * np.max(np.abs(x), initial=0.0), axis=1)
