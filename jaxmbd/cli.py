"""The command ``jaxmbd``."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module, metadata
from pathlib import Path

from jaxmbd.lanes.collector import collector_paused


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command-line arguments; by default ``sys.argv[1:]``.

    Returns:
        the exit status: 0, or 1 after an error that the user can fix.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    try:
        with collector_paused():  # a command ends before there is anything to collect
            return options.run(options)
    except (ImportError, OSError, ValueError) as error:
        print(f"jaxmbd: {error}", file=sys.stderr)
        return 1


def command() -> None:
    """Run one command and end the process with its exit status.

    What exists by then is exempt from the garbage collector, which else looks through all of JAX's
    and matplotlib's objects a last time: a tenth of a short command's time.
    """
    status = main()
    gc.freeze()
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxmbd", description="Batched, differentiable multibody dynamics on JAX."
    )
    parser.add_argument("--version", action="version", version=f"jaxmbd {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="Monte-Carlo of a suspension corner's build tolerances, with a figure"
    )
    demo.add_argument("--samples", type=_count, help="how many (default 2000, with --quick 200)")
    demo.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    demo.add_argument("--out", type=Path, default=Path("results"), help="folder for what it writes")
    demo.add_argument("--quick", action="store_true", help="fewer samples")
    demo.set_defaults(run=_demo)
    info = commands.add_parser("info", help="print a saved mechanism, its topology and mobility")
    info.add_argument("file", type=Path, help="a mechanism as JSON, written by jaxmbd.io.save")
    info.set_defaults(run=_info)
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give at least one sample")
    return number


def _version() -> str:
    try:
        return metadata.version("jaxmbd")
    except metadata.PackageNotFoundError:
        return "(a checkout that is not installed)"


def _demo(options: argparse.Namespace) -> int:
    _set_up_jax()
    from jaxmbd.campaign import (
        optional,
        progress_bar,
        run_corner,
        spread_table,
        status_line,
    )
    from jaxmbd.viz import corner_figure

    optional("matplotlib", "demo", "the demonstration")
    count = options.samples or (200 if options.quick else 2000)
    print(
        f"{count} samples of a published multi-link suspension corner with scattered hardpoints,\n"
        "spring rate and damping: curves over the wheel's travel, and 0.5 s of motion after a\n"
        "release. The first chunk includes compiling, which later runs find in the cache."
    )
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    with ThreadPoolExecutor(1) as aside:
        aside.submit(import_module, "matplotlib.figure")  # while LLVM compiles
        results = run_corner(count, options.seed, progress=progress_bar("samples"))
    took = time.perf_counter() - begun
    print(f"\n{status_line(results)}; {took:.0f} s\n")
    print(spread_table(results))
    data = results.save(options.out / "suspension_corner.npz")
    picture = options.out / "suspension_corner.png"
    corner_figure(results, picture)
    print(f"\nwrote {data} and {picture}")
    return 0


def _info(options: argparse.Namespace) -> int:
    _set_up_jax()
    from jaxmbd.analysis import mobility
    from jaxmbd.graph import topology
    from jaxmbd.io import load

    mech = load(options.file)
    print(mech, topology(mech), mobility(mech), sep="\n\n")
    return 0


def _set_up_jax() -> None:
    """Double precision, compiled programs kept between runs, one device for each core."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(_cache_folder()))
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "XLA_FLAGS" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", min(_cores(), 16))
        except RuntimeError:
            pass  # the process has used JAX before: its devices are settled


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_folder() -> Path:
    """The cache directory of this platform."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "jaxmbd" / "jax"
