"""The package of another revision against this checkout's, timed by turns in one run.

    python -m throughput_cases.against CASE WORK STEPS BATCH SHIFT

is one side: a process that compiles a program for one core. To a line ``SECONDS`` it answers with
the best time of its repeats within them; at ``save PATH`` it saves its results. PYTHONPATH decides
which package it runs; both sides use this checkout's cases.

Long straight-line code runs up to 15 % faster or slower when the very same instructions lie some
bytes further on. So both sides are timed in several places, and the means are compared.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from throughput_cases.columns import ONE_CORE, batchers, explained_flops, keep_nothing
from throughput_cases.machine import ROOT
from throughput_cases.work import FORWARD, KERNELS, arguments, difference, function

SHIFTS = (0, 16, 32, 48)
"""Bytes by which a kernel's code is moved: all places in a cache line that its loops can have."""
ROUNDS = 4
"""Turns in each place."""
CASES = ("chain8", "chain24", "multi_link", "rssr")
SLACK = 0.03  # of the speed


@dataclass(frozen=True)
class Pair:
    """One program of both revisions.

    Attributes:
        case, work, batch, steps: what was run.
        speed: new over old, from the means over the places of the best times.
        least, most: the same in the places where it is least and most.
        compile: time to trace and compile, new over old.
        flops: operations per sample, new over old; counted for forward dynamics.
        difference: largest relative difference of the results.
        odd: samples that are finite in only one of the two.
    """

    case: str
    work: str
    batch: int
    steps: int
    speed: float
    least: float
    most: float
    compile: float
    flops: float | None
    difference: float
    odd: int

    def line(self) -> str:
        counted = "" if self.flops is None else f"  operations {self.flops:.3f}"
        return (
            f"  {self.case:12s} {self.work:22s} speed {self.speed:.3f} ({self.least:.2f} to "
            f"{self.most:.2f})  "
            f"compile {self.compile:.2f}  difference {self.difference:.1e}{counted}"
            + (f"  {self.odd} finite in one only" if self.odd else "")
        )


def package(revision: str, folder: Path) -> Path:
    """The package of a revision, written into a folder.

    Raises:
        ValueError: git knows no such revision.
    """
    command = ["git", "archive", "--format=tar", revision, "jaxmbd"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode:
        raise ValueError(f"git archive {revision}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Side:
    """A process with one of the two packages."""

    def __init__(self, root: Path, case: str, work: str, steps: int, batch: int, shift: int):
        paths = [str(root), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "throughput_cases.against", case, work]
        self._process = subprocess.Popen(
            [*command, str(steps), str(batch), str(shift)],
            env=environment,
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.facts = self._answer()
        if not Path(self.facts["package"]).is_relative_to(root):
            raise RuntimeError(f"{self.facts['package']} was imported instead of {root}'s")

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended with status {self._process.wait()}")
        return json.loads(line)

    def ask(self, text: str) -> Any:
        assert self._process.stdin
        print(text, file=self._process.stdin, flush=True)
        return self._answer()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def compare(old: Path, case: str, work: str, steps: int, batch: int, seconds: float) -> Pair:
    """Time a program of both, by turns, and compare their results."""
    times, found, facts = [], [], []
    for shift in SHIFTS:
        what = case, work, steps, batch, shift
        with Side(old, *what) as a, Side(ROOT, *what) as b, tempfile.TemporaryDirectory() as place:
            turns = [(a.ask(str(seconds)), b.ask(str(seconds))) for _ in range(ROUNDS)]
            times.append([min(side) for side in zip(*turns, strict=True)])
            facts.append((a.facts, b.facts))
            if shift:
                continue
            for side, name in ((a, "old.npz"), (b, "new.npz")):
                path = Path(place) / name
                side.ask(f"save {path}")
                with np.load(path) as data:
                    found.append([data[key] for key in data.files])
    gap, odd = difference(found[1], found[0])
    (before, now), ratios = facts[0], [x / y for x, y in times]
    return Pair(
        case,
        work,
        batch,
        steps,
        statistics.mean(x for x, _ in times) / statistics.mean(y for _, y in times),
        min(ratios),
        max(ratios),
        statistics.median(b["compile"] / a["compile"] for a, b in facts),
        now["flops"] / before["flops"] if before["flops"] else None,
        gap,
        odd,
    )


def shift_kernels(size: int) -> None:
    """Let the code of kernels that are compiled from now on begin so many bytes later."""
    from jaxmbd.lanes.targets import cpu

    compiled = cpu.compile_object

    def moved(ir: str) -> bytes:
        head, begins, rest = ir.partition("define void @")  # a kernel or a part
        arguments, opens, body = rest.partition("{\n")
        if begins:
            ir = f"{head}{begins}{arguments}prefix [{size} x i8] zeroinitializer {opens}{body}"
        return compiled(ir)

    if size:
        cpu.compile_object = moved


def run(
    revision: str,
    cases: list[str],
    works: list[str],
    steps: int,
    batches: dict[str, int],
    seconds: float,
) -> dict[str, Any]:
    """All cases and kinds of work; prints a line for each when it is done."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        old = package(revision, Path(folder))
        print(
            f"this checkout over {revision}, one core, {len(SHIFTS)} places in memory, "
            f"{ROUNDS} turns of {seconds:g} s in each"
        )
        for case in cases:
            for work in works:
                n = 1 if work == FORWARD else steps
                pair = compare(old, case, work, n, batches[work], seconds)
                rows.append(asdict(pair))
                print(pair.line(), flush=True)
    return {"against": revision, "rows": rows}


def main() -> None:
    """One side."""
    jax.config.update("jax_enable_x64", True)
    import jaxmbd
    from throughput_cases.catalogue import CASES

    keep_nothing()
    name, work, steps, batch, shift = sys.argv[1:6]
    shift_kernels(int(shift))
    case = CASES[name]
    data = arguments(case, work, int(batch), "float64")
    sample = function(case, work, int(steps), KERNELS)
    jax.block_until_ready(jax.jit(lambda x: x + 1.0)(data[1]))  # so that JAX is initialised
    start = time.perf_counter()
    program = jax.jit(batchers()[ONE_CORE](sample)).lower(*data).compile()
    seconds = time.perf_counter() - start
    flops = explained_flops(sample, data) if work == FORWARD else None
    facts = {"compile": seconds, "flops": flops, "package": str(Path(jaxmbd.__file__).resolve())}
    print(json.dumps(facts), flush=True)
    result = jax.block_until_ready(program(*data))
    for line in sys.stdin:
        if line.startswith("save "):
            leaves = [np.asarray(x) for x in jax.tree_util.tree_leaves(result)]
            np.savez(line.split(maxsplit=1)[1].strip(), *leaves)
            print("true", flush=True)
            continue
        best, end = np.inf, time.perf_counter() + float(line)
        while time.perf_counter() < end:
            start = time.perf_counter()
            jax.block_until_ready(program(*data))
            best = min(best, time.perf_counter() - start)
        print(json.dumps(best), flush=True)


if __name__ == "__main__":
    main()
