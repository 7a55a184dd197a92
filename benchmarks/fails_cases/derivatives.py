"""Derivatives with respect to all numbers of a mechanism, forward and reverse, and float32.

Derivatives are held to differences of fourth order of the values, which other families judge; they
are taken along a random change of all hardpoints, axes, masses and rates. Where planar loops stand
in space the change of the hardpoints is one of scale, as no other lets them close. Results in
single precision are held to those in double precision, and to how far these move when all numbers
are rounded to single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import mechanisms
from fails_cases.judged import CRASHED, FLAGGED, Judged, compare
from fails_cases.rigid_dynamics import Dynamics
from fails_cases.statics import _numpy, _text

SHARE = 2.0
DIFFERENCES = "differences of fourth order of the values"
PAIRED = "the forward derivative, by differences of fourth order"
DOUBLE = "the same in double precision, and how far rounding of the numbers moves it"
GROUPS = {
    "state": ("point_position", "point_velocity", "kinetic_energy", "potential_energy"),
    "dynamics": ("forward_dynamics", "joint_reactions", "inverse_dynamics"),
    "sweep": ("Sweep", "HoldingEffort"),
    "rest": ("Equilibrium.q", "Equilibrium.lam"),
    "run": ("Solution.q", "Solution.v"),
}
NUMBERS = {
    f"{n}, {aspect}": oracle
    for names in GROUPS.values()
    for n in names
    for aspect, oracle in (("forward derivative", DIFFERENCES), ("float32", DOUBLE))
} | {f"{names[0]}, reverse derivative": PAIRED for names in GROUPS.values()}
FLAT = ("four-bar with a file's digits", "floating loop", "three parallel arms")
STEP = 1e-2
KINDS = 5  # of a run
OFFSETS = STEP * np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])


class Case(NamedTuple):
    """A function of a mechanism and of two inputs, and the number of each of its outputs."""

    group: str
    fn: Callable[[Any, Any, Any], tuple[Any, Any]]  # outputs, whether ok
    numbers: tuple[str, ...]


def judged(seed: int, size: int) -> Iterator[Judged]:
    """All groups of numbers of some kinds of mechanism; compiling them takes the time."""
    names = np.random.default_rng(seed).permutation(list(mechanisms.KINDS))[:KINDS]
    samples = max(3, round(size / 45 / len(names)))
    for name in map(str, names):
        b = mechanisms.batch(name, samples, seed)
        for case in cases(b):
            yield from judge_case(b, case)
        jax.clear_caches()


def cases(b: mechanisms.Batch) -> list[Case]:
    """The groups that a kind has."""
    body, point = b.mech.structure.bodies[-1], b.mech.structure.points[-1]
    joint = b.mech.structure.joints[0].name

    def start(mech: Any, guess: Any, speeds: Any) -> Any:
        found = mbd.assemble(mech, guess=guess, throw=False)
        return found.q, mbd.assemble_velocity(mech, found.q, guess=speeds), found.status == 0

    def state(mech: Any, guess: Any, speeds: Any) -> Any:
        q, v, ok = start(mech, guess, speeds)
        place = mbd.point_position(mech, q, body, point)
        speed = mbd.point_velocity(mech, q, v, body, point)
        energies = mbd.kinetic_energy(mech, q, v), mbd.potential_energy(mech, q)
        return (place, speed, *energies), ok

    def dynamics(mech: Any, guess: Any, speeds: Any) -> Any:
        q, v, ok = start(mech, guess, speeds)
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        force = mbd.joint_reactions(mech, q, v, vdot, lam)[joint][3:]
        tau, _ = mbd.inverse_dynamics(mech, q, v, 0.5 * vdot)
        ok = ok & (mbd.check_state(mech, q, v).status == 0)
        return (mbd.body_accelerations(mech, q, v, vdot)[body][3:], force, tau), ok

    def sweep(mech: Any, guess: Any, speeds: Any) -> Any:
        outputs = {
            "x": mbd.observe.Position(body, point),
            "e": mbd.observe.HoldingEffort(b.kind.hold),
        }
        x = np.array([0.3, 1.0]) * b.kind.reach
        found = mbd.observe.Sweep({b.kind.hold: x}, outputs).computed(mech)
        return (found["x"], found["e"]), found["status"] == 0

    def rest(mech: Any, guess: Any, speeds: Any) -> Any:
        found = mbd.equilibrium(mech, throw=False)
        where = mbd.point_position(mech, found.q, body, point)
        return (where, found.lam), found.status == 0

    def run(mech: Any, guess: Any, speeds: Any) -> Any:
        q, v, ok = start(mech, guess, speeds)
        found = mbd.simulate(mech, q, v, dt=1e-3, steps=5, throw=False)
        q, v = found.q[-1], found.v[-1]
        speed = mbd.point_velocity(mech, q, v, body, point)
        place = mbd.point_position(mech, q, body, point)
        return (place, speed), ok & (found.status == 0)

    wanted = [("state", state), ("dynamics", dynamics)]
    if b.kind.hold is not None:
        wanted.append(("sweep", sweep))
    if b.kind.settles:
        wanted.append(("rest", rest))
    if b.name in ("RSSR", "corner", "chain"):
        wanted.append(("run", run))
    return [Case(group, fn, GROUPS[group]) for group, fn in wanted]


def directions(b: mechanisms.Batch, rng: np.random.Generator) -> Any:
    """A change of all numbers of each sample, of about a hundredth."""
    flat, tree = jax.tree_util.tree_flatten_with_path(b.stacked)
    names = [jax.tree_util.keystr(path) for path, _ in flat]
    n, size = len(b.dicts), b.sizes
    scaling = rng.normal(size=n)
    out = []
    for name, (_, x) in zip(names, flat, strict=True):
        x = np.asarray(x, float)
        wide = x.reshape(n, -1)
        if name.startswith(".points") or name.endswith(".com"):
            if b.name in FLAT:
                change = wide * scaling[:, None]
            else:
                change = rng.normal(size=wide.shape) * size[:, None]
        elif "axis" in name or "normal" in name:
            # in proportion to its own length: a cross product of micrometres is an axis too
            length = np.linalg.norm(wide, axis=1, keepdims=True)
            change = 0.0 * wide if b.name in FLAT else rng.normal(size=wide.shape) * length
        else:
            change = wide * rng.normal(size=(n, 1))
        out.append(0.01 * change.reshape(x.shape))
    if (coupler := ".bodies['coupler'].com") in names and "a" in b.mech.structure.points:
        # its spin stays without a load: elsewhere than on the line it would settle at once
        ends = (out[names.index(f".points['{p}']")] for p in "ab")
        out[names.index(coupler)] = 0.5 * sum(ends)
    return jax.tree_util.tree_unflatten(tree, out)


def judge_case(b: mechanisms.Batch, case: Case) -> Iterator[Judged]:
    """Forward and reverse derivatives and single precision of a group of numbers.

    The guess is assembled: changes are then least ones, as derivatives are along freedoms that
    nothing determines.
    """
    rng, top, n = np.random.default_rng([b.seed, 13]), mbd.topology(b.mech), len(b.dicts)
    turns = np.array([k == "angle" for k in top.speed_kinds])
    units = np.where(turns, 1.0, b.sizes[:, None])
    change = 0.05 * units * rng.normal(size=(n, top.nv))
    speeds = units * rng.normal(size=(n, top.nv))
    along = directions(b, rng)

    def near(mech: Any, change: Any) -> Any:
        guess = mbd.step_coordinates(mech, jnp.asarray(mbd.neutral(mech), mech.dtype), change)
        return mbd.assemble(mech, guess=guess, throw=False).q

    guess = _numpy(mbd.lanes.vmap(near)(b.stacked, change))
    drawn = np.tile(np.asarray(mbd.neutral(b.mech), float), (n, 1))
    guess = np.where(np.all(np.isfinite(guess), axis=1)[:, None], guess, drawn)

    def value(mech: Any, guess: Any, speeds: Any) -> Any:
        return case.fn(mech, guess, speeds)

    def forward(mech: Any, along: Any, guess: Any, speeds: Any) -> Any:
        return jax.jvp(lambda m: case.fn(m, guess, speeds)[0], (mech,), (along,))

    def reverse(mech: Any, along: Any, guess: Any, speeds: Any, weights: Any) -> Any:
        def total(m: Any) -> Any:
            parts = case.fn(m, guess, speeds)[0]
            return sum(jnp.sum(w * x) for w, x in zip(weights, parts, strict=True))

        slopes = jax.grad(total)(mech)
        pairs = zip(*map(jax.tree_util.tree_leaves, (slopes, along)), strict=True)
        return sum(jnp.sum(g * x) for g, x in pairs)

    values = mbd.lanes.vmap(value)
    base, ok = _numpy(values(b.stacked, guess, speeds))
    moved = [_numpy(values(_plus(b.stacked, along, h), guess, speeds)) for h in OFFSETS]
    ok = ok & np.all([m[1] for m in moved], axis=0)
    _, tangents = _numpy(mbd.lanes.vmap(forward)(b.stacked, along, guess, speeds))
    fine, unsure = _differences([m[0] for m in moved])
    sizes = [np.maximum(_max(d), 1e-3 * _max(x)) for d, x in zip(fine, base, strict=True)]
    for number, got, want, off, size in zip(
        case.numbers, tangents, fine, unsure, sizes, strict=True
    ):
        yield from _slopes(f"{number}, forward derivative", b, got, want, off, size, ok)
    weights = [
        rng.normal(size=x.shape) * _inverse(s).reshape(n, *[1] * (x.ndim - 1))
        for x, s in zip(base, sizes, strict=True)
    ]
    slope = _numpy(mbd.lanes.vmap(reverse)(b.stacked, along, guess, speeds, weights))
    want = sum(_total(w * d) for w, d in zip(weights, fine, strict=True))
    off = sum(_total(np.abs(w) * d) for w, d in zip(weights, unsure, strict=True))
    yield from _slopes(
        f"{case.numbers[0]}, reverse derivative", b, slope, want, off, np.ones(n), ok
    )
    yield from _single(b, case, values, base, ok, (guess, speeds), rng)


def _inverse(size: Any) -> Any:
    """Weights of numbers by their sizes; none for those that are zero and stay zero."""
    return np.where(size > 1e-100, 1.0 / np.maximum(size, 1e-100), 0.0)


def _plus(tree: Any, along: Any, h: float) -> Any:
    return jax.tree_util.tree_map(lambda x, d: x + h * d, tree, along)


def _max(x: Any) -> Any:
    return np.max(np.abs(x.reshape(len(x), -1)), axis=1, initial=0.0)


def _total(x: Any) -> Any:
    return np.sum(x.reshape(len(x), -1), axis=1)


def _differences(values: list[Any]) -> tuple[list[Any], list[Any]]:
    """Derivatives from values at `OFFSETS`, and how far those of twice the step are from them."""
    fine, unsure = [], []
    for m4, m2, m1, p1, p2, p4 in zip(*values, strict=True):
        near = (8.0 * (p1 - m1) - (p2 - m2)) / (12.0 * STEP)
        far = (8.0 * (p2 - m2) - (p4 - m4)) / (24.0 * STEP)
        fine.append(near)
        unsure.append(np.abs(near - far))
    return fine, unsure


def _slopes(
    number: str, b: Any, got: Any, want: Any, off: Any, size: Any, ok: Any
) -> Iterator[Judged]:
    for i in range(len(ok)):
        if ok[i] and not np.max(off[i], initial=0.0) < 1e-3 * size[i]:
            continue  # the differences do not settle
        text = _text(b, i)
        if ok[i] and np.any(np.isnan(got[i])):
            yield Judged(number, FLAGGED, float("nan"), f"NaN | {text}")
            continue
        limit = 1e-5 + 3.0 * float(np.max(off[i], initial=0.0)) / max(float(size[i]), 1e-300)
        yield compare(
            number, got[i], want[i], limit=limit, scale=float(size[i]), detail=text, ok=bool(ok[i])
        )


SINGLE = {"Equilibrium.lam": 1e-2}
"""Errors in single precision, where they are not those of single operations: stiff springs lose up
to a hundredth of the loads in roundings of q before an equilibrium is INACCURATE."""


def _loads(b: Any) -> Any:
    """The largest force (n,) [N] in each sample's equilibrium, of springs and joints."""
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    q = _numpy(mbd.lanes.vmap(lambda m: mbd.equilibrium(m, throw=False).q)(b.stacked))
    fine = np.all(np.isfinite(q), axis=1)
    q = np.where(fine[:, None], q, np.asarray(mbd.neutral(b.mech), float))
    rest = np.zeros((r.n, r.nv))
    return np.array([forces.scale for forces in r.joint_forces(q, rest, rest)])


