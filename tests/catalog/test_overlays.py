"""A site changes what a check expects in one place, and everything that speaks of it follows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.catalogue_files import GOOD_CHECK, GOOD_FAQ, GOOD_PLAYBOOK, write_catalogue
from helpers.checks import check_files
from helpers.examples import ROOT, example_context

from envtune.audit import examine
from envtune.catalog import Catalogue, check_from, load
from envtune.context import Context
from envtune.errors import CatalogError
from envtune.fix.environment import advise
from envtune.fix.plan import make_plan
from envtune.model import Finding, Outcome
from envtune.resources.environment.render import render

DATA = {data["id"]: data for data in check_files()}
FILES = {path.name.partition("-")[0]: path for path in (ROOT / "checks").glob("*/*.yaml")}
NPU = {"like": ["npu-910b-8", "torch210"]}


def overlay(directory: Path, **expectations: str) -> Path:
    """A site's directory with these checks as they are shipped, except for what they expect."""
    for id_, expectation in expectations.items():
        text, changes = re.subn("^expect: .*$", f"expect: {expectation}", FILES[id_].read_text("utf-8"), flags=re.M)
        assert changes == 1
        path = directory / FILES[id_].relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return directory


def context_with(catalogue: Catalogue, example: Mapping[str, Any]) -> Context:
    context = example_context(example)
    context.expectations = catalogue.expectations
    return context


def finding(catalogue: Catalogue, id_: str, context: Context) -> Finding:
    (check,) = [check for check in catalogue.checks if check.id == id_]
    (found,) = examine(check, context)
    return found


def words(found: Finding) -> tuple[str, ...]:
    """Outcome, then what was found and expected in both languages."""
    assert found.actual is not None and found.expected is not None
    return found.outcome.value, found.actual.en, found.expected.en, found.actual.zh, found.expected.zh


# ---------------------------------------------------------------------- one variable


@pytest.fixture
def verbose_logs(tmp_path: Path) -> Catalogue:
    """A site that wants logs of level info."""
    return load([overlay(tmp_path, ENV003='{all: {in: ["1"]}}')])


def test_the_report_shows_the_value_that_a_site_wants(verbose_logs: Catalogue) -> None:
    usual, verbose = (
        context_with(verbose_logs, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": level}}) for level in ("3", "1")
    )
    assert words(finding(verbose_logs, "ENV003", usual)) == ("fail", "3", "1", "3", "1")
    assert words(finding(verbose_logs, "ENV003", verbose)) == ("pass", "1", "1", "1", "1")


def test_several_values_and_unset_are_worded_as_those_of_the_table(tmp_path: Path) -> None:
    catalogue = load([overlay(tmp_path, ENV003='{in: ["1", "2", unset]}', ENV004='{all: {ne: "2"}}')])
    context = context_with(catalogue, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "0", "DUMP_GE_GRAPH": "2"}})
    assert words(finding(catalogue, "ENV003", context)) == (
        *("fail", "0", "1 or 2, or unset (the default is 3)"),
        *("0", "1 或 2，或不设置（默认为 3）"),
    )
    assert words(finding(catalogue, "ENV004", context)) == ("fail", "2", "anything except 2", "2", "不是 2")


def test_env_sets_the_value_that_a_site_wants(verbose_logs: Catalogue) -> None:
    context = context_with(verbose_logs, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "3", "COMBINED_ENABLE": "1"}})
    advice = advise(context, "train", "bash", verbose_logs)
    level = [(s.name, s.value, s.checks) for s in advice.settings if s.name == "ASCEND_GLOBAL_LOG_LEVEL"]
    assert level == [("ASCEND_GLOBAL_LOG_LEVEL", "1", ("ENV003",))]
    assert "# 3 is not the value for training\nexport ASCEND_GLOBAL_LOG_LEVEL=1\n" in render(advice, "bash", "en")
    assert "# 3 不是训练所需的取值\nexport ASCEND_GLOBAL_LOG_LEVEL=1\n" in render(advice, "bash", "zh")


def test_env_leaves_the_value_that_a_site_wants(verbose_logs: Catalogue) -> None:
    context = context_with(verbose_logs, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "1", "COMBINED_ENABLE": "1"}})
    assert "ASCEND_GLOBAL_LOG_LEVEL" not in [s.name for s in advise(context, "train", "bash", verbose_logs).settings]


