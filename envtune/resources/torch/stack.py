"""torch, torch_npu and apex as installed on disk; nothing is imported, because `import torch_npu` initializes the NPU.

Locations of the modules: Ascend/pytorch (`src/torch/npu`, `src/torch/contrib/npu/optimized_lib` and
`torch.utils.dumper` of the 1.5.0 line; `torch_npu/contrib`, `torch_npu/npu/amp`, `torch_npu/optim` of the plugin) and
Ascend/apex (`src/apex/optimizers/npu_fused_*.py`).
"""

from __future__ import annotations

import ast
import re
from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import exists, is_dir
from envtune.messages import N_, Message, clauses, enumerated
from envtune.model import Evidence, Reading, Source
from envtune.ranges import checked_int
from envtune.resources.python.distributions import NONE, absent, environment, locate

BUILT_IN, PLUGIN, PLAIN = "built-in torch.npu", "torch_npu plugin", "no NPU support"
OTHER_PATCH, OTHER_RELEASE = "another patch release", "another release"
PLUGIN_SINCE = (1, 8)  # 002:49-51, 003:146: torch.npu is part of torch 1.5.0, torch_npu a separate package since
APEX_UNTIL = (1, 8, 1)  # 003:38-39: mixed precision by apex; torch_npu has torch.npu.amp from v1.11.0 on


def release(version: str) -> str:
    """Return the X.Y.Z at the head of a version: 2.1.0 of `2.1.0.post10`, 1.5.0 of `1.5.0+ascend.post3`."""
    head = re.match(r"\d+(?:\.\d+){0,2}", version)
    return head[0] if head else version


def release_numbers(version: str) -> tuple[int, ...]:
    """Return (2, 1, 0) of `2.1.0.post10`."""
    return tuple(checked_int(part) for part in release(version).split(".") if part.isdecimal())


def version_fact(context: Context, name: str) -> str:
    """Return the value of the fact `name`; raises Undetermined with its reason if unknown."""
    fact = context.facts[name]
    if fact.value is None:
        raise Undetermined(fact.reason or Message("{name} unknown", name=name), fact.source)
    return fact.value


def torch_directory(context: Context) -> str:
    """Return the directory of the installed torch; raises NotApplicable if there is none."""
    directory = locate(context, "torch")
    if directory is None:
        raise absent(context, "torch")
    return directory


def torch_flavour(context: Context) -> tuple[str, Source]:
    """Return how torch reaches the NPU, and the path that shows it."""
    directory = torch_directory(context)
    plugin = version_fact(context, "torch_npu")
    built_in = f"{directory}/npu/__init__.py"
    if plugin != NONE:
        torch = version_fact(context, "torch")
        return _plugin_kind(torch, plugin), context.facts["torch_npu"].source
    if exists(context.host, built_in):
        return BUILT_IN, built_in
    torch = version_fact(context, "torch")
    if "+ascend" in torch and release_numbers(torch) < PLUGIN_SINCE:  # the name of the vendor's wheels of that line
        return BUILT_IN, context.facts["torch"].source
    return PLAIN, directory


def _plugin_kind(torch: str, plugin: str) -> str:
    """Return whether the plugin fits torch's release; libtorch_npu.so links to the C++ symbols of one X.Y of torch."""
    if release(torch) == release(plugin):
        return PLUGIN
    return OTHER_PATCH if release_numbers(torch)[:2] == release_numbers(plugin)[:2] else OTHER_RELEASE


def npu_torch_directory(context: Context) -> str:
    """Return the directory of a torch that can reach the NPU; raises NotApplicable for a plain one."""
    kind, source = torch_flavour(context)
    if kind == PLAIN:
        version = version_fact(context, "torch")
        raise NotApplicable(
            Message("torch {version} has no NPU support: torch_npu is not installed", version=version), source
        )
    return torch_directory(context)


