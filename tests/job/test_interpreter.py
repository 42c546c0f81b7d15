"""Which Python the job uses: every layout a training host may have, told without starting anything."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Optional, Union

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.host import LocalHost
from envtune.job.interpreter import find_python
from envtune.job.target import PythonTarget, TargetOptions
from envtune.messages import Text
from envtune.snapshot.host import SnapshotHost

ELF = "\x7fELF"
VERSIONS = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def host(files: dict[str, Any], **environ: str) -> SnapshotHost:
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/train", **environ}
    return SnapshotHost({"files": files, "environ": variables, "cwd": "/home/train"})


def find(files: dict[str, Any], options: Optional[TargetOptions] = None, **environ: str) -> Union[PythonTarget, Text]:
    machine = host(files, **environ)
    return find_python(machine, options or TargetOptions(), machine.environ)


def found(files: dict[str, Any], options: Optional[TargetOptions] = None, **environ: str) -> PythonTarget:
    answer = find(files, options, **environ)
    assert isinstance(answer, PythonTarget), answer
    return answer


def reason(files: dict[str, Any], options: Optional[TargetOptions] = None, **environ: str) -> str:
    answer = find(files, options, **environ)
    assert isinstance(answer, Text), answer
    assert answer.zh and answer.zh != answer.en
    return answer.en


def installation(prefix: str, version: str, lib: str = "lib") -> dict[str, Any]:
    """What `make install` leaves: the program, the links, the library and its site-packages."""
    major = version.split(".")[0]
    return {
        f"{prefix}/bin/python{version}": ELF,
        f"{prefix}/bin/python{major}": {"link": f"python{version}"},
        f"{prefix}/{lib}/python{version}/os.py": "",
        f"{prefix}/{lib}/python{version}/site-packages": {"dir": []},
    }


def venv(prefix: str, version: str, base: str, shared: str = "false") -> dict[str, Any]:
    """What `python -m venv` leaves."""
    return {
        f"{prefix}/bin/python3": {"link": "python"},
        f"{prefix}/bin/python": {"link": f"{base}/bin/python{version}"},
        f"{prefix}/pyvenv.cfg": f"home = {base}/bin\ninclude-system-site-packages = {shared}\nversion = {version}.5\n",
        f"{prefix}/lib/python{version}/site-packages": {"dir": []},
        f"{prefix}/lib64": {"link": "lib"},
    }


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "2.7"])
def test_python3_on_path_built_from_source(version: str) -> None:
    base = f"/usr/local/python{version}.5"
    python = found(installation(base, version), PATH=f"{base}/bin:/usr/bin")
    assert (python.real, python.version, python.kind) == (f"{base}/bin/python{version}", version, "system")
    assert python.prefix == base
    assert python.sites == (f"{base}/lib/python{version}/site-packages",)
    assert "first python3 on PATH" in python.chosen.en


def test_python2_is_named_by_its_path() -> None:
    files = installation("/usr/local/python2.7.18", "2.7")
    python = found(files, TargetOptions(python="/usr/local/python2.7.18/bin/python2.7"))
    assert python.version == "2.7" and python.sites == ("/usr/local/python2.7.18/lib/python2.7/site-packages",)


def test_nothing_is_guessed_without_a_python() -> None:
    assert reason({}) == "python3 is not on PATH"


@pytest.mark.parametrize("version", ["3.6", "3.9", "3.13"])
def test_virtual_environment_of_the_shell(version: str) -> None:
    files = {**installation("/usr/local", version), **venv("/srv/env", version, "/usr/local")}
    python = found(files, VIRTUAL_ENV="/srv/env", PATH="/srv/env/bin:/usr/local/bin")
    assert (python.kind, python.prefix, python.path) == ("venv", "/srv/env", "/srv/env/bin/python3")
    assert python.sites == (f"/srv/env/lib/python{version}/site-packages",)
    assert python.chosen.en == "the environment of $VIRTUAL_ENV"


def test_environment_that_holds_only_envtune_is_ours_and_not_the_jobs() -> None:
    files = {
        **installation("/usr/local", "3.9"),
        **venv("/opt/envtune", "3.9", "/usr/local"),
        "/opt/envtune/lib/python3.9/site-packages/envtune-0.1.0.dist-info/METADATA": "Name: envtune\nVersion: 0.1.0\n",
    }
    ours = {"VIRTUAL_ENV": "/opt/envtune", "PATH": "/opt/envtune/bin:/usr/local/bin"}
    assert found(files, **ours).path == "/usr/local/bin/python3"
    files["/opt/envtune/lib/python3.9/site-packages/torch/__init__.py"] = ""
    assert found(files, **ours).path == "/opt/envtune/bin/python3"


def test_stale_virtual_env_variable_falls_back_to_path() -> None:
    assert found(installation("/usr/local", "3.8"), VIRTUAL_ENV="/gone").path == "/usr/local/bin/python3"


def test_venv_with_system_packages_sees_user_and_base_packages_in_import_order() -> None:
    files = {
        **installation("/usr/local", "3.7"),
        **venv("/srv/env", "3.7", "/usr/local", shared="true"),
        "/home/train/.local/lib/python3.7/site-packages": {"dir": []},
    }
    assert found(files, VIRTUAL_ENV="/srv/env").sites == (
        "/srv/env/lib/python3.7/site-packages",
        "/home/train/.local/lib/python3.7/site-packages",
        "/usr/local/lib/python3.7/site-packages",
    )


def test_user_site_comes_first_and_can_be_switched_off() -> None:
    files = {**installation("/usr/local", "3.7"), "/home/train/.local/lib/python3.7/site-packages": {"dir": []}}
    user, system = "/home/train/.local/lib/python3.7/site-packages", "/usr/local/lib/python3.7/site-packages"
    assert found(files).sites == (user, system)
    assert found(files, PYTHONNOUSERSITE="1").sites == (system,)


def test_conda_environment() -> None:
    files = {**installation("/opt/conda", "3.10"), "/opt/conda/conda-meta/history": ""}
    files["/opt/conda/bin/python"] = {"link": "python3.10"}
    python = found(files, CONDA_PREFIX="/opt/conda")
    assert (python.kind, python.prefix, python.version) == ("conda", "/opt/conda", "3.10")


@pytest.mark.parametrize(
    ("version", "present", "expected"),
    [
        ("3.6", ["/usr/lib/python3/dist-packages"], ["/usr/lib/python3/dist-packages"]),
        (
            "3.10",
            ["/usr/local/lib/python3.10/dist-packages", "/usr/lib/python3/dist-packages"],
            ["/usr/local/lib/python3.10/dist-packages", "/usr/lib/python3/dist-packages"],
        ),
        ("2.7", ["/usr/lib/python2.7/dist-packages"], ["/usr/lib/python2.7/dist-packages"]),
    ],
)
def test_debian_keeps_its_packages_in_dist_packages(version: str, present: list[str], expected: list[str]) -> None:
    files = installation("/usr", version)
    files.update({path: {"dir": []} for path in present})
    options = TargetOptions(python=f"/usr/bin/python{version}")
    assert list(found(files, options).sites) == expected


def test_rpm_systems_keep_theirs_in_lib64_and_lib() -> None:
    files = {
        "/usr/libexec/platform-python3.6": ELF,
        "/usr/bin/python3.6": {"link": "/usr/libexec/platform-python3.6"},
        "/usr/bin/python3": {"link": "/etc/alternatives/python3"},
        "/etc/alternatives/python3": {"link": "/usr/bin/python3.6"},
        "/usr/lib64/python3.6/os.py": "",
        "/usr/lib64/python3.6/site-packages": {"dir": []},
        "/usr/lib/python3.6/site-packages": {"dir": []},
        "/usr/local/lib/python3.6/site-packages": {"dir": []},
    }
    python = found(files)
    assert (python.prefix, python.version, python.real) == ("/usr", "3.6", "/usr/libexec/platform-python3.6")
    assert python.sites == (
        "/usr/local/lib/python3.6/site-packages",
        "/usr/lib64/python3.6/site-packages",
        "/usr/lib/python3.6/site-packages",
    )
    files["/usr/local/bin/python3.6"] = ELF  # then /usr/local is another Python's
    assert found(files, TargetOptions(python="/usr/bin/python3")).sites[0] == "/usr/lib64/python3.6/site-packages"


def test_old_virtualenv_without_pyvenv_cfg() -> None:
    files = {
        "/usr/bin/python2.7": ELF,
        "/usr/lib/python2.7/os.py": "",
        "/usr/lib/python2.7/dist-packages": {"dir": []},
        "/srv/old/bin/python2.7": ELF,
        "/srv/old/bin/python": {"link": "python2.7"},
        "/srv/old/lib/python2.7/orig-prefix.txt": "/usr",
        "/srv/old/lib/python2.7/no-global-site-packages.txt": "",
        "/srv/old/lib/python2.7/site-packages": {"dir": []},
    }
    python = found(files, TargetOptions(python="/srv/old"))
    assert (python.kind, python.version) == ("venv", "2.7")
    assert python.sites == ("/srv/old/lib/python2.7/site-packages",)
    files["/srv/old/lib/python2.7/no-global-site-packages.txt"] = None
    assert found(files, TargetOptions(python="/srv/old")).sites[-1] == "/usr/lib/python2.7/dist-packages"


# ---------------------------------------------------------------------- pyenv

SHIM = """#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${0##*/}"

