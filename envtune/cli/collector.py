"""`envtune collector`: the collector as one file, for hosts on which nothing is installed."""

from __future__ import annotations

from typing import Optional

from envtune.cli import options
from envtune.messages import N_

HELP = N_(
    """Print the collector as one Python file.

It records hosts on which nothing is installed, like `envtune snapshot`: it needs only Python 3.6 or newer, and
writes only the snapshot.

\b
Examples:
  envtune collector | ssh HOST python3 -I - > host.tar.gz    record another host from here
  envtune collector > collector.py                           a file to copy: python3 -I collector.py -o host.tar.gz

Exit status: 0 success, 2 error.
"""
)


def command(lang: Optional[str] = options.LANG) -> None:
    from envtune.assemble import shipped

    options.language(lang)
    options.print_document(shipped("collector"))
