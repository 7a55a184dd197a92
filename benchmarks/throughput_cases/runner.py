"""Runs the cases: kinds of work, batch sizes and columns, within a time budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from throughput_cases import peers
from throughput_cases.case import Case
from throughput_cases.columns import (
    LANES,
    ONE_CORE,
    VMAP,
    batchers,
    explained_flops,
    have_lanes,
)
from throughput_cases.machine import available_memory
from throughput_cases.report import Results, Row
from throughput_cases.timing import Program, by_turns
from throughput_cases.work import (
    FORWARD,
    GRADIENT,
    KERNELS,
    PLAIN,
    ROLLOUT,
    arguments,
    difference,
    function,
)


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        batches: batch sizes of forward dynamics, of rollouts, of gradients.
        reference: the batch at which `jax.vmap` is always run, for each work.
        steps: of rollouts.
        seconds: of repeats for each measurement.
        longest_compile: a `jax.vmap` program expected to take longer is left out [s].
        longest_run: a call expected to take longer is left out [s].
        deadline: on `time.monotonic`; no reference is started that would exceed it.
        works: of `work.WORKS`.
        peers: whether other engines are run.
    """

    batches: dict[str, tuple[int, ...]]
    reference: dict[str, int]
    steps: int
    seconds: float
    longest_compile: float
    longest_run: float
    deadline: float
    works: tuple[str, ...]
    peers: bool = True


SHORT = 20  # steps of jax.vmap where a whole rollout would take too long
LARGE_ROLLOUT = {"multi_link": 10_000}  # a target needs jax.vmap at a large batch size
PRODUCT = {ROLLOUT: 1.5, GRADIENT: 7.0}  # approximate compile time over that of forward dynamics


