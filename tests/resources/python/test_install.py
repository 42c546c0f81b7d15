"""Parts of planning a change of the job's Python: what is kept, which releases, files and distributions are chosen."""

from __future__ import annotations

from typing import Sequence

import pytest
from helpers.cases import planned, the_case

from envtune.catalog import load
from envtune.errors import Skipped
from envtune.executor.operations.trees import is_covered
from envtune.resources.images.install_opencv import best
from envtune.resources.images.install_pillow import RELEASES, nearest, offered
from envtune.resources.python.distributions import Distribution
from envtune.resources.python.install import any_case

P = "/usr/local/python3.7.5"
SITE = P + "/lib/python3.7/site-packages"


# ---------------------------------------------------------------------- pillow


def test_whatever_the_spelling_what_pip_may_touch_is_kept() -> None:
    (change,) = planned(the_case("images/install_pillow/built-for-avx2")).plan.changes
    touches = change.operations[0]["touches"]
    below = "lib/python3.7/site-packages/"
    kept = ("Pillow-9.5.0.dist-info", "Pillow_SIMD-9.5.0.post2.dist-info", "pillow_simd-9.5.0.dist-info", "Pillow.libs")
    for name in (*kept, "~illow-9.5.0.dist-info", "pillow_simd.libs"):
        assert is_covered(below + name + "/RECORD", touches), name
    for name in ("pillow_heif-0.1.dist-info", "numpy/__init__.py", "PILLOW.py"):
        assert not is_covered(below + name, touches), name


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
    with pytest.raises(Skipped, match="pillow-simd has no release"):
        nearest("9.5.0", python, RELEASES)


# ---------------------------------------------------------------------- air-gapped


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
