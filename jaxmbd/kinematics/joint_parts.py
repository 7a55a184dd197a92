"""Parts of a mechanism, of coordinates and of speeds that belong to the bodies of the tree."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.graph import Topology, topology
from jaxmbd.kinematics.recursion import PerBody, Runs
from jaxmbd.model.joints.base import J, Joint
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import changed


def body_runs(mech: Mechanism) -> Runs:
    """The runs of a mechanism's topology, without those whose joints differ in form."""
    runs = topology(mech).runs
    if all(len(run) == 1 for run in runs):
        return runs
    forms = [_form(nameless(mech.joint(name))) for name in topology(mech).tree]
    out: list[range] = []
    for run in runs:
        same = all(forms[i] == forms[run[0]] for i in run)
        out += [run] if same else [range(i, i + 1) for i in run]
    return tuple(out)


def _form(joint: Joint) -> Any:
    numbers, structure = jax.tree_util.tree_flatten(joint)
    return structure, [jnp.shape(x) for x in numbers]


def by_joint(top: Topology, runs: Runs, x: Array, kind: str = "v") -> PerBody:
    """The parts of x that belong to the tree joints: of coordinates ("q") or of speeds ("v")."""
    places = [getattr(top.layout[name], kind) for name in top.tree]
    sizes = [place.stop - place.start for place in places]
    parts = lax.split(x, [sum(sizes[i] for i in run) for run in runs])
    return PerBody(
        runs,
        [
            part if len(run) == 1 else part.reshape(len(run), sizes[run[0]], *x.shape[1:])
            for run, part in zip(runs, parts, strict=True)
        ],
    )


def nameless(joint: J) -> J:
    """A joint without names and points, on which its motion does not depend.

    Joints of one type then are pytrees of one type, so that functions of them are traced once.
    """
    return changed(joint, a="", b="", **dict.fromkeys(joint.points))
