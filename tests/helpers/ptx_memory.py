"""The memories of an interpreted GPU: every access is checked.

Addresses are not the host's. Regions lie far apart, so that what is outside of one is in none.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from ptx_text import PtxError

FIRST = 0x7F00_0000_0000
GAP = 1 << 20
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_ALL = {width: kind(int("01" * width, 16)) for width, kind in _WORDS.items()}
Bits = np.ndarray  # unsigned integers


class Region:
    """A piece of memory, one for all threads or one for each.

    Attributes:
        name: for messages.
        address: of its first byte.
        content: all bytes; the threads' pieces one after another.
        size: [bytes], of one thread's if each has its own.
        stride: from one thread's piece to the next [bytes]; 0 if there is one for all.
        written: which bytes have a value.
        fixed: whether no kernel may write it.
    """

    def __init__(
        self, name: str, address: int, content: Bits, *, fixed: bool, size: int, stride: int
    ):
        assert content.dtype == np.uint8
        self.name, self.address, self.content, self.fixed = name, address, content, fixed
        self.size, self.stride = size, stride
        self.written = np.full(content.shape, fixed, np.uint8)
        self._views: dict[int, tuple[Bits, Bits]] = {}

    def views(self, width: int) -> tuple[Bits, Bits]:
        """The content, and whether it is written, as numbers of a width [bytes]."""
        if width not in self._views:
            whole = self.content.size // width * width
            kind = _WORDS[width]
            both = self.content[:whole].view(kind), self.written[:whole].view(kind)
            self._views[width] = both
        return self._views[width]

    def forget(self, threads: Bits | None = None) -> None:
        """Nothing is written any more, of all of it or of some threads' pieces."""
        if threads is None:
            self.written[:] = 0
        else:
            self._pieces(self.written)[threads] = 0

    def copy(self, other: Region, threads: Bits) -> None:
        """Take over what another region of the same size has for some threads."""
        for mine, its in ((self.content, other.content), (self.written, other.written)):
            self._pieces(mine)[threads] = other._pieces(its)[threads]

    def _pieces(self, content: Bits) -> Bits:
        return content.reshape(-1, self.stride)


class Memory:
    """Regions that one kind of instruction reaches."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[Region] = []

    def place(self, name: str, content: Bits, *, fixed: bool = False) -> Region:
        """A new region for all threads; zero bytes have an address, but cannot be reached."""
        return self._placed(name, content, fixed=fixed, size=content.size, stride=0)

    def place_each(self, name: str, size: int, threads: int) -> Region:
        """A new region of some bytes for each thread."""
        stride = (size + 15) // 16 * 16
        content = np.zeros(threads * stride, np.uint8)
        return self._placed(name, content, fixed=False, size=size, stride=stride)

    def _placed(self, name: str, content: Bits, *, fixed: bool, size: int, stride: int) -> Region:
        last = self._regions[-1] if self._regions else None
        end = last.address + last.size if last else FIRST
        address = (end + GAP) // 256 * 256
        made = Region(name, address, content, fixed=fixed, size=size, stride=stride)
        self._starts.append(address)
        self._regions.append(made)
        return made

    def remove(self, address: int) -> Region:
        """Free a region."""
        k = self._starts.index(address)
        del self._starts[k]
        return self._regions.pop(k)

    def read(
        self, addresses: Bits, threads: Bits, width: int, count: int = 1, *, fixed: bool = False
    ) -> list[Bits]:
        """The values at the addresses of some threads.

        Args:
            addresses: one for each thread.
            threads: their numbers.
            width: bytes of a value.
            count: consecutive values of each.
            fixed: whether the instruction is for memory that the kernel does not write.

        Raises:
            PtxError: an address is outside all regions, not a multiple of the bytes read, or holds
                nothing; or memory that may change is read as fixed.
        """
        _check_aligned(self, addresses, threads, width * count)
        found = [np.empty(len(addresses), _WORDS[width]) for _ in range(count)]
        for k, values in enumerate(found):
            moved = addresses + np.uint64(k * width)
            for region, which, places in self._located(moved, threads, width):
                if fixed and not region.fixed:
                    raise PtxError(f"{region.name} is read as if no kernel wrote it")
                content, written = region.views(width)
                missing = written[places] != _ALL[width]
                if missing.any():
                    bad = int(np.flatnonzero(missing)[0])
                    raise PtxError(
                        f"thread {threads[which][bad]} reads {width} bytes at "
                        f"{self.described(moved[which][bad])}, where nothing was written"
                    )
                values[which] = content[places]
        return found

    def write(self, addresses: Bits, threads: Bits, values: list[Bits]) -> None:
        """Store consecutive values, whose type gives their width.

        Raises:
            PtxError: an address is outside all regions, in a fixed one, or not a multiple of the
                bytes written.
        """
        width = values[0].dtype.itemsize
        _check_aligned(self, addresses, threads, width * len(values))
        for k, each in enumerate(values):
            moved = addresses + np.uint64(k * width)
            for region, which, places in self._located(moved, threads, width):
                if region.fixed:
                    raise PtxError(f"thread {threads[which][0]} writes to {region.name}")
                content, written = region.views(width)
                content[places] = each[which]
                written[places] = _ALL[width]

    def _located(self, addresses: Bits, threads: Bits, width: int):
        """Regions, which threads reach them, and their places in the views of the width."""
        rest = np.arange(len(addresses))
        while len(rest):
            first = int(addresses[rest[0]])
            k = bisect_right(self._starts, first) - 1
            region = self._regions[k] if k >= 0 else None
            if region is None or first - region.address > region.size - width:
                raise PtxError(
                    f"thread {int(threads[rest[0]])} reaches {width} bytes at "
                    f"{self.described(first)}, outside of all memory"
                )
            offsets = addresses[rest] - np.uint64(region.address)
            inside = offsets <= np.uint64(region.size - width)
            every = bool(inside.all())
            which = rest if every else rest[inside]
            places = (offsets if every else offsets[inside]).astype(np.int64)
            if region.stride:
                places += threads[which] * region.stride
            yield region, which, places // width
            rest = rest[:0] if every else rest[~inside]

    def described(self, address: int) -> str:
        """An address, for messages."""
        k = bisect_right(self._starts, int(address)) - 1
        if k < 0:
            return f"address {int(address)}"
        region = self._regions[k]
        return f"{region.name} + {int(address) - region.address} (it has {region.size})"


def _check_aligned(memory: Memory, addresses: Bits, threads: Bits, width: int) -> None:
    odd = addresses & np.uint64(width - 1)
    if odd.any():
        bad = int(np.flatnonzero(odd)[0])
        raise PtxError(
            f"thread {threads[bad]} reaches {width} bytes at "
            f"{memory.described(addresses[bad])}, no multiple of {width}"
        )
