"""float32 from end to end while double precision is switched on, and float64 left alone by it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

EPS = float(np.finfo(np.float32).eps)
GUESS = np.array([-1.0, 0.5, -1.5])
V0 = {"A": 4.0}


def four_bar(dtype):
    """A four-bar whose gravity alone is an array of the type asked for."""
    return mbd.zoo.four_bar(gravity=jnp.array([0.0, 0.0, -9.81], dtype))


def end_to_end(mech):
    """Assembly, speeds, dynamics, reactions and a short run, with all their results."""
    a = mbd.assemble(mech, {"A": -0.8}, guess=GUESS)
    v = mbd.assemble_velocity(mech, a.q, V0)
    vdot, lam = mbd.forward_dynamics(mech, a.q, v)
    tau, _ = mbd.inverse_dynamics(mech, a.q, v, vdot)
    s = mbd.simulate(mech, a.q, v, t1=0.1, dt=0.01)
    return {
        "q": a.q,
        "v": v,
        "vdot": vdot,
        "lam": lam,
        "tau": tau,
        "mass": mbd.mass_matrix(mech, a.q),
        "energy": mbd.kinetic_energy(mech, a.q, v) + mbd.potential_energy(mech, a.q),
        "q_end": s.q[-1],
        "v_end": s.v[-1],
        "t": s.t,
        "drift": s.drift,
        "residual": a.residual,
    }, (a.status, s.status)


@pytest.fixture(scope="module")
def both():
    return {dtype: jax.jit(end_to_end)(four_bar(dtype)) for dtype in ("float32", "float64")}


def test_one_float32_array_makes_all_numbers_float32():
    leaves = jax.tree_util.tree_leaves(four_bar("float32"))
    assert {np.dtype(x.dtype) for x in leaves} == {np.dtype("float32")}
    leaves = jax.tree_util.tree_leaves(four_bar("float64"))
    assert {np.dtype(x.dtype) for x in leaves} == {np.dtype("float64")}
    mech = mbd.zoo.rssr().astype("float32")
    assert mech.dtype == np.float32 and mbd.neutral(mech).dtype == np.float32


def test_results_keep_the_type_of_the_mechanism(both):
    for dtype, (results, _) in both.items():
        found = {name: str(x.dtype) for name, x in results.items() if x.dtype != dtype}
        assert not found


def test_float32_is_close_to_float64(both):
    single, status = both["float32"]
    double, _ = both["float64"]
    assert [int(s) for s in status] == [0, 0]
    # Conditioning of this position: a few hundred roundings, a run of ten steps some more.
    for name in ("q", "v", "vdot", "lam", "mass", "energy", "q_end", "v_end", "t"):
        size = np.abs(double[name]).max()
        np.testing.assert_allclose(
            single[name], double[name], rtol=0, atol=1e3 * EPS * size, err_msg=name
        )
    force = np.abs(double["mass"] @ double["vdot"]).max()
    assert np.abs(single["tau"]).max() < 1e3 * EPS * force
    assert float(single["residual"]) < 1e-5 and float(single["drift"]) < 1e-4
    assert float(double["residual"]) < 1e-12 and float(double["drift"]) < 1e-11


@pytest.mark.parametrize("given", ["float64", "int", "list"])
def test_states_of_another_type_do_not_change_the_result(given):
    """What the caller hands in is brought to the mechanism's type, never the other way round."""
    q, v = [1.0], [2.0]
    if given != "list":
        q, v = np.array(q, given), np.array(v, given)
    for dtype in ("float32", "float64"):
        mech = mbd.zoo.simple_pendulum(gravity=jnp.array([0.0, -9.81, 0.0], dtype))
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        assert vdot.dtype == lam.dtype == dtype
        np.testing.assert_allclose(vdot, [9.81 * np.cos(1.0)], rtol=10 * np.finfo(dtype).eps)


def test_integer_coordinates_of_a_closed_loop():
    """A scale kept in the type of q must not be rounded to an integer."""
    mech = mbd.zoo.n_four_bar(1)
    v = np.array([1.0, -1.0, 1.0])
    exact = mbd.forward_dynamics(mech, np.zeros(3), v)
    found = mbd.forward_dynamics(mech, np.zeros(3, int), v)
    for a, b in zip(found, exact, strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_float32_gradient_is_close_to_float64():
    def fall(dtype):
        def angle(length):
            mech = mbd.zoo.simple_pendulum(
                length=length, gravity=jnp.array([0.0, -9.81, 0.0], dtype)
            )
            s = mbd.simulate(mech, mbd.neutral(mech), np.zeros(1), t1=0.2, dt=0.02)
            return s.q[-1, 0]

        return jax.jit(jax.value_and_grad(angle))(jnp.asarray(1.0, dtype))

    (value, slope), (exact, exact_slope) = fall("float32"), fall("float64")
    assert value.dtype == slope.dtype == np.float32
    np.testing.assert_allclose([value, slope], [exact, exact_slope], rtol=100 * EPS)


def test_couplings_and_rest_of_single_precision_beside_double():
    """Rows of couplings and sizes of loads were double, so that nothing could be compiled."""
    bodies = {n: mbd.Body(1.0, (x, 0.0, -0.1), 0.1 * np.eye(3)) for n, x in (("a", 0), ("b", 1))}
    joints = {n: mbd.Revolute("ground", n, (x, 0, 0), (0, 1, 0)) for n, x in (("a", 0), ("b", 1))}
    double = mbd.Mechanism(
        bodies,
        joints,
        forces={"coil": mbd.TorsionSpring("a", 5.0)},
        couplings={"gear": mbd.Gear("a", "b", ratio=-2.0)},
    )
    for mech, tight in ((double, 1e-12), (double.astype("float32"), 1e-5)):
        q = jnp.asarray([0.1, -0.2], mech.dtype)
        vdot, lam = mbd.forward_dynamics(mech, q, 0.0 * q)
        found = mbd.equilibrium(mech)
        assert {x.dtype for x in (vdot, lam, found.q)} == {np.dtype(mech.dtype)}
        # One freedom: (0.11 (1 + 4)) a = −k θ − m g l (sin θ + 2 sin 2θ), θ = 0.1.
        effort = -0.5 - 0.981 * (np.sin(0.1) + 2.0 * np.sin(0.2))
        np.testing.assert_allclose(vdot, effort / 0.55 * np.array([1.0, -2.0]), rtol=tight)
        np.testing.assert_allclose(found.q, 0.0, rtol=0, atol=tight)