def _single(
    b: Any, case: Case, values: Any, base: Any, ok: Any, inputs: Any, rng: Any
) -> Iterator[Judged]:
    """The same in single precision."""

    def rounded(tree: Any) -> Any:
        return jax.tree_util.tree_map(lambda x: np.asarray(x, np.float32), tree)

    try:
        found, said = _numpy(values(rounded(b.stacked), *rounded(inputs)))
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:200]} | {_text(b, 0)}"
        yield Judged(f"{case.numbers[0]}, float32", CRASHED, float("nan"), text)
        return
    spread = [np.zeros(len(ok)) for _ in base]
    for _ in range(3):
        noise = jax.tree_util.tree_map(
            lambda x: x * (1.0 + 6e-8 * rng.choice([-1.0, 1.0], np.shape(x))), (b.stacked, inputs)
        )
        moved, fine = _numpy(values(noise[0], *noise[1]))
        ok = ok & fine
        spread = [np.maximum(s, _max(x - y)) for s, x, y in zip(spread, moved, base, strict=True)]
    for number, got, want, s in zip(case.numbers, found, base, spread, strict=True):
        size = np.maximum(_max(want), _loads(b) if number in SINGLE else 0.0)
        for i in range(len(ok)):
            if not ok[i] or not s[i] < 1e-3 * size[i]:
                continue
            finite = bool(said[i]) and bool(np.all(np.isfinite(got[i])))
            limit = SINGLE.get(number, 2e-4) + 100.0 * s[i] / size[i]
            yield compare(
                f"{number}, float32", got[i], want[i], limit=limit, scale=float(size[i]),
                detail=_text(b, i), ok=finite,
            )  # fmt: skip
