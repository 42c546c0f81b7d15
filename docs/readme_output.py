"""What commands print, as the README and the pages show it: run on recorded hosts, written between the markers.

python docs/readme_output.py [PAGE...]    write it
python docs/readme_output.py --check      end with 1 when a page shows something else

A block of a page is

    <!-- output: check --snapshot node17.json | envtune check -->
    ...
    <!-- /output -->

with the arguments of envtune and, after a bar, the command line that is shown. `lines=20` before the arguments cuts the
output there; `json=KEY` shows that part of a document only. The files that commands may name are those of `workplace`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, Mapping
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"(<!-- output: (?P<words>[^|\n]+?)(?: \| (?P<shown>[^\n]+?))? -->\n)(.*?)(<!-- /output -->)", re.DOTALL
)
WIDTH = "80"
KINDS = {"json": "json", "sarif": "json", "junit": "xml", "markdown": "markdown"}  # of --format: the block's language
SAME = {"started": "2026-11-20T08:00:00Z", "seconds": 0.2}  # what differs from run to run
SETTINGS = {"COLUMNS": WIDTH, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
LEFT_OUT = ("ENVTUNE_POLICY", "ENVTUNE_STATE", "FORCE_COLOR", "LANGUAGE")


def with_output() -> list[Path]:
    """The pages that show output."""
    pages = [ROOT / "README.md", ROOT / "README.zh.md", *sorted(DOCS.glob("*.md"))]
    return [page for page in pages if "<!-- output: " in page.read_text("utf-8")]


def language(page: Path) -> str:
    return "zh" if page.name.endswith(".zh.md") else "en"


def updated(page: Path) -> str:
    """The page with the output of its commands between their markers."""
    lang = language(page)
    with workplace():
        return BLOCK.sub(lambda found: found[1] + _block(found, lang) + found[5], page.read_text("utf-8"))


def _block(found: re.Match[str], lang: str) -> str:
    words = shlex.split(found["words"])
    options = dict(word.split("=", 1) for word in words if re.match("(lines|json)=", word))
    arguments = [word for word in words if not re.match("(lines|json)=", word)]
    output = printed(arguments, lang, found["shown"] or "")
    kind = next((KINDS[word] for word in arguments if word in KINDS), "text")
    if "json" in arguments:
        output = _document(output, options.get("json", ""))
    lines = output.rstrip("\n").splitlines()
    most = int(options.get("lines", len(lines)))
    lines = lines if len(lines) <= most else [*lines[:most], "..."]
    shown = [f"$ {found['shown']}"] if found["shown"] and kind == "text" else []
    fence = "````" if "```" in output else "```"
    return "\n".join([f"{fence}{kind}", *shown, *lines, fence, ""])


def _document(output: str, keys: str) -> str:
    """A JSON document, or the part of it that `changes.0` or `findings.NET003` (the item with this id) names."""
    data: Any = {**json.loads(output), **{key: value for key, value in SAME.items() if key in json.loads(output)}}
    for key in filter(None, keys.split(".")):
        if isinstance(data, list):
            data = data[int(key)] if key.isdigit() else next(item for item in data if item["id"] == key)
        else:
            data = data[key]
    return json.dumps(data, ensure_ascii=False, indent=2)


def printed(arguments: list[str], lang: str, shown: str) -> str:
    """Standard output of `envtune` with these arguments, in the current directory.

    Where the page shows another command, without --snapshot, it is what that prints on the host itself.
    """
    from helpers.command_line import run

    on_the_host = mock.patch("envtune.cli.options.recorded_name", return_value="")
    with on_the_host if shown and "--snapshot" not in shown else contextlib.nullcontext():
        done = run(*arguments, "--lang", lang)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code in (2, 70) and not done.stdout:  # 2 is also what Nagios calls critical
        raise ValueError(f"envtune {shlex.join(arguments)}: {done.stderr}")
    return str(done.stdout)


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """A directory with the recorded hosts and logs that the pages are about, and the settings of a plain terminal."""
    before = dict(os.environ)
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.environ.update(SETTINGS)
        for name in LEFT_OUT:
            os.environ.pop(name, None)
        os.chdir(folder)
        try:
            with mock.patch("envtune.audit.time", SimpleNamespace(**{**vars(time), "monotonic": lambda: 0.0})):
                yield  # a report takes no time
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


def write_files(folder: Path) -> None:
    """node17 as the README has it, node18 after a year of many hands, node19 without CANN's variables; logs."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers import rank_cases
    from helpers.recorded import host_data

    node19 = host_data("910b-openeuler2203-cann82")
    node19["environ"] = {key: value for key, value in node19["environ"].items() if not re.search("ASCEND|PATH", key)}
    node19["environ"]["PATH"] = "/usr/local/python3.10.13/bin:/usr/bin:/bin"
    hosts = {"node17": host_data("_readme"), "node18": host_data("910b-openeuler2203-troubled"), "node19": node19}
    (folder / "hosts").mkdir()
    for name, data in hosts.items():
        _write(folder / f"{name}.json", name, data)
    for number in range(1, 9):  # a cluster in which one host is not like the others
        data = host_data("910b-openeuler2203-cann82")
        name, address = f"node{number}", f"192.0.2.{10 + number}"
        data["commands"][f"getent ahosts {name}"] = f"{address}      STREAM {name}\n"
        data["commands"][f"getent hosts {name}"] = f"{address}      {name}\n"
        data["interfaces"] = [{"name": "lo", "addresses": ["127.0.0.1"]}, {"name": "eth0", "addresses": [address]}]
        data["files"]["/etc/hosts"] = f"127.0.0.1 localhost\n{address} {name}\n"
        for variable in ("MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK"):  # no job yet
            data["environ"].pop(variable)
        if number == 7:
            data["files"]["/proc/sys/net/ipv4/ip_local_reserved_ports"] = "\n"
            data["environ"]["HCCL_CONNECT_TIMEOUT"] = "120"
        _write(folder / "hosts" / f"{name}.json", name, data)
    (folder / "train.log").write_bytes((DOCS / "examples" / "train.log").read_bytes())
    shutil.copytree(DOCS / "examples" / "launch", folder / "launch")
    rank_cases.write("killed-rank-by-torchrun", folder)
    _write_profile(folder)


