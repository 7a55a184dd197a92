"""The active corner: its rest, its reward and what it sees by hand; the roads' spectrum."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import ml

PREVIEW = (0.05, 0.2)


@cache
def corner():
    return ml.active_corner(preview=PREVIEW)


def test_it_is_drawn_at_rest_with_two_freedoms():
    env = ml.active_corner()
    flat = mbd.set_variables(env.mechanism, {"forces/tyre/law/amplitudes": np.zeros(24)})
    q, v = mbd.neutral(flat), np.zeros(4)
    assert mbd.mobility(flat, q).dof == 2
    np.testing.assert_allclose(mbd.forward_dynamics(flat, q, v)[0], 0.0, atol=1e-12)
    assert env.names == ("motor",) and env.size == 5
    stiff = mbd.forward_dynamics(flat, q, v, inputs={"motor": 1000.0})[0]
    assert stiff[0] < 0.0 < stiff[1]  # the moment lifts the wheel and lowers the body


def test_a_step_by_hand():
    env = corner()
    first = env.reset(ml.lane_keys(3, 1)[0])
    mech = env.with_variables(first.variables)
    road = mech.forces["tyre"].law
    assert abs(first.end.q[0] - road(0.0)) < 1e-15 and np.all(first.end.v == 0.0)
    run = mbd.simulate(
        mech, first.end.q, first.end.v, t1=0.01, dt=0.01 / 3.0, inputs={"motor": 300.0}
    )
    after = env.step(first, [300.0])
    q, v = run.q[-1], run.v[-1]
    np.testing.assert_allclose(after.end.q, q, rtol=1e-12, atol=1e-15)
    hub = mbd.point_position(mech, q, "upright", "hub")[1]
    rest, depth = 448.0 * 9.81, 0.31 + 448.0 * 9.81 / 2e5 + road(0.01) - hub
    rate = jax.grad(road)(0.01) - mbd.point_velocity(mech, q, v, "upright", "hub")[1]
    load = 2e5 * depth + 100.0 * rate
    travel = hub - 0.31 - q[0]
    reward = -((v[0] / 0.01) ** 2) - ((load - rest) / 1e3) ** 2 - (travel / 0.05) ** 2 - 0.15**2
    np.testing.assert_allclose(after.reward, reward, rtol=1e-9)
    vdot, _ = mbd.forward_dynamics(mech, q, v, 0.01, inputs={"motor": 300.0})
    ahead = np.diff([road(0.01), road(0.06), road(0.21)])
    seen = after.observation
    np.testing.assert_allclose(seen[:2], [v[0], vdot[0]], rtol=1e-9)
    np.testing.assert_allclose(seen[3], travel, rtol=1e-9)
    np.testing.assert_allclose(seen[5:], ahead, rtol=1e-9)
    # the balance of all masses gives the wheel's acceleration, the arms' being between the two
    h = 1e-6
    moved, speed = mbd.step_coordinates(mech, q, h * v), v + h * vdot
    faster = mbd.point_velocity(mech, moved, speed, "upright", "hub")[1]
    slower = mbd.point_velocity(mech, q, v, "upright", "hub")[1]
    np.testing.assert_allclose(seen[2], (faster - slower) / h, rtol=1e-4)
    np.testing.assert_allclose(seen[4], slower - v[0], rtol=1e-9)


def test_each_lane_and_episode_has_a_road_of_its_own():
    run = jax.vmap(corner().reset)(ml.lane_keys(0, 50))
    waves = np.asarray(run.variables["forces/tyre/law/waves"])
    phases = np.asarray(run.variables["forces/tyre/law/phases"])
    ends = np.geomspace(0.02, 1.5, 25)
    assert np.all((waves > ends[:-1]) & (waves < ends[1:])) and np.ptp(waves, axis=0).min() > 0.0
    assert phases.min() < 0.1 and phases.max() > 6.2 and len(np.unique(phases)) == phases.size
    one = jax.tree.map(lambda x: x[0], run)
    assert not np.any(corner().restart(one).variables["forces/tyre/law/phases"] == phases[0])


def test_a_skyhook_rides_softer():
    env = corner()

    def hook(gain, seen, key):
        return gain * seen[:1]

    def heave(gain):
        run = jax.vmap(partial(ml.rollout, env, hook, gain, steps=200))(ml.lane_keys(1, 16))
        assert np.all(run.status == 0)
        return float(jnp.std(jnp.diff(run.next_observation[..., 0])))

    assert heave(1000.0) < 0.95 * heave(0.0)


@pytest.mark.parametrize("grade, middle", [("A", 16e-6), ("C", 256e-6), ("H", 262144e-6)])
def test_the_spectrum_of_a_road(grade, middle):
    """Its density in a band, by the sums of a discrete transform of many roads."""
    size, step, rng = 4096, 0.25, np.random.default_rng(0)
    x, density = step * np.arange(size), np.zeros(size // 2 + 1)
    law = mbd.WavyRoad.iso8608(grade, 20.0)
    for _ in range(40):
        waves = law.waves * (1.0 + law.half_band * rng.uniform(-1.0, 1.0, 24))
        road = mbd.WavyRoad(waves, law.amplitudes, rng.uniform(0.0, 2.0 * np.pi, 24), 20.0)
        window = np.hanning(size)
        spectrum = np.fft.rfft(window * np.asarray(road(x / 20.0)))
        density += 2.0 * step * np.abs(spectrum) ** 2 / np.sum(window**2) / 40
    n = np.fft.rfftfreq(size, step)
    for low, high in ((0.03, 0.1), (0.1, 0.4), (0.4, 1.2)):
        band = (n > low) & (n < high)
        share = np.sum(density[band]) / np.sum(middle * (n[band] / 0.1) ** -2.0)
        assert 0.8 < share < 1.25, (low, share)


def test_roads_are_kept_in_files_and_refused(tmp_path):
    law = mbd.WavyRoad.iso8608("B", 15.0, count=5, seed=3)
    mech = mbd.zoo.simple_pendulum().replace(
        forces={"tyre": mbd.Tyre("bob", "pivot", stiffness=2e5, law=law)}
    )
    mbd.save(mech, tmp_path / "road.json")
    kept = mbd.load(tmp_path / "road.json").forces["tyre"].law
    assert isinstance(kept, mbd.WavyRoad) and kept(0.3) == law(0.3)
    with pytest.raises(ValueError, match="road class 'I': give one of A, B, C"):
        mbd.WavyRoad.iso8608("I")
    with pytest.raises(ValueError, match=r"between=\(1.0, 0.5\), count=24: give wave numbers"):
        mbd.WavyRoad.iso8608(between=(1.0, 0.5))


def test_a_road_in_single_precision():
    law = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), mbd.WavyRoad.iso8608("C"))
    double = mbd.WavyRoad.iso8608("C")(2.0)
    assert law(jnp.float32(2.0)).dtype == jnp.float32 and abs(law(jnp.float32(2.0)) - double) < 1e-5
