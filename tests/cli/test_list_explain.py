"""Choosing checks, and what `explain` and `list` print."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.catalogue_files import GOOD_CHECK, write_catalogue
from helpers.rows import sampled
from typer.testing import CliRunner

from envtune.catalog import layers, load, select
from envtune.catalog.entries import check_from
from envtune.cli.app import app
from envtune.cli.list_ import KINDS, table
from envtune.errors import UsageError
from envtune.messages import LANGUAGES
from envtune.model import Check, Severity
from envtune.report.layout import display_width
from envtune.report.pages.entry import terminal_page

# click below 8.2, the last for Python 3.9, mixes the two streams unless told otherwise; later ones have no such switch
SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(layers, "SITE", str(tmp_path / "etc"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def run(*arguments: str) -> Any:
    return RUNNER.invoke(app, list(arguments))


# ---------------------------------------------------------------------- selection


def check(id_: str, name: str, **other: Any) -> Check:
    data = {
        "id": id_,
        "name": name,
        "title": {"en": "t", "zh": "题"},
        "status": "stable",
        "severity": "medium",
        "rationale": {"en": "r", "zh": "由"},
        "origin": "outside",
        "probe": {"cpu.governors": {}},
        "expect": {"eq": "x"},
    }
    return check_from({**data, **other})


CHECKS = (
    check("CANN001", "no-cann", tags=["preflight"], severity="high"),
    check("CPU001", "slow-cpu", tags=["preflight", "fleet"]),
    check("CPU002", "odd-cpu", tags=["fleet"], severity="info"),
    check("CPU003", "trial", status="experimental"),
    check("NET001", "no-net", severity="low", severity_by=[{"when": {"arch": "x86_64"}, "severity": "high"}]),
)


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, "CANN001 CPU001 CPU002 NET001"),
        ({"select": ["CPU"]}, "CPU001 CPU002 CPU003"),
        ({"select": ["cpu001,NET001"]}, "CPU001 NET001"),
        ({"select": ["slow-cpu"]}, "CPU001"),
        ({"select": ["fleet", "NET"]}, "CPU001 CPU002 NET001"),
        ({"select": ["CPU00"], "ignore": ["CPU002"]}, "CPU001 CPU003"),
        ({"ignore": ["CPU"]}, "CANN001 NET001"),
        ({"select": ["CPU001", "NET"], "ignore": ["CPU"]}, "NET001"),
        ({"tags": ["fleet"]}, "CPU001 CPU002"),
        ({"tags": ["preflight"], "select": ["C"]}, "CANN001 CPU001"),
        ({"floor": Severity.MEDIUM}, "CANN001 CPU001 NET001"),  # NET001 is high on some hosts
        ({"floor": Severity.HIGH}, "CANN001 NET001"),
        ({"select": ["trial"]}, "CPU003"),
    ],
)
def test_selection(options: dict[str, Any], chosen: str) -> None:
    assert [c.id for c in select(CHECKS, **options)] == chosen.split()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"select": ["CPU01"]}, "unknown id or name 'CPU01'; did you mean CPU001"),
        ({"ignore": ["slow_cpu"]}, "unknown id or name 'slow_cpu'; did you mean slow-cpu"),
        ({"tags": ["flet"]}, "unknown id or name 'flet'; did you mean fleet"),
        ({"select": ["zzzzzz"]}, "unknown id or name 'zzzzzz'"),
        ({"select": ["CPU"], "ignore": ["CPU"]}, "the selection includes no check that can run"),
    ],
)
def test_a_selection_that_names_nothing_is_a_mistake(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(CHECKS, **options)
    assert str(caught.value).startswith(told)
    assert caught.value.to("zh") != str(caught.value)


@pytest.mark.slow
def test_check_ends_with_2_and_the_nearest_name() -> None:
    found = run("check", "--select", "CPU01")
    assert found.exit_code == 2
    assert "did you mean " in found.stderr and "CPU001" in found.stderr
    assert found.stdout == ""


# ---------------------------------------------------------------------- explain


def test_explain_tells_everything_about_a_check() -> None:
    page = run("explain", "CPU001", "--lang", "en").stdout
    assert page.startswith("CPU001  governor-not-performance\n")
    for words in (
        "Why it matters",
        "What is read\n  cpu.governors",
        "Expected\n  performance",
        "- this is not a container",
        "low if architecture: aarch64",
        "How to fix it",
        "Commands that fix it\n    sudo envtune fix CPU001 --apply",
        "When to ignore a failure",
        "PyTorch porting and training guide (《PyTorch网络模型移植&训练指南》)",
        "https://docs.kernel.org/admin-guide/pm/cpufreq.html",
    ):
        assert words in page


def test_explain_speaks_chinese() -> None:
    page = run("explain", "CPU001", "--lang", "zh").stdout
    for words in ("为什么重要", "读取内容", "期望", "适用条件", "处理方法", "《PyTorch网络模型移植&训练指南》"):
        assert words in page
    assert "Why it matters" not in page


@pytest.mark.parametrize("word", ["cpu001", "CPU001", "governor-not-performance"])
def test_explain_takes_ids_and_names(word: str) -> None:
    assert run("explain", word).stdout.startswith("CPU001  governor-not-performance\n")


def test_explain_an_faq_entry_leads_to_the_checks_that_confirm_it() -> None:
    page = run("explain", "F06").stdout
    assert "- CANN005: " in page
    assert r"libhccl\.so: cannot open shared object file" in page


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("reserve-job-ports", "key: net.ipv4.ip_local_reserved_ports, add: job_ports"),
        ("file.owner", "/etc/passwd: "),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_explain_takes_nothing_out_of_envtunes_own_texts(word: str, told: str, lang: str) -> None:
    page = run("explain", word, "--lang", lang).stdout
    assert told in page and "redacted" not in page


def test_explain_names_the_nearest_id_first() -> None:
    assert "did you mean CPU001, " in run("explain", "CPU01").stderr


def test_explain_a_playbook_numbers_its_steps() -> None:
    page = run("explain", "set-bios-power-policy").stdout
    assert "- CPU006: " in page
    assert "\n  1. " in page
    assert "\n  7. Press F10" in page


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("governor-not-performing", "did you mean governor-not-performance"),
        ("CPU0001", "did you mean CPU001"),
        ("?", "unknown id or name"),
        ("SITE101", "an entry of a site needs --catalog DIR"),
    ],
)
def test_explain_something_unknown_ends_with_2_and_the_nearest_name(word: str, told: str) -> None:
    found = run("explain", word)
    assert found.exit_code == 2
    assert told in found.stderr


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("stride", sampled([6, 1], 2))  # of the entries
@pytest.mark.parametrize("width", [80, *(pytest.param(w, marks=pytest.mark.slow) for w in (60, 100))])
def test_every_page_keeps_to_the_width(lang: str, width: int, stride: int) -> None:
    catalogue = load()
    for entry in (*catalogue.checks, *catalogue.faq, *catalogue.playbooks)[::stride]:
        page = terminal_page(entry, catalogue, lang, width=width, colour=False)
        for line in page.splitlines():
            code = line.startswith("    ")  # commands and expressions are not broken
            longest = max((display_width(word) for word in re.split(r"\s+", line.strip())), default=0)
            assert code or display_width(line) <= max(width, longest + 8), f"{entry.id}: {line}"


def test_a_hostile_overlay_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    text = GOOD_CHECK.replace("en: A governor is odd", 'en: "red \\e[31m"').replace(
        "It slows launches.", '"\\e]0;x\\a why"'
    )
    write_catalogue(tmp_path / "more", check=text)
    catalogue = load([tmp_path / "more"])
    (entry,) = [c for c in catalogue.checks if c.id == "CPU900"]
    page = terminal_page(entry, catalogue, "en", width=80, colour=False)
    for text in (page, "\n".join(table(catalogue, "checks", "en", 80))):
        assert "\\x1b[31m" in text
        assert "\x1b" not in text
        assert "\x07" not in text


def test_explain_a_probe_shows_arguments_an_example_and_its_users() -> None:
    page = run("explain", "environment.variable", "--lang", "en").stdout
    assert page.startswith("environment.variable\nValue of a variable of the job, or `unset`.\n")
    assert "  - name (text): Name of the variable." in page
    assert "    probe: {environment.variable: {name: HCCL_SOCKET_IFNAME}}\n" in page
    assert "- ENV003: " in page
    assert "变量名。" in run("explain", "environment.variable", "--lang", "zh").stdout


def test_explain_a_step_and_a_fact() -> None:
    assert (
        "  - sysctl.set: {key: vm.max_map_count, value: 262144}" in run("explain", "sysctl.set", "--lang", "en").stdout
    )
    assert "- reserve-job-ports: " in run("explain", "sysctl.set").stdout
    assert "- CPU001: " in run("explain", "vm").stdout


def test_explain_a_probe_of_a_shipped_check_shows_how_that_uses_it() -> None:
    page = run("explain", "cpu.governors", "--lang", "en").stdout
    assert "    probe:\n      cpu.governors: {}\n    expect:\n      all: {eq: performance}\n" in page


def test_explain_a_mistyped_probe_names_the_nearest() -> None:
    done = run("explain", "cpu.govenors", "--lang", "en")
    assert done.exit_code == 2 and "cpu.governors" in done.stderr


def test_a_check_says_what_it_reads_in_chinese_too() -> None:
    assert (
        "cpu.governors：正在使用的调速器，按使用同一调速器的 CPU 分组。"
        in run("explain", "CPU001", "--lang", "zh").stdout
    )


# ---------------------------------------------------------------------- list


@pytest.mark.parametrize(("kind", "name"), [("probes", "sysctl.value"), ("steps", "instructions"), ("facts", "npu")])
def test_list_what_a_catalogue_is_written_with(kind: str, name: str) -> None:
    rows = json.loads(run("list", kind, "--format", "json", "--lang", "en").stdout)
    assert {row["kind"] for row in rows} == {kind[:-1]}
    assert all(row["summary"] for row in rows)
    assert name in [row["id"] for row in rows]
    lines = run("list", kind).stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [row["id"] for row in rows]


def test_every_argument_is_described_in_both_languages() -> None:
    for kind in ("probes", "steps"):
        english, chinese = (json.loads(run("list", kind, "-f", "json", "--lang", lang).stdout) for lang in ("en", "zh"))
        for row, other in zip(english, chinese):
            assert row["summary"] != other["summary"], row["id"]
            for argument, translated in zip(row["arguments"], other["arguments"]):
                assert argument["summary"] not in ("", translated["summary"]), (row["id"], argument["name"])


def test_what_runs_only_when_it_is_named_is_marked() -> None:
    experimental = [check for check in load().checks if check.status == "experimental"]
    for lang, word in (("en", " (experimental)"), ("zh", "（试验性）")):
        text = run("list", "checks", "--lang", lang).stdout
        assert text.count(word) == len(experimental) > 0
    page = run("explain", experimental[0].id, "--lang", "en").stdout
    assert "experimental (runs only when --select names it)" in page


def test_list_checks_as_json_names_what_a_program_needs() -> None:
    rows = json.loads(run("list", "checks", "--format", "json").stdout)
    (row,) = [row for row in rows if row["id"] == "CPU001"]
    assert row["name"] == "governor-not-performance"
    assert (row["kind"], row["severity"], row["status"]) == ("check", "medium", "stable")
    assert row["tags"] == ["preflight", "fleet"]
    assert row["family"] == "CPU"
    assert row["file"] == "checks/cpu/CPU001-governor-not-performance.yaml"
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)


@pytest.mark.parametrize(("kind", "word"), [("checks", "check"), ("faq", "faq"), ("playbooks", "playbook")])
def test_each_list_prints_its_kind_only(kind: str, word: str) -> None:
    rows = json.loads(run("list", kind, "--format", "json", "--lang", "zh").stdout)
    assert {row["kind"] for row in rows} == {word}
    lines = run("list", kind).stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [row["id"] for row in rows]


@pytest.mark.parametrize("arguments", [["list", "rules"], ["list", "checks", "--format", "xml"]])
def test_list_of_something_else_ends_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("lang", LANGUAGES)
def test_list_alone_names_what_can_be_listed(lang: str) -> None:
    lines = run("list", "--lang", lang).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*KINDS] and all(len(line.split(maxsplit=1)) == 2 for line in lines)
    rows = json.loads(run("list", "--format", "json", "--lang", lang).stdout)
    assert [f"{row['kind']} {row['title']}" for row in rows] == [" ".join(line.split()) for line in lines]


def test_overlay_entries_are_listed_and_explained(tmp_path: Path) -> None:
    more = write_catalogue(tmp_path / "more", check=GOOD_CHECK)
    assert "CPU900" in run("list", "checks", "--catalog", str(more)).stdout
    assert "A governor is odd" in run("explain", "CPU900", "--catalog", str(more)).stdout


def test_a_broken_overlay_ends_with_2_in_the_language_asked_for(tmp_path: Path) -> None:
    more = write_catalogue(tmp_path / "more", check=GOOD_CHECK.replace("eq: performance", "eq: 7.10"))
    found = run("list", "checks", "--catalog", str(more), "--lang", "zh")
    assert found.exit_code == 2
    assert "CPU900-governor-odd.yaml:12:20: 7.10 可能是数字，也可能是版本号" in found.stderr


def test_an_alias_leads_to_its_entry() -> None:
    assert run("explain", "F10").stdout.startswith("F09  memcopysync-late-report\n")


def test_where_no_repair_helps_explain_and_fix_name_what_does() -> None:
    page = run("explain", "F04").stdout
    assert "envtune run --profile debug -- CMD" in page and "envtune fix --faq" not in page
    for word in ("F04", "F09", "F10"):
        done = run("fix", "--faq", word)
        assert done.exit_code == 2 and "envtune run --profile debug -- CMD" in " ".join(done.stderr.split())
