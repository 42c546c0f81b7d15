"""How the tests are run."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from functools import cache
from typing import Any, Generator, Optional

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from envtune.catalog import layers
from envtune.cli.app import LazyGroup
from tests.helpers.stores import close_stores

# How long a busy machine takes to draw an example or to run one says nothing about what is tested. `make test` tries
# the same few examples every time, so that it is never red by chance; `make test-all` searches
# (--hypothesis-profile=search).
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, database=None, max_examples=20, **PATIENT)
settings.register_profile("search", print_blob=True, **PATIENT)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("XDG_CACHE_HOME", os.path.join(layers.data_root(), ".cache"))  # as with `make`
    # Instead of 700 new objects: parsing all modules takes half the time. What survives stays, so one search is enough.
    gc.set_threshold(200_000, 100)
    os.register_at_fork(after_in_child=gc.freeze)  # or the first collection in a fork copies nearly all memory
    if settings().derandomize:
        _draw_no_constants_of_ours()


def _draw_no_constants_of_ours() -> None:
    """Have examples not depend on what this process has imported.

    Hypothesis parses every module of the project that is imported and draws its constants now and then: other examples
    in each process and order of tests, and seconds for the parsing. There is no setting for it.
    """
    providers: Any = importlib.import_module("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants"):
        empty = providers._local_constants
        providers._get_local_constants = lambda: empty


def pytest_collection_finish() -> None:
    """Modules and collected tests stay to the end: no garbage collection need look through them again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden reports anew")
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped has failed (CI)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    """Have a worker send one report of a test that passes: setup and teardown double what sending costs (1 ms)."""
    if not hasattr(item.config, "workerinput") or item.config.getoption("durations"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything a marked test needs is installed, so that one which skips itself tested nothing."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--no-skips"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which --no-skips forbids: {report.longrepr}"
    return report


@pytest.fixture(autouse=True, scope="session")
def _own_host_lock(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests in several processes are no runs on one host, nor are those of fixtures of whole modules."""
    os.environ["ENVTUNE_HOST_LOCK"] = str(tmp_path_factory.getbasetemp() / "envtune.lock")


@pytest.fixture(autouse=True, scope="session")
def _shipped_files_are_looked_at_once() -> None:
    """No test writes the catalog or the code of this checkout, and each load would look at their 600 files again."""
    sources, code_files, content = layers.sources, layers.code_files, layers.content
    shipped = str(layers.data_root())
    own_sources = cache(lambda: sources(layers.Layer(shipped, own=True)))
    own_code = cache(lambda package, compiled: code_files())  # a test may have others
    layers.sources = lambda layer: own_sources() if layer == layers.Layer(shipped, own=True) else sources(layer)
    layers.code_files = lambda: own_code(layers.PACKAGE, layers.COMPILED)
    own_content = cache(content)  # by path, size and times of the file
    own = (shipped, layers.PACKAGE)
    layers.content = lambda file: own_content(file) if file.layer.directory in own else content(file)


@pytest.fixture(autouse=True, scope="session")
def _verbs_are_built_once() -> None:
    """A thousand tests call the program, and for each call typer makes a command of a function's signature."""
    build = LazyGroup.get_command
    built: dict[Any, Any] = {}

    def get_command(self: LazyGroup, context: Any, name: str) -> Any:
        key = (tuple(self.verbs.items()), name, context.obj)
        if self.known is not None or key not in built:  # what is known is of the line that a shell completes
            built[key] = build(self, context, name)
        return built[key]

    LazyGroup.get_command = get_command


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    close_stores()  # as a fixture it would cost each of thousands of tests that open none
