"""Results of analyses as a whole, each against its closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import Status
from jaxmbd.analysis import RedundantRow
from jaxmbd.graph import loops


def same(found, expected, atol):
    """Whether both are results of one kind with the same numbers."""
    jax.tree_util.tree_map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=0, atol=atol), found, expected
    )


def scale(stiffness=981.0, damping=0.0, mass=2.0):
    return mbd.Mechanism(
        bodies={"pan": mbd.Body(mass=mass)},
        joints={"guide": mbd.Prismatic("ground", "pan", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"spring": mbd.TorsionSpring("guide", stiffness=stiffness, damping=damping)},
    )


def test_the_mobility_of_a_coupler_that_spins():
    assert mbd.mobility(mbd.zoo.rssr()) == mbd.Mobility(2, 2, 3, ("coupler",), ())


def test_a_planar_loop_in_space_holds_loads_across_its_plane():
    found = mbd.redundancy(mbd.zoo.four_bar())
    assert isinstance(found, mbd.Redundancy)
    around = loops(mbd.zoo.four_bar())
    across = RedundantRow("C force 2", "C", (), around, (0.0, 1.0, 0.0), (0.0, 0.0, 0.0))
    assert found.rows[0] == across
    assert found.mobility.dof == 1 and not found.idle


def test_an_equilibrium_of_a_weight_on_a_spring():
    found = mbd.equilibrium(scale())
    none = np.zeros(0)
    expected = mbd.Equilibrium(np.array([-0.02]), none, 0.0, Status.OK, found.iterations, none)
    same(found, expected, atol=1e-12)
    held = mbd.equilibrium(scale(), known={"guide": 0.1})
    np.testing.assert_allclose(held.held, [981.0 * 0.1 + 2.0 * 9.81], rtol=1e-12)


def test_modes_of_a_damped_oscillator():
    mech = scale(stiffness=200.0, damping=4.0)
    modes = mbd.linearize(mech, mbd.equilibrium(mech).q).modes()
    decay, size = 1.0, 10.0  # c/2m and √(k/m)
    swing = np.sqrt(size**2 - decay**2)
    eigenvalues = np.array([-decay + 1j * swing, -decay - 1j * swing])
    order = np.argsort(np.asarray(modes.eigenvalues).imag)[::-1]
    expected = mbd.Modes(
        eigenvalues, np.full(2, size / (2 * np.pi)), np.full(2, decay / size), np.ones((1, 2))
    )
    sorted_modes = mbd.Modes(*(np.asarray(x)[..., order] for x in modes))
    same(sorted_modes, expected, atol=1e-9)


@pytest.mark.slow
def test_the_margin_of_a_crank_that_stands_still():
    """The dead centre of a slider-crank whose rod is too short, its crank across the guide."""
    found = mbd.dead_centre(mbd.zoo.slider_crank(rod=0.1), {"O": np.pi / 2})
    assert isinstance(found, mbd.ClosureMargin)
    assert found.status == Status.OK
    np.testing.assert_allclose(found.margin, 0.1 - 0.2, atol=1e-9)


def test_a_pendulum_that_turns_steadily():
    """``τ = v̇ − g cos q`` about the hinge."""
    mech, speed, t = mbd.zoo.simple_pendulum(), 0.7, np.linspace(0.0, 1.0, 4)
    found = mbd.simulate_driven(mech, {"hinge": lambda t: speed * t}, t=t)
    q, rest = (speed * t)[:, None], np.zeros((4, 1))
    effort = -9.81 * np.cos(q)
    none, ok = np.zeros((4, 0)), np.full(4, Status.OK)
    expected = mbd.DrivenMotion(t, q, rest + speed, rest, effort, effort, none, np.zeros(4), ok)
    same(found, expected, atol=1e-9)


def test_the_state_of_a_pendulum_can_be_trusted():
    mech = mbd.zoo.simple_pendulum()
    found = mbd.check_state(mech, jnp.array([0.3]), jnp.array([1.0]))
    same(found, mbd.StateCheck(Status.OK, 1.0, 0.0, 0.0, 0.0), atol=1e-12)


def test_a_structure_without_freedoms_is_in_equilibrium():
    mech = mbd.Mechanism(
        {"beam": mbd.Body(1.0, (1, 0, 0), 0.1)},
        {"clamp": mbd.Fixed("ground", "beam", at=(0, 0, 0))},
    )
    found = mbd.equilibrium(mech)
    assert found.status == Status.OK and found.q.shape == (0,)
