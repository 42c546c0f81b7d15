"""Which characters of a text are not displayed as what they are; the only place that makes them visible.

Control characters control a terminal, direction marks reorder the surrounding text, and some characters have no width
at all. Names of files and processes, log lines and recorded hosts may contain any of them.
"""

import json
import re
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Callable

# C1; Default_Ignorable_Code_Point (Unicode, DerivedCoreProperties.txt), which includes the direction marks, the
# zero-width characters, variation selectors and tags; line and paragraph separator; interlinear annotation; halves of
# surrogate pairs (bytes that are not UTF-8); noncharacters.
_UNSEEN = (
    r"\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Compiled only for a text that is not plain ASCII: compiling takes milliseconds.
_IN_A_LINE = r"[\x00-\x1f%s]" % _UNSEEN
_IN_LINES = r"[\x00-\x08\x0b-\x1f%s]" % _UNSEEN
_PRINTED = bytes(range(0x20, 0x7F))
_PRINTED_LINES = _PRINTED + b"\n\t"
_SCALARS = frozenset((str, int, float, bool, type(None)))
_LONG_LIST = 8  # values of a list from which encoding it separately is faster
_encode_lines = json.JSONEncoder(ensure_ascii=False, separators=("\n", ": ")).encode


def visible(text: str) -> str:
    r"""Return the text as one line with all of these visible: `\x1b`, `\u200e`, `\U000e0041`."""
    return text if _holds_only(text, _PRINTED) else re.sub(_IN_A_LINE, _escaped, text)


def visible_lines(text: str) -> str:
    """Return the text like `visible`, but keep newlines and tabs."""
    return text if _holds_only(text, _PRINTED_LINES) else re.sub(_IN_LINES, _escaped, text)


def _holds_only(text: str, plain: bytes) -> bool:
    """Return whether the text holds only these characters: in a third of the time of an expression.

    Part of the collector, and Python 3.6 has no `str.isascii`.
    """
    data = text.encode("ascii", "ignore")
    return len(data) == len(text) and not data.translate(None, plain)


def replace_unseen(text: str, replacement: Callable[[str], str]) -> str:
    """Return the text with every run of characters that `visible_lines` would escape replaced."""
    return re.sub(_IN_LINES + "+", lambda found: replacement(found.group()), text)


def is_visible(text: str) -> bool:
    """Return whether the text is one line that is displayed as it is."""
    return visible(text) == text


def _escaped(found: Any) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:  # PEP 383: a byte that is not UTF-8
        code -= 0xDC00
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


def json_text(data: Any, indent: Any = None) -> str:
    r"""Return data as JSON that is safe for any terminal and UTF-8 reader: invisible characters as `\u202e`."""
    parts = [json.dumps(data, ensure_ascii=False)] if indent is None else _indented(data, " " * indent)
    text = "".join(parts)
    if text.isascii() and "\x7f" not in text:  # json.dumps has escaped the other control characters
        return text
    return "".join(
        part if part.isascii() and "\x7f" not in part else re.sub(_IN_LINES, _escaped_in_json, part) for part in parts
    )


def _indented(data: Any, indent: str) -> Any:
    """Return the text of data as indented by json.dumps, in a fraction of the time: its fast encoder does not indent.

    All values are encoded at once, one per line, and inserted afterwards. Long lists with items of one form are encoded
    separately.
    """
    parts: Any = []
    values: Any = []
    _add_indented(parts, values, data, indent, "\n")
    texts = iter(_encode_lines(values)[1:-1].split("\n"))
    return [next(texts) if part is None else part for part in parts]


def _add_indented(parts: Any, values: Any, data: Any, indent: str, line: str) -> None:
    """Add the text of data, with None in place of each value."""
    is_object = isinstance(data, dict)
    if not data or not (is_object or isinstance(data, (list, tuple))):
        parts.append(None)
        values.append(data)
        return
    inner = line + indent
    if len(data) >= _LONG_LIST and not is_object:
        items = _alike_items(data, inner, indent)
        if items is not None:
            parts.append(f"[{inner}{items}{line}]")
            return
    before = ("{" if is_object else "[") + inner
    for key, value in data.items() if is_object else enumerate(data):
        parts.append(before + _key(key) if is_object else before)
        if type(value) in _SCALARS:
            parts.append(None)
            values.append(value)
        else:
            _add_indented(parts, values, value, indent, inner)
        before = "," + inner
    parts += (line, "}" if is_object else "]")


def _alike_items(data: Any, line: str, indent: str) -> Any:
    """Return the text of the items of a list of values, or of objects of few forms; None for others."""
    if _SCALARS.issuperset(map(type, data)):
        return _encode_list(line)(data)[1:-1]
    try:
        values, forms = _flat_values(data) or _all_values(data)
    except _UnusualError:
        return None
    layouts = {form: (_layout(form, line, indent), _count(form)) for form in set(forms)}
    texts = iter(_encode_lines(values)[1:-1].split("\n"))
    items = (layout % tuple(islice(texts, count)) for layout, count in map(layouts.__getitem__, forms))
    return ("," + line).join(items)


def _flat_values(data: Any) -> Any:
    """Return the values of flat objects with the same keys, and the form of each; None for others."""
    keys = list(data[0]) if type(data[0]) is dict else []
    if set(map(type, keys)) != {str} or any(type(row) is not dict or list(row) != keys for row in data):
        return None
    values = list(chain.from_iterable(map(dict.values, data)))
    return (values, [(dict, *keys)] * len(data)) if _SCALARS.issuperset(map(type, values)) else None


def _all_values(data: Any) -> Any:
    """Return the values of all items, and the form of each; raises _UnusualError."""
    values: Any = []
    forms = [_add_values(values, item) for item in data]
    return values, forms


class _UnusualError(Exception):
    """Data has another form than a report's: it is not an object, a key is no text, or it holds a long list."""


def _add_values(values: Any, data: Any) -> Any:
    """Add the values of an object or list and of what it holds, and return its form.

    That is `dict` and its keys, each followed by the form of its value unless that is a single one; or `list` and, for
    each item, its form or None.
    """
    is_object = type(data) is dict
    if not is_object and (type(data) is not list or len(data) >= _LONG_LIST):
        raise _UnusualError
    form: Any = [type(data)]
    for key, value in data.items() if is_object else enumerate(data):
        if is_object:
            if type(key) is not str:
                raise _UnusualError
            form.append(key)
        if type(value) in _SCALARS or not value:
            values.append(value)
            if not is_object:
                form.append(None)
        else:
            form.append(_add_values(values, value))
    return tuple(form)


def _layout(form: Any, line: str, indent: str) -> str:
    """Return the text of what has this form, with `%s` in place of each value."""
    inner, is_object = line + indent, form[0] is dict
    fields = []
    for part in form[1:]:
        if is_object and type(part) is str:
            fields.append(_key(part).replace("%", "%%") + "%s")
            continue
        text = "%s" if part is None else _layout(part, inner, indent)
        if is_object:
            fields[-1] = fields[-1][:-2] + text
        else:
            fields.append(text)
    if not fields:
        return "{}" if is_object else "[]"
    first, last = "{}" if is_object else "[]"
    return first + inner + ("," + inner).join(fields) + line + last


def _count(form: Any) -> Any:
    """Return how many values there are in what has this form."""
    inner = sum(_count(part) for part in form if type(part) is tuple)
    if form[0] is list:
        return inner + form.count(None)
    return inner + sum(type(part) is str for part in form) - sum(type(part) is tuple for part in form)


@lru_cache(64)
def _encode_list(line: str) -> Callable[[Any], str]:
    """Return the encoder for a list of values, each but the first preceded by this start of a line."""
    return json.JSONEncoder(ensure_ascii=False, separators=("," + line, ": ")).encode


@lru_cache(1024, typed=True)
def _key(key: Any) -> str:
    """Return the text of an object's key and its separator; the key may be a number."""
    return _encode_lines({key: 0})[1:-2]


def _escaped_in_json(found: Any) -> str:
    return json.dumps(found.group())[1:-1]  # two escapes beyond U+FFFF, RFC 8259 section 7
