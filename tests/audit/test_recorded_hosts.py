"""Recorded hosts of every generation: the report a user would get, compared with the one we looked at.

`pytest --update-golden` writes the reports anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.recorded import host_names, recorded_report
from helpers.rows import sampled

from envtune.audit.verdict import exit_code
from envtune.model import Outcome, Severity
from envtune.report import check_json as json
from envtune.report import check_short
from envtune.report import check_text as text

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (60, 80, 120)  # of the short form


@pytest.mark.parametrize("lang", sampled(["en", "zh"], 2))  # tests/test_contracts.py has the other one
@pytest.mark.parametrize("name", host_names())
def test_report(name: str, lang: str, request: pytest.FixtureRequest) -> None:
    made = recorded_report(name)
    code = exit_code(made.findings, Severity.MEDIUM, facts=made.facts)
    pages = {
        f"{lang}.txt": text.render(made, lang, width=100, verbose=True) + "\n",
        f"{lang}.json": json.render(made, lang) + "\n",
        **{f"{lang}.{width}.txt": check_short.render(made, lang, width=width) + "\n" for width in WIDTHS},
    }
    for ending, page in pages.items():
        path = GOLDEN / f"{name}.check.{code}.{ending}"
        if request.config.getoption("--update-golden"):
            for old in GOLDEN.glob(f"{name}.check.[0-9].{ending}"):
                old.unlink()
            path.write_text(page, "utf-8")
        assert path.exists(), f"no golden report {path.name}: the exit code changed, or run pytest --update-golden"
        assert page == path.read_text("utf-8"), f"{path.name} differs: read it, then pytest --update-golden"


@pytest.mark.parametrize("name", host_names())
def test_a_recorded_host_never_makes_us_fail(name: str) -> None:
    made = recorded_report(name)
    assert [f for f in made.findings if f.outcome is Outcome.ERROR] == []
    for finding in made.findings:
        assert finding.evidence.source, finding.id
        assert finding.outcome in (Outcome.PASS, Outcome.FAIL) or finding.reason is not None, finding.id


@pytest.mark.parametrize("name", ["910b-openeuler2203-cann82", "a3-openeuler2203-cann85"])
def test_a_healthy_host_is_said_to_be_ready(name: str) -> None:
    """Hosts of two generations of CANN on which nothing is wrong: the first line says so, and no problem follows."""
    page = check_short.render(recorded_report(name), "en")
    assert page.startswith("READY  ") and "can be fixed" not in page
    assert not [finding.id for finding in recorded_report(name).findings if finding.outcome is Outcome.FAIL]
