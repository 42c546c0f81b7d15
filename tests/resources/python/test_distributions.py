"""What the job's Python can import, read from its site directories: names, versions, places, damage."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any, Optional

import pytest

from envtune.collector.python.distributions import distribution_of
from envtune.context import Context
from envtune.context.open import open_context
from envtune.errors import Denied, NotApplicable, Undetermined
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.resources.python.distributions import environment, installed, locate, package_fact
from envtune.resources.python.metadata import parse_finder, parse_metadata
from envtune.snapshot.host import SnapshotHost

SITE = "/opt/py/lib/python3.8/site-packages"
PYTHON = {"/opt/py/bin/python3.8": "\x7fELF", "/opt/py/bin/python3": {"link": "python3.8"}, SITE: {"dir": []}}


def context(files: dict[str, Any], **environ: str) -> Context:
    variables = {"PATH": "/opt/py/bin", "HOME": "/home/train", **environ}
    return open_context(SnapshotHost({"files": {**PYTHON, **files}, "environ": variables, "cwd": "/home/train"}))


def wheel(name: str, version: str, metadata: Optional[str] = None) -> dict[str, Any]:
    text = (
        metadata if metadata is not None else f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nLong text\n"
    )
    return {f"{SITE}/{name.replace('-', '_')}-{version}.dist-info/METADATA": text}


def version(files: dict[str, Any], name: str, **environ: str) -> Optional[str]:
    found = installed(context(files, **environ), name)
    return found.version if found else None


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("Pillow_SIMD-9.0.0.post1.dist-info", ("pillow-simd", "9.0.0.post1")),
        ("torch-1.5.0+ascend.post3.dist-info", ("torch", "1.5.0+ascend.post3")),
        ("torch_npu-2.1.0.post10.dist-info", ("torch-npu", "2.1.0.post10")),
        ("ruamel.yaml-0.17.4.dist-info", ("ruamel-yaml", "0.17.4")),
        ("PyYAML-5.3.1.egg-info", ("pyyaml", "5.3.1")),
        ("te-0.4.0-py3.7.egg-info", ("te", "0.4.0")),
        ("mmcv_full-1.2.7-py3.7-linux-x86_64.egg", ("mmcv-full", "1.2.7")),
        ("apex.egg-link", ("apex", "")),
        ("foo.egg-info", ("foo", "")),
        ("torch", None),
        ("torch.libs", None),
    ],
)
def test_names_and_versions_that_directories_are_called_after(file: str, expected: Optional[tuple[str, str]]) -> None:
    assert distribution_of(file) == expected


@pytest.mark.parametrize("asked", ["pillow-simd", "Pillow_SIMD", "pillow.simd", "PILLOW--SIMD"])
def test_names_are_compared_as_pep_503_says(asked: str) -> None:
    files = wheel("Pillow-SIMD", "9.0.0.post1")
    assert version(files, asked) == "9.0.0.post1"


def test_every_form_of_metadata() -> None:
    files = {
        **wheel("torch", "1.8.1"),
        f"{SITE}/numpy-1.19.5-py3.8.egg-info/PKG-INFO": "Metadata-Version: 1.2\r\nName: numpy\r\nVersion: 1.19.5\r\n",
        f"{SITE}/six-1.16.0.egg-info": "Metadata-Version: 1.0\nName: six\nVersion: 1.16.0\n",
        f"{SITE}/mmcv-1.2.7-py3.8.egg/EGG-INFO/PKG-INFO": "Name: mmcv\nVersion: 1.2.7\n",
        f"{SITE}/zipped-0.1-py3.8.egg": "PK",
        f"{SITE}/easy-install.pth": "./mmcv-1.2.7-py3.8.egg\n./zipped-0.1-py3.8.egg\n/src/apex\n",
        f"{SITE}/apex.egg-link": "/src/apex\n.",
        "/src/apex/apex.egg-info/PKG-INFO": "Name: apex\nVersion: 0.1\n",
        "/src/apex/apex/__init__.py": "",
    }
    expected = {"torch": "1.8.1", "numpy": "1.19.5", "six": "1.16.0", "mmcv": "1.2.7", "zipped": "0.1", "apex": "0.1"}
    assert {name: version(files, name) for name in expected} == expected
    assert locate(context(files), "apex") == "/src/apex/apex"
    assert version(files, "absent") is None


def test_pythonpath_comes_first_and_pth_lines_are_followed_once() -> None:
    files = {
        "/src/own/torch/__init__.py": "",
        f"{SITE}/torch/__init__.py": "",
        f"{SITE}/a.pth": "# comment\nimport os; os.system('touch /tmp/x')\n/src/extra\n\n/src/gone\n",
        f"{SITE}/b.pth": "/src/extra\n../../extra2\n",
        "/src/extra/b.pth": "/src/nested\n",
        "/src/nested": {"dir": []},
        "/opt/py/lib/extra2": {"dir": []},
    }
    known = environment(context(files, PYTHONPATH="/src/own:"))
    assert known.entries == ("/src/own", SITE, "/src/extra", "/opt/py/lib/extra2")
    assert locate(context(files, PYTHONPATH="/src/own"), "torch") == "/src/own/torch"
    assert locate(context(files), "torch") == f"{SITE}/torch"


def test_user_site_hides_the_system_site() -> None:
    user = "/home/train/.local/lib/python3.8/site-packages"
    files = {**wheel("torch", "1.8.1"), f"{user}/torch-1.11.0.dist-info/METADATA": "Name: torch\nVersion: 1.11.0\n"}
    assert version(files, "torch") == "1.11.0"
    assert version(files, "torch", PYTHONNOUSERSITE="1") == "1.8.1"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{SITE}/te/__init__.py": "", f"{SITE}/te.py": ""}, f"{SITE}/te"),
        ({f"{SITE}/te.abi3.so": "", f"{SITE}/te.py": ""}, f"{SITE}/te.abi3.so"),
        ({f"{SITE}/te.py": "", f"{SITE}/te.pyc": ""}, f"{SITE}/te.py"),
        ({f"{SITE}/te/__init__.pyc": ""}, f"{SITE}/te"),
        ({f"{SITE}/te/tvm/x.py": ""}, f"{SITE}/te"),
        ({f"{SITE}/ten/__init__.py": "", f"{SITE}/te.txt": "", f"{SITE}/te.old.py": ""}, None),
        ({"/src/ns/te/x.py": "", f"{SITE}/te/__init__.py": ""}, f"{SITE}/te"),
    ],
)  # fmt: skip
def test_place_of_a_module_is_found_as_import_finds_it(files: dict[str, Any], expected: Optional[str]) -> None:
    assert locate(context(files, PYTHONPATH="/src/ns"), "te") == expected


def test_editable_install_by_a_finder() -> None:
    finder = (
        "from __future__ import annotations\nMAPPING: dict[str, str] = {'apex': '/src/apex/apex'}\nNAMESPACES = {}\n"
    )
    files = {
        f"{SITE}/__editable__.apex-0.1.pth": "import __editable___apex_0_1_finder as f; f.install()",
        f"{SITE}/__editable___apex_0_1_finder.py": finder,
    }
    assert locate(context(files), "apex") == "/src/apex/apex"
    assert parse_finder("MAPPING = {'a': open('/etc/passwd')}") == {}
    assert parse_finder("MAPPING = {'a': \n") == {} and parse_finder("") == {}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("Version: 1.8.1\n", "has no Name"),
        ("Name: torch\n", "has no Version"),
        ("", "has no Name"),
        ("Name: other\nVersion: 1.8.1\n", "names it other"),
    ],
)
def test_damaged_metadata_is_named(metadata: str, words: str) -> None:
    with pytest.raises(Undetermined) as raised:
        version(wheel("torch", "1.8.1", metadata), "torch")
    assert words in raised.value.reason.en
    assert f"{SITE}/torch-1.8.1.dist-info" in raised.value.reason.en
    assert raised.value.reason.zh


def test_metadata_directory_without_its_file_is_damaged() -> None:
    with pytest.raises(Undetermined, match="no metadata file"):
        version({f"{SITE}/torch-1.8.1.dist-info/RECORD": ""}, "torch")


def test_author_in_latin_1_spoils_no_version() -> None:
    data = "Name: torch\nVersion: 1.8.1\nAuthor: Jürgen\n".encode("latin-1")
    assert parse_metadata(data) == {"name": "torch", "version": "1.8.1", "author": "J�rgen"}
    encoded = {"base64": base64.b64encode(data).decode("ascii")}
    assert version({f"{SITE}/torch-1.8.1.dist-info/METADATA": encoded}, "torch") == "1.8.1"


def test_two_versions_in_one_directory_are_settled_by_the_package_itself_or_not_at_all() -> None:
    files = {**wheel("torch", "1.8.1"), **wheel("torch", "1.11.0"), f"{SITE}/torch/__init__.py": ""}
    with pytest.raises(Undetermined, match="has torch"):
        version(files, "torch")
    with pytest.raises(Undetermined):
        package_fact(context(files), "torch", "torch")
    files[f"{SITE}/torch/version.py"] = "__version__ = '1.11.0'\n"
    assert package_fact(context(files), "torch", "torch").value == "1.11.0"


def test_torch_built_in_place_has_a_version_without_metadata() -> None:
    files = {"/src/torch/__init__.py": "", "/src/torch/version.py": "__version__ = '1.5.0a0+4ff3872'\n"}
    fact = package_fact(context({f"{SITE}/dev.pth": "/src\n", **files}), "torch", "torch")
    assert (fact.value, fact.source) == ("1.5.0a0+4ff3872", "/src/torch/version.py")


def test_absent_is_none_and_closed_is_unknown() -> None:
    assert package_fact(context({}), "torch", "torch").value == "none"
    closed = context({SITE: {"error": "EACCES"}})
    with pytest.raises(Denied):
        package_fact(closed, "torch", "torch")
    assert closed.facts["torch"].value is None and "cannot be read" in str(closed.facts["torch"].reason)
    user = "/home/train/.local/lib/python3.8/site-packages"
    seen = {SITE: {"error": "EACCES"}, f"{user}/torch-1.8.1.dist-info/METADATA": "Name: torch\nVersion: 1.8.1\n"}
    assert version(seen, "torch") == "1.8.1", "what comes first on the path decides"


def test_host_without_python_has_no_torch() -> None:
    bare = open_context(SnapshotHost({"files": {"/usr/bin": {"dir": []}}, "environ": {"PATH": "/usr/bin"}}))
    assert bare.facts["torch"].value == "none" and bare.facts["python"].value == "none"
    with pytest.raises(NotApplicable, match="no python3 on PATH"):
        environment(bare)


def test_leftovers_of_an_interrupted_pip_are_problems() -> None:
    known = environment(context({f"{SITE}/~orch-1.8.0.dist-info/METADATA": "", f"{SITE}/~orch/__init__.py": ""}))
    assert [problem.path for problem in known.problems] == [f"{SITE}/~orch", f"{SITE}/~orch-1.8.0.dist-info"]
    assert "torch" not in known.found


def test_unreadable_pth_is_a_problem() -> None:
    (problem,) = environment(context({f"{SITE}/x.pth": {"error": "EIO"}})).problems
    assert problem.path == f"{SITE}/x.pth" and problem.what.zh


@pytest.mark.slow
def test_two_thousand_distributions_are_scanned_quickly(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.8/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3.8").write_bytes(b"\x7fELF")
    for number in range(2000):
        folder = site / f"package_{number}-1.{number}.dist-info"
        folder.mkdir()
        if number % 500 == 0:
            (folder / "METADATA").write_text(f"Name: package-{number}\nVersion: 1.{number}\n")
    best = 1.0
    for _ in range(3):
        began = time.process_time()
        opened = open_context(LocalHost(), TargetOptions(python=str(tmp_path / "bin/python3.8")))
        assert len(environment(opened).found) == 2000
        best = min(best, time.process_time() - began)
    found = installed(opened, "package-500")
    assert found is not None and found.version == "1.500"
    assert best < 0.1, "about 0.015 s where this was written; far more means that metadata is read unasked"
