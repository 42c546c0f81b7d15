"""The engine is a package of its own: it needs nothing of envtune, and what its documentation shows is so."""

from __future__ import annotations

import doctest
import subprocess
import sys

import envtune.firewall

CODE = """
import sys
import envtune.firewall.iptables.save, envtune.firewall.nft.text
print(*sorted(name for name in sys.modules if name.startswith("envtune")), sep="\\n")
"""


def test_it_loads_nothing_of_envtune_but_numbers_and_sets_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    others = {name for name in loaded if not name.startswith("envtune.firewall")}
    assert others == {"envtune", "envtune.records", "envtune.intervals", "envtune.ranges", "envtune.version"}


def test_the_example_of_the_documentation() -> None:
    results = doctest.testmod(envtune.firewall)
    assert results.attempted >= 6 and results.failed == 0
