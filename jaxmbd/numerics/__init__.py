"""Numerical methods independent of mechanics: tolerances, factorisations, small solvers.

`tolerances` derives each tolerance from the floating-point type; `triangular`, `rank_revealing` and
`block_factors` are factorisations, `least_norm` solves equations that may be redundant, and
`derivatives` tests the tangents of such solutions and computes Jacobians by columns in a loop.
Library factorisations are batched LAPACK calls on CPU; these are plain JAX on static shapes,
unrolled and differentiable, and preserve literal zeros, so that sparsity is exploited;
`small_arrays` has what they need of `jax.numpy` in a form that is traced quickly.
"""

from jaxmbd.numerics.block_factors import (
    BlockRankRevealed,
    Pattern,
    block_ldlt,
    filled,
    normal_pattern,
)
from jaxmbd.numerics.block_rows import (
    BlockColumns,
    BlockRows,
    Columns,
    Rows,
    Sparsity,
    dense,
    largest,
    merged,
    only,
    squared_rows,
    taken,
    turned,
)
from jaxmbd.numerics.derivatives import believed, jacobian, nan_where, solution, tested
from jaxmbd.numerics.least_norm import FactoredRows, factor_rows
from jaxmbd.numerics.rank_revealing import (
    Doubt,
    RankRevealed,
    ldlt_rank_revealing,
    ldlt_solve,
    minimum_norm,
)
from jaxmbd.numerics.small_arrays import (
    MANY,
    AnyArray,
    chosen_columns,
    diagonal,
    identity,
    inner,
    outer,
    placed_columns,
    product,
    row_sum,
    trace,
    where,
)
from jaxmbd.numerics.tolerances import StepTolerances, newton
from jaxmbd.numerics.triangular import (
    ltdl,
    ltdl_backward,
    ltdl_forward,
    ltdl_solve,
    lu_solve,
    lu_transpose_solve,
    symmetric,
    unpivoted_lu,
)
