"""Every shipped playbook: simulated on the hosts that its checks' examples describe; written, judged again and undone.

What only writes files is written below a directory that stands for the root. What runs commands, replaces trees or ends
processes has tests of its own against the real thing; the table at the end says which, and a test holds it to that.
"""

from __future__ import annotations

import ast
import base64
import copy
import json
from functools import cache
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Optional

import pytest
from helpers.examples import ROOT, shared_host
from helpers.rows import marked_slow, sampled
from helpers.shipped import parsed

from envtune.audit import audit
from envtune.catalog import load
from envtune.catalog.examples import example_data
from envtune.context.open import open_context, recorded_options
from envtune.executor.plan import plan_fault
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.fix.document import load_plan, plan_data, render
from envtune.fix.plan import Plan, executable, fixed_checks, make_plan
from envtune.fix.policy import refusal
from envtune.job.target import TargetOptions
from envtune.model import Check, FixOptions, Outcome, Playbook
from envtune.report.plan import text as report
from envtune.snapshot.host import SnapshotHost

OPTIONS = FixOptions(peers=("10.0.0.2",))
CATALOGUE = load()
BOOKS = {book.id: book for book in CATALOGUE.playbooks}
CHECKS = {check.id: check for check in CATALOGUE.checks}
LARGE = "set-job-variables"  # on 70 hosts, which differ in little
TYPED = [id_ for id_, book in BOOKS.items() if any(step.kind != "instructions" for step in book.steps)]


class Case(NamedTuple):
    """A host on which a check of the playbook fails, and what the playbook would do there."""

    check: Check
    data: Mapping[str, Any]
    plan: Plan


@cache
def rows() -> Mapping[str, Any]:
    documents = (parsed(path) for path in (ROOT / "checks").rglob("*-*.yaml"))
    return {row["id"]: row for row in documents if isinstance(row, dict) and "probe" in row}


def scene_on(data: Mapping[str, Any], target: Any = None) -> Any:
    host = SnapshotHost(data)
    return open_context(host, target or recorded_options(host.data.get("target") or {}))


@cache
def cases(id_: str, limit: Optional[int] = None) -> tuple[Case, ...]:
    """The failing examples of every check that the playbook names, about `limit` of them if that is given."""
    return tuple(_cases(BOOKS[id_], limit))


def _cases(book: Playbook, limit: Optional[int]) -> Iterator[Case]:
    checks = [CHECKS[name] for name in book.fixes if name in CHECKS]
    failing = [(check, example) for check in checks for example in rows()[check.id].get("examples", {}).get("fail", [])]
    for check, example in failing[:: 1 if limit is None else 1 + len(failing) // limit]:
        data = example_data(example, shared_host)
        context = scene_on(data)
        yield Case(check, data, make_plan(audit([check], context), [book], context, OPTIONS))


@pytest.mark.parametrize("id_", sampled([marked_slow(id_) if id_ == LARGE else id_ for id_ in BOOKS], 2))
def test_simulated(id_: str) -> None:
    for case in cases(id_):
        said = {check for change in case.plan.changes for check in fixed_checks(change)}
        said |= {skipped.finding for skipped in case.plan.skipped}
        assert case.check.id in said, f"{id_} says nothing about {case.check.id}"
        for skipped in case.plan.skipped:
            assert "envtune itself" not in skipped.reason.en and skipped.reason.zh, skipped
        assert plan_fault(executable(case.plan.changes)) is None
        for change in case.plan.changes:
            assert change.playbook == id_ and change.operations and change.target
            assert [refusal(operation) for operation in change.operations] == [None] * len(change.operations)
        for lang in ("en", "zh"):
            text = render(case.plan, lang)
            assert plan_data(load_plan(text), lang) == json.loads(text)
            assert max(map(len, report.render(case.plan, lang, width=100).splitlines()), default=0) < 400


@pytest.mark.parametrize("id_", [id_ for id_ in BOOKS if id_ not in TYPED])
def test_what_a_person_does_is_told_step_by_step(id_: str) -> None:
    for case in cases(id_):
        assert case.plan.changes == ()
        (told,) = [skipped for skipped in case.plan.skipped if skipped.finding == case.check.id]
        assert told.steps and all(step.en and step.zh for step in told.steps)


# ---------------------------------------------------------------------- on a root of the test's own


class Root:
    """A directory that stands for the root of a recorded host: the files that a plan touches."""

    def __init__(self, directory: Path, data: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.state = directory / "root", str(directory / "state")
        self.data: dict[str, Any] = copy.deepcopy(dict(data))
        kernel = tuple(f"{self.directory}/{name}/" for name in ("sys", "proc"))
        monkeypatch.setattr("envtune.executor.files.KERNEL_DIRECTORIES", (*kernel, "/sys/", "/proc/"))

    def lay(self, plan: Plan) -> None:
        """Make the files as the host has them."""
        host = SnapshotHost(self.data)
        for path in self.paths(plan):
            place = Path(f"{self.directory}{path}")
            try:
                content = host.read_bytes(path)
            except FileNotFoundError:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    @staticmethod
    def paths(plan: Plan) -> list[str]:
        return [operation["path"] for change in plan.changes for operation in change.operations]

    def moved(self, plan: Plan) -> dict[str, Any]:
        """The plan with every path below this root."""
        made = executable(plan.changes)
        for change in made["changes"]:
            for operation in change["operations"]:
                operation["path"] = f"{self.directory}{operation['path']}"
        return made

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path)[len(str(self.directory)) :]: path.read_bytes() for path in found}

    def recorded(self, plan: Plan) -> dict[str, Any]:
        """The recorded host with the files as they are now."""
        data, there = copy.deepcopy(self.data), self.files()
        for path in self.paths(plan):
            content = there.get(path)
            data["files"][path] = None if content is None else {"base64": base64.b64encode(content).decode("ascii")}
        return data


