"""CANN of three generations: found, named, and judged; each mutation of a healthy host flips what depends on it."""

# ruff: noqa: E501  -- one file tree or mutation per line reads best

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Callable, Optional

import pytest
from helpers.examples import example_context, shared_host
from helpers.rows import sampled
from helpers.search import examples as search
from hypothesis import given
from hypothesis import strategies as st

from envtune import catalog
from envtune.audit import audit
from envtune.catalog.examples import example_data
from envtune.collector.sources.cann import loader_conf
from envtune.context.open import open_context
from envtune.resources.cann.installs import discover
from envtune.resources.cann.loader import elf_machine
from envtune.resources.cann.tree import install_root, resolve_existing
from envtune.resources.cann.version_files import version_cfg
from envtune.snapshot.host import SnapshotHost

A = "/usr/local/Ascend"
OLD, MID, NEW = f"{A}/ascend-toolkit/5.0.2", f"{A}/ascend-toolkit/8.2.RC1", f"{A}/cann-8.5.0"
LATEST = f"{A}/ascend-toolkit/latest"
SITE_OLD = "/usr/local/python3.7.5/lib/python3.7/site-packages"
SITE_MID = "/usr/local/python3.10.13/lib/python3.10/site-packages"


# ---------------------------------------------------------------------------------------------------- parsers


def test_version_cfg_pairs() -> None:
    text = (
        "# version: 1.0\nruntime_running_version=[7.6.0.1.220:8.0.0]\nopp_kernel_running_version=[7.6.0.1.220:8.0.0]\n"
        "runtime_installed_version=[7.6.0.1.220:8.0.0][7.5.0.1.129:8.0.RC3]\n"
    )
    assert version_cfg(text) == {"runtime": ("7.6.0.1.220", "8.0.0"), "opp_kernel": ("7.6.0.1.220", "8.0.0")}
    assert version_cfg("toolkit_running_version=[8.5.2]\r\n") == {"toolkit": ("", "8.5.2")}
    assert version_cfg("runtime_running_version=[1.83.T8.0.B128:CANN-1.83]\n") == {
        "runtime": ("1.83.T8.0.B128", "1.83")
    }
    assert version_cfg("runtime_running_version=[7.6.0") == {}


def test_loader_configuration() -> None:
    text = "# c\ninclude /etc/ld.so.conf.d/*.conf other.conf\n/usr/lib/a:/usr/lib/b\nhwcap 1 nosegneg\n/opt/c/ # x\n"
    assert list(loader_conf(text)) == [
        ("include", "/etc/ld.so.conf.d/*.conf"),
        ("include", "other.conf"),
        ("directory", "/usr/lib/a"),
        ("directory", "/usr/lib/b"),
        ("directory", "/opt/c"),
    ]


def test_the_machine_of_a_library() -> None:
    def head(number: int, data: int = 1) -> bytes:
        order = "little" if data == 1 else "big"
        return b"\x7fELF\x02" + bytes([data]) + b"\0" * 12 + number.to_bytes(2, order)  # type: ignore[arg-type]

    assert elf_machine(head(183)) == "aarch64"
    assert elf_machine(head(62)) == "x86_64"
    assert elf_machine(head(183, 2)) == "aarch64"
    assert elf_machine(head(8)) == "e_machine 8"
    for damaged in (b"", b"\x7fELF", b"#!/bin/sh\n" * 4, head(62)[:19]):
        with pytest.raises(ValueError, match="ELF"):
            elf_machine(damaged)


# ---------------------------------------------------------------------------------------------------- finding it


@pytest.mark.parametrize(
    ("host", "version", "generation", "real"),
    [
        ("cann-old", "5.0.2", "fwkacllib", OLD),
        ("cann-mid", "8.2.RC1", "arch-linux", MID),
        ("cann-new", "8.5.0", "cann", NEW),
    ],
)
def test_each_generation_is_found(host: str, version: str, generation: str, real: str) -> None:
    context = example_context({"like": host})
    active = discover(context).active
    assert active is not None
    assert (active.version, active.generation, active.real) == (version, generation, real)
    assert (context.facts.value("cann"), context.facts.value("cann_generation")) == (version, generation)


def without_variables(**more: str) -> dict[str, str]:
    names = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "TOOLCHAIN_HOME")
    return {**dict.fromkeys((*names, "LD_LIBRARY_PATH", "PYTHONPATH"), ""), **more}


