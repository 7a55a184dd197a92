"""`jaxmbd.torch.wrap`: values and derivatives are JAX's, memory is shared only where it is safe."""

import gc
import time
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

torch = pytest.importorskip("torch")
from jaxmbd.torch.tensors import array_of, tensor_of  # noqa: E402

PATHS = ("points/C/x", "points/C/y", "bodies/left_distal/mass")
TIGHT = 1e-12


class End(NamedTuple):
    """Of a run."""

    q: jax.Array
    status: jax.Array


@cache
def five_bar():
    """The mechanism, its drawn coordinates and its numbers at `PATHS`."""
    mech = mbd.zoo.five_bar()
    values = mbd.get_variables(mech, PATHS)
    return mech, mbd.assemble(mech).q, np.array([float(values[path]) for path in PATHS])


def rollout(numbers, speeds):
    """End of a short run from two cranks' speeds."""
    mech, q, _ = five_bar()
    mech = mbd.set_variables(mech, dict(zip(PATHS, numbers, strict=True)))
    v = mbd.assemble_velocity(mech, q, {"A": speeds[0], "E": speeds[1]})
    run = mbd.simulate(mech, q, v, steps=3, dt=0.02, save_every=3, throw=False, method="rk4")
    return End(run.q[-1], run.status)


rollouts = lanes.vmap(rollout, in_axes=(None, 0))
wrapped = mbd.torch.wrap(rollouts)


def numbers(requires_grad=True):
    return torch.tensor(five_bar()[2], requires_grad=requires_grad)


SPEEDS = torch.tensor([[0.5, -0.3], [0.2, 0.4]], dtype=torch.float64)


def layouts():
    """Functions of nine numbers to arrays (2, 2) of every layout that PyTorch has."""
    return {
        "contiguous": lambda b: b[:4].reshape(2, 2),
        "not aligned": lambda b: b[1:5].reshape(2, 2),
        "transposed": lambda b: b[:4].reshape(2, 2).T,
        "strided": lambda b: b[:8].reshape(2, 4)[:, ::2],
        "expanded": lambda b: b[:2].expand(2, 2),
        "flipped": lambda b: b[:4].reshape(2, 2).flip(0),
        "overlapping": lambda b: b.as_strided((2, 2), (1, 1)),
        "negated": lambda b: torch.complex(b[:4], b[4:8]).conj().imag.reshape(2, 2),
    }


def numbers_of_layouts():
    return torch.tensor([0.5, -0.3, 0.2, 0.4, 0.1, -0.2, 0.3, -0.4, 0.6], dtype=torch.float64)


def test_values_and_gradients_are_those_of_jax():
    x = numbers()
    out = wrapped(x, SPEEDS)
    assert isinstance(out, End) and out.status.dtype == torch.int32 and not out.status.any()
    out.q[:, 0].square().sum().backward()
    expected, slope = jax.value_and_grad(
        lambda x: jnp.sum(rollouts(x, SPEEDS.numpy()).q[:, 0] ** 2)
    )(x.detach().numpy())
    assert abs(out.q[:, 0].square().sum() - float(expected)) <= TIGHT * float(expected)
    assert np.linalg.norm(slope) > 1e-6
    np.testing.assert_allclose(x.grad, slope, rtol=TIGHT, atol=TIGHT * np.abs(slope).max())


@pytest.mark.parametrize("layout", layouts())
def test_first_and_second_derivatives_by_differences(layout):
    made = layouts()[layout]
    assert layout != "negated" or made(numbers_of_layouts()).is_neg()

    def q(x, b):
        return wrapped(x, made(b)).q

    given = numbers(), numbers_of_layouts().requires_grad_()
    assert torch.autograd.gradcheck(q, given)
    assert torch.autograd.gradgradcheck(q, given)


def test_derivatives_by_axes_of_length_one():
    f = mbd.torch.wrap(lambda x: jnp.sin(x) * jnp.sum(x**3))

    def one(shape, strides, b):
        return f(b.as_strided(shape, strides, 1))

    for shape, strides in (
        ((1, 2), (7, 2)),
        ((2, 1), (3, 5)),
        ((1,), (0,)),
        ((1, 1, 1), (4, 0, 9)),
    ):
        made = partial(one, shape, strides)
        assert torch.autograd.gradcheck(made, numbers_of_layouts().requires_grad_())
        assert torch.autograd.gradgradcheck(made, numbers_of_layouts().requires_grad_())


