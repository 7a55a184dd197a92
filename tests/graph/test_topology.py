"""Graph of a mechanism: brute force over all spanning trees, numbering, layout, mobility."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.graph.layout import _topology
from jaxmbd.model.mechanism import Edge, Structure

KINDS = (
    mbd.Revolute,
    mbd.Prismatic,
    mbd.Helical,
    mbd.Cylindrical,
    mbd.Universal,
    mbd.Spherical,
    mbd.Planar,
    mbd.Fixed,
)
Y = (0.0, 1.0, 0.0)


def structure(bodies, joints, cut=None):
    """A structure from (kind, a, b) triples; the joints are named j0, j1, … as declared."""
    edges = tuple(Edge(f"j{i}", k, a, b) for i, (k, a, b) in enumerate(joints))
    return Structure(tuple(bodies), edges, (), (), cut, (), ())


def random_structure(seed, loops=None):
    rng = random.Random(seed)
    names = [f"b{i}" for i in range(rng.randint(1, 6))]
    joints = []
    for i, body in enumerate(names):
        joints.append((rng.choice(KINDS), rng.choice(["ground", *names[:i]]), body))
    for _ in range(rng.randint(1, 3) if loops is None else loops):
        joints.append((rng.choice((*KINDS, mbd.Rod)), *rng.sample(["ground", *names], 2)))
    joints = [(k, b, a) if rng.random() < 0.4 else (k, a, b) for k, a, b in joints]
    rng.shuffle(joints)
    return structure(names, joints)


def spanning_trees(s):
    """All spanning trees: the carrying edges, and the largest CDOF."""
    edges = [e for e in s.joints if e.kind is not mbd.Rod]
    for chosen in itertools.combinations(edges, len(s.bodies)):
        cdof, left = {"ground": 0}, list(chosen)
        while left:
            grown = [e for e in left if (e.a in cdof) != (e.b in cdof)]
            if not grown:
                break
            parent, child = (
                (grown[0].a, grown[0].b) if grown[0].a in cdof else (grown[0].b, grown[0].a)
            )
            cdof[child] = cdof[parent] + grown[0].kind.nv
            left.remove(grown[0])
        if not left:
            yield chosen, max(cdof.values())


def cut_rows(s, chosen):
    return sum(len(e.kind.rows) for e in s.joints if e not in chosen)


def outcome(s):
    """(largest CDOF, constraint rows, names of the cut joints) of the engine's choice."""
    top = _topology(s)
    return max(top.cdof.values()), top.nc, top.cut


def test_the_largest_cdof_is_the_least_of_all_spanning_trees():
    wrong = []
    for seed in range(300):
        s = random_structure(seed)
        best = min(cdof for _, cdof in spanning_trees(s))
        if outcome(s)[0] != best:
            wrong.append((seed, outcome(s), best))
    assert not wrong


def test_among_those_trees_the_rows_are_fewest():
    wrong = []
    for seed in range(300):
        s = random_structure(seed)
        best = min((cdof, cut_rows(s, chosen)) for chosen, cdof in spanning_trees(s))
        if outcome(s)[:2] != best:
            wrong.append((seed, outcome(s), best))
    assert not wrong


@pytest.mark.parametrize(
    ("joints", "expected"),
    [
        (
            [
                (mbd.Prismatic, "b0", "b2"),
                (mbd.Spherical, "b0", "ground"),
                (mbd.Planar, "b0", "b1"),
                (mbd.Prismatic, "b3", "b2"),
                (mbd.Universal, "ground", "b3"),
            ],
            (6, 4),
        ),
        (
            [
                (mbd.Universal, "b0", "b1"),
                (mbd.Spherical, "ground", "b0"),
                (mbd.Planar, "b2", "ground"),
                (mbd.Universal, "b3", "b0"),
                (mbd.Fixed, "b2", "b3"),
                (mbd.Universal, "b0", "b1"),
            ],
            (5, 7),
        ),
    ],
    ids=["one loop", "two loops"],
)
def test_fewest_rows_where_a_path_must_be_turned_round(joints, expected):
    """Exchanging only the joint that carries a body misses these."""
    bodies = sorted({x for _, a, b in joints for x in (a, b)} - {"ground"})
    s = structure(bodies, joints)
    assert min((cdof, cut_rows(s, chosen)) for chosen, cdof in spanning_trees(s)) == expected
    assert outcome(s)[:2] == expected


