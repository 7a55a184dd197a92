"""The benchmark of long chains: its parts, on small sizes."""

import jax
import numpy as np
import pytest
import scale
from scale_cases import cassie, child, conventions
from scale_cases.systems import chain, scattered
from throughput_cases import peer_pinocchio
from throughput_cases.tree import of_mechanism, sample

import jaxmbd as mbd


def test_a_chain_is_measured_in_all_columns():
    found = child.of_chain(3, 8, 0.01)
    ours = {c for c, _ in scale.COLUMNS} | set(scale.SINGLES)
    assert ours <= found["seconds"].keys()
    assert all(0.0 < s < 1.0 for s in found["seconds"].values())
    assert all(error < 1e-11 for error in found["errors"].values())
    assert len(found["errors"]) == (3 if peer_pinocchio.version() else 0)
    assert scale.line("3", 3, found, 8).split()[0] == "3"


def test_samples_of_a_batch_are_mechanisms_of_their_own():
    mech = chain(4)
    own = [sample(scattered(mech, 3), i) for i in range(3)]
    for name in ("points", "bodies"):
        first, second = (jax.tree_util.tree_leaves(getattr(m, name)) for m in own[:2])
        assert all(not np.array_equal(x, y) for x, y in zip(first, second, strict=True))
    for m in own:
        assert np.allclose(m.points["pivot_3"], mech.points["pivot_3"], atol=2e-3)
        assert np.allclose(m.bodies["body_3"].inertia, m.bodies["body_3"].inertia.T)


def test_poses_are_roll_then_pitch_then_yaw():
    pose = cassie.WORLD.of("1 2 3 1.5708 0 0").of("0 0 1 0 0 1.5708")
    assert np.allclose(pose.origin, [1, 1, 3])
    assert np.allclose(pose.turn @ [1, 0, 0], [0, 0, 1])


def test_speeds_of_free_bodies_and_balls_are_converted():
    """The power of a wrench, and accelerations as the derivatives of the speeds."""
    bodies = {n: mbd.Body(1.0, com=(x, 0, 0), inertia=1.0) for n, x in (("a", 0.0), ("b", 1.0))}
    joints = {"f": mbd.Free("ground", "a"), "s": mbd.Spherical("a", "b", at=(0.5, 0, 0))}
    tree = of_mechanism(mbd.Mechanism(bodies, joints))
    rng = np.random.default_rng(0)
    p = rng.normal(size=(2, 4))
    p = p / np.linalg.norm(p, axis=1)[:, None]
    q = np.concatenate([p[0], [0.1, 0.2, 0.3], p[1]])
    v, a = rng.normal(size=(2, 1, 9))
    (_, turn), (_, ball) = conventions.rotations(tree, q).values()
    theirs = conventions.speeds_for_peer(tree, q, v)[0]
    assert np.allclose(turn @ theirs[:3], v[0, 3:6]) and np.allclose(turn @ theirs[3:6], v[0, :3])
    assert np.allclose(ball @ theirs[6:], v[0, 6:])
    u, du = turn.T @ v[0, 3:6], turn.T @ (a[0, 3:6] - np.cross(v[0, :3], v[0, 3:6]))
    assert np.allclose(theirs[:3], u)
    peers = np.concatenate([du, turn.T @ a[0, :3], ball.T @ a[0, 6:]])[None]
    assert np.allclose(conventions.accelerations_of_peer(tree, q, v, peers), a)


@pytest.mark.skipif(cassie.file() is None, reason=f"{cassie.PACKAGE} is not installed")
def test_cassie_stands_assembled():
    mech = cassie.mechanism(cassie.file())
    q = cassie.standing(mech)
    assert np.max(np.abs(mbd.constraint_residual(mech, q))) < 1e-12
    found = mbd.mobility(mech, q)
    assert (found.dof, found.rank, len(found.redundant)) == (22, 10, 2)
