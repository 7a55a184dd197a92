"""What a study's numbers are: outputs with unit and meaning, axes with their values."""

from __future__ import annotations

from typing import Any, NamedTuple


class Output(NamedTuple):
    """One output of a sample.

    Attributes:
        unit: SI unit, "" for a pure number.
        text: what it is, with its sign.
        dims: a name for each axis of the array, without that of the samples.
        role: "output"; "status" for a `jaxmbd.Status` number; "reason" for what explains a failure,
            which is meaningful for failed samples only.
        flags: the meanings of the whole numbers 0, 1, … where the output is one of them.

    Example:
        >>> from jaxmbd.observe import Output
        >>> Output("rad", "toe, positive: toe-in", ("travel",)).role
        'output'
    """

    unit: str = ""
    text: str = ""
    dims: tuple[str, ...] = ()
    role: str = "output"
    flags: tuple[str, ...] = ()


class Axis(NamedTuple):
    """The coordinate of a dimension.

    Attributes:
        values: (n,) numbers or texts.
        unit: SI unit.
        text: what it is.

    Example:
        >>> from jaxmbd.observe import Axis
        >>> Axis((-0.06, 0.0, 0.06), "m", "wheel travel").unit
        'm'
    """

    values: Any
    unit: str = ""
    text: str = ""


XYZ = Axis(("x", "y", "z"), "", "component, world axes")
"""The coordinate of the dimension ``"axis"`` of vectors."""


class Declaration(NamedTuple):
    """What an experiment yields for a mechanism: `outputs` and the `coords` of their dimensions.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Sweep, Toe
        >>> height = mbd.PointTravel("upright", "wheel_centre", "z")
        >>> bump = Sweep({height: [0.0, 0.05]}, {"toe": Toe("upright")})
        >>> bump.declare(mbd.zoo.multi_link()).outputs["toe"].unit
        'rad'
    """

    outputs: dict[str, Output]
    coords: dict[str, Axis]
