"""The families of checks: one table for the ids, the folders and the headings of reports."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from envtune.model import Text


class Family(NamedTuple):
    """A family of checks: ids begin with its prefix, `folder` is its place below checks/, playbooks/ and tests/."""

    prefix: str
    folder: str
    title: Text


FAMILIES: Mapping[str, Family] = {
    family.prefix: family
    for family in (
        Family("SYS", "system", Text("Host and operating system", "主机与操作系统")),
        Family("CPU", "cpu", Text("CPU frequency and power", "CPU 频率与电源")),
        Family("IMG", "images", Text("Image libraries", "图像处理库")),
        Family("PY", "python", Text("Python and PyTorch", "Python 与 PyTorch")),
        Family("CANN", "cann", Text("CANN, driver and firmware", "CANN、驱动与固件")),
        Family("ENV", "environment", Text("Environment variables", "环境变量")),
        Family("NET", "network", Text("Network, ports and firewall", "网络、端口与防火墙")),
        Family("PROC", "processes", Text("Processes and NPU memory", "进程与 NPU 显存")),
    )
}


def folders_of(prefix: str) -> tuple[str, ...]:
    """Return the folders in which a check with this prefix may lie; a site's own family is called after its letters."""
    letters = prefix.lower()
    return (FAMILIES[prefix].folder, letters) if prefix in FAMILIES else (letters,)


def family_title(prefix: str) -> Optional[Text]:
    """Return the heading of a family; None for a site's own."""
    family = FAMILIES.get(prefix)
    return None if family is None else family.title
