"""Changes of hosts for the checks of Python packages, CANN's tools, running processes and named jobs.

Each row is (host, what is changed, what is laid over the host first, what then changes, the ids that flip).
"""

from __future__ import annotations

from typing import Any, Mapping

from helpers.mutations.hosts import ATTESTED_OTHERWISE, LIMITS

B, C = "910b-openeuler2203-cann82", "container-without-driver"
U, R = "910a-ubuntu1804-mixed", "910b-ubuntu2004-residual"
A, BOUND, NET = "910a-openeuler2003-cann502", "npu-910b-bound", "npu-910b-net"
TOOLKIT = "/usr/local/Ascend/ascend-toolkit"
SITE_B = "/usr/local/python3.10.13/lib/python3.10/site-packages"
SITE_U = "/usr/local/python3.7.5/lib/python3.7/site-packages"
SITE_R = "/usr/local/python3.9/lib/python3.9/site-packages"
# which judge the machine itself
OF_METAL = "CPU001 CPU002 CPU003 CPU004 CPU005 CPU007 CPU008 CPU102 SYS005 SYS006"
NO_VECTORS = "processor\t: 0\nflags\t\t: fpu vme sse sse2\n\n"
OLD_KERNELS = 'Version=7.6.0.1.220\nversion_dir=8.0.0\nrequired_package_toolkit_version=">=7.3, <=7.6"\n'
GCC = "/usr/local/linux_gcc7.3.0"
GCC_FILES = {
    f"{GCC}/bin/gcc": {"size": 900000, "mode": "0755"},
    f"{GCC}/lib64/libstdc++.so.6": {"link": "libstdc++.so.6.0.24"},
    f"{GCC}/lib64/libstdc++.so.6.0.24": {"size": 12000000},
}
HDF5 = {"/usr/local/hdf5/bin/h5dump": {"size": 9000}, "/usr/local/hdf5/lib/libhdf5.so": {"size": 9000}}
PYTHON_36 = {
    "/usr/bin/python3": {"link": "python3.6"},
    "/usr/bin/python3.6": {"size": 9, "mode": "0755"},
    "/usr/lib/python3.6/os.py": "",
}
CONDA = "/home/li/miniconda3/envs/train"
STATUS = "Name:\tpython3\nVmSwap:\t{swap:>8} kB\nCpus_allowed_list:\t{cpus}\n"
RANKS = [
    {"pid": 1, "ppid": 0, "user": "root", "name": "systemd"},
    {"pid": 4200, "ppid": 1, "user": "li", "name": "torchrun", "argv": ["torchrun", "train.py"]},
    {"pid": 4242, "ppid": 4200, "user": "li", "name": "python3", "devices": ["/dev/davinci1"]},
    {"pid": 4243, "ppid": 4200, "user": "li", "name": "python3", "devices": ["/dev/davinci0"]},
]
MEMLOCK = "Max locked memory         {0:<20} {0:<20} bytes     \n"
IRQS = {"/sys/class/net/eth1/operstate": "up\n", "/sys/class/net/eth1/device/msi_irqs": {"dir": ["401", "402"]}}
SCRIPT = {"target": {"script": "/home/train/train.sh"}}


def script(line: str, **files: Any) -> Mapping[str, Any]:
    return {**SCRIPT, "files": {"/home/train/train.sh": line + "\n", **files}}


def installed(site: str, name: str, version: str, *lines: str) -> Mapping[str, Any]:
    path = f"{site}/{name.replace('-', '_')}-{version}.dist-info/METADATA"
    return {path: "\n".join((f"Name: {name}", f"Version: {version}", *lines, ""))}


