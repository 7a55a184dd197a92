"""The particles of a mechanism: the unknown ones, and all others as functions of them.

Bodies connected by a joint of the spanning tree share particles (Attia, section 2.3: a ball or a
universal joint one, a revolute two on its axis, a fixed joint all), so that these joints need no
conditions on points. A shared particle is a point of the body that carries it, and so a constant
combination of that body's particles. A body has one of three forms:

* 4: four particles, six distances; everything is linear in the coordinates;
* 3: particles 1, 2, 4 and three distances; the fourth follows from them by (12);
* 2: a rod, two particles and one distance; it has no spin and no direction but its axis.

`particle_count` counts the equations, `least_forms` finds the smallest form of each body.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.absolute_coordinates import whole_turns
from jaxmbd.formulations.particles.bodies import (
    Frame,
    dependent_particle,
    equivalent_particles,
    invariants,
    mass_distribution,
    second_moment,
)
from jaxmbd.formulations.particles.joints import (
    SHARED,
    Half,
    attached,
    distance_rows,
    halves,
    joint_angles_and_travels,
    joint_rows,
)
from jaxmbd.graph import topology
from jaxmbd.model import (
    GROUND,
    Fixed,
    Free,
    Joint,
    Mechanism,
    PointForce,
    Revolute,
    Spherical,
    SpringDamper,
    Universal,
    in_space,
    is_concrete,
)
from jaxmbd.numerics import tolerances

Forms = int | Mapping[str, int]
"""Number of primary particles of every body, or of the bodies named (the others have four)."""

Positions = dict[str, Float[Array, "_ 3"]]
"""Body to its particles' positions [m] (or velocities, or accelerations), the ground's too."""


class ParticleSystem:
    """Particles of a mechanism: drawn frames, shared ones, unknown ones."""

    def __init__(self, mech: Mechanism, forms: Forms = 4, near: Mapping[str, Array] | None = None):
        self.mech, self.top = mech, topology(mech)
        self.near = dict(near or {})
        """Joint to coordinates that fix the full turns of its angles; else they are in (-π, π]."""
        self.form = _forms(self.top.bodies, forms)
        self.length = _length(mech)
        eye = jnp.eye(3, dtype=mech.dtype)
        self.frames = {GROUND: Frame(jnp.zeros(3, mech.dtype), self.length * eye)}
        self.halves = {e.name: halves(mech, e.name) for e in mech.structure.joints}
        self.shared: dict[str, int] = {}
        """Body to the number of particles that it shares with its carrier."""
        self.carried: dict[str, tuple[str, Array]] = {}
        """Body to its carrier, and the shared particles as combinations of the carrier's."""
        self.slots: dict[str, slice] = {}
        """Body to the indices of its own particles among the unknown ones."""
        self.count = 0
        """Number of unknown particles."""
        for i, body in enumerate(self.top.bodies):
            self._add(body, self.top.tree[i])
        self._invariants = {
            b: invariants(*self.frames[b].points) for b, form in self.form.items() if form == 3
        }
        self._ends = {}
        for name, (a, b) in self.halves.items():
            joint = mech.joints[name]
            self._ends[name] = self._combination(joint.a, a), self._combination(joint.b, b)

    def _add(self, body: str, name: str) -> None:
        """Place a body's particles: those it shares with its carrier, then its own."""
        joint = self.mech.joint(name)
        a_half, b_half = self.halves[name]
        carrier, mine, theirs = joint.a, b_half, a_half
        if joint.a == body:
            carrier, mine, theirs = joint.b, a_half, b_half
        form = self.form[body]
        if form == 2:
            if not isinstance(joint, (Spherical, Free)):
                raise ValueError(
                    f"body '{body}' has two particles, but it is carried by joint '{name}', a "
                    f"{type(joint).__name__}: a rod of particles hangs on balls; give it 3 or 4"
                )
            frame = self._rod(body, name, mine)
        else:
            frame = self._triad(joint, body, mine)
        self.frames[body] = frame
        match joint:
            case Fixed():
                common = frame.points + (theirs.point - mine.point)
            case Revolute():
                ahead = theirs.point + self.length * theirs.directions[0]
                common = jnp.stack([theirs.point, ahead])
            case _:
                common = theirs.point[None][: SHARED.get(type(joint), 0)]
        if common.shape[0] > 1:
            self._with_directions(carrier)
        self.shared[body] = common.shape[0]
        if common.shape[0]:
            self.carried[body] = carrier, jnp.stack([self.of_point(carrier, x) for x in common])
        own = max(form - common.shape[0], 0)
        self.slots[body] = slice(self.count, self.count + own)
        self.count += own

    def _triad(self, joint: Joint, body: str, mine: Half) -> Frame:
        """Three orthogonal edges, from the joint's point if that is shared, else from the COM."""
        eye = jnp.eye(3, dtype=self.mech.dtype)
        if isinstance(joint, Revolute):
            eye = mine.directions
        base = mine.point if type(joint) in SHARED else self.mech.com(body)
        return Frame(base, self.length * eye)

    def _rod(self, body: str, name: str, mine: Half) -> Frame:
        """Two particles: at the ball that carries the body, or the COM; at the next joint on it.

        If there is no other joint, the second particle lies along the largest column of the
        second moments.
        """
        base = mine.point
        others = [x for n, x in attached(self.mech, body) if n != name]
        if others:
            edge = self.mech.point(others[0]) - base
        else:
            moments = second_moment(self.mech.inertia(body))
            column = moments[jnp.argmax(jnp.diagonal(moments))]
            square = column @ column
            edge = column * self.length / jnp.sqrt(jnp.where(square > 0.0, square, 1.0))
        if is_concrete(edge) and not np.any(np.asarray(edge)):
            raise ValueError(
                f"body '{body}' has two particles, but both would lie at {np.asarray(base)}: give "
                "it 3 or 4"
            )
        return Frame(base, edge[None])

    def mass_matrix(self, body: str) -> Float[Array, "k k"]:
        """The mass matrix of a body's particles, the same along x, y and z [kg]."""
        part, com = self.mech.bodies[body], self.mech.com(body)
        points, inertia = self.frames[body].points, self.mech.inertia(body)
        try:
            return equivalent_particles(points, part.mass, com, inertia).matrix
        except ValueError as error:
            raise ValueError(f"body '{body}': {error}") from None

    def of_point(self, body: str, x: Array) -> Float[Array, "n"]:
        """Coefficients of the point of `body` drawn at `x` in its particles.

        Raises:
            ValueError: for a point off a rod's axis (NaN where the numbers are traced).
        """
        frame = self.frames[body]
        if frame.edges.shape[0] == 3:
            return frame.of_point(x)
        off = frame.misses(x)
        good = off < tolerances.rounding(off.dtype, 1e4)
        if is_concrete(good) and not bool(good):
            raise ValueError(
                f"body '{body}' has two particles, but its point {np.asarray(x)} is off their "
                f"axis by {float(off):.1e} of their distance: give it 3 or 4 particles"
            )
        return jnp.where(good, frame.of_point(x), jnp.nan)

    def _with_directions(self, body: str) -> Frame:
        """The frame of a body that is no rod."""
        if self.frames[body].edges.shape[0] == 1:
            raise ValueError(
                f"body '{body}' has two particles and so no directions for its joints: it may "
                "meet others in balls and rods only; give it 3 or 4"
            )
        return self.frames[body]

    def _combination(self, body: str, half: Half) -> Float[Array, "m n"]:
        """Rows that give a joint's half from its body's particles: the point, the directions."""
        if half.triad is None:
            return self.of_point(body, half.point)[None]
        frame, point = self._with_directions(body), self.of_point(body, half.point)
        return jnp.stack([point, *(frame.of_direction(u) for u in half.triad)])

    def ends(self, name: str, r: Positions) -> tuple[Half, Half]:
        """The halves of a joint at the particles' positions."""
        joint = self.mech.joints[name]
        on_a, on_b = (
            rows @ r[body] for rows, body in zip(self._ends[name], (joint.a, joint.b), strict=True)
        )
        return _half(on_a), _half(on_b)

    def coordinates(self, name: str, r: Positions) -> Float[Array, "nq"] | None:
        """Angles [rad] and travels [m] of a joint from the particles; None for quaternions."""
        joint = self.mech.joint(name)
        q = joint_angles_and_travels(joint, *self.ends(name, r))
        if q is None or name not in self.near:
            return q
        turning = jnp.asarray([kind == "angle" for kind in joint.speeds])
        return q + jnp.where(turning, whole_turns(self.near[name] - q), 0.0)

    def pairs(self, body: str) -> list[tuple[int, int]]:
        """The pairs of a body's primary particles whose distance is a condition.

        The distance of two shared particles is a condition of the body that carries them.
        """
        every = itertools.combinations(range(self.form[body]), 2)
        return [pair for pair in every if pair[1] >= self.shared[body]]

    def distance_rows(self, body: str, r: Positions) -> Float[Array, "rows"]:
        """The distances within a body, (4.1)-(4.6) or three or one of them."""
        pairs = np.array(self.pairs(body), int).reshape(-1, 2)
        now, drawn = (x[pairs[:, 1]] - x[pairs[:, 0]] for x in (r[body], self.frames[body].points))
        return distance_rows(now, drawn)

    def joint_rows(self, name: str, r: Positions) -> Float[Array, "rows"]:
        """The conditions of a joint on points, without those satisfied by shared particles."""
        joint = self.mech.joint(name)
        in_tree = name in self.top.tree
        if in_tree and isinstance(joint, (Spherical, Revolute, Fixed)):
            return jnp.zeros(0, self.mech.dtype)
        rows = joint_rows(joint, *self.ends(name, r), self.halves[name], self.length)
        return rows[3:] if in_tree and isinstance(joint, Universal) else rows

    def positions(self, y: Float[Array, "count 3"]) -> Positions:
        """All particles from the unknown ones (of a form-3 body the dependent one comes last)."""
        r: Positions = {GROUND: self.frames[GROUND].points}
        for body in self.top.bodies:
            parts = [y[self.slots[body]]]
            if body in self.carried:
                carrier, combine = self.carried[body]
                parts.insert(0, combine @ r[carrier])
            primary = jnp.concatenate(parts)
            if self.form[body] == 3 and primary.shape[0] == 3:
                third = dependent_particle(self._invariants[body], *primary)
                primary = jnp.concatenate([primary, third[None]])
            r[body] = primary
        return r

    def stack(self, r: Positions) -> Float[Array, "n 3"]:
        """The particles of all bodies, in tree order."""
        return jnp.concatenate([r[b] for b in self.top.bodies])

    def unstack(self, x: Float[Array, "n 3"]) -> Positions:
        """The inverse of `stack`; the ground's are zero."""
        out: Positions = {GROUND: jnp.zeros_like(self.frames[GROUND].points)}
        at = 0
        for body in self.top.bodies:
            n = self.frames[body].edges.shape[0] + 1
            out[body] = x[at : at + n]
            at += n
        return out

    def own(self, r: Positions) -> Float[Array, "count 3"]:
        """The unknown particles, selected from all; the inverse of `positions`."""
        parts = [jnp.zeros((0, 3), self.mech.dtype)]
        for body in self.top.bodies:
            n = self.slots[body].stop - self.slots[body].start
            parts.append(r[body][self.shared[body] :][:n])
        return jnp.concatenate(parts)


