"""`envtune new`: every skeleton loads, and its examples come out as they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.command_line import run

from envtune.catalog import load
from envtune.catalog.forms import STEP_KINDS
from envtune.catalog.reference import PLACEHOLDER, example_text
from envtune.context.registry import probe_names
from envtune.site.examples import run_examples
from envtune.site.skeleton import new_check, new_faq, new_playbook, place_of


def write(directory: Path, path: Path, text: str) -> None:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_a_skeleton_of_every_probe_and_step_loads_and_passes_its_tests(tmp_path: Path) -> None:
    directory = tmp_path / "site"
    for number, probe in enumerate(probe_names(), 101):
        write(directory, *new_check(f"SITE{number}", "", probe))
    write(directory, *new_faq("S01", "", "SITE101"))
    (check,) = [check for check in load([directory]).checks if check.name.startswith("environment-variable-site")]
    for number, step in enumerate(STEP_KINDS):
        write(directory, *new_playbook(f"playbook-{number}", check, step))
    catalogue = load([directory])
    tested = run_examples(directory, catalogue)
    assert [(problem.place, problem.text.en) for problem in tested.problems] == []
    with_examples = {id_ for id_, count in tested.examples.items() if count}
    assert len(with_examples) == 1 + sum(example_text("probes", probe) is not None for probe in probe_names())


@pytest.mark.parametrize("probe", [name for name in probe_names() if example_text("probes", name) is not None])
def test_the_example_of_a_probe_uses_it_and_fails_and_passes(probe: str) -> None:
    text = example_text("probes", probe) or ""
    assert f"probe: {{{probe}: {{" in text
    assert f"id: {PLACEHOLDER}\n" in text
    assert "  pass:\n" in text and "  fail:\n" in text


def test_the_generic_probes_have_an_example() -> None:
    families = ("file.", "sysctl.", "package.", "service.", "command.", "mount.", "limit.", "kernel.", "process.")
    generic = [name for name in probe_names() if name.startswith(families)]
    assert len(generic) > 20
    assert [name for name in generic if example_text("probes", name) is None] == []


def test_a_playbook_takes_key_and_value_from_the_check(tmp_path: Path) -> None:
    text = new_check("SITE101", "", "sysctl.value").text.replace("vm.max_map_count", "net.core.somaxconn")
    write(tmp_path, Path("checks/site/SITE101-sysctl-value-site101.yaml"), text.replace("262144}", "4096}"))
    assert run("new", "playbook", "raise-somaxconn", "--catalog", str(tmp_path)).exit_code == 0
    assert "sysctl.set: {key: net.core.somaxconn, value: 4096}" in Path(
        "playbooks/site/raise-somaxconn.yaml"
    ).read_text("utf-8")


def test_an_existing_file_stays_as_it_is() -> None:
    assert run("new", "check", "SITE101").exit_code == 0
    path = Path("checks/site/SITE101-sysctl-value-site101.yaml")
    path.write_text("mine", "utf-8")
    again = run("new", "check", "SITE101", "--lang", "en")
    assert (again.exit_code, path.read_text("utf-8")) == (2, "mine")
    assert "already exists" in again.stderr


@pytest.mark.parametrize(("kind", "id_"), [("check", "SITE101"), ("faq", "S01")])
def test_an_id_is_used_once(kind: str, id_: str, tmp_path: Path) -> None:
    assert run("new", kind, id_, "--name", "first").exit_code == 0
    again = run("new", kind, id_, "--name", "second", "--lang", "en")
    assert again.exit_code == 2
    assert f"the id {id_} is already used by" in again.stderr and f"{id_}-first.yaml" in again.stderr
    assert len(list(tmp_path.rglob("*.yaml"))) == 1


def test_a_directory_of_checks_gets_another_check(tmp_path: Path) -> None:
    (tmp_path / "SITE100-x.yaml").write_text(new_check("SITE100", "x", "file.kind").text, "utf-8")
    assert place_of(new_check("SITE101", "", "file.mode"), tmp_path).parent == tmp_path
    assert run("new", "check", "SITE101", "--probe", "file.mode").exit_code == 0
    assert run("test-catalog", ".").exit_code == 0
    refused = run("new", "playbook", "p", "--fixes", "SITE100", "--lang", "en")
    assert refused.exit_code == 2 and "contains checks" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
def test_root_writes_into_no_directory_of_somebody_else(tmp_path: Path) -> None:
    directory = tmp_path / "foreign"
    directory.mkdir()
    os.chown(directory, 12345, 12345)
    done = run("new", "check", "SITE101", "--catalog", str(directory), "--lang", "en")
    assert done.exit_code == 2 and "belongs to uid 12345" in done.stderr
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "site1"], "must look like SITE101"),
        (["check", "SITE101", "--probe", "sysctl.vale"], "did you mean sysctl.value"),
        (["check", "SITE101", "--name", "Max Map"], "must look like max-map-count-too-low"),
        (["playbook", "p"], "--fixes ID"),
        (["playbook", "p", "--fixes", "CPU0001"], "did you mean CPU001"),
        (["playbook", "p", "--fixes", "CPU001", "--step", "sysctl.sett"], "did you mean sysctl.set"),
        (["faq", "S1"], "must look like S01"),
        (["rule", "x"], "check, playbook or faq"),
    ],
)
def test_what_is_mistyped_is_named_and_nothing_is_written(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = run("new", *arguments, "--lang", "en")
    assert done.exit_code == 2
    assert words in done.stderr
    assert list(tmp_path.rglob("*.yaml")) == []
