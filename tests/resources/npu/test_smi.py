"""npu-smi prints nine layouts; every one is read by its headers, and a text that breaks off is never a healthy host.

The texts in tests/npu_smi/ follow public listings, one per layout; the file name says version and model.
"""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest
from helpers.checks import check_files
from helpers.examples import example_context
from helpers.rows import sampled

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.model import Finding, Outcome
from envtune.resources.npu.devices import fact_ascend, fact_npu, fact_npu_count, table_model
from envtune.resources.npu.smi import MemoryUsage, parse_failure, parse_info

TEXTS = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "npu_smi").glob("*.txt")}
CHECKS = {data["id"]: check_from(data) for data in check_files() if data["id"] in ("CANN007", "PROC001", "PROC002")}


def judge(check: str, text: str, **example: Any) -> tuple[Finding, ...]:
    """What the check says about a host whose `npu-smi info` prints `text`."""
    return examine(CHECKS[check], example_context({"commands": {"npu-smi info": text}, **example}))


def nodes(text: str) -> dict[str, Any]:
    """The device nodes that belong to the complete table."""
    listed = parse_info(text)
    return {f"/dev/davinci{listed.node(device)}": {"char": True} for device in listed.devices}


@pytest.mark.parametrize(
    ("name", "version", "count", "model"),
    [
        ("21.0.2-910a", "21.0.2", 8, "910A"),
        ("21.0.4-910a", "21.0.4", 2, "910A"),
        ("21.0.3.1-310", "21.0.3.1", 2, "310"),
        ("23.0.0-310p", "23.0.0", 1, "310P"),
        ("23.0.rc2-910-first-generation", "23.0.rc2", 1, "910A"),
        ("24.1.0-910b", "24.1.0", 8, "910B"),
        ("25.2.3-a3", "25.2.3", 16, "A3"),
        ("26.0.rc1-910b", "26.0.rc1", 8, "910B"),
        ("25.6-950", "25.6.rc1.b218", 2, "Ascend950DT"),
    ],
)
def test_every_layout(name: str, version: str, count: int, model: str) -> None:
    listed = parse_info(TEXTS[name])
    assert (listed.incomplete, listed.truncated, listed.version, len(listed.devices)) == (None, False, version, count)
    assert table_model(listed) == model
    assert all(device.temp and (device.hbm or device.memory) for device in listed.devices)


def test_no_layout_is_left_out() -> None:
    assert len(TEXTS) == 9


def test_values_of_the_oldest_layout() -> None:
    device = parse_info(TEXTS["21.0.2-910a"]).devices[1]
    assert (device.npu, device.chip, device.node, device.name, device.health) == (1, 0, None, "910A", "OK")
    assert (device.bus, device.power, device.temp) == ("0000:81:00.0", 63.8, 37.0)
    assert (device.memory, device.hbm, device.hugepages) == (MemoryUsage(1840, 15039), MemoryUsage(0, 32768), None)


def test_values_of_two_chips_on_one_npu() -> None:
    listed = parse_info(TEXTS["25.2.3-a3"])
    first, second = listed.devices[:2]
    assert (first.npu, first.chip, first.node, first.power) == (0, 0, 0, 175.3)
    assert (second.npu, second.chip, second.node, second.power) == (0, 1, 1, None)
    assert [(p.npu, p.chip, p.pid, p.memory) for p in listed.processes] == [
        (0, 0, 3325989, 50128),
        (0, 0, 3330598, 132),
        (0, 1, 3328327, 50119),
    ]
    assert listed.without_processes == ()


