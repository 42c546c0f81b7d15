"""Tell by all its lines what a page is: a log, a document, source code, a search, a chat, the history of a repository.

A line alone often does not say whether its error happened: `EI0006 Getting socket times out` is an event in a log, a
heading in a list of known problems, and a sentence in a chat. Each line of the page counts for the form it has; what
the page is follows from their shares, and what stands at a place from the page and the lines near it. A page that holds
a log, in a fence or not, is none of the others: an issue with a log in it is answered. Pure.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Optional, Sequence

from envtune.diagnose.events.forms import CATALOGUE, CODE, HELP, HISTORY, QUOTED, REPORT, SEARCH, TABLE, unquoted
from envtune.diagnose.events.layout import Layout
from envtune.diagnose.events.position import is_source, typed_form
from envtune.diagnose.events.structure import Structure, lists_codes
from envtune.diagnose.events.talk import Talk
from envtune.diagnose.events.weight import LONG, Weight
from envtune.records import expression

DOCUMENT, CHAT = "document", "chat"
WEIGHED = ("", QUOTED, DOCUMENT, CHAT)  # forms that may be wrong
MAX_LINE = 400  # characters of a line that are looked at
NEAR = 12  # lines
FEW = 5  # lines: so few are an error that somebody pasted
LAID_OUT = 4  # headings, items, tags and rules that make a document
MANY_ERRORS = 3  # sections about one each
MANY_CODES = 4  # different ones in a line, which enumerates them
PAGE, MAX_PAGES = 1 << 14, 32  # bytes of half a page; pages of a file
MAX_LOGS = 3  # pages of a file that are looked at after one of nothing but lines that programs print

# A line that only a program prints while it runs.
_LOGGED = expression(
    r"(?:[\w./-]+\.(?:log|txt|out|err)[:-](?:\d+[:-])?|E {2,}| {4}(?=\())?"  # grep over logs, pytest, Markdown
    r"(?:\[?(?:\w+ )?\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|EVENT|CRITICAL|FATAL)\b[\]:]?\s"
    r"|\[?[EWIF]\d{3,4} \d\d:|\[[EW] \S+:\d+\]|Traceback \(most recent|  File \"[^\"]+\", line \d+|\[rank ?\d+\]"
    r"|(?:\([\w ]+ )?\(?\w*\s?(?:rank=\d+ )?pid=\d+|frame #\d+:|\[ *\d+\.\d{6}\]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|terminate called|\s+what\(\):|E[A-Z\d]\d{4}: \[PID|\[PID: ?\d+\]|>>> \S|DEVICE\[\d|\+ \w+"
    r"|\S+: line \d+: |\[Error\]: |\{.{0,200}\"(?:ts|@?time(?:stamp)?|level|log|severity)\"\s?:"
    r"|=+ (?:test session starts|FAILURES|short test summary)|FAILED \S+::"
    r"|\[default\d+\]:|\[\d+,\d+\]<|Root Cause \(first observed|torch\.distributed|  exitcode +: |.*\bChildFailedError"
    r"|Segmentation fault|Killed$|Aborted|Fatal Python|.* \(core dumped\)|Bus error)"
)
_CRASHED = expression(
    r"(?:E {2,})?(?:(?:[\w.]+\.)?\w*(?:Error|Exception): \S|(?:ERROR|error): "
    r"|E[A-Z\d]\d{4}(?:: \S|\s.*\d{4}-\d\d-\d\d))"
)
# The rows of a program that checks a host, and those of what is wrong there.
_MARKED = expression(r"\s*\[\s?(?:[\u2713\u2714\u221a+*-]|ok|OK|PASS(?:ED)?)\s?\]\s|\s*[\u2713\u2714\u2705]\s")
_FAILING = expression(r"\s*\[?\s?(?:[\u2717\u2718\u274c\u00d7xX]|FAIL(?:ED)?|ERROR)\s?\]?:?\s")
_USAGE = expression(r"(?i)\s{0,4}(?:usage|\u7528\u6cd5|\u4f7f\u7528\u65b9\u6cd5|synopsis)\s?(?:[:\uff1a]|$)")
_SOLVED = expression(
    r"(?i)\b(?:everything|all|mails?|issues?|tickets?|incidents?|problems?|cases?|bugs?)\b.{0,40}"
    r" (?:is|are|was|were|been) (?:solved|resolved|closed|settled)\b"
    r"|no action (?:is )?(?:needed|required)|nothing (?:is )?needed from"
    r"|\u5df2(?:\u5b9a\u4f4d\u5e76)?(?:\u5173\u95ed|\u89e3\u51b3)|\u6ca1\u6709\u518d\u51fa\u73b0"
    r"|\u4e0d\u9700\u8981\u4efb\u4f55\u64cd\u4f5c"
)
_WEB_PAGE = expression(r"(?i)\s*<(?:!doctype\s+html|html)\b")
_MERGED = expression(r"(?:\S+ )?merged (?:commit|\d+ commits?)\b|\S+ approved these changes\b")
_FENCE = expression(r"\s{0,3}(?:[-*] )?(?:```|~~~)")
# A section about an error: its words in a heading.
_ERROR_HEADING = expression(r"#{1,6} .*(?:`[^`]{12,}`|\w(?:Error|Exception)\b|\bE[A-Z\d]\d{4}\b|\b[125]07\d{3}\b)")
_HEADING = expression(r"#{1,6}\s+\S|\*\*[^*]{2,60}\*\*:?\s*$|={3,}$|-{3,}$")
_ITEM = expression(r"\s{0,8}(?:[-*+\u2022]|\d{1,2}[.)\u3001])\s")
_MARKER = expression(r"\s+[~^][~^ ]*$")  # of a place in the line above
_CODE_NAME = expression(r"\b(?:E[A-Z\d]\d{4}|[125]07\d{3})\b")
_CODE = expression(
    r"\s*(?:\d{1,6}[:|\t ]\s*)?(?:!?\s?(?:grep|sed|awk|source|\[\[?)\s|#!/|(?:#\s?(?:include|define|ifn?def|endif"
    r"|pragma)\b|//|/\*|\*/|namespace\b|template\b|using\b"
    r"|(?:static|const|constexpr|inline|extern|virtual|void|public|private|struct|enum|class|def|async def|import"
    r"|from)\s\w"
    r"|(?:if|elif|while|for|with|switch|else|except|try|case|return|raise|throw)\b.*[:{;]\s*$|@\w+|fi$|done$|esac$"
    r"|local\s)"
    r"|.*[;{}]\s*\\?$|[\])}]+,?;?$|[\w.\[\]\"']+(?: ?: ?[\w.\[\], ]+)? ?[+:]?= ?\S|.*,\s*$|\"\"\"|'''"
    r"|[\w.:>-]+\(.*\)\s*(?:#.*)?$|(?:return|raise|import|echo|export|assert)\b|[\"'].*[\"'],?\)*$)"
)
_REMARK = expression(r"\s*#(?!!)")
_DATA = expression(r"\s*(?:[\[\]{}(),]+\s*$|\"[^\"]*\"\s*:\s*\S|\"[^\"]*\",?\s*$)")
_HAPPENED = expression(
    r"\"(?:output_type|ename|evalue|time|timestamp|@timestamp|ts|date|created_?at|\w*Time)\"\s*:|\d\d:\d\d:\d\d"
)
_LAID_OUT = expression(
    r"#{1,6}\s\S|\s*[-=~]{4,}[-=~ ]*$|\s*</?[a-z]\w*[ >]|\s{0,8}(?:[-*+\u2022]|\d{1,2}[.)\u3001]|\[[ x]\])\s\S"
    r"|[A-Z][A-Z ]{2,30}$|[\u4e00-\u9fff]{2,6}$|\s*\.\. \w|\s*```"
)
_BUILD = expression(
    r"\[ *\d+%\] |\[\d+/\d+\] |(?:g?make|ninja)(?:\[\d+\])?: |collect2: |/\S+/ld: |\S+:\d+:\d+: (?:fatal )?error"
    r"|(?:Building|Collecting|Installing|Requirement already|Processing|running (?:build|install)) "
)
_PATH = expression(r"[/~]{0,2}(?:[\w.@+-]+/)*[\w.@+-]+\.(?P<end>[A-Za-z]{1,6})$")
_NUMBERED = expression(r"\s{0,6}\d{1,6}[:-]")
_VERSION = expression(
    r"#{1,6} (?:\[?(?:[\w.-]+ )?v?\d+\.\d+|Unreleased|Change|What's)|\[?v\d+\.\d+(?:\.\w+)*\]?(?:$| ?[-(\u2013])"
    r"|\d+\.\d+\.\d+ ?[-(\u2013]"
)
_DONE = expression(
    r"(?i)\s{0,12}(?:[-*+\u2022]\s|\d{1,3}[.)]\s|#\d+:?\s|[a-f\d]{7,40}\s|\d{4}-\d\d-\d\d\s"
    r"|\S{1,40} \(#?\d+\):)?\s*(?:\[[\w /-]{2,24}\]\s*){0,3}"
    r"(?:\*\*[\w ]+:?\*\*:?\s)?(?:(?:fix|feat|docs?|refactor|test|chore|perf|ci|revert)(?:\([^)]*\))?!?: "
    r"|(?:fix(?:ed|es)?|handled?|document(?:ed)?|add(?:ed)?|improved?|supported|removed?|resolved?|avoid(?:ed)?"
    r"|bump(?:ed)?"
    r"|revert(?:ed)?|catch|report|clarif(?:y|ied)|known issues?|bug ?fix(?:es)?|prevent(?:ed)?|changed?|no (?:more"
    r"|longer))\b(?!.*[?\uff1f]$)"
    r"|\u4fee\u590d|\u65b0\u589e|\u4f18\u5316|\u5df2\u77e5\u95ee\u9898)"
)
_REMEDY = expression(
    r"(?i)(?:#{1,6} |\*\*|\d\. |[-*] )?\s*(?:\*\*)?(?:solutions?|possible causes?|causes?|root cause|symptoms?"
    r"|likely causes?|meaning|fix|resolution|remed(?:y|ies)|what to do"
    r"|recommended actions?|workarounds?|\u89e3\u51b3(?:\u65b9\u6cd5|\u65b9\u6848|\u529e\u6cd5|\u63aa\u65bd)?"
    r"|\u5904\u7406(?:\u65b9\u6cd5|\u6b65\u9aa4|\u5efa\u8bae|\u63aa\u65bd)|(?:\u6545\u969c|\u95ee\u9898|\u5f02\u5e38)"
    r"(?:\u5904\u7406|\u89e3\u51b3|\u6839\u56e0)|\u6839\u56e0|(?:\u53ef\u80fd|\u6545\u969c)?\u539f\u56e0(?:\u5206\u6790)?"
    r"|(?:\u95ee\u9898|\u6545\u969c|\u9519\u8bef|\u5f02\u5e38)?\u73b0\u8c61)(?:\*\*)?\s*[:\uff1a]?(?:\*\*)?\s*(?:$|[^\[\d].{0,200}$)"
)
_ADVICE = expression(
    r"(?i)^\s{0,8}(?:[-*+>]\s|\d{1,2}[.)]\s)?(?:please |then |try |to fix|run\b|set\b|use\b|check\b|install\b"
    r"|reduce\b|lower\b|source\b"
    r"|make sure\b|ensure\b|increase\b|upgrade\b|export\b|\u8bf7|\u6267\u884c|\u68c0\u67e5|\u8bbe\u7f6e|\u5b89\u88c5"
    r"|\u964d\u4f4e|\u51cf\u5c0f|\u589e\u5927|\u786e\u8ba4|\u5347\u7ea7)"
    r"|\uff08?\u6267\u884c\uff1a|(?:if you (?:see|get)|in case of|when you see|occurs when|means|usually|indicates)\b"
    r"|\u8868\u793a|\u5982\u679c\u9047\u5230|\u672a\u8bbe\u7f6e"
)
_ABOUT = expression(
    r"(?i)#{1,4} .*(?:install|usage|quick ?start|getting started|faq|troubleshoot|common (?:issues|errors|problems"
    r"|exceptions|failures?)|known (?:issues|errors|problems)"
    r"|features|limitations|error codes?|reference|notes|\u5e38\u89c1\u95ee\u9898|\u5b89\u88c5|\u5feb\u901f"
    r"|\u4f7f\u7528|\u9519\u8bef\u7801|\u6545\u969c|\u8bf4\u660e)"
)
_TEMPLATE = expression(
    r"(?i)(?:#{1,6} |\*\*).*(?:\bbugs?\b|describe|environment|reproduc|expected|actual|what happened|additional"
    r"|\blogs?\b"
    r"|screenshot|\u95ee\u9898\u63cf\u8ff0|\u73af\u5883|\u590d\u73b0|\u65e5\u5fd7|\u62a5\u9519|\u671f\u671b)"
)
_ASKING = expression(
    r"(?i)\b(?:I|we|my|our)\b.{0,40}\b(?:get|got|run|ran|tried|try|see|hit|have|am|are|installed|job|script|training)\b"
    r"|\b(?:any idea|please (?:help|advise))\b|[?\uff1f]\s*$|\u6211|\u6c42\u52a9|\u8bf7\u95ee|\u600e\u4e48"
    r"|\u4e3a\u4ec0\u4e48"
)
_TITLE = expression(r"\s{0,8}(?:#|>|[-*+]\s|\*\*|\d{1,2}[.)\u3001]|Q\d?[:\uff1a.]|[|])")
_ASKED = expression(
    r"(?i)\b(?:anyone|anybody|any ideas?|getting (?:this|an?|the)|(?:keep|just|are|am|i'm) getting|i (?:just )?(?:get"
    r"|got)|stuck|please help)\b|\b(?:how|what|why)\b.*\?"
    r"|\u6c42\u52a9|\u600e\u4e48|\u4e3a\u4ec0\u4e48|\u8bf7\u95ee|(?<!\u6ca1)\u62a5\u9519"
)
_NOW = expression(
    r"(?i)\b(?:I|I'm|I've|my)\b.{0,40}\b(?:get|got|getting|ran|tried|try|see|hit|have|am|installed)\b|\bany ideas?\b"
    r"|\bplease (?:help|advise)\b|\bhelp me\b|[?\uff1f]\s*$"
    r"|\u6c42\u52a9|\u8bf7\u95ee|\u600e\u4e48(?:\u529e|\u89e3\u51b3|\u56de\u4e8b)"
    r"|\u6211(?:\u8fd9|\u7684|\u7528|\u5728|\u9047|\u8dd1)|(?:\u9047\u5230|\u51fa\u73b0|\u4e00\u76f4|\u603b\u662f).{0,8}\u62a5\u9519"
)
_OWN_COMMAND = expression(r"\s*(?:[$#] )?(?:\S*/)?envtune (?:check|diagnose|explain|list)\b")
_MAILED = expression(r"From [0-9a-f]{40} |Subject: \[PATCH\b")
_FINDINGS = expression(
    r"\"(?:diagnos(?:es|is|tics)|findings|evidence|rule_?id|matched_\w+|known_(?:errors|issues))\"\s*:"
)
_PLACEHOLDER = expression(r"%(?:l{0,2}[ud]|s|zu)\b|\[%\]|\{\d?\}(?!\w)|%\d\$s")
_EXAMPLE = expression(r"(?i)\byyyy\W?mm\W?dd|\bhh:mm:ss")  # a time as the documentation of a log writes it
_BORDER = expression(r"\s*\+[-=+]{6,}\+\s*$")
_STATES = expression(r"npu-smi|\bHugepages-Usage|\bHBM-Usage|\bBus-Id\b")
_OWN_TOP = expression(r"#{2,3} [A-Z]{1,4}\d{2,3} |[FXRHOI]\d{2,3}  \S")
_OWN_END = expression(
    r"<sub>envtune |.*\benvtune (?:fix --faq|explain) |\s+(?:cause|fix) {3,}\S|- \*\*(?:cause|fix)\*\* "
)


class Page:
    """The lines around a place, whole; `form` says why the words at a line report no event."""

    def __init__(self, text: bytes, begun: bool = True, ended: bool = True) -> None:
        """Take whole lines, and whether they are from the beginning and up to the end of a file."""
        self._begun, self._ended = begun, ended
        self._lines: Sequence[str] = [line[:MAX_LINE] for line in text.decode("utf-8", "replace").split("\n")]

    def form(self, number: int, form: str, embedded: bool = False) -> str:
        """Return the form of the line with that number, from 0 on, that has this one by itself.

        `embedded` says that other words stand before the error in its line (position.py).
        """
        found = self._by_rules(number, form, embedded)
        line = self._lines[number]
        if found in WEIGHED:
            laid_out = self.laid_out(number)
            if laid_out or (not self.is_log and self._layout.ends_run(number)):
                return laid_out or form
        state = self._states and line.lstrip()[:1] == "|"
        if found not in WEIGHED or state or _is_escaped_log(line) or _EXAMPLE.search(line):
            return found
        if self._weight.is_event(number, embedded or found == QUOTED, found in (DOCUMENT, CHAT)):
            return form
        return found if found in (DOCUMENT, CHAT) else DOCUMENT

    def laid_out(self, number: int) -> str:
        """Return DOCUMENT or CODE for a line of an example, whatever it holds."""
        if self.is_log:
            return ""
        return DOCUMENT if self._layout.is_document else CODE if self._layout.is_text(number) else ""

    @property
    def is_log(self) -> bool:
        """Whether it is long, and nearly all of its lines are those that only a program prints."""
        return self._log_lines > LONG and 10 * self._log_lines > 9 * len(self._written)

    def _by_rules(self, number: int, form: str, embedded: bool) -> str:
        """Return the form by what the line and the page have to be; none is left to be weighed."""
        line = self._lines[number]
        if number in self._report or (self._is_tool_report and not self._is_wrong(number)):
            return REPORT
        if is_source(self._lines, number) or self._is_comment(number) or self._is_marked(number):
            return CODE
        if _is_escaped_log(line):
            return CATALOGUE if self._structure.form(number) == CATALOGUE else ""
        shown = self._shown(number)
        if shown:
            return shown
        if number not in self._fenced and self._talk.is_message(line):
            return form if self._talk.is_pasted(line) else CHAT
        if not form and _LOGGED.match(unquoted(line)):
            return form
        if self._talk.is_about(line):
            return CHAT
        found = typed_form(self._lines, number) or self._searched(number) or self._explained(number)
        return found or self._structured(number) or self._written_about(number, embedded) or form

    def _is_wrong(self, number: int) -> bool:
        """Return whether a line is, or stands below, what a program that checks a host found wrong."""
        for line in reversed(self._lines[: number + 1]):
            if _FAILING.match(line):
                return True
            if not line[:1].isspace() or _MARKED.match(line):
                return False
        return False

    def _is_marked(self, number: int) -> bool:
        """Return whether the line below points at a place in it, as compilers and parsers show source code."""
        below = self._lines[number + 1] if number + 1 < len(self._lines) else ""
        return _MARKER.match(below) is not None

    def _shown(self, number: int) -> str:
        """Return why a line of passed tests, of an example, a table or a help text is no event, even a logged one."""
        line = self._lines[number]
        if len(set(_CODE_NAME.findall(line))) >= MANY_CODES or self._talk.is_of_many:
            return CATALOGUE
        tested = self._structure.in_passed_tests(number)
        if tested or _EXAMPLE.search(line):
            return tested or DOCUMENT
        cells = line.count("|") > 2 and line.lstrip()[:1] == "|"  # with two bars it is a box around a message
        if cells and any(map(_BORDER.match, self._near(number))) and not self._states:
            return TABLE
        if self._is_help:
            return HELP
        if number in self._fenced and self._count(_ERROR_HEADING) >= MANY_ERRORS and not self._asked:
            return CATALOGUE
        over = self._solved and (unquoted(line) != line or not self._log_lines)
        return HISTORY if over or self._is_solved_thread else ""

    def _written_about(self, number: int, embedded: bool) -> str:
        """Return DOCUMENT for an error in a page in which nothing was printed and nobody asks.

        One that begins its line counts, unless the page is laid out as a document.
        """
        line = self._lines[number]
        printed = (
            self._is_wrong(number)
            or self._log_lines
            or self._crashes
            or self._built
            or (self._states and line.lstrip()[:1] == "|")
        )
        filled_in = any(map(_TEMPLATE.match, self._written))
        if printed or filled_in or self._asked or len(self._written) < FEW:
            return ""
        return DOCUMENT if embedded or self._count(_LAID_OUT) >= LAID_OUT else ""

    def _is_comment(self, number: int) -> bool:
        """Return whether it is a comment between lines of a script."""
        adjacent = (*self._lines[max(0, number - 1) : number], *self._lines[number + 1 : number + 2])
        code = any(line.strip() and not _REMARK.match(line) and _CODE.match(line) for line in adjacent)
        return code and _REMARK.match(self._lines[number]) is not None

    def _structured(self, number: int) -> str:
        """Return why a line within a table, a data file or the like is no event; one that lists codes may ask."""
        form = self._structure.form(number)
        if form == TABLE and self._states:
            return ""
        line = self._lines[number]
        if not form and lists_codes(line) and not _ASKED.search(line) and not _ASKING.search(line):
            return CATALOGUE
        return form

    @cached_property
    def _talk(self) -> Talk:
        return Talk(self._lines, self._written)

    @cached_property
    def _weight(self) -> Weight:
        return Weight(self._lines)

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self._lines, lambda: self._weight.kinds, self._begun, self._ended)

    @cached_property
    def _structure(self) -> Structure:
        return Structure(self._lines)

    @cached_property
    def _states(self) -> bool:
        """Whether there is a table of npu-smi, whose rows say what is."""
        return any(map(_STATES.search, self._lines))

    def _near(self, number: int) -> Sequence[str]:
        return self._lines[max(0, number - NEAR) : number + NEAR]

    @cached_property
    def _report(self) -> range:
        """The numbers of the lines of a report of envtune."""
        ends = [number for number, line in enumerate(self._lines) if _OWN_END.match(line)]
        tops = [number for number, line in enumerate(self._lines) if _OWN_TOP.match(line)] if len(ends) > 1 else []
        return range(tops[0], ends[-1] + 1) if tops else range(0)

    def _searched(self, number: int) -> str:
        """Return SEARCH for a numbered line below the path of a file that is no log."""
        if not _NUMBERED.match(self._lines[number]):
            return ""
        for line in reversed(self._lines[max(0, number - 60) : number]):
            found = _PATH.match(line.strip())
            if found is not None:
                return "" if found["end"] in ("log", "txt", "out") else SEARCH
            if line.strip() and not _NUMBERED.match(line) and line != "--":
                return ""
        return ""

    def _explained(self, number: int) -> str:
        """Return why a line of a page without a log is no event, where the page is one of a known kind."""
        line = self._lines[number]
        item = _DONE.match(line) or (self._released and _ITEM.match(line))
        if item and not self._crashes and self._log_lines < 3:
            return HISTORY
        if self._log_lines or (self._crashes and not self._document):
            return ""
        if _PLACEHOLDER.search(line):
            return CODE
        if number not in self._fenced:
            return self._code or (DOCUMENT if self._document else "")
        return DOCUMENT if self._document and (self._headings > 2 or self._count(_REMEDY) > 1) else ""

    # ---------------------------------------------------------------- what the page is

    @cached_property
    def _fenced(self) -> set[int]:
        """The numbers of the lines within fences of Markdown."""
        fenced, inside = set(), False
        for number, line in enumerate(self._lines):
            if _FENCE.match(line):
                inside = not inside
            elif inside:
                fenced.add(number)
        return fenced

    @cached_property
    def _written(self) -> Sequence[str]:
        """The lines outside fences that are not empty."""
        return [line for n, line in enumerate(self._lines) if line.strip() and n not in self._fenced]

    def _count(self, form: re.Pattern[str]) -> int:
        return sum(form.match(line) is not None for line in self._written)

    @cached_property
    def _log_lines(self) -> int:
        said = self._talk.messages
        return sum(_LOGGED.match(unquoted(line)) is not None for line in self._lines if line not in said)

    @cached_property
    def _crashes(self) -> int:
        """How many lines outside fences begin with an exception."""
        return self._count(_CRASHED)

    @cached_property
    def _built(self) -> bool:
        """Whether a build printed it."""
        return any(map(_BUILD.match, self._lines))

    @cached_property
    def _headings(self) -> int:
        return self._count(_HEADING)

    @cached_property
    def _is_tool_report(self) -> bool:
        """Whether it is the output of a program that searches logs, or a patch that was mailed; no log in it."""
        if self._log_lines or self._crashes:
            return False
        first = next((line for line in self._lines if line.strip()), "")
        if _OWN_COMMAND.match(first) or any(map(_MAILED.match, self._lines)) or self._count(_MARKED) >= LAID_OUT:
            return True
        return first.lstrip()[:1] in ("{", "[") and any(map(_FINDINGS.search, self._lines))

    @cached_property
    def _is_help(self) -> bool:
        """Whether it is what a program prints about its options and arguments."""
        top = [line for line in self._lines if line.strip()][:FEW]
        return any(map(_USAGE.match, top)) and not (self._log_lines or self._crashes or self._asked)

    @cached_property
    def _solved(self) -> bool:
        """Whether a mail says that what it quotes is over, or a change to code is discussed that was merged."""
        said = [line for line in self._lines if unquoted(line) == line]
        over = any(map(_MERGED.match, said)) or (any(map(_SOLVED.search, said)) and not self._asked)
        return over and not any(map(_LOGGED.match, said))

    @cached_property
    def _is_solved_thread(self) -> bool:
        """Whether it is a page of a web site on which somebody says that the problem is solved."""
        first = next((line for line in self._lines if line.strip()), "")
        return _WEB_PAGE.match(first) is not None and any(map(_SOLVED.search, self._lines))

    @cached_property
    def _asked(self) -> bool:
        """Whether somebody asks about an error."""
        return any(_NOW.search(line) for line in self._written if not (_TITLE.match(line) or _NUMBERED.match(line)))

    @cached_property
    def _released(self) -> bool:
        """Whether it lists what changed in versions."""
        return self._count(_VERSION) > 0

    @cached_property
    def _code(self) -> str:
        """Why a page of source code or of data reports nothing."""
        lines = len(self._written)
        if lines < 5 or self._built or any(map(_HAPPENED.search, self._written)):
            return ""
        code = sum(bool(_CODE.match(line) or _DATA.match(line)) for line in self._written)
        return CODE if 10 * code > 7 * lines else ""

    @cached_property
    def _document(self) -> bool:
        """Whether the page explains errors, and nobody asks about one."""
        if any(map(_TEMPLATE.match, self._written)):
            return False
        if any(_ASKING.search(line) for line in self._written if not _TITLE.match(line)):
            return False
        remedies, advice = self._count(_REMEDY), sum(_ADVICE.search(line) is not None for line in self._written)
        items = self._headings + self._count(_ITEM)
        about = self._count(_ABOUT) > 0 and items + advice > 1
        return remedies > 1 or about or (items > 1 and advice + remedies > 1)


def _is_escaped_log(line: str) -> bool:
    """Return whether several lines of a log stand in one string of JSON."""
    parts = line.split("\\n") if "\\n" in line else ()
    logged = (part for part in parts if _LOGGED.match(part.lstrip('`"')) or _CRASHED.match(part))
    return len(list(logged)) > 1


class Pages:
    """The pages of a file, each looked at when it is asked for, only so many of them; fewer of a file that is a log."""

    def __init__(self) -> None:
        self._left = MAX_PAGES
        self._block = b""
        self._begin = -1
        self._page = Page(b"")

    def form(self, block: bytes, at: int, form: str, embedded: bool) -> str:
        """Return the form of the line that begins at a place of a block of whole lines."""
        page = self._at(block, at)
        return page.form(block.count(b"\n", self._begin, at), form, embedded) if page is not None else form

    def laid_out(self, block: bytes, at: int) -> str:
        """Return why the line that begins at a place of a block is one of an example, or nothing."""
        page = self._at(block, at)
        return page.laid_out(block.count(b"\n", self._begin, at)) if page is not None else ""

    def _at(self, block: bytes, at: int) -> Optional[Page]:
        """Return the page with a place of a block; None where enough of them were looked at."""
        edge = at // PAGE * PAGE
        begin = block.find(b"\n", edge - 1, at) + 1 if edge else 0  # of the first line that begins in this page
        if block is not self._block or begin != self._begin:
            if not self._left:
                return None
            self._left = min(self._left - 1, MAX_LOGS) if self._page.is_log else self._left - 1
            end = block.find(b"\n", begin + 2 * PAGE)
            page = Page(block[begin : None if end < 0 else end], begin == 0, end < 0)
            self._block, self._begin, self._page = block, begin, page
        return self._page
