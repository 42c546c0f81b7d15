"""What a check is about is a name, or a word of ours that a Chinese report has in Chinese."""

from __future__ import annotations

import re

import pytest
from helpers.recorded import host_data, host_names, judge
from helpers.rows import sampled

from envtune.audit.subjects import fact_text, is_plain, subject_text

# Names of packages, programs and a host that are written like words.
NAMES = {
    "attrs",
    "cffi",
    "decorator",
    "numpy",
    "sympy",
    "triton",
    "apex",
    "aoe",
    "core",
    "cpupower",
    "files",
    "hccl",
    "memlock",
    "msprof",
    "nofile",
    "nproc",
    "opp",
    "pip",
    "python",
    "te",
    "topi",
    "torch",
    "torchvision",
}


@pytest.mark.parametrize("host", sampled(host_names(), 3))
def test_a_subject_is_a_name_or_is_translated(host: str) -> None:
    subjects = {part for finding in judge(host_data(host)) for part in finding.subject.split(", ")}
    words = {one for one in subjects if re.fullmatch(r"[a-z]+|[a-z]+ [^/]+", one)} - NAMES
    assert {one for one in words if subject_text(one).to("zh") == one} == set()


@pytest.mark.parametrize(
    ("subject", "en", "zh"),
    [
        ("port 60003", "port 60003", "端口 60003"),
        ("process 6035", "process 6035", "进程 6035"),
        (
            "pci 0000:01:00.0, pci 0000:02:00.0",
            "PCI 0000:01:00.0, PCI 0000:02:00.0",
            "PCI 0000:01:00.0、PCI 0000:02:00.0",
        ),
        ("driver after the next boot", "driver after a reboot", "重启后的驱动"),
        ("affinity library", "affinity library", "亲和库"),
        ("npu2-7", "npu2-7", "npu2-7"),
        ("PATH, PYTHONPATH", "PATH, PYTHONPATH", "PATH、PYTHONPATH"),
        ("", "", ""),
    ],
)
def test_what_a_person_reads(subject: str, en: str, zh: str) -> None:
    assert (subject_text(subject).en, subject_text(subject).zh) == (en, zh)


def test_a_word_without_a_name_adds_nothing_to_a_title() -> None:
    assert is_plain("os") and not is_plain("driver") and not is_plain("npu3")
    assert (fact_text("driver").zh, fact_text("torch").zh) == ("驱动", "torch")
