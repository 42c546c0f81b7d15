"""Variables written to files: an env file, /etc/profile.d, a docker env file, a block in a launch script."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional

import pytest
from helpers import fixing
from helpers.examples import ROOT
from helpers.rows import sampled
from hypothesis import given
from hypothesis import strategies as st

from envtune.job.language import foreign_language
from envtune.job.target import TargetOptions
from envtune.messages import Bilingual
from envtune.model import Change
from envtune.resources.environment.managed_block import BEGIN, END, UnclosedBlockError, entries, merged, split, variants
from envtune.resources.environment.profile import Setting
from envtune.resources.environment.render import typed


def written(change: Change) -> str:
    (operation,) = change.operations
    return base64.b64decode(operation["content"]).decode("utf-8", "surrogateescape")


def without_block(text: str) -> str:
    before, inside, behind = split(text)
    assert inside is not None
    return before + behind


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


@pytest.mark.slow
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


# ---------------------------------------------------------------------- whatever the script is like

VENDOR = 'export LD_LIBRARY_PATH=/cann/lib64:$LD_LIBRARY_PATH\n[ -n "$NOBODY_SETS_THIS" ] && echo no\nfalse\n'
SCRIPTS = {
    "plain": "python3 $JOB",
    "errexit and nounset": "set -eu\npython3 $JOB\n",
    "nounset, no line end": "set -u\nset -e\nexport DUMP_GE_GRAPH=2\npython3 $JOB",
    "a document is open": "set -eu\ncat >/dev/null <<E\nexport A=1\nE\npython3 $JOB\ncat <<'E'>/dev/null\npy\nE\n",
    "in a function": "set -eu\nrun() {\n  python3 $JOB\n}\nrun\n",
    "behind a pipe": "set -eu\ntrue |\n  cat\npython3 $JOB \\\n  --x\n",
}


@pytest.mark.parametrize("shell", sampled(["sh", "bash", "bash --posix"], 3))
@pytest.mark.parametrize("name", sampled(SCRIPTS, 4))
def test_a_script_survives_the_block_wherever_it_is(name: str, shell: str, tmp_path: Path) -> None:
    """Before each statement of the script: it ends as it did, and says nothing more."""
    (tmp_path / "vendor.sh").write_text(VENDOR)
    text = "#!/bin/sh\n" + SCRIPTS[name].replace("$JOB", "-c 'import os; print(os.environ.get(\"TASK_QUEUE_ENABLE\"))'")
    reason = Bilingual("a reason", "原因")
    settings = [
        Setting("TASK_QUEUE_ENABLE", "1", reason),
        Setting("DUMP_GE_GRAPH", None, reason),
        Setting("NOT_THERE", None, reason),
        Setting("LIBRARY_PATH", "/hdf5", reason, prefixes=("/hdf5",)),
        Setting("", None, reason, script=str(tmp_path / "vendor.sh")),
    ]
    made = list(variants(text, merged("", settings, "en"), True))
    said = set()
    for one in made:
        (tmp_path / "train.sh").write_text(one)
        argv = [*shell.split(), str(tmp_path / "train.sh")]
        done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, (one, done.stderr)
        said.add(done.stdout)
    assert "1\n" in said


LANGUAGES = [
    ("train.sh", "#!/bin/bash\n", None),
    ("train.sh", "python3 train.py\n", None),
    ("run", "#!/usr/bin/env -S bash -e\n", None),
    ("run", "#!/bin/sh\r\n", None),
    ("run", "\ufeff#!/bin/sh\n", None),
    ("import.sh", "import os.png\nexport A=1\n", None),
    ("train.csh", "#!/bin/bash\nexport A=1\n", None),
    ("run", "#!/bin/csh -f\n", "csh"),
    ("run.sh", "#!/usr/bin/env tcsh\n", "csh"),
    ("run.sh", "setenv A 1\nif ($?B) then\nendif\n", "csh"),
    ("run", "set -gx A 1\n", "fish"),
    ("env.fish", "echo a\n", "fish"),
    ("run", "#!/usr/bin/env -S python3 -u\nimport os\n", "python"),
    ("run", "#!/bin/sh\n'''exec' /x/python \"$0\" \"$@\"\n' '''\nimport os\n", "python"),
    ("train", "import os\n\nprint(1)\n", "python"),
    *(
        ("run", f"#!/bin/sh\n# -*- coding: utf-8 -*-\n\n{line}\nimport os\n", "python")
        for line in (
            "''':'\nexec python3 \"$0\"\n'''",
            "''''exec python3 -u -- \"$0\" ${1+\"$@\"} # '''",
            "''''which python3 >/dev/null 2>&1 && exec python3 \"$0\" # '''",
            '"exec" "python3" "$0" "$@"',
            '""":"\nexec python3 $0\n"""',
        )
    ),
    ("run", '#!/bin/sh\n\':\' //; exec node "$0" "$@"\nlet a = 1\n', "JavaScript"),
    ("run", "#!/bin/sh\neval 'exec perl -x -wS $0 ${1+\"$@\"}'\n  if 0;\n", "Perl"),
    ("run", "#!/bin/sh\n: unused\nexec python3 train.py\n", None),
    ("run", "#!/bin/sh\n\"$TOOLS/exec\" x\n'true'\neval 'exec 3>&1'\n", None),
    ("train.py", "print(1)\n", "python"),
    ("job.yaml", "a: 1\n", "YAML"),
    ("job", "---\na: 1\n", "YAML"),
    ("job", "# a pod\napiVersion: v1\n", "YAML"),
    ("job", '{"a": 1}', "JSON"),
    ("job.sh", '[{"a": 1}]', "JSON"),
    ("job.sh", '[ -n "$A" ] && echo x\n', None),
    ("job.sh", '[[ -n "$A" ]] && echo x\n', None),
    ("job.sh", "{ echo a; }\n", None),
    ("run", "#!/usr/bin/perl -w\n", "Perl"),
    ("run", "\x7fELF\0\0", "a program"),
    ("Dockerfile", "FROM x\nENV A=1\n", "Dockerfile"),
    ("rules", "# all\ntrain: data other\n\tpython3 train.py\n\ndata:\n\ttrue\n", "make"),
    ("site.mk", "A := 1\n", "make"),
    ("train", ".PHONY: all\nall:\n", "make"),
    ("run", "case $1 in\n\ta) echo;;\nesac\n", None),
    ("run", "train() {\n\tpython3 t.py\n}\ntrain\n", None),
    ("run", "echo a: b\n", None),
    ("README.md", "# Train\n", "a document"),
]


