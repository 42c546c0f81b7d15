"""`envtune test-catalog` says what is missing or differs, and where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.rows import sampled

from envtune.catalog import layers

CHECK = """\
id: SITE101
name: max-map-count
title: too low
severity: medium
probe: {sysctl.value: {key: vm.max_map_count}}
expect: {ge: 262144}
"""
FAQ = """\
id: S01
name: odd
title: odd
signatures: [{regex: odd error}]
cause: It is odd.
remedy: Ask.
"""
FILE = "checks/site/SITE101-max-map-count.yaml"


FAQ_TEXT = "examples: {match: [an odd error], near_miss: [another error]}\n"


def outcome_of(tmp_path: Path, text: str = "", faq: str = "", **more: str) -> tuple[int, list[str]]:
    files = {FILE: CHECK + text} if text is not None else {}
    files.update({"checks/faq/S01-odd.yaml": FAQ + faq} if faq else {}, **more)
    for path, content in files.items():
        file = tmp_path / "site" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    done = run("test-catalog", str(tmp_path / "site"), "--lang", "en")
    return done.exit_code, (done.stdout + done.stderr).replace(f"{tmp_path}/site/", "").splitlines()


def test_the_place_can_be_parsed_in_either_language(tmp_path: Path) -> None:
    """Editors read `file:line:column: `."""
    assert outcome_of(tmp_path, examples("pass: [{files: {/proc/sys/vm/max_map_count: '1'}}]"))[0] == 1
    done = run("test-catalog", str(tmp_path / "site"), "--lang", "zh")
    assert re.search(rf"{re.escape(FILE)}:\d+:\d+: SITE101 pass\[0\]", done.stdout)


def examples(*rows: str) -> str:
    return "examples:\n" + "".join(f"  {row}\n" for row in rows)


@pytest.mark.parametrize(
    ("row", "words"),
    sampled(
        [
            (
                "pass: [{files: {/proc/sys/vm/max_map_count: '1'}}]",
                "SITE101 pass[0]: expected pass, got fail [vm.max_map_count]: found 1; expected at least 262144",
            ),
            (
                "pass: [{files: {/proc/sys/vm/max_map_count: {error: EACCES}}}]",
                "SITE101 pass[0]: expected pass, got unknown: /proc/sys/vm/max_map_count cannot be read by this user",
            ),
            (
                "pass: [{covered: []}]",
                "SITE101 pass[0]: expected pass, got unknown: /proc/sys/vm/max_map_count is not in the snapshot",
            ),
            ("fail: [{files: {/proc/sys/vm/max_map_count: '262144'}}]", "SITE101 fail[0]: expected fail, got pass"),
            (
                "fail: [{files: {/proc/sys/vm/max_map_count: '1'}, expect: {actual: '2', severity: high}}]",
                "SITE101 fail[0]: expected actual '2', got '1'; expected severity 'high', got 'medium'",
            ),
            ("fail: [{like: bear}]", "SITE101 fail[0]: like: bear: checks/examples/bear.yaml is missing"),
        ],
        2,
    ),
)
def test_a_difference_names_file_line_and_what_differs(row: str, words: str, tmp_path: Path) -> None:
    status, lines = outcome_of(tmp_path, examples(row))
    assert status == 1
    column = row.index("[{") + 4
    assert lines[0].startswith(f"{FILE}:8:{column}: {words}")
    assert lines[-1] == "FAILED: 1 check, 1 example; 1 not as expected"


def test_a_host_of_the_sites_own_is_what_examples_are_like(tmp_path: Path) -> None:
    more = {"checks/examples/ours.yaml": "files: {/proc/sys/vm/max_map_count: '262144'}\n"}
    status, lines = outcome_of(tmp_path, examples("pass: [{like: ours}]"), **more)
    assert (status, lines) == (
        0,
        [f"{FILE}:8:3: SITE101 has no example of fail", "OK: 1 check, 1 example, all as expected"],
    )


def test_a_catalogue_without_examples_tests_nothing(tmp_path: Path) -> None:
    assert outcome_of(tmp_path) == (3, [f"{FILE}:1:1: SITE101 has no examples", "NOTHING TESTED: 1 check, 0 examples"])


def test_the_texts_of_an_faq_entry_match_and_miss(tmp_path: Path) -> None:
    faq = examples("match: [an odd error, an old error]", "near_miss: [another odd error]")
    status, lines = outcome_of(tmp_path, "", faq)
    assert status == 1
    assert lines[0] == "checks/faq/S01-odd.yaml:8:25: S01 match[1]: no signature matches"
    assert lines[1] == "checks/faq/S01-odd.yaml:9:15: S01 near_miss[0]: a signature matches"


def test_a_playbook_that_would_change_nothing_is_noted(tmp_path: Path) -> None:
    text = examples("pass: [{files: {/proc/sys/vm/max_map_count: '262144'}}]", "fail: [{files: {}}]")
    playbook = (
        "id: odd\ntitle: odd\nfixes: [SITE101]\nsafety: safe\ndisruption: none\n"
        "steps: [{file.dropin: {path: /etc/sysctl.d/site.conf, text: x}}]\n"
    )
    status, lines = outcome_of(tmp_path, text, **{"playbooks/site/odd.yaml": playbook})
    assert status == 0
    assert lines[0].startswith(f"{FILE}:9:10: SITE101 fail[0]: no playbook changes anything: /etc/sysctl.d/site.conf: ")
    assert "50-envtune-site.conf" in lines[0]


def test_a_playbook_whose_value_fails_its_own_check_is_an_error(tmp_path: Path) -> None:
    text = examples("pass: [{files: {/proc/sys/vm/max_map_count: '262144'}}]")
    text += "  fail: [{files: {/proc/sys/vm/max_map_count: '65530'}}]\n"
    playbook = (
        "id: raise\ntitle: raise\nfixes: [SITE101]\nsafety: safe\ndisruption: none\n"
        "steps:\n  - sysctl.set: {key: vm.max_map_count, value: %d}\n"
    )
    status, lines = outcome_of(tmp_path, text, FAQ_TEXT, **{"playbooks/site/raise.yaml": playbook % 200000})
    assert (status, lines) == (
        1,
        [
            "playbooks/site/raise.yaml:7:3: SITE101 fail[0]: after playbook raise it still fails: "
            "fail [vm.max_map_count]: found 200000; expected at least 262144",
            "FAILED: 1 check, 1 FAQ entry, 1 playbook, 4 examples; 1 not as expected",
        ],
    )
    status, lines = outcome_of(tmp_path, text, FAQ_TEXT, **{"playbooks/site/raise.yaml": playbook % 262144})
    assert (status, lines) == (0, ["OK: 1 check, 1 FAQ entry, 1 playbook, 4 examples, all as expected"])


def test_a_file_that_does_not_load_is_named_first(tmp_path: Path) -> None:
    status, lines = outcome_of(tmp_path, "expct: 1\n")
    assert status == 2
    assert "did you mean expect" in lines[0]


def test_the_directory_that_every_run_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "SITE", str(tmp_path / "site"))
    status, lines = outcome_of(tmp_path, examples("pass: [{files: {/proc/sys/vm/max_map_count: '262144'}}]"))
    assert (status, lines[-1]) == (0, "OK: 1 check, 1 example, all as expected")


def test_as_json(tmp_path: Path) -> None:
    outcome_of(tmp_path, examples("pass: [{files: {/proc/sys/vm/max_map_count: '1'}}]"))
    data = json.loads(run("test-catalog", str(tmp_path / "site"), "--format", "json").stdout)
    assert data["examples"] == {"SITE101": 1}
    assert [row["place"].rpartition("/")[2] for row in data["problems"]] == ["SITE101-max-map-count.yaml:8:10"]


def test_another_directory_is_a_usage_error(tmp_path: Path) -> None:
    assert run("test-catalog", str(tmp_path / "nowhere")).exit_code == 2
