"""What the commands share: their texts or JSON, JAX as they use it, the models that they name."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxmbd.plumbing import listed, plain, unknown

FINE, WRONG, FINDINGS, INTERRUPTED = 0, 1, 3, 130
"""Exit statuses: all well; an error that the user can fix; done, but something was found that needs
attention; stopped by Ctrl-C. (2 is for a wrong command line.)"""

EXIT_STATUSES = (
    "exit status: 0 all well; 1 an error; 2 a wrong command line; 3 done, but something was found\n"
    "that needs attention; 130 stopped by Ctrl-C"
)

Run = Callable[[argparse.Namespace, "Printer"], int]


class Printer:
    """Prints for people on stdout; with ``--json`` one object on stdout, and nothing else there."""

    def __init__(self, as_json: bool):
        self.as_json = as_json

    def text(self, *parts: Any, sep: str = "\n") -> None:
        """Print for people; not at all with ``--json``."""
        if not self.as_json:
            print(*parts, sep=sep)

    def note(self, text: str) -> None:
        """Print on stderr, where neither kind of output is disturbed."""
        print(text, file=sys.stderr)

    def result(self, data: Mapping[str, Any]) -> None:
        """Print the JSON object, null for what is not finite; nothing without ``--json``."""
        if self.as_json:
            values = plain(data, lambda x: None)
            print(json.dumps(values, ensure_ascii=False, allow_nan=False, default=str))


def add_command(
    commands: Any, name: str, run: Run, help: str, description: str, examples: str = ""
) -> argparse.ArgumentParser:
    """A command with its help, its examples and the option ``--json``."""
    shown = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    epilog = f"examples:\n{shown}\n\n{EXIT_STATUSES}" if shown else EXIT_STATUSES
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module, or a .py file, that registers laws and types of one's own; may be repeated",
    )
    parser.set_defaults(run=run)
    return parser


def set_up_jax() -> None:
    """Double precision, compiled programs kept between runs, one device for each core."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        from jaxmbd.lanes import disk

        folder = disk.user_caches() / "jaxmbd" / "jax"
        with suppress(OSError):  # a home that cannot be written
            disk.make(folder)
        if disk.usable(folder, "JAX_COMPILATION_CACHE_DIR"):
            jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "XLA_FLAGS" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", min(cores(), 16))
        except RuntimeError:
            pass  # the process has used JAX before: its devices are settled


def import_own(names: Sequence[str]) -> None:
    """Import modules, by name or as files, whose laws and types models refer to.

    Modules are looked for in the current folder first.

    Raises:
        ImportError: there is no such module or file, or it cannot be imported.
    """
    if not names:
        return
    from importlib import import_module

    set_up_jax()
    for name in names:
        path = Path(name)
        if path.suffix == ".py":
            if not path.is_file():
                raise ImportError(f"--import {name}: there is no such file")
            folder, module = path.resolve().parent, path.stem
        else:
            folder, module = Path.cwd(), name
        sys.path.insert(0, str(folder))
        try:
            import_module(module)
        except ImportError as error:
            raise ImportError(f"--import {name}: {error}") from error
        finally:
            sys.path.remove(str(folder))


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


NAMES = "a file (.json of jaxmbd.io.save, .xml of MuJoCo, .urdf, .usd), or zoo:NAME"


def load_model(name: str) -> tuple[Any, list[str]]:
    """The mechanism, and what was warned of while it was built, or left out of it.

    Raises:
        ValueError: there is no such mechanism, or it is wrong.
        OSError: the file cannot be read.
    """
    model, told = open_model(name)
    return getattr(model, "mechanism", model), told


