"""Pinocchio's trees with one closed loop: accelerations and λ at given states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.pin_tree import Link, UnknownJoint, build, read_links, to_engine
from accuracy_cases.report import Row, compare, unsupported
from accuracy_cases.robots import accelerations

CLOSING = "closing"
OURS = {
    "qdd": "qdd",
    "pin_constraintDynamics_qdd": "qdd",
    "lambda_world_on_first_body": "lam",
    "M": "M",
    "nle": "nle",
    "J": "J",
    "gamma_minus_Jdot_v": "gamma",
}
ABOUT_THE_FILE = ("q", "v", "tau", "closure_error", "drift_fd_check")


def detect(data: dict[str, Any]) -> bool:
    return "closing" in data and "states" in data and bool(data.get("joints"))


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case = data.get("name", "closed loop")
    try:
        links = read_links(data["joints"])
        first, second = (_end(data["closing"][k], links) for k in ("first", "second"))
    except UnknownJoint as error:
        return [unsupported(case, str(error))]
    if any(link.axis is None for link in links):
        return [unsupported(case, "the file leaves out the axis of a joint")]
    ball = mbd.Spherical(second[0], first[0], at=second[1], at_b=first[1])
    mech = build(links, data.get("gravity", [0.0, 0.0, -9.81]), **{CLOSING: ball})
    world = _world_rows(data)

    @jax.jit
    def found(q: Any, v: Any, tau: Any) -> dict[str, Any]:
        return _values(mech, links, q, v, tau)

    states = data["states"]
    ours = [found(*(jnp.asarray(s[k], float) for k in ("q", "v", "tau"))) for s in states]
    rows = []
    for key in dict.fromkeys(k for s in states for k in s if k not in ABOUT_THE_FILE):
        if key not in OURS:
            rows.append(unsupported(case, f"unknown quantity '{key}'"))
            continue
        pairs = [
            (np.asarray(o[OURS[key]]), s[key])
            for o, s in zip(ours, states, strict=True)
            if key in s
        ]
        picked = [a[world] if OURS[key] in ("lam", "J", "gamma") else a for a, _ in pairs]
        text = f"{key} ({len(pairs)} states)"
        rows.append(compare(case, text, np.stack(picked), np.stack([b for _, b in pairs])))
    return rows


def _end(text: str, links: list[Link]) -> tuple[str, Any]:
    """Body and drawn point of ``joint 2 frame offset [0.8, 0, 0]``; joint 0 is the universe."""
    match = re.search(r"joint\s+(\d+).*?\[([^\]]*)\]", str(text))
    if match is None:
        raise UnknownJoint(f"the closing {text!r} does not read 'joint N frame offset [x, y, z]'")
    offset = np.array([float(x) for x in match[2].split(",")])
    number = int(match[1])
    if number == 0:
        return "ground", offset
    link = links[number - 1]
    return link.name, link.origin + link.frame @ offset


def _world_rows(data: dict[str, Any]) -> list[int]:
    """The world components of the file's closing rows."""
    match = re.search(r"rows\s*\[([\d,\s]*)\]", str(data.get("conventions", "")))
    if match:
        return [int(x) for x in match[1].split(",")]
    return list(range(len(data["states"][0].get("lambda_world_on_first_body", [0, 0, 0]))))


def _values(mech: Any, links: list[Link], q: Any, v: Any, tau: Any) -> dict[str, Any]:
    s = to_engine(mech, links, q, v)
    mass, jacobian = mbd.mass_matrix(mech, s.q), mbd.constraint_jacobian(mech, s.q)
    qdd, lam = accelerations(mech, links, q, v, tau)
    return {
        "qdd": qdd,
        "lam": lam,
        "M": s.turn.T @ mass @ s.turn,
        "nle": s.turn.T @ (mass @ s.drift + mbd.bias(mech, s.q, s.v)),
        "J": jacobian @ s.turn,
        "gamma": mbd.gamma(mech, s.q, s.v) - jacobian @ s.drift,
    }
