"""Tell by itself what a line is: printed by a program, written by somebody, or source; and what it tells. Pure."""

from __future__ import annotations

import re
from typing import Callable, Optional, Sequence

from envtune.records import expression

PRINTED, WRITTEN, SOURCE, OTHER, BLANK = "printed", "written", "source", "other", ""
PYTHON = ">>> "  # its prompt
OVER, HAS, EXPLAINS = "over", "has", "explains"

_PRINTED = expression(
    r"[\[(<]?(?:\w+ )?\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|EVENT|CRITICAL|FATAL|Error)\b[\]:]?[\s(]|\[?[EWIF]\d{3,4} \d\d:"
    r"|\[[EWIF] \S+:\d+\]"
    r"|Traceback \(most|File \"[^\"]+\", line \d+|\[?rank ?\d+\b|\[[A-Z]?[a-z]\w+\] |During handling of"
    r"|The above exception|\([\w ]*pid=\d+|\(?\w+ pid=|frame #\d+:|\[ *\d+\.\d{6}\]"
    r"|terminate called|what\(\):|E[A-Z\d]\d{4}: \[PID|\[PID: ?\d+\]|>>> \S|DEVICE\[\d|\+ [\w.]+|\S+: line \d+: "
    r"|\{\"|(?:[\w.]+\.)?\w*(?:Error|Exception|Warning)(?:: |:?$)|E[A-Z\d]\d{4}: \S|(?:fatal )?error: |E {2,}\S"
    r"|=+ (?:test session|FAIL|ERROR|short)|FAILED \S+::|\[default\d\]:|\[\d+,\d+\]<|Root Cause \(|torch\.dist"
    r"|exitcode +:"
    r"|Segmentation|Killed|Aborted|Fatal Python|Bus error|\[ *\d+%\] |\[\d+/\d+\] |g?make(?:\[\d+\])?: "
    r"|/{2,3}-{6,}\[|loc\(\"|collect2: |bishengir-compile: |/\S+/ld: "
    r"|\S+:\d+:\d+: |(?:Building|Collecting|Installing|Requirement already|Processing|running|Loading|Downloading) "
    r"|(?:time|host|rank|error_file|traceback|exitcode|msg) +: |Failures:$|<NO_OTHER"
    r"|- (?:\w+ )+(?:Error )?Message:|- C\+\+ Call Stack|Solution: |Possible Cause: |TraceBack |\(function "
    r"|\^+$|~*\^+~*$|#\d+ +0x|\S+\(\+?0x[\da-f]+\)|##\[|Finished: |script returned"
    r"|-- [A-Z]\w+|CMake (?:Error|Warning)\b|(?:fatal|failed|ok|changed|skipping): \[[\w.-]+\]|(?:TASK"
    r"|PLAY) (?:\[|RECAP)"
    r"|Cell In ?\[\d+\]|<ipython-input-|-{2,}> ?\d+ |\w+(?:Error|Exception) {3,}Traceback \(most"
    r"|Step \d+/\d+ : |-{3}> (?:Running in|Using cache|[\da-f]{12})|(?:Looking in indexes|Using cached"
    r"|Preparing metadata)\b"
    r"|(?:Successfully|Failed to) (?:built|build|installed|uninstalled)\b|(?:creating|copying) \S+/|The command '/"
    r"|note: This (?:error|is an issue)|\[end of output\]|\u00d7 |\u2570\u2500>|(?:CACHED|DONE [\d.]+s)$"
    r"|\[\w+\]\[|\*{8,}|-{40,}$|={20,}$|\+[-=+]{20,}$|[/\w.-]+\.(?:py|cc|cpp|so)[:(]\d|\S+%\|"
)
_PRINTED_WITHIN = expression(
    r"\[FUNC:|\[FILE:|\[LINE:|0x[\da-f]{6,}|error code(?: is)? ?[:=]?\s?\d|retCode=|\.cc?(?:pp)?:\d+\]?"
    r"|core dumped|\bpid[ =:]+\d+|exit ?code"
)
# What only a program that runs can know: when, in which process, where in its code.
_MARKS = expression(
    r"\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d|\b\d\d:\d\d:\d\d[.,]\d|(?i:\bpid\W{0,2}\d)|\[rank ?\d+\]"
    r"|\bRankID:|Device:\d|File \"[^\"]+\", line \d"
    r"|\[FUNC:|\[LINE:|0x[\da-f]{6,}|frame #\d|\[ *\d+\.\d{6}\]|\.(?:cpp|cc|ts|py):\d+\b|exit ?code\W{1,4}\d"
    r"|core dumped|: line \d+: |Cell In ?\[\d+\]|<ipython-input-\d|^-{2,}> ?\d+ "
)
_NAMES = expression(
    r"\bE[A-Z\d]\d{4}\b|\w(?:Error|Exception)\b|\b[125]07\d{3}\b|\bERR\d{5}\b|\b[Ee]xception occurred\b"
    r"|ret is -\d+|out of memory|cannot open shared|No space left|\bfail(?:ed|ure)\b|\b[Ee]rrors?\b"
)
_COMMAND = expression(
    r"(?:\([\w.-]{1,40}\)\s?)?(?:\[[\w.-]+@[^\]]{1,80}\]\s?[$#]|[\w.-]+@[\w.-]+:[^$#\n]{0,80}[$#]|\$"
    r"|PS [A-Z]:[^>]{0,80}>)\s"
    r"(?P<command>.*)"
)
_RUNS = expression(
    r"(?:\S+=\S+ )*(?:nohup |sudo |time |exec )*(?:python[\d.]*|bash|sh|\./\S+|torchrun|mpirun|deepspeed"
    r"|accelerate|msrun|srun|sbatch|vllm|pip3?"
    r"|ssh|kubectl logs|(?:docker|podman|nerdctl) (?:compose |buildx )?(?:logs|run|build|up|exec|start)|(?:cat"
    r"|tail|less|head)\b.*\.(?:log|out|err)\b|dmesg|journalctl"
    r"|npu-smi|make|cmake|ray)\b"
)
_SHOWS = expression(
    r"(?:sudo )?(?:(?:z|xz|bz|lz|zst)?[ef]?grep|(?:z|xz|bz|lz|zst)cat|[xb]?z(?:less|more)"
    r"|rg|ag|ack|git|man|info|help|tldr|cat|bat|less|more|head|tail|sed|awk|find|strings|vim?"
    r"|nl|ls|echo"
    r"|diff|history|jq|curl|wget|sqlite3|psql|mysql)\b|.*(?:--help|\s-h|\bexplain|\blist|\berrors?|\bcodes?|\bsearch)\b"
)
_HEADS = expression(
    r"#{1,6}\s+\S|\*\*[^*]{2,60}\*\*:?$|[=~-]{4,}$|</?[a-z]\w*[ >/]|\.\. \w|[-*+\u2022\u00b7]\s+(?![\w-]+: )\S"
    r"|\d{1,2}[.)\u3001]\s?\S|[QA]\d?[:\uff1a]"
    r"|[\u4e00-\u9fff]{1,3}\u3001|\|.*\|$|[A-Z][a-z-]+: \S+@\S+|(?:From|To|Cc|Subject|Date|Message|On):? |```"
    r"|\[[ x]\] |>\s|(?!OK$)[A-Z][\w-]*(?: [a-z]+){0,3}:?$"
)
_SPEAKER = expression(
    r"(?![a-z ]+ \d\d:\d\d$)(?:\*\*)?[\[(<\u3010]?@?[\w.\u4e00-\u9fff -]{1,30}[\])>\u3011]?(?:\*\*)?,?\s{1,4}"
    r"(?:\S{1,8}\s)?[\[(]?(?:\d{2,4}[-/.]\d\d?[-/.]\d{1,4},?\s)?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp][Mm])?[\])]?$|"
    r"[\w .]{2,24} (?:\u2014|\u2013|-) (?:Today|Yesterday|\d)"
    r"|[\[(]?(?:\d{4}-\d\d-\d\d )?\d{1,2}:\d\d(?::\d\d)?[\])]?\s+(?:<\w|[A-Z][\w.]+(?: [A-Z]\w+)?(?:$|:\s))"
    r"|\S{1,3}\u697c\s|\u697c\u4e3b\s|\S+ (?:commented|approved|merged|wrote|replied|asked|answered)\b"
)
_WORDS = expression(r"[A-Za-z'\u2019]+")
_FUNCTION = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "were",
        "to",
        "of",
        "and",
        "or",
        "for",
        "with",
        "that",
        "this",
        "it",
        "i",
        "we",
        "you",
        "not",
        "when",
        "if",
        "on",
        "in",
        "from",
        "by",
        "be",
        "has",
        "have",
        "my",
        "our",
        "as",
        "at",
        "so",
        "do",
        "does",
        "did",
        "can",
        "may",
        "should",
        "will",
        "they",
        "them",
        "there",
        "then",
        "than",
        "what",
        "which",
        "who",
        "how",
        "no",
        "any",
        "all",
        "one",
    ]
)
_OPENS = expression(r"[\"'`\u201c\u300c]")
_HAN = expression(r"[\u4e00-\u9fff]")
_SOURCE = expression(
    r"(?:#\s?(?:include|define|ifn?def|endif|pragma)\b|//|/\*|\*/|namespace\b|template\b|using\b|package \w|func \w"
    r"|(?:static|const|constexpr|inline|virtual|void|public|private|struct|enum|class|def|async def|import|from"
    r"|var|type)\s\w.*[:;({=\w]$"
    r"|(?:if|elif|while|for|with|switch|else|except|try|case|return|raise|throw)\b.*[:{;]$|@\w+|fi$|done$|esac$"
    r"|.*[;{}]\\?$|[\])}]+[,;]$|\}$|\w[\w.\[\]]* [+:]?= \S.*|export \w+=|(?:[^;]+;(?! )){2,}[^;]+$"
    r"|[\"'rfb]{1,2}\S.*[\"'],?\)*,?$|\"\"\"|'''|#!/|(?:return|raise|assert)\b"
    r"|\"\w+\": )"
)
_ROW = expression(r"[{(]\s*\"[^\"]*\",\s.*[)}],?$")  # of a table in source code; an object of JSON has a colon
_PLACE = expression(
    r"(?:[\w.@+-]+/)*[\w.@+-]+\.(?!log|out|err|txt)[A-Za-z]\w{0,5}[:-](?:\d{1,6}[:-])?(?!\d| line \d)\s*\S"
)
_LOG_NAME = expression(r"[\w./-]+\.(?:log|txt|out|err)[:-](?:\d+[:-])?\s*")
_NUMBERED = expression(r"\d{1,6}[:-](?![\d ])\s*[^\s\d]")
# What stands around a message: colors, the marks of pytest, of `docker compose` and of a build by BuildKit.
_ANSI = expression(
    "^E(?: {2,}|$)|^(?:#\\d{1,3} )?\\d{1,4}\\.\\d{1,3} (?=\\D)|^#\\d{1,3} "
    "|\x1b\\[[\\d;]*[A-Za-z]|_bk;t=\\d+\x07|^[\\w.-]{1,40} {1,12}\\| (?=.*[^|]$)"
)
_ASKS = expression(
    r"\u600e\u4e48(?:\u529e|\u89e3\u51b3|\u56de\u4e8b)|\u6c42\u52a9|\u6c42\u5927\u4f6c"
    r"|\u4e3a\u4ec0\u4e48[?\uff1f]|(?i:any ideas?|what is (?:this|wrong)|help me|please help|what (?:can"
    r"|should) (?:I|we) (?:do|check))"
)
_HAS = expression(
    r"(?i)(?<!\ba )\b(?:I|I'm|I've|we|my|our|us|jobs?|training|script|server|it)\b.{0,50}"
    r"\b(?:gets?|got(?! rid)|getting|keeps?|hits?|hit|fails?|failed|failing|die[sd]|crash\w*|hangs?|hung|stops?"
    r"|stopped|threw|error\w*|tried|ran"
    r"|(?:does|do|did|will|would|can)(?:n't| not)|cannot|won't)\b"
    r"|\b(?:I|we) (?:run|am running|are running|try|have|see|installed|upgraded|built|followed|am using|use)\b"
    r"|\b(?:getting|seeing|hitting) (?:this|these|it|an?|the)\b|\bgives(?: me)?:$|\bthe following (?:error|happens)\b"
    r"|\b(?:any ideas?|anybody|anyone|is down|aborts|attach(?:ed|ing)|last output|log tail|on it|every run"
    r"|firing|looking into|launch command|please (?:help|advise)|help me|same here|what (?:can|should) (?:I"
    r"|we) (?:do|check)|what am I doing|have a look)\b"
    r"|\b(?:describe the bug|what happened|to reproduce|reproduc\w+|(?:expected|actual) (?:behaviou?r|result)"
    r"|your environment"
    r"|status: open|(?:logs?|output|version|environment)\W*$|(?:log|last lines|end|output) of\b.*[:.]$"
    r"|does not (?:start|work|run))"
    r"|\u6c42\u52a9|\u8bf7\u95ee|\u600e\u4e48(?:\u529e|\u89e3\u51b3|\u56de\u4e8b|\u5904\u7406)|\u62a5\u9519"
    r"|\u53c8\u6302|\u6302\u4e86|\u95ee\u9898(?:\u73b0\u8c61|\u63cf\u8ff0)\W*$|\u6d4b\u8bd5\u6b65\u9aa4"
    r"|\u65e5\u5fd7\u5982\u4e0b|\u65e5\u5fd7\u5728|\u5e2e\u5fd9|\u590d\u73b0|\u73af\u5883(?:\u4fe1\u606f)?"
    r"|\u8d77\u4e0d\u6765|\u6253\u5370\u5982\u4e0b|\u8f93\u51fa\u5982\u4e0b|(?:\u76f4\u63a5|\u5c31)\u9000\u51fa"
    r"|\u54ea\u91cc.{0,3}\u9519|\u6211\u770b\u770b|\u65e5\u5fd7(?:\u4fe1\u606f)?\W*$"
)
_GENERAL = expression(
    r"(?i)\b(?:if|when|whenever|unless) (?:you|your|users?|an?|the|some|one)\b|\byou(?:r| will| may"
    r"| can)?\b.{0,30}\b(?:get|see|meet|find)\b"
    r"|\b(?:does|did) (?:not )?(?:mean|stand)\b|\busers? s(?:aw|ee)\b|\bwhich\b.*\?$|\bthe messages?\b"
    r"|\bmessages (?:are|of|such)\b"
    r"|\b(?:parser|statistics|on-call guide|draft|slide|example of)\b|\bno (?:actual |real )?(?:failure|problem"
    r"|issue)\b|\bjobs are fine\b"
    r"|\u5982\u679c|\u65f6(?:\u63d0\u793a|\u51fa\u73b0|\u9047\u5230)|\u4e2d\u9047\u5230|\u5e38\u89c1"
    r"|\u624b\u518c|\u6709\u6ca1\u6709\u5b89\u5168|^\W*\u95ee\u9898\d"
)
_EXPLAINS = expression(
    r"(?i)\b(?:causes?|caused|symptoms?|resolution|solutions?|workarounds?|meaning|means|usually"
    r"|(?<!\.)examples?(?!\.(?:org|com))|e\.g|for instance|looks? like"
    r"|documentation|docs|manual|may(?! \d)|might|when|whenever|if|prints?|printed|shows?|shown|returns?|raises?"
    r"|(?:is|are|be) raised"
    r"|typically|occurs?|indicates|see also"
    r"|known|notes?|troubleshoot\w*|messages?|applies to|reference|exercise|hint|should|must|checklist|never"
    r"|always|common|owner|action"
    r"|review\w*|proposal|motivation|faq|article|chapter|page|minutes|survey|question|answer|news|issue \d+"
    r"|lecture|course|restart|ask|look|tell|raise)\b"
    r"|\u539f\u56e0|\u89e3\u51b3\u65b9|\u5904\u7406\u65b9|\u8bf4\u660e|\u8868\u793a|\u5efa\u8bae|\u53ef\u80fd"
    r"|\u5426\u5219|\u5982\u4e0b\u4fe1\u606f|\u793a\u4f8b"
    r"|\u9002\u7528|\u63d0\u793a|\u65f6(?:\uff0c|$)|\u68c0\u67e5|\u8c03\u6574|\u4fee\u590d|\u4f18\u5316"
    r"|\u89c4\u907f"
)
_OVER = expression(
    r"(?i)\b(?:re)?(?:solved|closed|settled)\b|\bresolution: |\bgot rid|never came back|\b(?:fixed(?! (?:by|size"
    r"|at|to))|all gone"
    r"|went away|no longer (?:happens|seen)|never again"
    r"|was (?:replaced|switched|that|the)|had (?:switched|been)|last (?:month|quarter|year)|\w+ (?:months|weeks"
    r"|years) ago|archived?|post-?mortem|incident"
    r"|(?:without a break|goes away)|met this one|could not start|finished on)\b"
    r"|\u5df2\u7ecf?\u89e3\u51b3|\u89e3\u51b3\u4e86|\u5df2\u5173\u95ed|\u5904\u7406\u5b8c|\u6c47\u603b"
    r"|\u6574\u7406|\u6062\u590d\u6b63\u5e38|\u6b63\u5e38\u4e86|\u603b\u7684\u6765\u8bf4|\bfine since"
    r"|\byes, replaced|\bstatus: done|back in service|for the record|\u6ca1\u6709\u518d|\u6ca1\u518d"
    r"|\u6ca1\u89c1\u8fc7|\u5c31\u597d\u4e86|\u5f53\u65f6|\u4e0a\u4e2a\u6708|\u4e4b\u524d"
    r"|\u5b58\u6863|\u7ecf\u9a8c\u5206\u4eab|\u540e\u6765|\u540e\u9762\u7684\u4eba"
)
_CLOSED = expression(
    r"(?i)\b(?:status|state|resolution)\W{1,4}(?:is )?(?:done|closed|resolved|fixed|solved)\b|^\W*(?:closed"
    r"|solved|resolved)\b|\b(?:incident|ticket|issue)\b.{0,30} (?:closed|resolved)\b"
    r"|[\u3010\[]?\u5df2(?:\u89e3\u51b3|\u5173\u95ed)[\u3011\]]|\b(?:is|was|are|been) (?:solved|resolved"
    r"|closed)\b|\u89e3\u51b3\u4e86|\u6ca1\u6709\u518d"
)
# What a mail, a forum or a tracker puts around what somebody tells.
_FRAMES = expression(
    r"(?:From|To|Cc|Date|Message-ID|Reply-To|Tags?|Labels?|Viewed|Views): "
    r"|(?:Posted|Asked|Replied|Reply|Answered|Edited|Modified|Created|Updated|Viewed|Opened)\b.{0,40}"
    r"(?:\d|\bago\b|\byesterday\b|\btoday\b)"
    r"|(?:View )?\d+ (?:answers?|repl(?:y|ies)|comments?|likes?|votes?|views?)\W*$"
    r"|\W*(?:\u53d1\u8868\u4e8e|\u53d1\u5e03\u4e8e|\u56de\u590d\u4e8e|\u6d4f\u89c8|\u6807\u7b7e|\u8bc4\u8bba"
    r"|\u9605\u8bfb)",
    re.IGNORECASE,
)


