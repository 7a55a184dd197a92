"""Motion ratio and wheel rate of a corner's spring.

With L(z) the spring's length over the wheel's travel z and F(L) its tension, the wheel carries the
vertical force ``dV/dz = F L'``, and its rate is ``d²V/dz² = F' L' + F L''``: with a linear spring
``k L'² + F L''``, of which the second part, due to the spring's load, is neglected in
``k (motion ratio)²``.
"""

from __future__ import annotations

from jax import Array

from jaxmbd.suspension.motions import Spring
from jaxmbd.suspension.registry import Instant, characteristic


def _spring(at: Instant) -> Spring:
    spring = at.state.spring
    assert spring is not None
    return spring


@characteristic("m", "length of the spring [m]", needs=("spring",))
def spring_length(at: Instant) -> Array:
    """Distance of the spring's ends."""
    return _spring(at).length


@characteristic(
    "", "motion ratio [1]: spring over wheel travel, positive: shortens in bump", needs=("spring",)
)
def motion_ratio(at: Instant) -> Array:
    """``−dL/dz``, in the wheel's travel with the steering held."""
    return -_spring(at).travel


@characteristic(
    "N", "vertical force on the wheel that balances the spring [N], positive: up", needs=("spring",)
)
def wheel_force(at: Instant) -> Array:
    """``F L'``, with F the tension: the wheel is lifted with it against the spring."""
    return _spring(at).force * _spring(at).travel


@characteristic(
    "N/m", "wheel rate of the spring [N/m], at the wheel centre", needs=("spring",), second=True
)
def wheel_rate(at: Instant) -> Array:
    """``F' L' + F L''``, the derivative of `wheel_force` along the travel motion."""
    return at.gradient("wheel_force")