ROWS: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], str]] = [
    # --- CANN and its tools
    (B, "the link to CANN leads nowhere", {}, {"files": {f"{TOOLKIT}/8.2.RC1": None}}, "CANN001"),
    (
        B,
        "tvm of Apache",
        {},
        {"files": {f"{SITE_B}/tvm/__init__.py": "", **installed(SITE_B, "apache-tvm", "0.14")}},
        "CANN004",
    ),
    (
        B,
        "operators of an older release",
        {},
        {
            "files": {f"{TOOLKIT}/8.2.RC1/opp_kernel/version.info": OLD_KERNELS},
        },
        "CANN102",
    ),
    (
        A,
        "operators before the release with faster ones",
        {},
        {"files": {f"{TOOLKIT}/5.0.2/opp/op_impl/built-in/ai_core/tbe/impl/five_2_four.py": {"size": 60000}}},
        "CANN010",
    ),
    (
        B,
        "msaccucmp installed",
        {},
        {"files": {f"{TOOLKIT}/8.2.RC1/tools/operator_cmp/compare/msaccucmp.py": {"size": 9}}},
        "CANN011 CANN106",
    ),
    (
        B,
        "the transplant tool installed",
        {},
        {"files": {f"{TOOLKIT}/8.2.RC1/tools/ms_fmk_transplt": {"dir": []}}},
        "CANN014 CANN106",
    ),
    (B, "atc installed", {}, {"files": {f"{TOOLKIT}/8.2.RC1/bin/atc": {"size": 9}}}, "CANN016 CANN106"),
    (B, "h5copy installed", {}, {"files": {"/usr/bin/h5copy": {"size": 9}}}, "BLD005 CANN106"),
    (
        B,
        "hdf5 of another release",
        {"files": {"/usr/local/hdf5/lib/libhdf5.settings": "  HDF5 Version: 1.10.7\n"}},
        {"files": {"/usr/local/hdf5/lib/libhdf5.settings": "  HDF5 Version: 1.12.0\n"}},
        "BLD004",
    ),
    (
        B,
        "NNAL of another CANN",
        {},
        {"files": {"/usr/local/Ascend/nnal/atb/latest/version.info": "Ascend-cann-atb : 8.0.T63\n"}},
        "PY113",
    ),
    # --- search paths
    (B, "the runtime of a gcc that was built", {}, {"files": GCC_FILES}, "ENV011"),
    (B, "hdf5 without its paths", {}, {"files": HDF5}, "ENV012"),
    # --- Python
    (R, "another pip comes first", {}, {"files": {"/usr/local/python3.9/bin/pip3": "#!/usr/bin/python3\n"}}, "PY002"),
    (
        U,
        "apex as on GPUs",
        {},
        {
            "files": {
                f"{SITE_U}/apex/optimizers/npu_fused_sgd.py": None,
                f"{SITE_U}/apex/optimizers/__init__.py": "from .fused_sgd import FusedSGD\n",
            }
        },
        "PY005 PY007",
    ),
    (
        U,
        "apex.amp as on GPUs",
        {},
        {"files": {f"{SITE_U}/apex/amp/frontend.py": "def initialize(models):\n    pass\n"}},
        "PY006",
    ),
    (B, "no fused optimizer", {}, {"files": {f"{SITE_B}/torch_npu/optim/__init__.py": ""}}, "PY007"),
    (U, "no interface for dumps", {}, {"files": {f"{SITE_U}/torch/utils/dumper.py": None}}, "PY008"),
    (U, "mmdet comes in addition", {}, {"files": {f"{SITE_U}/mmdet/__init__.py": ""}}, "PY009"),
    (U, "no affinity library", {}, {"files": {f"{SITE_U}/torch/contrib/npu/optimized_lib/__init__.py": None}}, "PY010"),
    (B, "what an interrupted pip left", {}, {"files": installed(SITE_B, "~orch", "2.5.1")}, "PY101"),
    (
        B,
        "an old decorator",
        {},
        {"files": {f"{SITE_B}/decorator-5.1.1.dist-info/METADATA": None, **installed(SITE_B, "decorator", "4.3.2")}},
        "PY103",
    ),
    (B, "packages for CUDA", {}, {"files": installed(SITE_B, "flash-attn", "2.5.8")}, "PY107"),
    (
        B,
        "a bundled libgomp",
        {},
        {"files": {f"{SITE_B}/scikit_learn.libs/libgomp-d22c30c5.so.1.0.0": {"size": 9}}},
        "PY112",
    ),
    (
        B,
        "vllm-ascend for another torch_npu",
        {},
        {"files": installed(SITE_B, "vllm-ascend", "0.11.0", "Requires-Dist: torch-npu==2.7.1")},
        "PY114",
    ),
    (
        B,
        "triton installed over the triton-ascend that requires it",
        {
            "files": {
                **installed(SITE_B, "triton-ascend", "3.2.1", "Requires-Dist: triton==3.5.0"),
                **installed(SITE_B, "triton", "3.5.0"),
                f"{SITE_B}/triton_ascend-3.2.1.dist-info/RECORD": "triton/_C/libtriton.so,sha256=abc,98304000\n",
                f"{SITE_B}/triton/_C/libtriton.so": {"size": 98304000},
            }
        },
        {"files": {f"{SITE_B}/triton/_C/libtriton.so": {"size": 170000000}}},
        "PY106",
    ),
    (
        "npu-910b-8",
        "torch in another Python",
        {"environ": {"PATH": "/usr/bin", "HOME": "/home/li"}, "files": PYTHON_36},
        {
            "files": {
                f"{CONDA}/bin/python3": {"size": 12000, "mode": "0755"},
                f"{CONDA}/lib/python3.10/os.py": "",
                f"{CONDA}/lib/python3.10/site-packages/torch/__init__.py": "",
            }
        },
        "PY001",
    ),
    # --- images
    (
        R,
        "pillow in place of pillow-simd",
        {},
        {"files": {f"{SITE_R}/PIL/_version.py": '__version__ = "9.5.0"\n'}},
        "IMG001",
    ),
    (R, "a CPU without vectors", {}, {"files": {"/proc/cpuinfo": NO_VECTORS}}, "IMG001 IMG002"),
    (
        R,
        "a package for building removed",
        {},
        {"files": {"/var/lib/dpkg/status": "Package: zlib1g-dev\nStatus: install ok installed\n"}},
        "IMG003",
    ),
    (
        U,
        "an old torchvision",
        {},
        {
            "files": {
                f"{SITE_U}/torchvision/__init__.py": "",
                f"{SITE_U}/torchvision/transforms/functional.py": "from PIL import Image, PILLOW_VERSION\n",
            }
        },
        "IMG004",
    ),
    (R, "pillow beside pillow-simd", {}, {"files": installed(SITE_R, "Pillow", "9.5.0")}, "IMG007"),
    # --- the machine
    (
        B,
        "another architecture",
        {},
        {"uname": {"nodename": "node17", "release": "5.10.0", "machine": "loongarch64"}},
        "CANN005 CANN104 CPU007 SYS001",
    ),
    (U, "another server", {}, {"files": {"/sys/class/dmi/id/product_name": "PowerEdge R740\n"}}, "SYS004"),
    (
        B,
        "a virtual machine",
        {},
        {"files": {"/sys/class/dmi/id/product_name": "OpenStack Nova\n"}},
        f"SYS008 {OF_METAL}",
    ),
    (
        U,
        "the BIOS attested",
        {},
        {
            "files": {"/etc/envtune/attestations.json": ATTESTED_OTHERWISE},
        },
        "CPU006",
    ),
    (
        B,
        "a deep idle state",
        {},
        {
            "files": {
                f"/sys/devices/system/cpu/cpu0/cpuidle/state1/{n}": t
                for n, t in (("name", "C6\n"), ("latency", "133\n"), ("disable", "0\n"))
            }
        },
        "CPU107",
    ),
    (
        B,
        "irqbalance stopped before the network came up",
        {
            "files": {
                **IRQS,
                "/proc/irq/401/effective_affinity_list": "3\n",
                "/proc/irq/402/effective_affinity_list": "4\n",
            }
        },
        {"files": {"/proc/irq/402/effective_affinity_list": "3\n"}},
        "CPU108",
    ),
    (
        B,
        "logs fill the disk",
        {"files": {"/root/ascend/log": {"dir": None, "tree_size": "bytes:9000 files:9 complete"}}},
        {"files": {"/root/ascend/log": {"dir": None, "tree_size": "bytes:900000000000 files:4096 partial"}}},
        "LOG101",
    ),
    (
        B,
        "little memory may be locked",
        {},
        {"files": {"/proc/self/limits": LIMITS.format(files=65536, locked=65536)}},
        "SYS114",
    ),
    # --- containers
    (
        C,
        "a quota of two CPUs",
        {},
        {"files": {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "200000 100000\n"}},
        "CPU104 CTR009",
    ),
    (
        C,
        "npu-smi without its library",
        {},
        {
            "commands": {
                "npu-smi info": {
                    "rc": 127,
                    "stderr": "npu-smi: error while loading shared libraries: libdcmi.so: cannot open shared object\n",
                }
            }
        },
        "CANN105 CTR006",
    ),
    # --- running processes
    (BOUND, "far from its NPU", {}, {"files": {"/proc/4242/status": STATUS.format(swap=0, cpus="0-23")}}, "PROC101"),
    (BOUND, "in swap", {}, {"files": {"/proc/4242/status": STATUS.format(swap=2097152, cpus="168-191")}}, "PROC102"),
    (
        BOUND,
        "two ranks on one CPU",
        {
            "processes": RANKS,
            "files": {f"/proc/{n}/status": STATUS.format(swap=0, cpus=c) for n, c in ((4242, "168"), (4243, "144"))},
        },
        {"files": {"/proc/4243/status": STATUS.format(swap=0, cpus="168")}},
        "PROC101 PROC103",
    ),
    (
        BOUND,
        "its binding without effect",
        {},
        {"files": {"/proc/4242/status": STATUS.format(swap=0, cpus="0-191")}},
        "PROC104",
    ),
    (
        BOUND,
        "may lock little memory",
        {"files": {"/proc/4242/limits": MEMLOCK.format("unlimited")}},
        {"files": {"/proc/4242/limits": MEMLOCK.format("65536")}},
        "PROC105",
    ),
    (
        R,
        "the queue off in a running process",
        {},
        {"files": {"/proc/4321/environ": "PATH=/usr/bin\0TASK_QUEUE_ENABLE=0\0LOCAL_RANK=2\0"}},
        "ENV016",
    ),
    # --- named jobs and their network
    (
        B,
        "more workers than CPUs",
        script("python3 main.py --workers 8"),
        script("python3 main.py --workers 999"),
        "SYS010",
    ),
    (
        B,
        "checkpoints in memory",
        script("python3 t.py --save /home/ckpt"),
        script("python3 t.py --save /dev/shm/ckpt"),
        "CFG101",
    ),
    (
        NET,
        "an address that the device lacks",
        {},
        {
            "commands": {
                "/usr/local/Ascend/driver/tools/hccn_tool -i 3 -ip -g": "ipaddr:192.168.100.99\nnetmask:255.255.255.0\n"
            }
        },
        "NET113",
    ),
    (
        "net",
        "an address of another host",
        {"environ": {"HCCL_IF_IP": "192.0.2.10"}},
        {"environ": {"HCCL_IF_IP": "192.0.2.99"}},
        "NET101",
    ),
]
