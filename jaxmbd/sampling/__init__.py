"""Samples of a study's inputs: distributions, correlations, designs.

A `Sampler` joins them and returns any range of samples. Distributions say how a number scatters
about its nominal value, designs which points of that space are taken; every design goes with every
distribution, because a distribution is known by its quantile function.
"""

from jaxmbd.sampling.correlation import (
    Covariance,
    RankCorrelation,
    indefinite,
    numbers_of,
    std_and_correlation,
)
from jaxmbd.sampling.designs import (
    Design,
    FullFactorial,
    Given,
    Grid,
    LatinHypercube,
    MonteCarlo,
    Saltelli,
    Sobol,
    Space,
    TableDesign,
    UnitDesign,
    components,
    space_of,
)
from jaxmbd.sampling.distributions import (
    Choice,
    Empirical,
    LogNormal,
    Normal,
    Triangular,
    TruncatedNormal,
    Uniform,
)
from jaxmbd.sampling.sampler import Sampler, design_of, distribution_of
from jaxmbd.sampling.scatter import Distribution, FromSciPy, Scaled, as_distribution

__all__ = [
    "Choice",
    "Covariance",
    "Design",
    "Distribution",
    "Empirical",
    "FromSciPy",
    "FullFactorial",
    "Given",
    "Grid",
    "LatinHypercube",
    "LogNormal",
    "MonteCarlo",
    "Normal",
    "RankCorrelation",
    "Saltelli",
    "Sampler",
    "Scaled",
    "Sobol",
    "Space",
    "TableDesign",
    "Triangular",
    "TruncatedNormal",
    "Uniform",
    "UnitDesign",
    "as_distribution",
    "components",
    "design_of",
    "distribution_of",
]
