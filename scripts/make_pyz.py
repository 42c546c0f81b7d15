"""Build a single file that runs without installation: `python make_pyz.py dist/envtune.pyz`.

Run it with the oldest supported Python: the newest releases of some dependencies use syntax that older Pythons refuse.
The content is pure Python, so one file works on x86_64 and aarch64. Left out are psutil (a compiled module cannot be
imported from a zip file), PyYAML's compiled half, and rich, which only colors typer's help.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 4 * 1024 * 1024  # bytes
LEFT_OUT = ("rich", "pygments", "markdown_it", "markdown_it_py", "mdurl", "psutil", "bin")
PIP_FILES = ("direct_url.json", "INSTALLER", "RECORD", "REQUESTED")  # they name this machine, or hash removed files
COMPILED = (".so", ".pyd", ".dylib")
WANTED = ("typer", "distro", "PyYAML", "packaging", "Jinja2")
# Not `env -S python3 -I`: coreutils before 8.30 (CentOS 7, Ubuntu 18.04) do not support -S. The shell reads no further.
START = b'#!/bin/sh\nexec python3 -I "$0" "$@"\n'
# Any Python can parse this, even one too old for the rest: then the recorder is started, which needs 3.6.
# Nothing but the archive and the interpreter's own library is imported, also where -I is left out.
MAIN = """\
import sys

OWN = tuple(prefix + "/lib" for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
sys.path[:] = [path for path in sys.path if path == __loader__.archive or path.startswith(OWN)]


def main():
    if sys.version_info >= (3, 9):
        from envtune.cli import main

        return main()
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if sys.version_info < (3, 6) or verb not in ("collector", "snapshot"):
        sys.stderr.write(
            "envtune: this needs Python 3.9 or newer, and here is %s; `snapshot` and `collector` run on 3.6\\n"
            % sys.version.split()[0]
        )
        return 2
    # The archive's own spelling of its path: `./envtune.pyz` stays as it is.
    source = __loader__.get_data(__loader__.archive + "/envtune/_data/collector.py").decode("utf-8")
    if verb == "collector":
        wants_help = {"-h", "--help"}.intersection(sys.argv[2:])
        sys.stdout.write("envtune collector: print the recorder as one Python program\\n" if wants_help else source)
        return 0
    names = {"__name__": "collector"}
    exec(compile(source, "collector.py", "exec"), names)
    return names["main"](sys.argv[2:], "envtune snapshot")


sys.exit(main())
"""


def main() -> None:
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        site = Path(work, "site")
        install(site)
        strip(site)
        (site / "__main__.py").write_text(MAIN, "utf-8")
        pack(site, target)
    say(f"{target}: {target.stat().st_size / 1e6:.2f} MB, built with Python {sys.version.split()[0]}")


def say(words: str) -> None:
    sys.stderr.write(f"envtune: {words}\n")


def install(site: Path) -> None:
    """The wheel of this checkout (with the compiled catalog) and its pure dependencies into `site`."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    requirements = [line for line in dependencies() if line.startswith(WANTED)]
    say(f"fetching {', '.join(requirements)}")
    subprocess.run([*pip, "install", "--no-compile", "--target", str(site), *requirements], check=True)
    subprocess.run([*pip, "install", "--no-compile", "--no-deps", "--target", str(site), str(ROOT)], check=True)


def dependencies() -> list[str]:
    """The `dependencies` and the extra `html` of pyproject.toml, which Python 3.9 has no parser for."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = text.partition("\ndependencies = [\n")[2].partition("\n]")[0]
    block += "\n" + text.partition("\nhtml = [")[2].partition("]")[0]
    return [line.split('"')[1] for line in block.splitlines() if '"' in line]


def strip(site: Path) -> None:
    """Remove compiled files, unneeded files and pip's metadata; keep licenses."""
    for path in sorted(site.rglob("*"), reverse=True):
        package = path.relative_to(site).parts[0].partition("-")[0].lower()
        if path.is_dir():
            if path.name == "__pycache__" or (path.parent == site and package in LEFT_OUT):
                shutil.rmtree(path)
        elif path.suffix in COMPILED or path.name in PIP_FILES:
            path.unlink()


def pack(site: Path, target: Path) -> None:
    """A zip file after a start line; equal content gives equal bytes."""
    moment = (1980, 1, 1, 0, 0, 0)
    with open(target, "wb") as file:
        file.write(START)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(p for p in site.rglob("*") if p.is_file()):
                info = zipfile.ZipInfo(path.relative_to(site).as_posix(), moment)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = (stat.S_IFREG | 0o644) << 16
                archive.writestr(info, path.read_bytes())
    if target.stat().st_size >= LIMIT:
        sys.exit(f"{target} is larger than {LIMIT} bytes")
    os.chmod(target, 0o755)


if __name__ == "__main__":
    main()
