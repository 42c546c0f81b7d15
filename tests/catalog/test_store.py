"""Where the catalog comes from: checkout, wheel, zipapp, the site's overlay, and the cache in between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import pytest
from helpers.catalogue_files import GOOD_CHECK, GOOD_FAQ, GOOD_PLAYBOOK, write_catalogue
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.assemble import shipped
from envtune.catalog import cache, layers, load, store
from envtune.catalog import compile as compiling
from envtune.catalog.store import compile_tree
from envtune.errors import CatalogError, UsageError
from envtune.model import Check

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
SOMEBODY = 12345


class Forgetful(dict[str, store.Compiled]):
    """Has every catalog opened anew, as the next process does."""

    def __setitem__(self, stamp: str, compiled: store.Compiled) -> None:
        pass


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of three entries: to compile the shipped ones takes a second."""
    root = tmp_path_factory.mktemp("checkout")
    write_catalogue(root, faq=GOOD_FAQ.replace("X90", "X89").replace("odd-error", "other-error"))
    (root / "checks/faq/X90-odd-error.yaml").rename(root / "checks/faq/X89-other-error.yaml")
    (root / "checks/cpu").mkdir()
    for file in ROOT.glob("checks/cpu/CPU00[12]-*.yaml"):
        shutil.copy(file, root / "checks/cpu")
    return root


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's own cache, or sees this machine's /etc/envtune."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(layers, "data_root", lambda: checkout)
    monkeypatch.setattr(layers, "SITE", str(tmp_path / "etc"))
    monkeypatch.setattr(store, "_opened", Forgetful())
    place = cache.cache_file
    monkeypatch.setattr(
        cache, "cache_file", lambda key, checkout="": place(key, checkout and str(tmp_path / "checkout"))
    )
    return tmp_path / "cache" / "envtune"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "etc"


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """A directory for --catalog with one check."""
    return write_catalogue(tmp_path / "more", check=GOOD_CHECK)


def by_id(*extra: Path) -> dict[str, Check]:
    return {check.id: check for check in load(extra).checks}


# ---------------------------------------------------------------------- overlays


def test_the_site_adds_checks_and_replaces_shipped_ones(site: Path) -> None:
    own = (ROOT / "checks/cpu/CPU001-governor-not-performance.yaml").read_text("utf-8")
    changed = site / "checks/cpu/CPU001-governor-not-performance.yaml"
    changed.parent.mkdir(parents=True)
    changed.write_text(own.replace("severity: medium", "severity: critical"), "utf-8")
    write_catalogue(site, check=GOOD_CHECK)
    found = by_id()
    assert found["CPU001"].severity.value == "critical"
    assert found["CPU900"].title.en == "A governor is odd"
    assert set(found) == {"CPU001", "CPU002", "CPU900"}
    assert load().files("checks")["CPU001"] == str(changed)
    assert load().files("checks")["CPU002"].startswith("checks/cpu/CPU002-")


def test_named_directories_win_over_the_site_and_the_last_one_wins(site: Path, tmp_path: Path) -> None:
    write_catalogue(site, check=GOOD_CHECK)
    first = write_catalogue(tmp_path / "first", check=GOOD_CHECK.replace("is odd", "is first"))
    last = write_catalogue(tmp_path / "last", check=GOOD_CHECK.replace("is odd", "is last"))
    assert by_id()["CPU900"].title.en == "A governor is odd"
    assert by_id(first)["CPU900"].title.en == "A governor is first"
    assert by_id(first, last)["CPU900"].title.en == "A governor is last"


def test_a_directory_of_plain_check_files_will_do(tmp_path: Path) -> None:
    (tmp_path / "CPU900-governor-odd.yaml").write_text(GOOD_CHECK, "utf-8")
    assert "CPU900" in by_id(tmp_path)


def test_faq_entries_and_playbooks_come_along(more: Path) -> None:
    write_catalogue(more, faq=GOOD_FAQ, playbook=GOOD_PLAYBOOK)
    catalogue = load([more])
    assert {entry.id for entry in catalogue.faq} == {"X89", "X90"}
    (playbook,) = [p for p in catalogue.playbooks if p.id == "do-something"]
    assert [(line.en, line.zh) for step in playbook.steps for line in step.lines] == [("Do it.", "执行。")]


