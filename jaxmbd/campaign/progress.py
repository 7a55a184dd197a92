"""A progress bar over the parts of a campaign."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxmbd.campaign.extras import optional
from jaxmbd.campaign.monte_carlo import Progress


def progress_bar(text: str, unit: str = "chunk") -> Progress:
    """A wrapper of an iteration that shows its progress, for `evaluate`.

    Raises:
        ImportError: tqdm is not installed.
    """
    tqdm = optional("tqdm", "campaign", "a progress bar").tqdm

    def wrap(parts: Iterable[Any]) -> Iterable[Any]:
        return tqdm(list(parts), desc=text, unit=unit)

    return wrap
