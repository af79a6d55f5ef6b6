"""torch.optim objects as optimizers of ours, with their parameter groups."""
from tutti.errors import InvalidError
from tutti.trainer import ParameterGroup, optimizers


def _betas(group):
    return {"beta1": group["betas"][0], "beta2": group["betas"][1]}


def _refuse(group, *names):
    for name in names:
        if group.get(name):
            raise InvalidError(f"the optimizer's {name}={group[name]} is not supported", f"leave {name} out")


def _sgd(g):
    _refuse(g, "dampening", "maximize")
    return "SGD", {"momentum": g["momentum"], "nesterov": float(g["nesterov"])}


def _adam(name):
    def convert(g):
        _refuse(g, "amsgrad", "maximize", "decoupled_weight_decay" if name == "Adam" else "_")
        return name, {**_betas(g), "epsilon": g["eps"]}
    return convert


def _rmsprop(g):
    _refuse(g, "maximize")
    return "Rmsprop", {"alpha": g["alpha"], "epsilon": g["eps"], "momentum": g["momentum"], "centered": float(g["centered"])}


def _adagrad(g):
    _refuse(g, "maximize", "initial_accumulator_value")
    return "Adagrad", {"lr_decay": g["lr_decay"], "epsilon": g["eps"]}


def _adadelta(g):
    _refuse(g, "maximize")
    return "Adadelta", {"rho": g["rho"], "epsilon": g["eps"]}


def _nadam(g):
    _refuse(g, "maximize", "decoupled_weight_decay")
    return "Nadam", {**_betas(g), "epsilon": g["eps"], "momentum_decay": g["momentum_decay"]}


def base_rate(group):
    """The rate that a group's schedule goes from: a scheduler that begins with a warmup may have set the rate itself to 0."""
    return float(group["lr"]) or float(group.get("initial_lr", 0))


def hyperparameters(optimizer, group):
    """What an optimizer of ours is made of, but for rate and weight decay."""
    return KNOWN[type(optimizer).__name__](group)


def settings(optimizer):
    """Per group what may not change between steps: all but the rate."""
    return [hyperparameters(optimizer, g)[1] | {"weight_decay": float(g.get("weight_decay", 0))} for g in optimizer.param_groups]


KNOWN = {"SGD": _sgd, "Adam": _adam("Adam"), "AdamW": _adam("Adamw"), "NAdam": _nadam, "RAdam": _adam("Radam"),
         "Adamax": _adam("Adamax"), "RMSprop": _rmsprop, "Adagrad": _adagrad, "Adadelta": _adadelta}


def converted(optimizer, names):
    """The optimizer, parameter groups, and the first group, whose rate the others' are relative to. `names`: of parameters,
    by id."""
    kind = type(optimizer).__name__
    if kind not in KNOWN:
        raise InvalidError(f"the optimizer {kind} is not known", "use one of torch.optim's " + ", ".join(KNOWN) + ", or of tutti.optim")
    first = optimizer.param_groups[0]
    if not base_rate(first):
        raise InvalidError("the optimizer's learning rate is 0", "freeze parameters by requires_grad=False")
    name, hyperparameters = KNOWN[kind](first)
    decays = {float(g["weight_decay"]) for g in optimizer.param_groups} - {0.0}
    if len(decays) > 1:
        raise InvalidError(f"groups with the weight decays {', '.join(map(str, sorted(decays)))}", "use one, or 0")
    hyperparameters |= {"lr": base_rate(first), "weight_decay": decays.pop() if decays else 0.0}
    groups, covered = [], set()
    for g in optimizer.param_groups:
        if KNOWN[kind](g) != (name, {k: v for k, v in hyperparameters.items() if k not in ("lr", "weight_decay")}):
            raise InvalidError("groups that differ in more than lr and weight_decay", "use one optimizer per kind of group")
        for p in g["params"]:
            if id(p) not in names:
                raise InvalidError("the optimizer has a parameter that is none of the module's", "make it of module.parameters()")
            covered.add(names[id(p)])
            decay = bool(g["weight_decay"]) if hyperparameters["weight_decay"] else None  # refused where nothing decays
            groups.append(ParameterGroup(names[id(p)], decay=decay, lr_scale=base_rate(g) / base_rate(first)))
    groups += [ParameterGroup(n, frozen=True) for n in set(names.values()) - covered]
    return optimizers[name](**hyperparameters), groups, first
