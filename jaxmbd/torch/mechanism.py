"""A mechanism whose numbers are parameters of a PyTorch module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jaxmbd.model import Mechanism
from jaxmbd.torch.function import wrap
from jaxmbd.torch.tensors import torch
from jaxmbd.variables import get_variables, set_variables


class MechanismModule(torch.nn.Module):
    """A function of a mechanism as a module; chosen numbers of the mechanism are its parameters.

    Parameters have the type of the mechanism's numbers and SI units, so that sizes differ by orders
    (m, kg, N/m): give the optimiser a group with a rate of its own for each kind, from `variables`.
    Names of parameters are the paths, with ``:`` for a dot. All other numbers are constants of the
    compiled function. Save a module's ``state_dict()``, since its function cannot be pickled.

    Args:
        mech: the mechanism.
        paths: of its numbers, see `jaxmbd.variables`.
        fn: a JAX function ``fn(mech, *args)`` to a pytree of arrays, see `wrap`.

    Raises:
        ValueError: unknown paths, with near misses; two paths that differ in dots alone.

    Example:
        >>> import jax, jaxmbd as mbd
        >>> jax.config.update("jax_enable_x64", True)
        >>> corner = mbd.zoo.multi_link()
        >>> load = mbd.torch.MechanismModule(
        ...     corner, ["forces/spring/stiffness"], lambda mech, q: mbd.potential_energy(mech, q)
        ... )
        >>> load(mbd.neutral(corner)).backward()
        >>> {path: f"{x.grad:.1e} J/(N/m)" for path, x in load.variables().items()}
        {'forces/spring/stiffness': '2.0e-03 J/(N/m)'}
    """

    def __init__(self, mech: Mechanism, paths: Iterable[str], fn: Callable[..., Any]):
        super().__init__()
        self._mech = mech
        values = get_variables(mech, paths)
        self._names = {path: path.replace(".", ":") for path in values}
        if len(set(self._names.values())) < len(values):
            raise ValueError(f"two of the paths {list(values)} differ in '.' and ':' alone; rename")
        for path, value in values.items():
            start = torch.tensor(np.asarray(value, mech.gravity.dtype))
            self.register_parameter(self._names[path], torch.nn.Parameter(start))
        self._run = wrap(lambda values, *args: fn(set_variables(mech, values), *args))

    def variables(self) -> dict[str, torch.nn.Parameter]:
        """The parameters by path."""
        return {path: getattr(self, name) for path, name in self._names.items()}

    def mechanism(self) -> Mechanism:
        """The mechanism with the parameters' values.

        Raises:
            ValueError: it is invalid, for example with a negative mass.
        """
        new = {path: x.detach().cpu().numpy().copy() for path, x in self.variables().items()}
        return set_variables(self._mech, new)

    def forward(self, *args: Any) -> Any:
        """The function of the mechanism with the parameters' values, and of what is given."""
        return self._run(self.variables(), *args)
