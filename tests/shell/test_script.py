"""Launch scripts as they are written for training: what the job gets, told without running them.

Where bash can be asked it is: the same script is sourced by a real bash, and every variable that we say we know must
hold what bash exports. What we do not know must have a reason with the script's line.
"""

from __future__ import annotations

import base64
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.rows import sampled
from helpers.search import examples as search
from hypothesis import example, given
from hypothesis import strategies as st

from envtune.host import LocalHost
from envtune.job.environment import read_environment
from envtune.job.script import read_script, script_environment
from envtune.job.target import THIS_SHELL, JobEnvironment, TargetOptions
from envtune.snapshot.host import SnapshotHost

BASE = {"PATH": "/usr/bin:/bin", "HOME": "/root", "OLD": "keep"}
OF_BASH = {"_", "SHLVL", "PWD", "OLDPWD"}  # bash sets these for itself


def told(text: str, files: Optional[Mapping[str, str]] = None, base: Mapping[str, str] = BASE) -> JobEnvironment:
    """What /job/train.sh of that text gives the job."""
    host = SnapshotHost({"files": {"/job/train.sh": text, **(files or {})}, "uname": {"machine": "aarch64"}})
    return script_environment(host, "/job/train.sh", JobEnvironment(dict(base), THIS_SHELL))


GBK = "数据集路径 \\".encode("gbk")


@pytest.mark.parametrize("read", ["script", "env file", "sourced"])
def test_what_is_no_utf8_in_a_script_changes_nothing_else(read: str) -> None:
    """A comment or value in GBK: a shell does not ask for an encoding."""
    content = b"# " + GBK + b"\nexport TASK_QUEUE_ENABLE=0\nexport DATA=/data/" + GBK[:4] + b"\n"
    files: dict[str, Any] = {"/job/a": {"base64": base64.b64encode(content).decode()}}
    if read == "sourced":
        files["/job/b"] = ". /job/a\npython3 train.py\n"
    host = SnapshotHost({"files": files, "uname": {"machine": "aarch64"}, "environ": dict(BASE)})
    options = {"env_file": "/job/a"} if read == "env file" else {"script": "/job/b" if read == "sourced" else "/job/a"}
    job = read_environment(host, TargetOptions(**options))
    assert job.variables is not None
    assert job.variables["TASK_QUEUE_ENABLE"] == "0"
    assert os.fsencode(job.variables["DATA"]) == b"/data/" + GBK[:4]


@pytest.mark.parametrize("option", ["script", "env_file"])
def test_utf16_is_no_script(option: str) -> None:
    content = base64.b64encode("export A=1\n".encode("utf-16")).decode()
    host = SnapshotHost({"files": {"/job/a": {"base64": content}}, "uname": {}, "environ": dict(BASE)})
    job = read_environment(host, TargetOptions(**{option: "/job/a"}))
    assert job.variables is None and "not text" in str(job.reason)


def value(text: str, name: str = "A", files: Optional[Mapping[str, str]] = None) -> Optional[str]:
    """One variable: its value, None when it is not set, and `?` when it cannot be told."""
    environment = told(text, files)
    if environment.why_unknown(name) is not None:
        return "?"
    assert environment.variables is not None
    return environment.variables.get(name)


