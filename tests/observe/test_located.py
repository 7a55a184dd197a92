"""Extrema and crossings between the points of a curve: closed forms, kinks, edges, transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import REDUCTIONS, Coordinate, CoordinateRate, Element, Motion

LARGEST, PEAK, CROSSING = (jax.jit(REDUCTIONS[how].function) for how in ("max", "peak", "crossing"))


def vibrating(preload, stiffness=400.0, damping=2.0):
    """1 kg on a spring and a damper, released from where the preload holds the spring short."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.0, 0, 0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0, 0, 0), (1, 0, 0))},
        {
            "spring": mbd.TorsionSpring(
                "slide", stiffness, damping=damping, free_angle=preload / stiffness
            )
        },
        gravity=(0, 0, 0),
    )


RELEASE = Motion(
    0.4,
    2e-3,
    {
        "farthest": Coordinate("slide").max(),
        "fastest": CoordinateRate("slide").peak(),
        "span": CoordinateRate("slide").span(),
        "half": Coordinate("slide").crossing(0.05),
        "force": Element("spring", "effort").peak(),
    },
)


def closed_form(preload, stiffness, damping):
    """From rest at zero to rest at F/k: x = F/k (1 − e^(−δt) (cos ωt + δ/ω sin ωt))."""
    decay, rest = damping / 2.0, preload / stiffness
    omega = jnp.sqrt(stiffness - decay**2)
    half = jnp.pi / omega
    top = jnp.arctan2(omega, decay) / omega  # of the speed: tan ωt = ω/δ

    def speed(t):
        return rest * stiffness / omega * jnp.exp(-decay * t) * jnp.sin(omega * t)

    def place(t):
        wave = jnp.cos(omega * t) + decay / omega * jnp.sin(omega * t)
        return rest * (1.0 - jnp.exp(-decay * t) * wave)

    t = 0.05
    for _ in range(8):  # Newton's passes are differentiated with the solution
        t = t - (place(t) - 0.05) / speed(t)
    return {
        "farthest": place(half),
        "fastest": speed(top),
        "span": speed(top) - speed(top + half),
        "half": t,
    }


NUMBERS = (30.0, 400.0, 2.0)
"""Preload, stiffness and damping: 157 points in a period."""


def released(*numbers):
    return RELEASE(vibrating(*numbers))


def test_a_released_mass_has_its_closed_forms():
    found = released(*NUMBERS)
    for name, x in closed_form(*NUMBERS).items():
        assert found[name] == pytest.approx(float(x), rel=5e-8), name
    # The spring's effort is largest at once: an extremum at the end of the axis is the end's value.
    assert found["force"] == 30.0


@pytest.mark.slow
def test_a_released_mass_has_the_derivatives_of_its_closed_forms():
    slopes = jax.jit(jax.jacfwd(released, (0, 1, 2)))(*NUMBERS)
    for name, x in jax.jacfwd(closed_form, (0, 1, 2))(*NUMBERS).items():
        np.testing.assert_allclose(slopes[name], x, rtol=1e-6, err_msg=name)
    assert slopes["force"][0] == 1.0 and abs(slopes["force"][1]) < 1e-15


@pytest.mark.slow
def test_the_derivative_of_a_peak_by_a_preload():
    """Undamped from a speed v the force is F cos ωt − √(k m) v sin ωt, at most √(F² + k m v²).

    Its derivative by F is small, and that of the largest point wrong by up to half a step's turn.
    """
    force = Element("spring", "effort")
    outputs = {"peak": force.peak(), "curve": force}
    motion = Motion(0.148, 4e-3, outputs, speeds={"slide": 18.0}, keep=None)

    def run(preload):
        found = motion(vibrating(preload, damping=0.0))
        return found, found

    slope, found = jax.jit(jax.jacfwd(run, has_aux=True))(30.0)
    size = np.hypot(30.0, 360.0)
    point = np.argmax(abs(found["curve"]))
    sampled = slope["curve"][point] * np.sign(found["curve"][point])
    assert found["peak"] == pytest.approx(size, rel=1e-6)
    assert slope["peak"] == pytest.approx(30.0 / size, rel=1e-4)
    assert abs(sampled - 30.0 / size) > 0.3 * 30.0 / size


def test_reverse_is_forward():
    t = np.linspace(0.0, 1.0, 50)
    y, change = (1.0 + 0.3 * t) * np.sin(7.0 * t + 0.1), np.cos(11.0 * t)

    def both(t, y):
        return jnp.stack([LARGEST(t, y), CROSSING(t, y, 0.9 * y[-1])])

    @jax.jit
    def along(t, y):
        return jax.jvp(both, (t, y), (t, change))

    value, forward = along(t, y)
    by_t, by_y = jax.jit(jax.jacrev(both, (0, 1)))(t, y)
    np.testing.assert_allclose(by_t @ t + by_y @ change, forward, rtol=1e-12)
    h = 1e-6
    moved = [along(t * (1.0 + s), y + s * change)[0] for s in (h, -h)]
    np.testing.assert_allclose(forward, (moved[0] - moved[1]) / (2 * h), rtol=1e-6)
    batch = mbd.lanes.vmap(both)(t[None], y[None])
    np.testing.assert_allclose(batch[0], value, rtol=1e-14)


