"""`envtune hook k8s-init`: in an init container, and for the node-problem-detector."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.cli.check import SELECT
from envtune.cli.hook import common
from envtune.messages import N_

HELP = N_(
    """Check a container or node of Kubernetes.

In an init container it checks the job that has this environment, prints one line and writes it as termination message.
With --condition it checks the node, and writes the condition AscendTrainingProblem as JSON, for a custom plugin of the
node-problem-detector. With --plugin it is such a plugin.

\b
Examples:
  envtune hook k8s-init --script /workspace/train.sh
  envtune hook k8s-init --condition /var/lib/envtune/condition.json
  envtune hook k8s-init --plugin --timeout 60

Exit status: 0 no problems or not checked, 20 problems, 2 usage error; of --plugin: 0 no problems, 1 problems,
2 unknown.
"""
)
CONDITION = typer.Option(None, "--condition", metavar="FILE", help=N_("Write the condition of the node as JSON."))
PLUGIN = typer.Option(False, "--plugin", help=N_("Answer as a custom plugin of the node-problem-detector."))
TERMINATION_LOG = typer.Option(
    None,
    "--termination-log",
    metavar="FILE",
    help=N_("Existing file for the termination message (default: /dev/termination-log)."),
)


def command(
    fail_on: Optional[str] = common.FAIL_ON,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
    catalog: Optional[List[Path]] = options.CATALOG,
    python: Optional[str] = options.PYTHON,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    condition: Optional[str] = CONDITION,
    plugin: bool = PLUGIN,
    termination_log: Optional[str] = TERMINATION_LOG,
    timeout: float = common.timeout(60, 3600),
    dry_run: bool = common.DRY_RUN,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.cli.hook.judging import Question, judge
    from envtune.hook.pod import Settings, init
    from envtune.job.target import TargetOptions

    options.language(lang)
    common.require_one_protocol(plugin, termination_log)
    named = common.fail_on_named(fail_on)
    about_node = bool(condition or plugin) and not (python or script or env_file)
    target = None if about_node else TargetOptions(python, None, script, env_file)
    question = Question(select or (), ignore or (), tag or (), policy, profile, catalog or (), named, target)
    message = termination_log if termination_log is not None else "/dev/termination-log"
    settings = Settings(timeout, named, condition or "", plugin, message, dry_run)
    raise typer.Exit(init(settings, partial(judge, question)))