def only_files(plan: Plan) -> bool:
    kinds = {operation["op"] for change in plan.changes for operation in change.operations}
    return kinds == {"file"}


# playbook -> the test that applies and undoes it against the real thing
_PACKAGES = "resources/packages/test_install.py::test_installed_with_what_it_needs_and_exactly_that_removed"
_INSTALL = "resources/torch/test_install_packages.py::"
ELSEWHERE: Mapping[str, str] = {
    "allow-huge-pages": "fix/test_host_settings.py::test_each_is_fixed_and_undone",
    "allow-training-ports": "resources/firewall/test_allow.py::test_nftables",
    "end-residual-processes": "resources/processes/test_terminate.py::test_a_real_orphan_on_a_device_node",
    "install-cann-requirements": _INSTALL + "test_what_the_compiler_needs_is_installed_and_undone",
    "install-cpupower": _PACKAGES,
    "install-pillow-build-packages": _PACKAGES,
    "install-pillow-headers": _PACKAGES,
    "install-pillow-simd": "resources/python/test_replace.py::test_undo_brings_the_very_files_back_without_a_network",
    "install-te-of-cann": "resources/python/test_replace.py::test_te_040_is_replaced_by_the_te_040_of_this_cann",
    "install-torch-companions": _INSTALL + "test_the_torchvision_of_another_torch_is_replaced_and_undone",
    "keep-attrs": _INSTALL + "test_the_overwritten_package_is_whole_again_and_undone",
    "keep-triton-ascend": _INSTALL + "test_the_overwritten_package_is_whole_again_and_undone",
    "keep-one-opencv": "resources/python/test_replace.py::test_of_several_opencvs_the_recommended_one_is_left_whole",
    "set-cpu-governor": "resources/cpu/test_set_governor.py::test_192_policies_some_of_which_refuse",
    "set-governor-at-boot": "resources/cpu/test_set_governor_at_boot.py::test_enabled_and_undone_by_systemctl",
    "use-scheduler-none": "fix/test_host_settings.py::test_each_is_fixed_and_undone",
}


@pytest.mark.parametrize("limit", sampled([6, 40], 2))  # hosts a playbook is written on
@pytest.mark.parametrize("id_", sampled([id_ for id_ in TYPED if id_ not in ELSEWHERE], 3))
def test_written_judged_again_and_undone(id_: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [case for case in cases(id_, limit) if only_files(case.plan)]
    assert chosen, f"{id_} is written nowhere: ELSEWHERE has to name the test that applies and undoes it"
    for number, case in enumerate(chosen):
        root = Root(tmp_path / str(number), case.data, monkeypatch)
        root.lay(case.plan)
        before = root.files()
        (tmp_path / str(number)).mkdir(exist_ok=True)
        run, results = apply_plan(root.moved(case.plan), root.state)
        assert [result["error"] for result in results] == [None] * len(case.plan.changes)
        verify = next((change.verify for change in case.plan.changes if change.verify), {})
        after = audit([case.check], scene_on(root.recorded(case.plan), TargetOptions(**verify) if verify else None))
        partly = any(skipped.finding == case.check.id for skipped in case.plan.skipped)
        assert partly or not [f for f in after if f.outcome in (Outcome.FAIL, Outcome.ERROR)], (case.check.id, number)
        assert {row["status"] for row in undo_run(root.state, run)} == {"undone"}
        assert root.files() == before
        apply_plan(root.moved(case.plan), root.state)  # and it can be done again
        written = root.files()
        apply_plan(root.moved(case.plan), root.state)
        assert root.files() == written  # twice is once


@pytest.mark.parametrize("id_", ELSEWHERE)
def test_applied_and_undone_somewhere(id_: str) -> None:
    file, _, name = ELSEWHERE[id_].partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {name}"