@pytest.mark.parametrize(("name", "text", "language"), LANGUAGES)
def test_what_a_file_is_written_in(name: str, text: str, language: Optional[str]) -> None:
    assert foreign_language(f"/home/t/{name}", text) == language


WORDS = ["1", "a b", "it's", "50% $HOME `x` !!", "/a:/b", '"q" \\ \\n']


@pytest.mark.parametrize("language", ["csh", "fish", "python"])
def test_what_is_to_be_typed_is_what_that_language_reads(language: str, tmp_path: Path) -> None:
    program = {"csh": "tcsh", "fish": "fish", "python": sys.executable}[language]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    rows = [Setting(f"V{n}", value, Bilingual("", "")) for n, value in enumerate(WORDS)]
    rows.append(Setting("GONE", None, Bilingual("", "")))
    lines = "\n".join(str(typed([row], language)) for row in rows)
    start, end = ("import os", "os.execv('/usr/bin/env', ['env', '-0'])") if language == "python" else ("", "env -0")
    (tmp_path / "file").write_text("\n".join([start, lines, end]) + "\n")
    argv = [program, *(["-f"] if language == "csh" else []), str(tmp_path / "file")]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GONE": "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    found = dict(row.split("=", 1) for row in done.stdout.split("\0") if row)
    assert [found.get(row.name) for row in rows] == [row.value for row in rows], done.stderr
