"""Distributions and designs from their descriptions, in a study's file or in a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from jaxmbd.plumbing import hint
from jaxmbd.sampling import continuous, discrete  # noqa: F401, which fill DISTRIBUTIONS
from jaxmbd.sampling.designs import (
    Design,
    FullFactorial,
    Given,
    Grid,
    LatinHypercube,
    MonteCarlo,
    Saltelli,
    Sobol,
)
from jaxmbd.sampling.frozen_scipy import scipy_distribution
from jaxmbd.sampling.scatter import DISTRIBUTIONS, Distribution

DESIGNS: dict[str, type[Design]] = {
    d.kind: d for d in (MonteCarlo, LatinHypercube, Sobol, Saltelli, Grid, FullFactorial, Given)
}


def distribution_of(description: Mapping[str, Any]) -> Distribution:
    """The distribution that a description (as of `Distribution.describe`) says.

    Those of `scipy.stats` are called ``"scipy.weibull_min"``, with their parameters by name.

    Raises:
        ValueError: there is no such distribution or parameter, or a parameter is wrong.

    Example:
        >>> from jaxmbd.sampling import distribution_of
        >>> distribution_of({"distribution": "normal", "sigma": 0.5})
        Normal(sigma=0.5, mean=None, relative=False)
    """
    rest = dict(description)
    kind = rest.pop("distribution", None)
    if isinstance(kind, str) and kind.startswith("scipy."):
        return scipy_distribution(kind.removeprefix("scipy."), rest)
    if kind not in DISTRIBUTIONS:
        raise ValueError(f"distribution = {kind!r}: there is none; {hint(kind, DISTRIBUTIONS)}")
    return _made(kind, DISTRIBUTIONS[kind], rest)


def design_of(description: Mapping[str, Any]) -> Design:
    """The design that a description says, as of `Design.describe`; of `Given` with its ``table``.

    Raises:
        ValueError: there is no such design or parameter, or a parameter is wrong.

    Example:
        >>> from jaxmbd.sampling import design_of
        >>> design_of({"design": "sobol", "scramble": False})
        Sobol(scramble=False)
    """
    rest = dict(description)
    kind = rest.pop("design", None)
    if kind not in DESIGNS:
        raise ValueError(f"design = {kind!r}: there is none; {hint(kind, DESIGNS)}")
    return _made(kind, DESIGNS[kind], rest)


def _made(kind: str, cls: Any, rest: Mapping[str, Any]) -> Any:
    known = [f.name for f in fields(cls)]
    if unknown := [name for name in rest if name not in known]:
        raise ValueError(f"{kind} has no {unknown[0]!r}; {hint(unknown[0], known)}")
    try:
        return cls(**rest)
    except TypeError as error:
        raise ValueError(f"{kind}: {error}") from error
