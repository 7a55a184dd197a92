"""Identification: masses, stiffnesses, friction, hardpoints from measured series.

`identify` fits the outputs of experiments to data and tells how sure the estimates are;
`identifiability` tells beforehand what an experiment would determine; `identify_each` fits many
sets of data at once.
"""

from jaxmbd.identification.combinations import Ambiguity, Combination
from jaxmbd.identification.identification import (
    Identifiability,
    identifiability,
    identify,
    identify_each,
)
from jaxmbd.identification.identified import Identified, Interval, ResidualCheck
from jaxmbd.identification.loading_loops import Hysteresis, LoadingLoop, hysteresis
from jaxmbd.identification.measured import Measured

__all__ = [
    "Ambiguity",
    "Combination",
    "Hysteresis",
    "Identifiability",
    "Identified",
    "Interval",
    "LoadingLoop",
    "Measured",
    "ResidualCheck",
    "hysteresis",
    "identifiability",
    "identify",
    "identify_each",
]
