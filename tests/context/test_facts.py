"""A fact that fails costs itself: the report comes, and says so."""

from __future__ import annotations

import pytest
from helpers.recorded import host_data, report
from helpers.rows import sampled

from envtune.audit.verdict import exit_code
from envtune.context import open as opening
from envtune.context import registry
from envtune.context.open import open_context
from envtune.model import Severity
from envtune.report import check_json, check_text
from envtune.snapshot.host import SnapshotHost

HOST = "910b-openeuler2203-cann82"
CHECKS = ("SYS001", "CPU001", "CANN007", "ENV001", "NET004")
ERRORS = (ValueError("no"), KeyError("x"), MemoryError(), RecursionError("deep"), OSError(5, "I/O error"))


@pytest.mark.parametrize("name", sampled(registry.fact_names(), 7))
@pytest.mark.parametrize("error", sampled(ERRORS, 2), ids=lambda error: type(error).__name__)
def test_each_fact_may_fail(name: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: object) -> None:
        raise error

    registry.find_fact(name)
    monkeypatch.setitem(registry._functions["facts"], name, broken)
    made = report(host_data(HOST), CHECKS)
    assert {fact.name for fact in made.facts} == {*registry.fact_names()} - {"ascend_job"} | {name}
    assert check_json.report_data(made, "en", 1)["facts"][name] == "unknown"
    data = check_json.report_data(made, "en")
    assert data["facts"][name] is None and data["unknown_facts"][name]
    assert check_text.render(made, "zh")
    assert exit_code(made.findings, Severity.MEDIUM) in (0, 1, 3)


def test_a_fact_whose_module_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError("envtune.resources.npu.devices")

    context = open_context(SnapshotHost(host_data(HOST)))
    monkeypatch.setattr(registry, "find_fact", broken)
    fact = context.facts["npu"]
    assert fact.value is None and "ImportError" in str(fact.reason)
    with pytest.raises(KeyError):
        context.facts["no_such_fact"]


@pytest.mark.parametrize("reader", ["read_environment", "find_python"])
def test_a_job_whose_reading_fails_is_unknown(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise UnboundLocalError("word")

    monkeypatch.setattr(opening, reader, broken)
    made = report(host_data(HOST), CHECKS)
    key = "environment_reason" if reader == "read_environment" else "python_reason"
    assert "envtune itself failed here: UnboundLocalError" in str(made.target[key])