def test_the_playbook_sets_the_value_that_a_site_wants(verbose_logs: Catalogue) -> None:
    context = context_with(verbose_logs, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "3"}})
    plan = make_plan([finding(verbose_logs, "ENV003", context)], verbose_logs.playbooks, context)
    (change,) = plan.changes
    assert change.finding == "ENV003"
    assert "export ASCEND_GLOBAL_LOG_LEVEL=1" in change.after


def test_what_a_site_wants_is_no_debugging_setting(verbose_logs: Catalogue) -> None:
    example = {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "1"}}
    (check,) = [check for check in verbose_logs.checks if check.id == "ENV015"]
    outcomes = {
        f.outcome for f in examine(check, context_with(verbose_logs, example)) if "ASCEND_GLOBAL_LOG_LEVEL" in f.subject
    }
    assert outcomes == {Outcome.PASS}
    assert Outcome.FAIL in {f.outcome for f in examine(check, example_context(example))}, "it is one elsewhere"


def test_a_running_process_is_held_against_what_a_site_wants(verbose_logs: Catalogue) -> None:
    example = next(e for e in DATA["ENV016"]["examples"]["fail"] if not e.get("target"))
    (check,) = [check for check in verbose_logs.checks if check.id == "ENV016"]
    (before,) = examine(check, example_context(example))
    (pid,) = re.findall(r"\d+", before.subject)
    environ = example["files"][f"/proc/{pid}/environ"] + "ASCEND_GLOBAL_LOG_LEVEL=3\0"
    changed = context_with(verbose_logs, {**example, "files": {**example["files"], f"/proc/{pid}/environ": environ}})
    (found,) = examine(check, changed)
    assert found.actual is not None
    assert "ASCEND_GLOBAL_LOG_LEVEL is 3, not 1" in found.actual.en
    assert "ASCEND_GLOBAL_LOG_LEVEL" not in str(before.actual)


def test_where_no_known_value_will_do_a_person_chooses(tmp_path: Path) -> None:
    catalogue = load([overlay(tmp_path, ENV003="{all: {matches: 'x+'}}")])
    context = context_with(catalogue, {**NPU, "environ": {"ASCEND_GLOBAL_LOG_LEVEL": "3"}})
    advice = advise(context, "train", "bash", catalogue)
    assert "ASCEND_GLOBAL_LOG_LEVEL" not in [s.name for s in advice.settings]
    (left,) = [row for row in advice.unchanged if row.name == "ASCEND_GLOBAL_LOG_LEVEL"]
    assert "a value like x+" in left.reason.en


def test_a_site_that_wants_the_second_level_of_the_queue_gets_it(tmp_path: Path) -> None:
    catalogue = load([overlay(tmp_path, ENV001="{all: {eq: 2}}")])
    context = context_with(catalogue, {**NPU, "environ": {"TASK_QUEUE_ENABLE": "1"}})
    assert words(finding(catalogue, "ENV001", context))[:3] == ("fail", "1", "2")
    settings = {s.name: s.value for s in advise(context, "train", "bash", catalogue).settings}
    assert settings["TASK_QUEUE_ENABLE"] == "2"


@pytest.mark.slow
def test_the_verbs_follow_a_site(tmp_path: Path) -> None:
    """`check` and `fix` as a user starts them."""
    directory = overlay(tmp_path, ENV003='{all: {in: ["1"]}}')
    snapshot = ROOT / "tests" / "contracts" / "910b-openeuler2203-troubled.tar.gz"
    common = ["--select", "ENV003", "--catalog", str(directory), "--snapshot", str(snapshot), "--lang", "en"]
    report, plan = (
        subprocess.run(
            [sys.executable, "-m", "envtune", verb, *common], capture_output=True, text=True, check=False
        ).stdout
        for verb in ("check", "fix")
    )
    assert "(expected 1)" in report, report
    assert "ASCEND_GLOBAL_LOG_LEVEL=1" in plan, plan


# ---------------------------------------------------------------------- thresholds


def test_a_sites_threshold_shows_in_the_report_and_decides(tmp_path: Path) -> None:
    catalogue = load([overlay(tmp_path, SYS009="{ge: 2500.5}")])
    context = context_with(catalogue, {"disks": [{"path": "/tmp", "total": 4 * 10**12, "free": 2 * 10**12}]})
    found = finding(catalogue, "SYS009", context)
    assert words(found) == (
        *("fail", "2000.0 GB free at /tmp", "2500.5 GB or more"),
        *("/tmp 剩余 2000.0 GB", "2500.5 GB 或以上"),
    )
    plan = make_plan([found], catalogue.playbooks, context)
    assert [skipped.finding for skipped in plan.skipped] == ["SYS009"], "its playbook says what a person does"
    assert make_plan([finding(load(), "SYS009", context)], catalogue.playbooks, context).skipped == ()


