"""Stores of studies: whole or not at all, verified, of one study and one process."""

import errno
import json
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from jaxmbd.campaign import Interrupted, StoreDiffers, StoreError, StudyStore
from jaxmbd.campaign.chunk_runner import run_chunks
from jaxmbd.campaign.session import differences, restore_head, session, verify
from jaxmbd.campaign.store_files import holder, lock
from jaxmbd.campaign.store_layout import ABOUT_MARKS, FORMAT, Field, Layout

ATTRIBUTES = {"title": "waves", "study": {"seed": 3, "inputs": {"a": {"sigma": 0.5}}}}


class Waves:
    """A study of plain numbers: a wave for each sample; every seventh fails."""

    def __init__(self, count=23, chunk=5, seed=3):
        self.count, self.chunk, self.seed = count, chunk, seed
        self.computed = []

    def layout(self):
        unit = {"units": "m"}
        fields = {
            "a": Field(attributes=unit),
            "wave": Field((4,), "float32", ("t",), unit),
            "status": Field((), "int32"),
            "all_nan": Field((2, 3), "float64", ("part", "axis")),
        }
        fixed = {
            "t": (("t",), np.arange(4.0), {"units": "s"}),
            "part": (("part",), ["rod", "Lenker"], {}),
            "nominal.a": ((), np.array(1.5), unit),
        }
        return Layout(self.count, self.chunk, fields, fixed)

    def compute(self, start, stop):
        if stop in (self.count, (start // self.chunk + 1) * self.chunk):
            self.computed.append(start // self.chunk)
        rows = np.arange(start, stop)
        a = np.sin(rows * self.seed)
        status = (rows % 7 == 6).astype(np.int32)
        wave = np.where(status[:, None] == 0, a[:, None] * np.arange(4), np.nan).astype(np.float32)
        nothing = np.full((len(rows), 2, 3), np.nan)
        return {"a": a, "wave": wave, "status": status, "all_nan": nothing}


def run(path, study=None, **options):
    study = study or Waves()
    with session(path, study.layout(), ATTRIBUTES) as s:
        reports = []
        run_chunks(s, study, **{"progress": reports.append} | options)
    return reports


def files(path):
    return {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "waves.zarr"
    run(path)
    return path


def beside(path):
    return sorted(f.name for f in path.parent.iterdir())


def test_what_is_stored_opens_in_xarray_without_a_warning(whole):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xarray.open_zarr(whole).load()
        lazy = StudyStore.open(whole).dataset()
    expected = Waves().compute(0, 23)
    assert set(found.data_vars) == {*expected, "nominal.a"}
    for name, x in expected.items():
        np.testing.assert_array_equal(found[name], x, strict=False)
        assert found[name].dtype == x.dtype
    assert found.sizes == {"sample": 23, "t": 4, "part": 2, "axis": 3}
    assert list(found.part.values) == ["rod", "Lenker"]
    assert found.t.attrs["units"] == "s" and found.wave.attrs["units"] == "m"
    assert found["nominal.a"] == 1.5 and found.attrs["study"] == ATTRIBUTES["study"]
    assert lazy.identical(found)


def test_a_store_knows_its_layout_and_its_chunks(whole):
    store, given = StudyStore.open(whole), Waves().layout()
    assert store.layout.fields == given.fields
    assert (store.layout.count, store.layout.chunk, store.chunks) == (23, 5, 5)
    assert store.attributes == ATTRIBUTES
    assert store.rows(4) == (20, 23) and store.missing() == []
    np.testing.assert_array_equal(store.read(4)["a"], Waves().compute(20, 23)["a"])
    assert verify(store) == []
    assert beside(whole) == ["waves.zarr", "waves.zarr.log"]


class Killed(BaseException):
    pass


def test_killed_at_every_rename_it_goes_on_to_the_same_bytes(tmp_path, whole, monkeypatch):
    """Runs die at their first rename, second, third, …: they leave what they have written."""
    path, runs, computed = tmp_path / "waves.zarr", 0, []
    rename = {name: getattr(os, name) for name in ("rename", "replace")}

    def dying(name):
        def move(*args):
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            rename[name](*args)

        return move

    while True:
        left, runs, study = runs % 11, runs + 1, Waves()
        with monkeypatch.context() as patch:
            for name in rename:
                patch.setattr(os, name, dying(name))
            try:
                run(path, study)
                break
            except Killed:
                assert len(study.computed) <= 2
            finally:
                computed += study.computed
        if path.exists():
            stored = StudyStore.open(path)
            for k in np.flatnonzero(stored.done()):
                stored.read(k)
        assert runs < 50
    assert files(path) == files(whole)
    assert runs > 8 and len(computed) <= 5 + runs


def test_a_chunk_that_was_written_but_not_yet_on_disk_is_kept_after_a_kill(tmp_path, whole):
    path, study = tmp_path / "waves.zarr", Waves()
    store = StudyStore.create(path, study.layout(), ATTRIBUTES)
    for k in (0, 2, 3):
        store.stage(k, study.compute(*store.rows(k)))
    truncate(path / "a/c.2")
    (path / "status/c.3").write_bytes(b"")
    assert store.missing() == [0, 1, 2, 3, 4]
    again = Waves()
    run(path, again)
    assert again.computed == [1, 2, 3, 4] and files(path) == files(whole)
    assert beside(path) == ["waves.zarr", "waves.zarr.log"]


def test_files_are_those_that_zarr_would_write(tmp_path, whole):
    given = Waves().compute(0, 23)
    StudyStore.create(tmp_path / "z.zarr", Waves().layout(), ATTRIBUTES)
    root = zarr.open_group(tmp_path / "z.zarr", mode="r+")
    for name, values in given.items():
        root[name].with_config({"write_empty_chunks": True})[...] = values
    store = StudyStore.open(whole)
    for k in range(5):
        root["commits/checksum"][k] = list(store.checksums(k).values())
    assert files(tmp_path / "z.zarr") == files(whole)


KINDS = "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()


def of_all_kinds():
    """A layout with each type of numbers, on samples and without, texts, and odd names."""
    fields = {
        f"{kind} {len(dims)}": Field(
            (2, 3)[: len(dims)], kind, dims, {"units": "µm", "n": [1, 2.5]}
        )
        for kind in KINDS
        for dims in [(), ("p",), ("p", "q")]
    }
    fixed = {f"fixed {kind}": (("q",), np.array([1, 0, 1], kind), {}) for kind in KINDS}
    fixed |= {
        "p": (("p",), ["Lenker", "Länge"], {"ä": None}),
        "text": ((), "", {}),
        "Zz": ((), np.nan, {}),
        "é": ((), np.arange(3)[::2][1], {}),
        "none": (("none",), np.zeros(0), {}),
        "no_text": (("no_text",), np.zeros(0, "U3"), {}),
    }
    return Layout(23, 5, fields, fixed)


@pytest.mark.filterwarnings("ignore:Consolidated metadata:UserWarning")
def test_the_description_is_that_of_zarr(tmp_path):
    layout = of_all_kinds()
    ours = StudyStore.create(tmp_path / "ours.zarr", layout, ATTRIBUTES).path
    root = zarr.create_group(tmp_path / "z.zarr", attributes={"format": FORMAT, **ATTRIBUTES})
    codecs = {False: [ZstdCodec(level=1), Crc32cCodec()], True: [Crc32cCodec()]}

    def add(name, shape, chunk, dtype, fill, dims, attributes):
        return root.create_array(
            name,
            shape=shape,
            chunks=tuple(max(1, n) for n in chunk),
            dtype=dtype,
            fill_value=fill,
            compressors=codecs[np.dtype(dtype).kind in "fu"],
            chunk_key_encoding={"name": "default", "separator": "."},
            dimension_names=dims,
            attributes=attributes,
            config={"write_empty_chunks": True},
        )

    for name, f in layout.fields.items():
        shape, chunk = (23, *f.shape), (5, *f.shape)
        add(name, shape, chunk, f.dtype, f.fill, ("sample", *f.dims), f.attributes)
    for name, x in layout.fixed.items():
        fill = "" if x.values.dtype.kind == "T" else 0
        shape, dtype = x.values.shape, x.values.dtype
        add(name, shape, shape, dtype, fill, x.dims, x.attributes)[...] = x.values
    root.create_group("commits")
    marks, noted = "commits/checksum", json.loads((ours / ABOUT_MARKS).read_bytes())["attributes"]
    shape = (5, len(layout.fields))
    add(marks, shape, (1, shape[1]), "uint64", 0, ("chunk", "field"), noted)
    zarr.consolidate_metadata(tmp_path / "z.zarr")
    expected, found = files(tmp_path / "z.zarr"), files(ours)
    assert found.keys() == expected.keys()
    for name, data in expected.items():
        if name.endswith("zarr.json"):
            assert json.loads(found[name]) == json.loads(data), name
            assert list(json.loads(found[name])) == list(json.loads(data))
        else:
            assert found[name] == data, name


def test_a_description_is_read_as_it_was_given(tmp_path):
    given = of_all_kinds()
    store = StudyStore.create(tmp_path / "s.zarr", given, ATTRIBUTES)
    assert store.layout.fields == given.fields
    dataset = store.dataset()
    for name, x in given.fixed.items():
        found = dataset[name]
        assert (found.dims, found.attrs) == (x.dims, x.attributes)
        assert found.dtype.kind == x.values.dtype.kind or found.dtype == object
        np.testing.assert_array_equal(found, x.values)


def test_numbers_are_stored_in_one_order_of_bytes(tmp_path):
    given = Layout(1, 1, {"a": Field()}, {"x": (("t",), np.array([1.5, -2.0], ">f8"), {})})
    found = StudyStore.create(tmp_path / "s.zarr", given, {}).dataset()
    np.testing.assert_array_equal(found["x"], [1.5, -2.0])


def test_the_dataset_of_a_half_done_store_has_fills_and_refuses_damage(tmp_path):
    path = tmp_path / "half.zarr"
    run(path, chunks=[0, 3])
    found, done = StudyStore.open(path).dataset(), [*range(5), *range(15, 20)]
    expected = Waves().compute(0, 23)
    assert np.flatnonzero(found.status != -1).tolist() == done
    np.testing.assert_array_equal(found.a[done], expected["a"][done])
    assert np.isnan(np.delete(found.a.values, done)).all()
    flip(path / "a/c.3")
    with pytest.raises(ValueError, match="checksum"):
        StudyStore.open(path).dataset().a.load()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_loses_nothing(tmp_path, whole, monkeypatch, number):
    path, sync, calls = tmp_path / "waves.zarr", os.fsync, []

    def refused(handle):
        calls.append(handle)
        if len(calls) == 40:
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(StoreError, match=r"cannot write chunk \d of .*untouched"):
        run(path)
    assert 0 < len(StudyStore.open(path).missing()) < 5
    assert verify(StudyStore.open(path)) == []
    run(path)
    assert files(path) == files(whole)


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def truncate(file):
    file.write_bytes(file.read_bytes()[:-3])


@pytest.mark.parametrize("damage", [flip, truncate, os.remove], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["wave/c.2.0", "a/c.4", "commits/checksum/c.1.0"])
def test_damaged_samples_are_found_and_computed_again(tmp_path, whole, damage, name):
    path = tmp_path / "waves.zarr"
    run(path)
    damage(path / name)
    store, k = StudyStore.open(path), int(name.split("c.")[1][0])
    gone = damage is os.remove and name.startswith("commits")
    found = verify(store)
    assert [(d.chunk, d.file) for d in found] == ([] if gone else [(k, name)])
    if not name.startswith("commits"):
        with pytest.raises(StoreError, match=f"chunk {k} .*(damaged|not stored)"):
            store.read(k)
    for each in found:
        store.discard(each.chunk)
    study = Waves()
    run(path, study)
    # Files that are whole are only noted again.
    assert study.computed == ([] if gone else [k]) and files(path) == files(whole)


@pytest.mark.parametrize("damage", [flip, truncate, os.remove], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "name", ["zarr.json", "wave/zarr.json", "t/c.0", "part/c.0", "commits/checksum/zarr.json"]
)
def test_a_damaged_description_is_found_and_restored(tmp_path, whole, damage, name):
    path = tmp_path / "waves.zarr"
    run(path)
    damage(path / name)
    try:
        assert verify(StudyStore.open(path))
    except StoreError as error:
        assert "damaged" in str(error) or "not a study's store" in str(error)
    elsewhere = ATTRIBUTES | {"provenance": "another machine"}
    attributes = ATTRIBUTES if name == "zarr.json" else elsewhere
    with (
        warnings.catch_warnings(record=True) as warned,
        session(path, Waves(chunk=9).layout(), attributes, restore=True) as s,
    ):
        assert [d.file for d in s.restored] == [name]
    assert files(path) == files(whole) and verify(StudyStore.open(path)) == []
    assert (attributes is ATTRIBUTES) == (not warned)


def test_the_description_of_another_study_is_not_written_over(tmp_path):
    path = tmp_path / "waves.zarr"
    run(path)
    truncate(path / "zarr.json")
    before = files(path)
    with pytest.raises(StoreDiffers, match="another study"):
        restore_head(path, Waves().layout(), ATTRIBUTES | {"study": {"seed": 4}})
    truncate(path / "commits/checksum/zarr.json")
    with pytest.raises(StoreError, match="nothing shows whose samples"):
        restore_head(path, Waves().layout(), ATTRIBUTES)
    assert files(path).keys() == before.keys()


def test_a_store_is_held_by_one_process(tmp_path):
    path = tmp_path / "waves.zarr"
    with lock(path) as token:
        assert holder(path)["token"] == token
        with pytest.raises(StoreError, match=f"process {os.getpid()} on "):
            run(path)
    assert not path.exists() and holder(path) == {}
    run(path)


def test_a_link_to_a_store_is_the_store(tmp_path, monkeypatch):
    path, link = tmp_path / "waves.zarr", tmp_path / "link.zarr"
    link.symlink_to("waves.zarr")
    run(link)
    assert path.is_dir() and link.is_symlink()
    with lock(path), pytest.raises(StoreError, match="in use"):
        run(link)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert StudyStore.open("~/waves.zarr").missing() == []
    with pytest.raises(ValueError, match="is no folder"):
        StudyStore.open("s3://bucket/waves.zarr")


def test_another_study_is_refused_with_the_differences(tmp_path):
    path = tmp_path / "waves.zarr"
    run(path)
    before = files(path)
    other = json.loads(json.dumps(ATTRIBUTES))
    other["study"]["inputs"]["a"]["sigma"] = 0.7
    with pytest.raises(StoreDiffers, match=r"study/inputs/a/sigma: 0.5 -> 0.7"):
        with session(path, Waves().layout(), other):
            pass
    with pytest.raises(StoreDiffers, match=r"layout/count: 23 -> 24"):
        run(path, Waves(count=24))
    assert files(path) == before


def test_the_chunk_size_of_a_store_is_kept(tmp_path):
    path = tmp_path / "waves.zarr"
    run(path, chunks=[0, 3])
    assert len(run(path, Waves(chunk=8))) == 3


def test_differences_are_listed_by_path():
    nan = float("nan")
    assert differences({"a": nan, "b": [1, {"c": 2}]}, {"a": nan, "b": [1, {"c": 3}]}) == [
        "b/1/c: 2 -> 3"
    ]
    assert differences({"a": 1}, {"b": None}) == ["a: 1 -> nothing", "b: nothing -> None"]
    assert differences([1], [1, 2], "x") == ["x: [1] -> [1, 2]"]


def test_what_is_no_store_is_not_touched(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("dear")
    (tmp_path / "file").write_text("dear")
    xarray.Dataset({"x": ("y", [1.0])}).to_zarr(tmp_path / "other.zarr", consolidated=False)
    before = files(tmp_path)
    for name in ("folder", "file", "other.zarr"):
        with pytest.raises(StoreError, match="not a study's store"):
            run(tmp_path / name)
        with pytest.raises(StoreError, match="exists"):
            StudyStore.create(tmp_path / name, Waves().layout(), {})
    assert files(tmp_path) == before
    with pytest.raises(FileNotFoundError, match="no store at"):
        StudyStore.open(tmp_path / "nothing")


def test_layouts_that_cannot_be_are_refused_at_once():
    fields = {
        "a/b": Field(),
        "x": Field((3,), "float64", ()),
        "y": Field((0,), "float64", ("t",)),
        "z": Field((4,), "complex64", ("t",)),
        "big": Field((2**20,), "float64", ("u",)),
        "w": Field((4,), "float64", ("u",)),
        "back\\slash": Field(),
        "zarr.json": Field(),
    }
    with pytest.raises(ValueError) as error:
        Layout(0, 1000, fields, {"w": ((), "text", {})})
    for word in ("0 samples", "'a/b'", "'x' has shape", "no numbers", "complex64", "8.4 GB"):
        assert word in str(error.value)
    assert "'back\\slash' cannot" in str(error.value) and "'zarr.json' cannot" in str(error.value)
    assert "'w' is both" in str(error.value) and "dimension 'u' is 4" in str(error.value)


def test_wrong_arrays_are_not_stored(tmp_path):
    study = Waves()
    store = StudyStore.create(tmp_path / "s.zarr", study.layout(), {})
    arrays = study.compute(0, 5)
    for wrong in ({"a": np.zeros(4)}, {"a": np.zeros(5, complex)}, {"b": np.zeros(5)}):
        with pytest.raises(ValueError, match="chunk 0"):
            store.write(0, arrays | wrong)
    assert store.missing() == [0, 1, 2, 3, 4]


def test_progress_and_reports(tmp_path):
    begun = time.perf_counter()
    seen = run(tmp_path / "waves.zarr")
    took = time.perf_counter() - begun
    assert [(r.chunk, r.rows) for r in seen] == [(0, 5), (1, 5), (2, 5), (3, 5), (4, 3)]
    assert sum(r.failures for r in seen) == 3
    assert 0 < sum(r.computing + r.storing for r in seen) <= took


class Prepared(Waves):
    """What is prepared ahead comes back to the chunk that it is for."""

    def prepare(self, start, stop):
        return {"row": np.arange(start, stop)}

    def compute(self, start, stop, prepared):
        np.testing.assert_array_equal(prepared["row"], np.arange(start, stop))
        return super().compute(start, stop)


def test_inputs_are_prepared_ahead(tmp_path, whole):
    run(tmp_path / "waves.zarr", Prepared())
    assert files(tmp_path / "waves.zarr") == files(whole)


class Stopping(Waves):
    def compute(self, start, stop):
        if start >= 10:
            raise KeyboardInterrupt
        return super().compute(start, stop)


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_ctrl_c_says_how_to_go_on(tmp_path, whole, pool):
    path = tmp_path / "waves.zarr"
    with pytest.raises(Interrupted, match="2 of 5 chunks are stored .* to go on"):
        run(path, Stopping(), executor=pool and pool(1))
    assert beside(path) == ["waves.zarr", "waves.zarr.log"]
    run(path)
    assert files(path) == files(whole)
