"""The compatibility matrix keeps its sources, and says neither more nor less than its rows."""

from __future__ import annotations

from typing import Optional

import pytest
from helpers.examples import example_context
from helpers.rows import sampled

from envtune.messages import Literal
from envtune.resources.cann import compatibility
from envtune.resources.cann.compatibility_probes import judge_driver, torch
from envtune.resources.cann.driver import parse_package
from envtune.resources.cann.tree import Install
from envtune.resources.cann.version import VersionEvidence

COLUMNS = compatibility.MatrixRow._fields


def test_every_row_has_a_source_and_a_known_relation() -> None:
    rows = compatibility.matrix()
    assert len(rows) == 241
    relations = {"matched", "compatible", "cann_hdk", "downstream", "torch_python", "cann_internal", "cann_inner"}
    relations |= {"published", "cann_hdk_refused", "ops_toolkit"}
    assert {row.relation for row in rows} == relations | {"driver_fw"}
    assert [row.package_version for row in rows if row.relation == "published"] == [compatibility.published()]
    assert all(row.source.strip() and row.package and row.package_version for row in rows)
    for row in compatibility.rows_of("matched"):
        assert row.torch, row
        assert row.cann, row
        assert row.python, row
        assert compatibility.judge_cann(row.package_version, row.cann).tier == "matched"
        assert compatibility.judge_torch(row.package_version, row.torch).tier == "matched"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", ",".join(COLUMNS) + "\nmatched,torch_npu\n"])
def test_a_damaged_matrix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="compatibility matrix"):
        compatibility.parse_matrix(text)


def test_a_row_without_a_source_is_refused() -> None:
    line = ",".join(["matched", "torch_npu", "2.1.0", "", "2.1.0", "7.0.0", "", "3.8", "", "", ""])
    with pytest.raises(ValueError, match="no source"):
        compatibility.parse_matrix(",".join(COLUMNS) + "\n" + line)


@pytest.mark.parametrize(
    ("torch_npu", "cann", "tier"),
    [
        ("2.5.1.post1", "8.2.RC1", "matched"),
        ("2.5.1.post1", "8.2.rc1", "matched"),
        ("1.8.1rc1", "5.1.RC1", "matched"),  # the metadata spells 1.8.1.rc1 so
        ("1.8.1.rc1", "5.1.RC1", "matched"),
        ("2.5.1.post1+git1234567", "8.2.RC1", "matched"),
        ("2.5.1.post1", "8.1.RC1", "compatible"),  # adapter 7.1.0
        ("2.9.0.post1+git4c901a4", "8.5.1", "compatible"),  # a project above pins it
        ("2.7.1.dev20250724", "8.2.RC1", "compatible"),
        ("2.12.0.post2", "9.1.0", "matched"),  # CANN 9.1.X
        ("2.12.0.post2", "9.1.7", "matched"),
        ("2.12.0.post2", "9.1.0-beta.3", "unknown"),  # no patch level
        ("2.12.0.post2", "9.2.0", "unknown"),
        ("2.1.0", "8.2.RC1", "unknown"),  # a list of pairings is no list of refusals
        ("1.5.0.post2", "8.0.0", "unknown"),
        ("2.8.0.post77", "8.5.0", "unknown"),
        ("2.8.0.post2", "8.5.3", "unknown"),  # a CANN the vendor's tables do not name
        ("2.8.0.post2", "8.5.0.alpha002", "unknown"),
        ("garbage", "8.2.RC1", "unknown"),
    ],
)
def test_torch_npu_with_cann(torch_npu: str, cann: str, tier: str) -> None:
    assert compatibility.judge_cann(torch_npu, cann).tier == tier


@pytest.mark.parametrize(
    ("torch_npu", "cann", "newer"),
    [
        ("2.14.0", "9.1.0", "torch_npu 2.14.0 is newer than this table, which ends at 2.12.0.post2"),
        ("2.8.0.post5", "8.5.0", "torch_npu 2.8.0.post5 is newer than this table, which ends at 2.8.0.post4"),
        ("2.9.1", "9.0.0", "torch_npu 2.9.1 is newer than this table, which ends at 2.9.0.post8"),
        ("2.8.0.post4", "9.2.0", "CANN 9.2.0 is newer than this table, which ends at 9.1.X"),
        ("2.7.1.post6", "9.0.0", None),  # on the package index, without a published pairing
        ("2.8.0.post4", "9.1.9", None),  # 9.1.X
        ("1.5.0", "20.2.rc1", None),  # named by the year, before CANN 5.0
    ],
)
def test_newer_than_this_table_is_said(torch_npu: str, cann: str, newer: Optional[str]) -> None:
    reading = compatibility.pair_reading("torch_npu", Literal("pair"), compatibility.judge_cann(torch_npu, cann))
    assert reading.value is None and reading.reason is not None
    assert "not among the published pairs of 2026-11" in reading.reason.en
    assert (newer in reading.reason.en) if newer else ("newer" not in reading.reason.en)
    assert "2026-11" in reading.reason.zh