def test_ties_cut_the_joint_declared_last():
    assert mbd.topology(mbd.zoo.rssr()).cut == ("B",)
    # Every order of two equal joints that close a triangle of ball joints.
    for order in itertools.permutations(
        [(mbd.Spherical, "ground", "p"), (mbd.Spherical, "ground", "q"), (mbd.Spherical, "p", "q")]
    ):
        last_to_ground = max(i for i, (_, a, _) in enumerate(order) if a == "ground")
        between = next(i for i, (_, a, _) in enumerate(order) if a == "p")
        # Cutting p-q gives CDOF 3; cutting a ground joint gives 6.
        assert outcome(structure("pq", order))[2] == (f"j{between}",), last_to_ground
    # Two joints in parallel: the later one.
    two = [(mbd.Revolute, "ground", "p"), (mbd.Prismatic, "p", "ground")]
    assert outcome(structure("p", two))[2] == ("j1",)
    assert outcome(structure("p", two[::-1]))[2] == ("j1",)


def test_parallel_joints_keep_the_one_of_less_freedom():
    two = [(mbd.Spherical, "ground", "p"), (mbd.Fixed, "p", "ground")]
    assert outcome(structure("p", two)) == (0, 3, ("j0",))


def test_numbering_and_layout_on_random_graphs():
    for seed in range(120):
        s = random_structure(seed)
        top = _topology(s)
        kinds = {e.name: e.kind for e in s.joints}
        assert sorted(top.bodies) == sorted(s.bodies)
        assert sorted(top.tree + top.cut) == sorted(e.name for e in s.joints)
        edges = {e.name: e for e in s.joints}
        for i, (parent, joint, turned) in enumerate(
            zip(top.parent, top.tree, top.reversed_, strict=True)
        ):
            assert parent < i
            name = "ground" if parent < 0 else top.bodies[parent]
            ends = (edges[joint].a, edges[joint].b)
            assert ends == ((top.bodies[i], name) if turned else (name, top.bodies[i]))
        # Depth first: the bodies that a body carries follow it without a gap.
        for i in range(len(top.bodies)):
            carried = [j for j in range(len(top.bodies)) if i in _ancestors(top.parent, j)]
            assert carried == list(range(i + 1, i + 1 + len(carried)))
        assert _covered([top.layout[n].q for n in top.tree]) == list(range(top.nq))
        assert _covered([top.layout[n].v for n in top.tree]) == list(range(top.nv))
        assert _covered([top.layout[n].rows for n in top.cut]) == list(range(top.nc))
        assert top.nq == sum(kinds[n].nq for n in top.tree)
        assert top.nv == sum(kinds[n].nv for n in top.tree)
        assert top.nc == sum(len(kinds[n].rows) for n in top.cut) == len(top.row_names)
        assert (
            len(top.row_kinds) == top.nc and len(top.speed_names) == len(top.speed_kinds) == top.nv
        )
        for i, body in enumerate(top.bodies):
            chain = [*_ancestors(top.parent, i), i]
            columns = sorted(c for j in chain for c in _covered([top.layout[top.tree[j]].v]))
            assert list(top.columns(body)) == columns
            assert top.cdof[body] == len(columns)
        assert all(top.layout[n].rows is None for n in top.tree)
        assert all(top.layout[n].q is None and top.layout[n].v is None for n in top.cut)


def _ancestors(parent, i):
    found = []
    while parent[i] >= 0:
        i = parent[i]
        found.append(i)
    return found


def _covered(slices):
    return [i for s in slices for i in range(s.start, s.stop)]


def test_drives_take_the_rows_after_the_cut_joints():
    drive = {"turn": mbd.Drive("crank", lambda t, p: p * t, 1.0)}
    top = mbd.topology(mbd.zoo.rssr().replace(drives=drive))
    assert top.layout["turn"].rows == slice(3, 4) and top.nc == 4
    assert top.row_names[3] == "turn"


