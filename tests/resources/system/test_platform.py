"""The machine's own words about itself: os-release and its elders, cpuinfo, meminfo."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.resources.system.hardware import cpu_name, is_model, total_bytes
from envtune.resources.system.platform import distribution, parse_os_release, parse_release_line

KUNPENG = "processor\t: 0\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x48\nCPU architecture: 8\nCPU part\t: 0xd01\n\n"
XEON = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8260 CPU @ 2.40GHz\n"
KYLIN = "processor\t: 0\nmodel name\t: Kunpeng-920\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="18.04"\n', {"ID": "ubuntu", "VERSION_ID": "18.04"}),
        ("ID='openEuler'\r\nVERSION_ID='20.03'\r\n", {"ID": "openEuler", "VERSION_ID": "20.03"}),
        ("# a comment\n\nno assignment\n = \nID=kylin", {"ID": "kylin"}),
        ("", {}),
    ],
)
def test_os_release(text: str, fields: dict[str, str]) -> None:
    found = parse_os_release(text)
    assert {key: found[key] for key in fields} == fields
    assert bool(found) == bool(fields)


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("CentOS Linux release 7.6.1810 (Core) \n", "centos", "7.6.1810"),
        ("EulerOS release 2.0 (SP8)\n", "euleros", "2.0"),
        ("openEuler release 20.03 (LTS)\n", "openeuler", "20.03"),
        ("Kylin Linux Advanced Server release V10 (Tercel)\n", None, None),
        ("release 7\n", None, None),
        ("\x00\x01\x02", None, None),
        ("", None, None),
    ],
)
def test_release_line(text: str, name: Any, version: Any) -> None:
    fields = parse_release_line(text)
    assert (fields.get("ID"), fields.get("VERSION_ID")) == (name, version)


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"/etc/os-release": 'ID="euleros"\nVERSION="2.0 (SP8)"\nVERSION_ID="2.0"\n'}, "euleros 2.8"),
        ({"/etc/os-release": None, "/etc/euleros-release": "EulerOS release 2.0 (SP8)\n"}, "euleros 2.8"),
        ({"/etc/os-release": 'ID="openEuler"\nVERSION="22.03 (LTS-SP1)"\nVERSION_ID="22.03"\n'}, "openeuler 22.03"),
        ({"/etc/os-release": None, "/usr/lib/os-release": "ID=debian\nVERSION_ID=9.9\n"}, "debian 9.9"),
        (
            {
                "/etc/os-release": 'ID="centos"\nVERSION_ID="7"\n',
                "/etc/centos-release": "CentOS Linux release 7.6.1810 (Core)",
            },
            "centos 7.6",
        ),
    ],
)
def test_distribution(files: dict[str, Any], value: str) -> None:
    (reading,) = distribution(example_context({"files": files}))
    assert reading.value == value


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (KUNPENG, "Kunpeng-920"),
        (XEON, "Intel(R) Xeon(R) Platinum 8260 CPU @ 2.40GHz"),
        (KYLIN, "Kunpeng-920"),
        (KUNPENG.replace("0xd01", "0xd02"), "ARM implementer 0x48 part 0xd02"),
        (KUNPENG.replace("0xd01", "zzz"), None),
        ("processor\t: 0\n", None),
        ("", None),
    ],
)
def test_cpu_name(cpuinfo: str, name: Any) -> None:
    assert cpu_name(cpuinfo) == name


@pytest.mark.parametrize(
    ("name", "wanted", "same"),
    [
        ("Atlas 800 (Model 9000)", "Atlas 800 9000", True),
        ("Atlas800-9000", "Atlas 800 9000", True),
        ("Atlas 800T A2", "Atlas 800 9000", False),
        ("Atlas 800 (Model 9010)", "Atlas 800 9000", False),
        ("Kunpeng-920", "Kunpeng 920", True),
        ("Intel(R) Xeon(R) Platinum 8260L CPU @ 2.40GHz", "Platinum 8260", True),
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "Platinum 8260", False),
    ],
)
def test_model_names_match_loosely(name: str, wanted: str, same: bool) -> None:
    assert is_model(name, wanted) is same


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("MemTotal:       791250560 kB\nMemFree: 1 kB\n", 791250560 * 1024),
        ("MemFree: 1 kB\nMemTotal: 16 kB\n", 16384),
        ("MemTotal: 16\n", None),
        ("MemTotal: many kB\n", None),
        ("MemTotalX: 16 kB\n", None),
        ("", None),
    ],
)
def test_memory(text: str, size: Any) -> None:
    assert total_bytes(text) == size


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    parse_os_release(text)
    parse_release_line(text)
    cpu_name(text)
    total_bytes(text)
