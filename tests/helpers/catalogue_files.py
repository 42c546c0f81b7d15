"""Writes catalog files for the tests: a good check, FAQ entry and playbook, and what is to be wrong with them."""

from __future__ import annotations

from pathlib import Path

GOOD_CHECK = """\
id: CPU900
name: governor-odd
title: {en: A governor is odd, zh: 调速器异常}
status: stable
severity: medium
origin: outside
rationale: {en: It slows launches., zh: 会拖慢下发。}
references: [https://docs.kernel.org/admin-guide/pm/cpufreq.html]
tags: [preflight]
applies: {container: false}
probe: {cpu.governors: {}}
expect: {all: {eq: performance}}
"""

GOOD_FAQ = """\
id: X90
name: odd-error
title: {en: An odd error, zh: 异常报错}
signatures:
  - {regex: odd error, strength: strong, origin: outside}
cause: {en: Something is odd., zh: 出现异常。}
remedy: {en: Ask., zh: 请咨询。}
side: host
"""

GOOD_PLAYBOOK = """\
id: do-something
title: {en: Do something, zh: 做点什么}
fixes: [CPU900]
safety: manual
disruption: none
steps:
  - instructions: {en: [Do it.], zh: [执行。]}
"""


def write_catalogue(root: Path, *, check: str = "", faq: str = "", playbook: str = "") -> Path:
    """A catalog directory below `root` with the entries given, in files of the names they should have."""
    for text, path in (
        (check, "checks/cpu/CPU900-governor-odd.yaml"),
        (faq, "checks/faq/X90-odd-error.yaml"),
        (playbook, "playbooks/cpu/do-something.yaml"),
    ):
        if text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
    return root
