"""Programs lowered for several platforms at once, and for platforms without kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from jaxmbd import lanes
from jaxmbd.lanes.targets import cuda

X = np.linspace(0.1, 0.9, 5)
BOTH = ("cpu", "cuda")
WARNED = "jaxmbd.lanes.ir.nodes._WARNED"


def tripled(x):
    return 3.0 * jnp.sin(x) * x


def lowered(fn, platforms, *args):
    return jax.jit(fn).trace(*args).lower(lowering_platforms=platforms).as_text()


@pytest.fixture
def with_cuda(monkeypatch):
    """A stand-in for NVIDIA's driver: every kernel becomes the same FFI target."""
    made = cuda.Compiled("lanes_cuda_test", 1, 0, 0)
    monkeypatch.setattr(cuda, "target", lambda *a, **k: made)


def test_each_platform_has_its_kernel_in_one_program(with_cuda):
    (host,) = (x for x in lowered(lanes.vmap(tripled), ("cpu",), X).split() if "@lanes_" in x)
    name = host.split("(")[0]
    text = lowered(lanes.vmap(tripled, strict=True), BOTH, X)
    assert text.count(f"{name}(") == 1 and text.count("@lanes_cuda_test(") == 1
    assert "stablehlo.case" in text and "stablehlo.sine" not in text


def test_so_have_derivatives_and_nested_calls(with_cuda):
    def total(scale, x):
        inner = jax.jit(lanes.vmap(lambda s, x: jnp.sin(s * x), (None, 0), strict=True))
        return inner(scale, x).sum() + lanes.jit(lambda s: s**2, strict=True)(scale)

    text = lowered(jax.value_and_grad(total), BOTH, 0.5, X)
    assert text.count("@lanes_cuda_test(") == text.count("@lanes_") / 2 >= 3
    assert "stablehlo.sine" not in text


def test_a_program_exported_for_several_platforms_has_no_kernels(monkeypatch):
    monkeypatch.setattr(WARNED, set())
    with pytest.warns(UserWarning, match=r"cannot export kernels.*jax\.vmap is used") as caught:
        made = export.export(jax.jit(lanes.vmap(tripled)), platforms=(*BOTH, "tpu"))(X)
    assert len(caught) == 1
    assert made.platforms == (*BOTH, "tpu")
    assert "custom_call" not in made.mlir_module()
    np.testing.assert_allclose(made.call(X), tripled(X), rtol=1e-14)
    with pytest.raises(lanes.Unsupported, match="export"):
        export.export(jax.jit(lanes.vmap(tripled, strict=True)), platforms=BOTH)(X)


@pytest.mark.parametrize("platform", ["tpu", "rocm"])
def test_a_platform_without_kernels_is_named(platform, monkeypatch):
    monkeypatch.setattr(WARNED, set())
    with pytest.warns(UserWarning, match=rf"cpu and cuda only.*{platform}; jax\.vmap") as caught:
        text = lowered(lanes.vmap(tripled), (platform,), X)
        lowered(lanes.vmap(lambda x: 4.0 * tripled(x)), (platform,), X)
    assert len(caught) == 1
    assert "stablehlo.sine" in text and "@lanes_" not in text
    with pytest.raises(lanes.Unsupported, match=f"none for {platform}"):
        lowered(lanes.vmap(tripled, strict=True), (platform,), X)


def test_beside_a_platform_without_kernels_the_host_keeps_its_own(monkeypatch):
    monkeypatch.setattr(WARNED, set())
    with pytest.warns(UserWarning, match="none for tpu"):
        text = lowered(lanes.vmap(tripled), ("cpu", "tpu"), X)
    assert text.count("@lanes_") == 1 and text.count("stablehlo.sine") == 1
    with pytest.raises(lanes.Unsupported, match="none for tpu"):
        lowered(lanes.vmap(tripled, strict=True), ("cpu", "tpu"), X)


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no GPU")
def test_a_single_mechanism_stays_on_the_host_of_a_gpu():
    def platforms(x):
        return {d.platform for d in x.devices()}

    sine = lanes.jit(jnp.sin, strict=True)
    assert platforms(sine(0.5)) == {"cpu"}
    assert platforms(sine(jax.device_put(0.5, jax.devices("gpu")[0]))) == {"gpu"}
    assert platforms(jax.jit(sine)(0.5)) == {"gpu"}
    assert platforms(lanes.vmap(jnp.sin, strict=True)(X)) == {"gpu"}
