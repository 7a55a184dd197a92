"""Folders of what will be run: nobody but the user and root can have put anything there.

What is kept on disk to be run again, machine code and programs, would run whatever another user
had put in its place. So a folder is made for its user alone and used only if that user or root owns
it, nobody else can write there, and the same holds of all that leads to it, where folders in which
everybody owns what he makes (as ``/tmp``) do no harm. Systems without owners of files (Windows)
are trusted to keep the folders of a user apart.
"""

from __future__ import annotations

import os
import stat
import warnings
from contextlib import suppress
from pathlib import Path

_told: set[str] = set()


def usable(folder: Path, variable: str) -> bool:
    """Whether files of a folder may be run; if not, says once why, and the cure.

    Args:
        folder: it need not be there.
        variable: of the environment, which names another folder.
    """
    if why := _doubt(folder):
        text = (
            f"compiled code is not kept in {folder}: {why}, so that what is found there may be "
            f"another's, and would be run. Remove {folder}, which is made anew for you alone, or "
            f"take the right to write from others (chmod go-w) where it is above; or name another "
            f"folder in {variable}"
        )
        if text not in _told:
            _told.add(text)
            warnings.warn(text, stacklevel=2)
    return not why


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for place in [*reversed(folder.parents), folder]:
        with suppress(FileExistsError):
            if not place.exists():
                place.mkdir(0o700)


def read(path: Path) -> bytes | None:
    """A file of such a folder; None if it is a link, or not written by this user or root."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))

    if path.is_symlink():
        return None
    with open(path, "rb", opener=opener) as file:
        return None if _foreign(os.fstat(file.fileno())) else file.read()


def _doubt(folder: Path) -> str:
    """Why a folder is not trusted; empty if it is."""
    named = os.path.abspath(folder)
    if os.path.islink(named):
        return f"{named} is a link"
    places = _lineage(named)
    for place in places:  # which grows by where links lead
        try:
            facts = os.lstat(place)
        except OSError:  # it is not there yet
            continue
        if why := _foreign(facts, above=place != named):
            return f"{place} {why}"
        if stat.S_ISLNK(facts.st_mode):
            places += [x for x in _lineage(os.path.realpath(place)) if x not in places]
    return ""


def _lineage(place: str) -> list[str]:
    """A folder and all above it."""
    found = [place]
    while (above := os.path.dirname(place)) != place:
        place = above
        found.append(place)
    return found


def _foreign(facts: os.stat_result, above: bool = False) -> str:
    """What another user can do with a file, or with a folder above others; empty if nothing."""
    if not hasattr(os, "geteuid"):
        return ""
    if facts.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (number {facts.st_uid})"
    shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(facts.st_mode)
    if shared and not (above and facts.st_mode & stat.S_ISVTX):
        return f"can be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