def _write_profile(folder: Path) -> None:
    """`prof`: four ranks, of which the host of one dispatches slowly; node20, with settings left from debugging."""
    from helpers import profiles
    from helpers.recorded import host_data

    node20 = host_data("910b-openeuler2203-cann82")
    for path in node20["files"]:
        if path.endswith("/scaling_governor"):
            node20["files"][path] = "powersave\n"
    node20["environ"].update(TASK_QUEUE_ENABLE="0", ASCEND_GLOBAL_LOG_LEVEL="0")
    _write(folder / "node20.json", "node20", node20)
    compiled = [["acl", "aclopCompileAndExecute", 6200, 19, 326, 210, 900, 1]]
    for rank, parts in enumerate([(42, 46, 12), (41, 48, 11), (43, 4, 53), (42, 45, 13)]):
        rows = [
            ["TransData", "AI_VECTOR_CORE", 57, 1600, 6, 28, 71, 3.8],
            ["MatMulV2", "AI_CORE", 8, 40400, 1, 2, 3, 96],
        ]
        files = {"op_statistic.csv": profiles.table(profiles.STATISTIC, rows)}
        if rank == 2:
            files["api_statistic.csv"] = profiles.table(profiles.API, compiled)
        profiles.write_rank(folder / "prof", rank, [profiles.step_row(*parts)], files=files)


def _write(path: Path, name: str, data: Mapping[str, Any]) -> None:
    uname = {**data.get("uname", {}), "nodename": name}
    path.write_text(json.dumps({"schema": "envtune.snapshot/1", **data, "host": name, "uname": uname}))


def main() -> int:
    named = [Path(word).resolve() for word in sys.argv[1:] if word != "--check"]
    stale = 0
    for page in named or with_output():
        text = page.read_text("utf-8")
        new = updated(page)
        if "--check" not in sys.argv:
            page.write_text(new, "utf-8")
        elif new != text:
            sys.stderr.write(f"{page.relative_to(ROOT)} is out of date: make docs\n")
            stale = 1
    return stale


if __name__ == "__main__":
    raise SystemExit(main())
