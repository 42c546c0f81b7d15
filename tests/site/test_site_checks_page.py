"""docs/site-checks.md does what it says: its files, taken from the page, are loaded, tested, checked with and fixed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.examples import ROOT
from helpers.recorded import host_data

PAGES = {"en": ROOT / "docs" / "site-checks.md", "zh": ROOT / "docs" / "site-checks.zh.md"}
SITE = ("--catalog", "site", "--lang", "en")
KEY = "/proc/sys/vm/max_map_count"


@pytest.fixture(params=["en", pytest.param("zh", marks=pytest.mark.slow)])
def page(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param].read_text("utf-8")


def files_of(page: str) -> dict[str, str]:
    """The YAML blocks of the page by the path that stands before each."""
    return dict(re.findall(r"^`([\w/.-]+\.yaml)`\n\n```yaml\n(.*?)^```$", page, re.M | re.S))


def write_files(page: str) -> None:
    for path, text in files_of(page).items():
        file = Path("site", path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def recorded_host(value: str) -> None:
    """host.json: a recorded host with this value of the parameter."""
    data = host_data("910b-openeuler2203-cann82")
    data["files"] = {**data["files"], KEY: f"{value}\n"}
    Path("host.json").write_text(json.dumps({"schema": "envtune.snapshot/1", **data}), "utf-8")


def test_the_page_holds_one_file_each() -> None:
    assert list(files_of(PAGES["en"].read_text("utf-8"))) == list(files_of(PAGES["zh"].read_text("utf-8")))
    assert [path.partition("/")[0] for path in files_of(PAGES["en"].read_text("utf-8"))] == [
        *("checks", "playbooks", "checks", "checks")
    ]


def test_the_files_pass_their_tests(page: str) -> None:
    write_files(page)
    tested = run("test-catalog", "site", "--lang", "en")
    assert (tested.exit_code, tested.stdout) == (
        0,
        "OK: 1 check, 1 FAQ entry, 1 playbook, 5 examples, all as expected\n",
    )


def test_the_check_finds_it_and_the_playbook_fixes_it(page: str) -> None:
    write_files(page)
    recorded_host("65530")
    common = ("--catalog", "site", "--snapshot", "host.json", "--lang", "en")
    report = run("check", "-v", "--select", "SITE", *common)
    assert report.exit_code == 1
    assert "SITE101" in report.stdout and "65530" in report.stdout and "262144" in report.stdout
    assert f"sudo envtune fix SITE101 --apply --catalog {Path('site').absolute()}" in " ".join(report.stdout.split())
    plan = run("fix", "SITE101", *common)
    assert "SITE101" in plan.stdout and "vm.max_map_count: 65530 -> 262144" in plan.stdout
    saved = run("fix", "SITE101", *common, "--format", "json")
    Path("plan.json").write_text(saved.stdout, "utf-8")
    again = run("fix", "--plan", "plan.json", *common)
    assert "vm.max_map_count = 262144" in again.stdout


def test_it_passes_where_the_value_is_right(page: str) -> None:
    write_files(page)
    recorded_host("262144")
    assert run("check", "--select", "SITE", "--catalog", "site", "--snapshot", "host.json").exit_code == 0


def test_a_host_recorded_without_it_is_unknown(page: str) -> None:
    write_files(page)
    contract = ROOT / "tests" / "contracts" / "910b-openeuler2203-troubled.tar.gz"
    report = run("check", "--select", "SITE", "--catalog", "site", "--snapshot", str(contract), "--lang", "en")
    assert report.exit_code == 3
    assert f"{KEY} is not in the snapshot" in report.stdout


def test_a_log_leads_to_the_faq_entry(page: str) -> None:
    write_files(page)
    recorded_host("65530")
    Path("train.log").write_text("Traceback\nOSError: [Errno 12] Cannot allocate memory\n", "utf-8")
    found = run("diagnose", "train.log", "--catalog", "site", "--snapshot", "host.json", "--lang", "en")
    assert "S01" in found.stdout and "SITE101" in found.stdout


def test_the_commands_write_the_skeletons_of_the_page(page: str) -> None:
    Path("site").mkdir()
    commands = [line.split()[1:] for line in page.splitlines() if line.startswith("envtune new ")]
    for command in commands:
        assert run(*command).exit_code == 0, command
    written = {str(path.relative_to("site")) for path in Path("site").rglob("*.yaml")}
    assert written == set(files_of(page)) - {"checks/site/family.yaml"}
    assert run("test-catalog", "site").exit_code == 0


def test_explain_names_the_directory_in_its_commands(page: str) -> None:
    write_files(page)
    option = f"--catalog {Path.cwd()}/site"
    assert f"envtune fix SITE101 --apply {option}" in " ".join(run("explain", "SITE101", *SITE).stdout.split())
    assert f"envtune fix --faq S01 {option}" in " ".join(run("explain", "S01", *SITE).stdout.split())


def test_a_file_that_is_no_yaml_is_the_only_mistake_named() -> None:
    write_files(PAGES["en"].read_text("utf-8"))
    Path("site/checks/site/SITE101-max-map-count-too-low.yaml").write_text("id: [", "utf-8")
    refused = run("test-catalog", "site", "--lang", "en")
    assert refused.exit_code == 2 and "not YAML" in refused.stderr
    assert "is not a check" not in refused.stderr


@pytest.mark.parametrize("lang", PAGES)
def test_a_difference_is_shown_as_on_the_page(lang: str) -> None:
    page = PAGES[lang].read_text("utf-8")
    write_files(page)
    path = Path("site/checks/site/SITE101-max-map-count-too-low.yaml")
    path.write_text(path.read_text("utf-8").replace('"65530\\n"', '"65535\\n"'), "utf-8")
    tested = run("test-catalog", "site", "--lang", lang)
    assert tested.exit_code == 1
    (shown,) = re.findall(r"```text\n(.*)\n```", page)
    assert tested.stdout.replace(f"{Path.cwd()}/", "").splitlines()[0] == shown