def _half(rows: Float[Array, "m 3"]) -> Half:
    return Half(rows[0], rows[1:] if rows.shape[0] > 1 else None)


def _forms(bodies: tuple[str, ...], forms: Forms) -> dict[str, int]:
    if isinstance(forms, int):
        forms = dict.fromkeys(bodies, forms)
    unknown = [b for b in forms if b not in bodies]
    if unknown:
        raise ValueError(f"forms names {unknown}, which are no bodies: {list(bodies)}")
    wrong = {b: k for b, k in forms.items() if k not in (2, 3, 4)}
    if wrong:
        raise ValueError(f"a body has 2, 3 or 4 primary particles; forms gives {wrong}")
    return {b: forms.get(b, 4) for b in bodies}


def _length(mech: Mechanism) -> Float[Array, ""]:
    """ℓ: the longest arm of a joint about its bodies' COMs or radius of gyration [m].

    Results do not depend on it, so neither do their derivatives.
    """
    squares = [jnp.zeros((), mech.dtype)]
    for body in mech.structure.bodies:
        arms = [mech.point(x) - mech.com(body) for _, x in attached(mech, body)]
        squares += [x @ x for x in arms]
        mass = jnp.asarray(mech.bodies[body].mass)
        squares.append(jnp.trace(mech.inertia(body)) / jnp.where(mass > 0.0, mass, jnp.inf))
    square = jnp.max(jnp.stack(squares))
    return jax.lax.stop_gradient(jnp.sqrt(jnp.where(square > 0.0, square, 1.0)))


