"""The demonstration's study: build tolerances of the published multi-link corner.

Two questions that are often confused, both asked by name. *Build scatter*: every part is made to
its drawing with an error of its own, at each of its joints, so that rods are too long, balls sit
beside their drawn place, and the wheel of an assembled car shows camber and toe at rest. *Design
scatter*: the drawing itself varies, and every part is made to fit; toe at rest is then zero always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmbd import tolerances
from jaxmbd.analysis import PointTravel
from jaxmbd.campaign.study import Study
from jaxmbd.observe import Camber, Element, Motion, Sweep, Toe, Together, Travel, Velocity
from jaxmbd.sampling import Normal, Uniform
from jaxmbd.zoo import multi_link

WHEEL = ("upright", "wheel_centre")
TRAVEL = tuple(np.linspace(-0.06, 0.06, 13).round(6).tolist())


def corner_experiment(
    travel: Sequence[float] = TRAVEL, duration: float = 0.5, dt: float = 1e-3
) -> Together:
    """What the study observes: a sweep of the wheel, and the motion after a release.

    Args:
        travel: wheel travels of the sweep, upwards from where the wheel is drawn [m].
        duration: of the motion after the release, from rest as drawn [s].
        dt: its time step [s].
    """
    toe, camber, lateral = Toe("upright"), Camber("upright"), Travel(*WHEEL, "y")
    sweep = Sweep(
        {PointTravel(*WHEEL, "z"): travel},
        {
            "toe": toe,
            "camber": camber,
            "track_change": lateral,
            "toe_rest": toe.at(0.0),
            "camber_rest": camber.at(0.0),
            "toe_bump": toe.last(),
            "camber_bump": camber.last(),
            "toe_range": toe.span(),
            "track_range": lateral.span(),
        },
    )
    rise, speed = Travel(*WHEEL, "z"), Velocity(*WHEEL, "z")
    release = Motion(
        duration,
        dt,
        {
            "wheel_travel": rise,
            "travel_end": rise.last(),
            "rise_time": rise.rise(0.9),
            "speed_peak": speed.peak(),
            "damper_peak": Element("shock", "damper").peak(),
            "spring_end": (-Element("spring", "force")).last(),
        },
        save_every=2,
    )
    return Together([sweep, release])


def corner_study(
    samples: int = 2000,
    seed: int = 0,
    *,
    scatter: str = "build",
    sigma: float = 3e-4,
    tilt: float = 1e-3,
    experiment: Any = None,
    **options: Any,
) -> Study:
    """The study of the demonstration.

    Args:
        samples: number of samples.
        seed: of the random numbers.
        scatter: "build", each half of each joint by itself; or "design", shared hardpoints.
        sigma: standard deviation of each coordinate and length [m].
        tilt: that of each axis about each of two perpendiculars, in build scatter [rad].
        experiment: by default `corner_experiment`.
        **options: of `Study`.

    Raises:
        ValueError: the scatter is none of these.

    Example:
        >>> from jaxmbd.campaign import corner_study
        >>> corner_study(100, scatter="design").samples
        100
    """
    corner = multi_link()
    inputs: dict[str, Any] = {
        "forces/spring/stiffness": Uniform(0.05, relative=True),
        "forces/shock/damping": Uniform(0.10, relative=True),
    }
    if scatter == "design":
        model = tolerances.shared(corner)
        inputs["offsets/*"] = Normal(sigma)
    elif scatter == "build":
        model = tolerances.split(corner)
        inputs |= {"offsets/*": Normal(sigma), "lengths/*": Normal(sigma), "tilts/*": Normal(tilt)}
    else:
        raise ValueError(f"scatter={scatter!r}: choose 'build' or 'design'")
    return Study(
        model,
        inputs,
        observe=experiment or corner_experiment(),
        samples=samples,
        seed=seed,
        title=f"{scatter.capitalize()} tolerances of the published multi-link suspension corner",
        **options,
    )
