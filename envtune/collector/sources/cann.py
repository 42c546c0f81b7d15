"""What the CANN checks read: where CANN is installed, and the parts of an install that matter.

Sources: vendor installation guide (CANN 8.0 and 8.5, "File paths"); public listings of CANN 5.1-9.1; set_env.sh of CANN
5.1-8.5; porting guide 003:1567, 2688, 3002, 3048, 3285, 3297.
"""

import os
import re
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

from ..glob import is_there
from .tables import Table, quietly, read_matches, stat_matches

CANN_BASE = "/usr/local/Ascend"
# What set_env.sh sets, single paths and lists. Before 5.0.4 launch scripts set the same without ASCEND_HOME_PATH.
INSTALL_VARIABLES = (
    "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "TOOLCHAIN_HOME",
)  # fmt: skip
SEARCH_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONPATH", "PATH")
INSTALL_INFO = "Ascend/ascend_cann_install.info"  # below /etc or a home
DRIVER_INFO = "/etc/ascend_install.info"
ATB_VERSION = CANN_BASE + "/nnal/atb/latest/version.info"
CANN = Table(
    files=(
        "/etc/Ascend/*",
        DRIVER_INFO,
        ATB_VERSION,
        CANN_BASE + "/driver/version.info",
        CANN_BASE + "/firmware/version.info",
    ),
    stats=(CANN_BASE + "/*",),
    listings=(CANN_BASE,),
)
# Below a base such as /usr/local/Ascend.
INSTALL_ROOTS = ("ascend-toolkit/*", "nnae/*", "cann", "cann-*", "latest")
# Below an install: files whose content is kept, and files whose existence is.
INSTALL_FILES = (
    "version.cfg",
    "ascend_*_install.info",
    "*-linux*/ascend_*_install.info",
    "share/info/*/version.info",
    "compiler/version.info",
    "fwkacllib/version.info",
    "opp/version.info",
    "opp_kernel/version.info",
    "runtime/version.info",
    "toolkit/version.info",
)
TE_PACKAGES = ("te", "topi", "hccl")
TE_WHEEL_PLACES = ("fwkacllib/lib64", "*-linux*/lib64", "*-linux*/fwkacllib/lib64", "lib64", "compiler/lib64")
TE_TREE_PLACES = ("python/site-packages", "*-linux*/python/site-packages", "compiler/python/site-packages")
INSTALL_STATS = (
    "*",
    "*-linux*/lib64",
    "bin/setenv.bash",
    "fwkacllib/lib64",
    "share/info",
) + tuple(place + "/" + name for name in TE_PACKAGES for place in TE_TREE_PLACES)
# Where set_env.sh and the guide look for a tool, below an install; and those of other packages. Each tool exists once.
TOOL_PLACES = {
    "aoe": ("bin/aoe", "tools/aoe/bin/aoe", "*-linux*/bin/aoe", "fwkacllib/bin/aoe"),
    "atc": ("bin/atc", "compiler/bin/atc", "*-linux*/bin/atc", "atc/bin/atc", "fwkacllib/bin/atc"),
    "msprof": ("bin/msprof", "tools/profiler/bin/msprof", "toolkit/tools/profiler/bin/msprof"),
    "msaccucmp": (
        "tools/operator_cmp/compare/msaccucmp.py*",
        "toolkit/tools/operator_cmp/compare/msaccucmp.py*",
        "*-linux*/toolkit/tools/operator_cmp/compare/msaccucmp.py*",
    ),
    "ms_fmk_transplt": (
        "tools/ms_fmk_transplt",
        "toolkit/tools/ms_fmk_transplt",
        "*-linux*/toolkit/tools/ms_fmk_transplt",
    ),
}
FIXED_TOOLS = {
    "npu-smi": ("/usr/local/sbin/npu-smi", "/usr/local/bin/npu-smi", "/usr/bin/npu-smi", "/usr/sbin/npu-smi"),
    "hccn_tool": (CANN_BASE + "/driver/tools/hccn_tool", "/usr/bin/hccn_tool", "/usr/local/bin/hccn_tool"),
    "h5copy": ("/usr/local/hdf5/bin/h5copy", "/usr/bin/h5copy", "/usr/local/bin/h5copy"),
}
# The operators of the release with faster TransData (porting guide 001:75), before CANN 5.0.4.
OPERATOR_PLACES = ("opp/op_impl/built-in/ai_core/tbe/impl", "ops/op_impl/built-in/ai_core/tbe/impl")
OPERATOR_FILES = ("five_2_four.py", "trans_data_negative_target_tc.py", "trans_data_common_func.py")
HCCL_LIBRARY = "libhccl.so"
# Its location in each generation's tree. Source: porting guide 003:3002 and facts on fwkacllib/lib64, lib64.
HCCL_PLACES = ("fwkacllib/lib64", "lib64", "hccl/lib64", "*-linux*/lib64", "*-linux*/fwkacllib/lib64")
DRIVER_LIBRARY = "libascend_hal.so"
# Below <base>/driver. Source: the driver's installer, which lists them in /etc/ld.so.conf.d/ascend_driver_so.conf.
DRIVER_LIBRARY_PLACES = ("lib64/driver", "lib64", "lib64/common")
# Where the operator package keeps its AICPU kernels. Source: the path names in the source of CANN's AICPU engine
# (ops/op_impl and opp/built-in/op_impl), the message of porting guide 003:3285 (aicpu_kernels/).
AICPU_PLACES = (
    "opp/op_impl/built-in/aicpu",
    "opp/built-in/op_impl/aicpu",
    "ops/op_impl/built-in/aicpu",
    "opp/aicpu",
    "aicpu_kernels",
)
AICPU_DEPTH = ("", "aicpu_kernel/", "aicpu_kernel/lib/", "aicpu_kernel/lib/*/", "*/", "*/*/", "*/*/*/")
AICPU_KERNELS = "libpt_kernels.so"
# The archives in which the kernels are sent to the device. Source: container build files of Ascend's own documentation
# (opp/Ascend/aicpu/Ascend-aicpu_syskernels.tar.gz), installer of the operator package (opp/Ascend310/aicpu).
AICPU_ARCHIVE_PLACES = ("opp/Ascend*/aicpu", "Ascend*/aicpu")
AICPU_ARCHIVES = "*aicpu*kernels.tar.gz"
LOADER_CONF = "/etc/ld.so.conf"
LOADER_CONF_DEPTH = 4  # includes of includes
LOADER_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/{arch}-linux-gnu", "/usr/lib/{arch}-linux-gnu")


