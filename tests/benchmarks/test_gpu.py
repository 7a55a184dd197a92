"""The benchmark of GPUs, run on the host: its parts, and that it sees what is wrong."""

import ctypes
import json
import os
import subprocess
import sys

import gpu
import gpu_table
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_cases import checks, device, prepare, runs, timing
from gpu_cases.record import FORWARD, GRADIENT, LANES, LAST, ONE, ROLLOUT, VMAP, Run
from gpu_emulation import CONTEXT, STREAM, Machine, frame
from repository import ROOT

from jaxmbd import lanes

SMALL = (33, 65)


@pytest.fixture(autouse=True)
def small_checks(monkeypatch):
    monkeypatch.setattr(checks, "SIZES", SMALL)
    monkeypatch.setattr(checks, "FEW_SIZES", SMALL[:1])
    monkeypatch.setattr(timing, "PART", 1e-3)


def run_of(tmp_path, *arguments):
    options = gpu.parsed(["--dry-run", "--json", str(tmp_path / "gpu.json"), *arguments])
    run = Run(device.EMULATED, options, options.json, float("inf"))
    run.place = jax.devices("cpu")[0]
    return run


def test_a_dry_run_measures_everything(tmp_path, capsys):
    path = tmp_path / "gpu.json"
    assert gpu.main(["--dry-run", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    rows = found["rows"]
    assert {(r["work"], r["dtype"]) for r in rows} == {
        (FORWARD, "float64"), (ROLLOUT, "float64"), (GRADIENT, "float64"),
        (FORWARD, "float32"), (ROLLOUT, "float32"),
    }  # fmt: skip
    assert {r["column"] for r in rows} == {LANES, LAST, ONE, VMAP}
    for r in rows:
        assert r["unequal"] == r["odd"] == r["nonfinite"] == 0
        assert 0.0 < r["kernel_seconds_min"] <= r["kernel_seconds"] <= r["kernel_seconds_max"]
        assert r["series"] == timing.SERIES and r["kernel_by"] == "events"
        assert {"clock_mhz", "power_w", "driver", "compile_seconds"} <= r.keys()
        if r["column"] in (LANES, LAST):
            assert r["flops"] > 0 and r["io_bytes"] > 0 and r["gb_per_second"] > 0.0
    waves = [r for r in rows if r.get("waves") == 1.0]
    assert {r["work"] for r in waves} == {FORWARD, ROLLOUT}
    (most,) = (r["batch"] for r in rows if r["work"] == GRADIENT and r["batch"] != 64)
    (slots,) = {r["scratch_bytes"] for r in rows if r["work"] == GRADIENT}
    assert most * slots > device.EMULATED.memory / 8
    assert not found["wrong"] and not found["skipped"]
    assert "small programs are right" in capsys.readouterr().out


def test_a_failed_check_stops_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "gpu.json"

    def broken(fn, **options):
        return lambda x, y: jax.tree.map(lambda z: z.at[-1].add(1), jax.vmap(fn)(x, y))

    monkeypatch.setattr(checks.lanes, "vmap", broken)
    monkeypatch.setattr(checks, "programs", lambda change=0.0: {"sum": lambda x, y: x + y})
    assert gpu.main(["--dry-run", "--json", str(path)]) == 1
    found = json.loads(path.read_text())
    assert "sum, float64, batch 33: 1 samples differ" in found["wrong"][0]
    assert not found["rows"] and "nothing is timed" in capsys.readouterr().err


def test_a_check_that_cannot_run_is_named(monkeypatch):
    def refused(x, y):
        raise RuntimeError("no code")

    monkeypatch.setattr(checks.lanes, "vmap", lambda fn, **options: refused)
    monkeypatch.setattr(checks, "programs", lambda change=0.0: {"sum": lambda x, y: x + y})
    found = checks.failures(jax.devices("cpu")[0], 1 << 30)
    assert found == [
        f"sum, {dtype}, batch 33: RuntimeError: no code" for dtype in ("float64", "float32")
    ]


def test_short_scratch_is_asked_for_and_put_back():
    usual = checks.cuda.SCRATCH_SHARE
    with checks.short_scratch(80 << 30):
        assert (80 << 30) // checks.cuda.SCRATCH_SHARE == checks.SHORT
    assert usual == checks.cuda.SCRATCH_SHARE


@pytest.mark.parametrize("name", checks.NEEDY)
def test_scratch_is_short_for_these(name):
    fn = checks.programs(1e-3)[name]
    closed = jax.make_jaxpr(lambda x, y: jax.tree.leaves(fn(x, y)))(np.ones(3), np.ones(3))
    emitter = runs.Kernel(closed, (True, True)).emitter(1, gpu=True)
    emitter.module()
    room = emitter.scratch_slots * runs.SLOT * runs.WARP
    assert room > 0 and 1 <= checks.SHORT // room < 4097 // runs.WARP


@pytest.mark.parametrize("axis", [0, -1])
def test_each_sample_is_compared_with_the_one_it_repeats(axis):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    k = np.arange(23) % 5
    out = {"x": x[k], "y": y[k].astype(np.float32)}
    out["x"][7, 2] = np.nextafter(out["x"][7, 2], 9.0)  # one bit
    out["x"][22, 0] = np.nan
    out["y"][22] = out["y"][22] + 1.0
    out["y"][13] = np.inf
    moved = jax.tree.map(lambda a: jnp.moveaxis(jnp.asarray(a), 0, axis), out)
    first, unequal, nonfinite = runs.compared(moved, 5, axis)
    assert (int(unequal), int(nonfinite)) == (3, 2)
    np.testing.assert_array_equal(first["x"], x)


GOOD = {"difference": 1e-14, "odd": 0, "unequal": 0, "nonfinite": 0, "checked_by": "lanes"}
GOOD |= {"scatter": 1e-14}


@pytest.mark.parametrize(
    "change", [{"difference": 1e-3}, {"difference": np.nan}, {"odd": 1}, {"unequal": 2}]
)
def test_a_failure_names_what_differs(tmp_path, change):
    run = run_of(tmp_path)
    what = gpu.task(run, "rssr", FORWARD, "float64")
    gpu.judge(run, f"{what.title}, {LANES}, batch 4096", what, GOOD)
    assert not run.wrong
    gpu.judge(run, f"{what.title}, {LANES}, batch 4096", what, GOOD | change)
    (text,) = run.wrong
    assert text.startswith("RSSR, forward dynamics, float64, lanes, batch 4096: ")
    if change.get("unequal"):
        assert "2 samples" in text


def test_a_wrong_sample_of_a_batch_is_found(tmp_path):
    run = run_of(tmp_path)
    what = gpu.task(run, "pendulum", FORWARD, "float64")
    args = runs.repeated(what.sample, 100, run.place)
    out = jax.jit(what.batched(LANES))(*args)
    assert gpu.compared(run, what, LANES, 100, out)["difference"] < 1e-13
    assert not run.wrong
    for at, words in ((99, "1 samples differ"), (3, "differs by")):
        run.wrong.clear()
        bad = jax.tree.map(lambda y, at=at: y.at[at].add(1e-3), out)
        gpu.compared(run, what, LANES, 100, bad)
        assert any(words in text for text in run.wrong)


def test_what_would_take_too_long_is_skipped_and_said(tmp_path):
    run = run_of(tmp_path)
    run.deadline = 0.0
    for action, *what in gpu.steps_of(run.options):
        action(run, *what)
    assert not run.rows and len(run.skipped) == len(gpu.steps_of(run.options))


def test_the_goal_comes_first_and_xla_last():
    plan = gpu.steps_of(gpu.parsed([]))
    assert plan[0] == (gpu.measure, "rssr", FORWARD, "float64")
    assert [step[0] for step in plan[-10:]] == [gpu.beside] * 10
    assert {step[1] for step in plan if step[0] is gpu.measure} == set(gpu.CASES)


def test_a_wave_is_what_registers_and_cache_allow(monkeypatch):
    h100 = device.Device("H100", 13000, (9, 0), 132, 1.98e9, 80 << 30, bus="0000:01:00.0")
    found = runs.cuda.Devices("sm_90", True, 80 << 30, 132, 65_536, 32, 228 << 10)
    monkeypatch.setattr(runs.cuda, "devices", lambda: found)
    assert runs.wave(h100, dict(registers=255, local_bytes=0)) == 132 * 256
    assert runs.wave(h100, dict(registers=255, local_bytes=2000)) < 132 * 256


class Driver:
    """A driver whose events take a millisecond each."""

    def __init__(self, code=0):
        self.code, self.calls, self.clock = code, [], 0

    def __getattr__(self, name):
        def call(*args):
            self.calls.append(name)
            if name == "cuStreamGetCtx":
                assert args[0].value == STREAM
                args[1]._obj.value = CONTEXT
            if name == "cuEventRecord":
                assert args[1].value == STREAM
                return self.code
            if name == "cuEventCreate":
                self.clock += 1
                args[0]._obj.value = self.clock
            if name == "cuEventElapsedTime":
                args[0]._obj.value = args[2].value - args[1].value
            return 0

        return call


def test_events_are_recorded_on_xlas_stream():
    driver = Driver()
    stamps = timing.Stamps(driver)
    for _ in range(3):
        keep: list = []
        array = np.zeros(1)
        at = frame(Machine(), [(array, (1,))], [(array, (1,))], keep)
        assert timing.CALLBACK(stamps.handle)(at) is None
    assert stamps.taken() == pytest.approx([1e-3, 1e-3])
    record = ["cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuEventCreate", "cuEventRecord"]
    assert driver.calls[:5] == [*record, "cuCtxPopCurrent_v2"]
    assert driver.calls.count("cuEventDestroy_v2") == 3


def test_a_failed_event_is_an_error():
    stamps, keep = timing.Stamps(Driver(code=400)), []
    array = np.zeros(1)
    for _ in range(2):
        stamps.handle(frame(Machine(), [(array, (1,))], [(array, (1,))], keep))
    with pytest.raises(RuntimeError, match="400"):
        stamps.taken()


def test_without_events_the_hosts_clock_is_used(monkeypatch, capsys):
    def refuse(self):
        raise RuntimeError("no FFI")

    monkeypatch.setattr(timing.Stamps, "register", refuse)
    timer = timing.Timer(device.EMULATED, jax.devices("cpu")[0])
    call = jax.jit(lanes.vmap(lambda x: jnp.sin(x) @ x))
    found = timer.times(call, (jnp.ones((50, 3)),), 1e-3, 1.0)
    assert found["kernel_by"] == "the host's clock" and found["kernel_seconds"] > 0.0
    assert "no CUDA events: RuntimeError: no FFI" in capsys.readouterr().out


def test_a_meter_without_a_gpu_says_nothing():
    assert device.Meter(device.EMULATED).now() == dict(clock_mhz=None, power_w=None, driver=None)


def test_a_meter_reads_clock_and_power(monkeypatch):
    class Library:
        def __getattr__(self, name):
            def call(*args):
                if name == "nvmlSystemGetDriverVersion":
                    args[0].value = b"580.1"
                if name == "nvmlDeviceGetHandleByPciBusId_v2":
                    assert args[0] == b"0000:01:00.0"
                if name == "nvmlDeviceGetClockInfo":
                    assert args[1] == device.SM_CLOCK
                    args[2]._obj.value = 1980
                if name == "nvmlDeviceGetPowerUsage":
                    args[1]._obj.value = 612_500
                return 0

            return call

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    gpu_ = device.Device("H100", 13000, (9, 0), 132, 1.98e9, 80 << 30, bus="0000:01:00.0")
    found = device.Meter(gpu_).now()
    assert found == dict(clock_mhz=1980, power_w=612.5, driver="580.1")


def test_the_table_shows_the_fastest_batch_and_leaves_out_what_is_missing():
    common = dict(
        case="rssr", work=FORWARD, dtype="float64", steps=1, column=LANES, difference=1e-13
    )
    slow = common | dict(batch=4096, per_second=1e8, kernel_per_second=9e8)
    fast = common | dict(batch=10**6, per_second=3e9, kernel_per_second=4e9, registers=255)
    vmap = common | dict(batch=4096, per_second=1e6, kernel_per_second=1e6, column=VMAP)
    cells = gpu_table.cells_of([slow, fast, vmap], "rssr", FORWARD, "float64")
    assert cells[:5] == ["RSSR", "forward dynamics, float64", "1000000", "4000", "3000"]
    assert cells[10] == "100" and gpu_table.cells_of([slow], "rssr", ROLLOUT, "float64") is None


@pytest.fixture
def prepared(monkeypatch):
    monkeypatch.setenv(prepare.CACHE, "")
    made = prepare.Prepared()
    yield made
    made.close()
    assert not made.folder.exists() and os.environ[prepare.CACHE] == ""


def test_kernels_are_compiled_by_other_processes(prepared, tmp_path):
    text = "import os, sys; assert os.environ['JAX_PLATFORMS'] == 'cpu'; "
    note = f"open({str(prepared.folder / 'rssr rollout')!r}, 'w').write('2.5')"
    prepared.run("rssr", [sys.executable, "-c", text + note])
    assert prepared.seconds("rssr", ROLLOUT, 20.0) == 2.5
    assert prepared.seconds("rssr", GRADIENT, 20.0) is None  # it ended without
    assert prepared.seconds("chain8", ROLLOUT, 20.0) is None
    prepared.run("chain8", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert prepared.seconds("chain8", ROLLOUT, 0.0) is None
    run = run_of(tmp_path)
    run.prepared, what = prepared, gpu.task(run, "rssr", ROLLOUT, "float64")
    assert gpu.prepared(run, what) == {"kernel_compile_seconds": 2.5}


def test_a_process_compiles_rollouts_and_gradients(prepared, monkeypatch):
    made = runs.cuda.Compiled("lanes_cuda_test", 255, 0, 0)
    monkeypatch.setattr(runs.cuda, "target", lambda *a, **k: made)
    monkeypatch.setattr(jax.config, "update", lambda *a: None)
    with runs._noted() as kernels:
        prepare.main("pendulum", "2", "32", str(prepared.folder))
    assert len(kernels) == 2
    seconds = [float((prepared.folder / f"pendulum {w}").read_text()) for w in prepare.WORKS]
    assert all(0.0 < s < 60.0 for s in seconds)


def test_make_uses_a_python_of_ones_own():
    command = ["make", "-n", "bench-gpu", "BIN=/opt/own/bin"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "/opt/own/bin/python benchmarks/gpu.py --check" in done.stdout
    assert ".venv" not in done.stdout
