"""Tangents of redundant mechanisms: exact where they exist, NaN where they do not."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

OUT_OF_PLANE = np.array([0.0, 1.0, 0.0])


def moved(mech, step):
    """Hardpoints moved by `step`, {name: (3,)}; all of them where the name is None."""
    points = {n: x + step.get(n, step.get(None, 0.0)) for n, x in mech.points.items()}
    return mech.replace(points=points)


@lru_cache(maxsize=8)
def compiled_slope(fn):
    """Directional derivative of fn(four-bar), compiled once for all directions."""
    mech = mbd.zoo.four_bar()
    of_points = lambda points: fn(mech.replace(points=points))  # noqa: E731
    return jax.jit(lambda points, way: jax.jvp(of_points, (points,), (way,))[1])


def slope(fn, step):
    """Derivative of fn(four-bar) for hardpoints that move at the rates `step`."""
    points = {n: jnp.asarray(x) for n, x in mbd.zoo.four_bar().points.items()}
    still = jnp.zeros(3)
    way = {n: jnp.asarray(step.get(n, step.get(None, still)), float) for n in points}
    return compiled_slope(fn)(points, way)


def crank_angle(mech, backend="lanes"):
    crank = mbd.topology(mech).tree[0]
    return mbd.assemble(mech, {crank: 0.4}, backend=backend).q


BACKENDS = {"lanes": crank_angle, "xla": partial(crank_angle, backend="xla")}


@pytest.mark.parametrize("backend", ["lanes", pytest.param("xla", marks=pytest.mark.slow)])
def test_a_pin_moved_out_of_the_plane_has_no_derivative(backend):
    mech = mbd.zoo.four_bar()
    assert np.isnan(slope(BACKENDS[backend], {"C_rocker": OUT_OF_PLANE})).all()
    off = mbd.assemble(moved(mech, {"C_rocker": 1e-3 * OUT_OF_PLANE}), {"A": 0.4}, throw=False)
    assert int(off.status) == mbd.Status.NOT_ASSEMBLED


def difference(fn, mech, step, h=1e-6):
    at = [np.asarray(fn(moved(mech, {n: s * h * x for n, x in step.items()}))) for s in (1, -1)]
    return (at[0] - at[1]) / (2 * h)


@pytest.mark.parametrize(
    "step",
    [{"C_rocker": np.array([0.3, 0.0, -0.8])}, {None: np.array([0.2, 1.0, 0.5])}],
    ids=["in the plane", "all together"],
)
def test_directions_in_which_it_closes_stay_exact(step):
    mech = mbd.zoo.four_bar()
    found = slope(crank_angle, step)
    np.testing.assert_allclose(found, difference(crank_angle, mech, step), rtol=0, atol=1e-8)


def sprung(mech):
    """The four-bar on two springs, with a mass on its crank and gravity along its plane."""
    return mech.replace(forces={n: mbd.TorsionSpring(n, stiffness=40.0) for n in ("A", "D")})


FUNCTIONS = {
    "equilibrium": lambda m: mbd.equilibrium(sprung(m), throw=False).q,
    "driven": lambda m: (
        mbd.simulate_driven(
            m, {"A": lambda t: 0.2 + 2.0 * t}, t=jnp.array([0.0, 0.1]), throw=False
        ).q
    ),
    "velocity": lambda m: mbd.assemble_velocity(
        m, mbd.assemble(m, {"A": 0.4}).q, {"A": 2.0}, guess=np.zeros(3)
    ),
    "simulation": lambda m: mbd.simulate(
        m, mbd.assemble(m, {"A": 0.4}).q, t1=3e-3, dt=1e-3, throw=False
    ).q[-1],
}


@pytest.mark.parametrize(
    "name",
    [x if x == "velocity" else pytest.param(x, marks=pytest.mark.slow) for x in FUNCTIONS],
)
def test_every_solution_is_tested(name):
    mech = mbd.zoo.four_bar()
    fn = lambda x: FUNCTIONS[name](mech.replace(points={"C_rocker": x}))  # noqa: E731
    both = jax.jit(lambda x, way: jax.jvp(fn, (x,), (way,)))
    at, way, h = mech.points["C_rocker"], np.array([0.3, 0.0, -0.8]), 1e-6
    assert np.isnan(both(at, OUT_OF_PLANE)[1]).any(axis=-1).all()
    differences = (both(at + h * way, way)[0] - both(at - h * way, way)[0]) / (2 * h)
    np.testing.assert_allclose(both(at, way)[1], differences, rtol=0, atol=2e-7)


def test_a_tilted_axis_is_felt_by_the_accelerations():
    """One hinge's axis turned out of the normal: the rows of the closed loop contradict."""
    mech = mbd.zoo.four_bar()
    q = mbd.assemble(mech, {"A": 0.4}).q
    v = mbd.assemble_velocity(mech, q, {"A": 2.0})

    def tilted(s):
        axis = jnp.array([0.0, 1.0, 0.0]) + s * jnp.array([1.0, 0.0, 0.0])
        joint = mech.joints["D"]
        hinge = mbd.Revolute(joint.a, joint.b, "D", axis=axis)
        return mbd.forward_dynamics(mech.replace(joints={"D": hinge}), q, v)[0]

    assert np.isnan(jax.jit(lambda s: jax.jvp(tilted, (s,), (1.0,))[1])(0.0)).all()
    faster = jax.jit(
        lambda s: jax.jvp(lambda s: mbd.forward_dynamics(mech, q, s * v)[0], (s,), (1.0,))
    )
    value, change = faster(1.0)
    assert np.isfinite(value).all() and np.isfinite(change).all()


