"""Numerics that know nothing of mechanics: tolerances and small solvers.

`tolerances` derives each tolerance from the number type; `ltdl`, `rank_revealing` and `lu` are the
factorisations, `least_norm` solves rows that may be redundant, `consistency` tests the tangents of
such solutions, and `jacobian` takes its columns in a loop. Library factorisations are batched
LAPACK calls on CPU; these are plain `jax.numpy` on static shapes, unrolled, differentiable, and
keep literal zeros, so sparsity costs nothing.
"""
