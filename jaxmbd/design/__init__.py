"""Design by gradients: objectives and constraints over what a mechanism does, minimised.

`minimize` is all that most need, with curves that are wanted (`Curve`), ranges (`Within`,
`Between`, `MovedTogether`), bounds (`AtMost`, `AtLeast`, `Equals`, `InRange`), and for robust
design a `Scatter` with a `Statistic` of its samples (`Mean`, `Deviation`, `Variance`, `Quantile`,
`Tail`).

*A design whose loops cannot close* is a place from which a search has to come back, not an error.
`Closing` takes a margin: a signed distance, positive where the loops close, whose derivative is
useful on both sides. `jaxmbd.closure_margin` is one for any mechanism; one of your own is any
function of the mechanism with these properties, for example of a crank's reach.
"""

from jaxmbd.design.answers import in_step
from jaxmbd.design.counterweights import Balance, Counterweight, counterbalance
from jaxmbd.design.curves import Curve
from jaxmbd.design.evaluation import Evaluation
from jaxmbd.design.goals import (
    AtLeast,
    AtMost,
    Bounded,
    Deviation,
    Equals,
    InRange,
    Mean,
    Quantile,
    Scatter,
    Statistic,
    Tail,
    Variance,
)
from jaxmbd.design.gradient_check import GradientCheck, check_gradient, hessian_vector
from jaxmbd.design.methods import Descent
from jaxmbd.design.minimization import Closing, minimize
from jaxmbd.design.optimum import Optimum, failure_of
from jaxmbd.design.unknowns import Between, MovedTogether, Unknowns, Within

__all__ = [
    "AtLeast",
    "AtMost",
    "Balance",
    "Between",
    "Bounded",
    "Closing",
    "Counterweight",
    "Curve",
    "Descent",
    "Deviation",
    "Equals",
    "Evaluation",
    "GradientCheck",
    "InRange",
    "Mean",
    "Statistic",
    "Optimum",
    "Quantile",
    "Scatter",
    "Tail",
    "MovedTogether",
    "Unknowns",
    "Variance",
    "Within",
    "check_gradient",
    "counterbalance",
    "hessian_vector",
    "in_step",
    "minimize",
]
