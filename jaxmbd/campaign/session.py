"""A study's store, opened to run into it: new or half done, but of the same study, for one process.

And what is damaged in it is found, its description restored.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxmbd.campaign.store_files import (
    StoreDiffers,
    StoreError,
    explained,
    lock,
    store_path,
    sync_folder,
    work_folder,
    write_file,
)
from jaxmbd.campaign.store_layout import (
    ABOUT_MARKS,
    FORMAT,
    IDENTITY,
    MARK,
    ROOT,
    Layout,
    canonical,
    checksum,
    head,
)
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.plumbing import warn_user


class Damage(NamedTuple):
    """One damaged file.

    Attributes:
        chunk: its number; None if the file belongs to the description.
        file: relative path.
        reason: what is wrong.
    """

    chunk: int | None
    file: str
    reason: str

    def __str__(self) -> str:
        part = "the description" if self.chunk is None else f"chunk {self.chunk}"
        return f"{part}, file {self.file}: {self.reason}"


def verify(store: StudyStore, progress: Callable[[int, int], None] | None = None) -> list[Damage]:
    """Compare every file with the checksum noted when it was written.

    Chunks that are not stored at all are not damaged; a stored one that lost a file is.

    Args:
        store: an open store.
        progress: called with the number of chunks verified and their total.
    """
    found = _verify_head(store.path)
    for k in range(store.chunks):
        found += _verify_chunk(store, k)
        if progress is not None:
            progress(k + 1, store.chunks)
    return found


def restore_head(
    path: str | os.PathLike[str], layout: Layout, attributes: Mapping[str, Any]
) -> list[Damage]:
    """Write those files of the description again that are damaged; samples are not touched.

    Args:
        path: of a store that this process has locked.
        layout: of its study; the chunk size is the store's own.
        attributes: of its study; the store's own are kept if they are not damaged.

    Returns:
        what was damaged.

    Raises:
        StoreDiffers: the store is another study's, as far as can be seen.
        StoreError: so much is damaged that this cannot be seen, or it cannot be written.
    """
    path = store_path(path)
    root, marks = _metadata(_content(path / ROOT)), _metadata(_content(path / ABOUT_MARKS))
    own = (root or {}).get("attributes", {})
    noted = (marks or _copied_marks(path)).get("attributes", {})
    known = noted.get(IDENTITY, checksum(canonical(own[IDENTITY])) if IDENTITY in own else None)
    if known is None:
        raise StoreError(
            f"the description of {path} cannot be restored: both {ROOT} and {ABOUT_MARKS} are "
            "damaged, so that nothing shows whose samples these are"
        )
    given = {"format": FORMAT, **json.loads(json.dumps(dict(attributes)))}
    if known != checksum(canonical(given.get(IDENTITY))):
        raise StoreDiffers(f"{path} holds another study; nothing was changed")
    intact = checksum(canonical(own)) == noted.get("attributes")
    files = head(_as_stored(path, layout), own if intact else given)
    damaged = [name for name, data in files.items() if _content(path / name) != data]
    with explained(path, "restore the description"):
        for name in damaged:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(path / name, work_folder(path), files[name])
            sync_folder((path / name).parent)
    return [Damage(None, name, "it was not what is written at the begin") for name in damaged]


def _copied_marks(path: Path) -> dict[str, Any]:
    """The root's copy of the metadata of the array of checksums."""
    try:
        return json.loads(_content(path / ROOT) or b"")["consolidated_metadata"]["metadata"][MARK]
    except (ValueError, KeyError, TypeError):
        return {}


def _as_stored(path: Path, layout: Layout) -> Layout:
    """The layout with the chunk size that most arrays of the store have."""
    sizes = Counter[int]()
    for name in layout.fields:
        about = _metadata(_content(path / name / ROOT))
        try:
            sizes[about["chunk_grid"]["configuration"]["chunk_shape"][0]] += 1
        except (KeyError, TypeError, IndexError):
            continue
    return replace(layout, chunk=sizes.most_common(1)[0][0]) if sizes else layout


def _verify_chunk(store: StudyStore, k: int) -> list[Damage]:
    mark = store.mark(k)
    if not (store.path / mark).exists():
        return []
    try:
        noted = store.checksums(k)
    except Exception as error:  # whatever the decoders make of damaged files
        return [Damage(k, mark, f"the note of its checksums is damaged: {error}")]
    found = []
    for name, file in store.files(k).items():
        data = _content(store.path / file)
        if data is None:
            found.append(Damage(k, file, "it is missing"))
        elif checksum(data) != noted[name]:
            found.append(Damage(k, file, f"its {len(data)} bytes are not those that were written"))
    return found


def _verify_head(path: Path) -> list[Damage]:
    """The description: files against checksums, and each copy of metadata against the other."""
    try:
        root = json.loads((path / ROOT).read_bytes())
        about = json.loads((path / ABOUT_MARKS).read_bytes())
        attributes, copies = root["attributes"], root["consolidated_metadata"]["metadata"]
        noted = about["attributes"]
        files = noted["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [Damage(None, ROOT, f"the description cannot be read: {error!r}")]
    found = []
    for file, number in files.items():
        data = _content(path / file)
        if data is None or checksum(data) != number:
            found.append(Damage(None, file, "it is not what was written"))
    if checksum(canonical(attributes)) != noted["attributes"] or attributes["format"] != FORMAT:
        found.append(Damage(None, ROOT, "the attributes are not those that were written"))
    for name, copy in copies.items():
        if _metadata(_content(path / name / ROOT)) != _metadata(json.dumps(copy).encode()):
            found.append(Damage(None, ROOT, f"its copy of {name}/{ROOT} is another"))
    return found


def _metadata(data: bytes | None) -> Any:
    """What a ``zarr.json`` says, apart from copies of others; None if it cannot be read."""
    try:
        return {k: v for k, v in json.loads(data or b"").items() if k != "consolidated_metadata"}
    except (ValueError, AttributeError):
        return None


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


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
