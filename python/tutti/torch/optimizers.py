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


KNOWN = {"SGD": _sgd, "Adam": _adam("Adam"), "AdamW": _adam("Adamw"), "NAdam": _nadam, "RAdam": _adam("Radam"),
         "Adamax": _adam("Adamax"), "RMSprop": _rmsprop, "Adagrad": _adagrad, "Adadelta": _adadelta}


def converted(optimizer, names):
    """The optimizer, parameter groups, and the first group, whose rate the others' are relative to. `names`: of parameters,
    by id."""
    kind = type(optimizer).__name__
    if kind not in KNOWN:
        raise InvalidError(f"the optimizer {kind} is not known", "use one of torch.optim's " + ", ".join(KNOWN) + ", or of tutti.optim")
    first = optimizer.param_groups[0]
    if not first["lr"]:
        raise InvalidError("the optimizer's learning rate is 0", "freeze parameters by requires_grad=False")
    name, hyperparameters = KNOWN[kind](first)
    decays = {float(g["weight_decay"]) for g in optimizer.param_groups} - {0.0}
    if len(decays) > 1:
        raise InvalidError(f"groups with the weight decays {', '.join(map(str, sorted(decays)))}", "use one, or 0")
    hyperparameters |= {"lr": float(first["lr"]), "weight_decay": decays.pop() if decays else 0.0}
    groups, covered = [], set()
    for g in optimizer.param_groups:
        if KNOWN[kind](g) != (name, {k: v for k, v in hyperparameters.items() if k not in ("lr", "weight_decay")}):
            raise InvalidError("groups that differ in more than lr and weight_decay", "use one optimizer per kind of group")
        for p in g["params"]:
            if id(p) not in names:
                raise InvalidError("the optimizer has a parameter that is none of the module's", "make it of module.parameters()")
            covered.add(names[id(p)])
            groups.append(ParameterGroup(names[id(p)], decay=bool(g["weight_decay"]), lr_scale=float(g["lr"]) / float(first["lr"])))
    groups += [ParameterGroup(n, frozen=True) for n in set(names.values()) - covered]
    return optimizers[name](**hyperparameters), groups, first