def test_values_of_the_wide_layouts() -> None:
    assert parse_info(TEXTS["26.0.rc1-910b"]).processes[0].name == "pytest"
    assert parse_info(TEXTS["26.0.rc1-910b"]).processes[0].inner is None
    process = parse_info(TEXTS["25.6-950"]).processes[0]
    assert (process.npu, process.pid, process.inner, process.memory) == (7, 1001, 101, 256)
    assert parse_info(TEXTS["25.6-950"]).devices[1].hbm == MemoryUsage(91000, 98304)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_same_table_in_other_dress(name: str) -> None:
    plain = parse_info(TEXTS[name])
    for text in (
        TEXTS[name].replace("\n", "\r\n"),
        "\ufeff" + TEXTS[name],
        "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n\n" + TEXTS[name],
        "\n".join("    " + line for line in TEXTS[name].splitlines()),
        TEXTS[name].rstrip("\n"),
    ):
        framed = parse_info(text)
        assert (framed.incomplete, framed.truncated) == (None, False)
        assert [(d.npu, d.chip, d.health, d.hbm) for d in framed.devices] == [
            (d.npu, d.chip, d.health, d.hbm) for d in plain.devices
        ]


@pytest.mark.parametrize("name", sampled(sorted(TEXTS), 2))
def test_cut_at_every_line_is_never_a_healthy_host(name: str) -> None:
    text = TEXTS[name]
    lines = text.splitlines(keepends=True)
    files = nodes(text)
    devices = len(parse_info(text).devices)
    for end in range(len(lines)):
        part = "".join(lines[:end])
        if len(parse_info(part).devices) < devices:
            passed = [f for f in judge("CANN007", part, files=files) if f.outcome is Outcome.PASS]
            assert passed == [], (end, passed)


MODERN = ["24.1.0-910b", "25.2.3-a3", "26.0.rc1-910b"]


def cuts(text: str, start: int, stop: int, step: int) -> list[int]:
    """Every line's end between the two, and every `step`-th column."""
    ends = {i for i in range(start, stop) if text[i - 1 : i] == "\n"}
    return sorted(ends | set(range(start, stop, step)))


@pytest.mark.parametrize("step", sampled([41, 1], 2))
@pytest.mark.parametrize("name", sampled(MODERN, 3))
def test_a_text_cut_anywhere_is_known_to_be_cut(name: str, step: int) -> None:
    text = TEXTS[name]
    for end in cuts(text, 0, text.rindex("No running"), step):
        assert parse_info(text[:end]).truncated, end


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_a_device_table_cut_anywhere_lacks_devices_only_where_it_says_so(step: int) -> None:
    text = TEXTS["24.1.0-910b"]
    for end in cuts(text, text.index("+===="), text.index("| NPU     Chip"), step):
        listed = parse_info(text[:end])
        assert listed.truncated or len(listed.devices) == 8, end


@pytest.mark.parametrize("step", sampled([601, 7], 2))
@pytest.mark.parametrize("name", sampled(MODERN, 3))
def test_cut_anywhere_is_never_a_host_without_processes(name: str, step: int) -> None:
    text = TEXTS[name]
    for end in range(0, text.rindex("No running"), step):
        passed = [f for f in judge("PROC001", text[:end], files=nodes(text)) if f.outcome is Outcome.PASS]
        assert passed == [], (end, passed)


def test_cut_inside_a_line() -> None:
    text = TEXTS["24.1.0-910b"]
    for end in range(text.index("+===="), text.index("| NPU     Chip"), 211):
        outcomes = {f.outcome for f in judge("CANN007", text[:end], files=nodes(text))}
        if len(parse_info(text[:end]).devices) < 8:
            assert Outcome.PASS not in outcomes and Outcome.FAIL not in outcomes, end


def test_a_wrapped_table_is_named() -> None:
    wrapped = "\n".join(line[i : i + 80] for line in TEXTS["24.1.0-910b"].splitlines() for i in range(0, len(line), 80))
    assert parse_info(wrapped).incomplete is not None
    assert {f.outcome for f in judge("CANN007", wrapped, files=nodes(TEXTS["24.1.0-910b"]))} == {Outcome.UNKNOWN}


def test_a_sick_device_is_told_even_from_a_text_that_breaks_off() -> None:
    text = TEXTS["24.1.0-910b"].replace("| 1     910B3               | OK   ", "| 1     910B3               | Alarm")
    cut = text[: text.index("| 3     910B3") + 20]
    told = {(f.outcome, f.subject) for f in judge("CANN007", cut, files=nodes(text))}
    assert told == {(Outcome.FAIL, "npu1"), (Outcome.UNKNOWN, "npu")}


