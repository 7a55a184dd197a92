"""Independent loops: closed walks, as many as cut joints."""

import pytest
from random_mechanisms import random_mechanism

import jaxmbd as mbd
from jaxmbd.graph import loops

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
