"""Anything may lie in a file that names a Python or its packages: no traceback, no hang, no pass from garbage."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import shared_host
from helpers.search import examples as search
from hypothesis import given
from hypothesis import strategies as st

from envtune import catalog
from envtune.audit import examine
from envtune.catalog.examples import example_host
from envtune.context.open import open_context
from envtune.model import Outcome

SITE = "/usr/local/python3.7.5/lib/python3.7/site-packages"
CHECKS = tuple(check for check in catalog.load().checks if check.family in ("PY", "IMG"))
FILES = (
    "/usr/local/python3.7.5/bin/python3",
    "/usr/local/python3.7.5/bin/pip3",
    "/usr/local/python3.7.5/pyvenv.cfg",
    f"{SITE}/x.pth",
    f"{SITE}/torch-1.5.0+ascend.post3.dist-info/METADATA",
    f"{SITE}/torch/version.py",
    f"{SITE}/PIL/_version.py",
    f"{SITE}/PIL/__init__.py",
    f"{SITE}/cv2/version.py",
    f"{SITE}/torchvision/transforms/functional.py",
    f"{SITE}/apex/amp/frontend.py",
    f"{SITE}/apex/optimizers/__init__.py",
    f"{SITE}/__editable___a_finder.py",
    f"{SITE}/apex.egg-link",
    "/proc/cpuinfo",
    "/var/lib/dpkg/status",
)
WORDS = st.sampled_from(
    ["#!/bin/sh\n", "exec ", '"$@"', "$0", "/usr/bin/python3", "pyenv exec", "Name: torch\n", "Version: ", "$(", "`",
     "flags\t: avx2\n", "def initialize(", "from PIL import PILLOW_VERSION\n", "try:\n", "    ", "MAPPING = {", "../..",
     "\0", "\x7fELF", "Package: zlib1g-dev\n", "Status: install ok installed\n", "import os\n", "'", '"', "(" * 300]
)  # fmt: skip
TEXT = st.one_of(st.lists(WORDS, max_size=12).map("".join), st.text(max_size=60))
ENTRY = st.one_of(
    TEXT,
    st.sampled_from(["EACCES", "EIO", "ENOENT", "ETIMEDOUT", "ELOOP"]).map(lambda code: {"error": code}),
    st.sampled_from([{"dir": []}, {"fifo": True}, {"link": "."}, {"link": "/proc/self"}, {"link": "../../.."}, None]),
)


@search(60)
@given(
    files=st.dictionaries(st.sampled_from(FILES), ENTRY, max_size=6),
    environ=st.dictionaries(
        st.sampled_from(["PATH", "PYTHONPATH", "VIRTUAL_ENV", "HOME", "PYENV_VERSION", "PYTHONHOME"]),
        st.text(max_size=12),
    ),
)
def test_garbage_is_no_traceback(files: dict[str, Any], environ: dict[str, str]) -> None:
    variables = {key: value.replace("\0", "") for key, value in environ.items()}
    base: dict[str, Any] = {"like": "torch150", "files": files, "environ": variables}
    context = open_context(example_host(base, shared_host))
    for check in CHECKS:
        for finding in examine(check, context):
            assert finding.outcome is not Outcome.ERROR, (check.id, finding.reason, files, variables)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_closed_site_directory_passes_nothing(check: Any) -> None:
    context = open_context(example_host({"like": "torch150", "files": {SITE: {"error": "EACCES"}}}, shared_host))
    told = {(finding.outcome, finding.needs_privilege) for finding in examine(check, context)}
    if check.id not in ("IMG006", "PY002", "PY003"):  # which judge headers, shebangs and other folders
        assert Outcome.PASS not in {outcome for outcome, _ in told}
