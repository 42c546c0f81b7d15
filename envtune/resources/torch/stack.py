"""torch, torch_npu and apex as they lie on disk: nothing is imported, because `import torch_npu` initialises the NPU.

Places of the modules: Ascend/pytorch (`src/torch/npu`, `src/torch/contrib/npu/optimized_lib` and `torch.utils.dumper`
of the 1.5.0 line; `torch_npu/contrib`, `torch_npu/npu/amp`, `torch_npu/optim` of the plugin) and Ascend/apex
(`src/apex/optimizers/npu_fused_*.py`).
"""

from __future__ import annotations

import ast
import re
from typing import Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import exists, is_dir
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import NONE, absent, environment, locate

BUILT_IN, PLUGIN, PLAIN, MISMATCHED = "built-in torch.npu", "torch_npu plugin", "no NPU support", "mismatched"


PLUGIN_SINCE = (1, 8)  # 002:49-51, 003:146: torch.npu is part of torch 1.5.0, torch_npu a package of its own since
APEX_UNTIL = (1, 8, 1)  # 003:38-39: mixed precision by apex; torch_npu has torch.npu.amp from v1.11.0 on


def release(version: str) -> str:
    """The X.Y.Z at the head of a version: 2.1.0 of `2.1.0.post10`, 1.5.0 of `1.5.0+ascend.post3`."""
    found = re.match(r"\d+(?:\.\d+){0,2}", version)
    return found[0] if found else version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release(version).split(".") if part.isdigit())


def told_version(context: Context, name: str) -> str:
    """The value of the fact `name`; Undetermined with its reason when there is none."""
    fact = context.facts[name]
    if fact.value is None:
        raise Undetermined(fact.reason or Message("cannot tell {name}", name=name), fact.source)
    return fact.value


def torch_place(context: Context) -> str:
    """The directory of the installed torch; NotApplicable without one."""
    place = locate(context, "torch")
    if place is None:
        raise absent(context, "torch")
    return place


def flavour_of(context: Context) -> tuple[str, str]:
    """(how torch reaches the NPU, the path that shows it)."""
    place = torch_place(context)
    plugin = told_version(context, "torch_npu")
    inside = f"{place}/npu/__init__.py"
    if plugin != NONE:
        torch = told_version(context, "torch")
        kind = PLUGIN if release(torch) == release(plugin) else MISMATCHED
        return kind, str(context.facts["torch_npu"].source)
    if exists(context.host, inside):
        return BUILT_IN, inside
    torch = told_version(context, "torch")
    if "+ascend" in torch and _numbers(torch) < PLUGIN_SINCE:  # the vendor's wheels of that line are called so
        return BUILT_IN, str(context.facts["torch"].source)
    return PLAIN, place


def npu_torch(context: Context) -> str:
    """The directory of a torch that can reach the NPU; NotApplicable for a plain one."""
    kind, source = flavour_of(context)
    if kind == PLAIN:
        version = told_version(context, "torch")
        raise NotApplicable(
            Message("torch {version} has no NPU support: torch_npu is {NONE} (PY004)", version=version, NONE=NONE),
            source,
        )
    return torch_place(context)


@probe("torch.flavour", formerly="torch_stack.flavour")
def flavour(context: Context) -> Iterable[Reading]:
    """Whether torch reaches the NPU by its own torch.npu (1.5.0) or by the torch_npu of the same release."""
    kind, source = flavour_of(context)
    torch, plugin = told_version(context, "torch"), told_version(context, "torch_npu")
    if kind == PLAIN:
        if told_version(context, "ascend") == "false":
            raise NotApplicable(
                Message("ascend is false: a plain torch {torch} is right here", torch=torch),
                context.facts["ascend"].source,
            )
        words = Message("torch {torch} without torch_npu", torch=torch)
    elif kind == BUILT_IN:
        words = Message("torch {torch} with a built-in torch.npu", torch=torch)
    else:
        words = Message("torch {torch} with torch_npu {plugin}", torch=torch, plugin=plugin)
    wanted = Message("torch_npu of torch's own release (1.8.1 and newer), or torch 1.5.0 with torch.npu inside")
    facts = f"torch {torch} ({context.facts['torch'].source}); torch_npu {plugin} ({context.facts['torch_npu'].source})"
    yield Reading("torch", kind, Evidence(source, facts), words, wanted)


@probe("torch.shadow", formerly="torch_stack.shadow")
def shadow(context: Context) -> Iterable[Reading]:
    """Per directory that is searched before the site directories: a torch in it that is not the installed one."""
    told = context.target.environment
    variables = told.variables or {}
    folders = {context.host.cwd: None, **dict.fromkeys(job_folders(context))}
    entries = environment(context).entries if variables.get("PYTHONPATH") else ()
    sites = set(environment(context).python.sites)
    for entry in entries:
        if entry in sites:
            break
        folders[entry] = None
    for folder in folders:
        if folder not in sites:
            yield _shadow(context, folder)
    if told.variables is None:
        reason = told.reason or Message("the job's environment was not read")
        yield Reading("PYTHONPATH", None, Evidence(told.source), reason=reason)


def job_folders(context: Context) -> Iterable[str]:
    """The directory of the job's script and its working directory, where a script or a process was named."""
    options = context.target.options
    if options.script and options.script.endswith(".py"):
        path = options.script if options.script.startswith("/") else f"{context.host.cwd}/{options.script}"
        yield path.rpartition("/")[0] or "/"
    if options.pid is None:
        return
    try:
        cwd = context.host.readlink(f"/proc/{options.pid}/cwd")
    except HostError:
        return  # another user's process; its own directory may not be read
    yield cwd
    try:
        argv = context.host.read_bytes(f"/proc/{options.pid}/cmdline").decode("utf-8", "replace").split("\0")
    except HostError:
        return
    script = next((word for word in argv[1:] if word.endswith(".py")), None)
    if script:
        yield (script if script.startswith("/") else f"{cwd}/{script}").rpartition("/")[0]


