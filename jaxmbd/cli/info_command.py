"""``jaxmbd info``: about this installation, a mechanism, or a study's store."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxmbd.cli.jax_setup import set_up_jax
from jaxmbd.cli.model_files import NAMES, load_model
from jaxmbd.cli.says import FINE, Says, add_command


def add(commands: Any) -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "info",
        _run,
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


def _run(options: argparse.Namespace, says: Says) -> int:
    set_up_jax()
    is_mechanism = options.name is not None and not Path(options.name).is_dir()
    if options.figure and not is_mechanism:
        raise ValueError("--figure is of a mechanism: name a JSON file or zoo:NAME")
    if options.name is None:
        return _installation(says)
    if not is_mechanism:
        return _store(options.name, says)
    return _mechanism(options.name, options.figure, says)


def _installation(says: Says) -> int:
    import jax

    from jaxmbd.campaign import provenance
    from jaxmbd.lanes import directory

    caches = {"jax": getattr(jax.config, "jax_compilation_cache_dir", None), "lanes": directory()}
    found = provenance() | {"caches": caches}
    says.text(*_lines(found))
    says.result(found)
    return FINE


def _lines(facts: Mapping[str, Any]) -> list[str]:
    """A line for each fact."""
    lines = []
    for name, x in facts.items():
        if isinstance(x, Mapping):
            x = ", ".join(f"{k} {v}" for k, v in x.items())
        lines.append(f"{name:10} {', '.join(map(str, x)) if isinstance(x, list) else x}")
    return lines


def _mechanism(name: str, figure: str | None, says: Says) -> int:
    from jaxmbd.analysis import mobility
    from jaxmbd.graph import topology

    mech, warned = load_model(name)
    top, free = topology(mech), mobility(mech)
    for text in warned:
        says.text(f"warning: {text}")
    says.text(mech, top, free, sep="\n\n")
    if figure:
        from jaxmbd.viz import topology_figure

        topology_figure(mech, figure)
        says.text(f"\n{figure}: its topology")
    says.result(
        {
            "bodies": list(top.bodies),
            "joints": {e.name: e.kind.__name__ for e in mech.structure.joints},
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


def _store(name: str, says: Says) -> int:
    from jaxmbd.campaign import StudyStore
    from jaxmbd.observe import REASONS

    store = StudyStore.open(name)
    done = store.chunks - len(store.missing())
    study: Any = store.attributes.get("study", {})
    hidden = ("status", *REASONS)
    outputs = {n: x for n, x in study.get("outputs", {}).items() if n not in hidden}
    says.text(
        f"{store.attributes.get('title') or name}",
        f"{store.layout.count} samples in {store.chunks} chunks, {done} of them done",
        f"inputs: {', '.join(study.get('inputs', {}))}",
        *(f"  {n} [{x['unit']}] {x['text']}" for n, x in outputs.items()),
        *_lines(store.attributes.get("provenance", {})),
    )
    says.result(
        {
            "samples": store.layout.count,
            "chunks": store.chunks,
            "done": done,
            **{k: store.attributes.get(k) for k in ("title", "study", "provenance")},
        }
    )
    return FINE
