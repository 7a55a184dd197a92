"""Statistics of a study's samples.

Functions take plain arrays, the samples along the first axis, and which of them succeeded. Means,
quantiles and correlations are of the samples that have a value, and the others are counted as
`left_out`; yields are of all samples, and one without a value does not keep a limit.
`study_results` finds these arrays in the dataset of a study.
"""

from jaxmbd.statistics.allocation import Allocation, Limit, allocate
from jaxmbd.statistics.association import (
    Association,
    Separation,
    correlation_table,
    correlations,
    failure_counts,
    failure_map,
)
from jaxmbd.statistics.samples import counted, pieces, varying
from jaxmbd.statistics.sensitivity import (
    Sensitivity,
    SobolIndices,
    sensitivities,
    sobol_indices,
)
from jaxmbd.statistics.spread import (
    Capability,
    Convergence,
    Envelope,
    Worst,
    capability,
    convergence_of_mean,
    convergence_of_quantile,
    envelope,
    proportion_interval,
    worst,
)
from jaxmbd.statistics.study_results import (
    NOT_COMPUTED,
    ValueCount,
    computed,
    input_values,
    nominal_value,
    output_names,
    output_values,
    sobol_of,
    succeeded,
    value_counts,
)

__all__ = [
    "Allocation",
    "Association",
    "Capability",
    "Convergence",
    "Envelope",
    "Limit",
    "Sensitivity",
    "Separation",
    "SobolIndices",
    "ValueCount",
    "Worst",
    "allocate",
    "capability",
    "computed",
    "convergence_of_mean",
    "convergence_of_quantile",
    "correlation_table",
    "correlations",
    "counted",
    "envelope",
    "failure_counts",
    "failure_map",
    "input_values",
    "nominal_value",
    "output_names",
    "output_values",
    "proportion_interval",
    "sensitivities",
    "sobol_indices",
    "sobol_of",
    "succeeded",
    "value_counts",
    "varying",
    "worst",
]
