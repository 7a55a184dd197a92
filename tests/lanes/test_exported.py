"""`lanes.export`, `lanes.load_exported`: the same bits in another process; what is refused."""

import hashlib
import os
import pickle
import subprocess
import sys
import threading
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes, ml
from jaxmbd.lanes import exported
from jaxmbd.lanes.targets import cpu, cuda

MECH = mbd.zoo.double_pendulum()
X = np.linspace(0.1, 0.9, 60).reshape(20, 3)


def acceleration(mech, q, v):
    return lanes.vmap(lambda q, v: mbd.forward_dynamics(mech, q, v)[0])(q, v)


KEY = jax.random.key(3)


def total(scale, x):
    return lanes.vmap(lambda s, x: jnp.sin(s * x) @ x, in_axes=(None, 0))(scale, x).sum()


@pytest.fixture(scope="module")
def product():
    return lanes.export(lanes.vmap(lambda s, x: {"y": s * jnp.cos(x)}, (None, 0)), (2.0, X))


CHILD = """
import pickle, sys
import jax
jax.config.update("jax_enable_x64", True)
from jaxmbd import lanes
from jaxmbd.lanes.targets import cpu
folder = sys.argv[1]
args = pickle.load(open(f"{folder}/args", "rb"))
compiled = []
compile_object, cpu.compile_object = cpu.compile_object, lambda ir: (
    compiled.append("@kernel" in ir), compile_object(ir))[1]
first = lanes.load_exported(f"{folder}/dynamics")(*args[0])
assert not any(compiled), "a kernel was compiled"
cpu.runs = lambda made_for: False
second = lanes.load_exported(f"{folder}/gradient")(*args[1])
assert any(compiled), "code for another processor was used"
pickle.dump(jax.tree.map(lambda x: x.tolist(), (first, second)), open(f"{folder}/out", "wb"))
"""


def test_another_process_computes_the_same_bits(tmp_path):
    """By the machine code in the file, and by the other form of it, for another processor."""
    state = X[:, :2], X[:, 1:]
    cases = {"dynamics": acceleration, "gradient": jax.value_and_grad(total, argnums=(0, 1))}
    args = (MECH, *state), (0.5, X)
    for (name, fn), given in zip(cases.items(), args, strict=True):
        lanes.export(fn, given).save(tmp_path / name)
    (tmp_path / "args").write_bytes(pickle.dumps(args))
    env = os.environ | {"JAXMBD_LANES_CACHE": ""}
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=True, env=env)
    found = pickle.loads((tmp_path / "out").read_bytes())
    for fn, given, out in zip(cases.values(), args, found, strict=True):
        expected = jax.tree.map(lambda x: x.tolist(), jax.jit(fn)(*given))
        assert out == expected


def test_a_batch_of_any_size():
    n, _ = jax.export.symbolic_shape("n, 3", constraints=["n >= 16"])
    fn = jax.value_and_grad(total, argnums=(0, 1))
    run = lanes.export(fn, (0.5, jax.ShapeDtypeStruct((n, 3), float)))
    for size in (16, 37):
        x = np.resize(X, (size, 3))
        jax.tree.map(np.testing.assert_array_equal, run(0.5, x), jax.jit(fn)(0.5, x))
    with pytest.raises(ValueError, match=r"shapes \(\), \(15, 3\) are no case of \(\), \(n, 3\)"):
        run(0.5, X[:15])
    some = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), float)
    with pytest.raises(ValueError, match=r"too small.*constraints=\['n >= "):
        lanes.export(fn, (0.5, some))


def test_functions_of_one_sample_and_random_keys():
    plain = lanes.export(lambda x: (jnp.sin(x), {"x": x}), (jnp.ones(3),))
    assert plain(jnp.ones(3))[0].tolist() == lanes.jit(jnp.sin)(jnp.ones(3)).tolist()
    assert lanes.export(lanes.jit(jnp.sin), jnp.ones(3))(np.ones(3)).shape == (3,)
    assert pickle.loads(pickle.dumps(plain))(jnp.ones(3))[1]["x"].tolist() == [1.0, 1.0, 1.0]
    assert jax.jit(lambda x: 2 * plain(x)[1]["x"])(jnp.ones(3)).tolist() == [2.0, 2.0, 2.0]
    keys = jax.random.split(jax.random.key(0), 5)
    draw = lanes.vmap(lambda key: jax.random.uniform(key))
    np.testing.assert_array_equal(lanes.export(draw, (keys,))(keys), draw(keys))


def test_a_run_has_its_own_type_and_other_mechanisms_are_refused():
    q = np.zeros(2)
    run = lanes.export(partial(mbd.simulate, t1=0.02, dt=0.01, throw=False), (MECH, q))
    other = mbd.set_variables(MECH, {"gravity/z": -1.62})
    found = run(other, q)
    assert type(found) is mbd.Solution
    expected = jax.jit(partial(mbd.simulate, t1=0.02, dt=0.01, throw=False))(other, q)
    np.testing.assert_array_equal(found.q, expected.q)
    with pytest.raises(TypeError, match=r"argument \[0\] is another pytree"):
        run(mbd.zoo.simple_pendulum(), q)


