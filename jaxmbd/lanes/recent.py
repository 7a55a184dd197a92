"""A bounded cache with least-recently-used eviction."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Recent:
    """A cache of at most `size` objects by name, made on first use."""

    def __init__(self, size: int):
        self.size = size
        self.things: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """The object of that name; made outside the lock, so two threads may make it twice."""
        with self.lock:
            if name in self.things:
                self.things.move_to_end(name)
                return self.things[name]
        new = make()
        with self.lock:
            found = self.things.setdefault(name, new)
            if len(self.things) > self.size:
                self.things.popitem(last=False)
            return found

    def __len__(self) -> int:
        return len(self.things)
