"""What the Python, torch and image checks read: the job's Python, what is installed in it, and other Pythons."""

import os
import re
from typing import Any, List, Mapping, Sequence, Set

from ..glob import is_there
from ..python.distributions import distribution_of, import_path, python_includes, system_includes
from ..python.interpreter import describe_interpreter, find_interpreter, holds_torch, other_interpreters, pip_commands
from ..python.wrappers import script_interpreter
from .cann import TE_PACKAGES
from .images import BUILD_HEADERS, DPKG_STATUS, PILLOW_BUILD_QUERY, RECORDED_PILLOW_FILES
from .tables import quietly, record_command

RECORDED_DISTRIBUTIONS = (
    "torch", "torch-npu", "torchvision", "apex", "pillow", "pillow-simd", "opencv-python", "opencv-python-headless",
    "opencv-contrib-python", "opencv-contrib-python-headless", "te", "topi", "hccl", "numpy", "mmcv", "mmcv-full",
    "mmdet", "envtune", "torchaudio", "triton-ascend", "vllm-ascend",
)  # fmt: skip
TRITON_LIBRARY = "triton/_C/libtriton.so"  # of triton and of triton-ascend, each with its own backends
LOCATED_MODULES = ("torch", "torch_npu", "torchvision", "apex", "PIL", "cv2", "te", "topi", "tvm", "hccl", "mmcv",
                   "mmdet", "pip")  # fmt: skip
RECORDED_FILES = (
    "PIL/__init__.py", "PIL/_version.py", "PIL/version.py", "cv2/version.py", "torch/version.py",
    "torch_npu/version.py", "torchvision/version.py", "torchvision/transforms/functional.py", "apex/amp/frontend.py",
    "apex/optimizers/__init__.py", "torch_npu/optim/__init__.py",
)  # fmt: skip
# Below a directory of the import path; libraries whose C and C++ runtime requirements are recorded, and the runtimes.
RUNTIME_LIBRARIES = ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch_npu/lib/libtorch_npu.so")
LIBC, LIBSTDCXX = "libc.so.6", "libstdc++.so.6"
RUNTIME_DIRECTORIES = (
    "/lib/{arch}-linux-gnu", "/usr/lib/{arch}-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
)  # fmt: skip
BUNDLED_OPENMP = "*.libs/libgomp*.so*"  # where auditwheel puts the libraries bundled in a wheel
HOOKED_FILE = "torch/nn/modules/module.py"  # 40 KB, read only if mmcv or mmdet is used with an old torch
RECORDED_PLACES = (
    "torch/__init__.py", "torch/npu/__init__.py", "torch/npu/amp/__init__.py", "torch/utils/dumper.py",
    "torch/contrib/npu/optimized_lib/__init__.py", "torch_npu/npu/amp/__init__.py", "torch_npu/contrib/__init__.py",
    "apex/optimizers/npu_fused_sgd.py", "apex/amp/__init__.py", "te/__init__.py", "topi/__init__.py",
    "hccl/__init__.py", "cv2/__init__.py", "torchvision/__init__.py", "mmcv/__init__.py", "mmdet/__init__.py",
    "apex/__init__.py", "torch_npu/__init__.py", "PIL/Image.py", "PIL/ImageFile.py",
)  # fmt: skip


def record_python(recorder: Any) -> None:
    """Record what the Python, torch and image checks read of the job's Python, and which others have torch."""
    variables, cwd = recorder.variables, recorder.cwd
    named, pid = recorder.target.get("python") or "", recorder.target.get("pid")
    with recorder.following(*[os.path.join(cwd, named)] if named else []):
        python = find_interpreter(recorder, variables, cwd, named, pid)
        quietly(_record_environment, recorder, python)
    quietly(_record_commands, recorder, python["version"])
    quietly(recorder.read_bytes, DPKG_STATUS)
    record_command(recorder, PILLOW_BUILD_QUERY)
    for path in other_interpreters(recorder, variables, cwd):
        quietly(_record_other, recorder, path)


def _record_other(recorder: Any, path: str) -> None:
    with recorder.following(path):
        holds_torch(recorder, describe_interpreter(recorder, recorder.variables, recorder.cwd, path)["sites"])


def _record_commands(recorder: Any, version: str) -> None:
    """Record which Python each pip on PATH belongs to."""
    for _, path in pip_commands(recorder, recorder.variables, recorder.cwd, version):
        interpreter = script_interpreter(recorder, recorder.variables, recorder.cwd, path)
        if interpreter is not None:
            quietly(_record_other, recorder, interpreter)