@pytest.mark.parametrize("health", ["Warning", "Alarm", "Critical", "UNKNOWN", "Offline", "NA"])
@pytest.mark.parametrize("name", ["21.0.2-910a", "24.1.0-910b", "25.2.3-a3", "26.0.rc1-910b"])
def test_one_sick_device_is_the_only_failure(name: str, health: str) -> None:
    text = TEXTS[name]
    row = parse_info(text).devices[1].raw
    sick = text.replace(row, row.replace("| OK      ", f"| {health:8}", 1), 1)
    findings = judge("CANN007", sick, files=nodes(text))
    assert [(f.outcome, f.subject, f.actual and f.actual.en) for f in findings] == [(Outcome.FAIL, "npu1", health)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\1\2",
        "|",
        "||||",
        "+---+\n| |\n+---+",
        "| NPU | Health |\n|  |  |\n",
        "|" * 5000,
        "| NPU Name | Health |\n" * 50,
    ],
)
def test_garbage_is_incomplete(text: str) -> None:
    assert parse_info(text).incomplete is not None
    assert {f.outcome for f in judge("CANN007", text, files={"/dev/davinci0": {"char": True}})} == {Outcome.UNKNOWN}


@pytest.mark.parametrize("rounds", [40, pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_random_damage_never_raises_and_never_passes_from_fewer_devices(rounds: int) -> None:
    chance = random.Random(2)
    for _ in range(rounds):
        name = chance.choice(sorted(TEXTS))
        text = list(TEXTS[name])
        for _ in range(chance.randrange(1, 30)):
            text[chance.randrange(len(text))] = chance.choice(string.printable + "中²\ufeff")
        damaged = "".join(text)
        listed = parse_info(damaged)
        findings = judge("CANN007", damaged, files=nodes(TEXTS[name]))
        if any(f.outcome is Outcome.PASS for f in findings):
            assert len(listed.devices) == len(parse_info(TEXTS[name]).devices), damaged
        assert all(f.outcome is not Outcome.ERROR for f in findings), (findings, damaged)


def test_a_chip_named_twice_is_no_table() -> None:
    text = TEXTS["21.0.4-910a"].replace("| 1     910A", "| 0     910A")
    assert parse_info(text).incomplete is not None


@pytest.mark.parametrize(
    ("text", "code", "needs_privilege"),
    [
        ("dcmi module initialize failed. ret is -8005\n", "-8005", True),
        ("DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi module initialize failed. ret is -8005\n", "-8005", True),
        ("dcmi model initialized failed, because the device is used. ret is -8020\n", "-8020", True),
        ("DrvMngGetConsoleLogLevel failed. (ret=4)\n", "DrvMngGetConsoleLogLevel", True),
        ("npu get board type failed. ret is -9005\n", "-9005", False),
        (
            "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared object",
            "library",
            False,
        ),
    ],
)
def test_failures_and_what_they_mean(text: str, code: str, needs_privilege: bool) -> None:
    failure = parse_failure(text, 1)
    assert failure is not None
    assert (failure.code, failure.needs_privilege) == (code, needs_privilege)
    assert failure.meaning.en and failure.meaning.zh


def test_an_exit_code_without_words_is_a_failure_too() -> None:
    failure = parse_failure("", 3)
    assert failure is not None and failure.code == "exit code 3"
    assert parse_failure("all is well", 0) is None


def test_root_and_user_read_the_same_failure_differently() -> None:
    failed = {"rc": 255, "stdout": "dcmi module initialize failed. ret is -8005\n"}
    host: dict[str, Any] = {"like": "npu-910b-8", "commands": {"npu-smi info": failed}}
    as_root = examine(CHECKS["CANN007"], example_context(host))[0]
    as_user = examine(CHECKS["CANN007"], example_context({**host, "euid": 1000}))[0]
    assert (as_root.outcome, as_user.outcome, as_user.needs_privilege) == (Outcome.FAIL, Outcome.UNKNOWN, True)


@pytest.mark.parametrize(
    ("name", "model", "count"), [("npu-910a-8", "910A", "8"), ("npu-910b-8", "910B", "8"), ("npu-a3-16", "A3", "16")]
)
def test_facts_of_the_shared_hosts(name: str, model: str, count: str) -> None:
    context = example_context({"like": name})
    assert (fact_npu(context).value, fact_npu_count(context).value, fact_ascend(context).value) == (
        model,
        count,
        "true",
    )


@pytest.mark.parametrize(
    ("name", "model"),
    [("23.0.rc2-910-first-generation", "910A"), ("24.1.0-910b", "910B"), ("25.2.3-a3", "A3"), ("23.0.0-310p", "310P")],
)
def test_without_pci_the_name_column_tells_the_model(name: str, model: str) -> None:
    context = example_context({"commands": {"npu-smi info": TEXTS[name]}, "files": nodes(TEXTS[name])})
    fact = fact_npu(context)
    assert (fact.value, fact.source) == (model, "npu-smi info")


@pytest.mark.parametrize(
    ("chip", "model"),
    [
        ("910A", "910A"),
        ("910ProA", "910A"),
        ("910ProB", "910A"),
        ("910PremiumA", "910A"),
        ("Ascend910B2C", "910B"),
        ("910B4-1", "910B"),
        ("Ascend910_9382", "A3"),
        ("310B4", "310B4"),
    ],
)
def test_chip_names(chip: str, model: str) -> None:
    listed = parse_info(TEXTS["23.0.rc2-910-first-generation"].replace(" 910B ", f" {chip} "))
    assert table_model(listed) == model


def test_no_sign_of_ascend() -> None:
    context = example_context({})
    assert (fact_npu(context).value, fact_npu_count(context).value, fact_ascend(context).value) == (
        "none",
        "0",
        "false",
    )
    assert "davinci" in fact_ascend(context).source


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/dev/davinci0", {"char": True}),
        ("/usr/local/Ascend/driver/version.info", "Version=23.0.7\n"),
        ("/usr/local/Ascend/ascend-toolkit", {"dir": []}),
    ],
)
def test_one_sign_of_ascend_is_enough(path: str, entry: Any) -> None:
    fact = fact_ascend(example_context({"files": {path: entry}}))
    assert fact.value == "true"
    assert fact.source in (path, "/dev/davinci[0-9]*")