# ------------------------------------------------------------------ what is set, and where


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("export A=1\npython3 train.py", "1"),
        ("A=1\nexport A\npython3 train.py", "1"),
        ("A=1\npython3 train.py", None),
        ("export A=1 B=2\ntorchrun --nproc_per_node=8 train.py", "1"),
        ("A=1 python3 train.py", "1"),
        ("env A=1 B=2 python -u train.py", "1"),
        ("export A=0\nA=1 torchrun train.py", "1"),
        ("export A=0\nnohup env A=1 python3 train.py > log 2>&1 &", "1"),
        ("export A=1\nunset A\npython3 train.py", None),
        ("export A=1\nenv -u A python3 train.py", None),
        ("export A=1\nenv -i B=2 python3 train.py", None),
        ("export A=1\npython3 train.py\nexport A=2", "1"),
        ("export A=1\npip install -r requirements.txt\npython3 -c 'import torch'\nexport A=2\npython3 train.py", "2"),
        ("export A=1\nnumactl --cpunodebind=0 python3 train.py", "1"),
        ("export A=1\ntaskset -c 0-23 python3.7 ./train.py --npu 0 &\nwait", "1"),
        ("export A=1\npython3 -m torch.distributed.launch --nproc_per_node=8 train.py | tee log", "1"),
        ('export A="ADD#MUL" # no comment in there\npython3 train.py', "ADD#MUL"),
        ("export A=ADD #MUL\npython3 train.py", "ADD"),
        ("export A=1 \\\n  B=2\npython3 train.py", "1"),
        ("export A='a b'\"c\"\npython3 train.py", "a bc"),
        ("X=/opt\nexport A=$X/lib:${UNSET}\npython3 train.py", "/opt/lib:"),
        ("export A=${UNSET:-x}\npython3 train.py", "x"),
        ("export A=${OLD:-x}\npython3 train.py", "keep"),
        ("export A=${UNSET:+x}y\npython3 train.py", "y"),
        ("export A=/new${OLD:+:$OLD}\npython3 train.py", "/new:keep"),
        ("set -a\nA=1\nset +a\npython3 train.py", "1"),
        ("if [ -f /nowhere ]; then export A=1; else export A=2; fi\npython3 train.py", "2"),
        ("[ -d /job ] && export A=1\npython3 train.py", "1"),
        ("setup() { export A=$1; }\nsetup 5\npython3 train.py", "5"),
        ("never() { export A=1; }\npython3 train.py", None),
        ("(export A=1)\npython3 train.py", None),
        ("export A=1 | cat\npython3 train.py", None),
        ("for i in 1 2; do export A=$i; done\npython3 train.py", "2"),
        ("cat > run.cfg <<EOF\nexport A=1\nEOF\npython3 train.py", None),
        ("eval 'export A=1'\npython3 train.py", "1"),
        ("export A=$(cd $(dirname $0) && pwd)\npython3 train.py", "/job"),
        ('export A=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")\npython3 train.py', "/job"),
        ("export A=`uname -m`\npython3 train.py", "aarch64"),
        ("export A=1\nexec python3 train.py\nexport A=2", "1"),
        ("export A=1\ncommand env A=2 python3 train.py\nexport A=3", "2"),
        ("export A=1\nbash -c 'export A=2; python3 train.py'", "2"),
        ("export A=1", "1"),
    ],
)
def test_what_the_job_gets(text: str, wanted: Optional[str]) -> None:
    assert value(text) == wanted


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('if [ "$1" = debug ]; then\n  export A=1\nfi\npython3 train.py', 2),
        ("while read A; do\n  export A\ndone < conf\npython3 train.py", 1),
        ("export A=$(hostname -i)\npython3 train.py", 1),
        ("export A=`nproc`\npython3 train.py", 1),
        ("export A=$1\npython3 train.py", 1),
        ('case "$1" in\n  big) export A=1;;\n  *) export A=2;;\nesac\npython3 train.py', 2),
        ("ping -c1 peer && export A=1\npython3 train.py", 1),
        ("for f in $*; do\n  export A=$f\ndone\npython3 train.py", 2),
        ("for ((i=0; i<8; i++)); do\n  export A=$i\n  python3 train.py &\ndone", 1),
        ("read -p 'level: ' A\nexport A\npython3 train.py", 1),
        ("export A=$((RANDOM % 100))\npython3 train.py", 1),
        ("source env_of_$(hostname).sh\npython3 train.py", 1),
        ("export $(cat .env | xargs)\npython3 train.py", 1),
        ("module load cann\npython3 train.py", 1),
        ("export A=1\ndocker run --rm image python3 train.py", 2),
        ("export A=1\nssh node2 'cd /job && python3 train.py'", 2),
        ("export A=1\nsudo python3 train.py", 2),
        ('f() { [ -n "$1" ] && export A=1; }\nf $1\npython3 train.py', 1),
        ("A=(1 2 3)\nexport A\npython3 train.py", 1),
    ],
)
def test_what_cannot_be_told_has_a_reason_with_its_line(text: str, line: int) -> None:
    reason = told(text).why_unknown("A")
    assert reason is not None
    assert f"/job/train.sh:{line}" in reason.en
    assert f"/job/train.sh:{line}" in reason.zh


def test_only_the_variable_in_doubt_is_untold() -> None:
    environment = told('[ "$1" = x ] && export A=1\nexport B=2 C=$(date)\npython3 train.py')
    assert environment.variables is not None
    assert environment.variables["B"] == "2"
    assert set(environment.unknown) == {"A", "C"}
    assert environment.unknown_by_default is None