def test_a_directory_that_is_not_there_or_holds_nothing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        load([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="contains no checks"):
        load([tmp_path / "empty"])


def test_a_broken_overlay_is_refused_with_its_full_path(more: Path) -> None:
    write_catalogue(more, check=GOOD_CHECK.replace("eq: performance", "eq: 7.10"))
    with pytest.raises(CatalogError, match=f"{more}/checks/cpu/CPU900-governor-odd.yaml:12:20: 7.10 can be a number"):
        load([more])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda p: os.mkfifo(p), "not a regular file"),
        (lambda p: p.mkdir(), "not a regular file"),
        (lambda p: p.symlink_to(p.parent / "nowhere"), "cannot be read"),
        (lambda p: p.symlink_to("/dev/zero"), "not a regular file"),
    ],
    ids=["fifo", "directory", "dangling link", "endless device"],
)
def test_what_is_no_file_is_refused_and_never_opened(more: Path, make: Callable[[Path], Any], told: str) -> None:
    make(more / "checks" / "cpu" / "CPU901-strange.yaml")
    with pytest.raises(CatalogError, match=told):
        load([more])


def test_a_file_that_would_be_overlooked_is_refused(more: Path) -> None:
    (more / "checks" / "cpu" / "CPU901-x.yml").write_text(GOOD_CHECK, "utf-8")
    with pytest.raises(CatalogError, match="name it"):
        load([more])


def test_a_site_overlay_that_may_not_be_read_is_an_error(site: Path) -> None:
    write_catalogue(site, check=GOOD_CHECK)
    site.chmod(0)
    try:
        assert "cannot be read: Permission denied" in as_ordinary_user(lambda: str(load().checks[0].id))
    finally:
        site.chmod(0o755)


