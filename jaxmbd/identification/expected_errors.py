"""`identifiability`: what an experiment would tell, before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxmbd.identification.combinations import Ambiguity
from jaxmbd.identification.identification import check_start
from jaxmbd.identification.identified import ambiguities_of, close_text, open_text, table, weak_text
from jaxmbd.identification.information import Information, information
from jaxmbd.identification.measured import Measured, blank, records
from jaxmbd.identification.noise import noise_of
from jaxmbd.identification.predictor import Predictor
from jaxmbd.identification.residual_check import places
from jaxmbd.identification.unknown_numbers import nominal_mechanism, unknowns_of


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What data would tell about unknowns, to first order; printed as a table.

    Attributes:
        predictor: the model of the measurements.
        information: about the scaled unknowns, of all channels.
        sigma: standard deviations of the noise (N,).

    Example:
        >>> from jaxmbd.identification import Identifiability
        >>> Identifiability.__name__
        'Identifiability'
    """

    predictor: Predictor
    information: Information
    sigma: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the unknowns (n,)."""
        return self.predictor.unknowns.names

    @property
    def errors(self) -> dict[str, float]:
        """Path to the standard error to expect, SI; infinite where not determined."""
        return self._named(self.information)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the estimates (n, n); NaN where one is not determined."""
        return self.information.correlation()

    @cached_property
    def without(self) -> dict[str, dict[str, float]]:
        """Channel to the standard errors that the other channels alone would give."""
        names, rows = places(self.predictor.records)
        found = {}
        for name, part in zip(names, rows, strict=True):
            if len(names) > 1:
                others = np.delete(self.information.jacobian, part, axis=0)
                found[name] = self._named(information(others))
        return found

    @cached_property
    def ambiguities(self) -> tuple[Ambiguity, ...]:
        """Unknowns that the data could not tell apart, with what they determine of them."""
        here = np.zeros(len(self.names))
        return ambiguities_of(self.predictor, here, self.information, self.sigma)

    def _named(self, found: Information) -> dict[str, float]:
        errors = found.errors() * self.predictor.unknowns.scale
        return dict(zip(self.names, map(float, errors), strict=True))

    def __str__(self) -> str:
        without = self.without
        others = [f"without {c}" for c in without]
        rows: list[tuple[str, ...]] = [("unknown", "value", "expected error", *others, "unit")]
        start, units = self.predictor.unknowns.start, self.predictor.unknowns.units
        for name, value, unit in zip(self.names, start, units, strict=True):
            errors = [self.errors[name], *(x[name] for x in without.values())]
            said = [f"{x:.2g}" if np.isfinite(x) else "undetermined" for x in errors]
            rows.append((name, f"{value:.4g}", *said, unit))
        lines = table(rows) + open_text(self.ambiguities)
        lines += weak_text(self.names, self.information)
        return "\n".join(lines + close_text(self.names, self.correlation))


def identifiability(
    model: Any,
    vary: Mapping[str, Any],
    observe: Any,
    noise: Mapping[str, Any],
) -> Identifiability:
    """What measuring an experiment would tell about unknowns: Fisher's information beforehand.

    Compare experiments by it before doing them: which unknowns each determines, how well, and what
    every channel is worth.

    Args:
        model: a `Mechanism` or a `Parametrization`, with the values that are expected.
        vary: what is unknown, as of `identify`.
        observe: the experiment, or a list of them; all outputs count as measured, at the places of
            the experiment.
        noise: channel to standard deviation, for each output.

    Example:
        >>> import jax, numpy as np, jaxmbd as mbd
        >>> jax.config.update("jax_enable_x64", True)
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.identification import identifiability
        >>> from jaxmbd.observe import HoldingEffort, Sweep
        >>> weigh = Sweep({"hinge": np.linspace(0.0, 1.0, 5)}, {"torque": HoldingEffort("hinge")})
        >>> unknown = {"bodies/bob/mass": Within(0.5), "bodies/bob/com/x": Within(0.5)}
        >>> told = identifiability(mbd.zoo.simple_pendulum(), unknown, weigh, {"torque": 0.1})
        >>> str(told.ambiguities[0].determined[0])
        'bodies/bob/mass · bodies/bob/com/x'
    """
    mech = nominal_mechanism(model)
    listed = observe if isinstance(observe, (list, tuple)) else [observe]
    known = records(mech, [Measured(x, blank(mech, x)) for x in listed])
    noises = noise_of(known, noise)
    if noises.estimated:
        raise ValueError(f"noise: give the standard deviation of {list(noises.estimated)} too")
    predictor = Predictor(unknowns_of(model, vary, known), mech, known)
    found = predictor(np.zeros(len(predictor.unknowns)))
    check_start(predictor, found)
    scaled = found.jacobian[0] / noises.known[:, None]
    return Identifiability(predictor, information(scaled), noises.known)
