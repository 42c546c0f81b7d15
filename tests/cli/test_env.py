"""`envtune env`: what it prints is run by real shells, and what they then pass on is judged by the checks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.checks import check_files
from helpers.examples import example_context
from helpers.program import completed
from helpers.rows import sampled
from helpers.search import examples as search
from hypothesis import example, given
from hypothesis import strategies as st

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.cli import env as env_verb
from envtune.context import Context
from envtune.fix.environment import advise
from envtune.job.environment import parse_env_file
from envtune.job.target import JobEnvironment
from envtune.messages import Bilingual
from envtune.model import Outcome
from envtune.resources.environment.profile import Advice, Setting, Unchanged
from envtune.resources.environment.render import FORMATS, render
from envtune.resources.environment.simulate import environment_after, values, with_environment
from envtune.trust.characters import is_visible

ROOT = Path(__file__).resolve().parents[2]
OURS = re.compile("ENV0|ENV10|CANN002|CANN005|CANN008|CANN012|NET001|PROC003")
DATA = {data["id"]: data for data in check_files() if OURS.match(data["id"])}
CHECKS = {id_: check_from(data) for id_, data in DATA.items()}
NEW = {"like": ["npu-910b-8", "torch210"]}  # torch_npu 2.1.0.post10
OLD = {"like": ["npu-910a-8", "torch150"]}  # torch 1.5.0


def scene_with(like: Mapping[str, Any], **environ: str) -> Context:
    return example_context({**like, "environ": environ})


def told(like: Mapping[str, Any], profile: str = "train", **environ: str) -> dict[str, Optional[str]]:
    """The variables that `env` sets, None for those it unsets; the paths of the recorded hosts are in order."""
    found = advise(scene_with(like, **environ), profile, "json")
    return {s.name: s.value for s in found.settings if not s.name.endswith("PATH")}


# ---------------------------------------------------------------------- what is advised


def test_only_what_differs() -> None:
    right = {"COMBINED_ENABLE": "1", "TASK_QUEUE_ENABLE": "2", "ASCEND_GLOBAL_LOG_LEVEL": "3"}
    assert told(NEW, **right) == {}
    assert told(NEW, **{**right, "TASK_QUEUE_ENABLE": "0"}) == {"TASK_QUEUE_ENABLE": "1"}


def test_debug_settings_left() -> None:
    left = {"DUMP_GE_GRAPH": "2", "ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_LAUNCH_BLOCKING": "1"}
    found = told(NEW, COMBINED_ENABLE="1", **left)
    assert found == {"DUMP_GE_GRAPH": None, "ASCEND_SLOG_PRINT_TO_STDOUT": "0", "ASCEND_LAUNCH_BLOCKING": "0"}


def test_each_torch_npu_gets_what_it_reads() -> None:
    assert told(OLD) == {"TASK_QUEUE_ENABLE": "1", "PTCOPY_ENABLE": "1", "COMBINED_ENABLE": "1"}
    assert told(NEW) == {}
    assert told(NEW, COMBINED_ENABLE="0") == {}, "an option of later releases"
    assert told(NEW, COMBINED_ENABLE="1", PTCOPY_ENABLE="1") == {"PTCOPY_ENABLE": None}, "not read any more"
    assert told(OLD, COMBINED_ENABLE="1", PTCOPY_ENABLE="1", TASK_QUEUE_ENABLE="2") == {"TASK_QUEUE_ENABLE": "1"}


def test_without_torch_npu_nothing_is_asked_for_its_sake() -> None:
    assert told({"like": "npu-910b-8"}, DUMP_GE_GRAPH="1") == {"DUMP_GE_GRAPH": None}


def test_a_whitelist_that_somebody_wants_is_left_and_named() -> None:
    context = example_context(
        {
            **NEW,
            "environ": {"HCCL_WHITELIST_DISABLE": "0", "HCCL_WHITELIST_FILE": "/etc/wl.json", "COMBINED_ENABLE": "1"},
            "files": {"/etc/wl.json": '{"host_ip": ["10.0.0.1", "10.0.0.2"], "device_ip": []}'},
        }
    )
    found = advise(context, "train", "bash")
    assert "HCCL_WHITELIST_DISABLE" not in [s.name for s in found.settings]
    text = render(found, "bash", "en")
    assert "# HCCL_WHITELIST_DISABLE=0: left unchanged: 0, on purpose: number of hosts in /etc/wl.json: 2\n" in text
    assert "export HCCL_WHITELIST" not in text


def test_a_whitelist_without_a_file_says_both_ways_out() -> None:
    found = advise(scene_with(NEW, HCCL_WHITELIST_DISABLE="0"), "train", "bash")
    (one,) = [s for s in found.settings if s.name == "HCCL_WHITELIST_DISABLE"]
    assert one.value == "1" and one.needs_consent and "HCCL_WHITELIST_FILE" in one.reason.en


def test_values_out_of_range_go_back_to_the_default() -> None:
    assert told(NEW, COMBINED_ENABLE="1", HCCL_CONNECT_TIMEOUT="10") == {"HCCL_CONNECT_TIMEOUT": None}


def test_pairs_that_contradict_each_other() -> None:
    pair = {"HCCL_EVENT_TIMEOUT": "100", "HCCL_EXEC_TIMEOUT": "3600"}
    assert told(NEW, COMBINED_ENABLE="1", **pair) == {"HCCL_EVENT_TIMEOUT": "3632"}
    both = {"HCCL_INTRA_PCIE_ENABLE": "1", "HCCL_INTRA_ROCE_ENABLE": "1"}
    assert told(NEW, COMBINED_ENABLE="1", **both) == dict.fromkeys(both)


def test_a_choice_that_only_a_person_can_make_is_named() -> None:
    clash = "expandable_segments:True,max_split_size_mb:64"
    found = advise(scene_with(NEW, COMBINED_ENABLE="1", PYTORCH_NPU_ALLOC_CONF=clash), "train", "json")
    assert [one.name for one in found.unchanged] == ["PYTORCH_NPU_ALLOC_CONF"]


def test_the_debug_profile() -> None:
    found = told(NEW, "debug", ASCEND_GLOBAL_LOG_LEVEL="1")
    assert found == {
        "TASK_QUEUE_ENABLE": "0",
        "ASCEND_SLOG_PRINT_TO_STDOUT": "1",
        "ASCEND_GLOBAL_EVENT_ENABLE": "1",
        "DUMP_GE_GRAPH": "2",
        "DUMP_GRAPH_LEVEL": "3",
        "ASCEND_LAUNCH_BLOCKING": "1",
    }
    assert "ASCEND_LAUNCH_BLOCKING" not in told(OLD, "debug"), "1.5 does not read it"


def test_an_environment_that_is_not_known_gets_the_whole_profile() -> None:
    found = advise(scene_with(NEW, SUDO_USER="li", SUDO_COMMAND="/usr/bin/envtune"), "train", "bash")
    names = {s.name: s.value for s in found.settings}
    assert names["TASK_QUEUE_ENABLE"] == "1" and names["DUMP_GE_GRAPH"] is None
    assert "HCCL_WHITELIST_DISABLE" not in names, "never switched off blindly"
    assert render(found, "bash", "en").startswith("# the job's variables are unknown (sudo cleared the environment")
    assert all(not s.checks for s in found.settings), "nothing is claimed"


def test_a_launch_script_is_what_is_advised_about() -> None:
    script = "#!/bin/bash\nexport TASK_QUEUE_ENABLE=0\npython3 train.py\n"
    example = {**NEW, "target": {"script": "/home/t/train.sh"}, "files": {"/home/t/train.sh": script}}
    found = advise(example_context({**example, "environ": {"COMBINED_ENABLE": "1"}}), "train", "bash")
    assert [(s.name, s.value) for s in found.settings if s.name != "PATH"] == [("TASK_QUEUE_ENABLE", "1")]


def test_search_paths() -> None:
    path = "/usr/local/python3.9.9/bin:/usr/bin:/usr/bin::/gone"
    found = advise(scene_with(NEW, PATH=path), "train", "json")
    (one,) = [s for s in found.settings if s.name == "PATH"]
    assert one.value is not None and one.value.split(":").count("/usr/bin") <= 1 and "" not in one.value.split(":")
    assert "ENV014" in one.checks


def test_a_script_that_cures_nothing_is_not_sourced() -> None:
    (example,) = [e for e in DATA["CANN008"]["examples"]["fail"] if e["like"] == "cann-new"]
    assert not [s for s in advise(example_context(example), "train", "bash").settings if s.script], (
        "the kernels are gone"
    )


# ---------------------------------------------------------------------- claims, by real shells


def passed_on(shell: str, text: str, environ: Mapping[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a program that a shell starts after it has read `text`."""
    file = tmp_path / f"advice.{shell}"
    file.write_text(text)
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    line = "source $argv[1]; exec /usr/bin/env -0" if shell == "fish" else '. "$1"; exec /usr/bin/env -0'
    argv = [program, *(["--norc"] if shell == "bash" else []), "-c", line]
    argv += [str(file)] if shell == "fish" else [shell, str(file)]
    clean = {"HOME": str(tmp_path), **environ}
    done = subprocess.run(argv, env=clean, capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, (done.stderr, text)
    rows = (row.partition("=") for row in done.stdout.decode("utf-8", "surrogateescape").split("\0") if row)
    return {name: value for name, _, value in rows}


def failing(context: Context) -> set[str]:
    return {id_ for id_, check in CHECKS.items() if any(f.outcome is Outcome.FAIL for f in examine(check, context))}


def examples() -> list[Any]:
    """Every shipped example in which one of these checks fails for this shell's environment."""
    found = []
    for id_, data in DATA.items():
        for number, case in enumerate(data["examples"]["fail"], 1):
            if not case.get("target"):
                found.append(pytest.param(case, id=f"{id_}-{number}"))
    return found


@pytest.mark.parametrize("shell", sampled(["bash", "fish"], 2))
@pytest.mark.parametrize("example", sampled(examples(), 5))
def test_a_shell_that_reads_it_has_no_finding_that_env_claims_to_cure(
    example: Mapping[str, Any], shell: str, tmp_path: Path
) -> None:
    context = example_context(example)
    advice = advise(context, "train", shell)
    claimed = {check for setting in advice.settings for check in setting.checks}
    text = render(advice, shell, "zh")
    for setting in advice.settings:
        if setting.script:  # it lies on the recorded host
            local = tmp_path / "set_env.sh"
            local.write_text(context.host.read(setting.script))
            text = text.replace(setting.script, str(local))
    environ = dict(context.target.environment.variables or {})
    after = passed_on(shell, text, environ, tmp_path)
    again = with_environment(context, JobEnvironment(after, "the shell"))
    assert claimed <= failing(context), "only what fails is claimed"
    assert not claimed & failing(again)


@pytest.mark.slow
def test_most_failures_are_cured() -> None:
    """The claims are not empty: every check whose failure a variable can cure is cured in some example."""
    cures: set[str] = set()
    for parameter in examples():
        if str(parameter.id).partition("-")[0] in cures:
            continue  # another example has shown it
        advice = advise(example_context(parameter.values[0]), "train", "bash")
        cures |= {check for setting in advice.settings for check in setting.checks}
    manual = {"ENV016", "ENV105", "ENV106", "NET001"}  # what was meant is not known
    manual.add("ENV017")  # it is about what the program sets
    assert set(CHECKS) - cures <= manual


VALUES = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30)


