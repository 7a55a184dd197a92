"""A study that another process has traced is not traced again, if it is certain to be the same."""

import os
import subprocess
import sys

import pytest
from repository import ROOT

from jaxmbd.campaign import known_program
from jaxmbd.campaign.known_modules import Unknown

# The tests' own process has an import hook, by which no part of the package is what it was.
STUDY = """
import pickle, sys
from unittest import mock
import jax, numpy as np, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import jaxmbd as mbd
from jaxmbd.campaign import Study, known_program
from jaxmbd.lanes.known_traces import Recalled
from jaxmbd.observe import Coordinate, Pose
from jaxmbd.sampling import Normal

class Foreign(Coordinate):
    pass

def study(held=0.3, stretch=1.0, what=Coordinate, **options):
    crank = mbd.zoo.rssr()
    crank = crank.replace(points={"A": stretch * crank.points["A"]}) if stretch != 1.0 else crank
    pose = Pose({"crank": held}, {"rocker": what("rocker")})
    options = {"observe": pose, "samples": 5, "seed": 3} | options
    return Study(crank, {"points/A": Normal(1e-3)}, **options)

def function(study):
    eqns, found = list(study.program._traced.jaxpr.eqns), []
    for eqn in eqns:
        for x in eqn.params.values():
            eqns.extend(getattr(getattr(x, "jaxpr", x), "eqns", ()))
        found += [eqn.params["key"].function] if eqn.primitive.name == "lanes" else []
    return found[0]

def text(study):
    return known_program.identity(study.program.function)
"""
RUN = """
for each in (study(), pickle.loads(pickle.dumps(study()))):
    print(isinstance(function(each), Recalled), file=sys.stderr)
    print(each.program.digest, each.program.outputs)
    print({n: x.tolist() for n, x in each.evaluate(each.draw()).items()})
    print("traced" in vars(function(each)), file=sys.stderr)
print(study().sensitivities()["rocker"].gradient)
"""
CHANGES = """
import jaxmbd.analysis.assembly as assembly
import jaxmbd.observe.pose as pose
from jaxmbd.model.joints import JOINT_TYPES, Revolute

first = text(study())
assert first is not None and first == text(study()) == text(study(seed=4, samples=9, title="x"))

changes = {
    "an input's nominal value": study(stretch=1.1),
    "a setting of the experiment": study(held=0.4),
    "names of outputs": study(observe=Pose({"crank": 0.3}, {"angle": Coordinate("rocker")})),
}
texts = {name: text(x) for name, x in changes.items()}
patches = {
    "a constant": mock.patch.object(assembly, "_STEP_ANGLE", 0.125),
    "a function of JAX for another": mock.patch.object(jnp, "sin", jnp.cos),
    "a number of JAX": mock.patch.object(jnp, "pi", 3.0),
    "a function of the package for another": mock.patch.object(pose, "attempt", pose.place),
    "a default argument": mock.patch.object(pose.place, "__defaults__", (True,)),
    "an attribute of a class": mock.patch.object(Pose, "settle", True),
    "a table": mock.patch.dict(JOINT_TYPES, {"Hinge": Revolute}),
}
for name, patch in patches.items():
    with patch:
        texts[name] = text(study())
assert None not in texts.values(), texts
assert len({first, *texts.values()}) == 1 + len(texts), texts
assert text(study()) == first
"""
DOUBTS = """
import functools, importlib, math, pathlib
from contextlib import contextmanager
from functools import partial
import jaxmbd.observe.pose as pose
import jaxmbd.analysis.statics as statics
import jaxmbd.observe.angles as angles
from jaxmbd.model.joints import JOINT_TYPES, Revolute

def own(*args, **kwargs):
    return attempt(*args, **kwargs)

def wrapper(fn):
    return functools.wraps(fn)(lambda *args: own(*args))

@contextmanager
def code():
    kept, pose.place.__code__ = pose.place.__code__, own.__code__
    yield
    pose.place.__code__ = kept

attempt, held = pose.attempt, study()
own_class = type("Revolute", (Revolute,), {})
# A module of a user's that has the name of one of Python's.
pathlib.Path(sys.argv[1], "colorsys.py").write_text("def model(sample): return dict(sample)")
sys.path.insert(0, sys.argv[1])
named_alike = importlib.import_module("colorsys").model
objects = {
    "a user's function": lambda sample: sample,
    "a user's function in a module named like Python's": named_alike,
    "a traced value": None,
    "an object": object(),
}
for name, x in objects.items():
    if x is not None:
        assert known_program.identity(x) is None, name
jax.jit(lambda x: objects.update(found=known_program.identity(partial(pose.place, x))))(1.0)
assert objects["found"] is None
assert text(study(what=Foreign)) is None
patches = {
    "a function for a user's": mock.patch.object(pose, "attempt", own),
    "a mock": mock.patch.object(pose, "attempt"),
    "a method for a user's": mock.patch.object(angles.Coordinate, "__call__", own, create=True),
    "the code of a function": code(),
    "a class for a user's": mock.patch.object(pose, "Placed", own_class),
    "a table with a user's class": mock.patch.dict(JOINT_TYPES, {"Own": own_class}),
    "a number of the source": mock.patch.object(statics, "_CLOSING", 6),
    "a function of JAX": mock.patch.object(jnp, "sin", own),
    "a wrapper of a function of JAX": mock.patch.object(jnp, "where", wrapper(jnp.where)),
    "an object for a function of JAX": mock.patch.object(jnp, "sin", Foreign("rocker")),
    "a partial function of JAX": mock.patch.object(jnp, "sin", partial(own)),
    "a function of jax.numpy.linalg": mock.patch.object(jnp.linalg, "solve", own),
    "a function of Python": mock.patch.object(math, "sin", own),
    "a default argument": mock.patch.object(pose.place, "__defaults__", (own,)),
    "a module": mock.patch.dict(sys.modules, {"jaxmbd.own": pathlib}),
    "changed files": mock.patch.object(known_program, "BEGUN", 0.0),
}
for name, patch in patches.items():
    with patch:
        assert text(held) is None, name
assert text(held) is not None
"""
PASSING = """
import jaxmbd.kinematics.propagation as propagation

compose = propagation.compose
with mock.patch.object(propagation, "compose", lambda *a: 1.001 * compose(*a)):
    held = study()
    held.evaluate(held.draw())
again = function(study())
assert not isinstance(again, Recalled)
jax.clear_caches()
assert function(study()).traced is not again
"""


