"""Which blocks of constraint rows are stored for loops that do not touch one another."""

import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd.graph.elimination import loop_blocks


def blocks_of_chain(count, *, rows=2, extra=()):
    """Trees of two speeds in a row, each joined to the next by a constraint of some rows."""
    parent, speeds = [], []
    for k in range(count + 1):
        parent += [-1, 2 * k]
        speeds += [slice(2 * k, 2 * k + 1), slice(2 * k + 1, 2 * k + 2)]
    row_speeds = [(2 * k + 1, 2 * k + 2) for k in range(count) for _ in range(rows)]
    constraints = [slice(rows * k, rows * (k + 1)) for k in range(count)]
    for speeds_of_row in extra:
        constraints.append(slice(len(row_speeds), len(row_speeds) + 1))
        row_speeds.append(speeds_of_row)
    return loop_blocks(parent, speeds, row_speeds, constraints)


def test_neighbours_in_a_chain():
    found = blocks_of_chain(6)
    assert found.columns == tuple(range(2 * k, 2 * k + 2) for k in range(7))
    # The last two constraints have entries in the same rows: one block.
    assert found.rows == (*(range(2 * k, 2 * k + 2) for k in range(4)), range(8, 12))
    assert found.touched == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5, 6))
    assert found.gram.below == ((1,), (2,), (3,), (4,), ())


def test_full_matrices_have_no_blocks():
    assert blocks_of_chain(0) is None
    assert blocks_of_chain(1) is None
    assert blocks_of_chain(2) is None
    star = [(1, 2 * k) for k in range(1, 7)]
    assert loop_blocks([-1] * 14, [slice(k, k + 1) for k in range(14)], star, SIX) is None


SIX = [slice(k, k + 1) for k in range(6)]


def test_a_row_of_many_speeds_leaves_nothing_to_gain():
    """Multipliers of least norm: with a row that all depend on, none of ``LᵀL`` is zero."""
    assert blocks_of_chain(6, extra=[tuple(range(14))]) is None


def test_a_loop_that_cannot_move_goes_with_any_tree():
    """Two bodies fixed to the ground and joined to each other: rows of no speeds."""
    assert blocks_of_chain(6, extra=[()]) is not None
    chain = mbd.zoo.n_four_bar(6)
    body = mbd.Body(1.0, (0.0, -1.0, 0.0), np.eye(3))
    held = chain.replace(
        bodies={**chain.bodies, "left": body, "right": body},
        joints={
            **chain.joints,
            "foot": mbd.Fixed("ground", "left", (0.0, -1.0, 0.0)),
            "other": mbd.Fixed("ground", "right", (0.0, -1.0, 0.0)),
            "weld": mbd.Revolute("left", "right", (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
        },
    )
    top = mbd.topology(held)
    assert top.loop_blocks is not None
    assert () in top.row_speeds
    q, v = mbd.neutral(held), np.zeros(top.nv)
    motion = jax.jit(lambda q, v: mbd.forward_dynamics(held, q, v))
    vdot, lam = motion(q, v)
    assert np.isfinite(lam).all()
    free, _ = mbd.forward_dynamics(chain, mbd.neutral(chain), v[: mbd.topology(chain).nv])
    np.testing.assert_allclose(vdot[: len(free)], free, rtol=0, atol=1e-12)
