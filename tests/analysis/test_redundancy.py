"""Why rows are redundant: the sums that are told are those of the constraint Jacobian."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

REDUNDANT = ("four_bar", "n_four_bar", "bricard", "agile_wrist", "double_parallel_crank")


def closed(name):
    mech = getattr(mbd.zoo, name)()
    return mech, mbd.assemble(mech).q


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow) if x == "bricard" else x for x in REDUNDANT],
)
def test_redundant_rows_are_sums_of_the_rows_that_are_named_and_of_no_fewer(name):
    mech, q = closed(name)
    found = mbd.redundancy(mech, q)
    j = np.asarray(mbd.constraint_jacobian(mech, q))
    place = {row: k for k, row in enumerate(mbd.topology(mech).row_names)}

    def distance(row, rows):
        basis = j[[place[r] for r in rows]].T
        return np.linalg.norm(j[row] - basis @ np.linalg.lstsq(basis, j[row])[0])

    assert tuple(row.name for row in found.rows) == found.mobility.redundant
    assert len(found.rows) == len(place) - found.mobility.rank
    for row in found.rows:
        mine = place[row.name]
        assert distance(mine, row.rows) < 1e-9
        for other in row.rows:
            assert distance(mine, [r for r in row.rows if r != other]) > 1e-4
        assert row.loops[0].cut == row.part
        assert {loop.cut for loop in row.loops[1:]} == {r.rsplit(" ", 2)[0] for r in row.rows} - {
            row.part
        }


def test_a_planar_loop_in_space_is_held_twice_across_its_plane():
    """Turned anyhow, what is redundant are the force along the hinges and two moments across."""
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    places = {"A": (0.0, 0.0), "B": (0.1, 0.3), "C": (0.7, 0.5), "D": (0.9, 0.0)}
    at = {name: turn @ np.array([x, y, 0.0]) for name, (x, y) in places.items()}
    axis = turn[:, 2]
    bars = {"crank": "AB", "coupler": "BC", "rocker": "CD"}
    ends = {"A": ("ground", "crank"), "B": ("crank", "coupler"), "C": ("coupler", "rocker")}
    ends["D"] = ("rocker", "ground")
    mech = mbd.Mechanism(
        {b: mbd.Body(1.0, (at[x] + at[y]) / 2, 0.01 * np.eye(3)) for b, (x, y) in bars.items()},
        {j: mbd.Revolute(a, b, at[j], axis) for j, (a, b) in ends.items()},
    )
    force, *moments = mbd.redundancy(mech).rows
    np.testing.assert_allclose(np.cross(force.force, axis), 0.0, rtol=0, atol=1e-8)
    assert not any(force.moment) and len(moments) == 2
    for row in moments:
        assert not any(row.force) and abs(np.dot(row.moment, axis)) < 1e-8
    assert abs(np.dot(moments[0].moment, moments[1].moment)) < 1e-8
    assert f"the loop of {force.part} can hold a force along" in str(force)


@pytest.mark.slow
def test_bricards_mechanism_holds_a_force_along_its_axis_of_symmetry():
    (row,) = mbd.redundancy(mbd.zoo.bricard()).rows
    np.testing.assert_allclose(np.ptp(row.force), 0.0, rtol=0, atol=1e-8)


def test_a_coordinate_that_is_driven_twice():
    drives = {name: mbd.Drive("hinge", lambda t, _: 0.0 * t) for name in ("first", "second")}
    mech = mbd.zoo.simple_pendulum().replace(drives=drives)
    (row,) = mbd.redundancy(mech).rows
    assert row.part == "second" and row.rows == ("first",) and row.force is None
    assert str(row) == "second follows from first"


def test_the_speeds_of_an_idle_spin_turn_that_body_only():
    mech, q = closed("rssr")
    found, top = mbd.redundancy(mech, q), mbd.topology(mech)
    assert found.rows == () and found.mobility.redundant == ()
    assert set(found.idle) == {"coupler"} and set(found.idle["coupler"]) < set(top.speed_names)
    # The motion: no closure error, and only the coupler turns, about the line of its balls.
    j = np.asarray(mbd.constraint_jacobian(mech, q))
    mine = [top.speed_names.index(name) for name in found.idle["coupler"]]
    v = np.zeros(top.nv)
    v[mine] = np.linalg.svd(j[:, mine])[2][-1]
    assert np.linalg.norm(j @ v) < 1e-12
    twists = {b: np.asarray(x) for b, x in mbd.body_velocities(mech, q, jnp.asarray(v)).items()}
    assert np.linalg.norm(twists.pop("coupler")) > 0.5
    assert all(np.allclose(x, 0.0, atol=1e-12) for x in twists.values())


def test_mechanisms_without_loops_have_nothing_to_tell():
    found = mbd.redundancy(mbd.zoo.double_pendulum())
    assert found.rows == () and found.idle == {} and str(found) == "no redundant rows"
