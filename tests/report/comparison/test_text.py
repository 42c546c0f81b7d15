"""Comparisons as a person reads them: golden texts of the forty hosts, and rules that hold for each.

`pytest --update-golden` writes the texts anew; read the difference before you commit it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from helpers import fleet
from helpers.recorded import recorded_report

from envtune import catalog
from envtune.audit import check_host
from envtune.audit.settings import read_settings
from envtune.compare.comparison import compare
from envtune.compare.difference import difference
from envtune.compare.hosts import HostReport, labelled, lean
from envtune.context.open import UNNAMED
from envtune.messages import LANGUAGES
from envtune.report.comparison import difference_text, text
from envtune.report.layout import display_width
from envtune.snapshot.host import SnapshotHost

GOLDEN = Path(__file__).parent / "golden"


@cache
def hosts() -> tuple[HostReport, ...]:
    checks = catalog.load().checks
    return labelled(
        [
            (f"{name}.json", lean(check_host(SnapshotHost(data), UNNAMED, checks, more_facts=read_settings)))
            for name, data in fleet.deviating().items()
        ]
    )


def pages(lang: str, width: int) -> dict[str, str]:
    by_name = {host.label: host for host in hosts()}
    two = difference(by_name["node2"], by_name["node7"])
    return {
        "fleet": text.render(compare(hosts()), lang, width=width),
        "diff": difference_text.render(two, lang, width=width),
    }


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGUAGES)
def test_golden(lang: str, request: pytest.FixtureRequest) -> None:
    for name, page in pages(lang, 80).items():
        path = GOLDEN / f"{name}.{lang}.txt"
        if request.config.getoption("--update-golden"):
            path.write_text(page + "\n", "utf-8")
        assert page + "\n" == path.read_text("utf-8"), f"{path.name} differs: read it, then pytest --update-golden"


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(width: int, lang: str) -> None:
    for page in pages(lang, width).values():
        wide = [line for line in page.splitlines() if display_width(line) > width]
        assert all(re.search(rf"\S{{{width - 40},}}", line) for line in wide)  # a word that is longer than its column


def test_one_cause_is_listed_once_and_alike_npus_together() -> None:
    report = recorded_report("910b-openeuler2203-troubled")
    healthy = recorded_report("910b-openeuler2203-cann82")
    hosts = labelled([("a", lean(report)), ("b", lean(healthy)), ("c", lean(healthy._replace(host="node16")))])
    problems = text.render(compare(hosts), "en", width=120).partition("\nProblems\n")[2].partition("\n\n")[0]
    named = re.findall(r"(?m)^  \S+ +([A-Z]{2,4}\d{3}) ", problems)
    assert not {"CPU001", "ENV003", "ENV004", "ENV101"} & {*named} and len(named) == len({*named})
    assert "CPUs use different governors (also CPU001)" in problems
    assert "(also ENV003, ENV004, ENV101)" in problems
    assert "node18: npu2-7: /dev/davinci2-7 exists" in " ".join(problems.split())
