"""Chunks by workers: the same bytes, whoever computes them; what cannot be sent is named."""

import json
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.campaign import StoreError, StudyStore
from jaxmbd.campaign.chunk_runner import compute_chunk, run_chunks
from jaxmbd.campaign.parcel import packed
from jaxmbd.campaign.session import session
from jaxmbd.campaign.store_files import holder, lock
from jaxmbd.campaign.store_layout import Field, Layout


class Squares:
    """A study that says where it was computed only in its reports."""

    def __init__(self, count=30):
        self.count = count

    def layout(self):
        return Layout(self.count, 4, {"x": Field(), "square": Field()})

    def compute(self, start, stop):
        x = np.arange(start, stop, dtype=float)
        return {"x": x, "square": np.asarray(jax.numpy.asarray(x) ** 2)}


def run(path, study=None, **options):
    study = study or Squares()
    with session(path, study.layout(), {"study": {}}) as s:
        reports = []
        run_chunks(s, study, **{"progress": reports.append} | options)
    return reports


def files(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "s.zarr"
    run(path)
    return files(path)


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_give_the_same_bytes(tmp_path, whole, workers):
    with ThreadPoolExecutor(workers) as pool:
        assert len(run(tmp_path / "s.zarr", executor=pool)) == 8
    assert files(tmp_path / "s.zarr") == whole
    assert not (tmp_path / "s.zarr.work").exists()


@pytest.mark.slow
def test_processes_and_dask_give_the_same_bytes_in_double_precision(tmp_path, whole):
    distributed = pytest.importorskip("distributed")
    spawn = multiprocessing.get_context("spawn")
    seen = []
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        run(tmp_path / "p.zarr", executor=pool, progress=seen.append)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        run(tmp_path / "d.zarr", executor=client.get_executor(), progress=seen.append)
    assert files(tmp_path / "p.zarr") == files(tmp_path / "d.zarr") == whole
    assert str(os.getpid()) not in {r.where.split(":")[1] for r in seen}
    assert StudyStore.open(tmp_path / "p.zarr").dataset().square.dtype == np.float64


@pytest.mark.slow
def test_forked_processes_are_refused(tmp_path):
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        with pytest.raises(ValueError, match="made by fork.*get_context\\('spawn'\\)"):
            run(tmp_path / "s.zarr", executor=pool)


class Dying(Executor):
    """Runs calls at once, but its worker dies of some of them."""

    def __init__(self, deaths):
        self.deaths, self.calls = deaths, []

    def submit(self, fn, *args):
        future = Future()
        self.calls.append(args[1])
        if self.calls.count(args[1]) <= self.deaths.get(args[1], 0):
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(fn(*args))
        return future


def test_chunks_of_dead_workers_are_handed_out_again(tmp_path, whole):
    pool = Dying({2: 1, 5: 3})
    run(tmp_path / "s.zarr", executor=pool)
    assert len(pool.calls) == 8 + 4 and files(tmp_path / "s.zarr") == whole


def test_a_chunk_whose_report_was_lost_is_not_computed_again(tmp_path, whole):
    class Forgetting(Dying):
        def submit(self, fn, *args):
            if not self.calls.count(args[1]):
                fn(*args)
            return super().submit(fn, *args)

    reports = []
    run(tmp_path / "s.zarr", executor=Forgetting({4: 1}), progress=reports.append)
    assert sum(r.rows for r in reports) == 30 and {r.computing for r in reports} == {0.0}
    assert files(tmp_path / "s.zarr") == whole


def test_a_chunk_that_kills_every_worker_is_an_error(tmp_path, whole):
    path = tmp_path / "s.zarr"
    with pytest.raises(RuntimeError, match="chunk 3 was lost 4 times .*worker is gone"):
        run(path, executor=Dying({3: 99}))
    assert StudyStore.open(path).missing() == [3]
    run(path)
    assert files(path) == whole


def test_workers_of_other_versions_are_warned_of(tmp_path, whole):
    class Elsewhere(Executor):
        def submit(self, fn, order, *args):
            other = json.loads(order.conditions) | {"processor": "an older one"}
            future = Future()
            future.set_result(fn(order._replace(conditions=json.dumps(other)), *args))
            return future

    with pytest.warns(UserWarning, match="not like this process.*\n.*processor: ") as found:
        run(tmp_path / "s.zarr", executor=Elsewhere())
    assert len(found) == 1 and files(tmp_path / "s.zarr") == whole


def test_that_nobody_works_is_told(tmp_path, monkeypatch):
    class Idle(Executor):
        def submit(self, fn, *args):
            future = Future()
            threading.Timer(0.3, lambda: future.set_result(fn(*args))).start()
            return future

    monkeypatch.setattr("jaxmbd.campaign.chunk_runner._SILENCE", 0.1)
    with pytest.warns(UserWarning, match="no chunk has come back") as found:
        run(tmp_path / "s.zarr", Squares(8), executor=Idle())
    assert len(found) == 1


class Faulty(Squares):
    def compute(self, start, stop):
        if start == 8:
            raise ZeroDivisionError("of the user's function")
        return super().compute(start, stop)


def test_errors_of_a_worker_are_raised_here_with_their_chunk(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError, match="user's function") as error:
            run(tmp_path / "s.zarr", Faulty(), executor=pool)
    assert f"chunk 2, by worker {os.uname().nodename}:{os.getpid()}" in error.value.__notes__[0]


def test_a_worker_without_the_folder_or_of_an_older_run_writes_nothing(tmp_path):
    path, orders = tmp_path / "s.zarr", []

    class Noting(Dying):
        def submit(self, fn, *args):
            orders.append(args[0])
            return super().submit(fn, *args)

    run(path, executor=Noting({}))
    before = files(path)
    late = compute_chunk(orders[0], 1, 1)
    assert late.over and "has ended" in str(late.error)
    with lock(path):
        assert compute_chunk(orders[0], 1, 1).over
    far = compute_chunk(orders[0]._replace(path=str(tmp_path / "far.zarr")), 1, 1)
    assert isinstance(far.error, StoreError) and "sees no" in str(far.error)
    assert files(path) == before


class Slow(Squares):
    """Waits in its second chunk until its run has ended."""

    begun = threading.Event()

    def compute(self, start, stop):
        while start and holder(self.path).get("token"):
            self.begun.set()
            threading.Event().wait(0.01)
        return super().compute(start, stop)


def test_what_a_stopped_run_leaves_running_is_not_stored(tmp_path, whole):
    path, slow = tmp_path / "s.zarr", Slow()
    slow.path = path

    def interrupt(report):
        slow.begun.wait(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="1 of 8 chunks"):
        with session(path, slow.layout(), {"study": {}}) as s, ThreadPoolExecutor(1) as pool:
            run_chunks(s, slow, executor=pool, progress=interrupt)
    assert len(StudyStore.open(path).missing()) == 7
    run(path)
    assert files(path) == whole


REGISTERED = mbd.register_law("test_workers_cubic")(lambda x, rate: 1e5 * x**3)


def sprung(law):
    return mbd.Mechanism(
        bodies={"bob": mbd.Body(mass=1.0, com=(0, 0, -1))},
        joints={"slide": mbd.Prismatic("ground", "bob", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"spring": mbd.SpringDamper("ground", "bob", (0, 0, 1), (0, 0, 0), law=law)},
    )


def test_mechanisms_pickle_with_laws_by_name(monkeypatch):
    mech = sprung(REGISTERED)
    mbd.topology(mech)
    again = pickle.loads(packed(mech))
    assert jax.tree.structure(again) == jax.tree.structure(mech)
    for old, new in zip(jax.tree.leaves(mech), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(old, new)
    assert again.forces["spring"].law.function is REGISTERED
    corner = mbd.zoo.multi_link()
    assert jax.tree.structure(pickle.loads(pickle.dumps(corner))) == jax.tree.structure(corner)


def test_what_cannot_be_sent_is_named_before_the_run(tmp_path):
    study = Squares()
    study.inputs = {"a": [1.0, threading.Lock()]}
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match=r"study.inputs\['a'\]\[1\] .*cannot be pickled"):
            run(tmp_path / "s.zarr", study, executor=pool)
