"""`export`: a compiled function with its kernels, in a file for other processes.

The file is a zip archive after a line with the format's number and a digest of the rest:

- ``facts.json``: what is checked when it is loaded, and the list of kernels.
- ``program``: the function around the kernels, as `jax.export` serializes it.
- ``trees``: the pytrees of arguments and results, pickled, with numbers for their leaves.
- of each kernel of the host its machine code (``.o``) and LLVM IR (``.ll``), from which another
  processor's code is made; of each kernel of GPUs its PTX (``.ptx``).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export as jax_export
from jax import tree_util

from jaxmbd.lanes.batch import jit
from jaxmbd.lanes.collecting import Kernels, collecting
from jaxmbd.lanes.context import on_host
from jaxmbd.lanes.targets import cpu, cuda

FORMAT = 1
_NAME = b"jaxmbd-lanes-export-"
_MAGIC = _NAME + b"%d\n" % FORMAT
_WIDE = ("float64", "int64", "uint64")


class Executable:
    """A compiled function that `export` makes and `load_exported` reads: call it like the function.

    It may be called inside `jax.jit`, and pickled. It has no derivatives and no `jax.vmap`: export
    these in place of the function.

    Attributes:
        platforms: where it runs, by JAX's names.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> square = mbd.lanes.export(lambda x: x * x, (jnp.ones(3),))
        >>> square(jnp.arange(3.0)).tolist(), square.platforms
        ([0.0, 1.0, 4.0], ('cpu',))
    """

    def __init__(self, data: bytes):
        self._data = data
        archive = zipfile.ZipFile(io.BytesIO(data))
        facts = json.loads(archive.read("facts.json"))
        if facts["protocol"] != cpu.protocol():
            raise _unfit(facts, "by a version of jaxmbd that calls kernels in another way")
        exported = _program(facts, archive.read("program"))
        self._trees = _trees(archive.read("trees"))
        _register(facts, archive.read)
        self.platforms: tuple[str, ...] = exported.platforms
        self._avals = exported.in_avals
        self._run = jax.jit(_without_derivatives(exported.call))

    def __reduce__(self) -> Any:
        return Executable, (self._data,)

    def __call__(self, *args: Any) -> Any:
        """The function's results.

        Raises:
            TypeError: the arguments are no such tree as it was exported for, or of other types.
            ValueError: their shapes are others.
        """
        leaves = self._leaves(args)
        try:
            with on_host(leaves if "cuda" in self.platforms else ()):
                out = self._run(*leaves)
        except ValueError as error:  # in which JAX does not say what is wrong
            if all(isinstance(n, int) for a in self._avals for n in a.shape):
                raise
            given = ", ".join(str(np.shape(x)) for x in leaves)
            sizes = ", ".join(str(a.shape) for a in self._avals)
            raise ValueError(
                f"arguments of shapes {given} are no case of {sizes} as exported, with the "
                f"constraints on its symbols ({error})"
            ) from None
        return tree_util.tree_unflatten(self._trees[1], out)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; an old one is replaced only once the new one is complete."""
        path = Path(path)
        draft = path.with_name(f".{os.getpid()}.{path.name}")
        try:
            draft.write_bytes(_MAGIC + hashlib.sha256(self._data).digest() + self._data)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _leaves(self, args: Any) -> list[Any]:
        """The arguments' leaves, checked."""
        paths, tree = tree_util.tree_flatten_with_path(args)
        if tree != self._trees[0]:
            raise TypeError(_difference(tree.children(), self._trees[0].children()))
        pairs = zip(paths, self._avals, strict=True)
        return [_leaf(tree_util.keystr(at), x, aval) for (at, x), aval in pairs]


