"""Numerical methods independent of mechanics: tolerances, factorisations, small solvers.

`tolerances` derives each tolerance from the floating-point type; `ltdl`, `rank_revealing` and `lu`
are factorisations, `least_norm` solves equations that may be redundant, `consistency` tests the
tangents of such solutions, and `jacobian` computes columns in a loop. Library factorisations are
batched LAPACK calls on CPU; these are plain JAX on static shapes, unrolled and differentiable, and
preserve literal zeros, so that sparsity is exploited; `small_arrays` has what they need of
`jax.numpy` in a form that is traced quickly. Beside them, `on_use` imports a package's names when
they are first used, `extras` packages of jaxmbd's extras, and `near_names` hints at names that were
perhaps meant.
"""
