"""Which program a name means, and with which environment it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envtune.trust import environment as trust_environment
from envtune.trust import programs
from envtune.trust.environment import VariableError, command_environment
from envtune.trust.programs import UntrustedError, resolve_program, trusted_path
from envtune.trust.start import start_program

OWN = os.geteuid()
HOSTILE = {
    "LD_PRELOAD": "", "LD_AUDIT": "/x.so", "LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/x", "PYTHONHOME": "/x",
    "PYTHONSTARTUP": "/x.py", "PYTHONINSPECT": "1", "PERL5LIB": "/x", "PERL5OPT": "-Mx", "BASH_ENV": "/x", "ENV": "/x",
    "GCONV_PATH": "/x", "GIT_SSH_COMMAND": "/x", "PIP_INDEX_URL": "http://x", "PIP_CONFIG_FILE": "/x", "IFS": "x",
    "XDG_CONFIG_HOME": "/x", "NFT_X": "1", "APT_CONFIG": "/x", "DPKG_ROOT": "/x", "CC": "/x", "TMPDIR": "/x",
    "RUBYOPT": "-rx", "NODE_OPTIONS": "-r x", "GLIBC_TUNABLES": "x=1", "LOCPATH": "/x", "NLSPATH": "/x",
}  # fmt: skip


def script(path: Path, text: str = "echo run", start: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{start}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two system directories: `local` and `usr`."""
    tmp_path.chmod(0o755)
    places = (f"{tmp_path}/local", f"{tmp_path}/usr")
    for place in places:
        os.mkdir(place, 0o755)
    monkeypatch.setattr(programs, "SYSTEM_DIRECTORIES", places)
    return tmp_path


