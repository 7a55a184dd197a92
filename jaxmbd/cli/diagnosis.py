"""What is said of a mechanism that is checked: facts, and what is wrong or nearly so."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.analysis import REDUNDANT, Mobility, Status, assemble, check_state, mobility, redundancy
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import (
    mechanism_length,
    motion_state,
    own_jacobian,
    speed_units,
    step_coordinates,
)
from jaxmbd.model import Mechanism
from jaxmbd.observe import Configuration, status_text, stays_open

_NEAR_SINGULAR = 1e-3
_ILL_CONDITIONED = 1e-9
_BESIDE = 0.05
"""How far beside a configuration its mobility is compared [rad, lengths of the mechanism]."""


def diagnose(mech: Mechanism) -> dict[str, Any]:
    """Facts by name, troubles as sentences, and whether the mechanism can be used as it is.

    Returns:
        ``facts``, ``trouble``, ``sound``, and the numbers behind them.
    """
    top, drawn = topology(mech), mobility(mech)
    whole = Configuration()
    failed = whole(mech)
    status = Status(int(failed["status"]))
    facts: dict[str, Any] = {
        "bodies": ", ".join(top.bodies),
        "joints": ", ".join(
            f"{e.name} ({type(mech.joints[e.name]).__name__})" for e in mech.structure.joints
        ),
        **_typed(mech),
        "cut joints": ", ".join(top.cut) or "none: the joints form a tree",
        "coordinates": f"{top.nq} coordinates, {top.nv} speeds, {top.nc} constraint rows",
        "size": f"{float(mechanism_length(mech)):.3g} m",
        "mobility": f"{_freedoms(drawn.dof)} ({drawn.kutzbach} by counting, after Kutzbach)",
    }
    trouble: list[str] = []
    numbers: dict[str, Any] = {
        "dof": drawn.dof,
        "kutzbach": drawn.kutzbach,
        "idle": drawn.idle,
        "redundant": drawn.redundant,
        "closes": status == Status.OK,
        "status": status.name.lower(),
        "configuration": neutral(mech),
    }
    if status != Status.OK:
        open_ = stays_open(whole.declare(mech).outputs, failed)
        trouble.append(
            f"it does not close: {open_}; check the hardpoints and lengths of its loop, or draw it "
            "nearer to the branch that is meant"
            if open_
            else f"it does not assemble: {status_text(status)}"
        )
        facts["closes"] = "no"
    else:
        q = whole.trajectory(mech).q[0]
        numbers["configuration"] = q
        trouble += _at_closed(mech, q, drawn.dof, facts, numbers)
    if drawn.redundant:
        trouble.append(f"redundant constraint rows ({', '.join(drawn.redundant)}): {REDUNDANT}")
        trouble += [str(row) for row in redundancy(mech).rows]
    if drawn.idle:
        facts["idle"] = f"the spin of {', '.join(drawn.idle)} moves nothing else"
    sound = status == Status.OK and numbers.get("state", "ok") == "ok"
    return {"facts": facts, "trouble": trouble, "sound": sound, **numbers}


def _typed(mech: Mechanism) -> dict[str, str]:
    """Force elements, drives and couplings with their types."""
    parts = {"forces": mech.forces, "drives": mech.drives, "couplings": mech.couplings}
    texts = {
        kind: ", ".join(f"{name} ({type(part).__name__})" for name, part in own.items())
        for kind, own in parts.items()
    }
    return {kind: text for kind, text in texts.items() if text}


def _freedoms(count: int) -> str:
    return f"{count} degree{'s' * (count != 1)} of freedom"


def _at_closed(
    mech: Mechanism, q: np.ndarray, dof: int, facts: dict[str, Any], numbers: dict[str, Any]
) -> list[str]:
    """Facts and troubles at the closed configuration."""
    trouble = []
    moved = float(np.max(np.abs(q - np.asarray(neutral(mech))), initial=0.0))
    drawn_closed = "as drawn" if moved < 1e-9 else f"coordinates change by up to {moved:.3g}"
    facts["closes"] = f"yes, {drawn_closed}"
    closed, beside = mobility(mech, q), _beside(mech, q)
    if closed.dof != dof:
        facts["mobility"] += f"; {closed.dof} where it closes"
    if beside is not None and beside.dof < closed.dof:
        trouble.append(
            f"it is at a singular position: {_freedoms(closed.dof)} there, {beside.dof} beside it, "
            "where its motion may branch; draw it elsewhere"
        )
    state = check_state(mech, q)
    conditioning, verdict = float(state.conditioning), Status(int(state.status))
    facts["conditioning"] = f"{conditioning:.1e} of the equations of motion (1 is best)"
    numbers |= {"conditioning": conditioning, "state": verdict.name.lower()}
    if verdict != Status.OK:
        trouble.append(
            f"its accelerations cannot be trusted there ({verdict.name.lower()}): a motion without "
            "inertia and constraint, or numbers of very different size"
        )
    elif conditioning < _ILL_CONDITIONED:
        trouble.append("masses or lengths differ so much that many digits are lost")
    if (near := _nearest(mech, q, closed)) is not None:
        row, size = near
        facts["dead centre"] = (
            f"{size:.2g} away (1 is best, 0 is a dead centre), by constraint row '{row}'"
        )
        numbers["nearest"] = {"row": row, "independent": size}
        if size < _NEAR_SINGULAR:
            trouble.append(
                f"constraint row '{row}' nearly follows from the others ({size:.1e}, where 1 is "
                "best and 0 singular): it is close to a dead centre or another singular position"
            )
    return trouble


def _beside(mech: Mechanism, q: np.ndarray) -> Mobility | None:
    """Mobility at a configuration a little way along the motions that are free at q."""
    rows = np.asarray(own_jacobian(motion_state(mech, jnp.asarray(q))))
    _, sizes, vh = np.linalg.svd(rows) if rows.size else (None, np.zeros(0), np.eye(len(q)))
    free = vh[int(np.sum(sizes > 1e-9 * max(sizes, default=1.0))) :]
    if not len(free):
        return None
    step = jnp.asarray(_BESIDE * np.random.default_rng(0).normal(size=len(free)) @ free)
    near = assemble(mech, guess=step_coordinates(mech, jnp.asarray(q), step), throw=False)
    return mobility(mech, near.q) if int(near.status) == Status.OK else None


def _nearest(mech: Mechanism, q: np.ndarray, at: Mobility) -> tuple[str, float] | None:
    """The row that is nearest to depending on the others, and its smallest singular value.

    Of the rows scaled to unit length; those that are redundant anyway are left out.
    """
    m = motion_state(mech, jnp.asarray(q))
    names = m.top.row_names
    others = [k for k, name in enumerate(names) if name not in at.redundant]
    rows = np.asarray(own_jacobian(m) * speed_units(mech))[others]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not others or np.any(lengths == 0.0):
        return None
    left, sizes, _ = np.linalg.svd(rows / lengths, full_matrices=False)
    worst = int(np.argmax(np.abs(left[:, -1])))
    return names[others[worst]], float(sizes[-1])
