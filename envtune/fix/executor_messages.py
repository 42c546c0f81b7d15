"""What the executor says, for a person: it travels without the rest of envtune and speaks English only.

Every message it can raise has a row here (a test reads them out of its source); what a command itself printed stays.
"""

from __future__ import annotations

import re
from typing import Sequence

from envtune.messages import Bilingual, Text

_DIGEST = re.compile(r"sha256:([0-9a-f]{12})[0-9a-f]{52}")
# the English words, with {} for each value -> the Chinese ones, values in the same order
_ROWS: Sequence[tuple[str, str]] = (
    ("{}, above the state directory, can be written by others than root",
     "状态目录的上级目录 {} 可被 root 以外的用户写入"),
    ("{} is not a directory", "{} 不是目录"),
    ("{} belongs to user {}, not to user {}", "{} 属于用户 {}，而不是用户 {}"),
    ("{} can be written by others (mode {}); chmod 700 it",
     "{} 可被其他用户写入（权限 {}）；请执行 chmod 700"),
    ("another envtune run holds the lock: {}", "另一个 envtune 正在写入：{}"),
    ("{} is a symbolic link; name the file it points to", "{} 是符号链接；请直接指定它指向的文件"),
    ("{} is not a regular file", "{} 不是普通文件"),
    ("{}: the kernel took {} of {} bytes", "{}：内核只接受了 {}/{} 字节"),
    ("{} was changed by somebody else at this moment", "{} 恰在此时被他人修改"),
    ("the original of {} kept in {} is damaged", "{} 的原内容（保存于 {}）已损坏"),
    ("{} has no way back", "{} 无法撤销"),
    ("{}: not found any more: {}", "{}：已找不到：{}"),
    ("{} did not answer within 60 s", "{} 在 60 秒内没有响应"),
    ("{} ended with {}: {}", "{} 以状态 {} 结束：{}"),
    ("{} did not end within {} s: {}", "{} 在 {} 秒内没有结束：{}"),
    ("{} would write {}, which the plan does not name", "{} 会写入计划中没有的 {}"),
    ("the archive {} of what was there is damaged", "原内容的归档 {} 已损坏"),
    ("{}: no such file", "{}：没有该文件"),
    ("{}: several files: {}", "{}：匹配到多个文件：{}"),
    ("{} holds a file outside of its own tree: {}", "{} 中有文件超出自身目录：{}"),
    ("{} holds {}, whose place is not known", "{} 中的 {} 安装位置未知"),
    ("{} is not what {} holds", "{} 与 {} 中的内容不符"),
    ("process {} belongs to user {} now", "进程 {} 现属于用户 {}"),
    ("process {} is envtune itself or started it", "进程 {} 是 envtune 自身或其祖先进程"),
    ("process {} is still there", "进程 {} 仍未结束"),
    ("process {} has ended and cannot be brought back", "进程 {} 已结束，无法恢复"),
    ("`{}` tells something else than when the plan was made (found {}, planned for {})",
     "`{}` 的输出与制定计划时不同（现为 {}，计划时为 {}）"),
    ("{} is not what the plan expected (found {}, planned for {})",
     "{} 与计划时不同（现为 {}，计划时为 {}）"),
    ("{} does not hold what was written", "{} 的内容与写入的不一致"),
    ("what was there before could not be put back", "未能恢复原有内容"),
    ("{} was changed since (found {}, this run left {})",
     "{} 之后又被修改（现为 {}，本次运行留下的是 {}）"),
    ("malformed plan: {}", "计划格式错误：{}"),
    ("run {} was interrupted; finish or undo it first", "运行 {} 曾被中断；请先完成或撤销它"),
    ("{} is not the name of a run", "{} 不是运行的名称"),
    ("there is no run {}", "没有运行 {}"),
    ("run {} is of another version ({})", "运行 {} 属于其他版本（{}）"),
    ("run {} was not interrupted", "运行 {} 未曾中断"),
    ("damaged lines in {}: {}; undo the run instead", "{} 的第 {} 行已损坏；请改为撤销该运行"),
    ("damaged lines in {}: {}; what they told was not undone",
     "{} 的第 {} 行已损坏；其中记录的改动未撤销"),
    ("run {} has no change {}", "运行 {} 中没有改动 {}"),
    ("a command of run {} is still running: process {}; wait for it or end it",
     "运行 {} 的命令仍在执行：进程 {}；请等待或将其结束"),
    ("the journal's line that says what was there is damaged", "日志中记录原内容的一行已损坏"),
    ("the original could not be kept: {}", "无法保存原内容：{}"),
    ("stopped by the user", "已被用户中止"),
    ("not begun", "未开始"),
    ("it has just begun", "刚刚开始"),
    ("pid {}, since {}, run {}", "pid {}，始于 {}，运行 {}"),
    ("pid {}, since {}", "pid {}，始于 {}"),
    ("absent", "不存在"),
    # of the system, at the end of a message
    ("{}: Permission denied", "{}：权限不足"),
    ("{}: Operation not permitted", "{}：不允许的操作"),
    ("{}: Operation not permitted ({} has the attribute {} of chattr)",
     "{}：不允许的操作（{} 带有 chattr 的 {} 属性）"),
    ("{}: Permission denied ({} has the attribute {} of chattr)",
     "{}：权限不足（{} 带有 chattr 的 {} 属性）"),
    ("{}: Read-only file system", "{}：文件系统只读"),
    ("{}: No space left on device", "{}：磁盘空间不足"),
    ("{}: Disk quota exceeded", "{}：超出磁盘配额"),
    ("{}: Device or resource busy", "{}：设备或资源忙"),
    ("{}: Invalid argument", "{}：内核不接受该值"),
    ("{}: Input/output error", "{}：输入输出错误"),
    ("{}: No such file or directory", "{}：没有该文件或目录"),
    ("{}: Not a directory", "{}：不是目录"),
    ("{}: Is a directory", "{}：是目录"),
)  # fmt: skip


def told(message: str) -> Text:
    """A message of the executor in both languages, digests short enough to read."""
    short = _DIGEST.sub(r"sha256:\1…", message)
    return Bilingual(short, _chinese(short))


def _chinese(message: str) -> str:
    whole = _row(message)
    if whole is not None:
        return whole
    parts = [_row(part) or part for part in message.split("; ")]
    return "；".join(parts) if len(parts) > 1 else message


def _row(message: str) -> str | None:
    for en, zh in _ROWS:
        found = _form(en).fullmatch(message)
        if found is not None:
            return zh.format(*(_row(value) or value for value in found.groups()))
    return None


def _form(words: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, words.split("{}"))), re.S)
