"""The snapshot of a large training server is small enough to be pasted into an issue: at most 40 KB.

The server is made of files below a directory: 192 cores with one frequency policy each, 8 NPUs, CANN, a Python with 150
distributions, 3,000 processes, 200 listeners and a rule set. Names, versions and texts are drawn at random with a fixed
seed where a real host would have random ones (hashes, sizes), so that they compress as badly as real ones.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any, Optional, Sequence

import pytest
from helpers.examples import SHARED
from helpers.yaml_text import load_yaml

from envtune.collector.excerpts import excerpt
from envtune.collector.machine import Machine
from envtune.collector.snapshot import pack, take
from envtune.snapshot.open import open_snapshot

CORES, NPUS, DISTRIBUTIONS = 192, 8, 150
LIMIT = 40 * 1024
# proc_pid_limits(5), as a kernel of 2024 prints it.
LIMITS = "".join(
    f"{name:<26}{soft:<21}{hard:<21}{unit:<10}\n"
    for name, soft, hard, unit in (
        ("Limit", "Soft Limit", "Hard Limit", "Units"),
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max data size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "0", "unlimited", "bytes"),
        ("Max resident set", "unlimited", "unlimited", "bytes"),
        ("Max processes", "4127422", "4127422", "processes"),
        ("Max open files", "65536", "1048576", "files"),
        ("Max locked memory", "8388608", "8388608", "bytes"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
        ("Max file locks", "unlimited", "unlimited", "locks"),
        ("Max pending signals", "4127422", "4127422", "signals"),
        ("Max msgqueue size", "819200", "819200", "bytes"),
        ("Max nice priority", "0", "0", ""),
        ("Max realtime priority", "0", "0", ""),
        ("Max realtime timeout", "unlimited", "unlimited", "us"),
    )
)
SITE = "usr/local/python3.10/lib/python3.10/site-packages"
CANN = "usr/local/Ascend/ascend-toolkit"


def write(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, "utf-8")


def make_kernel(root: Path, chance: random.Random) -> None:
    for cpu in range(CORES):
        folder = f"sys/devices/system/cpu/cpufreq/policy{cpu}"
        for name, text in (
            ("affected_cpus", f"{cpu}\n"),
            ("related_cpus", f"{cpu}\n"),
            ("scaling_governor", "performance\n"),
            ("scaling_driver", "acpi-cpufreq\n"),
            ("scaling_available_governors", "conservative ondemand userspace powersave performance schedutil \n"),
            ("scaling_cur_freq", f"{chance.randrange(1500000, 3700000)}\n"),
            ("scaling_max_freq", "3700000\n"),
            ("scaling_min_freq", "1500000\n"),
            ("cpuinfo_max_freq", "3700000\n"),
            ("cpuinfo_min_freq", "1500000\n"),
        ):
            write(root, f"{folder}/{name}", text)
    for card in range(4):  # up, with more queues than are recorded
        write(root, f"sys/class/net/enp{card}s0f0/operstate", "up\n")
        for number in range(64):
            queue = 1000 + 100 * card + number
            write(root, f"sys/class/net/enp{card}s0f0/device/msi_irqs/{queue}", "msix\n")
            write(root, f"proc/irq/{queue}/effective_affinity_list", f"{chance.randrange(CORES)}\n")
    flags = " ".join(f"flag{number}" for number in range(140)) + " sse4_1 sse4_2 avx avx2 fma"
    write(
        root,
        "proc/cpuinfo",
        "\n".join(
            f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
            f"cpu MHz\t\t: {chance.uniform(1500, 3700):.3f}\nphysical id\t: {cpu // 96}\ncore id\t\t: {cpu % 96}\n"
            f"apicid\t\t: {cpu * 2}\ninitial apicid\t: {cpu * 2}\nbogomips\t: {chance.uniform(4790, 4800):.2f}\n"
            f"flags\t\t: {flags}\n"
            for cpu in range(CORES)
        ),
    )
    write(root, "sys/devices/system/cpu/online", f"0-{CORES - 1}\n")
    for number in range(200):
        folder = f"sys/bus/pci/devices/0000:{number:02x}:00.0"
        huawei = number < NPUS
        write(root, f"{folder}/vendor", "0x19e5\n" if huawei else "0x1022\n")
        write(root, f"{folder}/device", "0xd802\n" if huawei else f"0x{chance.randrange(65536):04x}\n")
        write(root, f"{folder}/class", "0x120000\n" if huawei else f"0x{chance.randrange(1 << 24):06x}\n")
    overlay = "/var/lib/docker/overlay2/"
    mounts = [f"{n} 25 0:{n} / {overlay}{_hash(chance)}/merged rw - overlay overlay rw" for n in range(100, 140)]
    write(root, "proc/self/mountinfo", "\n".join(["25 1 8:2 / / rw - ext4 /dev/sda2 rw", *mounts]) + "\n")
    names = ("MemTotal", "MemFree", "MemAvailable", *(f"Meminfo{number}" for number in range(50)))
    write(root, "proc/meminfo", "".join(f"{name}: {chance.randrange(1 << 30)} kB\n" for name in names))
    write(root, "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n")
    write(root, "etc/os-release", 'ID="openEuler"\nVERSION_ID="22.03"\n')
    write(root, "proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")


def make_settings(root: Path, chance: random.Random) -> None:
    """What tells how the host serves its NPUs: settings, nodes of NPUs, interrupts, and the status of the ranks."""
    for name, value in (("swappiness", 10), ("overcommit_memory", 0), ("zone_reclaim_mode", 0), ("dirty_ratio", 20)):
        write(root, f"proc/sys/vm/{name}", f"{value}\n")
    write(root, "proc/sys/kernel/numa_balancing", "0\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    for number in range(4):
        write(root, f"sys/block/nvme{number}n1/queue/scheduler", "[none] mq-deadline kyber bfq\n")
        write(root, f"sys/block/nvme{number}n1/size", "7501476528\n")
    for bus in ("c1", "c2", "81", "82", "01", "02", "41", "42"):
        node = chance.randrange(8)
        write(root, f"sys/bus/pci/devices/0000:{bus}:00.0/numa_node", f"{node}\n")
        write(root, f"sys/bus/pci/devices/0000:{bus}:00.0/local_cpulist", f"{node * 24}-{node * 24 + 23}\n")
    for number in range(NPUS):
        irq = 2753 + 256 * number
        (root / f"proc/irq/{irq}/sq_send_trigger_irq").mkdir(parents=True)
        write(root, f"proc/irq/{irq}/effective_affinity_list", f"{chance.randrange(CORES)}\n")
        masks = ",".join(f"{chance.randrange(1 << 32):08x}" for _ in range(CORES // 32))
        fields = "".join(f"Vm{name}:\t{chance.randrange(1 << 30):8d} kB\n" for name in ("Peak", "Size", "RSS", "Swap"))
        fields += "".join(
            f"Sig{name}:\t{chance.randrange(1 << 62):016x}\n" for name in ("Q", "Pnd", "Blk", "Ign", "Cgt")
        )
        text = f"Name:\tpython3\n{fields}Cpus_allowed:\t{masks}\nCpus_allowed_list:\t{number * 24}-{number * 24 + 23}\n"
        write(root, f"proc/{2900 + number}/status", text)
        write(root, f"proc/{2900 + number}/limits", LIMITS)


def make_ascend(root: Path, chance: random.Random) -> None:
    write(root, "usr/local/sbin/npu-smi", "#!/bin/sh\n")
    write(root, "usr/sbin/nft", "#!/bin/sh\n")
    for number in range(NPUS):
        write(root, f"dev/davinci{number}", "")  # a plain file stands for the device
    for version in ("8.0.0", "8.2.RC1"):
        for part in ("compiler", "runtime", "toolkit", "opp", "opp_kernel", "hccl", "aoe", "ncs"):
            words = "".join(f"required_package_{n}_version={chance.random()}\n" for n in range(12))
            write(root, f"{CANN}/{version}/{part}/version.info", f"Version={version}\n{words}")
        write(root, f"{CANN}/{version}/aarch64-linux/ascend_toolkit_install.info", f"version={version}\narch=x86_64\n")
        write(root, f"{CANN}/{version}/version.cfg", "runtime_running_version=[8.2.0.0.201:8.2.RC1]\n" * 20)
        write(root, f"{CANN}/{version}/lib64/libhccl.so", "\x7fELF")
    (root / CANN / "latest").symlink_to("8.2.RC1")
    write(root, "usr/local/Ascend/driver/version.info", "Version=25.0.rc1.1\n" + "x=1\n" * 20)
    write(root, "usr/local/Ascend/firmware/version.info", "Version=7.7.0.1.231\n")


def make_python(root: Path, chance: random.Random) -> None:
    write(root, "usr/local/python3.10/bin/python3.10", "\x7fELF")
    (root / "usr/local/python3.10/bin/python3").symlink_to("python3.10")
    names = ["torch", "torch_npu", "pillow", "opencv_python", "numpy", "te", "topi", "hccl", "torchvision", "apex"]
    names += ["".join(chance.choices("abcdefghijklmnoprstuvwyz_", k=chance.randrange(4, 18))) for _ in range(140)]
    for name in names[:DISTRIBUTIONS]:
        version = f"{chance.randrange(9)}.{chance.randrange(30)}.{chance.randrange(30)}"
        folder = f"{SITE}/{name}-{version}.dist-info"
        prose = " ".join(_hash(chance) for _ in range(100))
        write(root, f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n{prose}\n")
        rows = [f"{name}/file{n}.py,sha256={_hash(chance)},{chance.randrange(90000)}" for n in range(200)]
        write(root, f"{folder}/RECORD", "\n".join(rows))
        write(root, f"{SITE}/{name}/__init__.py", f"__version__ = '{version}'\n")
    write(root, f"{SITE}/torch/version.py", "__version__ = '2.5.1'\n")
    write(root, f"{SITE}/torchvision/transforms/functional.py", "import torch\n" + "def f():\n    pass\n" * 2000)


def _hash(chance: random.Random) -> str:
    return hashlib.sha256(chance.randbytes(8)).hexdigest()


class Server(Machine):
    """The files below a directory; commands and tables as such a server would answer."""

    def __init__(self, root: str, chance: random.Random) -> None:
        super().__init__(root)
        self.runs = True
        self._chance = chance

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Optional[dict[str, Any]]:
        answers = {("npu-smi", "info"): npu_smi(), ("nft", "-j", "list", "ruleset"): rule_set(self._chance)}
        if tuple(argv) in answers:
            return {"argv": list(argv), "rc": 0, "stdout": answers[tuple(argv)], "stderr": ""}
        return {"argv": list(argv), "error": "missing"}

    def processes(self) -> list[dict[str, Any]]:
        chance, rows = self._chance, []
        for pid in range(1, 3001):
            kernel = pid < 2500
            row: dict[str, Any] = {
                "pid": pid,
                "ppid": 2 if kernel else 1,
                "name": f"kworker/{pid % CORES}:{pid % 7}" if kernel else f"daemon{pid}",
                "state": "I" if kernel else "S",
                "started": 1700000000 + chance.randrange(10**7) / 100,
                "user": "root",
                "argv": [] if kernel else [f"/usr/sbin/daemon{pid}", "--config", f"/etc/{_hash(chance)}.conf"],
            }
            if 2900 <= pid < 2900 + NPUS:
                job = ["python3", "-u", "train.py", f"--local_rank={pid - 2900}", "--token", _hash(chance)]
                row.update(name="python3", argv=job, devices=[f"/dev/davinci{pid - 2900}"], user="train")
            rows.append(row)
        return rows

    def tables(self) -> dict[str, Any]:
        listeners = [{"address": "0.0.0.0", "port": 20000 + n, "pid": 2500 + n, "process": "d"} for n in range(200)]
        interfaces = [{"name": f"enp{n}s0f0", "addresses": [f"192.0.2.{n}"], "up": True} for n in range(20)]
        disks = [{"path": f"/data{n}", "total": 7 * 10**12, "free": self._chance.randrange(10**12)} for n in range(12)]
        return {"processes": self.processes(), "listeners": listeners, "interfaces": interfaces, "disks": disks}


def npu_smi() -> str:
    data = load_yaml((SHARED / "npu-910b-8.yaml").read_text("utf-8"))
    return str(data["commands"]["npu-smi info"])


def rule_set(chance: random.Random) -> str:
    rows: list[Any] = [{"table": {"family": "inet", "name": "filter", "handle": 1}}]
    for handle in range(150):
        match = {
            "op": "==",
            "left": {"payload": {"protocol": "tcp", "field": "dport"}},
            "right": chance.randrange(65535),
        }
        rule = {"family": "inet", "table": "filter", "chain": "input", "handle": handle}
        rows.append({"rule": {**rule, "expr": [{"match": match}, {"accept": None}]}})
    return json.dumps({"nftables": rows})


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    chance, root = random.Random(1), tmp_path_factory.mktemp("server")
    make_kernel(root, chance)
    make_settings(root, chance)
    make_ascend(root, chance)
    make_python(root, chance)
    latest = "/usr/local/Ascend/ascend-toolkit/latest"
    environ = {
        "PATH": "/usr/local/python3.10/bin:/usr/local/sbin:/usr/sbin:/usr/bin",
        "HOME": "/root",
        "ASCEND_HOME_PATH": latest,
        "LD_LIBRARY_PATH": f"{latest}/lib64:/usr/local/Ascend/driver/lib64",
        **{f"TRAINING_{number}": _hash(chance) for number in range(60)},
    }
    return pack(take({}, Server(str(root), chance), environ))


@pytest.mark.slow
def test_it_fits(packed: bytes) -> None:
    assert len(packed) <= LIMIT


@pytest.mark.slow
def test_nothing_of_what_checks_read_was_left_out(packed: bytes, tmp_path: Path) -> None:
    (tmp_path / "host.tar.gz").write_bytes(packed)
    host = open_snapshot(tmp_path / "host.tar.gz")
    assert len(host.glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor")) == CORES
    assert host.run(["npu-smi", "info"]).stdout == npu_smi()
    assert sum(bool(row.devices) for row in host.processes()) == NPUS
    assert len([name for name in host.listdir(f"/{SITE}") if name.endswith(".dist-info")]) == DISTRIBUTIONS
    assert host.readlink(f"/{CANN}/latest") == "8.2.RC1"
    assert len(host.glob("/proc/irq/*/sq_send_trigger_irq")) == NPUS
    assert "Cpus_allowed_list:\t168-191\n" in host.read(f"/proc/{2900 + NPUS - 1}/status")
    assert "-" in host.read("/sys/bus/pci/devices/0000:c1:00.0/local_cpulist")
    assert host.read("/proc/cpuinfo").count("processor\t:") == CORES
    assert "--local_rank=7" in host.processes()[-1].argv or any("--local_rank=7" in p.argv for p in host.processes())


def test_of_the_built_in_modules_only_packet_filters_are_kept() -> None:
    """And the first line: a list without any would be empty, which says nothing about the kernel."""
    others = b"kernel/fs/ext4/ext4.ko\nkernel/fs/xfs/xfs.ko\n"
    filters = b"kernel/net/netfilter/nf_tables.ko\nkernel/net/ipv4/netfilter/ip_tables.ko\n"
    kept = excerpt("/lib/modules/5.10.0/modules.builtin", others + filters)
    assert kept == b"kernel/fs/ext4/ext4.ko\n" + filters
