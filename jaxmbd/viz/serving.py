"""A viser server on this machine only, which says nothing of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
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
    with redirect_stdout(StringIO()):
        server = viser.ViserServer(host=host, port=port, verbose=False)
    try:
        yield server
    finally:
        with redirect_stdout(StringIO()):
            server.stop()
