"""Variables written to files: an env file, /etc/profile.d, a docker env file, a block in a launch script."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers import fixing
from helpers.checks import check_files
from helpers.examples import ROOT, example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.job.target import TargetOptions
from envtune.messages import Bilingual
from envtune.model import Change, FixOptions, Outcome
from envtune.resources.environment.managed_block import BEGIN, END, UnclosedBlockError, entries, merged, split, variants
from envtune.resources.environment.profile import Setting

DATA = {data["id"]: data for data in check_files() if data["id"] == "ENV012"}
NEW = {"like": ["npu-910b-8", "torch210"]}
GOOD = {"COMBINED_ENABLE": "1", "PATH": "/usr/local/python3.9.9/bin"}
SCRIPT = "/home/t/train.sh"


def planned(example: Mapping[str, Any], *ids: str, options: FixOptions = FixOptions()) -> Plan:  # noqa: B008
    context = example_context(example)
    checks = [check for check in load().checks if (check.id in ids if ids else check.family == "ENV")]
    return make_plan([f for c in checks for f in examine(c, context)], load().playbooks, context, options)


def written(change: Change) -> str:
    (operation,) = change.operations
    return base64.b64decode(operation["content"]).decode("utf-8", "surrogateescape")


def scripted(text: str, **more: Any) -> dict[str, Any]:
    """A host on which the job is started by this script."""
    return {**NEW, "environ": GOOD, "target": {"script": SCRIPT}, "files": {SCRIPT: text}, **more}


# ---------------------------------------------------------------------- the env file


def test_an_env_file_of_our_own() -> None:
    (change,) = planned(
        {**NEW, "environ": {**GOOD, "HOME": "/home/t", "DUMP_GE_GRAPH": "2", "TASK_QUEUE_ENABLE": "0"}}
    ).changes
    assert change.target == "/home/t/.config/envtune/env.sh"
    assert written(change).splitlines() == [
        BEGIN,
        "# 0 is for debugging and slows every step",
        "export TASK_QUEUE_ENABLE=1",
        "# 2 is for debugging and slows every step",
        "unset DUMP_GE_GRAPH",
        END,
    ]
    assert (change.finding, set(change.cures)) == ("ENV001", {"ENV004", "ENV015"})
    assert (change.view, change.safety, change.undoable) == ("job", "safe", True)
    assert change.verify == {"env_file": "/home/t/.config/envtune/env.sh"}
    assert change.note is not None and "scripts and shells that source it" in change.note.en
    assert "systemd 和 docker 不读取它" in change.note.zh


def test_only_what_was_asked_for() -> None:
    environ = {**GOOD, "DUMP_GE_GRAPH": "2", "TASK_QUEUE_ENABLE": "0"}
    (change,) = planned({**NEW, "environ": environ}, "ENV004").changes
    assert "TASK_QUEUE_ENABLE" not in written(change) and "DUMP_GE_GRAPH" in written(change)


def test_what_is_in_the_file_stays_and_what_we_wrote_before_too() -> None:
    environ = {**GOOD, "HOME": "/h", "DUMP_GE_GRAPH": "2"}
    path = "/h/.config/envtune/env.sh"
    before = f"# mine\nexport MINE=1\n{BEGIN}\n# why\nexport COMBINED_ENABLE=1\n{END}\nexport MORE=2"
    (change,) = planned({**NEW, "environ": environ, "files": {path: before}}, "ENV004").changes
    text = written(change)
    assert text.startswith("# mine\nexport MINE=1\n") and text.endswith(f"{END}\nexport MORE=2")
    assert "# why\nexport COMBINED_ENABLE=1\n" in text and "unset DUMP_GE_GRAPH" in text


def test_written_twice_is_the_same() -> None:
    environ = {**GOOD, "HOME": "/h", "DUMP_GE_GRAPH": "2"}
    path = "/h/.config/envtune/env.sh"
    (change,) = planned({**NEW, "environ": environ}, "ENV004").changes
    plan = planned({**NEW, "environ": environ, "files": {path: written(change)}}, "ENV004")
    assert not plan.changes, "this shell has not sourced it, and there is nothing more to write"
    assert f"this shell has not sourced it: . {path}" in plan.skipped[0].reason.en


def test_the_file_that_the_job_reads_passes() -> None:
    environ = {**GOOD, "HOME": "/h", "DUMP_GE_GRAPH": "2"}
    (change,) = planned({**NEW, "environ": environ}, "ENV004").changes
    again = {
        **NEW,
        "environ": environ,
        "files": {change.target: written(change)},
        "target": {"env_file": change.target},
    }
    context = example_context(again)
    checks = [check for check in load().checks if check.id in ("ENV004", "ENV015")]
    assert {f.outcome for c in checks for f in examine(c, context)} == {Outcome.PASS}


def test_profile_d_needs_root_and_says_who_sees_it() -> None:
    path = "/etc/profile.d/envtune.sh"
    environ = {**GOOD, "DUMP_GE_GRAPH": "2"}
    (change,) = planned({**NEW, "environ": environ, "euid": 1000}, "ENV004", options=FixOptions(env_file=path)).changes
    assert change.target == path and change.root
    assert change.note is not None and change.note.en.startswith("login shells get it") and "ssh" in change.note.en


def test_an_env_file_for_docker_stays_one() -> None:
    path = "/h/job.env"
    files = {path: "TASK_QUEUE_ENABLE=0\nMINE=a b\n"}
    example = {**NEW, "environ": GOOD, "files": files, "target": {"env_file": path}}
    (change,) = planned(example, "ENV001", options=FixOptions(env_file=path)).changes
    assert written(change).startswith(files[path]) and "\nTASK_QUEUE_ENABLE=1\n" in written(change)
    assert "export" not in written(change)
    assert change.note is not None and "--env-file" in change.note.en


def test_an_env_file_for_docker_cannot_unset() -> None:
    path = "/h/job.env"
    example = {**NEW, "environ": GOOD, "files": {path: "DUMP_GE_GRAPH=2\n"}, "target": {"env_file": path}}
    plan = planned(example, "ENV004", options=FixOptions(env_file=path))
    assert not plan.changes and f"{path}:1" in plan.skipped[0].reason.en


def test_a_whitelist_is_switched_off_with_consent_of_its_own() -> None:
    (change,) = planned({**NEW, "environ": {**GOOD, "HCCL_WHITELIST_DISABLE": "0"}}, "ENV010").changes
    assert change.safety == "confirm"


def test_a_whitelist_with_a_file_is_left() -> None:
    environ = {**GOOD, "HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/w", "DUMP_GE_GRAPH": "1"}
    (change,) = planned({**NEW, "environ": environ, "files": {"/w": '{"host_ip": ["10.0.0.1"]}'}}).changes
    assert "WHITELIST" not in written(change)
    assert change.note is not None and "HCCL_WHITELIST_DISABLE left as it is" in change.note.en


def test_comments_are_in_the_language_of_the_user() -> None:
    (change,) = planned({**NEW, "environ": {**GOOD, "DUMP_GE_GRAPH": "2", "LANG": "zh_CN.UTF-8"}}, "ENV004").changes
    assert "# 2 用于调试" in written(change)


def test_master_addr_of_a_job_on_one_node() -> None:
    example = {"like": "net", "environ": {"MASTER_ADDR": "1.1.1.1", "NNODES": "1"}}
    (change,) = planned(example, "NET001").changes
    assert "export MASTER_ADDR=" in written(change) and "1.1.1.1" not in written(change)
    many = planned({"like": "net", "environ": {"MASTER_ADDR": "1.1.1.1", "NNODES": "2"}}, "NET001")
    assert not many.changes and "cannot be told here" in many.skipped[0].reason.en


def test_the_search_path_of_this_shell_is_frozen_into_no_file() -> None:
    doubled = {**GOOD, "PATH": "/usr/local/python3.9.9/bin:/usr/local/python3.9.9/bin"}
    plan = planned({**NEW, "environ": doubled}, "ENV014")
    assert not plan.changes and 'eval "$(envtune env)"' in plan.skipped[0].reason.en
    inherits = "#!/bin/bash\nexport PATH=$PATH:/gone\npython3 train.py\n"
    plan = planned(scripted(inherits), "ENV014")
    assert not plan.changes and re.search(r"train\.sh:2 puts it together .*correct it there", plan.skipped[0].reason.en)
    own = "#!/bin/bash\nexport PATH=/usr/local/python3.9.9/bin:/gone\npython3 train.py\n"
    (change,) = planned({**scripted(own), "environ": {"COMBINED_ENABLE": "1", "PATH": "/usr/bin"}}, "ENV014").changes
    assert "\nexport PATH=/usr/local/python3.9.9/bin\n" in written(change)


def test_a_directory_is_put_in_front_of_whatever_the_job_has() -> None:
    example = DATA["ENV012"]["examples"]["fail"][0]
    (change,) = planned(example, "ENV012").changes
    assert "export CPATH=/usr/local/hdf5/include${CPATH:+:$CPATH}" in written(change)
    assert example_context(example).target.variables().get("PATH", "-") not in written(change)


# ---------------------------------------------------------------------- a launch script


def without_block(text: str) -> str:
    before, inside, behind = split(text)
    assert inside is not None
    return before + behind


SCRIPTS = {
    "set at the top": "#!/bin/bash\nexport TASK_QUEUE_ENABLE=0\npython3 train.py\n",
    "no line end": "#!/bin/bash\nexport TASK_QUEUE_ENABLE=0\npython3 train.py",
    "launched in a function": 'main() {\n  python3 train.py \\\n    --lr 1\n}\nexport TASK_QUEUE_ENABLE=0\nmain "$@"\n',
    "launched in a loop": "export TASK_QUEUE_ENABLE=0\nfor i in 0 1; do\n  python3 t.py $i &\ndone\nwait\n",
    "a document before": 'export TASK_QUEUE_ENABLE=0\ncat > c.json <<EOF\n{"a":\n 1}\nEOF\npython3 t.py\n',
    "several on one line": "export TASK_QUEUE_ENABLE=0; cd /home/t\ncd /home/t && python3 t.py\n",
    "an if that ends on the line": "export TASK_QUEUE_ENABLE=0\nif true; then\n  :\nfi; python3 t.py\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_block_where_it_counts_and_the_rest_byte_by_byte(name: str) -> None:
    text = SCRIPTS[name]
    plan = planned(scripted(text), "ENV001")
    (change,) = plan.changes
    assert change.target == SCRIPT and change.verify == {"script": SCRIPT}
    assert without_block(written(change)) == text
    assert change.note is not None and "every job that this script starts" in change.note.en
    again = planned(scripted(written(change)), "ENV001")
    assert not again.changes and not again.skipped, "it passes now"


def test_the_block_is_replaced_where_it_is() -> None:
    block = f"{BEGIN}\n# old\nexport TASK_QUEUE_ENABLE=0\n{END}\n"
    text = f"#!/bin/bash\n{block}\necho one\npython3 train.py\n"
    (change,) = planned(scripted(text), "ENV001").changes
    assert written(change).startswith(f"#!/bin/bash\n{BEGIN}\n") and "TASK_QUEUE_ENABLE=0" not in written(change)
    assert without_block(written(change)) == without_block(text)


def test_a_block_that_comes_too_early_is_moved() -> None:
    text = f"#!/bin/bash\n{BEGIN}\nexport TASK_QUEUE_ENABLE=1\n{END}\nexport TASK_QUEUE_ENABLE=0\npython3 train.py\n"
    (change,) = planned(scripted(text), "ENV001").changes
    assert without_block(written(change)) == without_block(text)
    assert written(change).index(BEGIN) > written(change).index("TASK_QUEUE_ENABLE=0")


def test_what_no_block_can_undo_is_named() -> None:
    plan = planned(scripted("#!/bin/bash\nrun() {\n  TASK_QUEUE_ENABLE=0 python3 train.py\n}\nrun\n"), "ENV001")
    assert not plan.changes
    assert f"{SCRIPT}:3" in plan.skipped[0].reason.en and "change it there" in plan.skipped[0].reason.en


def test_a_block_without_an_end_is_left() -> None:
    plan = planned(scripted(f"{BEGIN}\nexport TASK_QUEUE_ENABLE=0\npython3 train.py\n"), "ENV001")
    assert not plan.changes and "no end mark" in plan.skipped[0].reason.en


def test_a_link_is_followed_to_the_script() -> None:
    example = scripted("", files={SCRIPT: {"link": "/data/real.sh"}, "/data/real.sh": SCRIPTS["set at the top"]})
    (change,) = planned(example, "ENV001").changes
    assert change.target == "/data/real.sh"


# ---------------------------------------------------------------------- the block, alone

SETTINGS = st.lists(
    st.builds(
        lambda name, value: Setting(name, value, Bilingual("a reason", "原因")),
        st.sampled_from(["A", "B", "LD_LIBRARY_PATH"]),
        st.one_of(st.none(), st.text(alphabet="ab \n'\"$\\", max_size=8)),
    ),
    max_size=4,
    unique_by=lambda setting: setting.name,
)


@given(SETTINGS, SETTINGS)
def test_merging_is_idempotent_and_keeps_other_entries(one: list[Setting], two: list[Setting]) -> None:
    inside = merged("", one, "en")
    both = merged(inside, two, "en")
    assert merged(both, two, "en") == both
    assert set(entries(both)) >= {s.name for s in [*one, *two] if s.value is None or "\n" not in s.value}


@given(st.text(alphabet="ab=#\n \r;'\"", max_size=60), SETTINGS, st.booleans())
def test_whatever_the_file_holds_the_rest_stays(text: str, settings: list[Setting], script: bool) -> None:
    inside = merged("", settings, "en")
    for made in variants(text, inside, script):
        before, found, behind = split(made)
        assert found == inside
        assert before + behind == text or (not text.endswith("\n") and before + behind == text + "\n")


def test_the_end_mark_is_looked_for_behind_the_beginning() -> None:
    with pytest.raises(UnclosedBlockError):
        split(f"{END}\n{BEGIN}\n")


# ---------------------------------------------------------------------- for real

JUDGE = """
import json
from helpers import fixing
context = fixing.local_context({"ascend": "true"})
ids = ("ENV002", "ENV003", "ENV004", "ENV015")
print(json.dumps({i: sorted({f.outcome.value for f in fixing.find(context, i)}) for i in ids}))
"""


def shell_env(tmp_path: Path, **more: str) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return {**keep, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "tests"), **more}


def judged(line: str, env: dict[str, str]) -> dict[str, list[str]]:
    """What the checks say about the environment that a shell passes on after `line`."""
    code = f'{line}\nexec "$0" -c "$1"\n'
    done = subprocess.run(
        ["bash", "-c", code, sys.executable, JUDGE], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_applied_sourced_by_a_real_shell_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_GLOBAL_LOG_LEVEL": "0", "DUMP_GE_GRAPH": "2"}
    for name in ("SUDO_USER", "SUDO_COMMAND", "SSH_CONNECTION", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**bad, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    env = shell_env(tmp_path, **bad)
    assert judged(":", env)["ENV004"] == ["fail"]
    state, ids = str(tmp_path / "state"), ("ENV002", "ENV003", "ENV004", "ENV015")
    made = fixing.plan(fixing.local_context({"ascend": "true"}), *ids)
    (change,) = made.changes
    run, results = fixing.apply(made, state)
    assert [row["status"] for row in results.values()] == ["done"]
    file = tmp_path / ".config" / "envtune" / "env.sh"
    assert file.read_text() == written(change)
    assert all(outcome == ["pass"] for outcome in judged(f'. "{file}"', env).values())
    assert all(outcome == ["pass"] for outcome in judged(f'. "{file}"; . "{file}"', env).values())
    assert fixing.undo(run, state) == [] and not file.parent.exists(), "the directories that were made are gone, too"


def test_a_block_in_a_real_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.sh"
    start = 'python3 -c "import os, json; print(json.dumps(dict(os.environ)))"'
    text = f'#!/bin/bash\nexport DUMP_GE_GRAPH=2\ncd "{tmp_path}"\n{start}\n'
    script.write_text(text)
    script.chmod(0o750)
    state = str(tmp_path / "state")
    made = fixing.plan(fixing.local_context({"ascend": "true"}, TargetOptions(script=str(script))), "ENV004")
    run, results = fixing.apply(made, state)
    assert [row["status"] for row in results.values()] == ["done"]
    assert without_block(script.read_text()) == text and script.stat().st_mode & 0o777 == 0o750
    done = subprocess.run([str(script)], capture_output=True, text=True, check=True)
    assert "DUMP_GE_GRAPH" not in json.loads(done.stdout)
    assert not fixing.plan(
        fixing.local_context({"ascend": "true"}, TargetOptions(script=str(script))), "ENV004"
    ).changes
    assert fixing.undo(run, state) == [] and script.read_text() == text