def open_model(name: str) -> tuple[Any, list[str]]:
    """The mechanism, or what an import gives of a robot's file, and what is to be told of it.

    Raises:
        ValueError: there is no such mechanism, or it is wrong.
        OSError: the file cannot be read.
    """
    if not name.startswith("zoo:") and not Path(name).is_file():
        raise FileNotFoundError(f"there is no file {name!r}; give {NAMES}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _from_zoo(name.removeprefix("zoo:")) if name.startswith("zoo:") else _read(name)
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return model, told + [
        f"left out: {len(row.names)} {row.what} ({listed(row.names)}): {row.consequence}"
        for row in getattr(model, "left_out", ())
    ]


def corners_of(name: str, mech: Any) -> tuple[Any, ...]:
    """Roles of the corner or the axle in a model: those in its file, or of a corner of the zoo."""
    from jaxmbd.suspension import find_corner, load_with_roles

    if Path(name).suffix.lower() == ".json" and (found := load_with_roles(name)[1]):
        return found
    with suppress(ValueError):
        return (find_corner(mech),)
    return ()


def roles_of(name: str, mech: Any) -> tuple[Any, ...]:
    """`corners_of`, where there must be some."""
    if found := corners_of(name, mech):
        return found
    raise ValueError(
        f"{name} does not say what its parts are; make it with jaxmbd corner, or write it with "
        "jaxmbd.suspension.save_with_roles(mech, path, Corner(…))"
    )


def suspension_of(name: str, printer: Printer) -> tuple[Any, Any]:
    """The mechanism of a corner or an axle, and its `Corner` or both; tells what was warned of."""
    mech, warned = load_model(name)
    for text in warned:
        printer.text(f"warning: {text}")
    corners = roles_of(name, mech)
    return mech, corners[0] if len(corners) == 1 else corners


def write_suspension(path: Path, mech: Any, roles: Any, printer: Printer) -> None:
    """Write a corner or an axle with its roles."""
    from jaxmbd.suspension import save_with_roles

    if path.suffix != ".json":
        raise ValueError(f"{path}: a model is written as .json")
    save_with_roles(mech, path, *(roles if isinstance(roles, tuple) else (roles,)))
    printer.text(f"wrote {path}")


def _read(name: str) -> Any:
    from jaxmbd.io import load, load_mjcf, load_robot

    suffix = Path(name).suffix.lower()
    if suffix in (".urdf", ".usd", ".usda", ".usdc", ".usdz"):
        return load_robot(name)
    return load_mjcf(name) if suffix in (".xml", ".mjcf") else load(name)


def _from_zoo(kind: str) -> Any:
    from jaxmbd import zoo
    from jaxmbd.model import Mechanism

    if problems := unknown("mechanism in the zoo", kind, zoo.__all__):
        raise ValueError(problems[0])
    try:
        mech = getattr(zoo, kind)()
    except TypeError:  # it is a function with arguments, of angles
        mech = None
    if not isinstance(mech, Mechanism):
        raise ValueError(f"zoo.{kind} is no mechanism")
    return mech


def add_overwrite(parser: argparse.ArgumentParser, *more: str) -> None:
    """``--overwrite``, and other spellings of it."""
    parser.add_argument("--overwrite", *more, action="store_true", help="replace files that exist")


def refuse_to_replace(overwrite: bool, *paths: str | Path | None) -> None:
    """A ValueError if one of the files that are to be written exists.

    Raises:
        ValueError: one exists, and `overwrite` is False.
    """
    there = [str(path) for path in paths if path is not None and Path(path).exists()]
    if there and not overwrite:
        raise ValueError(
            f"{' and '.join(there)} {'exist' if len(there) > 1 else 'exists'}; give another name, "
            "or replace with --overwrite"
        )


def assigned(texts: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Names and values of ``NAME=VALUE`` arguments.

    Raises:
        ValueError: an argument is not of this form, or a name is there twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ValueError(f"{option} {text!r}: write {form}")
        if name in found:
            raise ValueError(f"{option}: {name} is given twice")
        found[name] = value
    return found


def quantity(text: str, option: str) -> float:
    """A length, an angle or a load of an option in SI units.

    Raises:
        ValueError: it is no quantity, or a number without a unit that is not zero.
    """
    from jaxmbd.variables import parsed

    found = parsed(text, option)
    if found.unitless and found.magnitude:
        raise ValueError(f"{option}: {text!r} has no unit; write '60 mm', '2 deg' or '1 kN'")
    return float(found.to_base_units().magnitude)


def limits_of(texts: Sequence[str] | None, option: str = "--range") -> tuple[float, float] | None:
    """The two ends of an option, angles, lengths or loads, in SI units; None without them.

    Raises:
        ValueError: a text is no quantity, or the first end is not below the second.
    """
    if texts is None:
        return None
    low, high = (quantity(x, option) for x in texts)
    if not low < high:
        raise ValueError(f"{option}: {texts[0]} is not below {texts[1]}")
    return low, high