def record_cann(recorder: Any) -> None:
    """Record the CANN installs, driver and firmware, the loader's directories, and the targets of variables."""
    entries = []
    for name in INSTALL_VARIABLES + SEARCH_VARIABLES:
        entries += [entry for entry in recorder.variables.get(name, "").split(":") if entry.startswith("/")]
    for entry in dict.fromkeys(entries):
        quietly(recorder.stat, entry)
    quietly(_record_driver, recorder)
    if recorder.variables.get("ATB_HOME_PATH", "").startswith("/"):
        quietly(recorder.read_bytes, os.path.normpath(recorder.variables["ATB_HOME_PATH"] + "/../../version.info"))
    roots = [os.path.join(base, root) for base in _bases(recorder, entries) for root in INSTALL_ROOTS]
    for root in roots + _unusual_roots(recorder, entries):
        if recorder.glob(root):
            _record_install(recorder, root)
    _record_loader(recorder, entries)


def _record_driver(recorder: Any) -> None:
    """Record driver and firmware in their default location and where the installer recorded them."""
    stat_matches(recorder, [path for paths in FIXED_TOOLS.values() for path in paths])
    try:
        noted = key_values(recorder.read(DRIVER_INFO))
    except OSError:
        noted = {}
    for kind in ("driver", "firmware"):
        for base in (CANN_BASE, noted.get(kind + "_install_path_param", "").rstrip("/")):
            if base.startswith("/"):
                quietly(recorder.stat, base + "/driver")
                quietly(recorder.read_bytes, "%s/%s/version.info" % (base, kind))
                _record_driver_library(recorder, base + "/driver")


def _record_driver_library(recorder: Any, home: str) -> None:
    for place in DRIVER_LIBRARY_PLACES:
        quietly(recorder.stat, home + "/" + place)
        recorder.glob("%s/%s/%s" % (home, place, DRIVER_LIBRARY))
        quietly(recorder.head, "%s/%s/%s" % (home, place, DRIVER_LIBRARY))


def key_values(text: str) -> Dict[str, str]:
    """Return the `key=value` (or `key : value`) lines of a version or installer file, keys in lower case.

    The first of several wins, comments and other lines are skipped, quotes around a value are removed.
    """
    values: Dict[str, str] = {}
    for line in text.lstrip("\ufeff").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        cut = min((line.index(mark) for mark in "=:" if mark in line), default=-1)
        if cut > 0:
            values.setdefault(line[:cut].strip().lower(), line[cut + 1 :].strip().strip("\"'"))
    return values


def install_bases(host: Any, homes: Sequence[str]) -> List[str]:
    """Return the directories that contain installs: the default, the users' own, and those the installer recorded."""
    homes = [home.rstrip("/") for home in homes if home.startswith("/")]
    bases = [CANN_BASE] + [home + "/Ascend" for home in homes]
    for folder in ["/etc"] + homes:
        try:
            noted = key_values(host.read(folder + "/" + INSTALL_INFO))
        except OSError:
            continue
        bases += [value for key, value in noted.items() if "path" in key and value.startswith("/")]
    return list(dict.fromkeys(re.sub(r"/(ascend-toolkit|nnae)(/latest)?$", "", b.rstrip("/")) or "/" for b in bases))


