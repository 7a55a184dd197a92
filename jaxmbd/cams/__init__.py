"""Disc cams by displacement programme: profile, pressure angle, curvature, undercutting, forces.

A `Programme` of `Dwell`, `Rise` and `Return` by `RISE_LAWS`, or a `spline_programme` through
points, says how the follower moves over the cam's angle. A follower (`TranslatingRoller`,
`TranslatingFlat`, `OscillatingRoller`, `OscillatingFlat`) gives the profile and judges it;
`cam_mechanism` makes a mechanism of it.
"""

from jaxmbd.cams.base import CamGeometry, CamStatus, Follower
from jaxmbd.cams.followers import (
    OscillatingFlat,
    OscillatingRoller,
    Roller,
    TranslatingFlat,
    TranslatingRoller,
    pitch_curve,
    profile_curve,
)
from jaxmbd.cams.laws import RISE_LAWS
from jaxmbd.cams.mechanism import cam_mechanism
from jaxmbd.cams.programme import (
    Dwell,
    Jump,
    PeriodicProgramme,
    Programme,
    ProgrammeRates,
    Return,
    Rise,
    SplineProgramme,
    spline_programme,
)
from jaxmbd.cams.sizes import largest_roller_radius, least_base_radius

__all__ = [
    "RISE_LAWS",
    "CamGeometry",
    "CamStatus",
    "Dwell",
    "Follower",
    "Jump",
    "OscillatingFlat",
    "OscillatingRoller",
    "PeriodicProgramme",
    "Programme",
    "ProgrammeRates",
    "Return",
    "Rise",
    "Roller",
    "SplineProgramme",
    "TranslatingFlat",
    "TranslatingRoller",
    "cam_mechanism",
    "largest_roller_radius",
    "least_base_radius",
    "pitch_curve",
    "profile_curve",
    "spline_programme",
]
