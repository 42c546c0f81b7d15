"""envtune: prepares Ascend NPU training hosts and keeps them in shape.

The names below are the public API (docs/api.md). They are imported when they are used: `import envtune` costs nothing.
"""

from envtune.version import __version__ as __version__

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; nothing is imported here, see trust/import_path.py
if TYPE_CHECKING:
    from typing import Any

    from envtune.audit import check as check
    from envtune.catalog import Catalogue as Catalogue
    from envtune.catalog import load as load_catalogue
    from envtune.diagnose import diagnose as diagnose
    from envtune.diagnose.diagnosis import DiagnosisReport as DiagnosisReport
    from envtune.errors import EnvtuneError as EnvtuneError
    from envtune.fix.plan import Plan as Plan
    from envtune.fix.prepare import plan as plan
    from envtune.host import Host as Host
    from envtune.host import LocalHost as LocalHost
    from envtune.job.target import TargetOptions as TargetOptions
    from envtune.model import Finding as Finding
    from envtune.model import FixOptions as FixOptions
    from envtune.model import Outcome as Outcome
    from envtune.model import Report as Report
    from envtune.model import Severity as Severity
    from envtune.report import to_json as to_json
    from envtune.snapshot.open import open_snapshot as open_snapshot

_PLACES = {
    "check": "envtune.audit:check",
    "plan": "envtune.fix.prepare:plan",
    "diagnose": "envtune.diagnose:diagnose",
    "to_json": "envtune.report:to_json",
    "LocalHost": "envtune.host:LocalHost",
    "Host": "envtune.host:Host",
    "open_snapshot": "envtune.snapshot.open:open_snapshot",
    "TargetOptions": "envtune.job.target:TargetOptions",
    "FixOptions": "envtune.model:FixOptions",
    "load_catalogue": "envtune.catalog:load",
    "Catalogue": "envtune.catalog:Catalogue",
    "Report": "envtune.model:Report",
    "Finding": "envtune.model:Finding",
    "Outcome": "envtune.model:Outcome",
    "Severity": "envtune.model:Severity",
    "Plan": "envtune.fix.plan:Plan",
    "DiagnosisReport": "envtune.diagnose.diagnosis:DiagnosisReport",
    "EnvtuneError": "envtune.errors:EnvtuneError",
}
__all__ = [
    "Catalogue",
    "DiagnosisReport",
    "EnvtuneError",
    "Finding",
    "FixOptions",
    "Host",
    "LocalHost",
    "Outcome",
    "Plan",
    "Report",
    "Severity",
    "TargetOptions",
    "__version__",
    "check",
    "diagnose",
    "load_catalogue",
    "open_snapshot",
    "plan",
    "to_json",
]


def __getattr__(name: str) -> "Any":
    if name not in _PLACES:
        raise AttributeError(f"module 'envtune' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