def active_version(files: dict[str, Any], environ: Optional[dict[str, str]] = None) -> Optional[str]:
    found = discover(example_context({"like": "bare", "files": files, "environ": environ or {}})).active
    return found and found.version


@pytest.mark.parametrize(
    ("files", "version"),
    [
        # CANN 20.x: version directory with the architecture below, install info of nnae in the version directory
        ({f"{A}/nnae/latest": {"link": "20.2.rc1"}, f"{A}/nnae/20.2.rc1/fwkacllib/lib64/x": "", f"{A}/nnae/20.2.rc1/ascend_nnae_install.info": "version=20.2.rc1\n"}, "20.2.rc1"),
        # before: no version directory at all, and no file that tells the version
        ({f"{A}/fwkacllib/lib64/libhccl.so": "", f"{A}/opp/version.info": "Version=1.77.22.6.220\n"}, None),
        # CANN 5.1: latest is a directory of links; only version.cfg tells
        ({f"{LATEST}/compiler": {"link": "../tree/compiler"}, f"{A}/ascend-toolkit/tree/compiler/x": "", f"{LATEST}/version.cfg": "compiler_running_version=[1.84.15.1.310:6.0.1]\n"}, "6.0.1"),
        # only an internal number, which the matrix knows
        ({f"{LATEST}/opp/version.info": "Version=8.3.0.1.200\n"}, "8.3.RC1"),
        ({f"{LATEST}/opp/version.info": "Version=8.3.0.1.299\n"}, None),
        # CANN 9.x: Version= is the public version
        ({f"{A}/cann": {"link": "tree"}, f"{A}/tree/share/info/runtime/version.info": "Version=9.1.0\n"}, "9.1.0"),
        ({f"{A}/cann": {"link": "cann-8.5.1"}, f"{A}/cann-8.5.1/share/info/hccl/version.info": "Version=8.5.0.2.220\n"}, "8.5.1"),
        # keys in capitals, CR LF, spaces
        ({f"{A}/cann/aarch64-linux/ascend_toolkit_install.info": "version=9.1.0-beta.1\n"}, "9.1.0-beta.1"),
        ({f"{LATEST}": {"link": "tree"}, f"{A}/ascend-toolkit/tree/opp/x": "", f"{A}/ascend-toolkit/tree/x86_64-linux/ascend_toolkit_install.info": "Package_Name = x\r\nVERSION = 8.1.RC1\r\n"}, "8.1.RC1"),
    ],
)  # fmt: skip
def test_versions_from_what_there_is(files: dict[str, Any], version: Optional[str]) -> None:
    assert active_version(files) == version


def test_a_users_own_install_and_the_one_the_installer_noted() -> None:
    tree = {"/data/Ascend/ascend-toolkit/latest": {"link": "8.0.0"}, "/data/Ascend/ascend-toolkit/8.0.0/opp/x": ""}
    assert active_version(tree) is None
    assert active_version({**tree, "/etc/Ascend/ascend_cann_install.info": "Install_Path=/data/Ascend\n"}) == "8.0.0"
    assert active_version(tree, {"ASCEND_TOOLKIT_HOME": "/data/Ascend/ascend-toolkit/latest"}) == "8.0.0"
    assert active_version(tree, {"LD_LIBRARY_PATH": "/lib:/data/Ascend/ascend-toolkit/latest/lib64"}) == "8.0.0"
    home = {path.replace("/data", "/home/me"): entry for path, entry in tree.items()}
    assert active_version(home, {"HOME": "/home/me"}) == "8.0.0"


def test_the_job_decides_between_installs() -> None:
    files = {
        f"{A}/nnae/latest": {"link": "5.0.1"},
        f"{A}/nnae/5.0.1/fwkacllib/lib64/x": "",
        f"{A}/nnae/5.0.1/opp/x": "",
    }
    found = discover(example_context({"like": "cann-old", "files": files, "environ": without_variables()}))
    assert found.active is not None
    assert "no variable of the job names an install" in found.why.en
    assert found.active.version == "5.0.2"
    environ = without_variables(ASCEND_OPP_PATH=f"{A}/nnae/latest/opp")
    found = discover(example_context({"like": "cann-old", "files": files, "environ": environ}))
    assert found.active is not None
    assert (found.active.version, found.why.en) == ("5.0.1", "ASCEND_OPP_PATH points to it")


