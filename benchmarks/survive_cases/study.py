"""The study that is killed: a four-bar of scattered points, in many small chunks."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

import jaxmbd as mbd
from jaxmbd import Study
from jaxmbd.observe import Coordinate, Sweep
from jaxmbd.sampling import Normal


def made(chunks: int, rows: int) -> Study:
    turn = [0.02 * i for i in range(4)]
    return Study(
        mbd.zoo.four_bar(),
        {"points/C_coupler/x": Normal(1e-3), "points/B": Normal(1e-3)},
        observe=Sweep({"A": turn}, {"rocker": Coordinate("D")}),
        samples=chunks * rows - rows // 2,
        chunk=rows,
        title="four-bar of scattered points",
    )


def run(path: Path, chunks: int, rows: int, executor: Executor | None = None) -> None:
    made(chunks, rows).run(path, executor=executor, progress=False)
