"""The page of what is supported: docs/reference.py writes it from the tables that the checks use."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

from envtune.messages import Bilingual, Text, enumerated
from envtune.resources.npu.devices import MODELS
from envtune.resources.system.platform import FAMILIES, MANAGERS

ROOT = Path(__file__).resolve().parents[1]
HOSTS = ROOT / "tests" / "hosts"
_ABOUT = Bilingual(
    "These lists come from the tables that the checks use. envtune was developed and tested without NPU hardware: on "
    "real Debian 12 systems and containers, and on recorded hosts assembled from published output of real machines "
    "(`tests/hosts`). It also runs elsewhere; what it does not know is reported as unknown, never as passed.",
    "以下列表取自检查项使用的数据表。envtune 的开发和测试没有使用 NPU 硬件，而是使用真实的 Debian 12 系统和容器，"
    "以及根据真实机器的公开输出整理的主机快照（`tests/hosts`）。在其他环境中也可以运行；"
    "不了解的内容报告为无法判断，而不是通过。",
)
_NPU = Bilingual("NPUs", "NPU")
_NPU_COLUMNS = Bilingual(
    "| model | PCI device | for | recorded hosts in the tests |", "| 型号 | PCI 设备号 | 用途 | 测试用的主机快照 |"
)
_TRAINING = Bilingual("training", "训练")
_SEEN = Bilingual("recognized", "可识别")
_SYSTEMS = Bilingual("Systems", "操作系统")
_ABOUT_SYSTEMS = Bilingual(
    "Linux on aarch64 and x86_64. A system belongs to the family that `ID` or `ID_LIKE` of /etc/os-release names; "
    "packages are installed with that family's package manager. On other systems, the installed package manager is "
    "used.",
    "aarch64 和 x86_64 上的 Linux。系统按 /etc/os-release 的 `ID` 或 `ID_LIKE` 归入下列系列，"
    "并用该系列的包管理器安装软件包；"
    "其他系统以实际存在的包管理器为准。",
)
_SYSTEM_COLUMNS = Bilingual("| family | systems | package manager |", "| 系列 | 系统 | 包管理器 |")
_RECORDED = Bilingual("Recorded hosts in the tests: {names}.", "测试用的主机快照：{names}。")
_CANN = Bilingual("CANN, torch_npu and driver", "CANN、torch_npu 与驱动")
_ABOUT_CANN = Bilingual(
    "Published pairs as of {asof} (`envtune/data/compat.csv`, {rows} rows with the source of each). A "
    "pair that is not "
    "listed is reported as unknown, not as wrong. `X` is any patch level. CANN before 5.0.2 is "
    "recognized (20.2 is in a recorded host).",
    "截至 {asof} 已公布的配套关系（`envtune/data/compat.csv`，共 {rows} 行，每行注明出处）。"
    "未列出的组合报告为无法判断，而不是错误。`X` 表示任意补丁版本。"
    "5.0.2 之前的 CANN 也能识别（主机快照中有 20.2）。",
)
_CANN_COLUMNS = Bilingual(
    "| CANN | torch_npu | driver (HDK) accepted by the release notes |",
    "| CANN | torch_npu | 版本说明接受的驱动（HDK） |",
)
_PYTHON = Bilingual("Python", "Python")
_ABOUT_PYTHON = Bilingual(
    "envtune itself runs on Python {versions}; the tests run on the oldest and the newest of these that the "
    "machine has. "
    "Recording a host (`envtune collector`, and `snapshot` of `envtune.pyz`) needs only Python 3.6 or newer. "
    "The job's Python is only read, so any version can be checked; the same table pairs Python with torch_npu.",
    "envtune 自身支持 Python {versions}；测试使用机器上最旧和最新的受支持版本。记录主机（`envtune "
    "collector`，以及 `envtune.pyz` 的 "
    "`snapshot`）只需 Python 3.6 或更新版本。任务的 Python 只被读取，因此可以检查任意版本；Python 与 "
    "torch_npu 的配套关系在同一张表中。",
)


def body(lang: str) -> Iterator[str]:
    """The lines of the page."""
    recorded = list(_recorded())
    yield from (_ABOUT.to(lang), "", f"## {_NPU.to(lang)}", "", _NPU_COLUMNS.to(lang), "|---|---|---|---|")
    for device, model in MODELS.items():
        use = (_SEEN if model.startswith("310") else _TRAINING).to(lang)
        hosts = _row((f"`{name}`" for name, _ in recorded if name.startswith(f"{model.lower()}-")), lang)
        yield f"| {model} | `{device}` | {use} | {hosts or '-'} |"
    yield from ("", f"## {_SYSTEMS.to(lang)}", "", _ABOUT_SYSTEMS.to(lang), "")
    yield from (_SYSTEM_COLUMNS.to(lang), "|---|---|---|")
    for family, names in FAMILIES.items():
        yield f"| {family} | {_row(names, lang)} | {_row(MANAGERS[family], lang)} |"
    systems = sorted({system for _, system in recorded if system})
    yield from ("", _RECORDED.to(lang).format(names=_row(systems, lang)))
    yield from ("", f"## {_CANN.to(lang)}", "", *_cann(lang))
    minors = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    yield from ("", f"## {_PYTHON.to(lang)}", "", _ABOUT_PYTHON.to(lang).format(versions=f"{minors[0]}-{minors[-1]}"))


def _row(names: Iterable[str], lang: str) -> str:
    return enumerated(names).to(lang)


def _recorded() -> Iterator[tuple[str, str]]:
    """The recorded hosts, and the system that os-release of each names."""
    from helpers.recorded import host_data, host_names

    for name in host_names():
        data = host_data(name)
        release = str(data.get("files", {}).get("/etc/os-release", ""))
        words = [re.search(rf'^{key}="?([^"\n]+)', release, re.MULTILINE) for key in ("ID", "VERSION_ID")]
        yield name, " ".join([*(word[1] for word in words if word), data["uname"]["machine"]])


def _cann(lang: str) -> Iterator[str]:
    with (ROOT / "envtune" / "data" / "compat.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    asof = next(row["package_version"] for row in rows if row["relation"] == "published")
    yield from (_ABOUT_CANN.to(lang).format(asof=asof, rows=len(rows)), "", _CANN_COLUMNS.to(lang), "|---|---|---|")
    torch: dict[str, list[str]] = {}
    drivers: dict[str, list[str]] = {}
    for row in rows:
        if row["relation"] == "matched" and row["package"] == "torch_npu":
            torch.setdefault(row["cann"], []).append(row["package_version"])
        elif row["relation"] == "cann_hdk":
            drivers.setdefault(row["cann"], []).append(row["package_version"])
    for cann in sorted({*torch, *drivers}, key=_newest_first, reverse=True):
        packages = _row(sorted(torch.get(cann, []), key=_newest_first, reverse=True), lang)
        yield f"| {cann} | {packages or '-'} | {_row(dict.fromkeys(drivers.get(cann, [])), lang) or '-'} |"


def _newest_first(version: str) -> list[Any]:
    """8.3.RC1 < 8.3.0 < 8.3.X."""
    ranks: Mapping[str, int] = {"RC": -1, "alpha": -2, "X": 999, "post": 1}
    parts: list[Any] = []
    for word in re.findall(r"\d+|[A-Za-z]+", version):
        parts.append(int(word) if word.isdigit() else ranks.get(word, ranks.get(word.upper(), 0)))
    return [*parts, 0]


TITLE: Text = Bilingual("Supported NPUs, CANN, systems and Pythons", "支持的 NPU、CANN、操作系统与 Python")
