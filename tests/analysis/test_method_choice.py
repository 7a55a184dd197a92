"""The chosen method against the times that both take, and what is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.analysis import MethodChoice


def slide(stiffness=0.0, damping=0.0, stop=0.0, rub=0.0):
    """1 kg on a level guide; the stop is at x = 0."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0.0, 0.0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))},
        {
            "spring": mbd.TorsionSpring("slide", stiffness, damping),
            "end": mbd.JointLimit("slide", lower=0.0, stiffness=stop),
            "rub": mbd.JointFriction("slide", rub, velocity_scale=1e-4),
        },
    )


CASES = {  # mechanism, speed, end [s], whether it is stiff
    "vibration": (slide(1.0, 0.1), 0.0, 10.0, False),
    "fast vibration, which has to be followed": (slide(1e6), 0.0, 0.1, False),
    "fast and damped out": (slide(1e4, 1e4), 0.0, 10.0, True),
    "bounce on a stop": (slide(1.0, 0.0, 1e6), -1.0, 10.0, False),
    "friction down to rest": (slide(rub=0.3), 1.0, 2.0, True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_choice_is_that_with_fewer_evaluations(name):
    mech, v, t1, stiff = CASES[name]
    found = mbd.choose_method(mech, [1.0], [v], t1=t1, rtol=1e-6)
    assert isinstance(found, MethodChoice)
    steps = {}
    for method in (mbd.DormandPrince(rtol=1e-6), mbd.Rodas(rtol=1e-6)):
        run = mbd.simulate(mech, [1.0], [v], t1=t1, method=method, dt=t1 / 20, throw=False)
        steps[type(method)] = float(run.steps + run.rejected)
        assert run.status == mbd.Status.OK
    dear = (mbd.topology(mech).nq + mbd.topology(mech).nv + 20) * steps[mbd.Rodas]
    assert stiff == (7 * steps[mbd.DormandPrince] > dear) == isinstance(found.method, mbd.Rodas)
    assert 0.5 < found.steps_of_motion / steps[mbd.Rodas] < 2.5
    if stiff:
        assert 0.8 < found.steps_of_stability / steps[mbd.DormandPrince] < 1.25
    assert found.reason.startswith("Rodas" if stiff else "DormandPrince")
    assert float(found.method.rtol) == 1e-6


def test_eigenvalues_and_stops_that_are_not_seen():
    found = mbd.choose_method(slide(9.0, 0.0, 1e8), [1.0], t1=0.1)
    np.testing.assert_allclose(found.fastest, 3.0, rtol=1e-6)
    assert (
        found.untouched == ("end",) and "stops that none of 17 states touches: end" in found.reason
    )
    found = mbd.choose_method(slide(9.0, 0.0, 1e8), [-1e-3], t1=0.1)
    assert found.untouched == () and found.fastest > 9e3


@pytest.mark.slow
def test_eigenvalues_of_a_loop():
    closed = mbd.zoo.n_four_bar(1, planar=True)
    rest = mbd.equilibrium(closed, guess=mbd.assemble(closed, known={"ground_0": 3.0}).q).q
    found = mbd.choose_method(closed, rest, t1=0.5, rtol=1e-6)
    slow = mbd.linearize(closed, rest).eigenvalues()
    np.testing.assert_allclose(found.fastest, np.abs(slow).max(), rtol=1e-5)


def test_where_the_trial_run_fails():
    """A motion that becomes infinite: the method that is safe, and when that was."""
    grows = mbd.zoo.simple_pendulum().replace(
        forces={"law": mbd.TorsionSpring("hinge", law=lambda x, rate: -(rate**3))}
    )
    found = mbd.choose_method(grows, [0.1], [1.0], t1=1.0)
    assert isinstance(found.method, mbd.Rodas) and np.isnan(found.steps_of_motion)
    assert "where a trial run with loose tolerances failed" in found.reason


def test_auto_is_the_choice():
    mech = CASES["friction down to rest"][0]
    options = {"t1": 2.0, "rtol": 1e-6, "dt": 0.1}
    auto = mbd.simulate(mech, [1.0], [1.0], method="auto", **options)
    same = mbd.simulate(mech, [1.0], [1.0], method="rodas", **options)
    np.testing.assert_array_equal(auto.v, same.v)


@pytest.mark.slow
def test_auto_goes_on_where_a_run_ended():
    mech, options = CASES["friction down to rest"][0], {"method": "auto", "rtol": 1e-6}
    whole = mbd.simulate(mech, [1.0], [1.0], t1=2.0, dt=0.1, **options)
    half = mbd.simulate(mech, [1.0], [1.0], t=[0.0, 1.0], **options)
    rest = mbd.simulate(mech, half.end, t=[1.0, 2.0], **options)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], rtol=0, atol=1e-5)


