"""One module for each kind of reference file; see `benchmarks/accuracy.py`."""

from accuracy_cases import adams, closedloop, gt_mech, iftomm, kinematics, robots

KINDS = (closedloop, robots, kinematics, adams, iftomm, gt_mech)
