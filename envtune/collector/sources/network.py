"""What the network checks read: names, ports, kernel parameters, and the rules of the firewall."""

import os
import re
from typing import Any

from .tables import Table, quietly, record_command

# Source: sysctl.d(5).
SYSCTL_DIRECTORIES = (
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
)
NETWORK = Table(
    files=(
        "/etc/hostname",
        "/etc/hosts",
        "/etc/nsswitch.conf",
        "/etc/sysctl.conf",
        "/etc/ufw/sysctl.conf",
        "/etc/sysctl.d/*.conf",
        "/proc/modules",
        "/proc/net/ip_tables_names",
        "/proc/net/ip6_tables_names",
        "/proc/sys/net/ipv4/ip_local_port_range",
        "/proc/sys/net/ipv4/ip_local_reserved_ports",
        "/run/sysctl.d/*.conf",
        "/usr/lib/sysctl.d/*.conf",
        "/usr/local/lib/sysctl.d/*.conf",
    ),
    stats=(
        "/etc/ip6tables.rules",  # restores the administrator's own rules at boot
        "/etc/iptables.rules",
        "/etc/iptables/rules.v4",
        "/etc/iptables/rules.v6",
        "/etc/nftables.conf",
        "/etc/sysconfig/ip6tables",
        "/etc/sysconfig/iptables",
        "/etc/sysconfig/nftables.conf",
        "/proc/net/dev",
        "/proc/net/netfilter",
    ),
    listings=SYSCTL_DIRECTORIES,
    commands=(
        ("nft", "-j", "list", "ruleset"),
        ("nft", "list", "ruleset"),  # shows dormant tables, which the JSON of nft 1.0.6 does not
        ("iptables-save",),
        ("iptables-legacy-save",),
        ("ip6tables-save",),
        ("ip6tables-legacy-save",),  # firewall-cmd and ufw are not run: their rules appear in these listings
    ),
)


def record_network(recorder: Any) -> None:
    """Record what the host's own name and MASTER_ADDR resolve to, the job's peers and rank table, built-in filters."""
    quietly(recorder.read_bytes, "/lib/modules/%s/modules.builtin" % recorder.uname["release"])
    record_command(recorder, ("getent", "hosts", recorder.uname["nodename"]), 3.0)
    master = recorder.variables.get("MASTER_ADDR", "").strip()
    if re.match(r"[A-Za-z0-9_][A-Za-z0-9_.-]*$", master) and not re.match(r"[0-9.]+$", master):
        record_command(recorder, ("getent", "ahosts", master), 3.0)
    for name in ("HCCL_WHITELIST_FILE", "RANK_TABLE_FILE"):
        path = recorder.variables.get(name, "")
        if path.startswith("/"):
            quietly(recorder.read_bytes, os.path.normpath(path))
