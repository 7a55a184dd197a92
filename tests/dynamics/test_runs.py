"""Chains of equal joints are visited in loops; the results are those body by body."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.kkt import mass_operator
from jaxmbd.graph import layout, spanning_tree
from jaxmbd.graph.elimination import Elimination
from jaxmbd.kinematics import motion_state
from jaxmbd.spatial.rotations import axis_rotation

CLOSE = 1e-10


def joint(kind, a, b, at, rng):
    first, second = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    if kind is mbd.Universal:
        return kind(a, b, at=at, axis_a=first, axis_b=second)
    if kind in (mbd.Spherical, mbd.Fixed):
        return kind(a, b, at=at)
    if kind is mbd.Free:
        return kind(a, b)
    if kind is mbd.Planar:
        return kind(a, b, at=at, normal=first, x_axis=second)
    more = {"pitch": 0.1 * rng.normal()} if kind is mbd.Helical else {}
    return kind(a, b, at=at, axis=first, **more)


def body(rng, near):
    box = rng.uniform(0.1, 0.4, 3)
    return mbd.Body(rng.uniform(0.8, 1.2), near + rng.normal(size=3) * 0.2, np.diag(box))


def chain(name, kind, n, backward=False, loop=False, branch=False, seed=0):
    """`n` bodies on joints of one kind, and what else is asked for."""
    rng = np.random.default_rng(seed)
    bodies, joints, points = {}, {}, {}
    for i in range(n):
        near = np.array([0.3 * i, 0.1 * (i % 2), 0.0])
        points[f"p{i}"] = near
        bodies[f"{name}{i}"] = body(rng, near)
        ends = (f"{name}{i - 1}" if i else "ground", f"{name}{i}")
        joints[f"j{i}"] = joint(kind, *(ends[::-1] if backward else ends), f"p{i}", rng)
    if branch:
        bodies["leaf"] = body(rng, points["p3"])
        joints["leaf"] = mbd.Revolute(f"{name}3", "leaf", at="p3", axis=(0, 1, 1))
    if loop:
        joints["closing"] = mbd.Spherical("ground", f"{name}{n - 1}", at=(0.3 * n, 0.0, 0.2))
    forces = {
        "gravity aid": mbd.SpringDamper(
            "ground", f"{name}{n - 2}", (0.2, 0.0, 1.0), f"p{n - 2}", stiffness=30.0, damping=0.7
        )
    }
    cut = ("closing",) if loop else ()
    return mbd.Mechanism(bodies, joints, forces=forces, points=points, cut=cut)


@pytest.fixture
def loops(monkeypatch):
    """Short runs are looped, and the recursion is taken."""
    layout._topology.cache_clear()
    monkeypatch.setattr(Elimination, "is_recursive", property(lambda _: True))

    def shortest(n):
        layout._topology.cache_clear()
        monkeypatch.setattr(spanning_tree, "SHORTEST", n)

    yield shortest
    layout._topology.cache_clear()


def state(mech, rng):
    top = mbd.topology(mech)
    q = mbd.step_coordinates(mech, mbd.neutral(mech), 0.4 * rng.normal(size=top.nv))
    return q, rng.normal(size=top.nv)


def results(mech, q, v):
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    m = motion_state(mech, q, v)
    wrenches = mbd.joint_reactions(mech, q, v, vdot, lam)
    tau, _ = mbd.inverse_dynamics(mech, q, v, vdot)
    return {
        "accelerations": vdot,
        "multipliers": lam,
        "mass": mass_operator(m).array(),
        "bias": mbd.bias(mech, q, v),
        "reactions": list(wrenches.values()),
        "inverse": tau,
    }


def both(loops, make, derive=lambda f, *args: f(*args)):
    """What `derive` gives of the results, in loops and one by one."""
    found = []
    for shortest, name in ((2, "l"), (100, "s")):
        loops(shortest)
        mech = make(name)
        assert (len(mbd.topology(mech).runs) < len(mech.bodies)) == (shortest == 2)
        q, v = state(mech, np.random.default_rng(7))
        found.append(derive(results, mech, q, v))
    return found


def agree(found, expected):
    for name, reference in expected.items():
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(reference), strict=True):
            size = np.max(np.abs(b), initial=1.0)
            np.testing.assert_allclose(a / size, b / size, rtol=0, atol=CLOSE, err_msg=name)


KINDS = [
    mbd.Revolute, mbd.Prismatic, mbd.Helical, mbd.Cylindrical, mbd.Universal, mbd.Spherical,
    mbd.Planar, mbd.Free,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_chains_of_every_joint(loops, kind):
    agree(*both(loops, partial(chain, kind=kind, n=4), in_lanes))


def in_lanes(f, *args):
    return lanes.jit(f)(*args)


@pytest.mark.parametrize("given", [{"backward": True}, {"loop": True}, {"branch": True}], ids=str)
def test_chains_with_something_else(loops, given):
    agree(*both(loops, partial(chain, kind=mbd.Revolute, n=5, **given), in_lanes))


def test_without_lanes(loops):
    def of_xla(f, mech, q, v):
        return {"v̇": jax.jit(partial(mbd.forward_dynamics, backend="xla"))(mech, q, v)[0]}

    agree(*both(loops, partial(chain, kind=mbd.Revolute, n=4), of_xla))


def test_tangents_and_gradients_in_lanes(loops):
    def derive(f, mech, q, v):
        def total(mass, q, v):
            parts = {"s1": mech.bodies["s1"]} if "s1" in mech.bodies else {"l1": mech.bodies["l1"]}
            name, part = next(iter(parts.items()))
            heavy = mech.replace(bodies={name: mbd.Body(mass, part.com, part.inertia)})
            return jnp.sum(jnp.sin(mbd.forward_dynamics(heavy, q, v)[0]))

        given = jnp.asarray(1.3), q, v
        tangent = jax.jvp(lanes.jit(total), given, (jnp.asarray(1.0), jnp.sin(q), jnp.cos(v)))
        return {"tangent": tangent[1], "gradient": jax.grad(lanes.jit(total), (0, 1, 2))(*given)}

    agree(*both(loops, partial(chain, kind=mbd.Revolute, n=4, loop=True), derive))


def test_joints_of_different_forms_are_not_looped(loops):
    """One revolute's axis on its second body is drawn apart."""
    loops(2)
    mech = chain("d", mbd.Revolute, 5)
    apart = mbd.Revolute("d2", "d3", at="p3", axis=(0, 0, 1), axis_b=(0, 0, 1))
    mech = mech.replace(joints={"j3": apart})
    q, v = state(mech, np.random.default_rng(3))
    agree({"v̇": mbd.forward_dynamics(mech, q, v)[0]}, {"v̇": _dense(mech, q, v)})


