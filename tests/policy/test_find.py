"""Which policy file is used, and which are refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Mapping, Optional

import pytest

from envtune.errors import PolicyError, UsageError
from envtune.policy import find
from envtune.policy.find import Place, find_policy, policy_content

CONTENT = "fail_on: low\n"
NAMED = {"ENVTUNE_POLICY": "b.yaml"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory two levels below `envtune.yaml`, and a site's policy."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("envtune.yaml", "policy.yaml"):
        (tmp_path / name).write_text(CONTENT)
        (tmp_path / name).chmod(0o644)
    monkeypatch.chdir(tmp_path / "a" / "b")
    monkeypatch.setattr(find, "SITE", str(tmp_path / "policy.yaml"))
    return tmp_path


def as_user(monkeypatch: pytest.MonkeyPatch, uid: int = 1000) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


@pytest.mark.parametrize(
    ("option", "environ", "uid", "expected"),
    [
        ("a.yaml", NAMED, 0, "a.yaml"),
        (None, NAMED, 0, "b.yaml"),
        (None, {}, 1000, "{}/envtune.yaml"),
        (None, {}, 0, "{}/policy.yaml"),
        (None, {"ENVTUNE_POLICY": ""}, 0, "{}/policy.yaml"),
        ("none", NAMED, 1000, None),
        (None, {"ENVTUNE_POLICY": "none"}, 1000, None),
    ],
)
def test_precedence(
    option: Optional[str],
    environ: Mapping[str, str],
    uid: int,
    expected: Optional[str],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_user(monkeypatch, uid)
    place = find_policy(option, environ)
    assert (place and place.path) == (expected and expected.format(project))


def test_the_nearest_directory_wins(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch)
    (project / "a" / "envtune.yaml").write_text(CONTENT)
    place = find_policy(None, {})
    assert place is not None and place.path == str(project / "a" / "envtune.yaml")


def test_where_there_is_none_one_stat_is_made(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "SITE", "/nonexistent/policy.yaml")
    as_user(monkeypatch, 0)
    looked: list[str] = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: looked.append(str(path)) or stat(path, **more))
    assert find_policy(None, {}) is None
    assert looked == ["/nonexistent/policy.yaml"]


@pytest.mark.parametrize(
    ("changed", "uid", "mode", "words"),
    [
        ("policy.yaml", 1000, 0o644, "belongs to uid 1000, not to root; refused when run as root: chown root"),
        ("policy.yaml", 0, 0o666, "can be written by users other than root (mode 0666)"),
        ("", 0, 0o777, "can be written by users other than root (mode 0777)"),
        ("", 1000, 0o755, "belongs to uid 1000, not to root"),
    ],
)
def test_root_uses_no_policy_of_others(changed: str, uid: int, mode: int, words: str, project: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("changes owners")
    os.chown(project / changed, uid, 0)
    (project / changed).chmod(mode)
    with pytest.raises(PolicyError) as error:
        policy_content(Place(str(project / "policy.yaml"), "--policy"))
    assert words in str(error.value)


@pytest.mark.parametrize(("uid", "mode", "good"), [(1000, 0o664, True), (0, 0o644, True), (1001, 0o644, False)])
def test_a_user_uses_no_found_policy_of_others(
    uid: int, mode: int, good: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("changes owners")
    path = project / "envtune.yaml"
    os.chown(path, uid, 0)
    path.chmod(mode)
    as_user(monkeypatch)
    found = find_policy(None, {})
    assert found is not None
    if good:
        assert policy_content(found) == CONTENT.encode()
    else:
        with pytest.raises(PolicyError, match=r"neither to you nor to root; to use it: --policy .*, to ignore it"):
            policy_content(found)
    assert policy_content(Place(str(path), "--policy")) == CONTENT.encode()  # named


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--policy .*/none\.yaml: "):
        policy_content(Place(str(tmp_path / "none.yaml"), "--policy"))
