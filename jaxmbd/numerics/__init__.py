"""Numerical methods independent of mechanics: tolerances, factorisations, small solvers.

`tolerances` derives each tolerance from the floating-point type; `factorisations` and `blocks`
factor matrices, `redundant_equations` solves equations and tests the tangents of solutions. Library
factorisations are batched LAPACK calls on CPU; these are plain JAX on static shapes, unrolled and
differentiable, and preserve literal zeros, so that sparsity is exploited; `small_arrays` has what
they need of `jax.numpy` in a form that is traced quickly.
"""

from jaxmbd.numerics.blocks import (
    AnyColumns,
    AnyRows,
    BlockColumns,
    BlockRankRevealed,
    BlockRows,
    Pattern,
    Sparsity,
    block_ldlt,
    dense,
    filled,
    largest,
    merged,
    normal_pattern,
    only,
    squared_rows,
    taken,
    turned,
)
from jaxmbd.numerics.factorisations import (
    Doubt,
    PivotedLU,
    RankRevealed,
    ldlt_rank_revealing,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    ltdl_solve,
    lu_solve,
    pivoted_lu,
    symmetric,
    unpivoted_lu,
)
from jaxmbd.numerics.redundant_equations import (
    FactoredRows,
    SplitRows,
    believed,
    column_span,
    factor_rows,
    finite_where,
    jacobian,
    nan_where,
    soft_directions,
    solution,
    tested,
)
from jaxmbd.numerics.small_arrays import (
    MANY,
    AnyArray,
    chosen_columns,
    generic,
    limited,
    placed_columns,
    product,
    row_sum,
)
from jaxmbd.numerics.tolerances import StepTolerances, newton
