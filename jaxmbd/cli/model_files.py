"""Mechanisms that a command names: a JSON file, or ``zoo:NAME``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def load_model(name: str) -> tuple[Any, list[str]]:
    """The mechanism, and what was warned of while it was built.

    Raises:
        ValueError: there is no such mechanism, or it is wrong.
        OSError: the file cannot be read.
    """
    from jaxmbd import zoo
    from jaxmbd.io import load
    from jaxmbd.model import Mechanism
    from jaxmbd.observe.names import unknown

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not name.startswith("zoo:"):
            mech = load(Path(name))
        else:
            kind = name.removeprefix("zoo:")
            if problems := unknown("mechanism in the zoo", kind, zoo.__all__):
                raise ValueError(problems[0])
            try:
                mech = getattr(zoo, kind)()
            except TypeError:  # it is a function with arguments, of angles
                mech = None
            if not isinstance(mech, Mechanism):
                raise ValueError(f"zoo.{kind} is no mechanism")
    return mech, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
