"""The nominal sample is judged before any other is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.model.user_warning import warn_user
from jaxmbd.observe import Output


def judge(
    found: Mapping[str, np.ndarray],
    outputs: Mapping[str, Output],
    observed: Callable[[], Mapping[str, Any]],
) -> None:
    """Refuse a study whose nominal sample fails; warn of outputs of which it has no value.

    Args:
        found: the nominal outputs.
        outputs: what is declared of them.
        observed: computes the nominal outputs as they are before those of a failed sample are
            blanked.

    Raises:
        ValueError: it fails; says how, and which joint stays open or which output has no value.
    """
    status = int(found["status"])
    if status != Status.OK:
        known = {int(kind): kind.name.lower().replace("_", " ") for kind in Status}
        how = known.get(status, f"status {status}") + _reason(found, outputs)
        if status == Status.NON_FINITE and (missing := _missing(observed(), outputs)):
            how += f" (no value of {missing})"
        raise ValueError(
            f"the nominal sample fails: {how}. "
            "No sample was run: mend the nominal mechanism or inputs first (jaxmbd.assemble and "
            "check_state of it say more)"
        )
    if missing := _missing(found, outputs):
        warn_user(
            f"the nominal sample has no value of {missing}, though it does not fail: what is asked "
            "for is not there. A crossing needs a level that the curve reaches: give another, or a "
            "wider range. Samples without a value are left out of means and do not keep limits"
        )


def _missing(found: Mapping[str, Any], outputs: Mapping[str, Output]) -> str:
    """The outputs that have no value, and how many of their numbers are missing."""
    texts = []
    for name, x in found.items():
        wrong = np.size(x) - np.count_nonzero(np.isfinite(np.asarray(x)))
        if wrong and outputs.get(name, Output()).role != "reason":
            part = f" ({wrong} of {np.size(x)} numbers)" if np.ndim(x) else ""
            texts.append(f"'{name}'{part}")
    return ", ".join(texts)


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