def test_a_pair_that_is_not_published_says_what_is() -> None:
    verdict = compatibility.judge_cann("2.1.0", "8.2.RC1")
    assert verdict.expected is not None and "CANN 7.0.0" in verdict.expected.en
    assert "，或 torch_npu " in verdict.expected.zh and "2.5.1.post1" in verdict.expected.zh
    assert verdict.evidence.source == "Ascend/pytorch COMPATIBILITY.md @9e73e708a"


@pytest.mark.parametrize(
    ("torch_npu", "version", "tier"),
    [
        ("2.8.0.post2", "2.8.0+cpu", "matched"),
        ("2.8.0.post2", "2.6.0", "refused"),  # each wheel requires the torch of its own release
        ("2.1.0.post10", "2.1.0a0+git7bcf7da", "unknown"),  # built from source
        ("9.9.9", "2.6.0", "unknown"),
    ],
)
def test_torch_npu_with_torch(torch_npu: str, version: str, tier: str) -> None:
    assert compatibility.judge_torch(torch_npu, version).tier == tier


@pytest.mark.parametrize(
    ("requires", "version", "tier"),
    [
        ("torch==2.12.0", "2.12.0+cpu", "matched"),
        ("torch (==2.12.0)", "2.12.0", "matched"),
        ("torch == 2.12.0", "2.11.0", "refused"),
        ("torch==2.12.0", "2.12.1", "refused"),
        ("torch==2.12.*", "2.12.1", "matched"),
        ("torch==2.12.0", "2.12.0a0+git7bcf7da", "unknown"),
        ("torch>=2.0", "2.12.0", "unknown"),  # decides nothing
        ("torch", "2.12.0", "unknown"),
    ],
)
def test_the_metadata_of_torch_npu_settles_the_torch_half(requires: str, version: str, tier: str) -> None:
    assert compatibility.judge_torch("2.12.0.post3", version, requires).tier == tier


@pytest.mark.parametrize(
    ("torch_npu", "python", "tier"),
    [
        ("2.5.1.post1", "3.10", "matched"),
        ("2.5.1.post1", "3.12", "unknown"),
        ("1.11.0", "3.7", "matched"),
        ("1.11.0", "3.7.3", "unknown"),  # >= 3.7.5
        ("1.8.1", "3.9.7", "unknown"),  # 3.9.0-3.9.2
        ("1.8.1", "3.9.2", "matched"),
        ("2.1.0", "3.1", "unknown"),  # not 3.10
    ],
)
def test_torch_npu_with_python(torch_npu: str, python: str, tier: str) -> None:
    assert compatibility.judge_python(torch_npu, "2.1.0", python).tier == tier


@pytest.mark.parametrize(
    ("version", "adapter"),
    [("1.5.0+ascend.post2", "1.5.0.post2"), ("1.5.0+ascend.post3.20220101", "1.5.0.post3"), ("2.1.0+cpu", None)],
)
def test_a_torch_that_carries_the_npu_itself(version: str, adapter: Optional[str]) -> None:
    assert compatibility.released_as(version) == adapter


def test_internal_numbers_are_known_or_not_guessed() -> None:
    assert compatibility.cann_of_internal("8.2.0.0.201") == "8.2.RC1"
    assert compatibility.cann_of_internal("V100R001C22SPC001B231") == "8.2.RC1"
    assert compatibility.cann_of_internal("8.2.0.0.202") is None


def cann(version: str, inner: str = "") -> Install:
    return Install(
        "/cann", "/cann", "arch-linux", VersionEvidence(version, "/cann/ascend_toolkit_install.info", "", inner)
    )