def test_functional_transforms():
    one = mbd.torch.wrap(rollout)
    x, across = numbers(False), SPEEDS.T
    many = torch.func.vmap(lambda x, s: one(x, s).q, in_dims=(None, 1))(x, across)
    np.testing.assert_allclose(many, wrapped(x, SPEEDS).q, rtol=TIGHT, atol=TIGHT)
    _, along = torch.func.jvp(lambda x: wrapped(x, SPEEDS).q, (x,), (x,))
    expected = jax.jvp(lambda x: rollouts(x, SPEEDS.numpy()).q, (x.numpy(),), (x.numpy(),))[1]
    np.testing.assert_allclose(along, expected, rtol=TIGHT, atol=TIGHT)


def waves(x, k=0):
    """Its gradient is ``2 cos(2x) + y``, its Hessian diagonal but for the mixed ones of x, y."""
    return {"y": jnp.sin(2 * x[0]) + x[0] * x[1], "k": k}


def test_transforms_of_transforms():
    f = mbd.torch.wrap(waves)
    x = torch.tensor([0.3, 2.0], dtype=torch.float64)
    k = torch.arange(3)
    hessian = torch.tensor([[-4 * np.sin(0.6), 1.0], [1.0, 0.0]], dtype=torch.float64)
    for outer in (torch.func.jacrev, torch.func.jacfwd):
        for inner in (torch.func.jacrev, torch.func.jacfwd):
            torch.testing.assert_close(outer(inner(lambda x: f(x, k)["y"]))(x), hessian)
    xs = torch.stack([x, 2 * x, 3 * x], 1)
    found = torch.func.vmap(torch.func.grad(lambda x: f(x)["y"]), in_dims=1, out_dims=1)(xs)
    torch.testing.assert_close(found, torch.stack([2 * torch.cos(2 * xs[0]) + xs[1], xs[0]]))
    twice = torch.func.vmap(torch.func.vmap(lambda x, k: f(x, k)["k"], (None, 0)), (0, None))
    assert torch.equal(twice(xs.T, k), k.expand(3, 3))
    slopes = torch.func.vmap(torch.func.hessian(lambda x: f(x)["y"]))(xs.T)
    torch.testing.assert_close(slopes[0], hessian)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bool])
def test_arrays_of_every_layout_and_type(dtype):
    double = mbd.torch.wrap(lambda x: x + x)
    base = torch.arange(24).reshape(2, 3, 4).to(dtype)
    odd = torch.as_strided(
        base, (1, 4, 1), (999, 1, 77)
    )  # contiguous, as sizes of one do not count
    cases = [base, base.mT, base.permute(2, 0, 1), base[..., 1::2], base[:, :1], base[1, 2, 3]]
    cases += [odd, base[:0], base[:, :, :0], base[0, 0].expand(3, 4), base.reshape(-1)[1:]]
    for x in cases:
        found = double(x)
        assert found.dtype == dtype and found.shape == x.shape
        assert torch.equal(found, x + x)


def test_arrays_that_are_no_tensors_and_mechanisms():
    mech, q, _ = five_bar()
    scaled = mbd.torch.wrap(lambda m, q, *, by: by["by"] * mbd.potential_energy(m, q[::-1]))
    by = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    moved = np.asarray(q) + [0.1, 0.2, 0.3, 0.4]
    backwards = np.ascontiguousarray(moved[::-1])[::-1]
    assert backwards.strides[0] < 0
    (found,) = torch.autograd.grad(scaled(mech, backwards, by={"by": by}), by)
    expected = float(mbd.potential_energy(mech, moved[::-1]))
    assert abs(found - expected) < TIGHT * abs(expected)
    assert mbd.torch.wrap(lambda: (jnp.ones(2), {}))()[0].tolist() == [1.0, 1.0]


def test_single_precision_stays():
    f = mbd.torch.wrap(lambda x: jnp.sin(x).sum())
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    y = f(x)
    y.backward()
    assert y.dtype == x.grad.dtype == torch.float32
    torch.testing.assert_close(x.grad, torch.cos(x.detach()))


