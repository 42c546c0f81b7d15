"""The tables of processes, sockets and interfaces where there is no /proc (a macOS laptop), by psutil.

The same rows as the collector gives. On Linux the collector reads /proc itself: psutil costs 37 ms to import, and a
recorded host has to be read without it. PermissionError where the system shows sockets to root only.
"""

from __future__ import annotations

import socket
from typing import Any

STATES = {"running": "R", "sleeping": "S", "disk-sleep": "D", "stopped": "T", "zombie": "Z", "idle": "I"}


def process_table(with_devices: bool = False) -> list[dict[str, Any]]:
    """Every process this user may list; the devices it holds are not told."""
    import psutil

    rows = []
    for process in psutil.process_iter(["pid", "ppid", "username", "name", "cmdline", "status", "create_time"]):
        told = process.info
        rows.append(
            {
                "pid": told["pid"],
                "ppid": told["ppid"] or 0,
                "user": told["username"] or "",
                "name": told["name"] or "",
                "argv": list(told["cmdline"] or ()),
                "state": STATES.get(told["status"], "S"),
                "started": told["create_time"] or 0.0,
                **({"opaque": True} if with_devices else {}),
            }
        )
    return rows


def listening_sockets() -> list[dict[str, Any]]:
    """Listening TCP sockets; psutil names no inode, so the owner is not asked for."""
    import psutil

    try:
        found = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        raise PermissionError(1, "only root may list sockets here", "net_connections") from None
    return [
        {"address": row.laddr.ip, "port": row.laddr.port, "inode": 0}
        for row in found
        if row.status == psutil.CONN_LISTEN and row.laddr
    ]


def network_interfaces() -> list[dict[str, Any]]:
    """[{name, addresses, up}]."""
    import psutil

    up = psutil.net_if_stats()
    kinds = (socket.AF_INET, socket.AF_INET6)
    return [
        {
            "name": name,
            "addresses": [a.address.partition("%")[0] for a in addresses if a.family in kinds],
            "up": name in up and up[name].isup,
        }
        for name, addresses in sorted(psutil.net_if_addrs().items())
    ]
