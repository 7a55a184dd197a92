"""Results of a study on disk: a Zarr group that survives kills, full disks and power cuts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jaxmbd.campaign.store.errors import StoreDiffers, StoreError
from jaxmbd.campaign.store.layout import SAMPLE, Field, Fixed, Layout
from jaxmbd.campaign.store.store_lock import holder, lock, revoke
from jaxmbd.numerics.extras import optional

if TYPE_CHECKING:
    from jaxmbd.campaign.store.check import Damage, restore_head, verify
    from jaxmbd.campaign.store.study_store import StudyStore

# What needs the packages of the extra "campaign" is imported on use.
_ON_USE = {
    "Damage": "check",
    "StudyStore": "study_store",
    "restore_head": "check",
    "verify": "check",
}

__all__ = [
    "SAMPLE",
    "Damage",
    "Field",
    "Fixed",
    "Layout",
    "StoreDiffers",
    "StoreError",
    "StudyStore",
    "holder",
    "lock",
    "restore_head",
    "revoke",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    optional("zarr", "campaign", "a study's store")
    optional("xarray", "campaign", "a study's store")
    return getattr(import_module(f"{__name__}.{_ON_USE[name]}"), name)