def _without_derivatives(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose derivatives raise an error with the cure."""

    def refuse(*_: Any) -> Any:
        raise TypeError(
            "an exported function has no derivatives: export them, such as jax.value_and_grad of it"
        )

    run = jax.custom_jvp(call)
    run.defjvp(refuse)
    return run


def _difference(given: list[Any], exported: list[Any]) -> str:
    """What is wrong with arguments of other trees."""
    if len(given) != len(exported):
        return f"the function was exported for {len(exported)} arguments, not {len(given)}"
    pairs = enumerate(zip(given, exported, strict=True))
    k, one, other = next((k, a, b) for k, (a, b) in pairs if a != b)
    return (
        f"argument [{k}] is another pytree than was exported, by its types, its names or what is "
        f"static in it. Given: {one}. Exported: {other}"
    )


def _leaf(where: str, x: Any, aval: Any) -> Any:
    """An argument of a type that fits."""
    plain = isinstance(x, bool | int | float)
    if plain and np.can_cast(np.result_type(x), aval.dtype, "same_kind"):
        x = np.asarray(x, aval.dtype)
    found = jax.typeof(x)
    if found.dtype != aval.dtype:
        raise TypeError(f"argument {where} is of {found.dtype}; {aval.dtype} was exported")
    sizes = zip(found.shape, aval.shape, strict=False)
    if len(found.shape) != len(aval.shape) or any(isinstance(b, int) and a != b for a, b in sizes):
        raise ValueError(f"argument {where} has shape {found.shape}; {aval.shape} was exported")
    return x


def export(
    fn: Callable[..., Any], shapes: Any, *, platforms: Sequence[str] = ("cpu",)
) -> Executable:
    """Compile a function for a file that another process loads and calls at once.

    The function is compiled as by `jax.jit`, with a kernel for each call of lanes in it: give what
    you would call, such as `lanes.vmap` of a function of one sample, a run, or `jax.value_and_grad`
    of either. A function that calls no lanes is compiled by `lanes.jit`. What it closes over is in
    the file.

    Args:
        fn: a pure function of pytrees of arrays.
        shapes: a tuple, with for each argument a pytree of arrays or ``jax.ShapeDtypeStruct`` whose
            shapes and types calls will have; anything else is the only argument. A batch of any
            size is ``jax.export.symbolic_shape("n, 3", constraints=["n >= 16"])``.
        platforms: "cpu" or "cuda" or both. Code for the host is its machine code, and LLVM IR for
            other processors; for GPUs it is PTX, and needs none here.

    Raises:
        Unsupported: lanes cannot compile the function.
        TypeError: a class or function among arguments or results cannot be pickled.

    Example:
        >>> import tempfile, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> f = lanes.vmap(lambda x: jnp.sin(x) @ x)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lanes.export(f, (jnp.ones((5, 3)),)).save(f"{folder}/f.lanes")
        ...     g = lanes.load_exported(f"{folder}/f.lanes")
        >>> bool((g(jnp.ones((5, 3))) == f(jnp.ones((5, 3)))).all())
        True
    """
    args = tuple(shapes) if type(shapes) in (tuple, list) else (shapes,)
    kernels, made, trees = _exported(fn, args, platforms)
    if not kernels.calls:
        kernels, made, trees = _exported(jit(fn, strict=True), args, platforms)
    return Executable(_archive(kernels, made, trees))


def load_exported(path: str | os.PathLike[str]) -> Executable:
    """Read what `Executable.save` wrote.

    What is in such a file is run, as a pickle is: load only what you trust.

    Raises:
        ValueError: it is no such file, damaged, or made by a version that this one cannot read; or
            it has numbers of 64 bits while JAX runs in 32.
        Unsupported: its kernels cannot be compiled for this processor.

    Example:
        >>> import tempfile, jax.numpy as jnp
        >>> from jaxmbd import lanes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lanes.export(jnp.sin, jnp.float32(0)).save(f"{folder}/sine.lanes")
        ...     lanes.load_exported(f"{folder}/sine.lanes")(0.0).item()
        0.0
    """
    data = Path(path).read_bytes()
    if not data.startswith(_NAME):
        raise ValueError(f"{path} was not written by lanes.export")
    if not data.startswith(_MAGIC):
        line = data[len(_NAME) :].split(b"\n", 1)[0].decode(errors="replace")
        raise ValueError(
            f"{path} has format {line[:20]!r}; this version reads {FORMAT}: export it anew"
        )
    digest, body = data[len(_MAGIC) :][:32], data[len(_MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError(f"{path} is damaged or cut short: copy or export it anew")
    return Executable(body)


# Writing


def _exported(fn: Any, args: Any, platforms: Sequence[str]) -> tuple[Kernels, Any, Any]:
    """The kernels of a function, the program that calls them, the trees around it."""
    leaves, tree = tree_util.tree_flatten(args)
    outs: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        found, out = tree_util.tree_flatten(fn(*tree_util.tree_unflatten(tree, leaves)))
        outs.append(out)
        return found

    with collecting() as kernels:
        make = jax_export.export(
            jax.jit(flat), platforms=tuple(platforms), disabled_checks=kernels.trusted
        )
        made = make(*leaves)
    return kernels, made, (tree, outs[-1])


def _archive(kernels: Kernels, made: Any, trees: Any) -> bytes:
    facts = {
        "jax": jax.__version__,
        "protocol": cpu.protocol(),
        "processor": cpu.processor(),
        "host": {name: k.flops for name, k in kernels.host.items()},
        "gpu": {name: k[1:] for name, k in kernels.gpu.items()},
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("facts.json", json.dumps(facts))
        archive.writestr("program", bytes(made.serialize()))
        archive.writestr("trees", _pickled(trees))
        for name, k in kernels.host.items():
            archive.writestr(f"{name}.ll", k.ir)
            archive.writestr(f"{name}.o", cpu.object_file(k.ir))
        for name, k in kernels.gpu.items():
            archive.writestr(f"{name}.ptx", k.text)
    return file.getvalue()


def _pickled(trees: Any) -> bytes:
    samples = [tree_util.tree_unflatten(t, range(t.num_leaves)) for t in trees]
    try:
        return pickle.dumps(samples)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TypeError(
            f"arguments or results hold what another process cannot find ({error}): define it at "
            "the top of a module, or close over it instead of passing it"
        ) from None


# Reading


def _unfit(facts: Any, why: str) -> ValueError:
    return ValueError(
        f"the file was made with JAX {facts['jax']} (here {jax.__version__}), {why}: export it "
        "anew with the versions that are here, or load it with those that it was made with"
    )


def _program(facts: Any, data: bytes) -> Any:
    """The function around the kernels, which has its types."""
    try:
        made = jax_export.deserialize(bytearray(data))
    except ValueError as error:
        raise _unfit(facts, f"and JAX cannot read its program ({error})") from None
    wide = jax.numpy.result_type(float) == np.float64
    if not wide and any(str(a.dtype) in _WIDE for a in (*made.in_avals, *made.out_avals)):
        raise ValueError(
            "the function was exported in 64 bits, and JAX runs in 32: switch on double precision "
            "before anything else, jax.config.update('jax_enable_x64', True)"
        )
    return made


def _trees(data: bytes) -> list[Any]:
    """The trees of arguments and results."""
    try:
        return [tree_util.tree_structure(x) for x in pickle.loads(data)]
    except (AttributeError, ImportError) as error:
        raise ValueError(
            f"arguments or results hold what this process cannot find ({error}): make the module "
            "importable here under that name"
        ) from None


def _register(facts: Any, read: Callable[[str], bytes]) -> None:
    """Make the kernels FFI targets of this process."""
    native = cpu.runs(facts["processor"])
    for name, flops in facts["host"].items():
        code = read(f"{name}.o") if native else b""
        cpu.adopt(name, code, read(f"{name}.ll").decode(), flops)
    for name, numbers in facts["gpu"].items():
        try:
            cuda.loaded(read(f"{name}.ptx").decode(), *numbers)
        except cuda.Unavailable:  # the host may run it
            break