def least_forms(mech: Mechanism) -> dict[str, int]:
    """The smallest `forms`: two primary particles for each body that is a rod, else three.

    A body counts as a rod if it has the inertia of a rod or is massless, is carried by a ball joint
    and connected to others by balls and rods, and if its centre of mass and all attachment points
    of joints, springs and forces lie on one line. Such a body has no spin. Flat bodies need no
    special case: three particles represent any body, since the fourth follows from them.

    Raises:
        ValueError: for traced numbers, because the result determines array shapes.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import least_forms
        >>> least_forms(mbd.zoo.rssr())  # its coupler has an inertia about its axis
        {'crank': 3, 'coupler': 3, 'rocker': 3}
    """
    mech = in_space(mech)
    return {body: 2 if _is_rod(mech, body) else 3 for body in mech.structure.bodies}


def _is_rod(mech: Mechanism, body: str) -> bool:
    if mass_distribution(mech.bodies[body]) not in ("rod", "massless"):
        return False
    acting = [e for e in mech.forces.values() if body in e.bodies]
    if any(type(e) not in (SpringDamper, PointForce) for e in acting):
        return False
    try:
        system = ParticleSystem(mech, {body: 2})
        system.mass_matrix(body)
        for element in acting:
            for on, at in element.attachments:
                if on == body:
                    system.of_point(body, mech.point(at))
        system.of_point(body, mech.com(body))
    except ValueError:
        return False
    return True