def run(cache, text, *arguments, seed="1", devices="1"):
    environment = {
        **os.environ,
        "JAXMBD_LANES_CACHE": str(cache),
        "JAX_NUM_CPU_DEVICES": devices,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-W", "ignore", "-c", STUDY + text, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("devices", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_a_second_process_does_not_trace_and_finds_the_same(tmp_path, devices):
    first = run(tmp_path, RUN, devices=devices)
    second = run(tmp_path, RUN, seed="2", devices=devices)
    assert first.stderr.split() == ["False", "False", "True", "False"]
    assert second.stderr.split() == ["True", "False"] * 2
    assert first.stdout == second.stdout


def test_whatever_changes_the_program_changes_its_text(tmp_path):
    run(tmp_path, CHANGES)


def test_whatever_is_in_doubt_has_no_text(tmp_path):
    run(tmp_path, DOUBTS, str(tmp_path))


def test_what_was_replaced_for_a_while_does_not_get_to_disk(tmp_path):
    run(tmp_path, PASSING)


def test_files_count_by_what_is_in_them_unless_they_were_changed(monkeypatch, tmp_path):
    monkeypatch.setattr(known_program, "FOLDER", str(tmp_path))
    monkeypatch.setattr(known_program, "BEGUN", float("inf"))
    found = []
    for folder, text in (("a", "x = 1"), ("a", "x = 2"), ("b", "x = 2"), ("__pycache__", "x")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "m.py").write_text(text)
        found.append(known_program._files())
    assert len(set(found)) == 3 and found[2] == found[3]
    monkeypatch.setattr(known_program, "BEGUN", (tmp_path / "a" / "m.py").stat().st_mtime - 1.0)
    with pytest.raises(Unknown, match="changed"):
        known_program._files()