@pytest.mark.parametrize(
    ("driver", "install", "verdict"),
    [
        ("Version=25.0.rc1.1\ncompatible_version=[V100R001C21]\n", cann("8.2.RC1", "V100R001C22SPC001B231"), "match"),
        ("Version=25.0.RC1\n", cann("8.2.RC1"), "match"),
        ("Version=99\ncompatible_version=[V100R001C22]\n", cann("8.2.RC1", "V100R001C22SPC001B231"), "match"),
        ("Version=99\ncompatible_version=[V100R001C22]\n", cann("8.2.rc1"), "match"),  # product number from the matrix
        ("Version=23.0.7\ncompatible_version=[V100R001C15]\n", cann("8.2.RC1", "V100R001C22B1"), "mismatch"),
        ("Version=23.0.7\n", cann("8.2.RC1", "V100R001C22SPC001B231"), None),  # the list is silent
        ("Version=23.0.7\ncompatible_version=[V100R001C15]\n", cann("8.0.0", "V100R001C20SPC001B251"), "mismatch"),
        # another CANN of the same product number is paired with this driver: the list is too narrow for it
        ("Version=25.0.rc1.1\ncompatible_version=[V100R001C21]\n", cann("8.2.RC2", "V100R001C22SPC002B231"), None),
        # written before this CANN was
        ("Version=25.0.rc1.1\ncompatible_version=[V100R001C21]\n", cann("9.9.0", "V100R001C40SPC001B1"), None),
        ("Version=24.1.rc2\n", cann("9.1.0"), None),  # rows that do not match are no refusal
        ("Version=24.1.rc3\n", cann("7.0.0"), None),
        ("Version=25.5.1\ncompatible_version=[V100R001C2", cann("7.0.0", "V100R001C13"), None),  # cut off
    ],
)
def test_driver_and_cann(driver: str, install: Install, verdict: Optional[str]) -> None:
    reading = judge_driver(parse_package("driver", driver), install)
    assert reading.value == verdict
    assert (reading.reason is None) is (verdict is not None)


GRID = {  # CANN -> driver -> accepted, by the release notes of CANN 9.0.1, 9.1.0 and 9.1.1
    cann: {
        driver: not (cann.startswith("9.1.") and driver.startswith("25.0."))
        for driver in ("25.0.rc1.1", "25.2.3", "25.3.rc1", "25.5.2", "26.0.rc1", "25.7.rc1", "26.1.0", "26.1.1")
    }
    for cann in ("8.5.2", "9.0.0", "9.0.1", "9.1.0", "9.1.1", "9.1.4")
}


@pytest.mark.parametrize("lists", ["", "compatible_version=[V100R001C19],[V100R001C21]\n"])
@pytest.mark.parametrize("cann_version", GRID)
@pytest.mark.parametrize("driver", sampled(GRID["8.5.2"], 3))
def test_every_cell_of_the_grid(cann_version: str, driver: str, lists: str) -> None:
    package = parse_package("driver", f"Version={driver}\npackage_version={driver}\n{lists}")
    reading = judge_driver(package, cann(cann_version, "V100R001C10SPC001B100"))
    assert reading.value == ("match" if GRID[cann_version][driver] else "mismatch")
    assert reading.shown is not None and "2026-11" in reading.shown.en


@pytest.mark.parametrize("driver", ["24.1.0", "25.1.0", "25.6.0", "27.0.0"])
@pytest.mark.parametrize("cann_version", ["8.5.2", "9.0.1", "9.1.1"])
def test_what_the_grid_does_not_hold_is_unknown(cann_version: str, driver: str) -> None:
    reading = judge_driver(parse_package("driver", f"Version={driver}\n"), cann(cann_version))
    assert reading.value is None and reading.reason is not None
    assert "not among the published pairs of 2026-11" in reading.reason.en
    assert ("driver 27.0.0 is newer than this table" in reading.reason.en) is (driver == "27.0.0")


def test_the_refusal_of_the_grid_wins_over_an_older_list() -> None:
    package = parse_package("driver", "Version=25.0.rc1.1\ncompatible_version=[V100R001C10]\n")
    assert judge_driver(package, cann("9.1.0", "V100R001C10SPC001B100")).value == "mismatch"


def test_the_stack_of_the_guide_is_matched_row_by_row() -> None:
    readings = list(torch(example_context({"like": "cann-old"})))
    assert [(r.subject, r.value) for r in readings] == [
        ("torch_npu", "matched"),  # this torch carries the NPU itself: there is no pair of torch and torch_npu
        ("python", "matched"),
    ]
    assert all("COMPATIBILITY.md" in r.evidence.source for r in readings)
