"""`envtune check`."""

from __future__ import annotations

import time
from typing import List, Optional

import typer

HELP = "Is this host ready, and if not, what exactly is wrong?"


def command(
    select: Optional[List[str]] = typer.Option(None, "--select", help="only these ids, prefixes or names"),
    format_: str = typer.Option("text", "--format", help="text or json"),
    lang: str = typer.Option("en", "--lang", help="en or zh"),
) -> None:
    from envtune import catalog
    from envtune.audit import audit, exit_code
    from envtune.host import LocalHost
    from envtune.model import Report, Severity
    from envtune.report import json as json_report
    from envtune.scene import open_scene

    began = time.time()
    host = LocalHost()
    scene = open_scene(host)
    facts = scene.facts
    findings = audit(catalog.load().checks, scene)
    report = Report(
        host.name,
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        time.time() - began,
        {},
        tuple(facts[n] for n in facts.names()),
        findings,
    )
    typer.echo(json_report.render(report, lang))
    raise typer.Exit(exit_code(findings, Severity.MEDIUM))
