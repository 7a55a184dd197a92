"""Points of rigid parts, placed by the distances that they keep: an oracle of mechanisms."""

import numpy as np
from scipy.optimize import least_squares


class Distances:
    """Moving points found by Newton's method on the distances that bodies and rods keep.

    Args:
        p: points as drawn.
        bodies: sets of points whose distances from each other stay.
        rods: pairs of points.
        planes: (point, axis) that keep a coordinate.
        fixed: names of points that stay.
    """

    def __init__(self, p, bodies, rods, fixed, planes=(), straight=()):
        self.p, self.planes, self.straight = p, planes, straight
        self.pairs = [(a, b) for x in bodies for i, a in enumerate(x) for b in x[i + 1 :]]
        self.pairs += [*rods]
        moving = {n for pair in (*self.pairs, *planes) for n in pair if isinstance(n, str)}
        self.moving = sorted(moving - set(fixed))
        self.x = np.concatenate([p[n] for n in self.moving])

    def places(self, x):
        return self.p | dict(zip(self.moving, x.reshape(-1, 3), strict=True))

    def solve(self, known):
        """Points where some coordinates, (point, axis): value, are known."""

        def open_(x):
            at = self.places(x)
            found = [
                (at[a] - at[b]) @ (at[a] - at[b])
                - (self.p[a] - self.p[b]) @ (self.p[a] - self.p[b])
                for a, b in self.pairs
            ]
            found += [at[n][k] - self.p[n][k] for n, k in self.planes]
            found += [at[n][k] - y for (n, k), y in known.items()]
            for a, b, c in self.straight:
                found += [*np.cross(at[b] - at[a], at[c] - at[a])]
            return np.array(found)

        done = least_squares(open_, self.x, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        assert np.max(np.abs(open_(done.x))) < 1e-12
        self.x = done.x
        return self.places(done.x)
