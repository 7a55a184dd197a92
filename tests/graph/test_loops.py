"""Independent loops: closed walks, as many as cut joints."""

import numpy as np
import pytest
from random_mechanisms import random_mechanism

import jaxmbd as mbd
from jaxmbd.graph import loops

LEG = (("A", 0.0, 0.0), ("B", 0.0, 1.0), ("C", 2.0, 1.5), ("D", 2.0, 0.0))
ZOO = ("four_bar", "rssr", "multi_link", "macpherson", "delta_robot", "bricard", "agile_wrist")


MECHANISMS = [pytest.param(getattr(mbd.zoo, name)(), id=name) for name in ZOO]
MECHANISMS += [pytest.param(random_mechanism(seed), id=f"random {seed}") for seed in range(6)]


@pytest.mark.parametrize("mech", MECHANISMS)
def test_loops_are_closed_walks_with_one_cut_joint_each(mech):
    ends = {e.name: {e.a, e.b} for e in mech.structure.joints}
    top = mbd.topology(mech)
    found = loops(mech)
    assert [loop.cut for loop in found] == list(top.cut)
    for loop in found:
        assert len(set(loop.bodies)) == len(loop.bodies) == len(loop.joints) + 1
        assert set(loop.joints) <= set(top.tree)
        for joint, a, b in zip(loop.joints, loop.bodies, loop.bodies[1:], strict=False):
            assert ends[joint] == {a, b}
        assert ends[loop.cut] == {loop.bodies[0], loop.bodies[-1]}


@pytest.mark.parametrize("mech", MECHANISMS)
def test_rows_depend_on_the_speeds_of_their_loop_only(mech):
    top = mbd.topology(mech)
    for loop in loops(mech):
        speeds = {k for j in loop.joints for k in range(*top.layout[j].v.indices(top.nv))}
        rows = top.layout[loop.cut].rows
        assert all(set(top.row_speeds[k]) == speeds for k in range(rows.start, rows.stop))


@pytest.mark.parametrize("mech", MECHANISMS)
def test_rows_of_different_groups_have_no_speed_in_common(mech):
    top = mbd.topology(mech)
    assert sorted(k for group in top.row_groups for k in group) == list(range(top.nc))
    moved = [{v for k in group for v in top.row_speeds[k]} for group in top.row_groups]
    assert sum(map(len, moved)) == len(set().union(*moved))


def test_loops_without_common_joints_are_groups_of_their_own():
    legs = 3
    points = {f"{n}{k}": [x, 3.0 * k, z] for k in range(legs) for n, x, z in LEG}
    body = mbd.Body(1.0, [0.5, 0.0, 1.0], 0.1 * np.eye(3))
    bodies = {f"{n}{k}": body for k in range(legs) for n in ("crank", "coupler", "rocker")}
    joints = {}
    for k in range(legs):
        chain = ("ground", f"crank{k}", f"coupler{k}", f"rocker{k}", "ground")
        for n, a, b in zip("ABCD", chain, chain[1:], strict=False):
            joints[f"{n}{k}"] = mbd.Revolute(a, b, f"{n}{k}", [0.0, 1.0, 0.0])
    top = mbd.topology(mbd.Mechanism(bodies, joints, points=points))
    assert top.row_groups == tuple(tuple(range(5 * k, 5 * k + 5)) for k in range(legs))
