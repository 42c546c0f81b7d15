"""What is wrong with a catalog file is told with its place and the way out, all of it at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
import yaml
from helpers.catalogue_files import GOOD_CHECK, GOOD_FAQ, GOOD_PLAYBOOK, write_catalogue
from helpers.search import examples as search
from hypothesis import given
from hypothesis import strategies as st

from envtune.catalog import yaml as yaml_reader
from envtune.catalog.compile import compile_rows, entry_of
from envtune.catalog.forms import EXAMPLE_HOST
from envtune.catalog.layers import Layer, content, sources
from envtune.catalog.yaml import Diagnostics, read_yaml
from envtune.errors import CatalogError
from envtune.schema.validate import Validator

CHECK, FAQ, PLAYBOOK = (
    "checks/cpu/CPU900-governor-odd.yaml",
    "checks/faq/X90-odd-error.yaml",
    "playbooks/cpu/do-something.yaml",
)


def diagnostics_of(root: Path) -> list[str]:
    """`path:line:column: message` below `root`, of every file there."""
    files = sources(Layer(str(root), own=True))
    try:
        compile_rows([(file, content(file)) for file in files], {})
    except CatalogError as error:
        assert len(error.to("zh").split("\n")) == len(error.diagnostics)
        return [diagnostic.replace(f"{root}/", "") for diagnostic in error.diagnostics]
    return []


def check_with(line: str, instead_of: Optional[str] = None) -> str:
    """The good check with one line replaced, the one that begins with the same key unless named."""
    key = instead_of or line.partition(":")[0] + ":"
    lines = GOOD_CHECK.splitlines()
    places = [number for number, old in enumerate(lines) if old.startswith(key)]
    lines[places[0] : places[0] + 1] = line.split("\n")
    return "\n".join(lines) + "\n"


def test_good_files_have_no_diagnostic(tmp_path: Path) -> None:
    write_catalogue(tmp_path, check=GOOD_CHECK, faq=GOOD_FAQ, playbook=GOOD_PLAYBOOK)
    assert diagnostics_of(tmp_path) == []


def row_with(line: str, root: Path) -> Mapping[str, Any]:
    """The compiled row of the good check with one line replaced."""
    write_catalogue(root, check=check_with(line))
    files = sources(Layer(str(root)))
    (row,) = compile_rows([(file, content(file)) for file in files], {})["checks"]
    return row


# what YAML 1.1 makes something else of
WORDS = [
    *("NO", "yes", "on", "Off", "22:22", "190:20:30", "0644", "0x19e5", "0b1", "1_000", "2021-03-04"),
    *("2021-03-04 10:00:00", ".inf", "<<", "="),
]


@pytest.mark.parametrize("word", [*WORDS, "7.10", "1.0", "8", "true", "1e3"])
def test_a_text_needs_no_quotes_where_the_schema_says_text(word: str, tmp_path: Path) -> None:
    assert row_with(f"references: [{word}]", tmp_path)["references"] == [word]
    assert row_with(f'references: ["{word}"]', tmp_path)["references"] == [word]


@pytest.mark.parametrize("word", WORDS)
def test_where_the_type_is_open_what_is_no_json_scalar_is_a_text(word: str, tmp_path: Path) -> None:
    assert row_with(f"expect: {{eq: {word}}}", tmp_path)["expect"] == {"eq": word}
    assert row_with(f'expect: {{eq: "{word}"}}', tmp_path)["expect"] == {"eq": word}


def test_where_the_type_is_open_json_scalars_are_what_they_look_like(tmp_path: Path) -> None:
    wanted = row_with('expect: {in: [8, -1, true, false, "8", "true", "7.10"]}', tmp_path)["expect"]["in"]
    assert wanted == [8, -1, True, False, "8", "true", "7.10"]
    assert [type(word) for word in wanted] == [int, int, bool, bool, str, str, str]


@pytest.mark.parametrize("word", ["7.10", "1.0", "-0.5", "1e3"])
def test_what_could_be_a_number_or_a_version_is_refused_where_the_type_is_open(word: str, tmp_path: Path) -> None:
    write_catalogue(tmp_path, check=check_with(f"expect: {{eq: {word}}}"))
    (diagnostic,) = diagnostics_of(tmp_path)
    assert diagnostic == f'{CHECK}:12:14: {word} can be a number or a version; write "{word}" with quotes'


def test_a_number_is_a_number_where_the_schema_says_number(tmp_path: Path) -> None:
    assert row_with("tags: [preflight]\ndeadline: 7.10", tmp_path)["deadline"] == 7.1
    assert row_with("expect: {ge: 1e3, le: 2000}", tmp_path)["expect"] == {"ge": 1000.0, "le": 2000}


def test_a_fact_is_a_text_or_a_truth_value(tmp_path: Path) -> None:
    row = row_with("applies: {container: false, cann: [7.10, 8.0], npu_count: {not: 8}, os: NO}", tmp_path)
    assert row["applies"] == {"container": False, "cann": ["7.10", "8.0"], "npu_count": {"not": "8"}, "os": "NO"}


def test_the_arguments_of_a_probe_are_of_the_types_of_its_signature(tmp_path: Path) -> None:
    assert row_with("probe: {system.fact: {name: 7.10}}", tmp_path)["probe"] == {"system.fact": {"name": "7.10"}}
    row = row_with("probe: {system.hardware_models: {aarch64: {0x48: 920}, x86_64: {85: NO}}}", tmp_path)
    assert row["probe"] == {"system.hardware_models": {"aarch64": {"0x48": "920"}, "x86_64": {"85": "NO"}}}


def test_an_example_is_a_snapshot_and_read_as_one() -> None:
    text = b"""{environ: {RANK: 0, OMP: 07, GONE: null}, commands: {id -u: 0, ls: {rc: 2}}, euid: 7,
        files: {/etc/version: 7.10, /x: {mode: 0644, uid: 7}, /none: null}, covered: [/etc/*], expect: {actual: 8}}"""
    diagnostics = Diagnostics("x.yaml")
    node = read_yaml(text, diagnostics)
    assert Validator(diagnostics.report).judge(node, EXAMPLE_HOST) == {
        "environ": {"RANK": "0", "OMP": "07", "GONE": None},
        "commands": {"id -u": "0", "ls": {"rc": 2}},
        "euid": 7,
        "files": {"/etc/version": "7.10", "/x": {"mode": "0644", "uid": 7}, "/none": None},
        "covered": ["/etc/*"],
        "expect": {"actual": "8"},
    }
    assert diagnostics.found == []


WRONG = {
    "unknown key": (
        "severty: medium",
        "severity",
        "5:1: severty is not a known key; did you mean severity",
    ),
    "unknown severity": ("severity: grave", None, "5:11: grave is not one of info, low, medium, high, critical"),
    "unknown status": ("status: done", None, "4:9: done is not one of experimental, stable, deprecated"),
    "duplicate key": ("status: stable\nstatus: stable", None, "5:1: duplicate key status, first in line 4"),
    "no Chinese": ("title: {en: A governor is odd}", None, "3:8: zh is missing; add the Chinese text"),
    "empty Chinese": ("title: {en: Odd, zh: ''}", None, "3:22: empty; write text, or remove the key"),
    "one language": (
        "title: A governor is odd",
        None,
        "3:8: this is text; it must be a mapping ({en: ..., zh: ...})",
    ),
    "unknown probe": (
        "probe: {cpufreq.governor: {}}",
        None,
        "11:9: cpufreq.governor is not a probe (see `envtune list probes`); did you mean cpu.governors",
    ),
    "unknown module": (
        "probe: {cpufrq.governors: {}}",
        None,
        "11:9: cpufrq.governors is not a probe (see `envtune list probes`); did you mean cpu.governors",
    ),
    "unknown argument": (
        "probe: {system.fact: {nam: arch}}",
        None,
        "11:23: nam is not a known key; did you mean name",
    ),
    "missing argument": ("probe: {system.fact: {}}", None, "11:9: the argument name is missing"),
    "argument of wrong type": (
        "probe: {system.fact: {name: [arch]}}",
        None,
        "11:29: this is a list; it must be text",
    ),
    "two probes": ("probe: {system.fact: {name: arch}, cpu.governors: {}}", None, "11:8: a check has one probe"),
    "no probe": ("probe: {}", None, "11:8: empty; write a mapping ({kind: {argument: value}})"),
    "empty expectation": ("expect: {}", None, "12:9: empty; write a mapping"),
    "nothing expected": ("expect:", None, "12:8: empty; write a mapping"),
    "empty quantifier": ("expect: {all: {}}", None, "12:15: empty; write a mapping"),
    "unknown matcher": ("expect: {equals: performance}", None, "12:10: equals is not a matcher; known: eq, ne"),
    "matcher beside quantifier": (
        "expect: {all: {eq: a}, ne: b}",
        None,
        "12:9: all must be the only key; put the matchers into it",
    ),
    "quantifier in quantifier": ("expect: {all: {any: {eq: a}}}", None, "12:16: any is not a matcher"),
    "not a regular expression": ("expect: {matches: '('}", None, "12:19: not a regular expression: missing )"),
    "list wanted": ("expect: {in: performance}", None, "12:14: this is text; it must be a list"),
    "number wanted": ("expect: {ge: many}", None, "12:14: this is text; it must be a number"),
    "number in quotes": ("expect: {ge: '7'}", None, "12:14: this is text; it must be a number"),
    "octal number": ("expect: {ge: 0644}", None, "12:14: this is text; it must be a number"),
    "same must be true": ("expect: {same: false}", None, "12:16: must be true"),
    "list expected": ("expect: {eq: [1]}", None, "12:14: this is a list; it must be text, a whole number, true or"),
    "unknown fact": (
        "applies: {contaner: false}",
        None,
        "10:11: contaner is not a fact (see `envtune list facts`); did you mean container",
    ),
    "odd negation": (
        "applies: {arch: {nto: x86_64}}",
        None,
        "10:18: nto is not a known key; did you mean not",
    ),
    "id of another form": ("id: Cpu1", None, "1:5: Cpu1: must look like CPU001"),
    "id of another folder": ("id: NET900", None, "1:5: the file must be called NET900-governor-odd.yaml"),
    "name of another file": ("name: governor-even", None, "1:5: the file must be called CPU900-governor-even.yaml"),
    "unknown FAQ entry": ("tags: [preflight]\nfaq: [F99]", "tags", "10:7: F99 is not an FAQ entry; did you mean F"),
    "unknown playbook": ("tags: [preflight]\nplaybook: set-cpu", "tags", "10:11: set-cpu is not a playbook"),
    "tags that are no list": ("tags: preflight", None, "9:7: this is text; it must be a list"),
    "deadline of 0": ("tags: [preflight]\ndeadline: 0", "tags", "10:11: 0: must be in 0.1 .. 300"),
    "volatile by word": (
        "tags: [preflight]\nvolatile: 'yes'",
        "tags",
        "10:11: this is text; it must be true or false",
    ),
    "seed without citation": ("origin: seed", None, "6:9: origin seed needs the citation in `seed`"),
    "odd citation": ("origin: seed\nseed: chapter 3", "origin", "7:7: chapter 3: must look like 003:1349-1403"),
    "comma in braces": (
        "title: {en: Odd, or not, zh: 调速器异常}",
        None,
        "3:18: or not was parsed as a key; quote the text before it",
    ),
    "anchor": ("tags: &t [preflight]", None, "9:7: &t: anchors and aliases are not used in the catalog"),
    "tag": ("tags: [!!python/name:os.system preflight]", None, "9:8: !!python/name:os.system: tags are not used"),
    "number as key": ("applies: {1: false}", None, "10:11: 1 is not a fact (see `envtune list facts`)"),
    "list as key": ("applies: {[a]: false}", None, "10:11: a key must be text"),
    "nothing as key": ("applies: {~: false}", None, "10:11: a key must be text"),
    "unknown key of an example": (
        "tags: [preflight]\nexamples: {pass: [{files: {/x: {contents: a}}}]}",
        "tags",
        "10:33: contents is not a known key",
    ),
    "tab": ("probe:\n\tcpufreq.governors: {}", None, "12:1: not YAML: found character that cannot start any token"),
    "colon in a text": ("tags: a: b", None, "9:8: not YAML: mapping values are not allowed"),
    "open bracket": ("expect: {all: {eq: performance}", None, "13:1: not YAML: "),
    "second document": ("expect: {eq: a}\n---\nid: CPU901", None, "13:1: a file contains one entry"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_mistake_is_told_with_its_place_and_the_way_out(case: str, tmp_path: Path) -> None:
    line, instead_of, told = WRONG[case]
    write_catalogue(tmp_path, check=check_with(line, instead_of))
    diagnostics = diagnostics_of(tmp_path)
    assert any(diagnostic.startswith(f"{CHECK}:{told}") for diagnostic in diagnostics), diagnostics


FAQ_WRONG = {
    "bad regex": ("regex: odd error", "regex: 'odd ('", f"{FAQ}:5:13: not a regular expression"),
    "neither regex nor tokens": ("regex: odd error, ", "", f"{FAQ}:5:5: write one of regex, tokens"),
    "both regex and tokens": ("regex: odd error", "regex: odd error, tokens: [odd]", f"{FAQ}:5:5: write one of"),
    "a token without words": ("regex: odd error", "tokens: ['--']", f"{FAQ}:5:15: "),
    "unknown strength": ("strength: strong", "strength: hard", f"{FAQ}:5:34: hard is not one of strong, weak"),
    "unknown side": (
        "side: host",
        "side: hosts",
        f"{FAQ}:8:7: hosts is not one of host, code, escalate, ignore; did you mean host",
    ),
    "unknown check": (
        "side: host",
        "confirm: [CPU999]\nside: host",
        f"{FAQ}:8:11: CPU999 is not a check; did you mean CPU900",
    ),
}
PLAYBOOK_WRONG = {
    "truth value by word": (
        "safety: manual",
        "safety: manual\nrequires: {root: yes}",
        f"{PLAYBOOK}:5:18: this is text; it must be true or false",
    ),
    "unknown step": (
        "- instructions",
        "- instruction",
        f"{PLAYBOOK}:7:5: instruction is not a kind of step (see `envtune list steps`); did you mean instructions",
    ),
    "free shell": (
        "- instructions: {en: [Do it.], zh: [执行。]}",
        "- shell: rm -rf /",
        f"{PLAYBOOK}:7:5: shell is not a kind of step (see `envtune list steps`)",
    ),
    "step left out in Chinese": (
        "en: [Do it.]",
        "en: [Do it., Twice.]",
        f"{PLAYBOOK}:7:46: 2 steps in English, 1 in Chinese",
    ),
    "unknown check": (
        "fixes: [CPU900]",
        "fixes: [CPU909]",
        f"{PLAYBOOK}:3:9: CPU909 is not a check; did you mean CPU900",
    ),
    "unknown safety": ("safety: manual", "safety: none", f"{PLAYBOOK}:4:9: none is not one of safe, confirm, manual"),
}


@pytest.mark.parametrize("case", list(FAQ_WRONG))
def test_a_mistake_in_an_faq_entry(case: str, tmp_path: Path) -> None:
    old, new, told = FAQ_WRONG[case]
    write_catalogue(tmp_path, check=GOOD_CHECK, faq=GOOD_FAQ.replace(old, new))
    diagnostics = diagnostics_of(tmp_path)
    assert any(diagnostic.startswith(told) for diagnostic in diagnostics), diagnostics


@pytest.mark.parametrize("case", list(PLAYBOOK_WRONG))
def test_a_mistake_in_a_playbook(case: str, tmp_path: Path) -> None:
    old, new, told = PLAYBOOK_WRONG[case]
    write_catalogue(tmp_path, check=GOOD_CHECK, playbook=GOOD_PLAYBOOK.replace(old, new))
    diagnostics = diagnostics_of(tmp_path)
    assert any(diagnostic.startswith(told) for diagnostic in diagnostics), diagnostics


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    check = (
        GOOD_CHECK.replace("medium", "grave").replace("eq: performance", "eq: 7.10").replace("container", "contaner")
    )
    write_catalogue(tmp_path, check=check, faq=GOOD_FAQ.replace("side: host", "side: hosts"))
    places = [":".join(diagnostic.split(":")[:3]) for diagnostic in diagnostics_of(tmp_path)]
    assert places == [f"{CHECK}:5:11", f"{CHECK}:10:11", f"{CHECK}:12:20", f"{FAQ}:8:7"]


def test_every_missing_key_is_named(tmp_path: Path) -> None:
    write_catalogue(tmp_path, check="id: CPU900\n")
    told = " ".join(diagnostics_of(tmp_path))
    for key in ("name", "title", "status", "severity", "origin", "rationale", "probe", "expect"):
        assert f"{CHECK}:1:1: the key {key} is missing" in told


def test_an_id_is_used_once_and_so_is_a_name(tmp_path: Path) -> None:
    write_catalogue(tmp_path, check=GOOD_CHECK)
    again = tmp_path / "checks" / "network" / "CPU900-governor-odd.yaml"
    again.parent.mkdir()
    again.write_text(GOOD_CHECK, "utf-8")
    (tmp_path / "checks" / "cpu" / "CPU901-governor-odd.yaml").write_text(
        GOOD_CHECK.replace("CPU900", "CPU901"), "utf-8"
    )
    diagnostics = diagnostics_of(tmp_path)
    assert f"checks/network/CPU900-governor-odd.yaml:1:5: the id CPU900 is already used by {CHECK}" in diagnostics
    assert "checks/network/CPU900-governor-odd.yaml:1:5: CPU900 belongs in the directory cpu/" in diagnostics
    assert "checks/cpu/CPU901-governor-odd.yaml:2:7: CPU900 has the same name; choose another" in diagnostics


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "1:1: the file is empty"),
        (b"# nothing but a comment\n", "1:1: the file is empty"),
        (b"title: \xff\n", "1:8: not UTF-8"),
        (b"name: a\nid: \x07\n", "2:5: the character U+0007 is not allowed"),
        (b"- " * 50_000, "nested deeper than"),
        (b"[" * 50_000, "nested deeper than"),
        (b"{a: " * 50_000, "nested deeper than"),
        (b"a: " + b"9" * 5_000, "the key id is missing"),
        (b"x" * 300_000, "1:1: the file is larger than 256 KiB"),
        (b"[" + b"1," * 30_000 + b"1]", "more than 20000 values"),
        (b'a: "\\ud800"\n', "not YAML|half a surrogate"),
        (b"just text\n", "1:1: this is text; it must be a mapping"),
    ],
)
def test_a_file_that_is_no_entry_at_all(text: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / CHECK
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    diagnostics = diagnostics_of(tmp_path)
    assert any(words in diagnostic for diagnostic in diagnostics for words in told.split("|")), diagnostics


def test_aliases_cannot_blow_up(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
    )
    write_catalogue(tmp_path, check=bomb)
    began = time.monotonic()
    assert any("anchors and aliases are not used" in diagnostic for diagnostic in diagnostics_of(tmp_path))
    assert time.monotonic() - began < 60


@pytest.fixture(params=["libyaml", "pure Python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zipapp has PyYAML without libyaml; both must say the same."""
    if request.param == "pure Python":
        monkeypatch.setattr(yaml_reader, "_LOADER", yaml.SafeLoader)


@pytest.mark.parametrize("case", ["duplicate key", "unknown argument", "tag", "anchor", "comma in braces", "tab"])
def test_both_parsers_name_the_same_place(case: str, parser: None, tmp_path: Path) -> None:
    line, instead_of, told = WRONG[case]
    write_catalogue(tmp_path, check=check_with(line, instead_of))
    place = ":".join(told.split(":")[:2])
    assert any(diagnostic.startswith(f"{CHECK}:{place}: ") for diagnostic in diagnostics_of(tmp_path))


def examine(text: bytes, kind: str) -> None:
    """What the loader does with one file; must end, and must not raise."""
    diagnostics = Diagnostics("x.yaml")
    node = read_yaml(text, diagnostics)
    if node is None:
        assert diagnostics.found
        return
    entry_of(node, kind, diagnostics)
    assert all(c.line >= 1 and c.column >= 1 and c.text.en and c.text.zh for c in diagnostics.found)


FUZZ = search(300)
PIECES = st.sampled_from(
    [
        *("\n", "\n  ", "\n- ", ": ", "{", "}", "[", "]", ",", "'", '"', "|", ">-", "&a ", "*a", "!!str ", "? "),
        *("---\n", "...", "%YAML 1.1\n", "#", "\t", "\\", "<<: ", "\u2028", "\ufeff", "é", "🙂", "~", "null", "1e400"),
        *("id", "CPU900", "expect", "probe", "all", "eq", "title", "en", "zh", "examples", "pass", "files", "/a"),
        *("7.10", "NO", "0644", "0o7", "-0"),
    ]
)


@FUZZ
@given(st.lists(PIECES, max_size=60).map("".join), st.sampled_from(["checks", "faq", "playbooks"]))
def test_random_yaml_neither_raises_nor_hangs(text: str, kind: str) -> None:
    examine(text.encode("utf-8", "surrogatepass"), kind)


@FUZZ
@given(st.binary(max_size=400), st.sampled_from(["checks", "faq", "playbooks"]))
def test_random_bytes_neither_raise_nor_hang(text: bytes, kind: str) -> None:
    examine(text, kind)


@FUZZ
@given(st.data())
def test_a_damaged_good_check_neither_raises_nor_hangs(data: st.DataObject) -> None:
    text = GOOD_CHECK.encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    examine(text[:start] + data.draw(PIECES).encode() + text[end:], "checks")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@FUZZ
@given(
    st.sampled_from([line.partition(":")[0] for line in GOOD_CHECK.splitlines()] + ["examples", "severity_by"]), VALUES
)
def test_any_value_for_any_key_neither_raises_nor_hangs(key: str, value: object) -> None:
    data = {**yaml.safe_load(GOOD_CHECK), key: value}
    examine(yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass"), "checks")
