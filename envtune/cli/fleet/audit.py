"""`envtune fleet audit`: collect a snapshot of many hosts over ssh, check them here, keep what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_, Message, Text, clauses, listed, plural

if TYPE_CHECKING:
    from envtune.cli.policy.loading import Loaded
    from envtune.fleet.audit import Plan, Progress

FORMATS = common.FORMATS
HELP = N_(
    """Collect and check many hosts over ssh.

Sends the collector to `python3 -` on each host over ssh, with your configuration, agent and jump hosts, and checks the
snapshot that comes back (at most 48 KiB) on this host. Installs and writes nothing on the hosts.

\b
Examples:
  envtune fleet audit -w node[1-64]
  envtune fleet audit --hosts-from hosts.txt --become     as root, with sudo -n
  envtune fleet audit --inventory inventory.ini --limit npu
  envtune fleet audit --slurm --partition train --job train.py

An ssh session is not the job: without --python, --env-file or --job, checks of the job's Python and variables are
unknown. A host whose key is unknown or has changed is never logged in to.

Exit status: 0 no problems, 1 findings or differences at or above --fail-on, 2 usage error, 3 a host was not collected
or something is unknown.
"""
)
HOSTS_FROM = typer.Option(None, "--hosts-from", metavar="FILE", help=N_("Hosts, one per line; - for standard input."))
INVENTORY = typer.Option(None, "--inventory", metavar="FILE", help=N_("An Ansible inventory (INI or YAML)."))
LIMIT = typer.Option(None, "--limit", metavar="GROUP", help=N_("Only the hosts of this inventory group."))
SLURM = typer.Option(False, "--slurm", help=N_("All nodes of Slurm."))
PARTITION = typer.Option(None, "--partition", metavar="NAME", help=N_("Only the nodes of this Slurm partition."))
PYTHON = typer.Option(None, "--python", metavar="PATH", help=N_("The job's Python on the hosts."))
ENV_FILE = typer.Option(None, "--env-file", metavar="PATH", help=N_("File with the job's variables, on the hosts."))
JOB = typer.Option(
    None, "--job", metavar="NAME", help=N_("A running job, by the name of its process, program or script.")
)
BECOME = typer.Option(False, "--become", help=N_("Collect as root, with sudo -n."))
USER = typer.Option(None, "--user", metavar="NAME", help=N_("Log in as this user."))
SSH_OPTIONS = typer.Option("", "--ssh-options", metavar="WORDS", help=N_("More ssh options, as one argument."))
GATEWAYS = typer.Option(
    None, "--gateways", metavar="NODESET", help=N_("Reach the hosts through these, which have ClusterShell.")
)
FANOUT = typer.Option(64, "--fanout", metavar="N", min=1, max=1024, help=N_("Hosts connected at the same time."))
TIMEOUT = typer.Option(
    60,
    "--timeout",
    metavar="SECONDS",
    min=1,
    max=3600,
    help=N_("Time limit of the collector on each host, in seconds."),
)
CONNECT_TIMEOUT = typer.Option(
    10,
    "--connect-timeout",
    metavar="SECONDS",
    min=1,
    max=600,
    help=N_("Time limit for connecting to a host, in seconds."),
)


def command(
    context: typer.Context,
    nodes: Optional[str] = common.NODES,
    hosts_from: Optional[str] = HOSTS_FROM,
    inventory: Optional[Path] = INVENTORY,
    limit: Optional[str] = LIMIT,
    slurm: bool = SLURM,
    partition: Optional[str] = PARTITION,
    python: Optional[str] = PYTHON,
    env_file: Optional[str] = ENV_FILE,
    job: Optional[str] = JOB,
    become: bool = BECOME,
    user: Optional[str] = USER,
    ssh_options: str = SSH_OPTIONS,
    gateways: Optional[str] = GATEWAYS,
    fanout: int = FANOUT,
    timeout: int = TIMEOUT,
    connect_timeout: int = CONNECT_TIMEOUT,
    store: Optional[Path] = common.STORE,
    group: Optional[List[str]] = common.GROUP,
    fail_on: str = options.FAIL_ON,
    format_: List[str] = common.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.errors import require_package
    from envtune.fleet.audit import Plan
    from envtune.fleet.hosts import required_hosts
    from envtune.fleet.program import Job
    from envtune.fleet.ssh import Ssh, require_options
    from envtune.trust.programs import resolve_program

    lang = options.language(lang)
    wanted = options.outputs(format_, common.FORMATS)
    require_package("ClusterShell")
    require_options(ssh_options)
    hosts = required_hosts(named_hosts(nodes, hosts_from, inventory, limit, slurm, partition))
    loaded = load_with_policy(catalog, lang, policy, profile)
    threshold = options.threshold_named(loaded.fail_on(context, fail_on))
    ssh = Ssh(ssh_options, user, fanout, connect_timeout, timeout, resolve_program("ssh"))
    plan = Plan(ssh, Job(python, env_file, job), become, named_gateways(gateways))
    _audit(hosts, plan, loaded, common.store_path(store), lang)
    from envtune.fleet.questions import overview

    found = overview(common.open_for_reading(store), hosts, common.named_groups(group), common.wants_matrix(wanted))
    common.end_with(found, loaded.catalogue, wanted, threshold, lang, verbose)


def named_hosts(
    nodes: Optional[str],
    hosts_from: Optional[str],
    inventory: Optional[Path],
    limit: Optional[str],
    slurm: bool,
    partition: Optional[str],
) -> Sequence[str]:
    """Return the hosts that are named, in every way that is used."""
    from envtune.fleet import hosts
    from envtune.host.text_file import read_file

    found: list[str] = []
    if nodes is not None:
        found += hosts.node_set(nodes)
    if hosts_from is not None:
        found += hosts.listed_hosts(_text("--hosts-from", hosts_from))
    if inventory is not None:
        text = read_file("--inventory", inventory, _LONGEST).decode("utf-8", "replace")
        found += hosts.inventory_hosts(text, limit)
    if slurm or partition is not None:
        found += hosts.slurm_hosts(partition)
    return found


def named_gateways(nodes: Optional[str]) -> Sequence[str]:
    """Return the hosts of --gateways; none without it."""
    from envtune.fleet.hosts import node_set, required_hosts

    return () if nodes is None else required_hosts(node_set(nodes))


_LONGEST = 16 << 20  # bytes of a list of hosts


def _text(option: str, path: str) -> str:
    import sys

    from envtune.host.text_file import read_file

    if path == "-":
        return sys.stdin.read(_LONGEST)
    return read_file(option, Path(path), _LONGEST).decode("utf-8", "replace")


def _audit(hosts: Sequence[str], plan: Plan, loaded: Loaded, path: Path, lang: str) -> None:
    """Audit the hosts, and write what is found while it comes."""
    from envtune.cli.program.waiting import show_while_waiting
    from envtune.fleet.audit import Progress, audit_hosts
    from envtune.fleet.judge import Question
    from envtune.fleet.store.write import Writer
    from envtune.model import Severity

    checks = loaded.select(None, None, None, Severity.INFO)
    progress = Progress(len(hosts))
    show_while_waiting(lambda: progress_text(progress), lang)
    writer = Writer(common.open_until_end(path), "ssh", loaded.shown.get("file", ""))
    audit_hosts(hosts, plan, Question(checks, loaded.catalogue.expectations), progress, writer.add)
    writer.finish()


def progress_text(progress: Progress) -> Text:
    """Return how far an audit is, by collection verdict, and how long the rest may take."""
    from envtune.fleet.collected import WORDS

    rows: list[Any] = [
        Message("{count} {verdict}", count=count, verdict=WORDS[verdict])
        for verdict, count in progress.collected.most_common()
    ]
    parts: list[Text] = [
        plural(
            "{done} of {count} host",
            "{done} of {count} hosts",
            progress.total,
            done=sum(progress.collected.values()),
        )
    ]
    if rows:
        parts.append(listed(rows))
    left = progress.seconds_left
    if left is not None and left > 1:
        words = Message("about {seconds:.0f} s left", seconds=left)
        parts.append(words if left < 90 else Message("about {minutes:.0f} min left", minutes=left / 60))
    return clauses(parts)
