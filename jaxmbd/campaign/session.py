"""Open a study's store to run into it: new or half done, but of the same study, for one process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxmbd.campaign.store_check import Damage, restore_head
from jaxmbd.campaign.store_files import StoreDiffers, explained, lock, store_path
from jaxmbd.campaign.store_layout import IDENTITY, Layout
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.plumbing import warn_user

PROVENANCE = "provenance"
_SHOWN = 20


class Session(NamedTuple):
    """A store that this process alone runs into.

    Attributes:
        store: the open store.
        token: by which workers know the run that they belong to.
        restored: files of its description that were damaged and were written again.
    """

    store: StudyStore
    token: str
    restored: tuple[Damage, ...] = ()


@contextmanager
def session(
    path: str | os.PathLike[str],
    layout: Layout,
    attributes: Mapping[str, Any],
    *,
    restore: bool = False,
) -> Iterator[Session]:
    """Create the store of a study, or open it to go on, and hold it meanwhile.

    Args:
        path: of the store.
        layout: of the study. If the store is there, its own chunk size is kept.
        attributes: of the group: ``"study"`` decides the results and must be the same as in the
            store; a difference in ``"provenance"`` is warned of.
        restore: whether a damaged description is restored; else it is an error if it matters.

    Raises:
        StoreDiffers: the store is another study's; lists the differences.
        StoreError: it is in use, damaged, not a study's store, or cannot be written.
    """
    path = store_path(path)
    with explained(path, "make the folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
    with lock(path) as token:
        restored = []
        if path.exists():
            restored = restore_head(path, layout, attributes) if restore else []
            store = StudyStore.open(path)
            check_same(store, layout, attributes)
            store.recover()
            store.clean()
        else:
            store = StudyStore.create(path, layout, attributes)
        try:
            yield Session(store, token, tuple(restored))
        finally:
            store.clean()


def check_same(store: StudyStore, layout: Layout, attributes: Mapping[str, Any]) -> None:
    """Refuse a store of another study.

    Raises:
        StoreDiffers: lists the differences.
    """
    given = json.loads(json.dumps(dict(attributes)))  # as it is in the store: lists, text keys
    found = differences(store.attributes.get(IDENTITY), given.get(IDENTITY), IDENTITY)
    found += differences(_described(store.layout), _described(layout), "layout")
    if found:
        rest = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        begin = f"{store.path} holds another study (stored -> now):"
        raise StoreDiffers(
            "\n  - ".join([begin, *found[:_SHOWN], *rest])
            + (
                "\n`program` is what is computed of a sample: the model, or jaxmbd, has changed."
                if any(x.startswith(f"{IDENTITY}/program:") for x in found)
                else ""
            )
            + "\nRun this one into another path, or the old one to go on; nothing was changed"
        )
    old, new = store.attributes.get(PROVENANCE), given.get(PROVENANCE)
    if changed := differences(old, new, PROVENANCE):
        begin = (
            f"{store.path} was begun under other conditions (then -> now); last bits may differ:"
        )
        warn_user("\n  - ".join([begin, *changed[:_SHOWN]]))


def _described(layout: Layout) -> dict[str, Any]:
    fields = {
        name: {"shape": list(f.shape), "dtype": f.dtype, "dims": list(f.dims)}
        for name, f in layout.fields.items()
    }
    return {"count": layout.count, "fields": fields}


_NOTHING = object()


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Where two trees of JSON values differ, as "path: old -> new".

    Example:
        >>> from jaxmbd.campaign.session import differences
        >>> differences({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3], "c": 0})
        ['b/1: 2 -> 3', 'c: nothing -> 0']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(k for k in new if k not in old)]
        pairs = [(str(k), old.get(k, _NOTHING), new.get(k, _NOTHING)) for k in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(old, new, strict=True))]
    elif old == new or (old != old and new != new):
        return []
    else:
        return [f"{name}: {_short(old)} -> {_short(new)}"]
    prefix = f"{name}/" if name else ""
    return [line for key, a, b in pairs for line in differences(a, b, prefix + key)]


def _short(value: Any) -> str:
    text = "nothing" if value is _NOTHING else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
