"""Which numbers of a mechanism can be moved by a slider, and how far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from jaxmbd.design import Between, Together, Within
from jaxmbd.kinematics.scales import mechanism_length
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.variables import Parametrization, Variable, variables

Ranges = Mapping[str, Within | Between | Together]
Vary = str | Iterable[str] | Ranges | None

_SHARE = 0.5
"""How much of itself a number may lose or gain, if it is no length."""

_NICE = (1.0, 2.0, 3.0, 5.0, 10.0)


def ranges(model: Mechanism | Parametrization, vary: Vary = None) -> Ranges:
    """Ranges of the numbers that may move.

    Lengths, among them the coordinates of points, move by about a tenth of the mechanism's length
    to either side, other numbers by half of themselves.

    Args:
        model: the mechanism, or a parametrisation.
        vary: paths or patterns as in `jaxmbd.variables`, or path to a range of `jaxmbd.design`; by
            default all points, masses, and numbers of force elements, or the arguments of a
            parametrisation.

    Raises:
        ValueError: a pattern fits nothing.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.viz.explorer.ranges import ranges
        >>> found = ranges(mbd.zoo.multi_link(), "points/tierod_*")
        >>> list(found), found["points/tierod_inboard"].width
        (['points/tierod_inboard', 'points/tierod_outboard'], 0.03)
    """
    if isinstance(vary, Mapping):
        return dict(vary)
    width = _width(model if isinstance(model, Mechanism) else model({}))
    if vary is not None:
        patterns = [vary] if isinstance(vary, str) else list(vary)
        table = [x for p in patterns for x in _find(model, p).values()]
        return {x.path: _range(x, width) for x in table}
    found = [x for x in _usual(model) if np.size(x.value) and np.any(np.isfinite(x.value))]
    return {x.path: _range(x, width) for x in found if _is_length(x) or np.all(x.value)}


def _find(model: Mechanism | Parametrization, pattern: str) -> Mapping[str, Variable]:
    return variables(model, pattern) if isinstance(model, Mechanism) else model.find(pattern)


def _usual(model: Mechanism | Parametrization) -> list[Variable]:
    """All points, then what acts on the motion; of a parametrisation its arguments."""
    if isinstance(model, Parametrization):
        return list(model.variables.values())
    every = list(variables(model).values())
    kinds = [x for x in every if x.path.startswith("points/")]
    kinds += [x for x in every if x.path.startswith("forces/") and np.ndim(x.value) == 0]
    return kinds + [x for x in every if x.path.endswith("/mass")]


def _is_length(x: Variable) -> bool:
    return x.unit == "m"


def _range(x: Variable, width: float) -> Within:
    if _is_length(x):
        return Within(width)
    return Within(_SHARE, relative=True) if np.all(x.value) else Within(1.0)


def _width(mech: Mechanism) -> float:
    """A tenth of the mechanism's length as a round number [m]."""
    length = 0.1 * float(mechanism_length(mech))
    power = 10.0 ** np.floor(np.log10(length))
    return float(round(min(_NICE, key=lambda x: abs(x - length / power)) * power, 12))
