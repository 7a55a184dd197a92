"""Code that cannot be linked: a fallback to `jax.vmap`, with a warning that gives the reason."""

import ctypes

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
    monkeypatch.setattr(llvm.JITLibraryBuilder, "link", refuse)
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    scale = 3.5 + len(what)
    with pytest.warns(UserWarning, match=f"cannot link the {what}.*jax.vmap is used"):
        y = jax.jit(lanes.vmap(lambda x: jnp.sin(scale * x)))(x)
    np.testing.assert_allclose(y, np.sin(scale * x), rtol=1e-12)
    with pytest.raises(lanes.Unsupported, match=f"cannot link the {what}"):
        jax.jit(lanes.vmap(lambda x: jnp.cos(scale * x), strict=True))(x)


def test_functions_of_one_name_live_side_by_side():
    texts = [f"define i64 @number() {{\n  ret i64 {k}\n}}" for k in range(3)]
    found = [cpu.link(cpu.compile_object(text), ["number"])[0] for text in texts]
    assert [ctypes.CFUNCTYPE(ctypes.c_int64)(address)() for address in found] == [0, 1, 2]


def test_code_that_calls_what_there_is_not_is_refused():
    text = "declare i64 @lanes_nowhere()\ndefine i64 @number() {\n"
    code = cpu.compile_object(text + "  %r = call i64 @lanes_nowhere()\n  ret i64 %r\n}")
    with pytest.raises(lanes.Unsupported, match="cannot link the code"):
        cpu.link(code, ["number"])
    double = "declare double @floor(double)\ndefine double @f(double %x) {\n"
    double += "  %r = call double @floor(double %x)\n  ret double %r\n}"
    (address,) = cpu.link(cpu.compile_object(double), ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(2.75) == 2.0
