"""What CANN's compiler needs and what another package overwrote, put in place in real environments, and undone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers import fixing
from helpers.wheels import Cann, make_wheel

from envtune.job.target import TargetOptions
from envtune.model import FixOptions
from envtune.resources.torch.install_packages import PACKAGES
from envtune.resources.torch.requirements import COMPILER

pytestmark = pytest.mark.slow
VERSIONS = {"numpy": "1.26.4", "mpmath": "1.3.0", "sympy": "1.12", "cffi": "1.16.0", "decorator": "5.1.1"}


class Stack(Cann):
    """A CANN 5.0.2, an environment with torch and torch_npu, and a directory of wheels in place of an index."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.index = folder / "index"
        self.index.mkdir()
        self.given = folder / "given"
        self.given.mkdir()
        self.install("torch", "2.5.1", {"torch/__init__.py": ""})
        self.install("torch-npu", "2.5.1.post1", {"torch_npu/__init__.py": ""})

    def install(self, name: str, version: str, files: Mapping[str, str]) -> None:
        self.pip("install", "--no-index", "--no-deps", str(make_wheel(self.given, name, version, files)))

    def offer(self, name: str, version: str, text: str = "") -> None:
        """Put a wheel into the directory that holds what PACKAGES says of the package."""
        files = {}
        for module in PACKAGES[name].modules:
            if module.endswith(".py"):
                files[module] = text
            elif "/" not in module and "*" not in module:
                files[f"{module}/__init__.py"] = text
        files[PACKAGES[name].proof.replace(".", "/") + "/x.py"] = ""
        if name == "numpy":  # as numpy 1.26 does: pip compiles it anew
            files[f"numpy/__pycache__/x.{sys.implementation.cache_tag}.pyc"] = "old"
        if name == "decorator":
            files = {"decorator.py": text}
        if name == "attrs":
            files["attr/validators.py"] = ""
            del files["attr/validators/x.py"]
        make_wheel(self.index, name, version, files)

    def job(self) -> Any:
        return fixing.local_context(target=TargetOptions(python=str(self.python), env_file=str(self.env_file)))

    def told(self, id_: str) -> dict[str, str]:
        return {finding.subject: finding.outcome.value for finding in fixing.find(self.job(), id_)}

    def files(self) -> dict[str, str]:
        (site,) = self.env.glob("lib/python*/site-packages")
        own = ("pip", "setuptools", "__pycache__")
        rows = (path for path in sorted(site.rglob("*")) if path.is_file() and path.suffix != ".pyc")
        return {str(path): path.read_text() for path in rows if not str(path.relative_to(site)).startswith(own)}

    def fix(self, id_: str) -> tuple[str, list[Any]]:
        plan = fixing.plan(self.job(), id_, options=FixOptions(wheels=str(self.index)))
        run, results = fixing.apply(plan, str(self.state))
        assert {result["status"] for result in results.values()} == {"done"}, (plan.skipped, results)
        return run, list(plan.changes)

    def value(self, code: str) -> str:
        done = subprocess.run([str(self.python), "-I", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def test_what_the_compiler_needs_is_installed_and_undone(stack: Stack) -> None:
    for name in (*COMPILER, "mpmath", "pycparser"):
        stack.offer(name, VERSIONS.get(name, "9.9"))
    before = stack.files()
    assert set(stack.told("PY102").values()) == {"fail"}
    run, _ = stack.fix("PY102")
    assert set(stack.told("PY102").values()) == {"pass"}
    assert stack.value("import numpy, sympy, mpmath, attr.validators, google.protobuf; print('all')") == "all"
    assert fixing.undo(run, str(stack.state)) == []
    assert stack.files() == before


@pytest.mark.parametrize(("id_", "present"), [("PY104", "2.2.6"), ("PY103", "1.9.0")])
def test_a_numpy_that_does_not_fit_is_replaced_by_the_newest_numpy_1(stack: Stack, id_: str, present: str) -> None:
    for name in COMPILER:
        stack.offer(name, VERSIONS.get(name, "9.9"), "release = 'index'\n")
        if name != "numpy":
            stack.install(name, VERSIONS.get(name, "9.9"), {f"{name}_of_before.py": ""})
    stack.offer("numpy", "2.2.7")
    stack.install("numpy", present, {"numpy/__init__.py": f"release = {present!r}\n", "numpy/only.py": ""})
    before = stack.files()
    assert "fail" in stack.told(id_).values()
    run, changes = stack.fix(id_)
    assert [change.before for change in changes] == [f"numpy {present}"]
    assert "fail" not in stack.told(id_).values()
    assert stack.value("import numpy; print(numpy.release)") == "index"
    assert fixing.undo(run, str(stack.state)) == []
    assert stack.files() == before


@pytest.mark.parametrize(
    ("id_", "wanted", "other", "module"),
    [("PY105", "attrs", "attr", "attr"), ("PY106", "triton-ascend", "triton", "triton")],
)
def test_the_overwritten_package_is_whole_again_and_undone(
    stack: Stack, id_: str, wanted: str, other: str, module: str
) -> None:
    stack.install(wanted, "3.2.0", {f"{module}/__init__.py": "who = 'wanted'\n", f"{module}/part.py": "x = 1\n"})
    stack.install(other, "3.1.0", {f"{module}/__init__.py": "who = 'other'\n", f"{module}/more.py": "y = 2\n"})
    stack.offer(wanted, "3.2.0", "who = 'wanted'\n")
    stack.offer(wanted, "3.3.0", "who = 'newer'\n")
    assert stack.value(f"import {module}; print({module}.who)") == "other"
    before = stack.files()
    assert stack.told(id_) == {wanted: "fail"}
    run, _ = stack.fix(id_)
    assert stack.told(id_) == {wanted: "pass"}
    kept = PACKAGES[wanted].keeps_version
    assert stack.value(f"import {module}; print({module}.who)") == ("wanted" if kept else "newer")
    assert not [path for path in stack.files() if path.endswith(f"/{module}/more.py")]
    assert fixing.undo(run, str(stack.state)) == []
    assert stack.files() == before


@pytest.mark.parametrize("wheel", ["0.20.1", "0.20.1+cpu"])
def test_the_torchvision_of_another_torch_is_replaced_and_undone(stack: Stack, wheel: str) -> None:
    def files(who: str) -> dict[str, str]:
        return {"torchvision/__init__.py": f"import torch\nwho = {who!r}\n", f"torchvision/only_{who}.py": ""}

    other = make_wheel(stack.given, "torchvision", "0.21.0", files("other"), "Requires-Dist: torch==2.6.0\n")
    stack.pip("install", "--no-index", "--no-deps", str(other))
    make_wheel(stack.index, "torchvision", wheel, files("wanted"), "Requires-Dist: torch (==2.5.1)\n")
    make_wheel(stack.index, "torchvision", "0.22.0", files("newest"), "Requires-Dist: torch==2.7.0\n")
    before = stack.files()
    assert stack.told("PY108") == {"torchvision": "fail"}
    run, changes = stack.fix("PY108")
    assert [(change.before, change.after) for change in changes] == [("torchvision 0.21.0", "torchvision==0.20.1")]
    assert stack.told("PY108") == {"torchvision": "pass"}
    assert stack.value("import torchvision; print(torchvision.who)") == "wanted"
    assert not [path for path in stack.files() if path.endswith("/only_other.py")]
    assert fixing.undo(run, str(stack.state)) == []
    assert stack.files() == before


def test_a_torchvision_that_cannot_be_imported_leaves_the_one_before(stack: Stack) -> None:
    other = make_wheel(
        stack.given, "torchvision", "0.21.0", {"torchvision/__init__.py": ""}, "Requires-Dist: torch==2.6.0\n"
    )
    stack.pip("install", "--no-index", "--no-deps", str(other))
    make_wheel(stack.index, "torchvision", "0.20.1", {"torchvision/__init__.py": "raise ImportError('_C.so')\n"})
    before = stack.files()
    plan = fixing.plan(stack.job(), "PY108", options=FixOptions(wheels=str(stack.index)))
    _, results = fixing.apply(plan, str(stack.state))
    assert {result["status"] for result in results.values()} == {"failed"}
    assert stack.files() == before