def test_two_launch_lines_that_differ() -> None:
    text = "export B=1\nif [ $# -gt 0 ]; then\n  A=0 python3 train.py\nelse\n  A=1 python3 train.py\nfi"
    environment = told(text)
    assert environment.variables is not None
    assert environment.variables["B"] == "1"
    reason = environment.why_unknown("A")
    assert reason is not None
    assert "/job/train.sh:3" in reason.en
    assert "/job/train.sh:5" in reason.en


def test_place_of_a_value() -> None:
    environment = told("#!/bin/bash\n\nexport A=1\nsource ./env.sh\npython3 train.py", {"/job/env.sh": "export B=2\n"})
    assert environment.place("A") == "/job/train.sh:3"
    assert environment.place("B") == "/job/env.sh:1"
    assert str(environment.place("OLD")) == "environment of /job/train.sh over this shell"


# ------------------------------------------------------------------ sourced files and other scripts

SET_ENV = """export LD_LIBRARY_PATH=/opt/driver/lib64:/usr/local/Ascend/driver/lib64/common:$LD_LIBRARY_PATH
export ASCEND_TOOLKIT_HOME=/usr/local/Ascend/ascend-toolkit/latest
export LD_LIBRARY_PATH=${ASCEND_TOOLKIT_HOME}/lib64:${ASCEND_TOOLKIT_HOME}/tools/aml/lib64:$LD_LIBRARY_PATH
export PYTHONPATH=${ASCEND_TOOLKIT_HOME}/python/site-packages:$PYTHONPATH
export PATH=${ASCEND_TOOLKIT_HOME}/bin:${ASCEND_TOOLKIT_HOME}/compiler/ccec_compiler/bin:$PATH
export ASCEND_AICPU_PATH=${ASCEND_TOOLKIT_HOME}
"""
TOOLKIT = "/usr/local/Ascend/ascend-toolkit/set_env.sh"


def test_set_env_of_cann() -> None:
    text = f"if [ -f {TOOLKIT} ]; then\n  source {TOOLKIT}\nfi\ntorchrun train.py"
    environment = told(text, {TOOLKIT: SET_ENV})
    assert environment.variables is not None
    home = "/usr/local/Ascend/ascend-toolkit/latest"
    assert environment.variables["ASCEND_AICPU_PATH"] == home
    assert environment.variables["PATH"] == f"{home}/bin:{home}/compiler/ccec_compiler/bin:/usr/bin:/bin"
    assert environment.variables["LD_LIBRARY_PATH"].endswith("driver/lib64/common:")  # the empty entry is real
    assert environment.unknown == {}


def test_model_zoo_layout() -> None:
    """test/train_full_1p.sh finds env_npu.sh from wherever it is started."""
    script = """#!/bin/bash
cur_path=`pwd`
cur_path_last_dirname=${cur_path##*/}
if [ x"${cur_path_last_dirname}" == x"test" ];then
    test_path_dir=${cur_path}
    cd ..
    cur_path=`pwd`
else
    test_path_dir=${cur_path}/test
fi
for para in $*
do
    if [[ $para == --data_path* ]];then
        data_path=`echo ${para#*=}`
    fi
done
if [[ $data_path == "" ]];then
    echo "[Error] para \\"data_path\\" must be confing"
    exit 1
fi
source ${test_path_dir}/env_npu.sh
export A=1
nohup python3.7 -u main.py --data=${data_path} > ${cur_path}/log.txt 2>&1 &
wait
FPS=`grep FPS log.txt | awk '{print $2}'`
"""
    files = {"/zoo/test/train.sh": script, "/zoo/test/env_npu.sh": "export TASK_QUEUE_ENABLE=0\n"}
    environment = script_environment(SnapshotHost({"files": files}), "/zoo/test/train.sh", JobEnvironment({}, "x"))
    assert environment.variables is not None
    assert environment.variables["TASK_QUEUE_ENABLE"] == "0"
    assert environment.variables["A"] == "1"
    assert environment.place("TASK_QUEUE_ENABLE") == "/zoo/test/env_npu.sh:1"


