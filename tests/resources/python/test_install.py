"""Planning a change of the job's Python on recorded hosts: what is chosen, where it goes, and what is refused."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.errors import Skipped
from envtune.executor.operations.trees import is_covered
from envtune.executor.plan import operation_fault
from envtune.fix.plan import Plan, make_plan
from envtune.fix.policy import refusal
from envtune.model import Change, Finding, FixOptions
from envtune.resources.images.install_opencv import best
from envtune.resources.images.install_pillow import RELEASES, SMOKE, nearest, offered
from envtune.resources.python.distributions import Distribution
from envtune.resources.python.install import any_case

P = "/usr/local/python3.7.5"
SITE = P + "/lib/python3.7/site-packages"
META = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"
PIP: Mapping[str, Any] = {
    f"{SITE}/pip-19.2.3.dist-info/METADATA": META.format("pip", "19.2.3"),
    f"{SITE}/pip/__init__.py": "",
    "/usr/bin/cc": {"size": 100},
}
CPU = {"/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu sse4_1 avx2\n\n", "/usr/bin/cc": {"size": 100}}


def dist(name: str, version: str, site: str = SITE, record: str = "") -> dict[str, Any]:
    folder = f"{site}/{name}-{version}.dist-info"
    files: dict[str, Any] = {f"{folder}/METADATA": META.format(name.replace("_", "-"), version)}
    if record:
        files[f"{folder}/RECORD"] = record
    return files


def pillow(version: str = "9.5.0", site: str = SITE, name: str = "Pillow") -> dict[str, Any]:
    record = f"PIL/__init__.py,,\n{name}.libs/libjpeg.so,,\n{name}-{version}.dist-info/RECORD,,\n"
    return {
        **dist(name, version, site, record),
        f"{site}/PIL/__init__.py": "from . import _version\n__version__ = _version.__version__\n",
        f"{site}/PIL/_version.py": f'__version__ = "{version}"\n',
    }


def plan(*ids: str, wheels: Optional[str] = None, like: Any = "python37", **example: Any) -> Plan:
    context = example_context({"like": like, "arch": "x86_64", **example})
    findings: list[Finding] = [f for c in load().checks if c.id in ids for f in examine(c, context)]
    return make_plan(findings, load().playbooks, context, FixOptions(wheels=wheels))


def only(made: Plan) -> Change:
    assert len(made.changes) == 1, made.skipped
    return made.changes[0]


def reason(made: Plan) -> str:
    assert not made.changes and len(made.skipped) == 1, made
    assert made.skipped[0].reason.zh != made.skipped[0].reason.en
    return made.skipped[0].reason.en


def swap(made: Plan) -> Mapping[str, Any]:
    operation = dict(only(made).operations[0])
    assert operation_fault(operation) is None and refusal(operation) is None
    return operation


# ---------------------------------------------------------------------- pillow


def test_the_wheel_is_built_before_anything_is_removed() -> None:
    made = plan("IMG001", files={**PIP, **pillow()})
    change, operation = only(made), swap(made)
    python = [P + "/bin/python3.7", "-m", "pip"]
    assert (change.before, change.after) == ("pillow 9.5.0", "pillow-simd 9.5.0.* (AVX2)")
    assert (change.view, change.safety, change.disruption, change.undoable) == ("job", "confirm", "job", True)
    assert [step[:4] for step in operation["prepare"]] == [[*python, "wheel"]]
    assert operation["prepare"][0][-1] == "pillow-simd==9.5.0.*" and "{work}/wheels" in operation["prepare"][0]
    assert operation["steps"][0] == [*python, "uninstall", "-y", "pillow"]
    assert operation["steps"][1][:4] == [*python, "install"] and "--no-index" in operation["steps"][1]
    assert operation["verify"] == [[python[0], "-c", SMOKE]]
    assert operation["env"]["CC"] == "cc -mavx2"


def test_everything_that_pip_may_touch_is_kept() -> None:
    record = "../../../bin/pilfont.py,,\nPIL/Image.py,,\nsingle.py,,\n__pycache__/single.cpython-37.pyc,,\n"
    files = {**pillow(), f"{SITE}/Pillow-9.5.0.dist-info/RECORD": record}
    touches = swap(plan("IMG001", files={**PIP, **files}))["touches"]
    below = "lib/python3.7/site-packages/"
    assert {"bin/pilfont.py", below + "PIL", below + "~IL", below + "single.py", below + "__pycache__/single.*"} <= set(
        touches
    )
    kept = ("Pillow-9.5.0.dist-info", "Pillow_SIMD-9.5.0.post2.dist-info", "pillow_simd-9.5.0.dist-info", "Pillow.libs")
    for name in (*kept, "~illow-9.5.0.dist-info", "pillow_simd.libs"):
        assert is_covered(below + name + "/RECORD", touches), name
    for name in ("pillow_heif-0.1.dist-info", "numpy/__init__.py", "PILLOW.py"):
        assert not is_covered(below + name, touches), name


def test_settings_of_the_callers_shell_do_not_lead_pip_elsewhere() -> None:
    environ = swap(plan("IMG001", files={**PIP, **pillow()}))["env"]
    assert environ["PYTHONPATH"] == environ["PYTHONHOME"] == environ["PIP_TARGET"] == environ["PIP_PREFIX"] == ""
    assert (environ["PIP_USER"], environ["PYTHONNOUSERSITE"], environ["TMPDIR"]) == ("0", "1", "{work}/tmp")


@pytest.mark.parametrize(("flags", "compiler"), [("sse4_1 avx2", "cc -mavx2"), ("sse4_1 sse4_2", None)])
def test_the_build_is_for_what_the_cpu_has(flags: str, compiler: Optional[str]) -> None:
    cpu = {"/proc/cpuinfo": f"processor\t: 0\nflags\t\t: fpu {flags}\n\n"}
    assert swap(plan("IMG001", files={**PIP, **pillow(), **cpu}))["env"].get("CC") == compiler


def test_nothing_on_aarch64() -> None:
    assert plan("IMG001", arch="aarch64", files={**PIP, **pillow()}) == Plan("python37", (), (), plan("IMG001").target)


def test_side_by_side_on_a_cpu_without_sse4_ends_with_native_pillow() -> None:
    files = {**PIP, **pillow(), **dist("Pillow_SIMD", "9.0.0.post1")}
    files["/proc/cpuinfo"] = "processor\t: 0\nflags\t\t: fpu vme sse sse2\n\n"
    operation = swap(plan("IMG007", files=files))
    assert operation["prepare"][0][-1] == "pillow==9.5.0" and "--only-binary" in operation["prepare"][0]
    assert operation["steps"][0][-2:] == ["pillow", "pillow-simd"]


def test_side_by_side_is_one_change_with_what_it_is_about() -> None:
    change = only(plan("IMG001", "IMG007", files={**PIP, **pillow(), **dist("Pillow_SIMD", "9.0.0.post1")}))
    assert (change.finding, change.cures) == ("IMG001", ("IMG007",))
    assert change.before == "pillow 9.5.0 + pillow-simd 9.0.0.post1"


@pytest.mark.parametrize(
    ("version", "python", "base"),
    [
        ("9.5.0", "3.7", "9.5.0"),
        ("9.0.1", "3.9", "9.0.0"),
        ("6.2.1", "3.7", "6.2.2"),  # the same minor release: torchvision of that time needs its PILLOW_VERSION
        ("7.1.0", "3.7", "7.1.2"),
        ("10.4.0", "3.9", "9.5.0"),
        ("8.3.0", "3.11", "9.3.0"),  # none before it is made for 3.11
        ("5.0.0", "3.7", "5.3.0"),
    ],
)
def test_the_release_nearest_to_what_the_code_knows(version: str, python: str, base: str) -> None:
    assert nearest(version, python, RELEASES) == base


@pytest.mark.parametrize("python", ["3.12", "3.13", "2.7"])
def test_no_release_for_that_python(python: str) -> None:
    with pytest.raises(Skipped, match="no release of pillow-simd"):
        nearest("9.5.0", python, RELEASES)


def test_no_downgrade_below_what_another_package_requires() -> None:
    other = {
        f"{SITE}/viewer-1.0.dist-info/METADATA": META.format("viewer", "1.0") + "Requires-Dist: pillow >=9.4,<12\n"
    }
    asking = {f"{SITE}/new-2.0.dist-info/METADATA": META.format("new", "2.0") + "Requires-Dist: Pillow (>=10.0)\n"}
    extra = {
        f"{SITE}/opt-2.0.dist-info/METADATA": META.format("opt", "2.0") + 'Requires-Dist: Pillow >=10; extra == "x"\n'
    }
    assert only(plan("IMG001", files={**PIP, **pillow("10.1.0"), **other, **extra})).after.startswith(
        "pillow-simd 9.5.0"
    )
    assert "new 2.0 (Pillow (>=10.0))" in reason(plan("IMG001", files={**PIP, **pillow("10.1.0"), **asking}))


def test_without_a_compiler_it_is_said_at_once() -> None:
    files = {**PIP, **pillow(), "/usr/bin/cc": None}
    assert "cc is not on PATH" in reason(plan("IMG001", files=files))


# ---------------------------------------------------------------------- air-gapped


def wheels(*names: str) -> dict[str, Any]:
    return {"/media/wheels": {"dir": list(names)}}


def test_a_wheel_from_the_directory_and_no_index() -> None:
    name = "Pillow_SIMD-9.5.0.post2-cp37-cp37m-linux_x86_64.whl"
    others = (
        "Pillow_SIMD-9.5.0.post2-cp39-cp39-linux_x86_64.whl",
        "Pillow_SIMD-8.4.0.post0-cp37-cp37m-linux_x86_64.whl",
    )
    operation = swap(plan("IMG001", wheels="/media/wheels", files={**PIP, **pillow(), **wheels(name, *others)}))
    assert operation["prepare"] == [] and operation["wheels"] == ["/media/wheels/" + name]
    assert operation["steps"][1][-1] == "/media/wheels/" + name and "--no-index" in operation["steps"][1]


def test_sources_are_built_with_what_the_target_has() -> None:
    files = {**PIP, **pillow(), **wheels("Pillow-SIMD-9.5.0.post2.tar.gz")}
    assert "has no setuptools and wheel: bring a wheel" in reason(plan("IMG001", wheels="/media/wheels", files=files))
    files.update({**dist("setuptools", "41.2.0"), **dist("wheel", "0.40.0")})
    prepare = swap(plan("IMG001", wheels="/media/wheels", files=files))["prepare"][0]
    assert {"--no-index", "--no-build-isolation", "--find-links", "/media/wheels"} <= set(prepare)


def test_a_directory_without_it() -> None:
    files = {**PIP, **pillow(), **wheels("numpy-1.21-cp37-cp37m-linux_x86_64.whl", "notes.txt")}
    assert "/media/wheels holds no pillow-simd" in reason(plan("IMG001", wheels="/media/wheels", files=files))
    missing = reason(plan("IMG001", wheels="/media/none", files={**PIP, **pillow(), "/media/none": None}))
    assert "/media/none" in missing


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("pillow_simd-9.5.0-cp37-cp37m-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("Pillow-SIMD-9.5.0-1-cp37-cp37m-linux_x86_64.whl", False),  # no such file name: the name holds no dash
        ("Pillow_SIMD-9.5.0-cp37-cp37m-linux_aarch64.whl", False),
        ("Pillow_SIMD-9.5.0-py3-none-any.whl", True),
        ("pillow_simd.whl", False),
        ("pillow-simd-x.tar.gz", False),
        ("pillow-9.5.0.tar.gz", False),
    ],
)
def test_which_files_fit(name: str, fits: bool) -> None:
    assert bool(list(offered([name], "/w", "pillow-simd", "3.7", "x86_64"))) is fits


# ---------------------------------------------------------------------- where pip may write


def test_a_python_that_the_distribution_manages_is_left_alone() -> None:
    """Debian 12: PEP 668 forbids it with --user as well."""
    site = "/usr/local/lib/python3.11/dist-packages"
    files = {
        "/usr/bin/python3": {"link": "python3.11"},
        "/usr/bin/python3.11": {"size": 6_000_000},
        "/usr/lib/python3.11/os.py": "",
        "/usr/lib/python3.11/EXTERNALLY-MANAGED": "[externally-managed]\nError=To install Python packages\n",
        "/usr/lib/python3/dist-packages": {"dir": []},
        **CPU,
        **pillow("9.4.0", site),
        **dist("pip", "23.0.1", site),
        f"{site}/pip/__init__.py": "",
    }
    for euid in (0, 1000):
        made = plan("IMG001", like="bare", files=files, environ={"PATH": "/usr/bin:/bin", "HOME": "/root"}, euid=euid)
        words = reason(made)
        assert "PEP 668" in words and "--user" in words and "-m venv" in words


def test_what_the_package_manager_installed_is_its_own() -> None:
    files = {
        "/usr/bin/python3": {"link": "python3.8"},
        "/usr/bin/python3.8": {"size": 6_000_000},
        "/usr/lib/python3.8/os.py": "",
        **CPU,
        **pillow("7.0.0", "/usr/lib/python3/dist-packages"),
        **dist("pip", "20.0.2", "/usr/lib/python3/dist-packages"),
        "/usr/lib/python3/dist-packages/pip/__init__.py": "",
    }
    made = plan("IMG001", like="bare", files=files, environ={"PATH": "/usr/bin:/bin"})
    assert "belongs to the distribution's package manager" in reason(made)


def test_a_plain_user_gets_it_below_the_own_home() -> None:
    files = {**PIP, **pillow(), "/home/alice": {"dir": [], "uid": 1000}}
    environ = {"PATH": f"{P}/bin:/usr/bin:/bin", "HOME": "/home/alice"}
    made = plan("IMG001", files=files, environ=environ, euid=1000)
    change, operation = only(made), swap(made)
    assert change.target == "/home/alice/.local/lib/python3.7/site-packages" and not change.root
    assert change.before == "not installed" and change.note is not None and "--user" in change.note.en
    assert operation["root"] == "/home/alice/.local" and operation["env"]["PIP_USER"] == "1"
    assert [step[3] for step in operation["steps"]] == ["install"] and "--user" in operation["steps"][0]


def test_root_starts_no_interpreter_that_another_user_could_have_changed() -> None:
    venv = {
        "/home/alice/env/pyvenv.cfg": f"home = {P}/bin\nversion = 3.7.5\n",
        "/home/alice/env/bin/python": {"link": f"{P}/bin/python3.7"},
        "/home/alice/env/bin/python3": {"link": "python"},
        **{k.replace(SITE, "/home/alice/env/lib/python3.7/site-packages"): v for k, v in {**PIP, **pillow()}.items()},
        "/home/alice/env/lib/python3.7/site-packages": {"dir": [], "uid": 1000},
    }
    target = {"python": "/home/alice/env/bin/python"}
    assert "sudo -u '#1000' envtune fix" in reason(plan("IMG001", files=venv, target=target, euid=0))
    change = only(plan("IMG001", files=venv, target=target, euid=1000))
    assert not change.root and change.operations[0]["steps"][0][0] == "/home/alice/env/bin/python"


def test_a_virtual_environment_over_a_shared_base_gets_its_own() -> None:
    site = "/env/lib/python3.7/site-packages"
    files = {
        "/env/pyvenv.cfg": f"home = {P}/bin\nversion = 3.7.5\ninclude-system-site-packages = true\n",
        "/env/bin/python": {"link": f"{P}/bin/python3.7"},
        **pillow(),
        **{k.replace(SITE, site): v for k, v in PIP.items()},
    }
    made = plan("IMG001", files=files, target={"python": "/env/bin/python"})
    assert only(made).target == site and swap(made)["root"] == "/env"
    assert [step[3] for step in swap(made)["steps"]] == ["install"], "the base is not touched"


def test_conda_is_named_as_who_else_owns_the_package() -> None:
    base = "/opt/conda"
    site = base + "/lib/python3.9/site-packages"
    files = {
        f"{base}/bin/python3.9": {"size": 1},
        f"{base}/bin/python3": {"link": "python3.9"},
        f"{base}/lib/python3.9/os.py": "",
        f"{base}/conda-meta/pillow-9.2.0-py39hace64e9_1.json": "{}",
        f"{base}/conda-meta/history": "",
        **pillow("9.2.0", site),
        **{k.replace(SITE, site): v for k, v in PIP.items()},
    }
    change = only(plan("IMG001", files=files, target={"python": base + "/bin/python3"}))
    assert [rival.en for rival in change.rivals] == [
        f"conda ({base}/conda-meta/pillow-9.2.0-py39hace64e9_1.json): its next update may put its own package back"
    ]
    assert change.operations[0]["steps"][0][0] == base + "/bin/python3.9"


def test_no_pip_and_an_old_pip() -> None:
    assert "-m ensurepip" in reason(plan("IMG001", files={**CPU, **pillow()}))
    old = {f"{SITE}/pip-18.1.dist-info/METADATA": META.format("pip", "18.1"), f"{SITE}/pip/__init__.py": ""}
    assert "older than 19.0" in reason(plan("IMG001", files={**CPU, **pillow(), **old}))


def test_what_pip_did_not_install_it_cannot_replace() -> None:
    files = {
        **PIP,
        **pillow(),
        f"{SITE}/Pillow-9.5.0.dist-info/METADATA": None,
        f"{SITE}/Pillow-9.5.0.dist-info/RECORD": None,
    }
    files[f"{SITE}/Pillow-9.5.0-py3.7.egg-info"] = META.format("Pillow", "9.5.0")
    assert "was not installed by pip" in reason(plan("IMG001", files=files))


def test_a_record_that_leads_out_of_the_environment() -> None:
    files = {**pillow(), f"{SITE}/Pillow-9.5.0.dist-info/RECORD": "../../../../../../etc/passwd,,\n"}
    assert "outside of" in reason(plan("IMG001", files={**PIP, **files}))


# ---------------------------------------------------------------------- OpenCV


def rows(*texts: str) -> Sequence[Distribution]:
    split = [text.split() for text in texts]
    return [Distribution(name, version, f"{SITE}/{name}.dist-info", SITE) for name, version in split]


@pytest.mark.parametrize(
    ("installed", "imported", "keep"),
    [
        (("opencv-python 3.4.10.37", "opencv-python-headless 4.5.1.48"), "4.5.1.48", "opencv-python"),
        (("opencv-python 4.5.1.48", "opencv-python-headless 4.6.0.66"), "4.6.0", "opencv-python-headless"),
        (("opencv-python 4.5.1.48", "opencv-contrib-python 4.5.1.48"), "", "opencv-contrib-python"),
        (("opencv-python-headless 4.5.1.48", "opencv-python 4.5.1.48"), "4.5.1", "opencv-python"),
        (("opencv-python 3.4.100.1", "opencv-contrib-python 4.5.1.48"), "", "opencv-contrib-python"),
    ],
)
def test_the_opencv_that_is_kept(installed: Sequence[str], imported: str, keep: str) -> None:
    assert best(rows(*installed), imported).name == keep


def test_all_opencvs_are_removed_and_one_comes_back() -> None:
    files = {
        **PIP,
        **dist("opencv_python", "3.4.10.37"),
        **dist("opencv_python_headless", "4.5.1.48"),
        f"{SITE}/cv2/__init__.py": "",
    }
    made = plan("IMG101", files=files)
    assert (only(made).subject, only(made).after) == ("cv2", "opencv-python 3.4.10.37")
    operation = swap(made)
    assert operation["steps"][0][-2:] == ["opencv-python", "opencv-python-headless"]
    assert operation["prepare"][0][-1] == "opencv-python==3.4.10.37" and operation["verify"][0][-1] == "import cv2"


# ---------------------------------------------------------------------- te and topi


def with_pip(site: str) -> dict[str, Any]:
    return {**dist("pip", "22.0", site), f"{site}/pip/__init__.py": ""}


def test_the_wheels_of_the_active_cann_by_force() -> None:
    stale = {f"{SITE}/te-0.4.0.dist-info/RECORD": "te/__init__.py,sha256=AAAAAAAA,1204\nbin/x,sha256=B,1\n"}
    made = plan("CANN003", like="cann-old", arch="aarch64", files={**with_pip(SITE), **stale})
    change, operation = only(made), swap(made)
    wheel = "/usr/local/Ascend/ascend-toolkit/5.0.2/arm64-linux/fwkacllib/lib64/te-0.4.0-py3-none-any.whl"
    assert (change.subject, change.before) == ("te", "te 0.4.0") and "te of CANN 5.0.2" in change.after
    assert operation["wheels"] == [operation["steps"][1][-1]] and operation["wheels"][0].endswith(
        wheel.rpartition("/")[2]
    )
    assert {"--force-reinstall", "--no-deps", "--no-index"} <= set(operation["steps"][1])
    assert operation["verify"] == [], "importing te needs the environment of CANN"


def test_what_is_missing_goes_beside_its_companion() -> None:
    gone = {f"{SITE}/topi-0.4.0.dist-info/{name}": None for name in ("METADATA", "RECORD")}
    made = plan(
        "CANN003", like="cann-old", arch="aarch64", files={**with_pip(SITE), **gone, f"{SITE}/topi/__init__.py": None}
    )
    assert (only(made).subject, only(made).before, only(made).target) == ("topi", "not installed", SITE)
    assert [step[3] for step in swap(made)["steps"]] == ["install"]


def test_what_an_older_cann_left_is_removed() -> None:
    site = "/usr/local/python3.10.13/lib/python3.10/site-packages"
    left = {**dist("te", "0.4.0", site, "te/__init__.py,sha256=AAAA,1\n"), f"{site}/te/__init__.py": ""}
    made = plan("CANN003", like="cann-mid", arch="aarch64", files={**with_pip(site), **left})
    assert [step[3:] for step in swap(made)["steps"]] == [["uninstall", "-y", "te"]]
    assert "wheels" not in swap(made) and "no te beside" in only(made).after


def test_the_commands_that_are_printed_do_the_same_by_hand() -> None:
    """A wheel where this CANN ships one, taking away where it ships none: never both."""
    stale = {f"{SITE}/te-0.4.0.dist-info/RECORD": "te/__init__.py,sha256=AAAAAAAA,1204\n"}
    (line,) = typed({"like": "cann-old", "arch": "aarch64", "files": stale})
    wheel = "/usr/local/Ascend/ascend-toolkit/5.0.2/fwkacllib/lib64/te-0.4.0-py3-none-any.whl"
    assert line == f"{P}/bin/python3 -m pip install --force-reinstall --no-deps {wheel}"
    site = "/usr/local/python3.10.13/lib/python3.10/site-packages"
    left = {**dist("te", "0.4.0", site, "te/__init__.py,sha256=AAAA,1\n"), f"{site}/te/__init__.py": ""}
    (line,) = typed({"like": "cann-mid", "arch": "aarch64", "files": left})
    assert line.startswith("/usr/local/python3.10.13/bin/python3") and line.endswith(" -m pip uninstall te")


def typed(example: Mapping[str, Any]) -> list[str]:
    (check,) = [check for check in load().checks if check.id == "CANN003"]
    return [line for finding in examine(check, example_context(example)) for line in finding.commands]


# ---------------------------------------------------------------------- names


def test_spellings_of_one_name() -> None:
    import fnmatch

    pattern = any_case("pillow-simd")
    for name in ("Pillow_SIMD", "pillow-simd", "PILLOW.simd"):
        assert fnmatch.fnmatchcase(name, pattern)
    assert not fnmatch.fnmatchcase("pillow", pattern)


@pytest.mark.parametrize("id_", ["IMG005", "PY001", "PY002", "PY003", "PY005", "PY008", "PY009", "CANN001", "CANN004",
                                 "CANN006", "CANN007", "CANN009", "CANN101"])  # fmt: skip
def test_what_a_person_has_to_do_is_steps_to_read_and_nothing_else(id_: str) -> None:
    playbooks = [playbook for playbook in load().playbooks if id_ in playbook.fixes]
    assert playbooks
    for playbook in playbooks:
        assert playbook.safety == "manual" and [step.kind for step in playbook.steps] == ["instructions"]
        assert all(line.en and line.zh for step in playbook.steps for line in step.lines)
