"""Shared by the tests: the catalogue as it is in the tree, and scenes on recorded hosts."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, Generator, Mapping

import pytest
from hypothesis import HealthCheck, settings
from shipped import parsed

from envtune.catalog.examples import example_host
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.job.target import TargetOptions

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT / "checks" / "examples"


def shared_host(name: str) -> Mapping[str, Any]:
    """What `like: name` means."""
    data: Mapping[str, Any] = parsed(SHARED / f"{name}.yaml")
    return data


def example_scene(example: Mapping[str, Any]) -> Context:
    """A context on the host that an example describes; `target:` in it names the job."""
    host = example_host(example, shared_host)
    target = host.data.get("target") or {}
    return open_context(host, recorded_options(target) if target else TargetOptions())


# How long a busy machine takes to draw an example or to run one says nothing about what is tested.
settings.register_profile("envtune", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("envtune")


def pytest_configure() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden reports anew")
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped has failed (CI)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything a marked test needs is installed, so that one which skips itself tested nothing."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which --no-skips forbids: {report.longrepr}"
    return report