def test_loop_over_set_env_files() -> None:
    nnal = "/usr/local/Ascend/nnal/atb/set_env.sh"
    text = (
        f'for f in {TOOLKIT} {nnal}; do\n  if [[ -f "$f" ]]; then set +u; source "$f"; set -u; fi\ndone\npython3 t.py'
    )
    environment = told(text, {TOOLKIT: SET_ENV, nnal: "export ATB_HOME_PATH=/usr/local/Ascend/nnal/atb/latest/atb\n"})
    assert environment.variables is not None
    assert environment.variables["ATB_HOME_PATH"] == "/usr/local/Ascend/nnal/atb/latest/atb"
    assert environment.unknown == {}


def test_script_that_starts_a_script() -> None:
    files = {"/job/run_8p.sh": "export A=2\nB=3\npython3 train.py\n"}
    environment = told("export A=1 C=4\nbash ./run_8p.sh", files)
    assert environment.variables is not None
    assert environment.variables["A"] == "2"
    assert environment.variables["C"] == "4"
    assert "B" not in environment.variables
    assert environment.place("A") == "/job/run_8p.sh:1"


def test_what_a_started_script_exports_does_not_come_back() -> None:
    assert value("bash prepare.sh\npython3 train.py", files={"/job/prepare.sh": "export A=1\n"}) is None


def test_sourced_file_that_is_not_there_sets_nothing() -> None:
    assert value("source ./gone.sh\nexport A=1\npython3 train.py") == "1"
    assert value("source ./gone.sh\npython3 train.py", "B") is None


def test_sourced_file_that_may_not_be_read_makes_the_rest_unknown() -> None:
    host = SnapshotHost(
        {"files": {"/job/train.sh": "export A=1\n. ./s.sh\nexport B=1\npython3 t.py", "/job/s.sh": {"error": "EACCES"}}}
    )
    environment = script_environment(host, "/job/train.sh", JobEnvironment({}, THIS_SHELL))
    assert environment.variables == {"B": "1"}
    for name in ("A", "ANYTHING"):
        reason = environment.why_unknown(name)
        assert reason is not None
        assert "/job/s.sh" in reason.en


def test_conda_activate_leaves_the_search_paths_untold() -> None:
    environment = told('eval "$(conda shell.bash hook)"\nconda activate npu\nexport A=1\npython3 train.py')
    assert environment.variables is not None
    assert environment.variables["A"] == "1"
    assert environment.why_unknown("PATH") is not None
    assert environment.why_unknown("OLD") is None


def test_virtual_environment() -> None:
    activate = """deactivate () {
    if [ -n "${_OLD_VIRTUAL_PATH:-}" ] ; then
        PATH="${_OLD_VIRTUAL_PATH:-}"
        export PATH
    fi
    unset VIRTUAL_ENV
}
deactivate nondestructive
VIRTUAL_ENV="/opt/venv"
export VIRTUAL_ENV
_OLD_VIRTUAL_PATH="$PATH"
PATH="$VIRTUAL_ENV/bin:$PATH"
export PATH
"""
    environment = told("source /opt/venv/bin/activate\npython train.py", {"/opt/venv/bin/activate": activate})
    assert environment.variables is not None
    assert environment.variables["PATH"] == "/opt/venv/bin:/usr/bin:/bin"
    assert environment.variables["VIRTUAL_ENV"] == "/opt/venv"


# ------------------------------------------------------------------ hostile scripts


@pytest.mark.parametrize(
    "text",
    [
        'export A="1\npython3 train.py',
        "export A='1\n",
        "if true; then\nexport A=1\n",
        "export A=1\nfi\npython3 train.py",
        "export A=${A\n",
        "export A=$(date\n",
        "((((((((((((",
        "export A=1\n" + "(" * 5000,
        "$(" * 5000,
        '"$(' * 5000,
        "${a:-" * 5000,
        "if " * 5000,
        "f() " * 5000 + "{ :; }",
        "case x in",
        "{ export A=1\n",
        "`",
        "export A=1 &&\n",
    ],
)
def test_a_script_that_cannot_be_followed_is_unknown_from_there(text: str) -> None:
    began = time.process_time()
    environment = told(text)
    assert time.process_time() - began < 60
    assert environment.why_unknown("A") is not None
    assert environment.why_unknown("ANYTHING") is not None


def test_what_ran_before_the_error_counts() -> None:
    assert value("A=1 python3 train.py\nif true; then\n") == "1"


