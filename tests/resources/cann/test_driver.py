"""Version files of driver and firmware, as they lie on real hosts and as they are found damaged."""

from __future__ import annotations

from contextlib import suppress

import pytest
from helpers.examples import example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.collector.sources.cann import key_values
from envtune.errors import Unreadable
from envtune.resources.cann.driver import firmware_match, judge_firmware, parse_package
from envtune.resources.cann.version_files import (
    bracket_groups,
    in_ranges,
    lists_product,
    matches_row,
    product_number,
    version_parts,
)

DRIVER_23 = """Version=23.0.7
ascendhal_version=7.35.19
aicpu_version=1.0
Innerversion=V100R001C15SPC012B220
compatible_version=[V100R001C29],[V100R001C30],[V100R001C13],[V100R001C15]
compatible_version_fw=[7.0.0,7.1.99]
package_version=23.0.7
"""
DRIVER_22 = (
    "Version=22.0.3.b080\nascendhal_version=6.13.22\nInnerversion=V100R001C83SPC001B228\npackage_version=6.0.rc1\n"
)
FIRMWARE_22 = "Version=1.83.9.1.228\nfirmware_version=1.0\npackage_version=6.0.rc1\n"
FIRMWARE_25 = """Version=7.7.0.1.231
firmware_version=1.0
package_version=25.0.rc1.1
compatible_version_drv=[23.0.rc2,23.0.rc2.],[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.],[25.0,25.0.]
"""


def test_the_bundle_version_is_what_a_person_knows() -> None:
    package = parse_package("driver", DRIVER_22)
    assert (package.shown, package.version, package.inner) == ("6.0.rc1", "22.0.3.b080", "V100R001C83SPC001B228")


def test_keys_in_any_case_with_crlf_spaces_quotes_and_a_byte_order_mark() -> None:
    text = "\ufeff# comment\r\nVERSION = 23.0.7 \r\n Package_Version : '23.0.7'\r\n"
    text += "Compatible_Version_FW=[7.0.0, 7.1.99]\r\n"
    package = parse_package("driver", text)
    assert (package.version, package.bundle, package.accepts) == ("23.0.7", "23.0.7", "[7.0.0, 7.1.99]")


@pytest.mark.parametrize("text", ["", "\n\n", "no key here", "Innerversion=V1", "Version=\n", "=\n=="])
def test_a_file_without_a_version_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        parse_package("driver", text)


@pytest.mark.parametrize(
    ("version", "ranges", "inside"),
    [
        ("7.1.0.11.220", "[7.0.0,7.1.99]", True),
        ("7.2.0.1.231", "[7.0.0,7.1.99]", False),
        ("7.1.99.5", "[7.0.0,7.1.99]", True),
        ("6.4.12.1.241", "[6.4.0,6.4.99],[7.0.0,7.7.99]", True),
        ("6.5.0", "[6.4.0,6.4.99],[7.0.0,7.7.99]", False),
        ("23.0.0", "[23.0.0,23.0.0.]", True),
        ("23.0.0.3", "[23.0.0,23.0.0.]", True),
        ("23.0.7", "[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]", False),
        ("24.1.rc2.2", "[24.0,24.0.],[24.1,24.1.]", True),
        ("24.1.RC2", "[24.1,24.1.]", True),
        ("24.10.0", "[24.1,24.1.]", False),
        ("25.0.rc1.1", "[25.0,25.0.]", True),
        ("7.0.0", "[7.0.0]", True),
    ],
)
def test_ranges(version: str, ranges: str, inside: bool) -> None:
    assert in_ranges(version, ranges) is inside