def test_order():
    """Of a top the sixth, as its fifth derivative is small; of a crossing too."""
    errors, tops_of, zeros_of = [], jax.jit(jax.vmap(LARGEST)), jax.jit(jax.vmap(CROSSING))
    for n in (40, 80, 160):
        t = 0.05 + (np.arange(64) + np.linspace(0.0, 1.0, 7)[:, None]) * 2.0 / n
        y = np.exp(-t) * np.sin(4.0 * t)
        top = np.arctan(4.0) / 4.0
        tops = tops_of(t, y) - np.exp(-top) * np.sin(4.0 * top)
        zeros = zeros_of(t, y, np.zeros(7)) - np.pi / 4.0
        errors.append([abs(tops).max(), abs(zeros).max()])
    slopes = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    np.testing.assert_allclose(slopes, 6.0, rtol=0, atol=0.2)
    assert np.max(errors[-1]) < 1e-9


SHAPES = {
    "corner": lambda t: -abs(t - 0.513),
    "jump": lambda t: np.where(t < 0.513, t, -t),
    "stairs": lambda t: np.floor(7.0 * t) * (t < 0.6),
    "bounces": lambda t: -abs(np.sin(9.0 * t)),
    "few points in a period": lambda t: np.sin(2 * np.pi * t * 12.3),
    "constant": lambda t: 0.3 + 0.0 * t,
    "rising": lambda t: t**3 + t,
    "one spike": lambda t: 1.0 * (np.arange(t.size) == t.size // 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_not_smooth_keeps_to_its_points(name):
    t = np.linspace(0.0, 1.0, 60)
    y = SHAPES[name](t)
    assert LARGEST(t, y) == y.max()
    assert name == "bounces" or PEAK(t, y) == abs(y).max()  # it is smooth between bounces
    slope = jax.grad(lambda y: LARGEST(t, y))(y)
    np.testing.assert_allclose(slope, jax.grad(jnp.max)(y), rtol=0, atol=1e-15)


def test_noise_moves_a_largest_value_by_no_more_than_itself():
    rng = np.random.default_rng(3)
    for size in (1e-15, 1e-9, 1.0):
        y = 2.0 + size * rng.normal(size=(40, 100))
        found = np.array(jax.vmap(lambda y: LARGEST(y, y))(y))
        assert (found >= y.max(axis=1)).all() and (found - y.max(axis=1) < size).all()


def test_a_corner_crossed_is_between_its_points():
    """A line with a corner elsewhere is crossed as the line is; NaN, the start and few points."""
    t = np.linspace(0.0, 1.0, 21)
    y = t + 5.0 * np.maximum(t - 0.52, 0.0)
    assert CROSSING(t, y, 0.473) == pytest.approx(0.473, abs=1e-15)
    assert CROSSING(t, -y, -0.473) == pytest.approx(0.473, abs=1e-15)
    assert np.isnan(CROSSING(t, y, 9.0)) and CROSSING(t, y, 0.0) == 0.0
    for few in range(2, 6):
        x = np.linspace(0.0, 1.0, few)
        assert CROSSING(x, x * x, 0.9) == pytest.approx(np.interp(0.9, x * x, x), abs=1e-15)
        assert LARGEST(x, x * (1.1 - x)) == np.max(x * (1.1 - x))
    uneven = t**2
    assert CROSSING(uneven, np.sin(uneven), 0.4) == pytest.approx(np.arcsin(0.4), abs=1e-6)


def test_numbers_that_are_none_spoil_neither_neighbours_nor_gradients():
    t = np.linspace(0.0, 1.0, 30)
    y = np.sin(4.0 * t)
    gone = np.where(t < 0.8, y, np.nan)
    assert np.isnan(LARGEST(t, gone)) and np.isnan(PEAK(t, gone))
    assert CROSSING(t, gone, 0.5) == pytest.approx(np.arcsin(0.5) / 4.0, abs=1e-7)

    def loss(a):
        x = CROSSING(t, jnp.where(t < 0.8, a * y, jnp.nan), 0.5)
        return jnp.where(jnp.isnan(x), 0.0, x)

    slope = jax.jit(jax.grad(loss))
    assert np.isfinite(slope(1.0)) and slope(0.4) == 0.0
    both = LARGEST(t, np.stack([y, -y, 2.0 * y], axis=1))
    np.testing.assert_allclose(both[::2], [1.0, 2.0], rtol=1e-6)
    assert both[1] == pytest.approx(max(-y), abs=1e-15)


def test_single_precision_keeps_its_digits():
    t = np.linspace(0.0, 1.0, 200, dtype=np.float32)
    y = np.sin(4.0 * t).astype(np.float32)
    found = LARGEST(t, y)
    assert found.dtype == np.float32 and found == pytest.approx(1.0, abs=3e-7)
    assert CROSSING(t, y, np.float32(0.5)) == pytest.approx(np.arcsin(0.5) / 4.0, abs=3e-7)
