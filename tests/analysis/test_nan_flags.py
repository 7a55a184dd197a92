"""A NaN in any number of a sample is flagged, and by both backends alike.

Lanes drops what a literal zero multiplies, XLA does not; see `jaxmbd.model.finite`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.model.finite import has_literal_zeros


def parts(mech):
    """The numbers that vary; axes stay constants, whose zeros fold."""
    return mech.bodies, mech.points


def spoilt(tree, value):
    """A batch of a tree, each sample with one number replaced; the last with none."""
    leaves, shape = jax.tree.flatten(tree)
    flat = np.concatenate([np.ravel(x) for x in leaves])
    rows = np.concatenate([np.where(np.eye(flat.size) > 0, value, flat), flat[None]])
    cuts = np.cumsum([np.size(x) for x in leaves])[:-1]
    columns = np.split(rows, cuts, axis=1)
    batch = [c.reshape(-1, *np.shape(x)) for c, x in zip(columns, leaves, strict=True)]
    return jax.tree.unflatten(shape, batch)


def flags(fn, mech, value):
    """By backend: where all numbers are finite, a row for each sample; and the statuses.

    `fn` gives lists of numbers, each with a column of its own.
    """
    found = []
    for backend in ("lanes", "xla"):

        def one(p, backend=backend):
            each, status = fn(eqx.tree_at(parts, mech, p), backend)
            flat = [jnp.concatenate([jnp.ravel(x) for x in numbers]) for numbers in each]
            return jnp.stack([jnp.all(jnp.isfinite(x)) for x in flat], axis=-1), status

        found.append([np.asarray(x) for x in jax.jit(jax.vmap(one))(spoilt(parts(mech), value))])
    return found


def forward(m, q, v, backend):
    return mbd.forward_dynamics(m, q, v, backend=backend)


def inverse(m, q, v, backend):
    return mbd.inverse_dynamics(m, q, v, v, backend=backend)


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
@pytest.mark.parametrize("name", ["four_bar", "rssr"])
def test_forward_and_inverse_dynamics(name, value):
    """Also of inertias across the axis of a plane motion, which no result depends on."""
    mech = getattr(mbd.zoo, name)()
    q, v = mbd.neutral(mech), np.full(mbd.topology(mech).nv, 0.3)

    def both(m, backend):
        return [f(m, q, v, backend) for f in (forward, inverse)], 0

    (lanes, _), (xla, _) = flags(both, mech, value)
    np.testing.assert_array_equal(lanes, xla)
    assert not lanes[:-1].any() and lanes[-1].all()


def assembled(m, backend):
    a = mbd.assemble(m, {"ground_0": 0.4}, throw=False, backend=backend)
    return [[a.q]], a.status


def at_rest(m, backend):
    e = mbd.equilibrium(m, guess=jnp.array([3.0, -3.0, 3.0]), throw=False, backend=backend)
    return [[e.q]], e.status


def run(m, backend):
    q = jnp.array([0.4, -0.4, 0.4])
    s = mbd.simulate(m, q, 2.0 * q, t1=0.02, dt=0.01, throw=False, backend=backend)
    return [[s.q, s.v]], s.status


@pytest.mark.parametrize(
    "fn",
    [assembled, *(pytest.param(f, marks=pytest.mark.slow) for f in (at_rest, run))],
)
def test_statuses(fn):
    mech = mbd.zoo.n_four_bar(1, planar=True)
    lanes, xla = flags(fn, mech, np.nan)
    for x, y in zip(lanes, xla, strict=True):
        np.testing.assert_array_equal(x, y)
    fine, status = lanes
    assert not fine[:-1].any() and fine[-1]
    assert (status[:-1] == mbd.Status.NON_FINITE).all() and status[-1] == mbd.Status.OK


def test_no_check_where_no_zero_may_hide_a_number():
    """With neither constant points nor zeros in the axes every number reaches the results."""
    mech = mbd.zoo.double_pendulum()
    names = list(mech.joints)
    axes = [np.array([0.3, -0.5, 0.8])] * len(names)
    skew = eqx.tree_at(lambda m: [m.joints[n].axis for n in names], mech, axes)
    asked = []

    def trace(m, p):
        asked.append(has_literal_zeros(eqx.tree_at(parts, m, p)))

    for m in (mech, skew):
        jax.eval_shape(lambda p, m=m: trace(m, p), parts(m))
    assert asked == [True, False] and has_literal_zeros(skew)
    q, v = mbd.neutral(skew), np.full(mbd.topology(skew).nv, 0.3)
    (lanes, _), (xla, _) = flags(lambda m, b: ([forward(m, q, v, b)], 0), skew, np.nan)
    np.testing.assert_array_equal(lanes, xla)
    assert not lanes[:-1].any() and lanes[-1]
