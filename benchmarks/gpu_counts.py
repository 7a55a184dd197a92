"""What kernels for GPUs consist of and execute, without a GPU: registers, stack, spills, counts.

    make gpu-counts
    python benchmarks/gpu_counts.py [--cases rssr] [--works rollout] [--json PATH]

NVIDIA's assembler counts registers, stack, spilled bytes and code; the interpreter of the tests
counts the instructions and bytes that a sample executes. `benchmarks/results/gpu_counts.json` has
the numbers, and a test compares some of them.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import _script

sys.path.append(str(_script.HERE.parent / "tests" / "helpers"))
_script.start()

from gpu_cases import counts  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402
from throughput_cases.work import WORKS  # noqa: E402

from jaxmbd.lanes.targets import ptx  # noqa: E402

Row = dict[str, Any]


def started(
    pool: ThreadPoolExecutor, name: str, work: str, dtype: str, wanted: list[str] | None
) -> Row:
    """One kernel's row; the assembler's part is still to come, as `Future`s."""
    k, args = counts.kernel(name, work, dtype)
    ir, facts = counts.facts(k)
    row: Row = dict(case=name, work=work, dtype=dtype, steps=counts.STEPS[work]) | facts
    row["assembled"] = {
        arch: pool.submit(counts.assembled, ptx.generate(ir, arch), arch)
        for arch in wanted or counts.architectures(work, dtype)
    }
    row["executed"] = counts.executed(k, args)
    return row


def finished(row: Row) -> Row:
    """The row with the assembler's numbers."""
    futures: dict[str, Future] = row["assembled"]
    return row | dict(assembled={arch: x.result() for arch, x in futures.items()})


def show(row: Row) -> None:
    """Print a line for each architecture."""
    done = row["executed"]
    print(
        f"{row['case']}, {row['work']}, {row['dtype']}: {row['flops']} flops, "
        f"{done['instructions']:.0f} instructions ({done['f64'] + done['f32']:.0f} of floats, "
        f"{done['fused']:.0f} fused, {done['divisions']:.0f} divisions or roots), "
        f"{row['argument_bytes']} + {row['result_bytes']} bytes, scratch {row['scratch_bytes']}"
    )
    for arch, x in row["assembled"].items():
        if "refused" in x:
            print(f"  {arch:7s} refused: {x['refused']}")
            continue
        print(
            f"  {arch:7s} {x['registers']} registers, stack {x['stack']}, spills "
            f"{x['spill_stores']} stored and {x['spill_loads']} loaded, {x['code']} bytes of code",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    parser = _script.parser(__doc__)
    parser.add_argument("--cases", nargs="+", choices=counts.CASES, default=counts.CASES)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS)
    parser.add_argument("--dtypes", nargs="+", choices=counts.DTYPES, default=counts.DTYPES)
    parser.add_argument("--archs", nargs="+", choices=counts.ARCHITECTURES)
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    kinds = [(c, w, d) for w in options.works for c in options.cases for d in options.dtypes]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # The dearest first: they are assembled while the others are traced.
        rows = [started(pool, *kind, options.archs) for kind in reversed(kinds)]
        rows = [finished(row) for row in reversed(rows)]
    for row in rows:
        show(row)
    found = dict(
        versions=counts.versions(), commit=commit(), date=time.strftime("%Y-%m-%d"),
        samples=counts.SAMPLES, rows=rows,
    )  # fmt: skip
    print(f"{len(rows)} kernels in {time.monotonic() - begin:.0f} s")
    _script.write(options.json, found)


if __name__ == "__main__":
    main()