@pytest.mark.parametrize("ranges", ["[7.0.0,7.1.99", "7.0.0]", "[]", "", "[a b,c]", "[7.0.0,7.1.99]x"])
def test_damaged_ranges_say_nothing(ranges: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        in_ranges("7.0.1", ranges)


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_text_breaks_the_readers(one: str, other: str) -> None:
    key_values(one)
    for reader in (bracket_groups, version_parts):
        with suppress(ValueError):
            reader(one)
    with suppress(ValueError):
        in_ranges(one, other)


@pytest.mark.parametrize(
    ("driver", "firmware", "verdict"),
    [
        (DRIVER_22, FIRMWARE_22, "match"),  # no list at all, one delivery
        (DRIVER_23, "Version=7.1.0.11.220\npackage_version=23.0.7\ncompatible_version_drv=[23.0.0,23.0.0.]\n", "match"),
        (DRIVER_23, "Version=7.1.0.5\npackage_version=23.0.6\n", "match"),  # only the driver speaks
        ("Version=24.1.rc2\n", FIRMWARE_25, "match"),  # only the firmware speaks
        ("Version=24.1.rc2\ncompatible_version_fw=[7.0.0,7.2.99]\n", FIRMWARE_25, "match"),  # they disagree
        (DRIVER_23, FIRMWARE_25.replace("[23.0.0,23.0.0.],", ""), "mismatch"),
        (DRIVER_23, "Version=7.7.0.1.231\npackage_version=25.0.rc1\n", None),  # one refuses, the other is silent
        ("Version=21.0.2\n", "Version=1.78.22.4.220\n", None),
        (DRIVER_23.replace("7.1.99]", "7.1."), "Version=7.1.0\n", None),  # cut off
    ],
)
def test_driver_and_firmware_in_both_directions(driver: str, firmware: str, verdict: str) -> None:
    reading = judge_firmware(parse_package("driver", driver), parse_package("firmware", firmware))
    assert reading.value == verdict
    assert (reading.reason is None) is (verdict is not None)


def test_a_disagreement_is_said_although_it_is_a_match() -> None:
    (reading,) = firmware_match(example_context({"like": "cann-mid", "files": disagreeing()}))
    assert reading.value == "match"
    assert reading.shown is not None
    assert "the driver rejects the firmware, the firmware accepts the driver" in reading.shown.en
    assert "驱动不支持该固件" in reading.shown.zh


def disagreeing() -> dict[str, str]:
    return {
        "/usr/local/Ascend/driver/version.info": "Version=24.1.rc2\ncompatible_version_fw=[7.0.0,7.2.99]\n",
        "/usr/local/Ascend/firmware/version.info": FIRMWARE_25,
    }


def test_product_numbers_are_members_never_ordered() -> None:
    assert product_number("V100R001C10SPC001B257") == (100, 1, 10)
    assert product_number("8.2.0.0.201") is None
    listed = "[V100R001C29],[V100R001C30],[V100R001C13],[V100R001C15]"
    assert lists_product((100, 1, 15), listed)
    assert not lists_product((100, 1, 14), listed)  # between two members
    assert lists_product((100, 1, 78), "[V100R001C80,V100R001C84],[V100R001C77,V100R001C79]")  # a stated range
    with pytest.raises(ValueError, match="no product number"):
        lists_product((100, 1, 15), "[]")


@pytest.mark.parametrize(
    ("version", "row", "same"),
    [
        ("25.0.rc1.1", "25.0.RC1", True),
        ("25.3.rc1", "25.3.X", True),
        ("25.5.2", "25.5.X", True),
        ("25.30.0", "25.3.X", False),
        ("25.2.1", "25.2.0", False),
        ("25.2", "25.2.0", False),
        ("24.1.rc2.2", "24.1.RC2", True),
    ],
)
def test_rows_of_the_matrix_name_drivers(version: str, row: str, same: bool) -> None:
    assert matches_row(version, row) is same


def test_facts_of_a_container_without_the_driver_and_of_a_plain_host() -> None:
    facts = example_context({"like": "npu-910b-8"}).facts  # devices are there, the driver's files are not
    assert facts["driver"].value is None
    assert "container" in facts["driver"].reason.en  # type: ignore[union-attr]
    plain = example_context({"like": "bare"}).facts
    assert (plain.value("driver"), plain.value("firmware")) == ("none", "none")
