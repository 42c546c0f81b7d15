"""How many examples a property test tries: a few fixed ones in `make test`, many new ones in `make test-all`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """Settings for `count` examples where examples are searched for, and for a tenth of them otherwise."""
    searching = settings.get_current_profile_name() == "search"
    suppressed = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=count if searching else max(6, count // 10), suppress_health_check=suppressed)
