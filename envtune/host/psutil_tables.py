"""Read the tables of processes, sockets and interfaces with psutil on systems without /proc (a macOS laptop).

Returns the same rows as the collector. On Linux the collector reads /proc itself: psutil takes 37 ms to import, and
recording a host must work without it. Raises PermissionError if the system shows sockets to root only.
"""

from __future__ import annotations

import socket
from typing import Any

STATES = {"running": "R", "sleeping": "S", "disk-sleep": "D", "stopped": "T", "zombie": "Z", "idle": "I"}


def process_table(with_devices: bool = False) -> list[dict[str, Any]]:
    """Return every process this user may list, without the devices it has open."""
    import psutil

    rows = []
    for process in psutil.process_iter(["pid", "ppid", "username", "name", "cmdline", "status", "create_time"]):
        info = process.info
        rows.append(
            {
                "pid": info["pid"],
                "ppid": info["ppid"] or 0,
                "user": info["username"] or "",
                "name": info["name"] or "",
                "argv": list(info["cmdline"] or ()),
                "state": STATES.get(info["status"], "S"),
                "started": info["create_time"] or 0.0,
                **({"opaque": True} if with_devices else {}),
            }
        )
    return rows


def listening_sockets() -> list[dict[str, Any]]:
    """Return the listening TCP sockets; psutil provides no inode, so their owners stay unknown."""
    import psutil

    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        raise PermissionError(1, "only root may list sockets here", "net_connections") from None
    return [
        {"address": row.laddr.ip, "port": row.laddr.port, "inode": 0}
        for row in connections
        if row.status == psutil.CONN_LISTEN and row.laddr
    ]


def network_interfaces() -> list[dict[str, Any]]:
    """Return name, addresses and state of every network interface."""
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
