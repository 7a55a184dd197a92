"""Results of a campaign: named arrays with units, in one self-describing ``.npz`` file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = "jaxmbd-campaign-1"
_ABOUT = "about"


class Variable(NamedTuple):
    """One array of a campaign.

    Attributes:
        values: the numbers; `dims` says whether the first axis is the sample.
        unit: SI unit, "" for a pure number.
        text: description.
        dims: a name for each axis.
        role: "input", "output" or "axis".
    """

    values: np.ndarray
    unit: str = ""
    text: str = ""
    dims: tuple[str, ...] = ("sample",)
    role: str = "output"


class Results(NamedTuple):
    """Inputs and outputs of a campaign.

    Attributes:
        title: what was studied.
        variables: name to `Variable`; one is `status` (a `jaxmbd.Status` number per sample).
        nominal: the outputs of the nominal mechanism, without the sample axis.
        settings: numbers and texts that describe how the campaign was run.
    """

    title: str
    variables: dict[str, Variable]
    nominal: dict[str, np.ndarray]
    settings: dict[str, Any]

    def __getitem__(self, name: str) -> np.ndarray:
        """The numbers of a variable."""
        return self.variables[name].values

    @property
    def ok(self) -> np.ndarray:
        """Which samples succeeded (n,)."""
        return self["status"] == 0

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one ``.npz``: an array for every variable and ``about``, a JSON text.

        ``about`` has unit, meaning, axes and role of each array, and the settings. Nominal outputs
        are the arrays ``nominal.<name>``. NumPy can read the file without pickle.
        """
        path = Path(path)
        about = {
            "format": FORMAT,
            "title": self.title,
            "settings": self.settings,
            "variables": {
                name: {"unit": v.unit, "text": v.text, "dims": list(v.dims), "role": v.role}
                for name, v in self.variables.items()
            },
        }
        arrays: dict[str, Any] = {name: v.values for name, v in self.variables.items()}
        arrays |= {f"nominal.{name}": x for name, x in self.nominal.items()}
        arrays[_ABOUT] = np.array(json.dumps(about, ensure_ascii=False, indent=1))
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft.npz")
        try:
            np.savez_compressed(draft, **arrays)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path


def load_results(path: str | os.PathLike[str]) -> Results:
    """Read what `Results.save` wrote.

    Raises:
        ValueError: the file is not a results file of this version.
    """
    with np.load(path) as file:
        about: Mapping[str, Any] = json.loads(str(file[_ABOUT])) if _ABOUT in file else {}
        if about.get("format") != FORMAT:
            raise ValueError(f"{path} is not a results file of the form {FORMAT!r}")
        variables = {
            name: Variable(file[name], v["unit"], v["text"], tuple(v["dims"]), v["role"])
            for name, v in about["variables"].items()
        }
        nominal = {n: file[f"nominal.{n}"] for n in variables if f"nominal.{n}" in file}
    return Results(about["title"], variables, nominal, about["settings"])