def statement_of(line: str) -> str:
    """Return what somebody tells by a line: that he HAS an error, EXPLAINS one, that one is OVER; or nothing."""
    if _FRAMES.match(line.strip()):
        return ""
    for statement, form in ((HAS, _ASKS), (OVER, _OVER), (EXPLAINS, _GENERAL), (HAS, _HAS), (EXPLAINS, _EXPLAINS)):
        if form.search(line):
            return statement
    return ""


def kind_of(line: str) -> str:
    """Return what a line is by itself."""
    text = _ANSI.sub("", line).strip()
    text = text if text.startswith(PYTHON) else _LOG_NAME.sub("", text.lstrip("> "), count=1)
    if not text:
        return BLANK
    for kind, is_kind in _KINDS:
        if is_kind(text):
            return kind
    return OTHER


def _cites(text: str) -> bool:
    """Return whether words of somebody stand before those of an error."""
    error = _NAMES.search(text)
    if error is None or is_marked(text):
        return False
    before = text[: error.start()]
    words = _WORDS.findall(before)
    function = sum(word.lower() in _FUNCTION for word in words)
    han = len(_HAN.findall(before))
    return (
        han > 3
        or (len(words) > 2 and function > 0 and _OPENS.search(before) is not None)
        or (len(words) > 4 and function > 1)
    )


