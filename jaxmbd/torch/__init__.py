"""PyTorch: JAX functions as differentiable functions of tensors, mechanisms as modules.

`import jaxmbd` does not import PyTorch; the names of this package do, when they are first used.
"""

from typing import TYPE_CHECKING

from jaxmbd.plumbing import on_use

if TYPE_CHECKING:
    from jaxmbd.torch.function import wrap
    from jaxmbd.torch.mechanism import MechanismModule

__all__ = ["MechanismModule", "wrap"]

__getattr__, __dir__ = on_use(__name__, {"function": "wrap", "mechanism": "MechanismModule"})