def _dense(mech, q, v):
    h = mbd.bias(mech, q, v)
    return np.linalg.solve(np.asarray(mbd.mass_matrix(mech, q)), -np.asarray(h))


def test_long_chains_are_looped_and_say_so():
    mech = chain("c", mbd.Revolute, 40)
    assert [len(run) for run in mbd.topology(mech).runs] == [1, 39]
    assert "c1 to c39 in a loop" in str(mbd.topology(mech))


def test_programs_hardly_grow_with_the_chain():
    """By what is done with vectors of all speeds, a few operations each."""

    def operations(n):
        mech = chain(f"g{n}-", mbd.Revolute, n)
        q = np.full(n, 0.1)
        return lanes.explain(partial(mbd.forward_dynamics, mech), q, q).operations

    assert operations(60) - operations(40) < 20 * 8


class Tilted(mbd.Revolute):
    """A revolute whose bearing is mounted askew."""

    def unit_axis(self):
        c, s = np.cos(0.1), np.sin(0.1)
        return jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ super().unit_axis()


class Coiled(mbd.Revolute):
    """A revolute that reads the components of its axis, and a number of numbers."""

    weights: np.ndarray = eqx.field(kw_only=True)

    def rotation(self, q):
        x, y, z = self.axis
        length = jnp.sqrt(x * x + y * y + z * z)
        return axis_rotation(self.axis / length, jnp.sum(self.weights) * q[0])


@pytest.mark.parametrize("lengths", [(2,), (2, 3)])
def test_joints_of_ones_own(loops, lengths):
    """They see their fields as given; joints with numbers of other shapes are not looped."""

    def make(name):
        mech = chain(name, mbd.Revolute, 6)
        joints = {}
        for i in range(6):
            old = mech.joints[f"j{i}"]
            ends = (old.a, old.b, f"p{i}", old.axis)
            weights = np.full(lengths[i % len(lengths)], 0.3)
            joints[f"j{i}"] = Tilted(*ends) if i < 3 else Coiled(*ends, weights=weights)
        return mech.replace(joints=joints)

    agree(*both(loops, make, in_lanes))


NUMBERS = [2, np.float32(1.5), jnp.float32(1.5)]


@pytest.mark.parametrize(
    ("at", "number"),
    [
        pytest.param(at, x, id=f"{at}-{x!r}", marks=pytest.mark.slow if at != 2 and k else ())
        for at in (0, 2, 5)
        for k, x in enumerate(NUMBERS)
    ],
)
def test_a_number_of_another_type(loops, number, at):
    def derive(_, mech, q, v):
        name = mbd.topology(mech).bodies[at]
        odd = eqx.tree_at(lambda m: m.bodies[name].mass, mech, number)
        return {"v̇": mbd.forward_dynamics(odd, q, v)[0]}

    agree(*both(loops, partial(chain, kind=mbd.Revolute, n=6), derive))
