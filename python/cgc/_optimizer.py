"""Options of `cgc compile` for an optimizer: from torch.optim objects, groups and limits."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    import torch

#: What the optimizers of torch are called, and their hyperparameters that are numbers.
_NUMBERS = {"SGD": ("momentum", "dampening", "weight_decay"), "Adam": ("eps", "weight_decay"), "AdamW": ("eps", "weight_decay")}
#: How torch computes an update, which changes no result.
_WAYS = ("foreach", "fused", "capturable", "differentiable")


def options_of(optimizer: torch.optim.Optimizer, model: torch.nn.Module, names: Sequence[str], has_schedule: bool) -> list[str]:
    """--optimizer and --groups for a torch.optim.SGD, Adam or AdamW over the parameters of the model, of which the program
    reads those with these names. UsageError, which names the argument, for what cgc does not have."""
    rule = next((rule for rule in ("AdamW", "Adam", "SGD") if type(optimizer).__name__ == rule), None)
    if rule is None or not type(optimizer).__module__.startswith("torch.optim."):
        raise UsageError(f"the optimizer is {type(optimizer).__name__}; give a torch.optim.SGD, Adam or AdamW, or text, such as "
                         "'adamw,lr=5e-4'")
    if optimizer.state:
        raise UsageError("the optimizer has made steps; give a new one: its moments are not taken over")
    groups = [_settings(group, rule, has_schedule) for group in optimizer.param_groups]
    _check_parameters(optimizer, model)
    base = max(groups, key=lambda group: group["lr"])
    for group, settings in zip(optimizer.param_groups, groups):
        for name, value in settings.items():
            if name not in ("lr", "weight_decay") and value != base[name]:
                raise UsageError(f"the groups of the optimizer have {name}={value} and {name}={base[name]}; they may differ in "
                                 "lr and weight_decay")
    text = ",".join([rule.lower(), *(f"{name}={_number(value)}" for name, value in base.items())])
    others = []
    for group, settings in zip(optimizer.param_groups, groups):
        different = {name: value for name, value in settings.items() if value != base[name]}
        if lr := different.pop("lr", None):
            different["lr_scale"] = lr / base["lr"]
        elif lr == 0:
            different["lr_scale"] = 0.0
        if different and (globs := _globs(group["params"], model, names)):
            others.append(":".join([globs, *(f"{name}={_number(value)}" for name, value in different.items())]))
    return ["--optimizer", text, *(["--groups", ";".join(others)] if others else [])]


def groups_text(groups: Mapping[str, Mapping[str, float]]) -> str:
    """The text of --groups for {"GLOB|GLOB": {"weight_decay": 0, "lr_scale": 0.1}}."""
    return ";".join(":".join([globs, *(f"{name}={_number(value)}" for name, value in settings.items())])
                    for globs, settings in groups.items())


def clamp_text(clamp: Mapping[str, Sequence[float]]) -> str:
    """The text of --clamp for {"PATH": (MIN, MAX)}."""
    for path, limits in clamp.items():
        if not isinstance(limits, Sequence) or len(limits) != 2:
            raise UsageError(f"the limits of '{path}' are {limits!r}; give a minimum and a maximum")
    return ";".join(f"{path}={_number(low)}:{_number(high)}" for path, (low, high) in clamp.items())


def _number(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(float(value))


def _settings(group: Mapping[str, Any], rule: str, has_schedule: bool) -> dict[str, Any]:
    """The hyperparameters of a group by the names of --optimizer."""
    for name, value in group.items():
        known = (*_NUMBERS[rule], *_WAYS, "params", "lr", "nesterov", "betas", "initial_lr", "decoupled_weight_decay")
        is_default = value in (None, False) or name == "param_names"
        if name not in known and not is_default:
            raise UsageError(f"the optimizer has {name}={value!r}, which cgc does not have; leave it out")
    if rule == "Adam" and group.get("decoupled_weight_decay"):
        raise UsageError("the optimizer has decoupled_weight_decay=True; give a torch.optim.AdamW")
    if "initial_lr" in group and not has_schedule:
        raise UsageError("an LR scheduler of torch is attached to the optimizer; give its function of the step as schedule=")
    settings = {"lr": float(group.get("initial_lr", group["lr"]))}
    settings.update((name, float(group[name])) for name in _NUMBERS[rule])
    if rule == "SGD":
        settings["nesterov"] = bool(group["nesterov"])
    else:
        settings["beta1"], settings["beta2"] = map(float, group["betas"])
    return settings


def _check_parameters(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> None:
    given = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    own = {id(parameter): name for name, parameter in model.named_parameters()}
    if given - own.keys():
        raise UsageError("the optimizer has parameters that the module does not have; make it of module.parameters()")
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in given:
            raise UsageError(f"parameter '{name}' requires a gradient and is not in the optimizer; add it, or call "
                             "requires_grad_(False) on it")


def _globs(parameters: Sequence[torch.nn.Parameter], model: torch.nn.Module, names: Sequence[str]) -> str:
    """The names of those of the parameters that are trained, or @vectors if they are exactly those of fewer than two
    dimensions."""
    chosen = {id(parameter) for parameter in parameters}
    trained = {}  # By the first of their names.
    for name in names:
        parameter = model.get_parameter(name)
        if parameter.requires_grad and all(parameter is not other for other in trained.values()):
            trained[name] = parameter
    globs = [name for name, parameter in trained.items() if id(parameter) in chosen]
    if globs == [name for name, parameter in trained.items() if parameter.dim() < 2]:
        return "@vectors" if globs else ""
    for name in globs:
        if set(name) & set("*?[]|:;,={}"):
            raise UsageError(f"the name of parameter '{name}' has a character that groups use; rename it, or give the optimizer "
                             "as text with groups")
    return "|".join(globs)
