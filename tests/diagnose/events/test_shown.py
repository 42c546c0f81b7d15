"""Which lines of a page stand in blocks that show text as it is, in each markup."""

from __future__ import annotations

import pytest

from envtune.diagnose.events.shown import shown_lines

LOG = "2025-06-05 14:22:41,001 ERROR train.py:10 failed"
BLOCKS = {
    "a fence of Markdown": ["Text", "```text", LOG, "", "x", "```", "after"],
    "a fence in an item": ["1. do", "   ~~~~ console", LOG, "", "x", "   ~~~~", "after"],
    "a literal block of reStructuredText": ["Text::", "", f"    {LOG}", "", "    x", "", "after"],
    "a directive of reStructuredText": [".. code-block:: text", "   :linenos:", f"   {LOG}", "", "   x", "", "after"],
    "a delimited block of AsciiDoc": ["[source,text]", "----", LOG, "", "x", "----", "after"],
    "an environment of LaTeX": ["Text", "\\begin{verbatim}", LOG, "", "x", "\\end{verbatim}", "after"],
    "a text in Python": ["import re", 'OOM = """', LOG, "", "x", '"""', "after()"],
}
AROUND = {
    "an element of HTML": ["<p>Text</p>", f'<pre class="screen">{LOG}', "x", "y</pre>", "<p>after</p>"],
    "an element of a wiki": ["== Text ==", f"<code bash>{LOG}", "x", "y</CODE>", "after"],
    "a block of a forum": ["Text", f"[code]{LOG}", "x", "y[/code]", "after"],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_what_stands_between_the_marks_is_shown(name: str) -> None:
    lines = BLOCKS[name]
    shown = shown_lines(lines)
    assert {lines.index(line) for line in lines if LOG in line or line.strip() == "x"} <= shown
    assert not shown & {0, len(lines) - 1}


@pytest.mark.parametrize("name", AROUND)
def test_an_element_may_hold_a_part_in_the_lines_of_its_tags(name: str) -> None:
    assert shown_lines(AROUND[name]) == {1, 2, 3}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["<p>Use <code>set_env.sh</code>.</p>", LOG], id="an element within a line"),
        pytest.param(["Namespace::", LOG], id="a colon more without an indent"),
        pytest.param(["- Ascend Error Message:", "----", LOG, "----", "after"], id="rules of a report"),
        pytest.param(["```", LOG], id="a fence that nothing closes"),
    ],
)
def test_other_lines_are_not_shown(lines: list[str]) -> None:
    assert not shown_lines(lines)


def test_a_block_goes_on_beyond_what_was_read() -> None:
    assert shown_lines(["Text", "```", LOG], ended=False) == {2}
    assert shown_lines([LOG, "```", "Text", "```", LOG], begun=False, ended=False) == {0, 4}
    assert shown_lines(["Text", "```", LOG, "```"], begun=False) == {2}
