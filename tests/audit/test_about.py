"""A finding about another port, device, process, variable, value, address or path than the log names says nothing."""

from __future__ import annotations

import pytest

from envtune.audit.about import is_about_another
from envtune.catalog import load
from envtune.diagnose.proof import LIKELY, NOT_HERE, PROVED, judge
from envtune.messages import Literal
from envtune.model import Criterion, Evidence, Finding, Outcome, Severity

CHECK = next(check for check in load().checks if check.id == "NET003")


def found(subject: str, actual: str = "", evidence: str = "") -> Finding:
    return Finding(
        CHECK, Outcome.FAIL, Severity.HIGH, subject, Literal(actual), None, None, Evidence("/proc", evidence)
    )


CASES = [
    # what the log names, the finding: subject, what was found, its evidence; whether that is another one
    ({"port": "29500"}, ("MASTER_PORT", "29688 in use: 192.0.2.11 python3 (5151)", ""), True),
    ({"port": "29500"}, ("MASTER_PORT", "29500 in use: 192.0.2.11 python3 (5151)", ""), False),
    ({"port": "60003"}, ("HCCL 60000-60015", "in ip_local_port_range", ""), False),
    ({"port": "29500"}, ("HCCL 60000-60015", "in ip_local_port_range", ""), True),
    ({"port": "60003"}, ("port 60007", "in use", ""), True),
    ({"port": "29500"}, ("MASTER_PORT 29688", "blocked by DROP", ""), True),
    ({"port": "29500"}, ("npu1", "pid 4242 python3", ""), False),
    ({"device": "3"}, ("npu5", "Alarm", ""), True),
    ({"device": "3"}, ("npu2-4", "Alarm", ""), False),
    ({"device": "3"}, ("npu-smi", "cannot be reached", ""), False),
    ({"pid": "4242"}, ("npu1", "pid 77 (li): orphaned", ""), True),
    ({"pid": "4242"}, ("npu1", "pid 77 (li), pid 4242 (li): orphaned", ""), False),
    ({"pid": "4242"}, ("npu1", "41052 of 65536 MB used", ""), False),
    ({"variable": "HCCL_BUFFSIZE"}, ("HCCL_RDMA_TC", "133", "HCCL_RDMA_TC=133"), True),
    ({"variable": "HCCL_BUFFSIZE"}, ("HCCL_BUFFSIZE, HCCL_ALGO", "both set", ""), False),
    ({"value": "133"}, ("HCCL_RDMA_TC", "132", "HCCL_RDMA_TC=132"), True),
    ({"value": "133"}, ("HCCL_RDMA_TC", "133", "HCCL_RDMA_TC=133"), False),
    ({"value": "bond9"}, ("HCCL_SOCKET_IFNAME", "no interface of this host", "HCCL_SOCKET_IFNAME==bond9"), False),
    ({"address": "192.0.2.1"}, ("MASTER_ADDR", "192.0.2.9: does not resolve", ""), True),
    ({"address": "192.0.2.1"}, ("MASTER_ADDR", "192.0.2.1: neither an address nor a name", ""), False),
    ({"path": "/data/a.log"}, ("/data", "2 GB free", ""), False),
    ({"path": "/data/a.log"}, ("/home/x", "2 GB free", ""), True),
    ({"path": "a.log"}, ("/home/x", "2 GB free", ""), False),
    ({}, ("MASTER_PORT", "29688 in use", ""), False),
]


@pytest.mark.parametrize(("named", "finding", "another"), CASES)
def test_what_the_log_names_and_what_was_found(
    named: dict[str, str], finding: tuple[str, str, str], another: bool
) -> None:
    assert is_about_another(found(*finding), named, True) is another


def test_devices_that_the_job_counts_otherwise_are_not_told_apart() -> None:
    assert not is_about_another(found("npu5", "Alarm"), {"device": "3"}, False)


class Host:
    numbers_devices = True

    def holds(self, when: object) -> tuple[()]:
        return ()


@pytest.mark.parametrize(("port", "verdict"), [("29500", NOT_HERE), ("29688", PROVED), ("", LIKELY)])
def test_evidence_about_another_subject_raises_no_entry(port: str, verdict: str) -> None:
    """The entry of an address in use, with a site's criterion that names no port."""
    shipped = next(entry for entry in load().faq if entry.id == "H116")
    entry = shipped._replace(favours=(Criterion("NET003", actual="in use"),))
    finding = found("MASTER_PORT", "29688 in use: 192.0.2.11 python3 (5151)")
    assert judge(entry, {"port": port}, [finding], Host()).verdict == verdict
