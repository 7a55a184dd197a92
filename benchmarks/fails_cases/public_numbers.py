"""All numbers that the package gives a name, by introspection.

Names are as users write them: ``Reaction`` (observables), ``reduction max``, ``Sweep``
(experiments), ``Snapshot.vdot``, ``forward_dynamics`` (functions), ``Linearization.a`` (fields and
properties of results), ``suspension.Characteristic: camber``, ``suspension.gradient: toe``,
``statistics.Capability.ppk``, ``sampling.Normal.quantile``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import typing
from functools import cached_property
from types import ModuleType
from typing import Any

import jaxmbd as mbd

PACKAGES = (
    "suspension", "synthesis", "identification", "statistics", "sampling", "tolerances", "design",
    "campaign", "ml", "cams",
)  # fmt: skip
NO_NUMBER = frozenset(
    {
        # of a mechanism, a file or a name
        "in_space", "mirror", "soften", "register_law", "register_type", "save", "load",
        "load_mjcf", "load_robot", "load_urdf", "load_usd", "show",
        "variables", "get_variables", "set_variables", "mirrored", "topology",
        "suspension.adjusted", "suspension.adjusted_roles",
        "suspension.available", "suspension.axle", "suspension.axle_available",
        "suspension.axle_corners", "suspension.on_rig", "suspension.save_with_roles",
        "suspension.member_loads", "suspension.read_load_cases",
        "suspension.double_wishbone_corner", "suspension.example_hardpoints",
        "suspension.five_link_corner", "suspension.macpherson_corner", "suspension.rigid_axle",
        "suspension.semi_trailing_arm_corner", "suspension.template_axle",
        "suspension.trailing_arm_corner", "suspension.twist_beam",
        "suspension.characteristic", "suspension.characteristics", "suspension.find_corner",
        "suspension.texts", "suspension.zoo_corner", "synthesis.massless_four_bar",
        "synthesis.massless_five_ss", "synthesis.massless_geared_five_bar",
        "synthesis.massless_inverted_slider_crank", "synthesis.massless_linkage",
        "synthesis.massless_rssp", "synthesis.massless_rssr", "synthesis.massless_six_bar",
        "synthesis.massless_slider_crank", "synthesis.massless_spherical_four_bar",
        "statistics.input_values", "statistics.output_names", "statistics.output_values",
        "statistics.varying", "sampling.as_distribution",
        "sampling.components", "sampling.design_of", "sampling.distribution_of",
        "campaign.corner_study", "campaign.shown", "campaign.status_line",
        "cams.cam_mechanism", "ml.lane_keys", "ml.cart_pole", "ml.five_bar_reach",
        # of an earlier run, a rule, or a type
        "campaign.Interrupted", "campaign.Rerun", "campaign.StoreDiffers", "campaign.StoreError",
    }
)  # fmt: skip
"""Public functions that return no number."""

NO_RESULT = frozenset(
    {
        "Drive", "PointDrive", "Parametrization", "Topology", "design.Counterweight",
        "suspension.AdjustableLength", "suspension.Shim",
        "suspension.AxleCharacteristic", "suspension.AxleSweep", "suspension.Characteristic",
        "suspension.Corner", "suspension.CornerSweep", "suspension.LoadSweep",
        "suspension.TemplateNumbers",
        "synthesis.FunctionGeneration", "synthesis.MotionGeneration", "synthesis.PathGeneration",
        "synthesis.Mixed", "synthesis.ObservableGeneration", "synthesis.Problem",
        "synthesis.StraightLine", "synthesis.Task", "synthesis.Transmission",
        "synthesis.VelocityGeneration", "sampling.UnitDesign",
        "sampling.TableDesign", "design.Between", "design.Bounded", "design.Closing",
        "design.Evaluation", "design.Scatter", "design.MovedTogether", "design.Unknowns",
        "design.Within", "identification.Measured", "campaign.Study",
        "ml.Environment", "ml.GymnasiumEnv", "ml.GymnasiumVectorEnv",
        "cams.Dwell", "cams.Rise", "cams.Return", "cams.PeriodicProgramme", "cams.Follower",
        "cams.Roller", "ml.BraxEnv", "ml.BraxState", "ml.Agent", "ml.Learned",
    }
)  # fmt: skip
"""Public classes that describe what is asked, not what is found."""

NOT_ASKED = frozenset(
    "about program predictor information problem limits corner records fit noise name axis "
    "unit_shape steps in_units seconds motion optimality what over iterations hits starts "
    "unseen with_fields guide_joint contact_joint sense".split()
)
"""Fields, properties and methods that are no numbers of the mechanism.

