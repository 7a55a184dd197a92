"""What a MuJoCo model may have beside the parts that mechanisms have: told, never dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.io.imported import LeftOut
from jaxmbd.io.mujoco_bodies import Drawn, joint_kind, names_of
from jaxmbd.io.mujoco_forces import disabled
from jaxmbd.io.mujoco_tendons import tendons_left_out


def unsaid(drawn: Drawn) -> list[LeftOut]:
    """Contacts, tendons, flexible bodies, fluids and all else that acts on the bodies."""
    model = drawn.model
    rows = [
        _contacts(drawn),
        *tendons_left_out(drawn),
        LeftOut("flexible bodies", names_of(model, "flex", model.nflex), "absent"),
        LeftOut("plugins", names_of(model, "plugin", model.nplugin), "absent"),
        LeftOut("ranges of balls", _ball_ranges(drawn), "absent"),
        LeftOut("sensors", names_of(model, "sensor", model.nsensor), "use jaxmbd.observe"),
        LeftOut("mocap bodies", _mocap(drawn), "they stay where they are drawn"),
        LeftOut("media", _media(model), "no forces of air or water"),
        LeftOut("weights that actuators carry", _compensating(drawn), "carried by a force"),
    ]
    return [row for row in rows if row.names]


def _contacts(drawn: Drawn) -> LeftOut:
    """Shapes of which some can touch another, as MuJoCo decides it without exclusions."""
    model, text = drawn.model, "bodies pass through each other and the ground"
    if disabled(model, "CONTACT"):
        return LeftOut("contact shapes", (), text)
    kind, affinity = model.geom_contype, model.geom_conaffinity
    meets = (kind[:, None] & affinity[None, :]) | (kind[None, :] & affinity[:, None])
    carrier = model.body_weldid[model.geom_bodyid]
    touching = (meets.astype(bool) & (carrier[:, None] != carrier[None, :])).any(axis=1)
    touching[model.pair_geom1] = touching[model.pair_geom2] = True
    names = names_of(model, "geom", model.ngeom)
    return LeftOut("contact shapes", tuple(names[i] for i in np.flatnonzero(touching)), text)


def _ball_ranges(drawn: Drawn) -> tuple[str, ...]:
    model = drawn.model
    if disabled(model, "LIMIT"):
        return ()
    ranged = [j for j in range(model.njnt) if joint_kind(model, j) == "ball"]
    return tuple(drawn.joints[j] for j in ranged if model.jnt_limited[j])


def _mocap(drawn: Drawn) -> tuple[str, ...]:
    names = names_of(drawn.model, "body", drawn.model.nbody)
    return tuple(names[i] for i in np.flatnonzero(drawn.model.body_mocapid >= 0))


def _media(model: Any) -> tuple[str, ...]:
    return tuple(n for n in ("density", "viscosity") if getattr(model.opt, n))


def _compensating(drawn: Drawn) -> tuple[str, ...]:
    flags = np.flatnonzero(drawn.model.jnt_actgravcomp)
    return tuple(drawn.joints[j] for j in flags) if drawn.model.body_gravcomp.any() else ()