def test_a_stale_version_cfg_is_reported_and_not_believed() -> None:
    stale = "".join(f"{name}_running_version=[7.6.T13.0.B094:8.0.T63]\n" for name in ("runtime", "compiler", "opp"))
    active = discover(example_context({"like": "cann-mid", "files": {f"{LATEST}/version.cfg": stale}})).active
    assert active is not None
    assert active.version == "8.2.RC1"
    assert [note.en for note in active.evidence.notes] == [f"8.0.T63 in {LATEST}/version.cfg"]


def test_paths_belong_to_installs_by_where_they_really_lie() -> None:
    host = example_context({"like": "cann-mid"}).host
    assert install_root(host, f"{LATEST}/opp") == MID
    assert install_root(host, LATEST) == MID
    assert install_root(host, f"{LATEST}/no/such/place") == MID
    assert install_root(host, f"{A}/driver/lib64") is None
    assert install_root(host, f"{A}/nnal/atb/latest/atb/cxx_abi_1/lib") is None
    assert install_root(host, "/usr/lib/python3/site-packages/te") is None
    copied = example_context(
        {"like": "bare", "files": {f"{A}/cann/opp/x": "", f"{LATEST}/x86_64-linux/lib64/x": ""}}
    ).host
    assert install_root(copied, f"{A}/cann/opp") == f"{A}/cann"  # a container image without links
    assert install_root(copied, f"{LATEST}/lib64") == LATEST
    assert resolve_existing(host, f"{LATEST}/lib64/gone") == f"{MID}/aarch64-linux/lib64/gone"


# ---------------------------------------------------------------------------------------------------- mutations


@cache
def checks() -> tuple[Any, ...]:
    every = (c for c in catalog.load().checks if c.family == "CANN" and c.status == "stable")
    return tuple(c for c in every if c.id != "CANN007")


def outcomes(data: dict[str, Any]) -> dict[str, str]:
    """The worst outcome of each check."""
    order = ("pass", "notapplicable", "unknown", "fail", "error")
    found: dict[str, str] = {}
    for finding in audit(checks(), open_context(SnapshotHost(data))):
        worst = max(found.get(finding.id, "pass"), finding.outcome.value, key=order.index)
        found[finding.id] = worst
    return found


def healthy(name: str) -> dict[str, Any]:
    return copy.deepcopy(example_data({"like": name}, shared_host))


@cache
def before(name: str) -> dict[str, str]:
    return outcomes(healthy(name))


def test_a_healthy_host_has_nothing_against_it() -> None:
    no_bank = {"CANN013": "notapplicable"}  # no job here tunes operators
    for name in ("cann-mid", "cann-new"):
        assert {k: v for k, v in before(name).items() if v != "pass"} == no_bank
    assert {k: v for k, v in before("cann-old").items() if v != "pass"} == {
        **no_bank,
        "CANN101": "unknown",  # no list, no row
        "CANN102": "notapplicable",  # operators were part of the toolkit
    }


