"""Where loops just close, where they cannot, and what holds them more than once: closed forms.

With the crank of a four-bar held, coupler b and rocker c span the distance d: the loop closes by
``min(b + c − d, d − |b − c|)``, the triangle's inequalities, and at the dead centre both links lie
along d. A single loop of revolutes has the screws ``s_i = (n_i, x_i × n_i)``: it is held
``6 − rank s`` times too often, by loads that do no work along any of them. Halves drawn apart along
such a load contradict each other by what they are apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import mechanisms
from fails_cases.judged import CRASHED, FLAGGED, RIGHT, WRONG, Judged, compare
from jaxmbd.observe import Configuration, Position

PER_CASE = 8
_TRIANGLE = "triangle inequality of the two links and what they span"
_SCREWS = "rank of the loop's screws, and what does no work along them, in NumPy"
_APART = "how far the halves are drawn apart along loads of the loop"
NUMBERS = {
    "ClosureMargin.margin": _TRIANGLE,
    "ClosureMargin.margin, forward derivative": f"{_TRIANGLE}, differentiated",
    "ClosureMargin.margin, reverse derivative": f"{_TRIANGLE}, differentiated",
    "ClosureMargin.q": "two links along the line between their ends",
    "ClosureMargin.status": f"{_TRIANGLE}; that an open chain has no dead centre",
    "experiment: open_distance": f"{_TRIANGLE}: whether something is missing",
    "experiment: open_joint": "the one joint that closes the loop",
    "Redundancy.mobility": _SCREWS,
    "Redundancy.rows": _SCREWS,
    "Mobility.contradiction": _APART,
    "StateCheck.contradiction": _APART,
}
LINKS = ("crank", "coupler", "rocker", "ground")
GRAVITY = 9.81


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Four-bars in one batch; single loops one by one, a program for each kind."""
    rng, text = np.random.default_rng(seed), f"default_rng({seed})"
    yield from _margins(rng, max(8, size // 2), text)
    yield from _unbounded(rng, text)
    for k in range(max(3, round(size / PER_CASE / 6))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        for judge in (_redundant, _contradicting):
            try:
                yield from judge(rng, text)
            except Exception as error:
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:250]
                yield Judged("Redundancy.rows", CRASHED, math.nan, f"{said} | {text}")


# Four-bars.


def room(lengths: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both inequalities (n, 2) and their derivatives by the lengths (n, 2, 4).

    The crank stands upright at zero and turns towards the rocker's foot.
    """
    a, b, c, g = lengths.T
    sine = np.sin(turn)
    d = np.sqrt(a * a + g * g - 2.0 * a * g * sine)
    by = np.stack([(a - g * sine) / d, 0.0 * d, 0.0 * d, (g - a * sine) / d], axis=1)
    own, sign = np.array([0.0, 1.0, 1.0, 0.0]), np.sign(b - c)
    other = np.stack([0.0 * b, sign, -sign, 0.0 * b], axis=1)
    both = np.stack([b + c - d, d - np.abs(b - c)], axis=1)
    # Equal links fold wholly: their loop closes for any distance, however short.
    both[b == c, 1] = np.inf
    return both, np.stack([own - by, by - other], axis=1)


def _drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths (n, 4), some of them equal, of any size, and angles of the crank."""
    lengths = rng.uniform(0.2, 2.0, (n, 4))
    kind = rng.integers(0, 5, n)
    lengths[kind == 0, 2] = lengths[kind == 0, 1]  # equal links, which fold wholly
    lengths[kind == 1, 2:] = lengths[kind == 1, :2]  # nearly a parallelogram
    lengths[kind == 1, 2] *= 1.0 + 10.0 ** rng.uniform(-6.0, -1.0)
    lengths *= 10.0 ** rng.uniform(-6.0, 2.5, (n, 1))
    lengths[rng.random(n) < 0.05, rng.integers(4)] = np.nan
    return lengths, rng.uniform(-1.2, 1.2, n)


def _margins(rng: np.random.Generator, n: int, text: str) -> Iterator[Judged]:
    lengths, turn = _drawn(rng, n)
    along, angle = rng.normal(size=(n, 4)) * lengths, 0.3

    def of(x: Any, turn: Any) -> Any:
        # Drawn open: the guess is where the crank stands, with coupler and rocker a little bent.
        return mbd.dead_centre(mbd.zoo.four_bar(*x), {"A": turn})

    def engine(x: Any, turn: Any, along: Any) -> Any:
        found, rate = jax.jvp(lambda y: of(y, turn).margin, (x,), (along,))
        return of(x, turn), found, rate, jax.grad(lambda y: of(y, turn).margin)(x)

    pose = Configuration({"A": angle}, {"x": Position("rocker", "C_rocker")})
    found, _, rates, slopes = _numpy(mbd.lanes.vmap(engine)(lengths, turn, along))
    seen = _numpy(mbd.lanes.vmap(lambda x: pose.computed(mbd.zoo.four_bar(*x)))(lengths))
    both, by = room(lengths, turn)
    flags = pose.declare(mbd.zoo.four_bar()).outputs["open_joint"].flags
    sizes = lengths.sum(axis=1)
    for i in range(n):
        said = f"four-bar {lengths[i]}, crank at {turn[i]:.6f}, sample {i} of {n}, {text}"
        yield from _one(
            found, rates[i], slopes[i], along[i], both[i], by[i], i, lengths[i], turn[i], said
        )
        missing = -float(np.min(room(lengths[i : i + 1], np.array([angle]))[0]))
        if not missing > 1e-3 * sizes[i]:
            continue  # closes, or just closes, or just does not
        yield compare(
            "experiment: open_joint", seen["status"][i] == 0, False, limit=0.0, detail=said
        )
        name = flags[int(seen["open_joint"][i])]
        yield compare("experiment: open_joint", name == "C", True, limit=0.0, detail=said)
        # It is told of where the search ended, where the crank need not have come all the way.
        apart = float(seen["open_distance"][i])
        positive = math.isfinite(apart) and apart > 0.0
        yield compare(
            "experiment: open_distance", positive, True, limit=0.0, detail=f"{apart}, {said}"
        )


def _one(
    found: Any, rate: Any, slope: Any, along: Any, both: np.ndarray, by: np.ndarray, i: int,
    lengths: np.ndarray, turn: float, text: str,
) -> Iterator[Judged]:  # fmt: skip
    size, ok = float(lengths.sum()), int(found.status[i]) == 0
    margin, key = float(both.min()), "ClosureMargin."
    if math.isnan(margin):
        yield compare(f"{key}status", ok, False, limit=0.0, detail=text)
        yield compare(f"{key}margin", found.margin[i], margin, limit=0.0, detail=text)
        return
    yield compare(
        f"{key}margin", found.margin[i], margin, limit=1e-9, scale=size, detail=text, ok=ok
    )
    # An open loop must never be said to close, whatever the status.
    lies = abs(margin) > 1e-6 * size and found.margin[i] * margin < 0.0
    outcome = WRONG if lies else RIGHT if ok else FLAGGED
    yield Judged(f"{key}status", outcome, math.nan, f"{found.margin[i]} for {margin} | {text}")
    q = found.q[i]
    a, _, _, g = lengths
    span = np.array([g - a * math.sin(turn), -a * math.cos(turn)])
    coupler = np.array([math.cos(q[0] + q[1]), -math.sin(q[0] + q[1])])
    rocker = np.array([math.sin(q[2]), math.cos(q[2])])
    d = float(np.linalg.norm(span))
    across = [float(np.cross(span, x)) / d for x in (coupler, rocker)]
    yield compare(
        f"{key}q", [*across, q[0] - turn], [0.0, 0.0, 0.0],
        limit=1e-7 * size / d, scale=1.0, detail=text, ok=ok,
    )  # fmt: skip
    if abs(both[0] - both[1]) < 1e-3 * size:
        return  # two passes of one height: a kink
    want = by[int(np.argmin(both))]
    terms = float(np.sum(np.abs(want * along)))
    for number, got, wanted, scale in (
        ("forward", rate, want @ along, terms),
        ("reverse", slope, want, float(np.max(np.abs(want)))),
    ):
        yield compare(
            f"{key}margin, {number} derivative", got, wanted,
            limit=1e-6, scale=scale, detail=text, ok=ok,
        )  # fmt: skip


def _unbounded(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """An open chain."""
    number = "ClosureMargin.status"
    found = mbd.dead_centre(mbd.zoo.simple_pendulum(float(rng.uniform(0.1, 9.0))), {"hinge": 0.3})
    yield compare(number, int(found.status) != 0, True, limit=0.0, detail=f"pendulum, {text}")


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


# Single loops of revolutes.


class Ring(NamedTuple):
    """A closed loop of revolutes: points (k, 3), axes (k, 3)."""

    kind: str
    at: np.ndarray
    axes: np.ndarray

    def screws(self, about: np.ndarray, length: float) -> np.ndarray:
        """(k, 6): turning, and velocity of a point over the length."""
        arms = np.cross(self.axes, about - self.at) / length
        return np.concatenate([self.axes, arms], axis=1)


def ring(rng: np.random.Generator) -> Ring:
    """Planar, spherical, or any loop, at any place and of any size."""
    kind = str(rng.choice(["planar", "planar, five", "spherical", "six", "seven"]))
    k = {"planar": 4, "spherical": 4, "planar, five": 5, "six": 6, "seven": 7}[kind]
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    size = 10.0 ** rng.uniform(-5.0, 2.0)
    at = rng.normal(size=(k, 3))
    axes = rng.normal(size=(k, 3))
    if kind.startswith("planar"):
        at[:, 2], axes[:] = 0.0, (0.0, 0.0, 1.0)
    elif kind == "spherical":
        at = axes * rng.uniform(0.5, 1.5, (k, 1))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    shift = size * rng.normal(size=3)
    return Ring(kind, size * at @ turn.T + shift, axes @ turn.T)


def mechanism(
    rng: np.random.Generator, loop: Ring, apart: Any = 0.0, tilted: Any = None
) -> mbd.Mechanism:
    """The loop; the two halves of its last joint may be drawn apart, or at an angle."""
    k, size = len(loop.at), float(np.ptp(loop.at, axis=0).max())
    names = ["ground", *(f"link{i}" for i in range(k - 1))]
    bodies = {
        n: mechanisms.body(rng, loop.at[i : i + 2].mean(axis=0), size)
        for i, n in enumerate(names[1:])
    }
    joints = {
        f"J{i}": mbd.Revolute(names[i], names[(i + 1) % k], loop.at[i], loop.axes[i])
        for i in range(k - 1)
    }
    last = loop.axes[-1]
    joints["close"] = mbd.Revolute(
        names[-1], "ground", loop.at[-1], last,
        at_b=loop.at[-1] + apart, axis_b=last if tilted is None else tilted,
    )  # fmt: skip
    return mbd.Mechanism(bodies, joints, cut=["close"])


def _length(mech: mbd.Mechanism) -> float:
    """RMS distance of all points and centres of mass from their mean."""
    data = mbd.io.to_dict(mech)
    places = [p["at"] for p in data["points"]] + [b["com"] for b in data["bodies"]]
    x = np.array(places, float)
    return float(np.sqrt(np.mean(np.sum((x - x.mean(axis=0)) ** 2, axis=1))))


def _redundant(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    loop = ring(rng)
    mech = mechanism(rng, loop)
    length = _length(mech)
    screws = loop.screws(loop.at[-1], length)
    sizes = np.linalg.svd(screws, compute_uv=False)
    text = f"{loop.kind}, {length:.2g} m, {text}"
    if np.any((sizes > 1e-8 * sizes[0]) & (sizes < 1e-2 * sizes[0])):
        return
    rank, k = int(np.sum(sizes > 1e-8 * sizes[0])), len(loop.at)
    found = mbd.redundancy(mech)
    whole = found.mobility
    told = [whole.dof, whole.rank, len(whole.redundant)]
    # The tree has k − 1 coordinates; the five rows of the cut joint hold rank − 1 of them.
    wanted = [k - rank, rank - 1, 6 - rank]
    yield compare("Redundancy.mobility", told, wanted, limit=0.0, detail=text)
    yield compare("Redundancy.rows", len(found.rows), 6 - rank, limit=0.0, detail=text)
    if not found.rows:
        return
    # Power of the load along each screw, taken about the last joint's point.
    loads = np.array([[*np.array(x.moment), *np.array(x.force)] for x in found.rows], float)
    power = screws @ loads.T
    yield compare(
        "Redundancy.rows", power, np.zeros_like(power), limit=1e-6, scale=1.0, detail=text
    )
    least = np.linalg.svd(loads, compute_uv=False)[-1]
    independent = least > 1e-6 and len(np.linalg.svd(loads)[1]) == len(loads)
    yield compare("Redundancy.rows", independent, True, limit=0.0, detail=f"loads, {text}")


def _contradicting(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """A planar loop, apart along its axis, at an angle, or only within its plane."""
    loop = ring(rng)
    while not loop.kind.startswith("planar"):
        loop = ring(rng)
    n = loop.axes[0]
    across = np.cross(n, loop.at[1] - loop.at[0])
    across /= np.linalg.norm(across)
    length = _length(mechanism(np.random.default_rng(0), loop))
    kind = str(rng.choice(["along", "tilted", "within", "closed"]))
    amount = float(10.0 ** rng.uniform(-5.5, -2.5))
    apart = {"along": n, "within": across}.get(kind, 0.0 * n) * amount * length
    tilted = n + amount * across if kind == "tilted" else None
    mech = mechanism(rng, loop, apart, tilted)
    length = _length(mech)
    size = {"along": float(np.linalg.norm(apart)), "tilted": amount * length}.get(kind, 0.0)
    text = f"{loop.kind} {kind} by {amount:.1e} of {length:.2g} m, {text}"
    check = mbd.check_state(mech, jnp.asarray(mbd.neutral(mech)))
    for number, got in (
        ("Mobility.contradiction", mbd.mobility(mech).contradiction),
        ("StateCheck.contradiction", float(check.contradiction)),
    ):
        if not size:
            # Of second order in how far the loop is open.
            limit = 1e-9 + (20.0 * amount**2 if kind == "within" else 0.0)
            yield compare(number, got, 0.0, limit=limit, scale=length, detail=text)
            continue
        # The largest of the components in the joint's own axes.
        share = got / size
        inside = math.sqrt(1.0 / 3.0) - 1e-2 <= share <= 1.0 + 1e-2
        yield compare(number, inside, True, limit=0.0, detail=f"{share:.5f} of it, {text}")
    if kind != "closed":
        told = int(check.status) != 0
        yield compare("StateCheck.contradiction", told, True, limit=0.0, detail=f"status, {text}")
