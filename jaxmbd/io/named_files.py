"""Files that a model names: looked for within its folder alone, whoever wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from jaxmbd.io.imported import LeftOut
from jaxmbd.plumbing import warn_user

SCHEMES = ("package://", "model://")
MANIFESTS = ("package.xml", "model.config")
"""Files that say that a folder is a package of ROS or a model of Gazebo."""
_SHOWN = 60


def shortened(name: str) -> str:
    """A name as errors show it."""
    return repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}… ({len(name)} characters)"


def is_file(path: Path, what: str) -> bool:
    """Whether there is such a file.

    Args:
        path: its path.
        what: who names it, for the error.

    Raises:
        ValueError: no file can have this name.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise ValueError(
            f"{what} names the file {shortened(str(path))}, which cannot be looked for: "
            f"{error.strerror}; correct the name"
        ) from None


class ModelFolder(NamedTuple):
    """Where the files that a model names are looked for.

    Attributes:
        own: the model's folder; None for a text, whose files are looked for in the current one.
        within: folder that they must be in, wherever the model is; None: the model's own, and they
            must be named from there.
    """

    own: Path | None
    within: str | os.PathLike[str] | None = None

    def has(self, name: str) -> bool:
        """Whether a name may be looked up."""
        name = name.replace("\\", "/")  # which MuJoCo takes for the same on all systems
        if self.within is not None:
            full = Path(os.path.abspath(Path(self.own or "") / name))
            return full.is_relative_to(os.path.abspath(self.within))
        path = os.path.normpath(name)
        drive = os.path.splitdrive(path)[0]
        return not (drive or os.path.isabs(path) or path.split(os.sep)[0] == os.pardir)

    def path(self, name: str) -> Path:
        """Where a file is that may be looked up."""
        return (self.own or Path()) / name

    def in_package(self, package: str) -> list[Path]:
        """Where a file of a package may be: in one that the model is in, or in one beside it.

        Args:
            package: name of the package and path in it; without climbing.
        """
        first, *rest = Path(package).parts
        tries = []
        for above in () if self.own is None else (self.own, *self.own.parents):
            tries += [above.joinpath(*rest)] if above.name == first else []
            root = above / first
            known = above == self.own or any((root / name).is_file() for name in MANIFESTS)
            tries += [root.joinpath(*rest)] if known else []
        return tries


def told_of(names: tuple[str, ...]) -> list[LeftOut]:
    """Warns of the files that are not looked up; their row in the table of what is left out."""
    if not names:
        return []
    told = ", ".join(map(shortened, names))
    warn_user(
        f"files outside of the model's folder are not looked up: {told}. Copy them into it and "
        "name them from there; or give within= the folder whose files this model may read"
    )
    return [LeftOut("files outside of the model's folder", names, "their shapes are not drawn")]
