"""Numerical methods independent of mechanics: tolerances, factorisations, small solvers.

`tolerances` derives each tolerance from the floating-point type; `ltdl`, `rank_revealing` and `lu`
are factorisations, `least_norm` solves equations that may be redundant, `consistency` tests the
tangents of such solutions, and `jacobian` computes columns in a loop. Library factorisations are
batched LAPACK calls on CPU; these are plain `jax.numpy` on static shapes, unrolled and
differentiable, and preserve literal zeros, so that sparsity is exploited. Beside them, `extras`
imports packages of jaxmbd's extras on use, and `near_names` hints at names that were perhaps meant.
"""