@pytest.mark.parametrize(
    ("id_", "expectation", "outcome", "en", "zh"),
    [
        ("SYS005", {"ge": 9.5}, "pass", "9.5 GB or more", "9.5 GB 或以上"),
        ("SYS005", {"gt": 9}, "pass", "more than 9 GB", "大于 9 GB"),
        ("SYS006", {"any": {"ge": 0.1}}, "pass", "one of 0.1 TB or more", "至少一块 0.1 TB 或以上"),
        ("SYS006", {"all": {"ge": 9}}, "fail", "9 TB or more", "9 TB 或以上"),
        ("SYS009", {"ge": 0}, "pass", "0 GB or more", "0 GB 或以上"),
        ("SYS009", {"gt": 9000}, "fail", "more than 9000 GB", "大于 9000 GB"),
        ("SYS010", {"le": 1000}, "pass", "at most {} workers: 1000% of", "最多 {} 个 worker：1000% × "),
        ("SYS010", {"lt": 1}, "fail", "less than 1%", "小于 1%"),
        ("SYS011", {"all": {"ge": 0.1}}, "pass", "0.1 GB or more", "0.1 GB 或以上"),
        ("CPU008", {"all": {"ge": 10}}, "pass", "{} kHz or more (10% of", "{} kHz 或以上（{} kHz 的 10%"),
        ("PROC002", {"all": {"in": ["free", "taken"]}}, "pass", None, None),
        ("ENV001", {"all": {"ge": 0}}, "pass", None, None),
        ("ENV010", {"all": {"in": ["off"]}}, "fail", "1 or unset", "1 或不设置"),
    ],
)
def test_the_expectation_alone_holds_the_threshold(
    id_: str, expectation: Mapping[str, Any], outcome: str, en: Optional[str], zh: Optional[str]
) -> None:
    """Another threshold turns the verdict of a failing example (keeps it where the outcome is `fail`), and is shown."""
    check = check_from({**DATA[id_], "expect": expectation})
    for example in DATA[id_]["examples"]["fail"]:
        for found in examine(check, example_context(example)):
            if found.outcome.value != outcome or found.expected is None:
                continue
            if en is None or zh is None:
                return
            patterns = (re.escape(text).replace(r"\{\}", r"\d+") for text in (en, zh))
            if all(re.match(p, t) for p, t in zip(patterns, (found.expected.en, found.expected.zh))):
                return
    pytest.fail(f"no example of {id_} shows it")


# ---------------------------------------------------------------------- what overlays of the last release hold


def notes(directory: Path) -> list[str]:
    return [note.en.removeprefix(f"{directory}/") for note in load([directory]).notes]


def test_fields_of_the_last_release_are_accepted_with_a_warning(tmp_path: Path) -> None:
    former = "playbook: do-something\nfaq: [X90]\nvolatile: true\n"
    directory = write_catalogue(tmp_path, check=GOOD_CHECK + former, faq=GOOD_FAQ, playbook=GOOD_PLAYBOOK)
    file = "checks/cpu/CPU900-governor-odd.yaml: the field"
    assert notes(directory) == [
        f"{file} faq works for one more release: name the check in `named_by` of the FAQ entry",
        f"{file} playbook works for one more release: name the check in `fixes` of the playbook",
        f"{file} volatile works for one more release: remove it",
    ]
    (check,) = [check for check in load([directory]).checks if check.id == "CPU900"]
    assert check.faq == ("X90",)


def test_an_entry_with_checks_that_confirm_it_is_read_with_a_warning(tmp_path: Path) -> None:
    directory = write_catalogue(tmp_path, check=GOOD_CHECK, faq=GOOD_FAQ + "confirm: [CPU001, CPU900]\n")
    (entry,) = [entry for entry in load([directory]).faq if entry.id == "X90"]
    assert (entry.proves, [row.check for row in entry.favours]) == ((), ["CPU001", "CPU900"])
    (note,) = notes(directory)
    assert "the field confirm works for one more release: it is treated as `favours`" in note


def test_a_check_gets_the_entries_that_name_it(tmp_path: Path) -> None:
    directory = write_catalogue(tmp_path, check=GOOD_CHECK, faq=GOOD_FAQ + "named_by: [CPU001, CPU900]\n")
    faq = {check.id: check.faq for check in load([directory]).checks}
    assert faq["CPU900"] == ("X90",)
    assert faq["CPU001"] == ("X01", "X90")
    assert notes(directory) == []


