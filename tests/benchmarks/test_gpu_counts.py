"""The committed counts of GPU kernels are those of today's code."""

import json

import gpu_counts
import pytest
from gpu_cases import counts
from repository import ROOT
from throughput_cases.work import FORWARD, ROLLOUT

from jaxmbd.lanes.targets import ptx

PATH = ROOT / "benchmarks" / "results" / "gpu_counts.json"
KERNELS = (
    ("rssr", FORWARD, "float64"), ("chain8", FORWARD, "float32"), ("rssr", ROLLOUT, "float64"),
)  # fmt: skip
ARCHITECTURES = ("sm_90", "sm_120")
needs_assembler = pytest.mark.skipif(ptx.assembler() is None, reason="there is no ptxas")


def committed():
    return json.loads(PATH.read_text("utf-8"))


def row_of(name, work, dtype):
    (row,) = (
        r for r in committed()["rows"] if (r["case"], r["work"], r["dtype"]) == (name, work, dtype)
    )
    return row


def skip_others(*tools):
    """Skip the test where a tool is of another release than the table's."""
    for tool in tools:
        mine, its = counts.versions()[tool], committed()["versions"][tool]
        if mine.split(".")[:2] != its.split(".")[:2]:
            pytest.skip(f"{tool} is {mine}, that of the table is {its}")


def close(number):
    return pytest.approx(number, rel=0.05)


@needs_assembler
@pytest.mark.parametrize(("name", "work", "dtype"), KERNELS)
def test_the_assembler_finds_what_is_committed(name, work, dtype):
    skip_others("jax", "llvm", "ptxas")
    row = row_of(name, work, dtype)
    ir, facts = counts.facts(counts.kernel(name, work, dtype)[0])
    assert facts == {key: close(row[key]) for key in facts}
    for arch in ARCHITECTURES:
        numbers = counts.assembled(ptx.generate(ir, arch), arch)
        assert numbers == {key: close(x) for key, x in row["assembled"][arch].items()}, arch


@pytest.mark.parametrize(("name", "work", "dtype"), KERNELS)
def test_samples_execute_what_is_committed(name, work, dtype):
    skip_others("jax", "llvm")
    done = counts.executed(*counts.kernel(name, work, dtype))
    assert done == {key: close(x) for key, x in row_of(name, work, dtype)["executed"].items()}
    assert done["f32" if dtype == "float64" else "f64"] == 0


def test_the_table_has_all_kernels():
    kinds = {(r["case"], r["work"], r["dtype"]) for r in committed()["rows"]}
    assert kinds == {(c, w, d) for c in counts.CASES for w in counts.STEPS for d in counts.DTYPES}
    for row in committed()["rows"]:
        assert tuple(row["assembled"]) == counts.architectures(row["work"], row["dtype"])
        assert all("refused" not in x for x in row["assembled"].values())


@needs_assembler
def test_the_command_writes_its_numbers(tmp_path, capsys):
    path = tmp_path / "counts.json"
    gpu_counts.main(
        ["--cases", "rssr", "--works", FORWARD, "--dtypes", "float32", "--archs", "sm_80"]
        + ["--json", str(path)]
    )
    (row,) = json.loads(path.read_text("utf-8"))["rows"]
    assert row["assembled"]["sm_80"]["registers"] > 64
    assert row["argument_bytes"] == 4 * (3 * 9 + 7 + 4)
    assert "rssr, forward dynamics, float32" in capsys.readouterr().out


@needs_assembler
def test_what_the_assembler_refuses_is_a_row():
    found = counts.assembled("no code", "sm_90")
    assert list(found) == ["refused"] and "ptxas" in found["refused"]
