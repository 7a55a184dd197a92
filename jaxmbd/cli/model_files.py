"""What the command line names: mechanisms, as files (JSON, MJCF, URDF) or ``zoo:NAME``; numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxmbd.plumbing import listed

NAMES = "a file (.json of jaxmbd.io.save, .xml of MuJoCo, .urdf), or zoo:NAME"


def load_model(name: str) -> tuple[Any, list[str]]:
    """The mechanism, and what was warned of while it was built, or left out of it.

    Raises:
        ValueError: there is no such mechanism, or it is wrong.
        OSError: the file cannot be read.
    """
    model, told = open_model(name)
    return getattr(model, "mechanism", model), told


def open_model(name: str) -> tuple[Any, list[str]]:
    """The mechanism, or what an import gives of a robot's file, and what is to be told of it.

    Raises:
        ValueError: there is no such mechanism, or it is wrong.
        OSError: the file cannot be read.
    """
    if not name.startswith("zoo:") and not Path(name).is_file():
        raise FileNotFoundError(f"there is no file {name!r}; give {NAMES}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _from_zoo(name.removeprefix("zoo:")) if name.startswith("zoo:") else _read(name)
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return model, told + [
        f"left out: {len(row.names)} {row.what} ({listed(row.names)}): {row.consequence}"
        for row in getattr(model, "left_out", ())
    ]


def _read(name: str) -> Any:
    from jaxmbd.io import load, load_mjcf, load_urdf

    suffix = Path(name).suffix.lower()
    if suffix == ".urdf":
        return load_urdf(name)
    return load_mjcf(name) if suffix in (".xml", ".mjcf") else load(name)


def _from_zoo(kind: str) -> Any:
    from jaxmbd import zoo
    from jaxmbd.model import Mechanism
    from jaxmbd.observe import unknown

    if problems := unknown("mechanism in the zoo", kind, zoo.__all__):
        raise ValueError(problems[0])
    try:
        mech = getattr(zoo, kind)()
    except TypeError:  # it is a function with arguments, of angles
        mech = None
    if not isinstance(mech, Mechanism):
        raise ValueError(f"zoo.{kind} is no mechanism")
    return mech


def limits_of(texts: Sequence[str] | None) -> tuple[float, float] | None:
    """The two ends of ``--range``, angles or lengths, in SI units; None without them.

    Raises:
        ValueError: a text is no quantity, or the first end is not below the second.
    """
    if texts is None:
        return None
    from jaxmbd.variables import parsed

    low, high = (float(parsed(x, "--range").to_base_units().magnitude) for x in texts)
    if not low < high:
        raise ValueError(f"--range: {texts[0]} is not below {texts[1]}")
    return low, high
