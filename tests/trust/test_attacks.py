"""As root, no file of another user is executed or imported: attacks tried for real, watched by strace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from helpers.assembled import assembled, collector_file
from helpers.examples import ROOT

from envtune.trust.interpreters import interpreter_exposure
from envtune.trust.programs import UntrustedError, resolve_program

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("strace") is None, reason="needs root and strace"),
]
OTHER = 12345
MODULES = ("fnmatch", "json", "typing", "glob", "signal", "re", "sitecustomize", "usercustomize", "__future__", "errno")


def give_away(path: Path) -> None:
    """Make a tree another user's."""
    for place in (path, *path.rglob("*")):
        os.chown(place, OTHER, OTHER, follow_symlinks=False)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Another user's directory with modules, a package envtune, and programs; each would tell that it ran."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    ran = f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__)\n"
    for name in MODULES:
        (folder / f"{name}.py").write_text(ran)
    for package in ("envtune", "envtune/cli", "typer", "subprocess"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(ran)
    (folder / "envtune/__main__.py").write_text(ran)
    for program in ("systemctl", "nft", "iptables", "ufw", "sysctl", "stat", "uname", "getent", "npu-smi", "python3"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} >> {tmp_path}/ran\n")
        (folder / program).chmod(0o755)
    tmp_path.chmod(0o755)
    give_away(folder)
    return folder


def traced(argv: list[str], folder: Path, text: bytes = b"", **variables: str) -> tuple[int, list[str]]:
    """Run a command in that directory: (status, what it executed, or opened of code, below it).

    What PATH calls python3 is read as data, to know which interpreter a job would get.
    """
    log = folder.parent / "strace"
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    done = subprocess.run(
        ["strace", "-f", "-qq", "-e", "trace=execve,open,openat", "-e", "signal=none", "-o", str(log), *argv],
        cwd=folder, input=text, capture_output=True, env={**env, **variables}, timeout=300, check=False,
    )  # fmt: skip
    lines = log.read_text("utf-8", "replace").splitlines()
    names = {match[1] for line in lines if " = -1 " not in line for match in [re.search(r'"([^"]*)"', line)] if match}
    absolute = {os.path.normpath(folder / name) for name in names}
    code = re.compile(re.escape(f"{folder}/") + r".*\.(py|pyc|pth|so[.0-9]*|cfg|conf)")
    executed = {match[1] for line in lines for match in [re.search(r'execve\("([^"]*)"', line)] if match}
    touched = sorted(
        name for name in absolute if code.fullmatch(name) or (name.startswith(f"{folder}/") and name in executed)
    )
    assert not (folder.parent / "ran").exists(), (folder.parent / "ran").read_text()
    return done.returncode, touched


def test_the_trace_sees_what_is_imported(hostile: Path) -> None:
    """The instrument itself: the same without -I does import from there."""
    with pytest.raises(AssertionError, match=r"fnmatch\.py"):
        traced([sys.executable, "-c", "import fnmatch"], hostile, PYTHONPATH=f"{hostile}:")


@pytest.mark.parametrize("path", ["", "x:"])
def test_the_collector_as_documented(hostile: Path, tmp_path: Path, path: str) -> None:
    program = collector_file(tmp_path)
    for argv, text in (
        ([sys.executable, "-I", str(program)], b""),
        ([sys.executable, "-I", "-"], program.read_bytes()),
    ):
        assert traced(argv, hostile, text, PYTHONPATH=path, PATH=f"{hostile}:{os.environ['PATH']}") == (0, [])


def test_the_collector_without_isolation_takes_no_module_of_this_directory(hostile: Path, tmp_path: Path) -> None:
    """Python's own start imports sitecustomize before anything of ours runs, where PYTHONPATH leads it there."""
    shutil.copy(collector_file(tmp_path), hostile / "collector.py")
    source = (hostile / "collector.py").read_bytes()
    assert traced([sys.executable, str(hostile / "collector.py")], hostile) == (0, [f"{hostile}/collector.py"])
    assert traced([sys.executable, "-"], hostile, source) == (0, [])


@pytest.mark.parametrize("name", ["-m", "script"])
def test_envtune_as_documented(hostile: Path, name: str) -> None:
    """As `-m` of an installation, and as its script: reading this host with hostile variables and directories."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[0] = 'envtune'; "
    code = start + (
        "import runpy; runpy.run_module('envtune', run_name='__main__')"
        if name == "-m"
        else "from envtune.cli import main; main()"
    )
    argv = [sys.executable, "-I", "-c", code, "check", "--select", "NET,SYS,CPU"]
    hostile_variables = {
        "PATH": f"{hostile}:{os.environ['PATH']}",
        "PYTHONPATH": f"{hostile}:",
        "LD_LIBRARY_PATH": str(hostile),
        "HOME": str(hostile),
        "BASH_ENV": f"{hostile}/nft",
        "ENV": f"{hostile}/nft",
    }
    status, touched = traced(argv, hostile, **hostile_variables)
    assert status in (0, 1, 3) and touched == []


@pytest.mark.parametrize("path", [":", ".", "{hostile}", "{hostile}:", "/nowhere:"])
def test_the_installed_script_without_isolation(path: str, hostile: Path, tmp_path: Path) -> None:
    """PYTHONPATH ends in ":" in every shell that has sourced CANN's set_env.sh, also root's."""
    (hostile / "sitecustomize.py").unlink()  # imported by Python before it reads the script
    (hostile / "usercustomize.py").unlink()
    argv = [sys.executable, str(ROOT / "scripts/envtune"), "history"]
    state = {"ENVTUNE_STATE": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert traced(argv, hostile, PYTHONPATH=path.format(hostile=hostile), **state) == (0, [])


def test_reading_never_starts_the_job_s_python(hostile: Path, tmp_path: Path) -> None:
    """`--python` of another user's environment is judged by its files: opened perhaps, never executed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(hostile / "env")], check=True)
    (hostile / "env/bin/python").unlink()
    (hostile / "env/bin/python").write_text(f"#!/bin/sh\necho python >> {tmp_path}/ran\n")
    (hostile / "env/bin/python").chmod(0o755)
    give_away(hostile)
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from envtune.cli import main; main()"
    argv = [
        sys.executable,
        "-I",
        "-c",
        start,
        "check",
        "--python",
        str(hostile / "env/bin/python"),
        "--select",
        "PY,IMG",
    ]
    status, _ = traced(argv, hostile)
    assert status in (0, 1, 2, 3)


# what another user can change of an environment of root's
INTERPRETERS: dict[str, Callable[[Path, Path], object]] = {
    "the whole environment": lambda env, other: give_away(env),
    "pip": lambda env, other: give_away(next(env.glob("lib/python*/site-packages/pip"))),
    "one file of pip": lambda env, other: give_away(
        next(env.glob("lib/python*/site-packages/pip/_internal/cli/main.py"))
    ),
    "a group-writable bin": lambda env, other: (os.chown(env / "bin", 0, OTHER), (env / "bin").chmod(0o775)),
    "site-packages for everybody": lambda env, other: next(env.glob("lib/python*/site-packages")).chmod(0o777),
    "the base in pyvenv.cfg": lambda env, other: (env / "pyvenv.cfg").write_text(f"home = {other}\n"),
    "pyvenv.cfg": lambda env, other: give_away(env / "pyvenv.cfg"),
    "a .pth file": lambda env, other: (
        next(env.glob("lib/python*/site-packages")).joinpath("x.pth").write_text(f"{other}\n")
    ),
    "a .pth file that names nothing yet": lambda env, other: written(env, "x.pth").write_text(f"{other}/none/yet\n"),
    "an import line of a .pth file": lambda env, other: written(env, "x.pth").write_text(
        f"import sys; sys.path.insert(0, '{other}')\n"
    ),
    "an editable install": lambda env, other: (
        written(env, "x.pth").write_text("import __editable___x_1_0_finder; __editable___x_1_0_finder.install()\n"),
        written(env, "__editable___x_1_0_finder.py").write_text(f"MAPPING = {{'x': '{other}/src/x'}}\n"),
    ),
    "an editable install by a package": lambda env, other: (
        written(env, "x.pth").write_text("import sys; from _x_editable import loader; loader.install()\n"),
        (written(env, "a").parent / "_x_editable").mkdir(),
        written(env, "_x_editable/__init__.py").write_text(f'install({{"x": "{other}/src/x.py"}})\n'),
    ),
    "a module where a .pth file leads": lambda env, other: give_away(named_by_pth(env, "sitecustomize.py")),
    "a package where a .pth file leads": lambda env, other: give_away_one(named_by_pth(env, "p/__init__.py").parent),
    "compiled code where a .pth file leads": lambda env, other: (
        named_by_pth(env, "p/__init__.py"),
        give_away(named_by_pth(env, "p/__pycache__/__init__.cpython-39.pyc")),
    ),
    "a namespace package where a .pth file leads": lambda env, other: give_away(named_by_pth(env, "n/p/__init__.py")),
    "a zip file of the library": lambda env, other: give_away(written(env, "../../python39.zip")),
    "libpython": lambda env, other: give_away(written(env, "../../libpython3.9.so.1.0")),
    "another's .pth file": lambda env, other: give_away(written(env, "y.pth")),
    "sitecustomize": lambda env, other: give_away(written(env, "sitecustomize.py")),
    "a link to the program": lambda env, other: relink(env / "bin/python", other / "python3"),
    "a link in the middle": lambda env, other: moved(env / "lib", other / "lib"),
    "the parent": lambda env, other: give_away_one(env.parent),
    "pip.conf": lambda env, other: give_away(written(env, "../../../pip.conf")),
}


def written(env: Path, name: str) -> Path:
    path = next(env.glob("lib/python*/site-packages")) / name
    path.write_text("")
    return path


def named_by_pth(env: Path, name: str) -> Path:
    """A file in a directory of root's that a .pth file adds to the import path."""
    path = env.parent / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    written(env, "src.pth").write_text(f"{env.parent}/src\n")
    return path


def relink(path: Path, to: Path) -> None:
    path.unlink()
    path.symlink_to(to)


def moved(path: Path, to: Path) -> None:
    path.rename(to)
    path.symlink_to(to)


def give_away_one(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip, for copies; made by hand, because only its files matter."""
    import pip

    env = tmp_path_factory.mktemp("environment") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    source, site = Path(pip.__file__).parent, next(env.glob("lib/python*/site-packages"))
    shutil.copytree(source / "_internal/cli", site / "pip/_internal/cli")
    (site / "pip/__init__.py").write_text("")
    return env


@pytest.mark.parametrize("attack", INTERPRETERS)
def test_an_interpreter_that_others_can_change_is_not_started(
    attack: str, environment: Path, hostile: Path, tmp_path: Path
) -> None:
    env = tmp_path / "own/env"
    shutil.copytree(environment, env, symlinks=True)
    python = str(env / "bin/python")
    assert interpreter_exposure(python) is None and resolve_program(python) == python
    interpreter_exposure_cache_clear()
    INTERPRETERS[attack](env, hostile)
    with pytest.raises(UntrustedError):
        resolve_program(python)


def test_data_beside_modules_is_no_reason(environment: Path, tmp_path: Path) -> None:
    """A checkout of root's with what its jobs write: no import reaches that."""
    env = tmp_path / "own/env"
    shutil.copytree(environment, env, symlinks=True)
    named_by_pth(env, "p/__init__.py")
    for name in ("data/train/pictures/1.jpg", "p/samples/x/y.txt", "train.log", "run-1/log.py"):
        give_away(named_by_pth(env, name))
    (env.parent / "src/p/loop").symlink_to("..")
    give_away_one(env.parent / "src/data/train/pictures")
    assert interpreter_exposure(str(env / "bin/python")) is None


def test_what_pth_files_import_of_root_s_is_no_reason(environment: Path, tmp_path: Path) -> None:
    env, own = tmp_path / "own/env", tmp_path / "own/src"
    shutil.copytree(environment, env, symlinks=True)
    own.mkdir()
    written(env, "distutils-precedence.pth").write_text(
        "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
        "enabled and __import__('_distutils_hack').add_shim();\n"
    )
    written(env, "own.pth").write_text("import __editable___x_finder\n")
    written(env, "__editable___x_finder.py").write_text(f"MAPPING = {{'x': '{own}/x'}}\n")
    assert interpreter_exposure(str(env / "bin/python")) is None


def interpreter_exposure_cache_clear() -> None:
    from envtune.trust import interpreters

    interpreters._judged.clear()


@pytest.mark.parametrize("when", ["apply", "undo"])
def test_the_executor_refuses_also_what_an_old_plan_or_journal_names(
    when: str, environment: Path, hostile: Path, tmp_path: Path
) -> None:
    """The executor as it travels, with the caller's PATH leading to another user's programs first."""
    program, mark = tmp_path / "executor.py", tmp_path / "mark"
    program.write_text(assembled("executor"), "utf-8")
    undo = [str(hostile / "systemctl")] if when == "undo" else ["rm", str(mark)]
    argv = ["touch", str(mark)] if when == "undo" else [str(hostile / "systemctl"), "restart", "x"]
    operation = {"op": "run", "argv": argv, "check": {"argv": ["test", "-e", str(mark)]}, "undo": {"argv": undo}}
    import json

    plan = {"changes": [{"id": "C01", "operations": [operation]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    variables = {"ENVTUNE_HOST_LOCK": os.environ["ENVTUNE_HOST_LOCK"]}
    variables |= {"ENVTUNE_STATE": str(tmp_path / "state"), "PATH": f"{hostile}:{os.environ['PATH']}"}
    call = [sys.executable, "-I", str(program)]
    status, touched = traced([*call, "apply", str(tmp_path / "plan.json")], hostile, **variables)
    assert touched == [] and status == (0 if when == "undo" else 1)
    assert mark.exists() == (when == "undo")
    if when == "undo":
        run = next((tmp_path / "state/runs").iterdir()).name
        status, touched = traced([*call, "undo", run], hostile, **variables)
        assert (status, touched) == (1, []) and mark.exists()


def test_a_local_directory_that_everybody_may_write_is_no_place_for_programs(hostile: Path, tmp_path: Path) -> None:
    """/usr/local/bin replaced by another user's directory, in a mount namespace."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from envtune.collector.commands import run_command; " + (
        "print(run_command(['nft', '-v']).get('error'), run_command(['npu-smi', 'info']).get('untrusted'))"
    )
    inside = f'mount --make-rprivate / && mount --bind "{hostile}" /usr/local/bin && exec "$0" "$@"'
    argv = ["unshare", "-m", "sh", "-c", inside, sys.executable, "-I", "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "mount" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.split()[1:] == ["/usr/local/bin"], done.stdout + done.stderr
    assert not (tmp_path / "ran").exists()
