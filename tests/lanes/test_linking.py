"""Code that cannot be linked: a fallback to `jax.vmap`, with a warning that gives the reason."""

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu


@pytest.mark.parametrize("what", ["kernel", "driver"])
def test_what_does_not_link_falls_back(what, monkeypatch):
    def refuse(*args):
        raise RuntimeError(f"target cannot link the {what}")

    if what == "driver":
        cpu._drive.cache_clear()  # as in a fresh process
    else:
        cpu._drive()
    monkeypatch.setattr(llvm, "create_mcjit_compiler", refuse)
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    scale = 3.5 + len(what)
    with pytest.warns(UserWarning, match=f"cannot link the {what}.*jax.vmap is used"):
        y = jax.jit(lanes.vmap(lambda x: jnp.sin(scale * x)))(x)
    np.testing.assert_allclose(y, np.sin(scale * x), rtol=1e-12)
    with pytest.raises(lanes.Unsupported, match=f"cannot link the {what}"):
        jax.jit(lanes.vmap(lambda x: jnp.cos(scale * x), strict=True))(x)