Counts of iterations say what was done, not what was found.
"""

TEXTS = ("str", "Callable", "Mechanism", "Topology", "Any", "Study", "Experiment")


def public_numbers() -> list[str]:
    """The names of all public numbers."""
    found = [*_functions(mbd, ""), *_of_observe()]
    for name in PACKAGES:
        package = importlib.import_module(f"jaxmbd.{name}")
        found += _functions(package, f"{name}.")
    found += ["synthesis.Transmission", "campaign.Study"]
    found += [f"suspension.Characteristic: {n}" for n in mbd.suspension.CHARACTERISTICS]
    found += [f"suspension.gradient: {n}" for n in mbd.suspension.GRADIENTS]
    found += [f"suspension.AxleCharacteristic: {n}" for n in mbd.suspension.AXLE_CHARACTERISTICS]
    return [n for n in dict.fromkeys(found) if n.rpartition(".")[2] not in NOT_ASKED]


def _of_observe() -> list[str]:
    observe, found = mbd.observe, []
    base = (observe.Observable, observe.Experiment, observe.Snapshot)
    for name in observe.__all__:
        x = getattr(observe, name)
        if isinstance(x, type) and issubclass(x, base) and x not in base:
            found.append(name)
        elif inspect.isfunction(x) and name not in ("constant_speed", "described"):
            found.append(name)
    found += ["sum of observables", "magnitude of observables"]
    found += [f"Snapshot.{n}" for n in _properties(observe.Snapshot)]
    found += [f"Trajectory.{n}" for n in _fields(observe.Trajectory)]
    found += [f"experiment: {n}" for n in ("status", *observe.REASONS)]
    return found + [f"reduction {n}" for n in observe.REDUCTIONS]


def _functions(package: ModuleType, prefix: str) -> list[str]:
    """Numbers of functions, and of the classes of results, of a package."""
    found: list[str] = []
    for name in package.__all__:
        x = getattr(package, name)
        if f"{prefix}{name}" in NO_NUMBER | NO_RESULT:
            continue
        if inspect.isfunction(x) or type(x).__name__ == "PjitFunction" or _is_wrapped(x):
            if not _returned_classes(x, package):
                found.append(f"{prefix}{name}")
        elif isinstance(x, type) and x in _results(package):
            found += [f"{prefix}{name}.{n}" for n in (*_fields(x), *_properties(x))]
        elif isinstance(x, type) and package is not mbd:
            found += [f"{prefix}{name}.{n}" for n in _questions(x)]
    return found


def _is_wrapped(x: Any) -> bool:
    return callable(x) and not isinstance(x, type) and hasattr(x, "__wrapped__")


def _returned_classes(x: Any, package: ModuleType) -> list[type]:
    """The public classes of a package that stand in the type of what a function returns."""
    text = str(getattr(inspect.unwrap(x), "__annotations__", {}).get("return", ""))
    words = {
        w.strip(" '\"")
        for w in text.replace("[", ",").replace("]", ",").replace("|", ",").split(",")
    }
    classes = {n: getattr(package, n) for n in package.__all__ if n in words}
    return [c for c in classes.values() if isinstance(c, type)]


def _results(package: ModuleType) -> set[type]:
    """Public classes that functions, or methods or fields of such classes, return."""
    makers = [getattr(package, n) for n in package.__all__]
    found: set[type] = set()
    for x in makers:
        if not isinstance(x, type) and callable(x):
            found.update(_returned_classes(x, package))
    while True:
        more = set(found)
        for c in found:
            for m in (*vars(c).values(), *_annotated(c, package)):
                m = m.fget if isinstance(m, property) else getattr(m, "func", m)
                more.update([m] if isinstance(m, type) and m in makers else [])
                if inspect.isfunction(m):
                    more.update(_returned_classes(m, package))
        if more == found:
            return {c for c in found if not issubclass(c, mbd.Mechanism)}
        found = more


def _annotated(c: type, package: ModuleType) -> list[Any]:
    """The public classes that stand in the types of a class's fields."""
    texts = " ".join(str(x) for x in typing.cast(Any, c).__annotations__.values())
    return [
        getattr(package, n)
        for n in package.__all__
        if n
        in texts.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").split()
    ]


def _is_number(annotation: Any) -> bool:
    text = str(annotation)
    inner = text.replace("dict[str, ", "").replace("Mapping[str, ", "")
    return not any(inner.startswith(x) or f"[{x}" in inner or f"{x} |" in inner for x in TEXTS)


def _fields(c: Any) -> list[str]:
    """Numeric fields of a named tuple or a dataclass."""
    if dataclasses.is_dataclass(c):
        return [f.name for f in dataclasses.fields(c) if _is_number(f.type)]
    return [n for n in getattr(c, "_fields", ()) if _is_number(c.__annotations__.get(n, ""))]


def _properties(c: type) -> list[str]:
    """Public properties that are numbers."""
    found = []
    for name, x in vars(c).items():
        get = x.fget if isinstance(x, property) else getattr(x, "func", None)
        if name.startswith("_") or not isinstance(x, property | cached_property) or get is None:
            continue
        if _is_number(get.__annotations__.get("return", "")):
            found.append(name)
    return found


def _questions(c: type) -> list[str]:
    """Public methods and properties of a class of descriptions, such as a distribution's."""
    found = []
    for owner in c.__mro__[-2::-1]:
        for name, x in vars(owner).items():
            is_method = inspect.isfunction(x) and not name.startswith("_")
            if is_method and _is_number(x.__annotations__.get("return", "str")):
                found.append(name)
    return list(dict.fromkeys([*found, *_properties(c)]))