def _record_environment(recorder: Any, python: Mapping[str, Any]) -> None:
    """Record the import path of the job's Python, and what is needed to build for it."""
    entries, _ = import_path(recorder, recorder.variables, recorder.cwd, python["sites"])
    for folder in dict.fromkeys([recorder.cwd, _working_directory(recorder)] + entries):
        for name in ("torch", "torch/__init__.py", "torch.py"):
            quietly(recorder.stat, os.path.join(folder, name))
        quietly(recorder.listdir, os.path.join(folder, "torch"))
    for entry in entries:
        quietly(_record_entry, recorder, entry)
    folders = system_includes(python["prefix"], recorder.uname["machine"])
    headers = [folder + "/" + header for header in BUILD_HEADERS for folder in folders]
    headers += [folder + "/Python.h" for folder in python_includes(python["real"], python["version"])]
    for path in headers:
        quietly(recorder.stat, path)
    _record_rights(recorder, python)
    quietly(_record_runtime, recorder, python, entries)


def _record_runtime(recorder: Any, python: Mapping[str, Any], entries: Sequence[str]) -> None:
    """Record which C and C++ runtimes torch's libraries need, which are present, and what is preloaded."""
    folders = [folder.rstrip("/") for folder in recorder.variables.get("LD_LIBRARY_PATH", "").split(":")]
    folders = [folder for folder in folders if folder.startswith("/")]
    folders += [folder.format(arch=recorder.uname["machine"]) for folder in RUNTIME_DIRECTORIES]
    if python["kind"] == "conda":
        folders.append(python["prefix"].rstrip("/") + "/lib")
    for entry in entries:
        for name in RUNTIME_LIBRARIES:
            quietly(recorder.runtime_versions, entry + "/" + name)
        recorder.glob(entry + "/" + BUNDLED_OPENMP)
    for folder in dict.fromkeys(folders):
        for name in (LIBC, LIBSTDCXX):
            quietly(recorder.runtime_versions, folder + "/" + name)
    for path in re.split(r"[\s:]+", recorder.variables.get("LD_PRELOAD", "")):
        if path.startswith("/"):
            quietly(recorder.stat, os.path.normpath(path))


def _working_directory(recorder: Any) -> str:
    """Return the working directory of the named process, which is on its import path; without one, the recorder's."""
    pid = recorder.target.get("pid")
    try:
        return str(recorder.cwd if pid is None else recorder.readlink("/proc/%d/cwd" % pid))
    except OSError:
        return str(recorder.cwd)


def _record_rights(recorder: Any, python: Mapping[str, Any]) -> None:
    """Record who may install into this Python, and what starts it."""
    prefix, version = python["prefix"].rstrip("/"), python["version"]
    for lib in ("lib", "lib64"):
        quietly(recorder.stat, "%s/%s/python%s/EXTERNALLY-MANAGED" % (prefix, lib, version))
    for name in ("python", "python3", "python" + version):
        quietly(recorder.stat, "%s/bin/%s" % (prefix, name))
    if python["kind"] == "conda":
        quietly(recorder.listdir, prefix + "/conda-meta")


def _record_entry(recorder: Any, entry: str) -> None:
    """Record what the checks read below one directory of the import path."""
    names = recorder.listdir(entry)
    for name in names:
        _record_metadata(recorder, entry, name)
    _record_modules(recorder, entry, set(names))


def _record_modules(recorder: Any, entry: str, tops: Set[str]) -> None:
    """Record the location of modules, and the files that contain their versions; `tops` are the names in `entry`."""

    def below(paths: Sequence[str]) -> List[str]:
        return [entry + "/" + path for path in paths if path.split("/")[0] in tops]

    for path in below(LOCATED_MODULES):
        quietly(recorder.stat, path)
        if not is_there(recorder, path + "/__init__.py"):
            quietly(recorder.listdir, path)  # left behind by uninstalling, or a namespace package
    for path in below(RECORDED_FILES):
        quietly(recorder.read_bytes, path)
    if tops & {"mmcv", "mmdet"} and "torch" in tops:
        quietly(recorder.read_bytes, entry + "/" + HOOKED_FILE)
    for path in below(RECORDED_PLACES):
        quietly(recorder.stat, path)
    if "PIL" in tops:
        quietly(_record_pillow, recorder, entry)


def _record_pillow(recorder: Any, entry: str) -> None:
    for name in recorder.listdir(entry + "/PIL"):
        if re.match(RECORDED_PILLOW_FILES, "PIL/" + name):
            quietly(recorder.stat, entry + "/PIL/" + name)


def _record_metadata(recorder: Any, entry: str, name: str) -> None:
    """Record the metadata of a distribution that checks ask about, and the finder of an editable one."""
    distribution, _ = distribution_of(name) or ("", "")
    path = entry + "/" + name
    if distribution in RECORDED_DISTRIBUTIONS:
        for part in ("/METADATA", "/PKG-INFO", ""):
            quietly(recorder.read_bytes, path + part)
        if distribution == "triton-ascend":
            quietly(recorder.stat, entry + "/" + TRITON_LIBRARY)
        if distribution in ("pillow", "pillow-simd", "triton-ascend"):
            quietly(recorder.read_bytes, path + "/RECORD")
        if distribution in TE_PACKAGES and name.endswith(".dist-info"):
            quietly(recorder.record_digest, path + "/RECORD")
    if re.match(r"__editable___.*_finder\.py$", name):
        quietly(recorder.read_bytes, path)
