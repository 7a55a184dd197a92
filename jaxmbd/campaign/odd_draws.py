"""Warnings of scatter that no one can have meant: negative masses, points all over the place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxmbd.campaign.inputs import Input
from jaxmbd.model.user_warning import warn_user

POSITIVE = ("mass", "stiffness", "damping", "radius")
"""Last part of the paths of numbers that are not negative in any mechanism that can be built."""
WIDE = 0.3
"""Scatter of points, as a share of the size of what is drawn, above which it looks wrong."""


def warn_of_odd_draws(inputs: Mapping[str, Input], drawn: Mapping[str, np.ndarray]) -> None:
    """Warn, with the numbers, of drawn inputs that look wrong.

    Args:
        inputs: the study's inputs.
        drawn: some samples of those that vary, name to array (n, …).
    """
    for name, x in drawn.items():
        last, unit = name.rpartition("/")[2], inputs[name].unit
        if last in POSITIVE and np.any(x < 0.0) and np.all(inputs[name].nominal >= 0.0):
            share = 100.0 * np.mean(np.any((x < 0.0).reshape(len(x), -1), axis=1))
            warn_user(
                f"input '{name}' is negative in {share:.2g} % of the samples, down to "
                f"{x.min():.4g} {unit}: is its scatter in {unit}? A LogNormal or TruncatedNormal "
                "distribution stays positive"
            )
    points = {n: x.nominal for n, x in inputs.items() if n.startswith("points/") and x.nominal.ndim}
    if len(points) > 1:
        size = float(np.max(np.ptp(np.stack(list(points.values())), axis=0)))
        wide = {n: float(np.max(np.std(drawn[n], axis=0))) for n in points if n in drawn}
        name = max(wide, key=lambda n: wide[n], default="")
        if name and wide[name] > WIDE * size > 0.0:
            warn_user(
                f"input '{name}' scatters by {wide[name]:.4g} m, but all points lie within "
                f"{size:.4g} m: is its scatter in metres?"
            )