def test_windows_line_ends_are_part_of_the_value() -> None:
    """bash hands `1\\r` to the job: torch_npu refuses it, and nobody sees why."""
    assert value("export A=1\r\npython3 train.py\r\n") == "1\r"
    reason = told("if true; then\r\n  export A=1\r\nfi\r\npython3 train.py\r\n").why_unknown("A")
    assert reason is not None
    assert "Windows line endings" in reason.en


def test_script_that_sources_itself() -> None:
    began = time.process_time()
    assert value("source ./train.sh\nexport A=1\npython3 train.py") == "1"
    assert told("source ./train.sh\npython3 train.py").why_unknown("A") is not None
    assert time.process_time() - began < 60


def test_scripts_that_source_each_other() -> None:
    files = {"/job/a.sh": ". ./b.sh\n. ./b.sh\n", "/job/b.sh": ". ./a.sh\n. ./a.sh\n"}
    began = time.process_time()
    assert told(". ./a.sh\npython3 train.py", files).why_unknown("A") is not None
    assert time.process_time() - began < 60


def test_function_that_calls_itself() -> None:
    began = time.process_time()
    assert told("f() { f; f; }\nf\npython3 train.py").why_unknown("A") is not None
    assert time.process_time() - began < 60


def test_a_value_that_doubles_in_every_line() -> None:
    began = time.process_time()
    assert value("A=x\n" + "A=$A$A\n" * 60 + "export A\npython3 train.py") == "?"
    assert time.process_time() - began < 60


