"""A dataset such as a study's, made by hand: curves, numbers, failures with reasons."""

import numpy as np

from jaxmbd.sampling import Normal, Saltelli, Sampler, Uniform

INPUTS = {
    "points/ball": ([0.1, 0.2, 0.3], Normal(1e-3)),
    "forces/spring/stiffness": (2e4, Normal(0.05, relative=True)),
    "bodies/wheel/mass": (20.0, Uniform(1.0)),
}
TRAVEL = np.linspace(-0.06, 0.06, 13)


def toe(x):
    """Curves (n, 13): a slope from the ball's height, an offset from its place along the car."""
    z, lengthways = x["points/ball"][:, 2] - 0.3, x["points/ball"][:, 0] - 0.1
    return np.outer(z, TRAVEL * 20.0) + lengthways[:, None] + 0.01 * TRAVEL**2


def study_dataset(count=2000, saltelli=False):
    """A Dataset; samples whose wheel is heavier than 20.9 kg failed."""
    import xarray

    sampler = Sampler(
        INPUTS, Saltelli(256) if saltelli else None, count=None if saltelli else count
    )
    count = sampler.count
    x = sampler.draw(0, count)
    failed = x["bodies/wheel/mass"] > 20.9
    frequency = np.sqrt(x["forces/spring/stiffness"] / x["bodies/wheel/mass"]) / (2.0 * np.pi)
    nominal = {n: np.asarray(v)[None] for n, (v, _) in INPUTS.items()}

    def blank(values):
        return np.where(failed.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values)

    def about(role, path, unit="", text="", **more):
        return {"role": role, "path": path, "units": unit, "long_name": text, **more}

    reasons = {"flag_values": [0, 1], "flag_meanings": "ok not_assembled"}
    joints = {"flag_values": [0, 1], "flag_meanings": "hinge tierod<inner>"}
    variables = {
        "points.ball": (("sample", "axis"), x["points/ball"], about("input", "points/ball", "m")),
        "forces.spring.stiffness": (
            "sample",
            x["forces/spring/stiffness"],
            about("input", "forces/spring/stiffness", "N/m"),
        ),
        "bodies.wheel.mass": (
            "sample",
            x["bodies/wheel/mass"],
            about("input", "bodies/wheel/mass", "kg"),
        ),
        "toe": (("sample", "travel"), blank(toe(x)), about("output", "toe", "rad")),
        "frequency": ("sample", blank(frequency), about("output", "frequency", "Hz")),
        "hub": (("sample", "axis"), blank(x["points/ball"] ** 2), about("output", "hub", "m")),
        "status": ("sample", failed.astype(np.int32), about("status", "status", **reasons)),
        "open_joint": ("sample", np.where(failed, 1, -1), about("reason", "open_joint", **joints)),
        "open_distance": (
            "sample",
            np.where(failed, 2e-3, np.nan),
            about("reason", "open_distance", "m"),
        ),
        "nominal.toe": ("travel", toe(nominal)[0], about("nominal", "toe", "rad")),
        "nominal.frequency": ((), np.sqrt(1e3) / (2.0 * np.pi), about("nominal", "frequency")),
    }
    coords = {"travel": ("travel", TRAVEL, {"units": "m"}), "axis": ["x", "y", "z"]}
    attrs = {
        "title": "A corner <with> scatter & more",
        "study": sampler.describe(),
        "provenance": {"machine": "here", "commit": "abc"},
    }
    return xarray.Dataset(variables, coords, attrs)