@pytest.mark.parametrize(
    ("args", "error", "says"),
    [
        ((2.0, X[:19]), ValueError, r"argument \[1\] has shape \(19, 3\); \(20, 3\) was"),
        ((2.0, X.astype(np.float32)), TypeError, r"\[1\] is of float32; float64 was exported"),
        ((2.0j, X), TypeError, r"\[0\] is of complex128"),
        ((2.0,), TypeError, "exported for 2 arguments, not 1"),
        ((2.0, [X]), TypeError, r"argument \[1\] is another pytree"),
    ],
)
def test_arguments_that_do_not_fit(product, args, error, says):
    with pytest.raises(error, match=says):
        product(*args)
    assert isinstance(product, lanes.Executable) and product(2, X)["y"].shape == (20, 3)


def test_transformations_are_refused(product):
    with pytest.raises(TypeError, match="no derivatives: export them"):
        jax.grad(lambda s: product(s, X)["y"].sum())(2.0)
    with pytest.raises(NotImplementedError):
        jax.vmap(product, (0, None))(np.ones(3), X)


def test_files_that_cannot_be_used(product, tmp_path, monkeypatch):
    path = tmp_path / "product"
    product.save(path)
    assert os.listdir(tmp_path) == ["product"]
    whole = path.read_bytes()
    wrong = {
        b"PK\x03\x04": "not written by lanes.export",
        b"": "not written by lanes.export",
        whole[:-1]: "damaged or cut short",
        whole[: len(exported._MAGIC)]: "damaged or cut short",
        whole[:-100] + b"x" + whole[-99:]: "damaged or cut short",
        whole.replace(exported._MAGIC, exported._NAME + b"2\n"): "format '2'; this version reads 1",
    }
    for data, says in wrong.items():
        path.write_bytes(data)
        with pytest.raises(ValueError, match=says):
            lanes.load_exported(path)
    with pytest.raises(FileNotFoundError):
        lanes.load_exported(tmp_path / "missing")
    path.write_bytes(whole)
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        lanes.load_exported(path)
    monkeypatch.setattr(cpu, "protocol", lambda: "another")
    with pytest.raises(ValueError, match=f"JAX {jax.__version__} .*kernels in another.*anew"):
        lanes.load_exported(path)


def test_what_another_process_cannot_find():
    class Local(dict):
        pass

    def parts(x):
        return [x["a"]], None

    jax.tree_util.register_pytree_node(Local, parts, lambda _, x: Local(a=x[0]))
    with pytest.raises(TypeError, match="Local.*top of a module"):
        lanes.export(lanes.vmap(lambda x: x["a"] + 1), (Local(a=X),))
    moved = pickle.dumps([mbd.zoo.four_bar]).replace(b"jaxmbd", b"jaxmbx")
    with pytest.raises(ValueError, match="jaxmbx.*make the module importable"):
        exported._trees(moved)


def test_machine_code_is_for_processors_that_have_what_it_needs():
    here = cpu.processor()
    assert cpu.runs(here)
    fewer = {**here, "features": ",".join(here["features"].split(",")[1:])}
    assert cpu.runs(fewer)
    assert not cpu.runs({**here, "features": here["features"] + ",+quantum"})
    assert cpu.runs({**here, "features": here["features"] + ",-quantum"})
    assert not cpu.runs({**here, "triple": "sparc64-unknown-linux-gnu"})


def test_gpu_code_is_in_the_file_and_the_host_runs_its_own(monkeypatch, tmp_path):
    fn = lanes.vmap(lambda x: jnp.tan(x) @ x)
    both = lanes.export(fn, (X,), platforms=("cpu", "cuda"))
    assert both.platforms == ("cpu", "cuda")
    np.testing.assert_array_equal(both(X), fn(X))
    both.save(tmp_path / "both")
    loaded = []
    monkeypatch.setattr(cuda, "loaded", lambda *args: loaded.append(args))
    lanes.load_exported(tmp_path / "both")
    ((text, slots, inputs, outputs),) = loaded
    assert ".target sm_75" in text and ".entry kernel" in text
    assert (inputs, outputs) == (1, 1) and slots >= 0


def test_what_lanes_cannot_compile_is_xlas_with_a_warning_or_an_error():
    def fn(x):
        return jnp.fft.fft(x).real

    with pytest.warns(UserWarning, match="primitive 'fft'"):
        run = lanes.export(lanes.vmap(fn), (X,))
    np.testing.assert_allclose(run(X), jax.vmap(fn)(X), rtol=1e-12, atol=1e-13)
    with pytest.raises(lanes.Unsupported, match="fft"):
        lanes.export(lanes.vmap(fn, strict=True), (X,))


def test_other_threads_and_later_calls_compile_as_ever():
    fn = lanes.vmap(lambda x: jnp.sinh(x) * 3.5)
    inside, seen = threading.Event(), []

    def slow(x):
        thread = threading.Thread(target=lambda: seen.append(jax.jit(fn).lower(X).as_text()))
        thread.start()
        thread.join()
        inside.set()
        return fn(x)

    found = lanes.export(slow, (X,))(X)
    assert inside.is_set() and "lanes_" in seen[0]
    np.testing.assert_array_equal(found, fn(X))


@pytest.mark.parametrize(
    "make", [ml.cart_pole, pytest.param(ml.five_bar_reach, marks=pytest.mark.slow)]
)
def test_environments_pickle(make):
    env = make()
    copy = pickle.loads(pickle.dumps(env))
    assert (copy.reward, copy.terminate) == (env.reward, env.terminate)
    np.testing.assert_array_equal(env.reset(KEY).observation, copy.reset(KEY).observation)


def test_the_digest_is_of_all_that_follows_it(product, tmp_path):
    product.save(tmp_path / "x")
    data = (tmp_path / "x").read_bytes()[len(exported._MAGIC) :]
    assert data[:32] == hashlib.sha256(data[32:]).digest()
