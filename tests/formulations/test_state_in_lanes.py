"""The equations in absolute coordinates compile in lanes: no library factorisation is in them."""

import warnings

import jax.numpy as jnp
import numpy as np
from barrel_cam import BarrelCam

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.formulations.absolute import all_rows, body_loads, state_motion
from jaxmbd.formulations.absolute_coordinates import effort_directions

BODY = mbd.Body(1.0, (1.0, 0.0, 0.0), np.diag([0.2, 0.3, 0.4]))
MECH = mbd.Mechanism(
    {"a": BODY, "b": BODY, "c": BODY},
    {
        "universal": mbd.Universal("ground", "a", (0, 0, 0), (0, 1, 0), (0, 0, 1)),
        "cam": BarrelCam("ground", "b", (1, 0, 0), (0, 0.6, 0.8), lift=0.2),
        "ball": mbd.Spherical("ground", "c", (0, 0, 0)),
    },
    forces={n: mbd.TorsionSpring(n, stiffness=2.0, damping=0.1) for n in ("universal", "cam")},
)


def loads_and_rows(q, v):
    motion = state_motion(MECH, q, v)
    rows = [r.phi for r in all_rows(motion)]
    return body_loads(motion, {"ball": [1.0, 2.0, 3.0]}), jnp.concatenate(rows)


def test_loads_and_rows_are_one_kernel():
    q = mbd.step_coordinates(MECH, mbd.neutral(MECH), 0.3 * jnp.arange(1.0, 7.0))
    v = jnp.linspace(-1.0, 1.0, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lanes.vmap(loads_and_rows)(q[None], v[None])
    for one, other in zip(found, loads_and_rows(q, v), strict=True):
        np.testing.assert_allclose(one[0], other, rtol=0, atol=1e-13)


def test_effort_directions_are_dual_to_the_motions():
    """A universal joint's torques and a foreign joint's wrench: the pseudo-inverse's columns."""
    q = mbd.step_coordinates(MECH, mbd.neutral(MECH), 0.3 * jnp.arange(1.0, 7.0))
    motion = state_motion(MECH, q, jnp.zeros(6))
    _, s, a, b = motion.halves("universal")
    axes = np.stack([a.rotation @ s.triad_a[:, 0], b.rotation @ s.triad_b[:, 0]])
    directions = effort_directions(*motion.halves("universal"))
    np.testing.assert_allclose(directions[:3], np.linalg.pinv(axes), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(directions[3:], 0.0)
    drum = effort_directions(*motion.halves("cam"))
    np.testing.assert_allclose(drum[:, 0], [0.0, 0.6, 0.8, 0.0, 0.0, 0.0], rtol=0, atol=1e-14)