@probe("torch.flavour", formerly="torch_stack.flavour")
def flavour(context: Context) -> Iterable[Reading]:
    """NPU support of torch: `built-in torch.npu`, `torch_npu plugin`, or the reason why it does not work."""
    kind, source = torch_flavour(context)
    torch, plugin = version_fact(context, "torch"), version_fact(context, "torch_npu")
    if kind == PLAIN:
        if version_fact(context, "ascend") == "false":
            reason = Message("this host has no Ascend component, so a plain torch {torch} is right", torch=torch)
            raise NotApplicable(reason, context.facts["ascend"].source)
        shown = Message("torch {torch} without torch_npu", torch=torch)
    elif kind == BUILT_IN:
        shown = Message("torch {torch} with a built-in torch.npu", torch=torch)
    else:
        shown = Message("torch {torch} with torch_npu {plugin}", torch=torch, plugin=plugin)
    expected = Message("torch_npu of torch's own release (1.8.1 and newer), or torch 1.5.0 with torch.npu inside")
    facts = f"torch {torch} ({context.facts['torch'].source}); torch_npu {plugin} ({context.facts['torch_npu'].source})"
    yield Reading("torch", kind, Evidence(source, facts), shown, expected)


@probe("torch.shadow", formerly="torch_stack.shadow")
def shadow(context: Context) -> Iterable[Reading]:
    """Directories before site-packages on the import path with a torch that hides the installed one; empty if none."""
    job = context.target.environment
    folders = {context.host.cwd: None, **dict.fromkeys(job_folders(context))}
    entries = environment(context).entries if (job.variables or {}).get("PYTHONPATH") else ()
    sites = set(environment(context).python.sites)
    for entry in entries:
        if entry in sites:
            break
        folders[entry] = None
    for folder in folders:
        if folder not in sites:
            yield _shadow_reading(context, folder)
    if job.variables is None:
        reason = job.reason or Message("the job's environment was not read")
        yield Reading("PYTHONPATH", None, Evidence(job.source), reason=reason)


def job_folders(context: Context) -> Iterable[str]:
    """Yield the directory of the job's script and its working directory, if a script or a process was named."""
    options = context.target.options
    if options.script and options.script.endswith(".py"):
        path = options.script if options.script.startswith("/") else f"{context.host.cwd}/{options.script}"
        yield path.rpartition("/")[0] or "/"
    if options.pid is None:
        return
    try:
        cwd = context.host.readlink(f"/proc/{options.pid}/cwd")
    except HostError:
        return  # another user's process; its directory cannot be read
    yield cwd
    try:
        argv = context.host.read_bytes(f"/proc/{options.pid}/cmdline").decode("utf-8", "replace").split("\0")
    except HostError:
        return
    script = next((word for word in argv[1:] if word.endswith(".py")), None)
    if script:
        yield (script if script.startswith("/") else f"{cwd}/{script}").rpartition("/")[0]


def _shadow_reading(context: Context, folder: str) -> Reading:
    """Return the path that hides torch; a source tree has torch/__init__.py and no torch/_C*.so (guide 003:3256)."""
    path = f"{folder.rstrip('/')}/torch"
    hiding, shown = "", Message("no torch installed")
    if is_dir(context.host, path) and exists(context.host, path + "/__init__.py"):
        names = context.host.listdir(path)
        if any(re.match(r"_C\b.*\.(so|pyd)$", name) for name in names):
            shown = Message("{path}, compiled", path=path)
        else:
            hiding, shown = path, Message("{path} has no _C library", path=path)
    elif exists(context.host, path + ".py"):
        hiding, shown = path + ".py", Message("{path}.py hides torch", path=path)
    return Reading(folder, hiding, Evidence(hiding or path, shown.en), shown, Message("no other torch"))


@probe("torch.apex", formerly="torch_stack.apex")
def apex(context: Context) -> Iterable[Reading]:
    """Whether the installed apex is the build adapted to the NPU."""
    torch = npu_torch_directory(context)
    expected = Message("apex with NpuFusedSGD")
    directory = locate(context, "apex")
    if directory is None:
        _refuse_without_need(context, torch)
        shown = Message("no apex, and torch has no built-in mixed precision")
        yield Reading("apex", False, Evidence(enumerated(environment(context).entries)), shown, expected)
        return
    names, path = fused_names(context, "apex")
    adapted = "NpuFusedSGD" in names or exists(context.host, f"{directory}/optimizers/npu_fused_sgd.py")
    shown = Message("adapted to the NPU")
    if not adapted:
        shown = Message("{path} has no NpuFused optimizer: not the NPU build", path=directory)
    yield Reading("apex", adapted, Evidence(path or directory, ", ".join(names)), shown, expected)


