"""hccn.conf in its public layouts, and garbage; the tool asked no further after it did not answer."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.errors import TimedOut
from envtune.model import CommandResult, Outcome
from envtune.resources.npu.hccn import parse_hccn_conf
from envtune.resources.npu.hccn_addresses import netmask_number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "address_0=192.168.1.8\nnetmask_0=255.255.255.0\n",
            {0: {"address": "192.168.1.8", "netmask": "255.255.255.0"}},
        ),
        ("# old\naddress_10 = '192.168.1.8'\r\n", {10: {"address": "192.168.1.8"}}),
        ("send_arp_status_3=1\nIPv6_address_3=fe80::1\n", {3: {"send_arp_status": "1", "ipv6_address": "fe80::1"}}),
        ("address_0=1.1.1.1\naddress_0=1.1.1.2\n", {0: {"address": "1.1.1.2"}}),
        ("", {}),
        ("address=1.1.1.1\n[0]\n\0\n=\n_0=1\naddress_9999=1\n", {}),
    ],
)
def test_layouts_of_hccn_conf(text: str, found: Mapping[int, Mapping[str, str]]) -> None:
    assert parse_hccn_conf(text) == found


@pytest.mark.parametrize("text", ["255.255.255.255", "255.255.255.0", "255.255.254.0", "128.0.0.0"])
def test_netmasks(text: str) -> None:
    assert netmask_number(text) is not None


@pytest.mark.parametrize("text", ["255.0.255.0", "0.255.255.255", "255.255.255", "24", "0.0.0.0", "ffff::", ""])
def test_what_is_no_netmask(text: str) -> None:
    assert netmask_number(text) is None


@pytest.mark.parametrize("id_", ["NET113", "NET114", "NET115", "NET116"])
def test_a_tool_that_does_not_answer_is_asked_once(id_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = example_context({"like": "npu-910b-net"})
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        asked.append(argv)
        raise TimedOut(" ".join(argv), "no response")

    monkeypatch.setattr(context.host, "run", run)
    (check,) = [check for check in load().checks if check.id == id_]
    assert [finding.outcome for finding in examine(check, context)] == [Outcome.UNKNOWN]
    assert len([argv for argv in asked if "hccn_tool" in argv[0]]) == 1


def test_certificates_after_the_tls_switch_are_not_recorded() -> None:
    from helpers.recording import recorded_again

    from envtune.collector.sources.npu import HCCN_TOOL

    line = "dev_id:0, tls switch[1](0:disable, 1:enable), tls alarm time threshold[60]days\n"
    host: dict[str, Any] = {
        "like": "npu-910b-net",
        "commands": {f"{HCCN_TOOL} -i 0 -tls -g": line + "         issuer[/C=CN/CN=x]\n" * 90},
    }
    recorded = recorded_again(example_context(host).host)  # type: ignore[arg-type]
    text = recorded.run((HCCN_TOOL, "-i", "0", "-tls", "-g")).stdout
    assert text.startswith(line) and len(text) == 400