def test_a_name_is_looked_for_in_the_system_s_directories_only(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "elsewhere/tool")
    monkeypatch.setenv("PATH", f"{tmp_path}/elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("tool", "./tool", "elsewhere/tool", ""):
        with pytest.raises(FileNotFoundError):
            resolve_program(name)
    script(folders / "usr/tool")
    assert resolve_program("tool") == f"{folders}/usr/tool"
    script(folders / "local/tool")
    assert resolve_program("tool") == f"{folders}/local/tool"
    assert resolve_program(f"{tmp_path}/elsewhere/tool") == f"{tmp_path}/elsewhere/tool"


def test_a_directory_that_others_may_write_is_left_out(folders: Path) -> None:
    script(folders / "local/tool")
    script(folders / "usr/tool")
    (folders / "local").chmod(0o777)
    assert resolve_program("tool") == f"{folders}/usr/tool"
    assert command_environment("/bin/ls")["PATH"] == f"{folders}/usr"
    (folders / "usr/tool").unlink()
    with pytest.raises(UntrustedError) as caught:
        resolve_program("tool")
    assert caught.value.exposure.path == f"{folders}/local"


@pytest.mark.parametrize("start", ["#!{bad}", "#! {bad} -x", "#!/usr/bin/env -S tool", "#!/usr/bin/env A=1 tool"])
def test_the_interpreter_of_a_script_is_judged(folders: Path, tmp_path: Path, start: str) -> None:
    bad = script(folders / "local/tool")
    bad.chmod(0o777)
    path = script(folders / "usr/script", start=start.format(bad=bad))
    with pytest.raises(UntrustedError) as caught:
        resolve_program(str(path))
    assert caught.value.exposure.path == str(bad)


def test_what_is_no_program_is_denied(folders: Path) -> None:
    script(folders / "usr/tool").chmod(0o644)
    with pytest.raises(PermissionError):
        resolve_program("tool")
    with pytest.raises(PermissionError):
        resolve_program(str(folders / "usr"))


def test_nothing_of_the_caller_s_environment_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    child = start_program(["env"], stdout=subprocess.PIPE)
    lines = child.communicate()[0].decode().splitlines()
    given = dict(line.split("=", 1) for line in lines)
    assert not set(given) & set(HOSTILE)
    allowed = {"PATH", "HOME", "LC_ALL", "PYTHONNOUSERSITE", "https_proxy"}
    assert set(given) - {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} <= allowed | {
        name for name in os.environ if name.lower().endswith("_proxy")
    }
    assert given["LC_ALL"] == "C" and given["https_proxy"] == "http://proxy:3128"


@pytest.mark.slow
def test_python_starts_with_a_pth_file_in_any_language(tmp_path: Path) -> None:
    """Python 3.11 reads .pth files in the encoding of the locale, and ends at its start where it cannot."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    site, named = next(tmp_path.glob("env/lib/python*/site-packages")), tmp_path / "项目"
    named.mkdir()
    (site / "x.pth").write_text(f"{named}\n", "utf-8")
    child = start_program(
        [str(tmp_path / "env/bin/python"), "-I", "-c", "import sys; print(ascii(sys.path))"], stdout=-1
    )
    assert ascii(str(named)) in child.communicate()[0].decode()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "/x") for name in HOSTILE if name not in ("CC", "TMPDIR")),
        ("CC", "cc -fplugin=/tmp/x.so"),
        ("CC", "cc -B/tmp"),
        ("CC", "cc -wrapper /tmp/x"),
        ("PYTHONUSERBASE", "relative"),
        ("PIP_USER", "1\nLD_PRELOAD=/x"),
        ("PATH", "/tmp"),
        ("DEBIAN_FRONTEND", "a b"),
    ],
)
def test_an_operation_sets_nothing_that_redirects_a_program(name: str, value: str) -> None:
    with pytest.raises(VariableError):
        command_environment("/bin/ls", {name: value})


def test_an_operation_may_set_what_the_actions_set(tmp_path: Path) -> None:
    variables = {"DEBIAN_FRONTEND": "noninteractive", "PIP_USER": "0", "PIP_TARGET": "", "TMPDIR": str(tmp_path / "x")}
    given = command_environment("/bin/ls", {**variables, "CC": "sh -mavx2", "PYTHONPATH": "", "PYTHONNOUSERSITE": ""})
    assert {name: given[name] for name in variables} == variables and given["CC"] == "sh -mavx2"
    assert "PYTHONPATH" not in given and "PYTHONNOUSERSITE" not in given
    former = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # in journals of envtune 0.1
    assert command_environment("/bin/ls", {"PATH": former})["PATH"] == trusted_path()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(UntrustedError):
        command_environment("/bin/ls", {"PYTHONUSERBASE": str(open_to_all)})
    script(open_to_all / "cc")
    with pytest.raises(UntrustedError):
        command_environment("/bin/ls", {"CC": f"{open_to_all}/cc -mavx2"})


@pytest.mark.parametrize("user", [0, 1000])
def test_a_home_that_sudo_hands_on_is_not_taken(user: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert (command_environment("/bin/ls")["HOME"] == str(tmp_path)) == (user != 0)


def test_the_driver_s_tools_find_the_driver_s_libraries_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "lib64", tmp_path / "open"
    own.mkdir(), other.mkdir()
    other.chmod(0o777)
    monkeypatch.setattr(trust_environment, "_DRIVER_LIBRARIES", (str(own), str(other), "/none"))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/attacker")
    assert command_environment("/usr/local/sbin/npu-smi")["LD_LIBRARY_PATH"] == str(own)
    assert "LD_LIBRARY_PATH" not in command_environment("/bin/ls")


def test_slurm_gets_the_callers_configuration_that_nobody_else_can_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "slurm.conf"
    configuration.touch(0o600)
    monkeypatch.setenv("SLURM_CONF", str(configuration))
    assert command_environment("/usr/bin/sinfo")["SLURM_CONF"] == str(configuration)
    assert "SLURM_CONF" not in command_environment("/bin/ls")
    configuration.chmod(0o666)
    assert "SLURM_CONF" not in command_environment("/usr/bin/sinfo")