class Runner:
    """One run of the benchmark."""

    def __init__(self, results: Results):
        self.results = results
        self._compile: dict[tuple[str, str], float] = {}  # measured, of jax.vmap
        self._truth: dict[tuple[str, str], Any] = {}  # results of jax.vmap in float64
        self._rate: dict[tuple[str, str, str, str], float] = {}  # per second, of a smaller batch

    def case(self, case: Case, dtype: str, plan: Plan) -> None:
        """All work of one case in one number type."""
        self.plan = plan
        for work in self.plan.works:
            print(f"  {case.title}, {work}, {dtype}", flush=True)
            try:
                self._work(case, work, dtype)
            except Exception as error:  # go on with the others
                text = f"{type(error).__name__}: {error}".splitlines()[0]
                self.results.skip(f"{case.name}, {work}, {dtype}: {text}")
        self.results.save()

    def _work(self, case: Case, work: str, dtype: str) -> None:
        first = self.plan.reference[work]
        batches = self.plan.batches[work]
        truth = self._truth.get((case.name, work))  # a float32 run is compared with float64
        with_reference = self._affordable(case, work, dtype)
        if with_reference or first in batches or self._forward_peers(case, work, dtype):
            truth = self._batch(case, work, dtype, first, with_reference, truth)
        self._truth.setdefault((case.name, work), truth)
        for batch in sorted(batches):
            if batch != first:
                again = work == FORWARD and dtype == "float64" and self._cheap(case, work)
                self._batch(case, work, dtype, batch, again and batch > 1, truth)
        large = LARGE_ROLLOUT.get(case.name, 0)
        if work == ROLLOUT and dtype == "float64" and large in batches:
            self._short_reference(case, large)
        if dtype == "float64" and case.peers and self.plan.peers and work == ROLLOUT:
            peers.rollouts(case, self.plan.steps, self.results, truth)

    def _forward_peers(self, case: Case, work: str, dtype: str) -> bool:
        return self.plan.peers and case.peers and work == FORWARD and dtype == "float64"

    def _batch(
        self, case: Case, work: str, dtype: str, batch: int, reference: bool, truth: Any
    ) -> Any:
        """One batch size in all columns; returns the result of `jax.vmap`, if it was run."""
        if not (reference or have_lanes() or work == FORWARD):
            return truth
        if not self._fits(case, work, dtype, batch):
            return truth
        steps = 1 if work == FORWARD else self.plan.steps
        args = arguments(case, work, batch, dtype)
        programs = self._compiled(case, work, dtype, steps, args, reference)
        if VMAP in programs:
            truth = programs[VMAP].result
            self._compile.setdefault((case.name, work), programs[VMAP].compile_seconds)
        forwards = {}
        if self._forward_peers(case, work, dtype) and batch == self.plan.reference[work]:
            forwards = peers.forwards(case, truth)
        best = by_turns(programs | forwards, self.plan.seconds)
        sample = function(case, work, steps, KERNELS)
        flops = explained_flops(sample, args) if ONE_CORE in programs else None
        row = Row(case.name, work, dtype, "", batch, steps, 0.0, steps)
        for column, program in programs.items():
            gap, odd = (None, 0) if truth is None else difference(program.result, truth)
            self._rate[case.name, work, dtype, column] = batch * steps / best[column]
            self.results.add(
                replace(
                    row,
                    column=column,
                    seconds=best[column],
                    compile_seconds=program.compile_seconds,
                    difference=None if column == VMAP else gap,
                    odd=odd,
                    flops=flops if column in (LANES, ONE_CORE) else None,
                )
            )
        for column, peer in forwards.items():
            self.results.add(replace(row, column=column, seconds=best[column], **peer.facts()))
        return truth

    def _compiled(
        self, case: Case, work: str, dtype: str, steps: int, args: Any, reference: bool
    ) -> dict[str, Any]:
        """The programs of one batch size by column, each run once; reports those that failed."""
        programs: dict[str, Any] = {}
        batch = len(args[1])
        for column, batcher in batchers().items():
            if column == VMAP and not reference:
                continue
            if column == ONE_CORE and (batch == 1 or work != FORWARD):
                continue
            try:
                backend = PLAIN if column == VMAP else KERNELS
                sample = function(case, work, steps, backend)
                programs[column] = Program(batcher(sample), args)
            except Exception as error:  # too large, or not supported: the others go on
                text = str(error).splitlines()[0][:200]
                self.results.skip(f"{case.name}, {work}, {dtype}, {column} at {batch}: {text}")
        return programs

    def _short_reference(self, case: Case, batch: int) -> None:
        """`jax.vmap` at a large batch over a few steps: a scan's time is linear in its steps."""
        if self._expected_compile(case, ROLLOUT) > self._time_left():
            self.results.skip(f"{case.name}, rollout, jax.vmap at {batch}: no time left")
            return
        args = arguments(case, ROLLOUT, batch, "float64")
        program = Program(jax.vmap(function(case, ROLLOUT, SHORT)), args)
        best = by_turns({VMAP: program}, self.plan.seconds)[VMAP]
        self.results.add(
            Row(
                case.name,
                ROLLOUT,
                "float64",
                VMAP,
                batch,
                self.plan.steps,
                best,
                SHORT,
                program.compile_seconds,
            )
        )

    def _fits(self, case: Case, work: str, dtype: str, batch: int) -> bool:
        """Whether the batch fits into memory and time; reports it if not."""
        where = f"{case.name}, {work}, {dtype}, batch {batch}"
        leaves = jax.tree_util.tree_leaves(case.nominal)
        top = mbd.topology(case.mech)
        numbers = sum(np.size(x) for x in leaves) + 4 * (top.nq + top.nv + top.nc)
        # drawn in double precision, on the host and on the device, with a copy in between
        need = 4.0 * 8.0 * batch * numbers
        if need > 0.5 * available_memory():
            self.results.skip(f"{where}: needs about {need / 1e9:.1f} GB")
            return False
        rate = self._rate.get((case.name, work, dtype, LANES))
        steps = 1 if work == FORWARD else self.plan.steps
        if rate and batch * steps / rate > self.plan.longest_run:
            self.results.skip(f"{where}: would take about {batch * steps / rate:.0f} s a call")
            return False
        return True

    def _expected_compile(self, case: Case, work: str) -> float:
        """Seconds to compile `jax.vmap` of this work, estimated from earlier measurements."""
        known = self._compile.get((case.name, work))
        if known is not None:
            return known
        nv = mbd.topology(case.mech).nv
        forward = self._compile.get((case.name, FORWARD), 3.0 + 0.1 * nv**2)
        return forward * PRODUCT.get(work, 1.0)

    def _cheap(self, case: Case, work: str) -> bool:
        expected = self._expected_compile(case, work)
        return case.small and expected < min(10.0, self._time_left())

    def _affordable(self, case: Case, work: str, dtype: str) -> bool:
        """Whether `jax.vmap` is compiled for this work; in float32 for forward dynamics only."""
        if dtype == "float32" and work != FORWARD:
            return False
        expected = self._expected_compile(case, work)
        if expected > self.plan.longest_compile or expected > self._time_left():
            self.results.skip(
                f"{case.name}, {work}, {dtype}, jax.vmap: about {expected:.0f} s of compiling"
            )
            return False
        return True

    def _time_left(self) -> float:
        return self.plan.deadline - time.monotonic()