def as_ordinary_user(work: Callable[[], str]) -> str:
    """What `work` returns, or the error it raises, when it does not run as root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
        try:
            answer = work()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode()[:60000])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer


# ---------------------------------------------------------------------- trust


@needs_root
@pytest.mark.parametrize(
    "which", ["more", "more/checks", "more/checks/cpu", "more/checks/cpu/CPU900-governor-odd.yaml"]
)
def test_root_refuses_an_overlay_of_somebody_else(more: Path, which: str) -> None:
    path = more.parent / which
    os.chown(path, SOMEBODY, SOMEBODY)
    with pytest.raises(CatalogError, match=f"{path} belongs to uid {SOMEBODY}, not to root; refused"):
        load([more])


@needs_root
@pytest.mark.parametrize("mode", [0o775, 0o757])
@pytest.mark.parametrize("which", [".", "checks/cpu", "checks/cpu/CPU900-governor-odd.yaml"])
def test_root_refuses_an_overlay_that_others_may_write(more: Path, which: str, mode: int) -> None:
    path = more / which
    path.chmod(mode)
    os.chown(path, 0, SOMEBODY)
    with pytest.raises(CatalogError, match=rf"{path} can be written by users other than root \(mode 0{mode:o}\)"):
        load([more])


@needs_root
def test_root_refuses_a_parent_directory_that_others_may_write(tmp_path: Path) -> None:
    middle = tmp_path / "middle"
    write_catalogue(middle / "more", check=GOOD_CHECK)
    middle.chmod(0o777)
    with pytest.raises(CatalogError, match=f"{middle} can be written"):
        load([middle / "more"])
    middle.chmod(0o1777)  # with the sticky bit nobody can replace an entry of root's
    assert "CPU900" in by_id(middle / "more")


@needs_root
def test_root_refuses_a_link_that_somebody_else_can_turn(more: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "link").symlink_to(more)
    assert "CPU900" in by_id(theirs / "link")
    os.chown(theirs, SOMEBODY, SOMEBODY)
    with pytest.raises(CatalogError, match=f"{theirs} belongs to uid {SOMEBODY}"):
        load([theirs / "link"])


@needs_root
def test_root_refuses_the_site_overlay_of_somebody_else(site: Path) -> None:
    write_catalogue(site, check=GOOD_CHECK)
    os.chown(site, SOMEBODY, SOMEBODY)
    with pytest.raises(CatalogError, match=f"{site} belongs to uid"):
        load()


@needs_root
def test_root_does_not_use_a_cache_of_somebody_else_and_says_so(cache_home: Path) -> None:
    load()
    assert list(cache_home.iterdir())
    os.chown(cache_home.parent, SOMEBODY, SOMEBODY)
    before = {path: path.stat().st_mtime_ns for path in cache_home.iterdir()}
    catalogue = load()
    (note,) = catalogue.notes
    assert note.en == f"the cache is not used: {cache_home.parent} belongs to uid {SOMEBODY}, not to root"
    assert {path: path.stat().st_mtime_ns for path in cache_home.iterdir()} == before
    assert "CPU001" in {check.id for check in catalogue.checks}


@needs_root
def test_root_runs_a_users_own_install_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "venv" / "envtune"
    package.mkdir(parents=True)
    os.chown(package, SOMEBODY, SOMEBODY)
    monkeypatch.setattr(layers, "PACKAGE", str(package))
    monkeypatch.setattr(layers, "code_files", lambda: ())
    catalogue = load()
    assert f"{package} belongs to uid {SOMEBODY}" in catalogue.notes[0].en
    assert catalogue.checks


@needs_root
def test_an_ordinary_user_may_use_an_overlay_of_his_own(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(more, SOMEBODY, SOMEBODY)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    assert "CPU900" in by_id(more)


# ---------------------------------------------------------------------- cache


def never(*arguments: Any) -> Any:
    raise AssertionError("the YAML must not be read again")


def test_the_second_load_reads_no_yaml(more: Path, monkeypatch: pytest.MonkeyPatch, cache_home: Path) -> None:
    first = load([more]).checks
    monkeypatch.setattr(compiling, "compile_rows", never)
    assert load([more]).checks == first
    files = list(cache_home.iterdir())
    assert len(files) == 2, "one of the shipped layer, one of both"
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert json.loads(file.read_text("utf-8").split("\n")[0])["format"] == cache.FORMAT


def test_a_prepared_cache_becomes_the_users_own(tmp_path: Path) -> None:
    """Or every start would read both: a megabyte each."""
    own, prepared = str(tmp_path / "own.json"), str(tmp_path / "prepared.json")
    file = layers.Source("a.yaml", "checks", layers.Layer(str(tmp_path)), "a.yaml", "", "now", 0)
    cache.write(own, cache.Cached("before", "hash of before", b"old"))
    cache.write(prepared, cache.Cached("now", "hash", b"new"))
    assert store._through_cache(store._Caches(own, [own, prepared]), [file], [], None) == b"new"
    assert cache.read(own) == cache.Cached("now", "hash", b"new")


def test_old_caches_are_removed_and_nothing_else(tmp_path: Path) -> None:
    names = ("catalog-0123abcd.json", "catalog-0123abcd.json.4711", "catalog-new00000.json", "profile.json")
    old = time.time() - (cache.KEPT_DAYS + 1) * 86400
    for name in names:
        (tmp_path / name).write_text("{}", "utf-8")
        os.utime(tmp_path / name, (old, old))
    (tmp_path / "catalog-89abcdef.json").write_text("{}", "utf-8")
    cache.write(str(tmp_path / "catalog-fedcba98.json"), cache.Cached("stamp", "hash", b"{}"))
    left = {"catalog-89abcdef.json", "catalog-fedcba98.json", "catalog-new00000.json", "profile.json"}
    assert {path.name for path in tmp_path.iterdir()} == left


def compiled_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are compiled from now on."""
    names: list[str] = []
    compile_rows = compiling.compile_rows

    def noted(files: Sequence[tuple[layers.Source, bytes]], lower: store.Rows) -> store.Rows:
        names.extend(os.path.basename(source.path) for source, _ in files)
        return compile_rows(files, lower)

    monkeypatch.setattr(compiling, "compile_rows", noted)
    return names


