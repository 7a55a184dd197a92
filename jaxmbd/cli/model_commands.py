"""``jaxmbd check``, ``info``, ``convert`` and ``bench``: about one mechanism."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxmbd.cli.common import (
    FINDINGS,
    FINE,
    NAMES,
    Printer,
    add_command,
    add_overwrite,
    load_model,
    open_model,
    refuse_to_replace,
    set_up_jax,
)


def add(commands: Any) -> None:
    """The commands' arguments."""
    _add_check(commands)
    _add_info(commands)
    _add_convert(commands)
    _add_bench(commands)


def _add_check(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        _check,
        "check a mechanism: topology, mobility, redundancy, whether it closes",
        "Check a mechanism: its topology and mobility, redundant constraints, whether its loops\n"
        "close and which joint stays open, how well conditioned it is, and what is nearest to\n"
        "trouble. The exit status is 3 if it does not close or cannot be trusted.",
        "jaxmbd check corner.json --variables\njaxmbd check zoo:bricard --figure redundant.png",
    )
    parser.add_argument("model", help=NAMES)
    parser.add_argument("--variables", action="store_true", help="list all numbers by path, too")
    parser.add_argument(
        "--figure", metavar="FILE", help="draw its topology with what is redundant: png, svg, pdf"
    )


def _check(options: argparse.Namespace, printer: Printer) -> int:
    set_up_jax()
    from jaxmbd.cli.diagnosis import diagnose
    from jaxmbd.variables import variables

    if options.model.endswith(".toml"):
        raise ValueError(
            f"{options.model}: `check` is of mechanisms: give its model's JSON file or zoo:NAME; "
            "`jaxmbd run` finds what is wrong with a study before it computes anything"
        )
    mech, warned = load_model(options.model)
    found = diagnose(mech)
    for key, value in found["facts"].items():
        printer.text(f"{key:14} {value}")
    for text in (*(f"warning: {x}" for x in warned), *(f"trouble: {x}" for x in found["trouble"])):
        printer.text(text)
    if not found["trouble"]:
        printer.text("no trouble found")
    if options.variables:
        printer.text("", variables(mech))
        table = {p: {"value": x.value, "unit": x.unit} for p, x in variables(mech).items()}
        found["variables"] = table
    if options.figure:
        from jaxmbd.viz import redundancy_figure

        redundancy_figure(mech, found["configuration"], options.figure)
        printer.text(f"{options.figure}: its topology, and what is redundant")
        found["figure"] = options.figure
    printer.result(found | {"warnings": warned})
    return FINE if found["sound"] else FINDINGS


def _add_info(commands: Any) -> None:
    parser = add_command(
        commands,
        "info",
        _info,
        "about this installation, a mechanism, or a study's store",
        "Without a name: versions, devices and caches. With a mechanism: its numbers, topology\n"
        "and mobility. With a store: what it holds, how far it is, where it comes from.",
        "jaxmbd info\njaxmbd info zoo:rssr\njaxmbd info corner.json --figure corner.png\n"
        "jaxmbd info study.zarr",
    )
    parser.add_argument("name", nargs="?", help=f"{NAMES}; or a study's store")
    parser.add_argument(
        "--figure", metavar="FILE", help="draw a mechanism's topology: png, svg, pdf"
    )


def _info(options: argparse.Namespace, printer: Printer) -> int:
    set_up_jax()
    is_mechanism = options.name is not None and not Path(options.name).is_dir()
    if options.figure and not is_mechanism:
        raise ValueError("--figure is of a mechanism: name a JSON file or zoo:NAME")
    if options.name is None:
        return _installation(printer)
    if not is_mechanism:
        return _store(options.name, printer)
    return _mechanism(options.name, options.figure, printer)


def _installation(printer: Printer) -> int:
    import jax

    from jaxmbd.campaign import provenance
    from jaxmbd.lanes import directory

    caches = {"jax": getattr(jax.config, "jax_compilation_cache_dir", None), "lanes": directory()}
    found = provenance() | {"caches": caches}
    printer.text(*_lines(found))
    printer.result(found)
    return FINE


def _lines(facts: Mapping[str, Any]) -> list[str]:
    """A line for each fact."""
    lines = []
    for name, x in facts.items():
        if isinstance(x, Mapping):
            x = ", ".join(f"{k} {v}" for k, v in x.items())
        lines.append(f"{name:10} {', '.join(map(str, x)) if isinstance(x, list) else x}")
    return lines


