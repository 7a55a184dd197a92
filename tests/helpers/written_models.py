"""A mechanism written to a file of another format, read again, and compared with itself."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

import jaxmbd as mbd


class RoundTrip(NamedTuple):
    """What was written, what was read, and the largest relative errors."""

    written: mbd.io.Exported
    read: mbd.io.Imported
    errors: dict[str, float]


def round_trip(mech, save, load, path, *, seed=0, spread=0.3):
    """Write, read, and compare mass matrix, bias, poses and closure.

    Mass matrix and bias are compared at a random state off the constraints, without the forces that
    are left out, in the coordinates of what was written: with v' = T v, M = Tᵀ M' T and
    h = Tᵀ (h' + M' Ṫ v). The closure error is that of the read mechanism where the written one is
    assembled.
    """
    written, read = save(mech, path), load(path)
    m, n, rng = written.mechanism, read.mechanism, np.random.default_rng(seed)
    lost = {name: row.consequence for row in written.left_out for name in row.names}
    forces = {name: remains(f, lost[name]) for name, f in m.forces.items() if name in lost}
    m = m.replace(
        forces=forces,
        drives=dict.fromkeys(m.drives),
        couplings={c: None for c in m.couplings if c in lost},
    )
    if "gravity" in {row.what for row in written.left_out}:
        m = m.replace(gravity=n.gravity)
    top = mbd.topology(m)
    q = np.asarray(mbd.step_coordinates(m, mbd.neutral(m), spread * rng.normal(size=top.nv)))
    v = rng.normal(size=top.nv)
    n = with_controls(n, read.states)
    own, theirs = written.coordinates, read.coordinates

    def speeds(q, v):
        return theirs.v(own.qpos(q), own.qvel(q, v))

    @jax.jit
    def across(q, v, rates):
        slip = jax.jvp(lambda q: speeds(q, v), (q,), (rates,))[1]
        back = own.q(own.qpos(q)), own.v(own.qpos(q), own.qvel(q, v))
        return theirs.q(own.qpos(q)), speeds(q, v), slip, jax.jacfwd(speeds, 1)(q, v), back

    there, w, slip, turn, back = across(q, v, mbd.coordinate_rates(m, q, v))
    mass = np.asarray(mbd.mass_matrix(n, there))
    bias = mbd.bias(n, there, w) + mass @ slip
    found, wanted = moved(n, there), moved(m, q)
    kept = [b for b in m.structure.bodies if read.bodies.get(b) == b]
    errors = {
        "mass": relative(turn.T @ mass @ turn, mbd.mass_matrix(m, q)),
        "bias": relative(turn.T @ bias, mbd.bias(m, q, v)),
        "poses": max((gap(found[b], wanted[b]) for b in kept), default=0.0),
        "coordinates": gap(back[0], q),
        "speeds": gap(back[1], v),
        "closure": 0.0,
    }
    if top.nc:
        closed = mbd.assemble(m, guess=mbd.neutral(m)).q
        residual = mbd.constraint_residual(n, theirs.q(own.qpos(closed)))
        errors["closure"] = float(np.abs(residual).max(initial=0.0))
    return RoundTrip(written, read, errors)


def remains(force, consequence):
    """What is written of a force: nothing, or all but its law."""
    if not consequence.endswith("alone"):
        return None
    return eqx.tree_at(lambda f: f.law, force, None)


def with_controls(mech, states):
    """The mechanism with the controls of its actuators that were written as a state."""
    given = {k: u for state in states.values() for k, u in state.inputs.items()}
    return mech.replace(
        forces={k: mech.forces[k].controlled(np.asarray(u)) for k, u in given.items()}
    )


def moved(mech, q):
    """Motion (3, 4) of each body from its place at q = 0: rotation, and where the origin comes."""
    start, out = mbd.poses(mech, mbd.neutral(mech)), {}
    for name, pose in mbd.poses(mech, q).items():
        rotation = pose.rotation @ start[name].rotation.T
        out[name] = np.column_stack([rotation, pose.position - rotation @ start[name].position])
    return out


def gap(a, b):
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


def relative(a, b):
    return gap(a, b) / max(float(np.abs(np.asarray(b)).max()), 1e-300)