def test_memory_is_shared_one_way():
    """Tensors are read where they are; results are written by XLA and handed over."""
    x = torch.arange(8.0)
    for view in (x, x[::2], x.reshape(2, 4).T, x[:1].expand(5), x.requires_grad_()):
        assert array_of(view).__array_interface__["data"][0] == view.data_ptr()
    y = jax.jit(lambda x: 2 * x)(np.arange(8.0))
    assert tensor_of(y).data_ptr() == y.unsafe_buffer_pointer()


def test_only_what_is_not_contiguous_or_not_aligned_is_copied():
    """Copies of 40 MB take milliseconds; a call that copies nothing does not."""
    f = mbd.torch.wrap(lambda x: x[1, 1])
    base = torch.ones(2, 2_500_001, dtype=torch.float64)

    def seconds(x):
        times = []
        for _ in range(4):
            begin = time.perf_counter()
            f(x)
            times.append(time.perf_counter() - begin)
        return min(times)

    whole = seconds(base)
    for copied in (base.T.contiguous().T, base.view(-1)[1:-1].view(2, -1), base[:, ::2]):
        assert seconds(copied) > 3 * whole


def test_changes_in_place_corrupt_nobody():
    constant, given = jnp.arange(6.0), jnp.ones(3)

    def forwarded(x, other):
        y = 2 * x
        return x, x.T, x.reshape(-1), y, y, constant, np.arange(6.0), other

    f, same = mbd.torch.wrap(forwarded), mbd.torch.wrap(lambda x: x)
    x = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    expected = [np.array(y) for y in forwarded(x.numpy().copy(), given)]
    for _ in range(2):
        out = f(x, given)
        for k, y in enumerate(out):
            y.fill_(-1.0)
            for other, value in zip(out[k + 1 :], expected[k + 1 :], strict=True):
                np.testing.assert_array_equal(other, value)
        same(x).fill_(-1.0)
        assert torch.equal(x, torch.arange(6, dtype=torch.float64).reshape(2, 3))
    out = f(x, given)
    x.zero_()
    for y, value in zip(out, expected, strict=True):
        np.testing.assert_array_equal(y, value)


def test_a_tensor_may_change_as_soon_as_the_call_returns():
    slow = mbd.torch.wrap(lambda x: jax.lax.fori_loop(0, 50, lambda _, y: jnp.sin(y) + x, x))
    x = torch.linspace(0, 1, 20_000, dtype=torch.float64)
    expected = slow(x).clone()
    for _ in range(5):
        given = x.clone()
        found = slow(given)
        given.zero_()
        assert torch.equal(found, expected)


def test_a_change_before_backward_is_noticed():
    f = mbd.torch.wrap(lambda x: jnp.sum(x**2))
    x = torch.ones(3, requires_grad=True)
    given = x * 2
    y = f(given)
    given.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_results_outlive_jax_and_go_with_their_tensors():
    f = mbd.torch.wrap(lambda x: x + 1)
    x = torch.zeros(1000)
    gc.collect()
    before = len(jax.live_arrays())
    ys = [f(x)]
    for _ in range(3):
        ys.append(f(ys[-1]))
    del f
    gc.collect()
    assert all(torch.equal(y, torch.full((1000,), 1.0 + k)) for k, y in enumerate(ys))
    del ys
    gc.collect()
    assert len(jax.live_arrays()) == before


def test_gradients_only_where_they_are_asked_for():
    """JAX has no reverse mode for this loop, and need not have."""

    def grown(x, y, k):
        return x * jax.lax.while_loop(lambda y: y < 10, lambda y: 2 * y, y) + k, k

    f = mbd.torch.wrap(grown)
    x, y = (torch.tensor(3.0, requires_grad=flag) for flag in (True, False))
    out, k = f(x, y, torch.tensor(2))
    assert out.requires_grad and not k.requires_grad and k == 2
    out.backward()
    assert x.grad == 12 and y.grad is None
    with torch.no_grad():
        assert not f(x, y, 1)[0].requires_grad
    with pytest.raises(ValueError, match="[Rr]everse-mode"):
        f(x, y.requires_grad_(), 1)[0].backward()


def test_a_failed_sample_spoils_nobody():
    x, alone = numbers(), numbers()
    speeds = SPEEDS.clone()
    speeds[1, 0] = 1e3  # rad/s
    out = wrapped(x, speeds)
    good = out.status == 0
    assert good.tolist() == [True, False] and out.q[1].isnan().all()
    torch.where(good[:, None], out.q - 1.0, 0.0).square().sum().backward()
    (wrapped(alone, SPEEDS).q[0] - 1.0).square().sum().backward()
    assert x.grad.abs().max() > 1e-3
    torch.testing.assert_close(x.grad, alone.grad, rtol=TIGHT, atol=TIGHT)