def _mechanism(name: str, figure: str | None, printer: Printer) -> int:
    from jaxmbd.analysis import mobility
    from jaxmbd.graph import topology

    mech, warned = load_model(name)
    top, free = topology(mech), mobility(mech)
    for text in warned:
        printer.text(f"warning: {text}")
    printer.text(mech, top, free, sep="\n\n")
    if figure:
        from jaxmbd.viz import topology_figure

        topology_figure(mech, figure)
        printer.text(f"\n{figure}: its topology")
    printer.result(
        {
            "bodies": list(top.bodies),
            "joints": {e.name: type(mech.joints[e.name]).__name__ for e in mech.structure.joints},
            "forces": {n: type(f).__name__ for n, f in mech.forces.items()},
            "cut": list(top.cut),
            "nq": top.nq,
            "nv": top.nv,
            "nc": top.nc,
            "mobility": free._asdict(),
            "warnings": warned,
            **({"figure": figure} if figure else {}),
        }
    )
    return FINE


def _store(name: str, printer: Printer) -> int:
    from jaxmbd.campaign import StudyStore
    from jaxmbd.observe import REASONS

    store = StudyStore.open(name)
    done = store.chunks - len(store.missing())
    study: Any = store.attributes.get("study", {})
    hidden = ("status", *REASONS)
    outputs = {n: x for n, x in study.get("outputs", {}).items() if n not in hidden}
    printer.text(
        f"{store.attributes.get('title') or name}",
        f"{store.layout.count} samples in {store.chunks} chunks, {done} of them done",
        f"inputs: {', '.join(study.get('inputs', {}))}",
        *(f"  {n} [{x['unit']}] {x['text']}" for n, x in outputs.items()),
        *_lines(store.attributes.get("provenance", {})),
    )
    printer.result(
        {
            "samples": store.layout.count,
            "chunks": store.chunks,
            "done": done,
            **{k: store.attributes.get(k) for k in ("title", "study", "provenance")},
        }
    )
    return FINE


FORMATS = (".json", ".xml", ".urdf")


def _add_convert(commands: Any) -> None:
    parser = add_command(
        commands,
        "convert",
        _convert,
        "convert a mechanism: JSON, MJCF, URDF",
        "Read a mechanism in one format and write it in another: jaxmbd's JSON, MuJoCo's MJCF\n"
        "(.xml), or URDF. What either format does not have is printed; the exit status is then 3.",
        "jaxmbd convert robot.urdf robot.json\njaxmbd convert zoo:rssr rssr.xml\n"
        "jaxmbd convert corner.json corner.xml --strict",
    )
    parser.add_argument("source", help=NAMES)
    parser.add_argument("target", type=Path, help=f"the new file: {', '.join(FORMATS)}")
    parser.add_argument(
        "--strict", action="store_true", help="write nothing if something would be left out"
    )
    add_overwrite(parser, "--force")


def _convert(options: argparse.Namespace, printer: Printer) -> int:
    set_up_jax()
    target: Path = options.target
    _check_target(options.source, target, options.overwrite)
    model, told = open_model(options.source)
    if options.strict and told:
        raise ValueError(f"--strict, and of {options.source}: " + "; ".join(told))
    mech = getattr(model, "mechanism", model)
    states, shapes = _not_written(model, target)
    if options.strict and states:
        raise ValueError(f"--strict, and {target.suffix} does not have all: {states[0]}")
    lost = states + shapes
    table = _write(mech, getattr(model, "shapes", {}), target, options.strict)
    for text in told:
        printer.text(f"reading {options.source}: {text}")
    if lost:
        printer.text(f"not written: {', '.join(lost)}")
    if table:
        printer.text(f"writing {target}:", table)
    printer.text(f"{target}: {len(mech.bodies)} bodies, {len(mech.joints)} joints")
    rows = [row._asdict() for row in table]
    printer.result({"file": str(target), "reading": told, "left_out": rows, "not_written": lost})
    return FINDINGS if told or rows or states else FINE