@pytest.mark.parametrize("shell", ["bash", "fish"])
@search(25)
@given(values=st.lists(VALUES, min_size=1, max_size=30))
def test_any_value_arrives_as_it_is(shell: str, values: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    reason = Bilingual("a reason\nwith $(touch pwned) `x` in it", "原因")
    rows = [Setting(f"V{number}", value, reason) for number, value in enumerate(values)]
    rows.append(Setting("GONE", None, reason))
    text = render(Advice(tuple(rows), (Unchanged("LEFT", "a\nb", reason),)), shell, "en")
    found = passed_on(shell, text, {"GONE": "1", "LANG": "C.UTF-8"}, tmp_path_factory.mktemp("shell"))
    assert [found[f"V{number}"] for number in range(len(values))] == values
    assert "GONE" not in found


def test_search_paths_in_fish_arrive_as_one_value(tmp_path: Path) -> None:
    rows = (
        Setting("LD_LIBRARY_PATH", "/a b:/c:", Bilingual("", "")),
        Setting("ASCEND_OPP_PATH", "/x", Bilingual("", "")),
    )
    found = passed_on("fish", render(Advice(rows, ()), "fish", "en"), {"LD_LIBRARY_PATH": "/old"}, tmp_path)
    assert (found["LD_LIBRARY_PATH"], found["ASCEND_OPP_PATH"]) == ("/a b:/c:", "/x")


def test_a_directory_put_in_front_twice_is_there_once(tmp_path: Path) -> None:
    row = Setting("LD_LIBRARY_PATH", "/x y/lib64:/old", Bilingual("", ""), prefixes=("/x y/lib64",))
    text = render(Advice((row, row), ()), "bash", "en")
    assert passed_on("bash", text, {"LD_LIBRARY_PATH": "/old"}, tmp_path)["LD_LIBRARY_PATH"] == "/x y/lib64:/old"
    assert passed_on("bash", text, {}, tmp_path)["LD_LIBRARY_PATH"] == "/x y/lib64", "no empty entry"


# ---------------------------------------------------------------------- no empty entry, and twice is once

SET_ENV = """\
export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest
export ASCEND_HOME_PATH=${ASCEND_TOOLKIT_HOME}
export ASCEND_AICPU_PATH=${ASCEND_TOOLKIT_HOME}
export ASCEND_OPP_PATH=${ASCEND_TOOLKIT_HOME}/opp
export TOOLCHAIN_HOME=${ASCEND_TOOLKIT_HOME}/toolkit
export LD_LIBRARY_PATH=${ASCEND_TOOLKIT_HOME}/lib64:$LD_LIBRARY_PATH
export PYTHONPATH=$PYTHONPATH:${ASCEND_TOOLKIT_HOME}/python/site-packages
export PATH=${ASCEND_TOOLKIT_HOME}/bin:$PATH
"""
SCRIPT = "/usr/local/Ascend/ascend-toolkit/set_env.sh"
BARE = dict.fromkeys(("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "TOOLCHAIN_HOME", "PYTHONPATH"), "")
BEFORE = {
    "nothing set": {**BARE, "LD_LIBRARY_PATH": ""},
    "an empty entry": {**BARE, "LD_LIBRARY_PATH": "/usr/lib:", "PYTHONPATH": ":"},
}


def cann_scene(before: Mapping[str, str], **files: Any) -> Context:
    folders = {path: {"dir": None} for path in ("/usr/bin", "/bin", "/usr/lib", "/usr/include")}
    environ = {"PATH": "/usr/bin:/bin", "ASCEND_AICPU_PATH": "", **before}
    return example_context({"like": "cann-mid", "environ": environ, "files": {**folders, SCRIPT: SET_ENV, **files}})


def gaps(variables: Mapping[str, str]) -> list[str]:
    return [name for name, value in variables.items() if name.endswith("PATH") and value and "" in value.split(":")]


@pytest.mark.parametrize("shell", ["bash", "sh", "fish"])
@pytest.mark.parametrize("before", BEFORE)
def test_a_shell_that_reads_it_twice_has_what_one_has_that_read_it_once(
    shell: str, before: str, tmp_path: Path
) -> None:
    context = cann_scene(BEFORE[before])
    form = "fish" if shell == "fish" else "bash"
    text = render(advise(context, "train", form), form, "en")
    (tmp_path / "set_env.sh").write_text(SET_ENV)
    text = text.replace(SCRIPT, str(tmp_path / "set_env.sh"))
    environ = dict(context.target.environment.variables or {})
    once = passed_on(shell, text, environ, tmp_path)
    assert once["LD_LIBRARY_PATH"].startswith("/usr/local/Ascend/ascend-toolkit/latest/lib64")
    assert gaps(once) == []
    assert passed_on(shell, text + text, environ, tmp_path) == once
    assert passed_on(shell, "set -eu\n" * (shell != "fish") + text, environ, tmp_path) == once


def by_systemd(text: str) -> tuple[dict[str, str], set[str]]:
    """What systemd sets and what it unsets: the last assignment counts, and UnsetEnvironment= over all of them."""
    rows = [line.partition("=") for line in text.splitlines() if line and line[0] not in "#["]
    said = (value.strip('"').partition("=") for name, _, value in rows if name == "Environment")
    return {name: value for name, _, value in said}, {value for name, _, value in rows if name == "UnsetEnvironment"}


@pytest.mark.parametrize("before", BEFORE)
def test_systemd_and_docker_get_each_variable_once(before: str) -> None:
    context = cann_scene(BEFORE[before])
    given_, unset = by_systemd(render(advise(context, "train", "systemd"), "systemd", "en"))
    assert given_["ASCEND_HOME_PATH"] == "/usr/local/Ascend/ascend-toolkit/latest"
    assert not set(given_) & unset and gaps(given_) == []
    text = render(advise(context, "train", "docker"), "docker", "en")
    rows = parse_env_file(text, "job.env")[0]
    assert rows["ASCEND_AICPU_PATH"] == "/usr/local/Ascend/ascend-toolkit/latest"
    assert not {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH"} & set(rows), "the image's would be lost"
    assert 'ENV PATH="/usr/local/Ascend/ascend-toolkit/latest/bin${PATH:+:$PATH}"' in text
    assert "/usr/bin" not in text, "nothing of this host's own path"


@pytest.mark.parametrize("form", ["bash", "fish", "systemd", "json"])
def test_a_search_path_that_gets_an_entry_loses_its_empty_ones(form: str, tmp_path: Path) -> None:
    hdf5 = {f"/usr/local/hdf5/{name}": {"dir": None} for name in ("bin", "lib", "include")}
    environ = {"PATH": "/usr/bin:/bin", "CPATH": "/usr/include::/usr/local/include:", "LIBRARY_PATH": ":"}
    context = example_context({"like": "cann-mid", "environ": environ, "files": hdf5})
    advice = advise(context, "train", form)
    found = {setting.name: setting.value or "" for setting in advice.settings}
    assert found["CPATH"] == "/usr/local/hdf5/include:/usr/include:/usr/local/include"
    assert found["LIBRARY_PATH"] == "/usr/local/hdf5/lib"
    if form in ("bash", "fish"):
        after = passed_on(form, render(advice, form, "en"), environ, tmp_path)
        assert (after["CPATH"], after["LIBRARY_PATH"]) == (found["CPATH"], found["LIBRARY_PATH"])
        assert gaps(after) == []


def test_what_is_unset_before_a_script_sets_it_is_set() -> None:
    """A path into another install goes before the script of the right one, which sets it: one line, not two."""
    context = cann_scene({"ASCEND_AICPU_PATH": "/opt/other", "TOOLCHAIN_HOME": "/opt/other"})
    why = Bilingual("because", "原因")
    rows = (Setting("ASCEND_AICPU_PATH", None, why), Setting("", None, why, script=SCRIPT), Setting("GONE", None, why))
    single = values(rows, context.target.environment, environment_after(context, rows))
    given_, unset = by_systemd(render(Advice(single, ()), "systemd", "en"))
    assert given_["ASCEND_AICPU_PATH"] == "/usr/local/Ascend/ascend-toolkit/latest" and unset == {"GONE"}
    assert len(single) == len({setting.name for setting in single})


def test_systemd_takes_the_drop_in(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    text = render(advise(cann_scene(BEFORE["nothing set"]), "train", "systemd"), "systemd", "en")
    assert "Environment=" in text
    unit = tmp_path / "job.service"
    unit.write_text(text + "ExecStart=/bin/true\n")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "Environment" not in done.stderr, done.stderr


# ---------------------------------------------------------------------- forms that are no shell's


def advice_of(**variables: Optional[str]) -> Advice:
    return Advice(tuple(Setting(n, v, Bilingual("because", "原因")) for n, v in variables.items()), ())


@given(st.dictionaries(st.sampled_from(["A", "B", "C"]), VALUES.filter(lambda v: v == v.strip()), min_size=1))
def test_docker_reads_the_rest_of_the_line(variables: dict[str, str]) -> None:
    text = render(advice_of(**variables), "docker", "en")
    rows = [line.partition("=") for line in text.split("\n") if line and not line.startswith("#")]
    assert {name: value for name, _, value in rows} == {
        n: v for n, v in variables.items() if is_visible(v.replace("\t", ""))
    }


def test_docker_says_what_it_cannot() -> None:
    text = render(advice_of(DUMP_GE_GRAPH=None, A="x\ny", B="1 2"), "docker", "en")
    assert "# DUMP_GE_GRAPH: an env file cannot unset" in text and "# A: the value has several lines" in text
    assert parse_env_file(text, "f")[0] == {"B": "1 2"}


def test_systemd_quotes_and_unsets() -> None:
    text = render(advice_of(A='50% "x" \\ y', DUMP_GE_GRAPH=None, B="1\n2"), "systemd", "en")
    assert text.splitlines() == [
        "[Service]",
        "# because",
        'Environment="A=50%% \\"x\\" \\\\ y"',
        "# because",
        "UnsetEnvironment=DUMP_GE_GRAPH",
        "# because",
        'Environment="B=1\\x0a2"',
    ]


@given(VALUES)
@example("\U000e0000\u202e")
def test_any_value_for_systemd(value: str) -> None:
    text = render(advice_of(A=value), "systemd", "en").rstrip("\n")
    line = text.split("\n", 2)[2]
    assert "\n" not in line and line.startswith('Environment="A=') and line.endswith('"')
    inside = line[len('Environment="') : -1]
    escape = r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)"  # as in systemd.syntax(7)
    plain = re.sub(escape, lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else m[1], inside)
    assert plain.replace("%%", "%") == f"A={value}"


def test_json() -> None:
    data = json.loads(render(advise(scene_with(NEW, DUMP_GE_GRAPH="1"), "train", "json"), "json", "zh"))
    assert data["schema"] == "envtune.env/1" and data["environment_unknown"] is None
    rows = {row["name"]: row for row in data["variables"]}
    assert rows["DUMP_GE_GRAPH"]["value"] is None and rows["DUMP_GE_GRAPH"]["checks"] == ["ENV004", "ENV015"]
    assert "用于调试" in rows["DUMP_GE_GRAPH"]["reason"]


@pytest.mark.parametrize("format_", list(FORMATS))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_line_has_its_reason(format_: str, lang: str) -> None:
    text = render(advise(scene_with(OLD), "train", format_), format_, lang)
    for name in ("TASK_QUEUE_ENABLE", "PTCOPY_ENABLE", "COMBINED_ENABLE"):
        assert name in text
    assert ("training needs it" if lang == "en" else "训练需要") in text


# ---------------------------------------------------------------------- the verb


def run_verb(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    return completed("env", "--lang", "en", *words, env=env, cwd=cwd)


def test_the_verb_prints_lines_and_nothing_else(tmp_path: Path) -> None:
    wanted = "export TASK_QUEUE_ENABLE=1\nexport COMBINED_ENABLE=1\nexport PATH=/usr/bin\n"
    (tmp_path / "train.sh").write_text(f"#!/bin/bash\n{wanted}export DUMP_GE_GRAPH=2\npython3 train.py\n")
    done = run_verb("--script", "train.sh", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["# 2 is for debugging and slows every step", "unset DUMP_GE_GRAPH"]
    docker = run_verb("--script", "train.sh", "--format", "docker", cwd=tmp_path)
    assert docker.stdout.count("\n") == 2 and "cannot unset" in docker.stdout


@pytest.mark.slow
def test_the_verb_when_nothing_differs(tmp_path: Path) -> None:
    done = run_verb(cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "") and "nothing differs" in done.stderr


@pytest.mark.parametrize("words", [("--format", "zsh"), ("--profile", "test")])
def test_the_verb_names_what_there_is(words: tuple[str, str], tmp_path: Path) -> None:
    done = run_verb(*words, cwd=tmp_path)
    assert done.returncode == 2 and words[1] in done.stderr and " or " in done.stderr


@pytest.mark.parametrize("name", ["train", "training"])
def test_a_profile_has_one_name_and_its_former_one_is_taken_with_a_hint(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert env_verb.profile_named(name, "en") == "train"
    assert ("renamed to train" in capsys.readouterr().err) == (name == "training")


# ---------------------------------------------------------------------- what a snapshot does not hold

UNREAD = {"not recorded": {"size": 900}, "read error": {"size": 900, "error": "EIO"}}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("unread", UNREAD)
def test_what_an_unread_script_sets_stays_and_is_named(unread: str, form: str) -> None:
    kept = "/usr/local/Ascend/driver/lib64:/usr/lib"
    before = {"LD_LIBRARY_PATH": f"{kept}:", "ASCEND_OPP_PATH": "/usr/local/Ascend/old/opp"}
    context = cann_scene(before, **{SCRIPT: UNREAD[unread]})
    advice = advise(context, "train", form)
    found = {setting.name: setting.value for setting in advice.settings}
    assert None not in [value for name, value in found.items() if name == "LD_LIBRARY_PATH"], "never unset"
    if form != "bash":  # which has no line for the script: what it would set again stays as it is
        assert "ASCEND_OPP_PATH" not in found and not any(setting.script for setting in advice.settings)
    text = render(advice, form, "en")
    assert SCRIPT in text and "what it sets is unknown" in text
    assert unread != "read error" or f"{SCRIPT} could not be read when recorded (EIO)" in text


@pytest.mark.parametrize("host", ["910b-ubuntu2004-residual", "910a-ubuntu1804-mixed"])
def test_a_recording_without_the_script_loses_no_search_path(host: str) -> None:
    text = completed("env", "--snapshot", str(ROOT / "tests" / "contracts" / f"{host}.tar.gz")).stdout
    assert "unset LD_LIBRARY_PATH" not in text
    assert text.index("export LD_LIBRARY_PATH=") < text.index(". " + SCRIPT)