def test_results_that_are_not_used_get_no_cotangents():
    f = mbd.torch.wrap(lambda x: {"a": x**2, "b": jnp.sqrt(x - 1), "c": jnp.ones(2)})
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    f(x)["a"].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert torch.autograd.grad(f(x)["c"].sum(), x)[0].tolist() == [0.0, 0.0]


def test_a_training_loop_compiles_once():
    traces = []

    def loss(x, batch, rate, name=None):
        traces.append(1)
        return jnp.mean(jnp.sin(batch @ x) ** 2) * rate

    f = mbd.torch.wrap(loss)
    x = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.Adam([x], lr=0.1)

    def step(k):
        optimizer.zero_grad()
        batch = torch.randn(5, 2 * 4)[:, :: 1 + k % 2][:, :4]
        batch = batch.contiguous() if k % 3 else batch
        f(x, batch, 1.0 + k).backward()
        torch.func.vmap(torch.func.grad(lambda b: f(x.detach(), b[None], 1.0 + k)))(batch)
        optimizer.step()

    step(0)
    first = len(traces)
    for k in range(1, 8):
        step(k)
    assert len(traces) == first <= 6


@pytest.mark.parametrize(
    ("give", "text"),
    [
        (
            lambda x: x.to("meta"),
            r"argument \[0\]\['x'\] is a tensor on the device 'meta'.*x.cpu\(",
        ),
        (lambda x: x.to_sparse(), r"layout torch.sparse_coo: give x.to_dense\(\)"),
        (lambda x: x + 0j, "is torch.complex128"),
        (lambda x: x.to(torch.bfloat16), "is torch.bfloat16"),
    ],
)
def test_tensors_that_are_refused(give, text):
    f = mbd.torch.wrap(lambda tree: tree["x"])
    with pytest.raises(TypeError, match=text):
        f({"x": give(torch.ones(2, dtype=torch.float64))})


def test_what_else_is_refused():
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError, match="takes a function, not float"):
        mbd.torch.wrap(1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="is complex128; return real and imaginary part"):
        mbd.torch.wrap(lambda x: 1j * x)(x)
    with jax.enable_x64(False):
        f = mbd.torch.wrap(lambda x, k=0: x + k)
        with pytest.raises(TypeError, match=r"would cut it.*jax_enable_x64.*x.to\(torch.float32\)"):
            f(x)
        with pytest.raises(TypeError, match=r"argument \['k'\].*x.to\(torch.int32\)"):
            f(x.float(), k=torch.arange(2))
        assert f(x.float(), k=torch.arange(2, dtype=torch.int32)).tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_recording_is_refused():
    """Otherwise what was computed while recording would be returned ever after."""
    f = mbd.torch.wrap(lambda x: jnp.sum(x**3))
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="records operations"):
        torch.func.linearize(f, x)
    with pytest.raises(RuntimeError, match="records operations"):
        torch.jit.trace(f, x)
    assert f(x) == 3


def test_the_host_computes_where_jax_prefers_a_gpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert mbd.torch.wrap(lambda x: x + 1)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_random_keys_go_through():
    """An environment's state, whose key stays JAX's, with gradients by the actions."""
    from jaxmbd import ml

    env = ml.cart_pole(horizon=5)
    step = mbd.torch.wrap(jax.vmap(env.step))
    state = jax.vmap(env.reset)(ml.lane_keys(0, 3))
    action = torch.full((3, 1), 0.5, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        state = step(state, action)
    assert isinstance(state.key, jax.Array) and isinstance(state.observation, torch.Tensor)
    state.observation.square().sum().backward()

    def cost(action):
        state = jax.vmap(env.reset)(ml.lane_keys(0, 3))
        for _ in range(2):
            state = jax.vmap(env.step)(state, action)
        return jnp.sum(state.observation**2)

    slope = jax.grad(cost)(jnp.full((3, 1), 0.5))
    np.testing.assert_allclose(action.grad.numpy(), slope, rtol=1e-12)
    with pytest.raises(TypeError, match="torch.func.vmap cannot map"):
        torch.func.vmap(mbd.torch.wrap(lambda x: (x, jax.random.key(0))))(torch.ones(2))
