"""One module for each kind of reference file; see `benchmarks/accuracy.py`."""

from accuracy_cases import (
    adams,
    andrews,
    car_axis,
    closedloop,
    gt_mech,
    hardpoints,
    iftomm,
    kinematics,
    robots,
    slider_crank,
    static_geometry,
    usd_robot,
)

KINDS = (
    usd_robot,
    static_geometry,
    closedloop,
    robots,
    kinematics,
    adams,
    iftomm,
    slider_crank,
    car_axis,
    andrews,
    hardpoints,
    gt_mech,
)