def file(path: str, entry: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        if entry is None:
            data["files"].pop(path)
        else:
            data["files"][path] = entry

    return change


def edit(path: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        assert old in data["files"][path], path
        data["files"][path] = data["files"][path].replace(old, new)

    return change


def variable(name: str, value: str) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["environ"][name] = value

    return change


def files(*changes: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for one in changes:
            one(data)

    return change


TE = f"{SITE_OLD}/te-0.4.0.dist-info"
WHEEL = f"{OLD}/arm64-linux/fwkacllib/lib64/te-0.4.0-py3-none-any.whl"
DRIVER, FIRMWARE = f"{A}/driver/version.info", f"{A}/firmware/version.info"
INFO = f"{MID}/aarch64-linux/ascend_toolkit_install.info"
OTHER_OPP = file(f"{A}/ascend-toolkit/8.0.0/opp/version.info", "version_dir=8.0.0\n")


def package(site: str, name: str, version: str, wanted: str) -> Callable[[dict[str, Any]], None]:
    """Another version of an installed distribution."""

    def change(data: dict[str, Any]) -> None:
        folder = f"{site}/{name}-{version}.dist-info/"
        for path in [p for p in data["files"] if p.startswith(folder)]:
            text = data["files"].pop(path)
            data["files"][path.replace(f"-{version}.", f"-{wanted}.")] = text.replace(version, wanted)

    return change


MUTATIONS: list[tuple[str, str, Callable[[dict[str, Any]], None], dict[str, str]]] = [
    # one version file
    ("driver and firmware refuse each other", "cann-mid", files(
        edit(DRIVER, "[7.0.0,7.7.99]", "[7.0.0,7.1.99]"), edit(DRIVER, "package_version=25.0.rc1.1", "package_version=x"),
        edit(FIRMWARE, ",[25.0,25.0.]", "")), {"CANN006": "fail"}),
    ("firmware file gone", "cann-mid", file(FIRMWARE, None), {"CANN006": "unknown"}),
    ("firmware file closed", "cann-new", file(FIRMWARE, {"error": "EACCES"}), {"CANN006": "unknown"}),
    ("firmware file is binary", "cann-new", file(FIRMWARE, b"\x00\xff\xfe"), {"CANN006": "unknown"}),
    ("firmware file empty", "cann-old", file(FIRMWARE, ""), {"CANN006": "unknown"}),
    ("driver file gone", "cann-mid", file(DRIVER, None), {"CANN006": "unknown", "CANN101": "unknown", "CANN103": "unknown"}),
    ("driver file truncated", "cann-mid", file(DRIVER, "ascendhal_version=7.3"), {"CANN006": "unknown", "CANN101": "unknown", "CANN103": "unknown"}),
    ("driver of another time", "cann-new", edit(DRIVER, "25.3.rc1", "23.0.7"), {"CANN101": "fail", "CANN103": "fail"}),
    ("driver list names the CANN", "cann-old", file(DRIVER, "Version=21.0.2\ncompatible_version=[V100R001C78]\npackage_version=21.0.2\n"), {"CANN101": "pass"}),
    ("CANN of another release", "cann-mid", edit(INFO, "version=8.2.RC1", "version=7.0.0"), {"CANN009": "unknown", "CANN101": "unknown"}),
    ("CANN nobody knows", "cann-mid", files(edit(INFO, "version=8.2.RC1", "version=8.2.RC7"),), {"CANN009": "unknown", "CANN101": "unknown"}),
    ("stale version.cfg", "cann-mid", file(f"{LATEST}/version.cfg", "opp_running_version=[7.6.T13.0.B094:8.0.T63]\n"), {}),
    ("install info in CR LF and capitals", "cann-mid", file(INFO, "VERSION = 8.2.RC1\r\nINNERVERSION = V100R001C22SPC001B231\r\n"), {}),
    # one hash
    ("another te in the wheel", "cann-old", file(WHEEL, {"record_digest": "sha256:0"}), {"CANN003": "fail"}),
    ("another te installed", "cann-old", edit(f"{TE}/RECORD", "sha256=yv66", "sha256=zzzz"), {"CANN003": "fail"}),
    ("only metadata and bytecode differ", "cann-old", edit(f"{TE}/RECORD", "sha256=AAAA", "sha256=BBBB"), {}),
    ("te without hashes", "cann-old", file(f"{TE}/RECORD", "te/__init__.py,,\n"), {"CANN003": "unknown"}),
    ("te without a RECORD", "cann-old", file(f"{TE}/RECORD", None), {"CANN003": "unknown"}),
    ("a wheel that cannot be read", "cann-old", file(WHEEL, {"error": "EACCES"}), {"CANN003": "unknown"}),
    ("te not installed", "cann-old", files(*(file(p, None) for p in (f"{TE}/RECORD", f"{TE}/METADATA", f"{SITE_OLD}/te/__init__.py", f"{SITE_OLD}/te/tvm/__init__.py"))), {"CANN003": "fail", "CANN004": "fail"}),
    ("tvm of PyPI", "cann-mid", files(file(f"{SITE_MID}/tvm/__init__.py", ""), file(f"{SITE_MID}/apache_tvm-0.11.1.dist-info/METADATA", "Name: apache-tvm\nVersion: 0.11.1\n")), {"CANN004": "fail"}),
    ("a te that pip left behind", "cann-mid", files(file(f"{SITE_MID}/te/__init__.py", ""), file(f"{SITE_MID}/te-0.4.0.dist-info/METADATA", "Name: te\nVersion: 0.4.0\n")), {"CANN003": "fail"}),
    # one variable
    ("no ASCEND_HOME_PATH", "cann-mid", variable("ASCEND_HOME_PATH", ""), {"CANN002": "fail"}),
    ("no ASCEND_OPP_PATH", "cann-new", variable("ASCEND_OPP_PATH", ""), {"CANN002": "fail"}),
    ("OPP of another install", "cann-mid", files(OTHER_OPP, variable("ASCEND_OPP_PATH", f"{A}/ascend-toolkit/8.0.0/opp")), {"CANN002": "fail", "CANN012": "fail"}),
    ("AICPU path gone", "cann-new", variable("ASCEND_AICPU_PATH", f"{A}/cann-8.4.0"), {"CANN008": "fail", "CANN012": "fail"}),
    ("no AICPU path", "cann-old", variable("ASCEND_AICPU_PATH", ""), {"CANN008": "fail"}),
    ("no LD_LIBRARY_PATH", "cann-mid", variable("LD_LIBRARY_PATH", ""), {"CANN002": "fail", "CANN005": "fail"}),
    ("another install in front", "cann-mid", files(OTHER_OPP, variable("PATH", f"{A}/ascend-toolkit/8.0.0/opp:/usr/local/python3.10.13/bin:/usr/bin")), {"CANN012": "fail"}),
    ("the same install by another name", "cann-new", variable("ASCEND_HOME_PATH", f"{A}/cann"), {}),
    ("5.0.2 by its version directory", "cann-old", variable("ASCEND_OPP_PATH", f"{OLD}/opp"), {}),
    # one link
    ("opp links to the release before", "cann-mid", files(OTHER_OPP, file(f"{LATEST}/opp", {"link": "../8.0.0/opp"})), {"CANN001": "fail", "CANN002": "fail", "CANN008": "unknown", "CANN012": "fail"}),
    ("runtime links nowhere", "cann-mid", file(f"{LATEST}/runtime", {"link": "../8.1.RC1/runtime"}), {"CANN001": "fail"}),
    ("nnae dangles beside it", "cann-old", file(f"{A}/nnae/latest", {"link": "5.0.1"}), {"CANN001": "fail"}),
    ("the compatibility link dangles", "cann-new", file(LATEST, {"link": "../gone"}), {"CANN001": "fail"}),
    # one library
    ("libhccl.so of x86", "cann-mid", file(f"{MID}/aarch64-linux/lib64/libhccl.so", {"head": "7f454c4602010100000000000000000003003e00"}), {"CANN005": "fail"}),
    ("libhccl.so is a text", "cann-mid", file(f"{MID}/aarch64-linux/lib64/libhccl.so", "gone"), {"CANN005": "fail"}),
    ("libhccl.so gone", "cann-old", file(f"{OLD}/arm64-linux/fwkacllib/lib64/libhccl.so", None), {"CANN005": "fail"}),
    ("AICPU kernels gone", "cann-old", file(f"{OLD}/opp/op_impl/built-in/aicpu/aicpu_kernel/lib/libpt_kernels.so", None), {"CANN008": "unknown"}),
    ("set_env.sh gone", "cann-mid", file(f"{A}/ascend-toolkit/set_env.sh", None), {"CANN002": "fail"}),
    # one package
    ("torch_npu of another time", "cann-mid", package(SITE_MID, "torch_npu", "2.5.1.post1", "2.1.0"), {"CANN009": "fail"}),
    ("torch of another time", "cann-mid", package(SITE_MID, "torch", "2.5.1", "2.1.0"), {"CANN009": "fail"}),
    ("torch_npu nobody knows", "cann-mid", package(SITE_MID, "torch_npu", "2.5.1.post1", "2.5.1.post9"), {"CANN009": "unknown"}),
]  # fmt: skip


@pytest.mark.parametrize(("host", "change", "flips"), sampled([pytest.param(*m[1:], id=m[0]) for m in MUTATIONS], 4))
def test_a_mutation_flips_what_depends_on_it(
    host: str, change: Callable[[dict[str, Any]], None], flips: dict[str, str]
) -> None:
    data = healthy(host)
    change(data)
    after = outcomes(data)
    assert {key: value for key, value in after.items() if value != before(host)[key]} == flips


# ---------------------------------------------------------------------------------------------------- garbage

READ = (DRIVER, FIRMWARE, INFO, f"{LATEST}/version.cfg", f"{MID}/opp/version.info", "/etc/ascend_install.info")


@search(24)
@given(st.sampled_from(READ), st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_no_file_content_breaks_a_check(path: str, content: Any) -> None:
    data = healthy("cann-mid")
    data["files"][path] = content
    assert "error" not in outcomes(data).values()