@pytest.mark.parametrize("cut", [("A",), ("crank",), ("rocker",)])
def test_the_users_cuts_are_kept(cut):
    top = mbd.topology(mbd.zoo.rssr().replace(cut=cut))
    assert top.cut == cut
    assert set(top.tree) == {"crank", "A", "B", "rocker"} - set(cut)


def test_rods_are_always_rows():
    top = mbd.topology(mbd.zoo.five_link_kinematic())
    assert len(top.cut) == 5 and top.row_kinds == ("force",) * 5
    assert top.tree == ("upright", "rack") and top.nv == 7


def test_a_free_joint_in_a_loop_is_refused_or_harmless():
    """A Free joint constrains nothing: beside a path of less freedom it must not break anything."""
    body = mbd.Body(1.0, (1.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    bodies = {"arm": body, "end": body}
    joints = {
        "hinge": mbd.Revolute("ground", "arm", at=(0, 0, 0), axis=Y),
        "ball": mbd.Spherical("arm", "end", at=(1, 0, 0)),
    }
    alone = mbd.Mechanism(bodies, joints)
    v = np.array([1.0, 0.2, -0.3, 0.4])
    expected = mbd.forward_dynamics(alone, mbd.neutral(alone), v)[0]
    try:
        mech = mbd.Mechanism(bodies, {"float": mbd.Free("ground", "end"), **joints})
        mbd.topology(mech)
    except ValueError as error:
        assert "float" in str(error)
        return
    vdot, _ = mbd.forward_dynamics(mech, mbd.neutral(mech), v)
    np.testing.assert_allclose(vdot, expected)


def test_topology_is_cached_and_hashable():
    one, other = mbd.zoo.rssr(), mbd.zoo.rssr(masses=(1.0, 2.0, 3.0), pivot=(-0.12, -0.02, -0.02))
    assert mbd.topology(one) is mbd.topology(other)
    assert hash(mbd.topology(one)) == hash(mbd.topology(other))
    assert one.structure == other.structure
    assert mbd.topology(one) is not mbd.topology(one.replace(cut=("A",)))
    text = str(mbd.topology(one))
    assert "nq = 6, nv = 5, nc = 3" in text and "cut B: rows[0:3]" in text


def test_mobility_of_the_rssr_counts_the_idle_spin():
    found = mbd.mobility(mbd.zoo.rssr())
    assert (found.kutzbach, found.dof, found.rank) == (2, 2, 3)
    assert found.idle == ("coupler",) and found.redundant == ()
    assert "coupler" in str(found)
    assert mbd.mobility(mbd.zoo.rssr_revolutes()).dof == 2


def test_mobility_of_a_planar_four_bar_in_space():
    mech = mbd.zoo.four_bar()
    q = mbd.assemble(mech, {"A": 0.5}, guess=[-1.0, 0.5, -1.5]).q
    found = mbd.mobility(mech, q)
    assert (found.kutzbach, found.dof, found.rank) == (-2, 1, 2)
    assert sorted(found.redundant) == ["C force 2", "C moment 1", "C moment 2"]
    assert found.idle == ()


@pytest.mark.parametrize("n", [1, 2])
def test_redundant_rows_agree_with_the_rank(n):
    """The drawn position of n parallelograms: every loop adds two independent rows."""
    found = mbd.mobility(mbd.zoo.n_four_bar(n))
    top = mbd.topology(mbd.zoo.n_four_bar(n))
    assert found.dof == 1
    assert len(found.redundant) == top.nc - found.rank == 3 * n


def test_mobility_of_open_chains():
    found = mbd.mobility(mbd.zoo.double_pendulum())
    assert (found.kutzbach, found.dof, found.rank) == (2, 2, 0)
    assert found.idle == () and found.redundant == ()


def test_mobility_of_a_five_rod_upright():
    found = mbd.mobility(mbd.zoo.five_link_kinematic())
    # 2 bodies: 12 − 5 of the rack − 5 rods.
    assert (found.kutzbach, found.dof, found.rank) == (2, 2, 5)
    assert found.redundant == () and found.idle == ()
