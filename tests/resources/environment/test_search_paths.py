"""The line that cleans a search path: pasted, it must not leave what another check complains about."""

from __future__ import annotations

import pytest
from helpers.recorded import host_data, judge

from envtune.model import Finding, Outcome


def failing(data: dict[str, object]) -> dict[tuple[str, str], Finding]:
    found = judge(data)
    return {(one.id, one.subject): one for one in found if one.outcome is Outcome.FAIL}


@pytest.mark.parametrize("name", ["910a-ubuntu1804-mixed", "910b-ubuntu2004-residual"])
def test_a_cleaned_path_has_the_entries_of_one_cann_install(name: str) -> None:
    data, about = host_data(name), "LD_LIBRARY_PATH"
    before = failing(data)
    line = str(before["ENV014", about].commands[0].line)
    variable, _, value = line.partition("=")
    assert variable == f"export {about}"
    data["environ"] = {**data["environ"], about: value}
    after = failing(data)
    assert ("ENV014", about) not in after
    assert not any(id_ == "CANN012" and about in subject for id_, subject in after)
