"""A study by the workers of a Dask cluster: the same bytes as without, wherever it ran.

    python examples/06_beyond_one_process.py [folder for the stores and the figure]

`study.run(store, executor=…)` takes any `concurrent.futures.Executor`. Each worker computes whole
chunks and writes them into the store itself, so that all must see the same folder. A worker that
dies costs its chunk, which another computes. On a cluster with SLURM only the two lines that make
the client change (needs dask-jobqueue):

    cluster = SLURMCluster(cores=64, memory="128GB", walltime="04:00:00", processes=1,
                           worker_extra_args=["--lifetime", "3h50m", "--lifetime-stagger", "5m"])
    cluster.adapt(maximum_jobs=20)

Workers must leave before SLURM ends them at the walltime: with `--lifetime` they end in time, and
Dask gives their work to others. One worker a machine (`processes=1`) suffices, as each uses all
cores; on GPUs it is one a GPU (`dask_cuda.LocalCUDACluster`).
"""

import sys
from pathlib import Path

import jax
import matplotlib
import numpy as np
from dask.distributed import Client, LocalCluster

import jaxmbd as mbd
from jaxmbd.observe import Coordinate, Sweep
from jaxmbd.sampling import Normal

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results")


def content(path):
    """All bytes of a store."""
    return {f.relative_to(path): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def main():
    study = mbd.Study(
        mbd.zoo.rssr(),
        {"points/*": Normal(1e-3)},
        observe=Sweep({"crank": np.linspace(0.0, np.pi, 19)}, {"rocker": Coordinate("rocker")}),
        samples=8192,
        title="Rocker of an RSSR linkage",
    )
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        results = study.run(OUT / "by_workers.zarr", executor=client.get_executor())
    study.run(OUT / "here.zarr")
    same = content(OUT / "by_workers.zarr") == content(OUT / "here.zarr")
    print(
        f"{mbd.campaign.status_line(results)}\nby workers and here, byte for byte the same: {same}"
    )

    curves = np.degrees(results.rocker - results["nominal.rocker"])
    plt.plot(np.degrees(results.crank), np.nanquantile(curves, [0.01, 0.5, 0.99], axis=0).T)
    plt.xlabel("crank [deg]")
    plt.ylabel("rocker less nominal [deg]: 1 %, 50 %, 99 %")
    plt.savefig(OUT / "06_rocker.png", dpi=110)


if __name__ == "__main__":  # workers import this file
    main()
