"""Which governor the next boot sets: the files of cpupower, tuned and their rivals."""

from __future__ import annotations

import pytest
from helpers.examples import example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.resources.cpu.boot import assignments, cpupower_governor, ini_sections, tuned_governor


@pytest.mark.parametrize(
    ("text", "governor"),
    [
        (
            'CPUPOWER_START_OPTS="frequency-set -g performance"\nCPUPOWER_STOP_OPTS="frequency-set -g ondemand"\n',
            "performance",
        ),
        ("CPUPOWER_START_OPTS='frequency-set --governor=schedutil'\r\n", "schedutil"),
        ('CPUPOWER_START_OPTS="frequency-set -u 2.6GHz"\n', ""),
        ("GOVERNOR='performance'\nMIN_FREQ='1GHz'\n", "performance"),
        ("#GOVERNOR='ondemand'\n", ""),
        ('CPUPOWER_START_OPTS="frequency-set -g"\n', ""),
        ("", ""),
    ],
)
def test_cpupower_configuration(text: str, governor: str) -> None:
    assert cpupower_governor(text) == governor


def test_tuned_follows_what_a_profile_includes() -> None:
    files = {
        "/etc/tuned/site/tuned.conf": "[main]\ninclude=base, hpc\n",
        "/usr/lib/tuned/base/tuned.conf": "[cpu]\ngovernor=ondemand\n",
        "/usr/lib/tuned/profiles/hpc/tuned.conf": "[main]\ninclude=base\n[cpu]\ngovernor = performance | powersave\n",
    }
    host = example_context({"files": files}).host
    assert tuned_governor(host, "site") == ("performance", "/usr/lib/tuned/profiles/hpc/tuned.conf")


def test_tuned_profiles_that_include_each_other_end() -> None:
    files = {
        "/usr/lib/tuned/a/tuned.conf": "[main]\ninclude=b\n",
        "/usr/lib/tuned/b/tuned.conf": "[main]\ninclude=a\n",
    }
    assert tuned_governor(example_context({"files": files}).host, "a") is None


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    assignments(text)
    ini_sections(text)
    assert isinstance(cpupower_governor(text), str)
