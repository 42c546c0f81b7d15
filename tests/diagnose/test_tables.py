"""Tables of npu-smi and ps in a log are judged as on a host: who holds memory for nothing, which card is not OK."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtune.diagnose import diagnose
from envtune.diagnose.diagnosis import DiagnosisReport
from envtune.report.diagnosis.json import diagnosis_data
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.text import render_text

HEAD = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | {health:13} | 91.8        36                0    / 0             |
| 0                         | 0000:C1:00.0  | {core:<3}         0    / 0          {hbm} / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
{row}
+===========================+===============+====================================================+
"""
NOBODY = "| No running processes found in NPU 0                                                            |"
SOMEBODY = "| 0       0                 | 23445         | python3                  | 58018                   |"
PS = """\
UID          PID    PPID  C STIME TTY          TIME CMD
root           1       0  0 Nov01 ?        00:00:11 /usr/lib/systemd/systemd
wang       23445       1  0 Nov02 ?        00:10:11 python3 train.py --token=verysecret1234567890
"""


def table(core: int = 0, hbm: int = 61451, health: str = "OK", row: str = NOBODY) -> str:
    return HEAD.format(core=core, hbm=hbm, health=health, row=row)


def report(folder: Path, text: str) -> DiagnosisReport:
    (folder / "job.log").write_text(text, "utf-8")
    return diagnose([str(folder / "job.log")], check=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (table(), ["F19"]),
        (f"the next job failed\n{table()}npu-smi info ended\n", ["F19"]),
        (table(row=SOMEBODY), ["F19"]),  # a Python that computes nothing: of low confidence
        (table(core=97, row=SOMEBODY), []),
        (table(hbm=3451), []),
        ("step 3 loss 2.10 time 0.3\n" + table(), []),  # a job is there
        (table().replace("61451 / 65536", "61451"), []),
    ],
)
def test_memory_that_nobody_uses_is_left_over(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert [diagnosis.candidate.entry.id for diagnosis in report(tmp_path, text).diagnoses] == expected


def test_ps_shows_that_the_job_of_a_process_is_gone(tmp_path: Path) -> None:
    found = report(tmp_path, table(row=SOMEBODY) + PS)
    assert [diagnosis.candidate.confident for diagnosis in found.diagnoses] == [True]
    assert "PROC001" in {state.finding.id for state in found.states}
    assert "verysecret" not in render_text(found, "en") + str(diagnosis_data(found, "en"))


def test_a_device_that_is_not_well_is_named(tmp_path: Path) -> None:
    found = report(tmp_path, table(health="Alarm", hbm=3451))
    (state,) = diagnosis_data(found, "en")["states"]
    assert (state["line"], state["finding"]["id"], state["finding"]["subject"]) == (2, "CANN007", "npu0")
    assert "Alarm" in render_text(found, "en") and "Alarm" in render_markdown(found, "zh")


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_table_that_breaks_off_says_nothing_wrong(tmp_path: Path, cut: int) -> None:
    found = report(tmp_path, "".join(table().splitlines(keepends=True)[:-cut]))
    assert [diagnosis.candidate.entry.id for diagnosis in found.diagnoses] in ([], ["F19"])
    assert cut < 3 or not found.diagnoses
