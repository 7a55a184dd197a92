"""The nominal sample is judged before any other is computed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.observe import Output


def judge(found: Mapping[str, np.ndarray], outputs: Mapping[str, Output]) -> None:
    """Refuse a study whose nominal sample fails.

    Args:
        found: the nominal outputs.
        outputs: what is declared of them.

    Raises:
        ValueError: it fails; says how, and which joint stays open.
    """
    status = int(found["status"])
    if status == Status.OK:
        return
    known = {int(kind): kind.name.lower().replace("_", " ") for kind in Status}
    how = known.get(status, f"status {status}") + _reason(found, outputs)
    raise ValueError(
        f"the nominal sample fails: {how}. "
        "No sample was run: mend the nominal mechanism or inputs first (jaxmbd.assemble and "
        "check_state of it say more)"
    )


def _reason(found: Mapping[str, np.ndarray], outputs: Mapping[str, Output]) -> str:
    """Which joint stays open and how far, if the experiment says so, or what is not held."""
    if int(found["status"]) == Status.SINGULAR:
        return (
            " (a freedom is not determined: hold it by known=, let it settle, or give it inertia)"
        )
    names = outputs["open_joint"].flags if "open_joint" in outputs else ()
    joint = int(found.get("open_joint", -1))
    if not 0 <= joint < len(names):
        return ""
    return f" (joint '{names[joint]}' stays open by {float(found['open_distance']):.3g} m)"