def is_sentence(text: str) -> bool:
    """Return whether a line is written in words."""
    han = len(_HAN.findall(text))
    if han > 3 or (han and 2 * han >= len(text)):
        return True
    words = _WORDS.findall(text)
    function = sum(word.lower() in _FUNCTION for word in words)
    return len(words) > 3 and function > 1 and 6 * function >= len(words)


def goes_on(above: str, line: str, kind_above: str, below: Sequence[str]) -> bool:
    """Return whether a line of text belongs to what a program printed above; `below` are the kinds of lines below."""
    if 'File "' in above or (kind_above == PRINTED and (line[:6].isspace() or line[:1] == "\t")):
        return True
    stripped = line.strip()
    return (
        kind_above == PRINTED
        and PRINTED in below
        and not (_SPEAKER.match(stripped) or _HEADS.match(stripped))
        and kind_of(line) in (WRITTEN, SOURCE)
    )


def command_of(line: str) -> str:
    """Return the command that stands behind a prompt, or nothing."""
    stripped = line.strip()
    found = _COMMAND.match(stripped)
    return "python" if stripped.startswith(PYTHON) else found["command"] if found else ""


def runs_a_program(command: str) -> Optional[bool]:
    """Return whether a command runs a program that fails by itself, or shows a log; None where nothing tells."""
    return True if _RUNS.match(command) else (False if _SHOWS.match(command) else None)


def is_marked(line: str) -> bool:
    """Return whether a line holds what only a program that runs can know."""
    return _MARKS.search(line) is not None


def names_error(line: str) -> bool:
    """Return whether a line holds words of an error, known or not."""
    return _NAMES.search(line) is not None


def is_closed(line: str) -> bool:
    """Return whether a line says that what the page is about is solved."""
    return _CLOSED.search(line) is not None


def before_error(line: str) -> str:
    """Return the words of a line before those of an error."""
    error = _NAMES.search(line)
    return line[: error.start()] if error else line


_KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (  # the first that holds
    (SOURCE, lambda text: _NUMBERED.match(text) or _ROW.match(text) or (text[:1] != "/" and _PLACE.match(text))),
    (WRITTEN, _SPEAKER.match),
    (PRINTED, lambda text: _PRINTED.match(text) or _COMMAND.match(text)),
    (WRITTEN, _cites),
    (SOURCE, _SOURCE.match),
    (WRITTEN, _HEADS.match),
    (PRINTED, _PRINTED_WITHIN.search),
    (WRITTEN, lambda text: is_sentence(text) and not names_error(text)),
)
