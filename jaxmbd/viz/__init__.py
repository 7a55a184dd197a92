"""Figures of results, with matplotlib."""

from jaxmbd.viz.fan import curve_fan, histogram
from jaxmbd.viz.kinematics_curves import kinematics_figure
from jaxmbd.viz.suspension_corner import corner_figure

__all__ = ["corner_figure", "curve_fan", "histogram", "kinematics_figure"]