def test_traced_numbers_and_other_misuse():
    mech = slide(1.0)
    for traced in (
        jax.vmap(lambda q: mbd.simulate(mech, q, t1=1.0, method="auto").q),
        jax.jit(lambda q: mbd.choose_method(mech, q[0], t1=1.0)),
        jax.jit(lambda q: mbd.simulate(mech, [0.1], t1=1.0, method="auto").q),
    ):
        with pytest.raises(ValueError, match=r"traced here .* call mbd\.choose_method"):
            traced(jnp.ones((2, 1)))
    with pytest.raises(ValueError, match="need t1 > t0"):
        mbd.choose_method(mech, [0.1], t1=1.0, t0=2.0)
    with pytest.raises(ValueError, match="not finite"):
        mbd.choose_method(mech, [np.nan], t1=1.0)
    with pytest.raises(ValueError, match="give one of .'auto', 'rk4'"):
        mbd.simulate(mech, [0.1], t1=1.0, method="automatic")


@pytest.mark.slow
def test_a_motion_without_inertia_is_named():
    bodies = {
        "arm": mbd.Body(1.0, (0.5, 0.0, 0.0), 0.01 * np.eye(3)),
        "tip": mbd.Body(0.0, (1.0, 0.0, 0.0)),
    }
    joints = {
        "a": mbd.Revolute("ground", "arm", (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        "b": mbd.Revolute("arm", "tip", (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    }
    with pytest.raises(ValueError, match=r"motion along \['b'\] has neither inertia"):
        mbd.choose_method(mbd.Mechanism(bodies, joints), [0.1, 0.2], t1=1.0)


def test_switches_are_known():
    def stiffened(t, q, v, switches):
        return {"slide": -switches["on"] * q[0]}

    options = {"t1": 0.1, "inputs": stiffened, "switches": {"on": 16.0}}
    found = mbd.choose_method(slide(9.0), [1.0], **options)
    np.testing.assert_allclose(found.fastest, 5.0, rtol=1e-6)


@pytest.mark.slow
def test_loops_that_move_by_their_numbers_alone():
    """Three parallel arms: rows contradict each other beside their motion."""
    axis, names = (0.0, 0.0, 1.0), ("first", "second", "third")
    bodies = {n: mbd.Body(1.0, (float(i), 0.5, 0.0), np.eye(3)) for i, n in enumerate(names)}
    bodies["platform"] = mbd.Body(1.0, (1.0, 1.0, 0.0), np.eye(3))
    joints = {}
    for i, n in enumerate(names):
        joints[f"{n}_foot"] = mbd.Revolute("ground", n, (float(i), 0.0, 0.0), axis)
        joints[f"{n}_top"] = mbd.Revolute(n, "platform", (float(i), 1.0, 0.0), axis)
    inertia = 3.0 * (1.0 + 0.25) + 1.0
    for damping, kind in ((1.0, mbd.DormandPrince), (1e4, mbd.Rodas)):
        drag = {"drag": mbd.JointDrag("first_foot", viscous=inertia * damping)}
        mech = mbd.Mechanism(bodies, joints, drag, gravity=(0.0, 0.0, 0.0))
        q = mbd.assemble(mech, {"first_foot": 0.1}).q
        v = mbd.assemble_velocity(mech, q, {"first_foot": 0.01})
        found = mbd.choose_method(mech, q, v, t1=1.0, rtol=1e-6)
        np.testing.assert_allclose(found.fastest, damping, rtol=0.02)
        assert 1.0 < found.steps_of_motion < 1000.0
        assert isinstance(found.method, kind)