def test_an_overlay_is_compiled_over_the_cached_shipped_layer(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = store.dump(compiling.compile_rows(both_layers(more), {}))
    load()
    compiled = compiled_files(monkeypatch)
    assert store.open_catalogue([more]).rows("checks") == store.Compiled(whole).rows("checks")
    assert compiled == ["CPU900-governor-odd.yaml"]


def both_layers(more: Path) -> list[tuple[layers.Source, bytes]]:
    stack = (layers.Layer(str(layers.data_root()), own=True), layers.Layer(str(more)))
    return [(source, layers.content(source)) for layer in stack for source in layers.sources(layer)]


def test_an_overlay_alone_has_the_shipped_layer_cached_as_well(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load([more])
    monkeypatch.setattr(compiling, "compile_rows", never)
    assert set(by_id()) == {"CPU001", "CPU002"}


@pytest.fixture
def own_checkout(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that the test may change."""
    copy = tmp_path / "own"
    shutil.copytree(checkout, copy)
    monkeypatch.setattr(layers, "data_root", lambda: copy)
    return copy


@pytest.mark.parametrize("racy", [False, True])
def test_a_shipped_file_that_changed_below_an_overlay_is_noticed(
    more: Path, own_checkout: Path, monkeypatch: pytest.MonkeyPatch, racy: bool
) -> None:
    monkeypatch.setattr(store, "RACY", 10**18 if racy else 0)
    (file,) = own_checkout.glob("checks/cpu/CPU001-*.yaml")
    before, text = file.stat(), file.read_text("utf-8")
    assert by_id(more)["CPU001"].severity.value == "medium"
    changed = text.replace("severity: medium", "severity: low   ")
    file.write_text(changed, "utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    compiled = compiled_files(monkeypatch)
    assert by_id(more)["CPU001"].severity.value == "low"
    assert set(compiled) == {"CPU900-governor-odd.yaml", *(path.name for path in own_checkout.glob("checks/*/*.yaml"))}
    assert by_id()["CPU001"].severity.value == "low"


def test_a_process_opens_once_what_does_not_change(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_opened", {})
    monkeypatch.setattr(store, "RACY", 0)
    first = load([more])
    assert load([more]) is first and load() is not first
    write_catalogue(more, check=GOOD_CHECK.replace("is odd", "is changed"))
    assert by_id(more)["CPU900"].title.en == "A governor is changed"


def test_a_changed_file_is_noticed_even_with_its_size_and_time_set_back(more: Path) -> None:
    file = more / "checks/cpu/CPU900-governor-odd.yaml"
    assert by_id(more)["CPU900"].title.en == "A governor is odd"
    before = file.stat()
    file.write_text(GOOD_CHECK.replace("is odd", "is bad"), "utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert by_id(more)["CPU900"].title.en == "A governor is bad"


def test_a_file_that_came_or_went_is_noticed(more: Path) -> None:
    load([more])
    other = more / "checks/cpu/CPU901-other.yaml"
    other.write_text(GOOD_CHECK.replace("CPU900", "CPU901").replace("governor-odd", "other"), "utf-8")
    assert "CPU901" in by_id(more)
    other.unlink()
    assert "CPU901" not in by_id(more)


def test_the_same_content_with_another_time_needs_no_yaml(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load([more])
    monkeypatch.setattr(compiling, "compile_rows", never)
    os.utime(more / "checks/cpu/CPU900-governor-odd.yaml")
    assert "CPU900" in by_id(more)


def test_a_file_that_just_changed_is_compared_by_content(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one tick of the clock a second change leaves no trace in the stamp."""
    monkeypatch.setattr(store, "RACY", 10**18)
    load([more])
    read: list[str] = []
    content = layers.content
    monkeypatch.setattr(layers, "content", lambda source: read.append(source.path) or content(source))
    monkeypatch.setattr(compiling, "compile_rows", never)
    load([more])
    assert str(more / "checks/cpu/CPU900-governor-odd.yaml") in read


def test_a_broken_file_is_refused_every_time(more: Path) -> None:
    write_catalogue(more, check="id: [\n")
    for _ in range(2):
        with pytest.raises(CatalogError):
            load([more])


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(p.read_bytes()[:-200]),
        lambda p: p.write_text(p.read_text("utf-8").replace("A governor is odd", "A governor is bad"), "utf-8"),
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(b"\x80\x04\x95 pickle"),
        lambda p: p.write_text("[]\n{}\n", "utf-8"),
        lambda p: p.write_text(p.read_text("utf-8").replace('"envtune": "', '"envtune": "9', 1), "utf-8"),
        lambda p: p.chmod(0o666),
        lambda p: (p.unlink(), p.mkdir()),
        lambda p: (p.rename(p.parent / "elsewhere"), p.symlink_to(p.parent / "elsewhere")),
    ],
    ids=["cut", "edited", "empty", "binary", "list", "version", "writable", "directory", "link"],
)
def test_a_cache_that_is_not_ours_is_not_used(
    damage: Callable[[Path], Any], own_checkout: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_catalogue(own_checkout, check=GOOD_CHECK)
    load()
    (file,) = cache_home.iterdir()
    damage(file)
    compiled = compiled_files(monkeypatch)
    assert by_id()["CPU900"].title.en == "A governor is odd"
    assert compiled


def test_a_cache_of_the_shipped_layer_that_is_not_ours_is_not_used_for_an_overlay(
    more: Path, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load()
    (file,) = cache_home.iterdir()
    file.chmod(0o666)
    compiled = compiled_files(monkeypatch)
    assert "CPU001" in by_id(more)
    assert len(compiled) == 4


def test_where_nothing_can_be_written_there_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "CPU001" in by_id()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "not/absolute")
    assert "CPU001" in by_id()


def test_a_home_that_cannot_be_written_reads_what_make_compiled_in_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "checkout" / ".cache"))  # as the Makefile sets it
    load()
    (tmp_path / "file").write_text("in the way", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(compiling, "compile_rows", lambda *a: pytest.fail("compiled again"))
    assert "CPU001" in by_id()


# ---------------------------------------------------------------------- checkout, wheel, zipapp

PROBE = """
import sys, json
from pathlib import Path
from envtune.catalog import layers, load
layers.SITE = "/nowhere"
catalogue = load([Path(p) for p in sys.argv[1:]])
print(json.dumps({
    "package": layers.PACKAGE, "ids": [c.id for c in catalogue.checks], "yaml": "yaml" in sys.modules,
    "faq": [e.id for e in catalogue.faq], "playbooks": [p.id for p in catalogue.playbooks],
}))
"""


def run_from(first_on_path: Path, *extra: Path, cwd: Path) -> dict[str, Any]:
    """What a fresh Python that imports envtune from there finds."""
    environment = {**os.environ, "PYTHONPATH": str(first_on_path)}
    argv = [sys.executable, "-c", PROBE, *map(str, extra)]
    done = subprocess.run(argv, env=environment, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def compiled() -> bytes:
    return compile_tree(str(ROOT))


@pytest.fixture(scope="module", params=sampled(["wheel", "zipapp"], 2))
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, compiled: bytes
) -> Iterator[Path]:
    """The package as a wheel unpacks it, and in one zip file."""
    folder = tmp_path_factory.mktemp("installed")
    site_packages = folder / "site-packages"
    shutil.copytree(ROOT / "envtune", site_packages / "envtune", ignore=shutil.ignore_patterns("__pycache__"))
    (site_packages / "envtune" / "_data").mkdir()
    (site_packages / "envtune" / "_data" / "catalog.json").write_bytes(compiled)
    if request.param == "wheel":
        yield site_packages
        return
    archive = folder / "envtune.pyz"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(site_packages.rglob("*")):
            packed.write(file, file.relative_to(site_packages))
    shutil.rmtree(site_packages)
    yield archive


def test_a_checkout_reads_its_own_files_from_anywhere(tmp_path: Path) -> None:
    found = run_from(ROOT, cwd=tmp_path)
    assert found["package"] == str(ROOT / "envtune")
    assert "CPU001" in found["ids"]


@pytest.mark.slow
def test_an_install_finds_its_catalogue_without_yaml(installed: Path, tmp_path: Path) -> None:
    here = run_from(ROOT, cwd=tmp_path)
    found = run_from(installed, cwd=tmp_path)
    assert found["package"] == str(installed / "envtune")
    assert not found["yaml"]
    assert {key: found[key] for key in ("ids", "faq", "playbooks")} == {
        key: here[key] for key in ("ids", "faq", "playbooks")
    }


@pytest.mark.slow
def test_an_install_takes_overlays_and_caches_them(installed: Path, more: Path, tmp_path: Path) -> None:
    first, second = (run_from(installed, more, cwd=tmp_path) for _ in range(2))
    assert "CPU900" in first["ids"]
    assert "CPU001" in first["ids"]
    assert first["yaml"]
    assert not second["yaml"]
    assert second["ids"] == first["ids"]


def test_the_compiled_catalogue_is_json_without_examples(compiled: bytes) -> None:
    data = json.loads(compiled)
    assert {"checks", "faq", "playbooks"} <= set(data)
    assert all("examples" not in row for kind in ("checks", "faq", "playbooks") for row in data[kind])


@pytest.mark.slow
def test_the_built_wheel_carries_the_catalogue(tmp_path: Path) -> None:
    """Builds with the real backend; fetches it from the package index."""
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(argv, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        packed.extractall(tmp_path / "unpacked")
    assert "envtune/_data/checks/cpu/CPU001-governor-not-performance.yaml" in names
    assert (tmp_path / "unpacked/envtune/_data/collector.py").read_text("utf-8") == shipped("collector")
    found = run_from(tmp_path / "unpacked", cwd=tmp_path)
    assert "CPU001" in found["ids"]
    assert not found["yaml"]
