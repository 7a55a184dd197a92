"""Belts and chains that stretch: strands, pull at the shafts, slack; backlash as a stop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.observe import element_measures

Z = (0.0, 0.0, 1.0)
RA, RB, C = 0.05, 0.12, 0.4


def drive(belt, flip=1.0, arm=False):
    """Two pulleys, the second on the ground or on an arm that may swing."""
    carrier = "arm" if arm else "ground"
    bodies = {"a": mbd.Body(1.0, (0, 0, 0.1), (1e-3,) * 3)}
    joints = {"a": mbd.Revolute("ground", "a", at=(0, 0, 0.1), axis=Z)}
    if arm:
        bodies["arm"] = mbd.Body(1.0, (0.3, 0.2, 0), (1e-2,) * 3)
        joints["arm"] = mbd.Revolute("ground", "arm", at=(0.1, 0.2, 0), axis=Z)
    bodies["b"] = mbd.Body(1.0, (C, 0, 0.1), (1e-3,) * 3)
    joints["b"] = mbd.Revolute(carrier, "b", at=(C, 0, 0.1), axis=(0, 0, flip))
    return mbd.Mechanism(bodies, joints, forces={"belt": belt}, gravity=np.zeros(3))


@pytest.mark.parametrize(
    ("flip", "crossed"),
    [(1.0, False), (-1.0, True)]
    + [pytest.param(*x, marks=pytest.mark.slow) for x in ((-1.0, False), (1.0, True))],
)
def test_strands_pull_as_their_stretch_stores(crossed, flip):
    """Forces are the slopes of the energy, also where a tensioner swings."""
    belt = mbd.Belt("a", "b", RA, RB, 1e4, pretension=300.0, crossed=crossed)
    mech, rng = drive(belt, flip, arm=True), np.random.default_rng(3)
    q, v = rng.uniform(-0.2, 0.2, (2, 3)), rng.normal(size=(2, 3))
    slope = jax.vmap(jax.grad(mbd.potential_energy, 1), (None, 0))(mech, q)
    bias = lanes.vmap(mbd.bias, (None, 0, None))(mech, q, np.zeros(3))
    np.testing.assert_allclose(bias, slope, rtol=0, atol=1e-10 * np.abs(slope).max())

    def stretches(x):
        found = element_measures(mech, x)["belt"]
        return jnp.stack([found["stretch_1"].value, found["stretch_2"].value])

    damped = drive(mbd.Belt("a", "b", RA, RB, 1e4, 20.0, 300.0, crossed), flip, arm=True)
    for x, rate in zip(q, v, strict=True):
        stretch, speed = jax.jvp(stretches, (jnp.asarray(x),), (jnp.asarray(rate),))
        found = element_measures(damped, x, rate)["belt"]
        pulls = np.maximum(300.0 + 1e4 * stretch + 20.0 * speed, 0.0)
        for i in range(2):
            np.testing.assert_allclose(found[f"tension_{i + 1}"].value, pulls[i], rtol=1e-11)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("place", [(0.01, -0.02, 0.0), (0.38, 0.03, 0.0)])
def test_turns_of_the_line_count(place, swapped):
    """An arm that turns further by a whole turn, a pulley or its belt with it, changes nothing."""
    bodies, axis = (("arm", "ground"), (0.0, 0.0, -1.0)) if swapped else (("ground", "arm"), Z)
    mech = mbd.Mechanism(
        {n: mbd.Body(1.0, (0.1, 0.1, 0), (1e-2,) * 3) for n in ("arm", "a", "b")},
        {
            "arm": mbd.Revolute(*bodies, at=place, axis=axis),
            "a": mbd.Revolute("ground", "a", at=(0, 0, 0.1), axis=Z),
            "b": mbd.Revolute("arm", "b", at=(C, 0, 0.1), axis=Z),
        },
        forces={"belt": mbd.Belt("a", "b", RA, RB, 1e4, pretension=300.0)},
        gravity=np.zeros(3),
    )
    order = [mbd.topology(mech).tree.index(n) for n in ("arm", "a", "b")]

    def tensions(arm, own_a, own_b):
        q = np.zeros(3)
        q[order] = arm, own_a, own_b
        found = element_measures(mech, q)["belt"]
        return [float(found[f"tension_{i}"].value) for i in (1, 2)]

    turn, at_a = 2.0 * np.pi, place[0] < 0.1
    small = tensions(0.4, 0.03, 0.0)
    # About a the line turns round pulley a, about b pulley b turns back against its carrier.
    far = (0.4 - 3 * turn, 0.03, 0.0)
    wound = (0.0, -3 * turn, 0.0) if at_a else (0.0, 0.0, 3 * turn)
    np.testing.assert_allclose(tensions(*np.add(far, wound)), small, rtol=1e-9)


def test_shafts_of_an_open_and_a_crossed_belt_feel_both_strands():
    """Text-book strands: T2 − T1 carries the torque, T1 + T2 stays that of the pretension."""
    torque, pretension, k = 4.0, 200.0, 1e5
    for crossed in (False, True):
        mech = drive(mbd.Belt("a", "b", RA, RB, k, 0.0, pretension, crossed))
        turn = torque / RA / (2.0 * k * RA)  # pulley b held, pulley a gives way to the torque
        q, rest = np.array([turn, 0.0]), np.zeros(2)
        found = element_measures(mech, q)["belt"]
        pulls = np.array([found["tension_1"].value, found["tension_2"].value])
        difference = torque / RA
        wanted = pretension + np.array([difference, -difference]) / 2.0
        np.testing.assert_allclose(pulls, wanted, rtol=1e-12)
        side = (RA + RB if crossed else RA - RB) / C
        along = np.sqrt(1.0 - side**2)
        pull = np.array([sum(pulls) * along, -side * (pulls[0] - pulls[1]), 0.0])
        reactions = mbd.joint_reactions(mech, q, rest, rest, np.zeros(0))
        for name, sign in (("a", -1.0), ("b", 1.0)):
            np.testing.assert_allclose(reactions[name][3:], sign * pull, rtol=0, atol=1e-9 * 200)
        torques = -mbd.bias(mech, q, rest)
        other = torque / RA * (-RB if crossed else RB)
        np.testing.assert_allclose(torques, [-torque, other], rtol=1e-11)


def test_a_chain_hangs_slack_and_drives_by_its_tight_strand():
    chain = mbd.Belt("a", "b", RA, RB, 1e5, damping=50.0)
    mech = drive(chain)
    found = element_measures(mech, np.array([0.0, 0.01]))["belt"]
    assert float(found["tension_1"].value) == 0.0
    np.testing.assert_allclose(found["tension_2"].value, 1e5 * RB * 0.01, rtol=1e-12)
    slopes = jax.jacfwd(lambda q: mbd.bias(mech, q, jnp.zeros(2)))(jnp.zeros(2))
    assert np.all(np.isfinite(slopes))
    run = mbd.simulate(mech, np.zeros(2), np.zeros(2), t1=0.3, dt=2e-4, inputs={"a": 1.0})
    # whatever swings, the speeds are as the radii on average
    turned = np.asarray(run.q[-1])
    np.testing.assert_allclose(turned[1] / turned[0], RA / RB, rtol=2e-3)
    again = mbd.io.from_dict(mbd.io.to_dict(mech))
    assert jax.tree_util.tree_all(jax.tree_util.tree_map(np.array_equal, again, mech))


@pytest.mark.parametrize(
    ("belt", "text"),
    [
        (mbd.Belt("a", "b", 0.3, 0.12, 1e4), "0.4 m apart, and the radii are 0.42 m together"),
        (mbd.Belt("a", "b", 0.05, 0.12, 0.0), "stiffness is 0.0; it must be positive"),
        (mbd.Belt("a", "a", 0.05, 0.12, 1e4), "two Revolute joints"),
    ],
)
def test_what_is_no_belt_is_refused(belt, text):
    with pytest.raises(ValueError, match=f"force 'belt'.*{text}"):
        drive(belt)


def test_backlash_is_a_stop_on_the_play_between_a_gear_and_its_hub():
    """A gear on its hub with 0.02 rad of play: the load stands still until the play is used up."""
    m, z = 2e-3, (20, 40)
    c, inertia = m * sum(z) / 2, (1e-4,) * 3
    mech = mbd.Mechanism(
        {
            "pinion": mbd.Body(0.3, (0, 0, 0), inertia),
            "rim": mbd.Body(0.3, (c, 0, 0), inertia),
            "shaft": mbd.Body(0.3, (c, 0, 0), inertia),
        },
        {
            "pinion": mbd.Revolute("ground", "pinion", at=(0, 0, 0), axis=Z),
            "rim": mbd.Revolute("ground", "rim", at=(c, 0, 0), axis=Z),
            "play": mbd.Revolute("rim", "shaft", at=(c, 0, 0), axis=Z),
        },
        forces={"flanks": mbd.JointLimit("play", -0.01, 0.01, stiffness=2e3, dissipation=1.0)},
        couplings={"mesh": mbd.GearMesh("pinion", "rim", *z, module=m)},
        gravity=np.zeros(3),
    )
    speed, stop = 2.0, 0.01
    v = np.array([speed, -speed / 2, speed / 2])  # the shaft rests in space
    run = mbd.simulate(mech, np.zeros(3), v, t1=0.03, dt=1e-5, save_every=100)
    shaft = np.asarray(run.v[:, 1] + run.v[:, 2])
    reached = stop / (speed / 2)
    times = np.asarray(run.t)
    np.testing.assert_allclose(shaft[times < reached], 0.0, atol=1e-12)
    assert shaft[-1] < -0.5  # and is taken along then
    momentum = 1e-4 * (run.v[:, 0] * 2 - run.v[:, 1] - shaft)
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-9)
