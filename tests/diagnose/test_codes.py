"""Error codes: each one in its own forms is found and answered, and numbers that are no codes are not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Iterator, Mapping, Optional, Sequence

import pytest

from envtune.catalog import Catalogue, load
from envtune.diagnose import diagnose
from envtune.diagnose.code_forms import PATTERNS, code_of, codes_in
from envtune.diagnose.codes import found_codes, with_codes
from envtune.diagnose.diagnosis import DiagnosisReport
from envtune.diagnose.logs.files import find_logs
from envtune.diagnose.patterns import Matcher, patterns_of, select_prefilter
from envtune.diagnose.rank import NO_PROCESSES, resolve
from envtune.diagnose.scan import scan
from envtune.report.diagnosis.json import diagnosis_data
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.text import render_text

MODULES = ("PTA", "OPS", "DIST", "GRAPH", "PROF")


def printed(code: str) -> tuple[str, ...]:
    """The lines in which a code is printed, as the programs write them."""
    if code.startswith("HCCL"):
        return (f"RuntimeError: f.cpp:64 HCCL function error: HcclAllReduce(a, b), error code is {code[4:]}",)
    if code.startswith("ERR"):
        module = MODULES[int(code[3:5])]
        return (f"[ERROR] 2026-01-02-03:04:05 (PID:7, Device:0, RankID:-1) {code} {module} something failed.",)
    if code.startswith("E"):
        return (
            f"{code}: [PID: 12] 2026-01-02-03:04:05.006.007 something",
            f"[ERROR] ATC run failed, [{code}] something",
            f"[PID: 12] 2026-01-02-03:04:05.006.007 Some_Title({code}): something",
        )
    return (
        f"RuntimeError: f.cpp:1 NPU function error: g, error code is {code}",
        f"[ERROR] RUNTIME(1,python):2026-01-02-03:04:05.006.007 [a.cc:1]1 f:ErrCode={code}, desc=[x]",
        f"[ERROR] ASCENDCL(1,python): call failed, error code: {code}",
        f"执行失败，错误码为{code}",
    )


def found(line: str) -> set[str]:
    """The codes that the forms find in a line."""
    matches = Matcher(PATTERNS).match(range(len(PATTERNS)), line, tuple)
    return {code_of(code) for _, match in matches for code in codes_in(match)}


@cache
def catalogue() -> Catalogue:
    return load()


def answered(path: Path, text: str) -> DiagnosisReport:
    path.write_text(text, "utf-8")
    return diagnose([str(path)], catalogue=catalogue(), check=False)


def test_every_code_is_found_in_its_forms() -> None:
    lines = [(code.code, line) for code in catalogue().codes for line in printed(code.code)]
    matcher, numbers = Matcher(PATTERNS), range(len(PATTERNS))

    def told(line: str) -> Iterator[str]:
        return (code_of(code) for _, match in matcher.match(numbers, line, tuple) for code in codes_in(match))

    assert [line for code, line in lines if code not in told(line)] == []
    assert len(lines) > 1500


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_code_gives_an_answer_that_names_it(stride: int, tmp_path: Path) -> None:
    """One log for all: the scan is what costs; each code is then resolved as if its lines were the only ones."""
    log = tmp_path / "train.log"
    entries, dictionary = catalogue().faq, catalogue().codes
    chosen = [one.code for one in dictionary][::stride]
    log.write_text("\n".join(line for code in chosen for line in printed(code)) + "\n", "utf-8")
    patterns = (*patterns_of(entries), *PATTERNS)
    files = find_logs([str(log)])
    everything = scan(files, Matcher(patterns), select_prefilter(patterns, files))
    codes = {one.code.code: one for one in found_codes(everything, dictionary, NO_PROCESSES)}
    assert [code for code in chosen if code not in codes] == []
    silent = []
    for one in codes.values():
        lines = {hit.line.number for hit in one.hits}
        alone = type(everything)(hits=[hit for hit in everything.hits if hit.line.number in lines], codes=[*one.hits])
        if not with_codes(resolve(alone, entries), (one,), entries).diagnoses:
            silent.append(one.code.code)
    assert silent == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[ERROR] f:wait failed, ret=107002", "107002"),
        ("rtModelExecute failed, retCode:507011", "507011"),
        ("[ERROR] wait for compute device to finish failed, runtime result = 507013.", "507013"),
        ("aclError:507899", "507899"),
        ("EZ9999[PID: 7] 2026-08-04-20:52:16.645.950 (EZ9999):  something", "EZ9999"),
        ("RuntimeError: ({'errCode': 'E80001', 'config_name': 'os'},)", "E80001"),
        ("[ERROR] (PID:1, Device:0, RankID:0) ERR0003 PTA invalid value", "ERR00003"),
        ("[rank3]: EI0013: An error CQE occurred", "EI0013"),
    ],
)
def test_other_forms(line: str, code: str) -> None:
    assert found(line) == {code}


@pytest.mark.parametrize(
    "line",
    [
        "step 107002 loss 0.13",
        "listening on port 507013",
        "[2026-01-02] worker pid=507011 started",
        "507011",
        "saved 207001 samples to /data/507035/EI0006.txt",
        "result: 500000 rows",
        "ret=100000",
        "node EI0006 of rack E10001 is up",
        "see the chapter on EI0006 and on 507011",
        "commit 3EI0006a, DEI0006: x",
        "PLC E10001x: 3",
        "error code is 5070111",
        "HCCL_EXEC_TIMEOUT=107019",
        "ERR02200 without a module",
        "[INFO] RUNTIME(1,python): last error code is 507011",
        "[WARNING] HCCL(1,python): EI0006: not now",
        "INFO 01-02 03:04:05 [a.py:1] ret=107002",
    ],
)
def test_what_is_no_code(line: str) -> None:
    assert found(line) == set()


FAMILIES: Mapping[str, Optional[str]] = {
    "207001": "F13",
    "EL0004": "F13",
    "107002": "R101",
    "EI0002": "H102",
    "507013": "sdma-task-exception",
    "507049": "sdma-task-exception",
    "EI0012": "sdma-task-exception",
    "EI0013": "ei0013-cqe-error",
    "EJ0002": "network-port-down",
    "EL0001": "device-lost",
    "507010": "device-lost",
}


@pytest.mark.parametrize("code", FAMILIES)
def test_a_code_leads_to_its_family(code: str) -> None:
    known = {name: entry.id for entry in catalogue().faq for name in (entry.id, entry.name)}
    one = catalogue().codes.find(code)
    assert one is not None
    assert one.faq == known.get(FAMILIES[code] or "", "")


def test_a_wrapper_names_the_codes_beside_it(tmp_path: Path) -> None:
    text = "".join(
        f"{line}\n"
        for line in (
            "RuntimeError: The Inner error is reported as above. The process exits for this inner error.",
            "[ERROR] 2026-01-02-03:04:05 (PID:7, Device:0, RankID:-1) ERR00100 PTA call acl api failed.",
            "EE9999: Inner Error!",
        )
    )
    report = answered(tmp_path / "a.log", text)
    assert [one.code.code for one in report.codes] == ["ERR00100", "EE9999"]
    for shown in (render_text(report, "en"), render_markdown(report, "zh"), json.dumps(diagnosis_data(report, "en"))):
        assert "ERR00100" in shown and "EE9999" in shown


def answers(report: DiagnosisReport) -> Sequence[str]:
    return [diagnosis.candidate.entry.id for diagnosis in report.diagnoses]


def test_a_code_with_a_meaning_of_its_own_comes_before_a_wrapper(tmp_path: Path) -> None:
    wrapper = "[ERROR] (PID:7, Device:0, RankID:-1) ERR02200 DIST call hccl api failed.\n"
    report = answered(tmp_path / "a.log", f"{wrapper}EJ0004: [PID: 7] Check ip fail. Reason: x\n")
    assert answers(report) == ["H107"]
    assert "H115" in {diagnosis.candidate.entry.id for diagnosis in report.consequences}


def test_a_signature_comes_before_a_code(tmp_path: Path) -> None:
    oom = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)\n"
    report = answered(tmp_path / "a.log", f"EL0005: [PID: 7] The resources are busy.\n{oom}")
    assert answers(report)[0] == "F13"


def test_an_unknown_code_of_a_known_module_gets_an_answer(tmp_path: Path) -> None:
    report = answered(tmp_path / "a.log", "EI7777: [PID: 7] 2026-01-02-03:04:05.006.007 something new\n")
    assert answers(report) == ["EI7777"]
    assert "HCCL" in render_text(report, "en")


def test_many_lines_of_one_code_do_not_hide_another(tmp_path: Path) -> None:
    chatty = "[ERROR] RUNTIME(1,python): f failed, ret=507899\n" * 50
    report = answered(tmp_path / "a.log", f"{chatty}[ERROR] RUNTIME(1,python): f failed, ret=507901\n")
    assert [(one.code.code, one.count) for one in report.codes] == [("507899", 50), ("507901", 1)]