def _refuse_without_need(context: Context, torch: str) -> None:
    """Raise NotApplicable if a torch without apex has its own mixed precision."""
    plugin = locate(context, "torch_npu")
    for path in ([f"{plugin}/npu/amp"] if plugin else []) + [f"{torch}/npu/amp"]:
        if exists(context.host, f"{path}/__init__.py"):
            raise NotApplicable(
                Message("apex is not installed, and torch has its own mixed precision: {path}", path=path), path
            )
    version = version_fact(context, "torch")
    if release_numbers(version) > APEX_UNTIL:
        reason = Message("torch is {version}; apex is needed up to 1.8.1", version=version)
        raise NotApplicable(reason, context.facts["torch"].source)


def fused_names(context: Context, package: str) -> tuple[tuple[str, ...], str]:
    """Return the NpuFused classes that a package's optimizer module names, and that module."""
    directory = locate(context, package)
    if directory is None:
        return (), ""
    path = f"{directory}/{'optimizers' if package == 'apex' else 'optim'}/__init__.py"
    try:
        text = context.host.read(path)
    except Missing:
        return (), ""
    code = re.sub(r"#.*", "", text)
    return tuple(dict.fromkeys(re.findall(r"\bNpuFused\w+", code))), path


@probe("torch.fused_optimisers", formerly="torch_stack.fused_optimisers")
def fused_optimisers(context: Context) -> Iterable[Reading]:
    """Fused optimizers for the NPU in apex and torch_npu; empty if none is installed."""
    torch = npu_torch_directory(context)
    by_package = {package: fused_names(context, package) for package in ("apex", "torch_npu")}
    names = sorted({name for classes, _ in by_package.values() for name in classes})
    plugin = locate(context, "torch_npu")
    if not names and plugin is not None and not exists(context.host, f"{plugin}/optim"):
        raise incomplete_plugin(f"{plugin}/optim")
    listed = "; ".join(f"{package}: {', '.join(classes)}" for package, (classes, _) in by_package.items() if classes)
    paths = [path for _, path in by_package.values() if path] or [torch]
    parts = [
        Message("{subject}: {found}", subject=package, found=enumerated(classes))
        for package, (classes, _) in by_package.items()
        if classes
    ]
    shown = clauses(parts) if parts else Message("none")
    yield Reading("optimisers", names, Evidence(paths[0], "\n".join([*paths, listed])), shown)


def incomplete_plugin(path: str) -> Undetermined:
    """Return what a missing directory of torch_npu means: all releases have it, so something is incomplete."""
    return Undetermined(
        Message("torch_npu or its recording is incomplete ({path} is missing)", path=path),
        path,
    )


@probe("torch.amp_parameters", formerly="torch_stack.amp_parameters")
def amp_parameters(
    context: Context, *, names: Annotated[Iterable[str], N_("Names of parameters.")]
) -> Iterable[Reading]:
    """Whether apex.amp.initialize has each of the given parameters."""
    npu_torch_directory(context)
    directory = locate(context, "apex")
    if directory is None:
        raise absent(context, "apex")
    path = f"{directory}/amp/frontend.py"
    parameters = function_parameters(context.host.read(path), "initialize", path)
    evidence = Evidence(path, "initialize(" + ", ".join(parameters) + ")")
    for name in names:
        shown = Message("a parameter") if name in parameters else Message("no such parameter")
        yield Reading(name, name in parameters, evidence, shown, Message("a parameter"))


def function_parameters(text: str, function: str, path: str) -> tuple[str, ...]:
    """Return the parameter names of a module-level function; raises Undetermined if there is none of that name."""
    for node in parse_source(text, path).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return tuple(a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
    raise Undetermined(Message("{path} defines no {function}()", path=path, function=function), path)


def parse_source(text: str, path: str) -> ast.Module:
    """Return the syntax tree; raises Undetermined if the text is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = Message("{path} is not a Python source: {error}", path=path, error=error)
        raise Undetermined(reason, path) from None
