"""`envtune npu`: every NPU that anything shows, and why a cell is unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import run
from helpers.json_schema import conforms
from helpers.recorded import ROOT, host_data, host_names
from helpers.rows import sampled

from envtune.context.open import open_context
from envtune.report.layout import display_width
from envtune.report.npu import npu_data, render
from envtune.resources.processes.inventory import NpuRow, inventory
from envtune.snapshot.host import SnapshotHost

SCHEMA = json.loads((ROOT / "docs" / "schema" / "npu.json").read_text("utf-8"))
TROUBLED, CONTAINER = "910b-openeuler2203-troubled", "container-without-driver"


def rows(data: Any) -> tuple[NpuRow, ...]:
    return inventory(open_context(SnapshotHost(data)))


def changed(name: str, **commands: Any) -> Any:
    data = host_data(name)
    data["commands"] = {**data["commands"], "npu-smi info": commands["smi"]}
    return data


def test_a_device_that_npu_smi_lists_has_everything() -> None:
    first, second, *others = rows(host_data(TROUBLED))
    assert (first.subject, first.model, first.health, first.temperature) == ("npu0", "910B3", "OK", 34.0)
    assert first.memory == (3408, 65536) and first.processes == () and not first.unknown
    assert [process.pid for process in second.processes or ()] == [4242]
    assert [row.subject for row in others] == [f"npu{number}" for number in range(2, 8)]


def test_a_device_that_npu_smi_does_not_list_is_unknown_and_not_left_out() -> None:
    for row in rows(host_data(TROUBLED))[2:]:
        assert (row.model, row.health, row.memory, row.processes) == ("910B", None, None, None)
        assert {reason.en for reason in row.unknown.values()} == {
            "the device node exists, but npu-smi does not list it"
        }


@pytest.mark.parametrize(
    ("smi", "reason"),
    [
        ({"error": "missing"}, "npu-smi not found"),
        ({"error": "timeout"}, "npu-smi did not respond within 15 s: the driver hangs"),
        (
            {"rc": 255, "stdout": "dcmi module initialize failed. ret is -8005\n", "stderr": ""},
            "driver cannot be reached",
        ),
    ],
)
def test_without_an_answer_of_npu_smi_the_device_nodes_count(smi: Any, reason: str) -> None:
    found = rows(changed(TROUBLED, smi=smi))
    assert [row.subject for row in found] == [f"npu{number}" for number in range(8)]
    assert all(row.health is None and reason in row.unknown["health"].en for row in found)


def test_without_device_nodes_the_pci_bus_counts() -> None:
    data = changed(TROUBLED, smi={"error": "missing"})
    data["files"] = {path: entry for path, entry in data["files"].items() if not path.startswith("/dev/davinci")}
    found = rows(data)
    assert len(found) == 8 and all(row.subject == f"pci {row.bus}" and row.model == "910B" for row in found)


def test_a_container_does_not_see_who_else_is_on_its_devices() -> None:
    found = rows(host_data(CONTAINER))
    assert len(found) == 4 and all(
        row.processes is None and "check on the host" in row.unknown["processes"].en for row in found
    )


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", sampled(host_names(), 3))
def test_the_table_fits_and_the_document_keeps_its_schema(name: str, lang: str, width: int) -> None:
    found = rows(host_data(name))
    page = render(name, found, lang, width=width)
    assert all(display_width(line) <= width for line in page.splitlines())
    assert all(row.subject in page for row in found)
    assert ("?" in page) == any(row.unknown for row in found) or not found
    assert conforms(npu_data(name, found, lang), SCHEMA) == []


@pytest.mark.parametrize(("name", "status"), [("910b-openeuler2203-cann82", 0), (TROUBLED, 3), ("plain-debian12", 3)])
def test_the_command(tmp_path: Path, name: str, status: int) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps({**host_data(name), "schema": "envtune.snapshot/1"}), "utf-8")
    done = run("npu", "--snapshot", str(path), "--lang", "en")
    assert done.exit_code == status, done.stderr
    assert done.stdout.startswith("NPU " if name != "plain-debian12" else "files: no NPU found")
    data = json.loads(run("npu", "--snapshot", str(path), "--format", "json").stdout)
    assert len(data["devices"]) == (0 if name == "plain-debian12" else 8)


def test_names_from_a_host_rule_no_terminal() -> None:
    data = host_data(TROUBLED)
    text = data["commands"]["npu-smi info"]
    data["commands"]["npu-smi info"] = text.replace("python3", "py\x1b[2J3")
    assert "\x1b" not in render("x", rows(data), "en")
