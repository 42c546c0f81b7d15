"""The facts that a check asks for, as people read them: cases as data, and no bare name or value of ours."""

from __future__ import annotations

import re
from typing import Any

import pytest
from helpers.recorded import catalogue, host_names, kept_names, kept_report, recorded_report
from helpers.rows import sampled

from envtune.audit.conditions import condition_text, excluded_text
from envtune.errors import is_not_recorded
from envtune.model import Outcome

CONDITIONS: list[tuple[str, Any, str, str]] = [
    ("container", False, "this is not a container", "当前不在容器中"),
    ("vm", True, "this is a virtual machine", "当前处于虚拟机中"),
    ("cann_generation", {"not": "none"}, "CANN is installed", "已安装 CANN"),
    ("cann_generation", "none", "CANN is not installed", "未安装 CANN"),
    (
        "cann_generation",
        ["arch-linux", "cann"],
        "CANN: 5.0.4 to 8.3 or 8.5 or newer",
        "CANN：5.0.4 至 8.3 或 8.5 及以上",
    ),
    (
        "npu",
        {"not": ["none", "310"]},
        "this host has an Ascend NPU: anything except 310",
        "本机有昇腾 NPU：310 以外的值",
    ),
    ("npu", ["910A", "910B"], "NPU: 910A or 910B", "NPU：910A 或 910B"),
    ("arch", "x86_64", "architecture: x86_64", "架构：x86_64"),
    ("system", "Linux", "operating system: Linux", "操作系统：Linux"),
]
EXCLUDED: list[tuple[str, str, Any, str]] = [
    ("container", "false", True, "this is not a container"),
    ("container", "true", False, "this is a container"),
    ("npu", "910B", "910A", "NPU: 910B; the check is for 910A"),
    ("npu", "310", {"not": ["none", "310"]}, "NPU: 310; the check is for anything except none or 310"),
    ("cann_generation", "cann", "fwkacllib", "CANN: 8.5 or newer; the check is for 20.x to 5.0.2"),
    ("torch_npu", "none", {"not": "none"}, "torch_npu is not installed"),
]
RAW = re.compile(r"\b(?:true|false|cann_generation|ascend_job|fwkacllib|arch-linux|os_family|npu_count)\b| is none\b")


@pytest.mark.parametrize(("name", "required", "en", "zh"), CONDITIONS)
def test_a_condition_in_words(name: str, required: Any, en: str, zh: str) -> None:
    assert (condition_text(name, required).en, condition_text(name, required).zh) == (en, zh)


@pytest.mark.parametrize(("name", "value", "required", "said"), EXCLUDED)
def test_why_a_check_does_not_apply(name: str, value: str, required: Any, said: str) -> None:
    assert excluded_text(name, value, required).en == said


def test_no_condition_of_the_catalogue_is_said_by_names_of_ours() -> None:
    rows = [check.applies for check in catalogue().checks]
    rows += [row.when for check in catalogue().checks for row in check.severity_by]
    rows += [one.when for faq in catalogue().faq for one in (*faq.proves, *faq.favours, *faq.rules_out)]
    texts = {condition_text(name, required).en for row in rows for name, required in row.items()}
    assert [text for text in texts if RAW.search(text)] == []


@pytest.mark.parametrize("name", sampled([*host_names(), *kept_names()], 3))
def test_what_does_not_apply_says_so_in_words(name: str) -> None:
    report = kept_report(name) if name in kept_names() else recorded_report(name)
    left_out = [f for f in report.findings if f.outcome is Outcome.NOTAPPLICABLE]
    assert [f.id for f in left_out if f.reason is None or RAW.search(f.reason.en)] == []


@pytest.mark.parametrize("name", kept_names())
def test_what_a_snapshot_lacks_is_unknown_and_no_statement_about_the_host(name: str) -> None:
    findings = kept_report(name).findings
    lacking = [f for f in findings if f.reason is not None and is_not_recorded(f.reason)]
    assert {f.outcome for f in lacking} <= {Outcome.UNKNOWN}
    assert lacking or "plain" in name  # of a host without NPUs nothing is asked that was not recorded
    told = {f.reason.en for f in findings if f.reason is not None and f.outcome is Outcome.NOTAPPLICABLE}
    assert not [text for text in told if re.search("snapshot|recorded|kernel", text)]