export PYENV_ROOT="/home/train/.pyenv"
exec "/home/train/.pyenv/libexec/pyenv" exec "$program" "$@"
"""


def pyenv(*versions: str) -> dict[str, Any]:
    files: dict[str, Any] = {"/home/train/.pyenv/shims/python3": SHIM}
    for version in versions:
        files.update(installation(f"/home/train/.pyenv/versions/{version}", version.rpartition(".")[0]))
    return files


SHIMS = {"PATH": "/home/train/.pyenv/shims:/usr/bin"}


def test_pyenv_shim_takes_the_variable_then_the_nearest_file_then_the_global_version() -> None:
    files = {**pyenv("3.7.16", "3.8.18", "3.9.18"), "/home/train/.pyenv/version": "3.7.16\n"}
    assert found(files, **SHIMS).version == "3.7"
    files["/home/.python-version"] = "# ours\n3.8.18\n"
    assert found(files, **SHIMS).version == "3.8"
    assert found(files, PYENV_VERSION="3.9.18", **SHIMS).version == "3.9"


def test_pyenv_shim_goes_through_the_list_and_knows_prefixes_and_system() -> None:
    files = {**pyenv("3.7.2", "3.7.16"), **installation("/usr", "3.11"), "/usr/lib/python3/dist-packages": {"dir": []}}
    assert found(files, PYENV_VERSION="2.7.18:3.7", **SHIMS).prefix == "/home/train/.pyenv/versions/3.7.16"
    assert found(files, PYENV_VERSION="system", **SHIMS).prefix == "/usr"
    assert found(files, **SHIMS).prefix == "/usr"  # no version file at all means system


def test_pyenv_shim_without_such_a_version_is_unknown_with_its_path() -> None:
    text = reason({**pyenv("3.7.16"), "/home/train/.pyenv/version": "3.6.15\n"}, **SHIMS)
    assert "/home/train/.pyenv/shims/python3" in text and "3.6.15 (/home/train/.pyenv/version)" in text


# ---------------------------------------------------------------------- wrapper scripts

WRAPPERS = {
    "exec": '#!/bin/sh\nexec /opt/py/bin/python3.8 "$@"\n',
    "no exec": '#!/bin/bash\n# ours\n/opt/py/bin/python3.8 "$@"\n',
    "variable": '#!/bin/sh\nset -e\nexport LD_LIBRARY_PATH=/opt/py/lib\nP=/opt/py\nexec "$P/bin/python3.8" "$@"\n',
    "own directory": '#!/bin/bash\nD="$(cd "$(dirname "$0")" && pwd)"\nexec "$D/../../../opt/py/bin/python3.8" "$@"\n',
    "through numactl": '#!/bin/sh\nexec numactl --cpunodebind=0 /opt/py/bin/python3.8 "$@"\n',
    "name": '#!/bin/sh\nPATH=/opt/py/bin:$PATH\nexec python3.8 "$@"\n',
    "twice the same": '#!/bin/sh\n$X && exec /opt/py/bin/python3.8 -u "$@"\nexec /opt/py/bin/python3.8 "$@"\n',
}


@pytest.mark.parametrize("text", WRAPPERS.values(), ids=WRAPPERS.keys())
def test_wrapper_script_is_read(text: str) -> None:
    python = found({**installation("/opt/py", "3.8"), "/usr/local/bin/python3": text})
    assert (python.path, python.real) == ("/usr/local/bin/python3", "/opt/py/bin/python3.8")


UNREADABLE_WRAPPERS = {
    "two programs": '#!/bin/sh\nif $X; then exec /opt/py/bin/python3.8 "$@"; fi\nexec /usr/bin/python3.6 "$@"\n',
    "unset variable": '#!/bin/sh\nexec "$SOMEWHERE/python3" "$@"\n',
    "variable set twice": '#!/bin/sh\nP=/opt/py\nif true; then\nP=/opt/other\nfi\nexec $P/bin/python3.8 "$@"\n',
    "variable set in passing": '#!/bin/sh\nP=/opt/py\nif true; then P=/opt/other; fi\nexec $P/bin/python3.8 "$@"\n',
    "command": '#!/bin/sh\nexec "$(which python3.8)" "$@"\n',
    "another language": '#!/usr/bin/perl\nexec "/opt/py/bin/python3.8", @ARGV;\n',
    "nothing started": "#!/bin/sh\necho no python here\n",
    "bad quoting": '#!/bin/sh\nexec "/opt/py/bin/python3.8 "$@\n',
}


@pytest.mark.parametrize("text", UNREADABLE_WRAPPERS.values(), ids=UNREADABLE_WRAPPERS.keys())
def test_wrapper_that_reading_does_not_settle_is_unknown(text: str) -> None:
    files = {**installation("/opt/py", "3.8"), **installation("/usr", "3.6"), "/usr/local/bin/python3": text}
    assert "/usr/local/bin/python3" in reason(files)


def test_wrapper_around_a_shim_around_a_link() -> None:
    files = {**pyenv("3.7.16"), "/home/train/.pyenv/version": "3.7.16\n"}
    files["/usr/local/bin/python3"] = '#!/bin/sh\nexec /home/train/.pyenv/shims/python3 "$@"\n'
    python = found(files)
    assert python.real == "/home/train/.pyenv/versions/3.7.16/bin/python3.7"


# ---------------------------------------------------------------------- broken things


def test_links_that_lead_nowhere_or_in_a_circle() -> None:
    options = TargetOptions(python="/opt/a/python3")
    assert reason({"/opt/a/python3": {"link": "gone"}}, options) == "/opt/a/python3 does not exist"
    circle = reason({"/opt/a/python3": {"link": "b"}, "/opt/a/b": {"link": "python3"}}, options)
    assert "/opt/a/python3" in circle
    loop = {
        "/opt/a/python3": '#!/bin/sh\nexec /opt/a/again "$@"\n',
        "/opt/a/again": '#!/bin/sh\nexec /opt/a/python3 "$@"\n',
    }
    assert "points to itself" in reason(loop, options)


def test_broken_link_on_path_is_passed_over_as_a_shell_does() -> None:
    files = {**installation("/usr", "3.9"), "/usr/local/bin/python3": {"link": "/gone/python3"}}
    assert found(files).path == "/usr/bin/python3"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"error": "EACCES"}, "cannot be read by this user"),
        ({"fifo": True}, "is not a file"),
        ("some notes\n", "neither a program nor a script"),
        ({"error": "EIO"}, "/opt/a/python3"),
    ],
)
def test_unreadable_interpreters_say_so(entry: Any, words: str) -> None:
    text = reason({"/opt/a/python3": entry}, TargetOptions(python="/opt/a/python3"))
    assert words in text and "/opt/a/python3" in text


def test_missing_names_and_directories() -> None:
    assert reason({}, TargetOptions(python="/opt/none")) == "/opt/none does not exist"
    assert reason({}, TargetOptions(python="python3.7")) == "python3.7 is not on PATH"
    assert "without bin/python3" in reason({"/opt/empty": {"dir": []}}, TargetOptions(python="/opt/empty"))


def test_version_that_cannot_be_told() -> None:
    files = {"/opt/a/bin/python": ELF, "/opt/a/lib/python3.6/os.py": "", "/opt/a/lib/python3.8/os.py": ""}
    assert "libraries of 3.6, 3.8" in reason(files, TargetOptions(python="/opt/a/bin/python"))
    assert "no lib/python3.8" in reason({"/opt/a/bin/python3.8": ELF}, TargetOptions(python="/opt/a/bin/python3.8"))


def test_names_and_relative_paths_are_taken_as_a_shell_takes_them() -> None:
    files = {**installation("/usr", "3.9"), **venv("/home/train/env", "3.9", "/usr")}
    assert found(files, TargetOptions(python="python3.9")).path == "/usr/bin/python3.9"
    assert found(files, TargetOptions(python="env")).prefix == "/home/train/env"
    assert found(files, TargetOptions(python="./env/bin/python")).prefix == "/home/train/env"
    assert found(files, TargetOptions(python="~/env")).prefix == "/home/train/env"


# ---------------------------------------------------------------------- a running process


def job(exe: str, *argv: str, cwd: str = "/home/train") -> dict[str, Any]:
    return {
        "/proc/4242/exe": {"link": exe},
        "/proc/4242/cwd": {"link": cwd},
        "/proc/4242/cmdline": "\0".join(argv) + "\0",
    }


def test_process_in_a_virtual_environment() -> None:
    files = {**installation("/usr/local", "3.7"), **venv("/srv/env", "3.7", "/usr/local")}
    options = TargetOptions(pid=4242)
    absolute = {**files, **job("/usr/local/bin/python3.7", "/srv/env/bin/python3", "train.py")}
    assert found(absolute, options).prefix == "/srv/env"
    by_name = {**files, **job("/usr/local/bin/python3.7", "python3", "train.py")}
    assert found(by_name, options, PATH="/srv/env/bin:/usr/bin").prefix == "/srv/env"
    assert found(by_name, options, VIRTUAL_ENV="/srv/env", PATH="/usr/bin").prefix == "/srv/env"
    renamed = {**files, **job("/usr/local/bin/python3.7", "training: rank 0")}
    assert found(renamed, options).prefix == "/usr/local"


def test_processes_that_are_no_python_or_not_there() -> None:
    options = TargetOptions(pid=4242)
    assert reason({}, options) == "no process 4242"
    assert "/bin/bash, which is not a Python" in reason(job("/bin/bash", "bash", "run.sh"), options)
    denied = {**job("/usr/bin/python3", "python3"), "/proc/4242/exe": {"error": "EACCES"}}
    assert "/proc/4242/exe cannot be read" in reason(denied, options)


def test_process_of_a_container_is_not_judged_by_the_hosts_files() -> None:
    files = {**installation("/usr/local", "3.7"), **job("/usr/local/bin/python3.7", "python3")}
    files["/proc/4242/ns/mnt"] = {"link": "mnt:[4026532301]"}
    files["/proc/self/ns/mnt"] = {"link": "mnt:[4026531841]"}
    assert "runs in a container" in reason(files, TargetOptions(pid=4242))
    files["/proc/self/ns/mnt"] = {"link": "mnt:[4026532301]"}
    assert found(files, TargetOptions(pid=4242)).prefix == "/usr/local"


# ---------------------------------------------------------------------- real interpreters of this machine


def interpreters() -> Iterator[str]:
    """Every Python that is easily found here, the one that runs the tests first."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = [sys.executable, "/usr/bin/python3", *map(str, sorted(Path(root).glob("versions/*/bin/python")))]
    yield from dict.fromkeys(path for path in candidates if os.access(path, os.X_OK))


def asked(path: str) -> tuple[str, str, list[str]]:
    """Prefix, version and site directories as the interpreter itself says."""
    code = "import sys, json; print(json.dumps([sys.prefix, '%d.%d' % sys.version_info[:2], sys.path]))"
    prefix, version, entries = json.loads(subprocess.run([path, "-c", code], capture_output=True, check=True).stdout)
    return prefix, version, [entry for entry in entries if entry.endswith("-packages")]


def told(path: str) -> tuple[str, str, list[str]]:
    answer = find_python(LocalHost(), TargetOptions(python=path), dict(os.environ))
    assert isinstance(answer, PythonTarget), answer
    return answer.prefix, answer.version, list(answer.sites)


@pytest.mark.parametrize("path", sampled(interpreters(), 3))
def test_reading_agrees_with_the_interpreter_itself(path: str) -> None:
    assert told(path) == asked(path)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("path", [p for p in interpreters() if "2.7" not in p])
def test_reading_agrees_about_virtual_environments(path: str, shared: bool, tmp_path: Path) -> None:
    options = ["--system-site-packages"] if shared else []
    made = subprocess.run([path, "-m", "venv", "--without-pip", *options, tmp_path / "env"], capture_output=True)
    if made.returncode:
        pytest.skip(f"{path} cannot make virtual environments")
    inside = str(tmp_path / "env" / "bin" / "python")
    assert told(inside) == asked(inside)
    linked = tmp_path / "python3"
    linked.symlink_to(inside)  # CPython looks for pyvenv.cfg beside the link, and so do we
    assert told(str(linked)) == asked(str(linked))


def test_nothing_is_started(tmp_path: Path) -> None:
    """A wrapper that would leave a mark when run, before a Python that would too."""
    mark = tmp_path / "was-run"
    base = tmp_path / "py"
    (base / "bin").mkdir(parents=True)
    (base / "lib/python3.8/site-packages").mkdir(parents=True)
    (base / "bin/python3.8").write_bytes(b"\x7fELF" + b"\0" * 60)
    wrapper = tmp_path / "bin" / "python3"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\ntouch {mark}\nexec {base}/bin/python3.8 "$@"\n')
    for path in (wrapper, base / "bin/python3.8"):
        path.chmod(0o755)
    python = find_python(LocalHost(), TargetOptions(), {"PATH": str(wrapper.parent), "HOME": str(tmp_path)})
    assert isinstance(python, PythonTarget) and python.real == str(base / "bin/python3.8")
    assert not mark.exists()
    assert shutil.which("python3", path=str(wrapper.parent)) == python.path


def test_every_reason_is_worded() -> None:
    from envtune.job.interpreter import _UNRESOLVED

    sources = [path.read_text("utf-8") for path in (ROOT / "envtune/collector").rglob("*.py")]
    codes = {code for source in sources for code in re.findall(r'raise Unresolved\("([\w-]+)"', source)}
    assert codes == set(_UNRESOLVED)
