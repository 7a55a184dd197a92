"""Under `jax.vmap` a public function is one kernel and little else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

MECHANISM = mbd.zoo.four_bar()
Q = jnp.tile(mbd.assemble(MECHANISM).q, (3, 1))


@pytest.mark.parametrize(
    "fn",
    [
        pytest.param(
            lambda q: mbd.simulate(MECHANISM, q, t1=0.01, dt=0.01, throw=False).q, id="simulate"
        ),
        pytest.param(
            lambda q: mbd.linearize(MECHANISM, q, independent=["A"]).A,
            id="linearize",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda q: mbd.forward_dynamics(MECHANISM, q, jnp.zeros(3))[0], id="forward_dynamics"
        ),
    ],
)
def test_little_stays_outside_the_kernel(fn):
    """The arithmetic of XLA's program is at most a check; by `lanes.vmap` there is none."""
    for batch, most in ((jax.vmap, 6), (lanes.vmap, 0)):
        text = jax.jit(batch(fn)).lower(Q).as_text()
        assert text.count("@lanes_") == 1
        plain = ("constant", "reshape", "broadcast_in_dim", "custom_call", "return", "convert")
        operations = [
            x.split("stablehlo.")[1].split()[0] for x in text.splitlines() if "stablehlo." in x
        ]
        left = [x for x in operations if x not in plain]
        assert len(left) <= most, left


def test_default_speeds_are_those_of_assemble_velocity():
    drive = MECHANISM.replace(drives={"motor": mbd.Drive("A", lambda t, p: p * t, 2.0)})
    q = mbd.assemble(drive).q
    v = mbd.assemble_velocity(drive, q)
    run = mbd.simulate(drive, q, t1=0.01, dt=0.01)
    assert abs(float(v[0])) > 1.0
    np.testing.assert_allclose(run.v[0], v, rtol=1e-10)