class ParticleCount(NamedTuple):
    """Numbers of particles, unknowns and conditions of a mechanism in point coordinates.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_count
        >>> particle_count(mbd.zoo.simple_pendulum(), forms=3).differential
        1
    """

    particles: int
    """Particles whose coordinates are unknown: shared ones once, the ground's not."""
    coordinates: int
    """Unknown accelerations, three for each particle."""
    distances: int
    """Conditions within bodies."""
    joints: int
    """Conditions of joints that share no particles, cut joints and rods among them."""
    held: int
    """Conditions of couplings and drives."""

    @property
    def constraints(self) -> int:
        """All conditions."""
        return self.distances + self.joints + self.held

    @property
    def differential(self) -> int:
        """Number of differential equations of motion: coordinates − constraints.

        Attia counts in this way ("5 differential equations of motion + 22 geometric constraints");
        his sum, 27, is `coordinates`. Negative if there are more conditions than coordinates
        because of redundancy.
        """
        return self.coordinates - self.constraints

    @property
    def with_multipliers(self) -> int:
        """Size of the KKT system: coordinates and one multiplier for each condition."""
        return self.coordinates + self.constraints


def particle_count(mech: Mechanism, *, forms: Forms = 4) -> ParticleCount:
    """Count the particles, unknowns and conditions of a mechanism in point coordinates.

    Args:
        mech: the mechanism.
        forms: primary particles of every body, or of bodies by name (`particle_accelerations`).

    Raises:
        ValueError: a joint has no conditions on points, or a body does not fit its form.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import particle_count
        >>> count = particle_count(mbd.zoo.rssr(), forms=3)
        >>> count.particles, count.coordinates, count.constraints
        (4, 12, 10)
    """
    system = ParticleSystem(in_space(mech), forms)
    r = {b: frame.points for b, frame in system.frames.items()}

    def rows(name: str) -> int:
        return jax.eval_shape(lambda: system.joint_rows(name, r)).shape[0]

    return ParticleCount(
        particles=system.count,
        coordinates=3 * system.count,
        distances=sum(len(system.pairs(b)) for b in system.top.bodies),
        joints=sum(rows(name) for name in system.halves),
        held=len(system.top.couplings) + len(system.top.drives),
    )