def test_only_the_sample_whose_derivative_does_not_exist_is_nan():
    mech = mbd.zoo.four_bar()
    along = jnp.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])

    def one(way):
        push = lambda s: crank_angle(moved(mech, {"C_rocker": s * way}))  # noqa: E731
        return jax.jvp(push, (0.0,), (1.0,))[1]

    for batch in (jax.vmap(one), lanes.vmap(one)):
        found = np.isnan(jax.jit(batch)(along)).all(axis=1)
        assert found.tolist() == [False, True, False]


@pytest.mark.slow
def test_a_rollout_of_a_redundant_mechanism_keeps_its_derivative():
    """Off the constraints within a step its rows are not quite redundant."""

    def last(crank):
        mech = mbd.zoo.double_parallel_crank(crank=crank)
        sign = jnp.array([1.0 if n.startswith("A") else -1.0 for n in mbd.topology(mech).tree])
        return mbd.simulate(mech, 0.4 * sign, t1=0.05, dt=5e-3, throw=False).q[-1]

    both = jax.jit(lambda x: jax.jvp(last, (x,), (1.0,)))
    differences = (both(0.5 + 1e-5)[0] - both(0.5 - 1e-5)[0]) / 2e-5
    np.testing.assert_allclose(both(0.5)[1], differences, rtol=0, atol=1e-8)


def test_a_gradient_is_exact_along_directions_that_close():
    """Reverse mode names no direction: its product with one that closes is the slope there."""
    mech = mbd.zoo.four_bar()
    gradient = jax.jit(jax.grad(lambda x: crank_angle(mech.replace(points=x))[-1]))(mech.points)
    in_plane = {"C_rocker": np.array([0.3, 0.0, -0.8])}
    together = dict.fromkeys(mech.points, np.array([0.2, 1.0, 0.5]))
    for step in (in_plane, together):
        product = sum(gradient[n] @ x for n, x in step.items())
        np.testing.assert_allclose(product, slope(crank_angle, step)[-1], rtol=0, atol=1e-12)


def test_a_centre_of_mass_moves_no_joint_of_a_loop_drawn_askew():
    """Rounding of what it is subtracted from is no contradiction of redundant rows."""
    turn = np.linalg.qr(np.array([[1.0, 2.0, 0.5], [0.3, 1.0, 2.0], [2.0, 0.1, 1.0]]))[0]
    flat = mbd.zoo.slider_crank()
    mech = mbd.Mechanism(
        bodies={n: mbd.Body(b.mass, turn @ flat.com(n), b.inertia) for n, b in flat.bodies.items()},
        joints={
            n: type(j)(j.a, j.b, at=j.point_a, axis=turn @ np.asarray(j.axis))
            for n, j in flat.joints.items()
        },
        points={n: turn @ np.asarray(x) for n, x in flat.points.items()},
    )
    crank = mbd.topology(mech).tree[0]

    def closed(com):
        bodies = {**mech.bodies, "crank": mbd.Body(mech.bodies["crank"].mass, com, 1.0)}
        return mbd.assemble(mech.replace(bodies=bodies), {crank: 0.4}, backend="xla").q

    com = jnp.asarray(mech.com("crank"))
    change = jax.jvp(closed, (com,), (jnp.asarray([1.0, 0.2, -0.4]),))[1]
    np.testing.assert_allclose(change, 0.0, atol=1e-12)
