"""A viser server on this machine only, which says nothing of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxmbd.numerics.extras import optional


@contextmanager
def viser_server(
    port: int = 8080, purpose: str = "a picture that moves", host: str = "127.0.0.1"
) -> Iterator[Any]:
    """A `viser.ViserServer` that other machines cannot reach, for the length of a `with`.

    Args:
        port: the first that is tried; the next free one is taken.
        purpose: what needs it, for the message where viser is missing.
        host: address that it is served at; "0.0.0.0" lets other machines in.

    Raises:
        ImportError: viser is not installed.

    Example:
        >>> from jaxmbd.viz import viser_server
        >>> with viser_server() as server:
        ...     server.get_host()
        '127.0.0.1'
    """
    viser = optional("viser", "viz", purpose)
    with _silent():
        server = viser.ViserServer(host=host, port=port, verbose=False)
    try:
        yield server
    finally:
        with _silent():
            server.stop()


def in_notebook() -> bool:
    """Whether a value at the end of a cell shows itself."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ in ("ZMQInteractiveShell", "Shell")


@contextmanager
def _silent() -> Iterator[None]:
    """Without viser's own messages, which it prints by rich, in notebooks as rich text."""
    console = optional("rich", "viz", "a viser server").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
