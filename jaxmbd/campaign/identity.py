"""Where results come from: versions, commit, machine; descriptions as plain data.

Programs that call back to Python, or hold objects known by identity only, have no digest of their
own: `code_digest` is one of their functions by what these are made of.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PACKAGES = ("jaxmbd", "jax", "jaxlib", "numpy", "zarr", "xarray")


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on; "" where one is not installed."""
    return {name: _version(name) for name in PACKAGES}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def provenance() -> dict[str, Any]:
    """Versions, commit, platform and machine: where results come from. No times."""
    return {
        "versions": versions(),
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "machine": platform.node(),
        "processor": _processor(),
        "devices": [f"{d.platform} {d.device_kind}" for d in jax.devices()[:1]],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _commit() -> str:
    """The commit of a checkout, with "+" if files were changed; "" if this is none."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    asked = "status --porcelain=v2 --branch --no-ahead-behind -- jaxmbd".split()
    run = ["git", "-C", str(root), *asked]
    try:
        said = subprocess.run(run, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    changed = [line for line in said.splitlines() if not line.startswith("#")]
    commit = said.partition("# branch.oid ")[2].partition("\n")[0]
    return commit + ("+" if changed else "")


def plain(x: Any) -> Any:
    """The same as dictionaries, lists, texts and numbers that JSON can hold.

    Numbers that are not finite become texts.
    """
    if isinstance(x, Mapping):
        return {str(k): plain(y) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if isinstance(x, (np.ndarray, np.generic, jax.Array)):
        return plain(np.asarray(x).tolist())
    if isinstance(x, float) and not np.isfinite(x):
        return repr(x)
    return x


_KNOWN = {"jax", "jaxlib", "jaxmbd", "numpy", "scipy", *sys.stdlib_module_names}
"""Packages whose versions are noted elsewhere: of their parts the names suffice."""


def code_digest(*functions: Any) -> str:
    """A digest of functions, of what they enclose, and of the globals that they name.

    Functions are followed through those that they call by name. Objects count by their type and
    attributes.

    Example:
        >>> from jaxmbd.campaign.identity import code_digest
        >>> times = lambda k: lambda x: k * x
        >>> code_digest(times(2.0)) == code_digest(times(2.0)) != code_digest(times(3.0))
        True
    """
    state = hashlib.blake2b(digest_size=20)
    seen: dict[int, Any] = {}  # keeps them alive, so that no number is used twice
    for function in functions:
        for part in _parts(function, seen):
            state.update(part + b"\0")
    return "code " + state.hexdigest()


def _parts(x: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Bytes that tell `x` from others."""
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        yield repr(x).encode()
        return
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    if isinstance(x, (np.ndarray, np.generic, jax.Array)) and np.asarray(x).dtype != object:
        x = np.asarray(x)
        yield f"{x.dtype} {x.shape}".encode() + x.tobytes()
        return
    yield _name(x)
    if id(x) in seen or isinstance(x, ModuleType):
        return
    if not isinstance(x, (tuple, frozenset, CodeType)):  # which may be shared or equal by chance
        seen[id(x)] = x
    if not _known(x) or _encloses(x):
        for part in _enclosed(x) if isinstance(x, FunctionType) and _known(x) else _inner(x):
            yield from _parts(part, seen)


def _inner(x: Any) -> Iterator[Any]:
    """What an object consists of."""
    if isinstance(x, FunctionType):
        yield x.__code__
        yield from _enclosed(x)
        names = sorted(_names(x.__code__))
        named = {n: x.__globals__[n] for n in names if n in x.__globals__}
        yield named
        modules = [y for y in named.values() if isinstance(y, ModuleType) and not _known(y)]
        yield from ({n: vars(y)[n] for n in names if n in vars(y)} for y in modules)
    elif isinstance(x, CodeType):
        yield from (x.co_code, x.co_names, x.co_consts)
    elif isinstance(x, functools.partial):
        yield from (x.func, x.args, x.keywords)
    elif isinstance(x, MethodType):
        yield from (x.__func__, x.__self__)
    elif isinstance(x, Mapping):
        for key, value in x.items():
            yield from (key, value)
    elif isinstance(x, (list, tuple)):
        yield from x
    elif isinstance(x, (set, frozenset)):
        yield from sorted(map(repr, x))
    elif isinstance(x, type):
        yield {n: y for n, y in sorted(vars(x).items()) if not n.startswith("__") or callable(y)}
    else:
        yield getattr(x, "__wrapped__", None)
        yield getattr(x, "__dict__", None)
        yield type(x)


def _encloses(x: Any) -> bool:
    """Whether it is a function of this package, which may hold a user's functions and numbers."""
    return isinstance(x, FunctionType) and x.__module__.partition(".")[0] == "jaxmbd"


def _enclosed(x: Any) -> Iterator[Any]:
    yield from (x.__defaults__, x.__kwdefaults__)
    yield [cell.cell_contents for cell in x.__closure__ or () if _filled(cell)]


def _names(code: CodeType) -> set[str]:
    """Global names in a function and in those defined inside it."""
    inner = [_names(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018, which an empty cell does not have
    except ValueError:
        return False
    return True


def _known(x: Any) -> bool:
    """Whether it is a module, function or class of a package whose version is noted."""
    if isinstance(x, ModuleType):
        return x.__name__.partition(".")[0] in _KNOWN
    named = isinstance(x, (type, FunctionType)) or type(x).__name__ == "builtin_function_or_method"
    return named and str(getattr(x, "__module__", "")).partition(".")[0] in _KNOWN


def _name(x: Any) -> bytes:
    if isinstance(x, ModuleType):
        return x.__name__.encode()
    named = x if isinstance(x, (type, FunctionType)) else type(x)
    return f"{named.__module__}.{named.__qualname__}".encode()