def _check_target(source: str, target: Path, overwrite: bool) -> None:
    if target.suffix.lower() not in FORMATS:
        raise ValueError(f"{target}: its ending says no format; give one of {', '.join(FORMATS)}")
    if target.exists() and os.path.exists(source) and target.samefile(source):
        raise ValueError(f"{target} is the file to read; give another name")
    refuse_to_replace(overwrite, target)


def _not_written(model: Any, target: Path) -> tuple[list[str], list[str]]:
    """States of an import that the file does not have, and shapes, which are pictures alone."""
    shapes = () if target.suffix.lower() == ".xml" else getattr(model, "shapes", ())
    states = [name for name in getattr(model, "states", ()) if name != "reference"]
    return (
        [f"{len(states)} states"] if states else [],
        [f"{len(shapes)} shapes"] if shapes else [],
    )


def _write(mech: Any, shapes: Any, target: Path, strict: bool) -> Any:
    """Write the file; what is left out of it."""
    from jaxmbd.io import LeftOutTable, save, save_mjcf, save_urdf

    suffix = target.suffix.lower()
    if suffix == ".json":
        save(mech, target)
        return LeftOutTable()
    if suffix == ".xml":
        return save_mjcf(mech, target, shapes=shapes, strict=strict).left_out
    return save_urdf(mech, target, strict=strict).left_out


_SECONDS = 1.0


def _add_bench(commands: Any) -> None:
    parser = add_command(
        commands,
        "bench",
        _bench,
        "measure the speed of this machine with a mechanism",
        "Measure compile time, and rates of forward dynamics and of simulation, over a batch of\n"
        "variants of a mechanism on all cores or on the GPU. The accuracy is printed beside them:\n"
        "the largest closure error of the simulated motions.",
        "jaxmbd bench\njaxmbd bench corner.json --batch 16384",
    )
    parser.add_argument("model", nargs="?", default="zoo:multi_link", help="a file, or zoo:NAME")
    parser.add_argument("--batch", type=int, default=4096, help="how many at once (default 4096)")
    parser.add_argument("--steps", type=int, default=100, help="time steps (default 100)")


def _bench(options: argparse.Namespace, printer: Printer) -> int:
    if options.batch < 1 or options.steps < 1:
        raise ValueError("--batch and --steps must be at least 1")
    set_up_jax()
    import jax
    import jax.numpy as jnp

    import jaxmbd as mbd

    mech, _ = load_model(options.model)
    q = mbd.assemble(mech).q
    state = (mech, q, mbd.assemble_velocity(mech, q))
    # Every number is an argument with a row for each sample, so that nothing is computed once for
    # all, or in advance, although the rows are equal.
    variants = jax.tree_util.tree_map(lambda x: jnp.stack([jnp.asarray(x)] * options.batch), state)

    def dynamics(mech: Any, q: Any, v: Any) -> Any:
        return mbd.forward_dynamics(mech, q, v)[0]

    def motion(mech: Any, q: Any, v: Any) -> Any:
        steps = options.steps
        return mbd.simulate(mech, q, v, dt=1e-4, steps=steps, save_every=steps).drift

    printer.text(f"{options.model}, batch {options.batch}, {jax.devices()[0].device_kind}")
    found: dict[str, Any] = {"model": options.model, "batch": options.batch}
    for name, function, each in (
        ("forward dynamics", dynamics, 1),
        ("simulated steps (rk4)", motion, options.steps),
    ):
        compile_time, rate, out = _measured(function, variants, each * options.batch)
        printer.text(f"{name:22} {rate:10.3g} /s, compiled in {compile_time:.1f} s")
        found[name] = {"rate": rate, "compile_seconds": compile_time}
        error = float(jnp.max(jnp.abs(out)))
    printer.text(f"{'closure error':22} {error:10.1e} m")
    printer.result(found | {"closure_error": error, "device": jax.devices()[0].device_kind})
    return FINE


def _measured(function: Callable[..., Any], given: Any, count: int) -> tuple[float, float, Any]:
    """Seconds of the first call, evaluations per second later, and the result."""
    import jax

    from jaxmbd import lanes

    batched = jax.jit(lanes.vmap(function))
    begun = time.perf_counter()
    out = lanes.finished(batched(*given))
    first = time.perf_counter() - begun
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        begun = time.perf_counter()
        out = lanes.finished(batched(*given))
        best = min(best, time.perf_counter() - begun)
    return first, count / min(best, first), out
