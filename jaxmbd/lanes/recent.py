"""A memory of bounded size: what was used longest ago goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Recent:
    """At most `size` things by name, each made when it is first asked for."""

    def __init__(self, size: int):
        self.size = size
        self.things: OrderedDict[Hashable, Any] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """What has that name; made outside the lock, so two threads may make the same."""
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