def test_a_listing_alone_is_a_sign_too() -> None:
    context = example_context({"commands": {"npu-smi info": TEXTS["25.2.3-a3"]}})
    assert (fact_ascend(context).value, fact_npu(context).value, fact_npu_count(context).value) == ("true", "A3", "16")


def test_container_that_was_given_no_device() -> None:
    """CANN from the image, nothing of the host: the devices cannot be told, and that is said once."""
    inside = {"/.dockerenv": "", "/usr/local/Ascend/ascend-toolkit": {"dir": []}}
    (finding,) = examine(CHECKS["CANN007"], example_context({"files": inside}))
    assert (finding.outcome, finding.needs_privilege) == (Outcome.UNKNOWN, False)
    assert finding.reason is not None and "has no NPU" in finding.reason.en
    for other in ("PROC001", "PROC002"):
        assert {f.outcome for f in examine(CHECKS[other], example_context({"files": inside}))} == {
            Outcome.NOTAPPLICABLE
        }


def test_network_cards_of_the_same_vendor_are_no_npus() -> None:
    card = "/sys/bus/pci/devices/0000:05:00.0"
    files = {f"{card}/vendor": "0x19e5\n", f"{card}/device": "0x0222\n", f"{card}/class": "0x020000\n"}
    context = example_context({"files": files})
    assert (fact_npu(context).value, fact_ascend(context).value) == ("none", "false")


def test_a_snapshot_that_is_silent_is_not_a_host_without_npus() -> None:
    context = example_context({"like": None, "covered": ["/etc/os-release"], "files": {}, "commands": {}})
    for name in ("npu", "npu_count", "ascend"):
        assert context.facts[name].value is None, name
        assert context.facts[name].reason is not None
