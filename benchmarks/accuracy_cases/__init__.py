"""One module for each kind of reference file; see `benchmarks/accuracy.py`."""

from accuracy_cases import adams, closedloop, gt_mech, iftomm, kinematics, robots, slider_crank

KINDS = (closedloop, robots, kinematics, adams, iftomm, slider_crank, gt_mech)
