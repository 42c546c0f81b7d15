"""Judges one catalogue file against the tables of schema.py: every complaint with its place and the way out."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Mapping

from envtune.catalog.selection import nearest
from envtune.catalog.yaml import Complaints, Node
from envtune.schema import types as schema
from envtune.schema.types import Bilingual, Bool, Field, ListOf, MapOf, Number, Record, Special, Str

_KIND_WORDS: Mapping[str, tuple[str, str]] = {
    "mapping": ("a mapping", "映射"),
    "list": ("a list", "列表"),
    "text": ("a text", "文本"),
    "int": ("a number", "数字"),
    "float": ("a number", "数字"),
    "bool": ("true or false", "true 或 false"),
    "null": ("nothing", "空值"),
}
Rule = Callable[[Node, Any, Complaints], None]


def validate(node: Node, kind: str, complaints: Complaints) -> None:
    """Judge the document of one file as an entry of `kind` (checks, faq or playbooks)."""
    judge(node, schema.TABLES[kind], complaints)
    if kind == "checks":
        _seed_is_cited(node, complaints)


def judge(node: Node, type_: schema.Type, complaints: Complaints) -> None:
    """Judge one node against its type."""
    _RULES[type(type_)](node, type_, complaints)


def wanted(node: Node, kind: str, complaints: Complaints, form: str = "") -> bool:
    """Whether the node is of that kind and not empty; complains otherwise."""
    if node.kind == kind and (kind in ("bool", "int") or node.value not in ((), "")):
        return True
    en, zh = _KIND_WORDS[kind]
    like = f" ({form})" if form else ""
    if node.kind == kind or node.kind == "null":
        complaints.about(node, f"empty; write {en}{like}, or leave the key out", f"为空；请填写{zh}{like}，或删除该键")
    elif kind == "text" and node.kind in ("int", "float", "bool"):
        way = (
            f'{node.raw} is not a text in YAML; write "{node.raw}" with quotes',
            f'{node.raw} 在 YAML 中不是文本；请加引号写成 "{node.raw}"',
        )
        complaints.about(node, *way)
    else:
        is_en, is_zh = _KIND_WORDS[node.kind]
        complaints.about(node, f"this is {is_en}; it must be {en}{like}", f"此处是{is_zh}；必须是{zh}{like}")
    return False


def unknown_word(node: Node, what: tuple[str, str], known: Iterable[str], complaints: Complaints) -> None:
    """Complain about a word that is not in a closed list, naming the nearest or all of a short list."""
    names = list(known)
    near = nearest(node.raw or str(node.value), names)
    if not near and len(names) <= 16 and not what[0].startswith("one of"):
        near = names
    en, zh = f"{node.value} is not {what[0]}", f"{node.value} 不是{what[1]}"
    if near:
        en, zh = f"{en}; did you mean {' or '.join(near)}?", f"{zh}；是否指 {' 或 '.join(near)}？"
    complaints.about(node, en, zh)


def known_keys(node: Node, names: Iterable[str], complaints: Complaints) -> None:
    """Complain about every key of a mapping that is not one of the names."""
    allowed = list(names)
    for key, value in node.value:
        if key.value not in allowed and value.kind == "null" and not value.raw:
            complaints.about(
                key,
                f"{key.value} has become a key; quote the text before it, which holds a comma",
                f"{key.value} 被当成了键；请为其前面含逗号的文本加引号",
            )
        elif key.value not in allowed:
            unknown_word(key, ("a key that is known here", "此处的已知键"), allowed, complaints)


def regex(node: Node, complaints: Complaints) -> None:
    """Complain when a text is not a regular expression of Python."""
    try:
        re.compile(node.value)
    except (re.error, OverflowError, RecursionError) as error:
        complaints.about(node, f"not a regular expression: {error}", f"不是合法的正则表达式：{error}")


def _str(node: Node, type_: Str, complaints: Complaints) -> None:
    if not wanted(node, "text", complaints, type_.form) or node.spoiled:
        return
    if type_.choices and node.value not in type_.choices:
        unknown_word(
            node, (f"one of {', '.join(type_.choices)}", f" {'、'.join(type_.choices)} 之一"), type_.choices, complaints
        )
    elif type_.pattern and not re.fullmatch(type_.pattern, node.value):
        complaints.about(node, f"{node.value}: must look like {type_.form}", f"{node.value}：格式应如 {type_.form}")
    elif type_.regex:
        regex(node, complaints)
    elif not node.value.strip():
        complaints.about(node, "empty; write something, or leave the key out", "为空；请填写内容，或删除该键")


def _bool(node: Node, type_: Bool, complaints: Complaints) -> None:
    wanted(node, "bool", complaints)


def _number(node: Node, type_: Number, complaints: Complaints) -> None:
    if node.kind not in ("int", "float"):
        is_en, is_zh = _KIND_WORDS[node.kind]
        complaints.about(node, f"this is {is_en}; it must be a number", f"此处是{is_zh}；必须是数字")
    elif type_.whole and node.kind == "float":
        complaints.about(node, f"{node.raw}: write a whole number", f"{node.raw}：请写整数")
    elif not type_.least <= node.value <= type_.most:
        span = f"{type_.least:g} .. {type_.most:g}"
        complaints.about(node, f"{node.raw}: must lie in {span}", f"{node.raw}：必须在 {span} 之间")


def _bilingual(node: Node, type_: Bilingual, complaints: Complaints) -> None:
    form = "{en: ..., zh: ...}"
    if not wanted(node, "mapping", complaints, form):
        return
    known_keys(node, ("en", "zh"), complaints)
    for lang, name in (("en", ("English", "英文")), ("zh", ("Chinese", "中文"))):
        text = node.get(lang)
        if text is None:
            complaints.about(
                node, f"{lang} is missing; write the {name[0]} text, too", f"缺少 {lang}；请补充{name[1]}文本"
            )
        else:
            _str(text, Str(), complaints)


def _list(node: Node, type_: ListOf, complaints: Complaints) -> None:
    if wanted(node, "list", complaints, "[...]"):
        for item in node.value:
            judge(item, type_.item, complaints)


def _map(node: Node, type_: MapOf, complaints: Complaints) -> None:
    if wanted(node, "mapping", complaints, "{...}"):
        for key, value in node.value:
            judge(key, type_.key, complaints)
            judge(value, type_.value, complaints)


def _record(node: Node, type_: Record, complaints: Complaints) -> None:
    names = [field.name for field in type_.fields]
    if not wanted(node, "mapping", complaints, ", ".join(names[:4]) + ", ..."):
        return
    known_keys(node, names, complaints)
    for field in type_.fields:
        value = node.get(field.name)
        if value is not None:
            judge(value, field.type, complaints)
        elif field.required:
            _missing(node, field, complaints)


def _missing(node: Node, field: Field, complaints: Complaints) -> None:
    doc = f": {field.doc}" if field.doc else ""
    complaints.about(node, f"the key {field.name} is missing{doc}", f"缺少键 {field.name}")


def _special(node: Node, type_: Special, complaints: Complaints) -> None:
    from envtune.catalog import forms as validate_forms

    validate_forms.FORMS[type_.name](node, complaints)


_RULES: Mapping[type, Rule] = {
    Str: _str,
    Bool: _bool,
    Number: _number,
    Bilingual: _bilingual,
    ListOf: _list,
    MapOf: _map,
    Record: _record,
    Special: _special,
}


def _seed_is_cited(node: Node, complaints: Complaints) -> None:
    origin = node.get("origin")
    if origin is not None and origin.value == "seed" and node.get("seed") is None:
        complaints.about(origin, "origin seed needs the citation in `seed`", "origin 为 seed 时须在 `seed` 中给出出处")