def _shadow(context: Context, folder: str) -> Reading:
    """A source tree has torch/__init__.py and no torch/_C*.so (porting guide 003:3256-3266)."""
    place = f"{folder.rstrip('/')}/torch"
    found, words = "", Message("no torch here")
    if is_dir(context.host, place) and exists(context.host, place + "/__init__.py"):
        names = context.host.listdir(place)
        if any(re.match(r"_C\b.*\.(so|pyd)$", name) for name in names):
            words = Message("{place}, a built one", place=place)
        else:
            found, words = place, Message("{place} has no _C library", place=place)
    elif exists(context.host, place + ".py"):
        found, words = place + ".py", Message("{place}.py hides torch", place=place)
    return Reading(folder, found, Evidence(found or place, words.en), words, Message("no other torch"))


@probe("torch.apex", formerly="torch_stack.apex")
def apex(context: Context) -> Iterable[Reading]:
    """Whether apex is the one adapted to the NPU: it has the NpuFused optimisers."""
    place = npu_torch(context)
    wanted = Message("apex with NpuFusedSGD")
    apex_place = locate(context, "apex")
    if apex_place is None:
        own = _native_amp(context, place)
        if own is not None:
            raise NotApplicable(
                Message("apex is {NONE} and torch has its own mixed precision: {own}", NONE=NONE, own=own),
                own,
            )
        if _numbers(told_version(context, "torch")) > APEX_UNTIL:
            version = told_version(context, "torch")
            raise NotApplicable(
                Message("torch is {version}; apex is needed up to 1.8.1", version=version),
                context.facts["torch"].source,
            )
        words = Message("no apex, and torch has no mixed precision of its own")
        yield Reading("apex", False, Evidence(", ".join(environment(context).entries)), words, wanted)
        return
    names, path = fused_names(context, "apex")
    adapted = "NpuFusedSGD" in names or exists(context.host, f"{apex_place}/optimizers/npu_fused_sgd.py")
    words = (
        Message("adapted to the NPU")
        if adapted
        else Message("{apex_place} has no NpuFused optimiser: not the NPU build", apex_place=apex_place)
    )
    yield Reading("apex", adapted, Evidence(path or apex_place, ", ".join(names)), words, wanted)


def _native_amp(context: Context, torch: str) -> Optional[str]:
    """torch.npu.amp of the plugin or of torch itself."""
    plugin = locate(context, "torch_npu")
    for place in ([f"{plugin}/npu/amp"] if plugin else []) + [f"{torch}/npu/amp"]:
        if exists(context.host, f"{place}/__init__.py"):
            return place
    return None


def fused_names(context: Context, package: str) -> tuple[tuple[str, ...], str]:
    """(the NpuFused classes that a package's optimiser module names, that module)."""
    place = locate(context, package)
    if place is None:
        return (), ""
    path = f"{place}/{'optimizers' if package == 'apex' else 'optim'}/__init__.py"
    try:
        text = context.host.read(path)
    except Missing:
        return (), ""
    code = re.sub(r"#.*", "", text)
    return tuple(dict.fromkeys(re.findall(r"\bNpuFused\w+", code))), path


@probe("torch.fused_optimisers", formerly="torch_stack.fused_optimisers")
def fused_optimisers(context: Context) -> Iterable[Reading]:
    """The NPU fused optimisers of apex and torch_npu together."""
    place = npu_torch(context)
    found = {package: fused_names(context, package) for package in ("apex", "torch_npu")}
    names = sorted({name for classes, _ in found.values() for name in classes})
    plugin = locate(context, "torch_npu")
    if not names and plugin is not None and not exists(context.host, f"{plugin}/optim"):
        raise incomplete(f"{plugin}/optim")
    listed = "; ".join(f"{package}: {', '.join(classes)}" for package, (classes, _) in found.items() if classes)
    paths = [path for _, path in found.values() if path] or [place]
    shown = Literal(listed) if listed else Message("none")
    yield Reading("optimisers", names, Evidence(paths[0], "\n".join([*paths, listed])), shown)


def incomplete(path: str) -> Undetermined:
    """Every torch_npu has this directory: where it is missing, the installation or the recording is not whole."""
    return Undetermined(
        Message("torch_npu is installed, but {path} is not there: an incomplete installation or recording", path=path),
        path,
    )


@probe("torch.amp_parameters", formerly="torch_stack.amp_parameters")
def amp_parameters(context: Context, *, names: Iterable[str]) -> Iterable[Reading]:
    """Per name whether apex.amp.initialize takes a parameter called so."""
    npu_torch(context)
    place = locate(context, "apex")
    if place is None:
        raise absent(context, "apex")
    path = f"{place}/amp/frontend.py"
    parameters = function_parameters(context.host.read(path), "initialize", path)
    for name in names:
        words = Message("a parameter") if name in parameters else Message("no such parameter")
        evidence = Evidence(path, "initialize(" + ", ".join(parameters) + ")")
        yield Reading(name, name in parameters, evidence, words, Message("a parameter"))


def function_parameters(text: str, function: str, path: str) -> tuple[str, ...]:
    """The parameter names of a module-level function; Undetermined when the module has none of that name."""
    for node in parsed(text, path).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return tuple(a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
    raise Undetermined(Message("{path} defines no {function}()", path=path, function=function), path)


def parsed(text: str, path: str) -> ast.Module:
    """The syntax tree; Undetermined when the text is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = Message("{path} is not a Python source: {error}", path=path, error=error)
        raise Undetermined(reason, path) from None
