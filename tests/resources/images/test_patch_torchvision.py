"""torchvision's import of PILLOW_VERSION: found by its content in several shapes, wrapped, and taken back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import fixing
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Outcome
from envtune.resources.images.opencv import pillow_version_import
from envtune.resources.images.patch_torchvision import guarded

BODY = "\n\ndef _is_pil_image(img):\n    return PILLOW_VERSION[0] >= '5'\n"
V022 = (  # the head of torchvision 0.2.2
    "from __future__ import division\nimport torch\nimport sys\nimport math\n"
    "from PIL import Image, ImageOps, ImageEnhance, PILLOW_VERSION\n"
    "try:\n    import accimage\nexcept ImportError:\n    accimage = None\nimport numpy as np\n" + BODY
)
PARENTHESES = (
    "from PIL import (\n    Image,\n    PILLOW_VERSION as PV,  # the version\n    ImageOps,\n)  # noqa\n" + BODY
)
ALONE = "import math\nfrom PIL import PILLOW_VERSION\n" + BODY
INDENTED = "import sys\nif sys.version_info > (3,):\n\tfrom PIL import Image, PILLOW_VERSION\n" + BODY
WINDOWS = V022.replace("\n", "\r\n")
SHAPES = {"0.2.2": V022, "parentheses": PARENTHESES, "alone": ALONE, "indented": INDENTED, "windows": WINDOWS}


@pytest.mark.parametrize("text", list(SHAPES.values()), ids=list(SHAPES))
def test_only_the_import_changes_and_the_check_passes(text: str) -> None:
    patched = guarded(text, "functional.py")
    compile(patched, "functional.py", "exec")
    assert pillow_version_import(patched.partition("def ")[0], "functional.py")[1] is True  # type: ignore[index]
    kept = [line for line in text.splitlines() if "PIL" not in line and "    Image" not in line]
    assert all(line in patched for line in kept)
    assert ("\r\n" in patched) == ("\r\n" in text) and patched.count("\n") == patched.count(
        "\r\n" if "\r\n" in text else "\n"
    )


@pytest.mark.parametrize("has", [True, False], ids=["6.2", "9.5"])
@pytest.mark.parametrize("text", list(SHAPES.values()), ids=list(SHAPES))
def test_the_names_are_the_same_with_and_without_it(text: str, has: bool) -> None:
    """Run for real against a PIL that has PILLOW_VERSION and one that has not."""
    head = guarded(text, "functional.py").partition("def ")[0]
    for line in ("import torch\n", "import numpy as np\n"):
        head = head.replace(line, "").replace(line.replace("\n", "\r\n"), "")
    given = "pil.PILLOW_VERSION = '6.2.2'\n" if has else ""
    code = (
        "import sys, types\npil = types.ModuleType('PIL')\nfor name in ('Image', 'ImageOps', 'ImageEnhance'):\n"
        f"    setattr(pil, name, name)\n{given}sys.modules['PIL'] = pil\nspace = {{}}\nexec({head!r}, space)\n"
        "print(space.get('PILLOW_VERSION') or space.get('PV'), space.get('Image'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    version, image = done.stdout.split()
    assert version == ("6.2.2" if has else "7.0.0")
    assert image == ("None" if text == ALONE else "Image")


# ---------------------------------------------------------------------- as a plan

SITE = "/usr/local/python3.7.5/lib/python3.7/site-packages"


def plan(functional: str, **files: Any) -> Plan:
    rows = {
        f"{SITE}/torchvision/__init__.py": "",
        f"{SITE}/torchvision/transforms/functional.py": functional,
        f"{SITE}/PIL/__init__.py": "from . import _version\n__version__ = _version.__version__\n",
        f"{SITE}/PIL/_version.py": '__version__ = "9.5.0.post2"\n',
    }
    context = example_context({"like": "torch150", "files": {**rows, **files}})
    findings = [f for check in load().checks if check.id == "IMG004" for f in examine(check, context)]
    return make_plan(findings, load().playbooks, context)


# ---------------------------------------------------------------------- for real


def test_patched_checked_and_taken_back(tmp_path: Path) -> None:
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    site = next(env.glob("lib/python*/site-packages"))
    (site / "torchvision/transforms").mkdir(parents=True)
    (site / "torchvision/__init__.py").touch()
    path = site / "torchvision/transforms/functional.py"
    path.write_text(V022)
    path.chmod(0o640)
    (site / "PIL").mkdir()
    (site / "PIL/__init__.py").write_text("__version__ = '9.5.0'\n")

    def context() -> Any:
        return fixing.local_context(target=TargetOptions(python=str(env / "bin/python")))

    assert [f.outcome for f in fixing.find(context(), "IMG004")] == [Outcome.FAIL]
    made = fixing.plan(context(), "IMG004")
    assert LocalHost().read(str(path)) == V022, "a plan writes nothing"
    run, results = fixing.apply(made, str(tmp_path / "state"))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert [f.outcome for f in fixing.find(context(), "IMG004")] == [Outcome.PASS]
    assert path.read_text() == guarded(V022, str(path)) and path.stat().st_mode & 0o777 == 0o640
    assert fixing.plan(context(), "IMG004").changes == ()
    assert fixing.undo(run, str(tmp_path / "state")) == []
    assert path.read_text() == V022


def test_a_file_that_was_edited_meanwhile_is_refused(tmp_path: Path) -> None:
    from envtune.executor.run import apply_plan
    from envtune.fix.plan import executable

    made = plan(V022)
    operation = dict(executable(made.changes)["changes"][0]["operations"][0], path=str(tmp_path / "functional.py"))
    (tmp_path / "functional.py").write_text(V022 + "# mine\n")
    _, results = apply_plan({"changes": [{"id": "C01", "operations": [operation]}]}, str(tmp_path / "state"))
    assert results[0]["status"] == "refused" and (tmp_path / "functional.py").read_text().endswith("# mine\n")