def _bases(recorder: Any, entries: Sequence[str]) -> List[str]:
    """Return `install_bases` and the directories of installs that variables name; record their listings."""
    bases = install_bases(recorder, [recorder.variables.get("HOME", ""), recorder.environ.get("HOME", "")])
    for entry in entries:
        install = re.match(r"(.*?)/(?:(?:ascend-toolkit|nnae)/[^/]+|cann-[^/]+|cann)(?:/|$)", entry)
        if install and install.group(1):
            bases.append(install.group(1))
    bases = list(dict.fromkeys(bases))
    for base in bases:
        for folder in ("", "ascend-toolkit", "nnae"):
            quietly(recorder.listdir, os.path.join(base, folder))
    return bases


def _unusual_roots(recorder: Any, entries: Sequence[str]) -> List[str]:
    """Return installs outside version directories: /usr/local/Ascend itself before CANN 20.1, and copies elsewhere."""
    roots = []
    for entry in [CANN_BASE + "/opp"] + list(entries):
        folder = entry
        for _ in range(6):
            folder = os.path.dirname(folder)
            if folder != "/" and is_there(recorder, folder + "/fwkacllib/lib64"):
                roots.append(folder)
    return list(dict.fromkeys(roots))


def _record_install(recorder: Any, root: str) -> None:
    """Record what the checks read below the installs that match `root`."""
    read_matches(recorder, [root + "/" + name for name in INSTALL_FILES])
    stat_matches(recorder, [root + "/" + name for name in INSTALL_STATS])
    stat_matches(recorder, [root + "/" + place for places in TOOL_PLACES.values() for place in places])
    for place in OPERATOR_PLACES:
        stat_matches(recorder, [root + "/" + place])
        stat_matches(recorder, ["%s/%s/%s%s" % (root, place, d, f) for d in ("", "dynamic/") for f in OPERATOR_FILES])
    for place in HCCL_PLACES:
        _keep_heads(recorder, "%s/%s/%s" % (root, place, HCCL_LIBRARY))
    _record_aicpu(recorder, root)
    for name in TE_PACKAGES:
        for place in TE_WHEEL_PLACES:
            for path in recorder.glob("%s/%s/%s-*.whl" % (root, place, name)):
                quietly(recorder.record_digest, path)
        for place in TE_TREE_PLACES:
            for path in recorder.glob("%s/%s/%s-*.dist-info" % (root, place, name)):
                quietly(recorder.record_digest, path + "/RECORD")


def _keep_heads(recorder: Any, pattern: str) -> None:
    for path in recorder.glob(pattern):
        quietly(recorder.head, path)


def _record_aicpu(recorder: Any, root: str) -> None:
    """Record which AICPU kernels there are, as libraries and in archives."""
    for place in AICPU_PLACES:
        recorder.glob(root + "/" + place)
        for depth in AICPU_DEPTH:
            recorder.glob("%s/%s/%s%s" % (root, place, depth, AICPU_KERNELS))
    for place in AICPU_ARCHIVE_PLACES:
        recorder.glob(root + "/" + place)
        recorder.glob("%s/%s/%s" % (root, place, AICPU_ARCHIVES))


def _record_loader(recorder: Any, entries: Sequence[str]) -> None:
    """Record ld.so.conf with what it includes, and the libraries that are asked for in every directory searched."""
    folders = list(entries) + _conf_directories(recorder, LOADER_CONF, LOADER_CONF_DEPTH, set())
    for library in (HCCL_LIBRARY, DRIVER_LIBRARY):
        for folder in dict.fromkeys(folders):
            quietly(recorder.head, folder + "/" + library)
        for folder in LOADER_DIRECTORIES:
            _keep_heads(recorder, folder.format(arch="*") + "/" + library)


def _conf_directories(recorder: Any, path: str, depth: int, seen: Set[str]) -> List[str]:
    if path in seen:
        return []
    seen.add(path)
    try:
        text = recorder.read(path)
    except OSError:
        return []
    folders: List[str] = []
    for kind, value in loader_conf(text):
        if kind == "directory":
            folders.append(value)
        elif depth > 0:
            for file in recorder.glob(os.path.join(os.path.dirname(path), value)):
                folders += _conf_directories(recorder, file, depth - 1, seen)
    return folders


def loader_conf(text: str) -> Iterator[Tuple[str, str]]:
    """Yield (`directory` or `include`, path) of each line of ld.so.conf(5); `hwcap` lines and comments are skipped."""
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        include = re.match(r"include\s+(.+)", line)
        if include:
            for pattern in include.group(1).split():
                yield "include", pattern
        elif line.startswith("/"):
            for part in re.split(r"[:,\s]+", line):
                if part.startswith("/"):
                    yield "directory", part.partition("=")[0].rstrip("/")