def test_an_faq_entry_from_before_named_by_stays_named(tmp_path: Path) -> None:
    (shipped,) = (ROOT / "checks" / "faq").glob("X01-*.yaml")
    path = tmp_path / "checks" / "faq" / shipped.name
    path.parent.mkdir(parents=True)
    path.write_text(re.sub("(?m)^named_by: .*\n", "", shipped.read_text("utf-8")), "utf-8")
    faq = {check.id: check.faq for check in load([tmp_path]).checks}
    assert faq["CPU001"] == ("X01",)


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("python.install: {what: pillow}", "images.install_pillow"),
        ("python.install: {what: opencv}", "images.install_opencv"),
        ("python.install: {what: cann-wheels}", "cann.install_te"),
        ("env.export: {}", "environment.export"),
    ],
)
def test_steps_of_the_last_release_are_accepted_with_a_warning(former: str, current: str, tmp_path: Path) -> None:
    playbook = re.sub("(?s)steps:.*", f"steps: [{{{former}}}]\n", GOOD_PLAYBOOK)
    directory = write_catalogue(tmp_path, check=GOOD_CHECK, playbook=playbook)
    called = former.replace(": {}", "").replace(": {", " ").rstrip("}")
    assert notes(directory) == [
        f"playbooks/cpu/do-something.yaml: {called} is now called {current}; the old name works for one more release"
    ]
    (found,) = [playbook for playbook in load([directory]).playbooks if playbook.id == "do-something"]
    assert [(step.kind, dict(step.arguments)) for step in found.steps] == [(current, {})]


@pytest.mark.parametrize(
    ("probe", "note"),
    [
        ("system.temporary_space: {wanted: 10}", "system.temporary_space accepts wanted for one more release"),
        ("storage.temporary: {wanted: 10}", "storage.temporary wanted: 10 is now called system.temporary_space"),
        ("system.memory: {recommended: 750}", "system.memory accepts recommended for one more release"),
    ],
)
def test_thresholds_as_arguments_are_accepted_with_a_warning(probe: str, note: str, tmp_path: Path) -> None:
    check = GOOD_CHECK.replace("cpu.governors: {}", probe).replace("{all: {eq: performance}}", "{ge: 10}")
    directory = write_catalogue(tmp_path, check=check)
    (warning,) = notes(directory)
    assert note in warning
    (found,) = [check for check in load([directory]).checks if check.id == "CPU900"]
    assert dict(found.arguments) == {}


# ---------------------------------------------------------------------- {profile: train}


def test_a_profile_stands_for_the_values_of_the_table() -> None:
    expectations = {check.id: check.expect for check in load().checks if "profile" in DATA[check.id]["expect"]}
    assert expectations == {
        "ENV002": {"all": {"in": ["0", "unset"]}},
        "ENV003": {"all": {"in": ["3", "unset"]}},
        "ENV004": {"all": {"eq": "unset"}},
        "ENV005": {"all": {"eq": "unset"}},
        "ENV006": {"all": {"in": ["0", "unset"]}},
        "ENV007": {"all": {"eq": "1"}},
        "ENV008": {"all": {"eq": "1"}},
        "ENV009": {"all": {"in": ["ADD#MUL", "unset"]}},
        "ENV013": {"all": {"in": ["0", "unset"]}},
    }


@pytest.mark.parametrize(
    ("expectation", "probe", "message"),
    [
        ("{profile: debug}", "environment.variable: {name: DUMP_GE_GRAPH}", "debug is not one of train"),
        ("{profile: train, eq: 1}", "environment.variable: {name: DUMP_GE_GRAPH}", "profile must be the only key"),
        ("{profile: train}", "environment.variable: {name: OMP_NUM_THREADS}", "the table of variables has no profile"),
        ("{profile: train}", "cpu.governors: {}", "the table of variables has no profile"),
    ],
)
def test_a_profile_that_the_table_does_not_have(expectation: str, probe: str, message: str, tmp_path: Path) -> None:
    check = GOOD_CHECK.replace("{all: {eq: performance}}", expectation).replace("cpu.governors: {}", probe)
    with pytest.raises(CatalogError, match=re.escape(message)):
        load([write_catalogue(tmp_path, check=check)])


def test_a_file_of_any_size_is_refused_for_its_size(tmp_path: Path) -> None:
    write_catalogue(tmp_path, check=GOOD_CHECK)
    with open(tmp_path / "checks" / "cpu" / "CPU900-governor-odd.yaml", "ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(CatalogError, match="larger than 256 KiB"):
        load([tmp_path])