@pytest.mark.parametrize("size", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_line_of_a_megabyte(size: int) -> None:
    began = time.process_time()
    assert value("export A=" + "x" * (size // 10) + "\npython3 t.py") == "x" * (size // 10)
    assert value("export A=1 # " + "y" * size + "\npython3 t.py") == "1"
    assert value("export A=1; echo " + '"b"' * (size // 3) + "\npython3 t.py") == "1"
    assert time.process_time() - began < 60


def test_value_that_no_program_can_be_given() -> None:
    assert value("export A=" + "x" * 1_000_000 + "\npython3 t.py") == "?"


def test_loop_without_end() -> None:
    began = time.process_time()
    assert value(
        "while true; do\n  for i in 1 2 3 4; do for j in 1 2 3 4; do A=$A$i; done; done\ndone\nexport A", "B"
    ) in (None, "?")
    assert time.process_time() - began < 60


def test_binary_and_absent_scripts() -> None:
    host = SnapshotHost({"files": {"/job/a": b"\x7fELF\0\0\x01", "/job/b": {"error": "EACCES"}}})
    under = JobEnvironment({}, THIS_SHELL)
    for path, word in (("/job/a", "cannot be parsed"), ("/job/b", "cannot be read"), ("/job/c", "does not exist")):
        environment = script_environment(host, path, under)
        assert environment.variables is None
        assert environment.reason is not None
        assert word in environment.reason.en
        assert environment.needs_privilege is (path == "/job/b")


@search(300)
@given(st.text(alphabet="AB=1$(){}[]|&;<>'\"`\\ \n\t\r#~!*?if then fi do done export", max_size=200))
@example("$(")
@example("A=~\nexport A=${A#*")
def test_any_text_ends_in_an_answer(text: str) -> None:
    environment = told(text)
    assert environment.variables is not None
    assert all(isinstance(v, str) for v in environment.variables.values())


# ------------------------------------------------------------------ against bash


def exported_by_bash(path: Path) -> dict[str, str]:
    """What a real bash exports after sourcing the script."""
    line = ["bash", "-c", '. "$0"; env -0', str(path)]
    done = subprocess.run(line, env=BASE, cwd=path.parent, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    rows = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return dict(row.split("=", 1) for row in rows if "=" in row)


def differs_from_bash(text: str, folder: Path) -> dict[str, tuple[Optional[str], Optional[str]]]:
    """Variables of which we say something else than bash does."""
    path = folder / "train.sh"
    path.write_bytes(text.encode("utf-8"))
    launch = read_script(LocalHost(), str(path), text, JobEnvironment(dict(BASE), THIS_SHELL)).launch
    real = exported_by_bash(path)
    wrong: dict[str, tuple[Optional[str], Optional[str]]] = {}
    for name in {*real, *launch.values} - OF_BASH:
        ours = launch.values.get(name, launch.unknown_by_default)
        if (ours is None or isinstance(ours, str)) and ours != real.get(name):
            wrong[name] = (ours, real.get(name))
    return wrong


AS_BASH = r"""
export A="b c" D='e f'"g"h
---
A=1
export B=$A C=${A} D=${X:-x} E=${A:+y} F=${X:+y} G=${X-z} H=${#A}
---
export A=~/x B=/a:~/b C="~/x"
---
export A=1;export B=2&&export C=3||export D=4
---
if [ -d /tmp ]; then export B=1; elif [ -f /x ]; then export B=2; else export B=3; fi
if [[ -n "$HOME" && "$OLD" == k* ]]; then export D=1; fi
if [ -z "$HOME" -o "$OLD" = keep ]; then export E=1; fi
---
f() { local q=5; export A=$1 B=$q; return; export C=1; }
f x
export Q=$q
---
function g { export A=$# B="$@" C=$2; }
g a b
g x y z
---
case "$OLD" in a) export A=1;; k*|z) export A=2;; *) export A=3;; esac
case x in y) export B=1;; esac
---
for i in 1 2 3; do export A$i=1; export L="$L$i"; done
---
(export A=1)
export B=1 | cat
{ export C=2; }
---
cat <<EOF >/dev/null
export A=1
EOF
cat <<-'EOF' >/dev/null
	export B=1
	EOF
export C=1
---
export A=$(dirname /a/b/c) B=$(basename /a/b.sh) C=`pwd` D="$(cd /tmp && pwd)" E=$(echo hi)
---
export A="a\"b\$c\\d" B=a\ b C='a\b'
---
export A=$'a\tb'
---
A=x
A+=y
export A B=1
export B+=2
---
export A=/a/b/c.tar.gz
export B=${A%.*} C=${A%%.*} D=${A#*/} E=${A##*/} F=${A/b/z} G=${A:1} H=${A:1:3} I=${A//a/q}
---
A=${B:=5}
export A B
---
declare -x A=1
typeset -x B=2
declare C=3
export -n A
---
export P=/x:$P Q=${Q}:/y R=$R:
---
export A="multi
line"
export B=2
---
eval "export A=1; export B=\$OLD"
---
export A=$((1+2)) B=$((3))
---
unset OLD
---
x="a b"
set -- $x
export N=$# ONE=$1
---
while false; do export A=1; done
until true; do export B=1; done
export C=1
---
! true && export B=1
if ! false; then export A=1; fi
---
[ "$OLD" = no ] && export B=1 || export B=2
---
v="A=1"
export $v
---
cd /tmp
export A=$(pwd)
cd ..
export B=`pwd`
---
f() { export A=1; }
unset -f f
f 2>/dev/null
export B=1
---
export A=1 2>/dev/null >/dev/null
B=2 >/dev/null
export B
---
arr=(1 2 3)
export A=1
---
[ -n "$OLD" ] || return 1
export A=1
return 0
export B=2
---
if [ "$OLD" = keep ]; then return 0; fi
export A=1
---
export A="${OLD}" B="${UNSET:-"d e"}" C=${UNSET:-'d e'} D=${UNSET:-${OLD:-q}}
---
f() { local A=2; export A; g; }
g() { export B=$A; }
f
---
f() { A=1; local A=2; export A; }
f
---
IFS=:
x=a:b
export A=$x
---
x=a:b
IFS=:
set -- $x
export A=$1 B=2
---
export A=* B=/tm? C={a,b}
---
command export A=1
builtin export B=2
---
if [ "${DEBUG:-0}" -eq 1 ]; then export A=1; else export A=0; fi
if [ $OLD ]; then export B=1; fi
---
export LD_LIBRARY_PATH=/usr/local/lib:${LD_LIBRARY_PATH}
export LD_LIBRARY_PATH=/opt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
---
export A=a#b B=c # d
#export C=1
---
A=aab12.tar.gz
export B=${A%%[0-9]*} C=${A##*[!a-z]} D=${A#?a} E=${A%.*z} F=${A#a*} G=${A##a*b} H=${A%"*"}
case $A in "a*") export I=1;; [!b]*z) export I=2;; esac
if [[ $A == *12?tar* && ! $A == *"?"* ]]; then export J=1; fi
---
x=4 y=-3 && :
export A=$((x + 1)) B=$((x*x)) C=$(( $x-7 )) D=$((y)) E=$((unset_name + 2)) F=$((y-x))
---
export A=$(echo ''#x) B=$(echo a; echo b) C="$(echo "(" )"
---
[ ! -d /tmp -o "$OLD" = keep -a ! -f /nowhere ] && export A=1
[ ! ! "$OLD" ] && export B=1
[[ ! ! -d /tmp && ! -f /tmp || $OLD == no ]] && export C=1
---
set -- a b
shift
export A="x $* y" B="$#"
shift
export C="[$*]"
""".strip("\n").split("\n---\n")


@pytest.mark.parametrize("text", AS_BASH)
def test_as_bash_does(text: str, tmp_path: Path) -> None:
    assert differs_from_bash(text + "\n", tmp_path) == {}


@pytest.mark.parametrize("text", sampled(AS_BASH, 5))
def test_as_bash_does_with_windows_line_ends(text: str, tmp_path: Path) -> None:
    assert differs_from_bash(text.replace("\n", "\r\n") + "\r\n", tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    [
        "i=1\nexport A=$((i++)) B=$((j=5)) C=$((010)) D=$((2+2+2)) E=$((9223372036854775807+1))\nexport i j",
        "x=a1\nexport A=${x#[[:alpha:]]} B=${x%[^a]} C=$(echo *) D=$(echo {a,b}) E=${x##+(a)}",
        "x='\\*'\ny='*a'\nexport A=${y#$x} B=${y#'\\*'}\n[[ $y == $x ]] && export C=1",
        "x=" + "a" * 5000 + ".b\nexport A=${x%.*} B=${#x}",
        "f() { for w in ${z:=1} ${v:=2}; do :; done; }\nf\nexport z v",
        "for w in " + "a " * 20 + "${z:=1}; do :; done\nexport z",
    ],
)
def test_what_is_not_told_is_not_told_wrong(text: str, tmp_path: Path) -> None:
    assert differs_from_bash(text + "\n", tmp_path) == {}


def test_most_of_it_is_told(tmp_path: Path) -> None:
    """The comparison with bash means nothing where everything is unknown."""
    unknown = []
    for text in AS_BASH:
        (tmp_path / "train.sh").write_text(text)
        launch = read_script(
            LocalHost(), str(tmp_path / "train.sh"), text, JobEnvironment(dict(BASE), THIS_SHELL)
        ).launch
        unknown += [name for name, found in launch.values.items() if not isinstance(found, str)]
    assert unknown == ["A", "C"]  # $1 under an IFS of its own, C={a,b}


NAMES = st.sampled_from(["A", "B", "TASK_QUEUE_ENABLE", "LD_LIBRARY_PATH", "OLD"])
WORDS = st.sampled_from(
    [
        "1",
        "",
        "$A",
        "${B}",
        "'a b'",
        '"x $A"',
        "${A:-d}",
        "${B:+e}",
        "/x:$OLD",
        "~/y",
        "a\\ b",
        "$(dirname /a/b)",
        "#no",
        "a#b",
    ]
)
ASSIGNMENTS = st.builds("{}={}".format, NAMES, WORDS)
CONDITIONS = st.sampled_from(
    ["true", "false", '[ "$A" = 1 ]', "[ -d /tmp ]", "[ -z $B ]", "[[ $OLD == k* ]]", "! true"]
)
COMMANDS = st.recursive(
    st.one_of(
        ASSIGNMENTS,
        st.builds("export {}".format, ASSIGNMENTS),
        st.builds("export {}".format, NAMES),
        st.builds("unset {}".format, NAMES),
        st.builds("export {} {}".format, ASSIGNMENTS, ASSIGNMENTS),
    ),
    lambda inner: st.one_of(
        st.builds("if {}; then {}; else {}; fi".format, CONDITIONS, inner, inner),
        st.builds("{} && {}".format, CONDITIONS, inner),
        st.builds("{} || {}".format, CONDITIONS, inner),
        st.builds("for i in 1 2; do {}; done".format, inner),
        st.builds("( {} )".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("f() {{ {}; }}\nf".format, inner),
        st.builds("{}\n{}".format, inner, inner),
    ),
    max_leaves=6,
)


@search(60)
@given(st.lists(COMMANDS, min_size=1, max_size=5).map("\n".join))
def test_generated_scripts_as_bash_does(tmp_path: Path, text: str) -> None:
    assert differs_from_bash(text + "\n", tmp_path) == {}
