"""Results of a study on disk: a Zarr group that survives kills, full disks and power cuts."""

from typing import TYPE_CHECKING

from jaxmbd.campaign.store.files import StoreDiffers, StoreError
from jaxmbd.campaign.store.layout import SAMPLE, Field, FixedArray, Layout
from jaxmbd.campaign.store.store_lock import holder, lock, revoke
from jaxmbd.plumbing import on_use, require

if TYPE_CHECKING:
    from jaxmbd.campaign.store.check import Damage, restore_head, verify
    from jaxmbd.campaign.store.study_store import StudyStore

__all__ = [
    "SAMPLE",
    "Damage",
    "Field",
    "FixedArray",
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


def _ask() -> None:
    for package in ("zarr", "xarray"):  # they take long to import, and are used last
        require(package, "campaign", "a study's store")


__getattr__, __dir__ = on_use(
    __name__, {"check": "Damage restore_head verify", "study_store": "StudyStore"}, before=_ask
)
