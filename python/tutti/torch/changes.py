"""Changes in place that PyTorch's autograd does not see: within no_grad(), or by way of detach(). The value is another then, and the
gradient passes as if it were not."""
import collections

import torch

from tutti.torch.importer import cuts

_ALIASES = ("reshape", "contiguous", "flatten", "to", "type_as", "view_as", "expand_as", "chunk", "split", "unflatten", "narrow", "movedim")


def _schema(node):
    return getattr(node.target, "_schema", None) if node.op == "call_function" else None


def _written(node):
    """The arguments that a call changes in place."""
    schema = _schema(node)
    found = [x for a, x in zip(schema.arguments, node.args) if a.alias_info is not None and a.alias_info.is_write] if schema else []
    return [x for x in found if isinstance(x, torch.fx.Node)]


def _base(node):
    """(the tensor whose memory it has, whether a detach() is on the way)."""
    detached = False
    while node.op == "call_function":
        schema = _schema(node)
        shares = schema is None or any(r.alias_info is not None for r in schema.returns) or schema.name.split("::")[-1] in _ALIASES
        if not shares or not node.args or not isinstance(node.args[0], torch.fx.Node) or (schema is None and "getitem" not in str(node.target)):
            break
        detached |= schema is not None and schema.name.endswith("::detach")
        node = node.args[0]
    return node, detached


class _Graph:
    """One graph of a program, with what was written to each of its tensors. `parameters`: names of placeholders."""

    def __init__(self, graph, parameters):
        self.parameters, self.sources = parameters, collections.defaultdict(list)
        for node in graph.nodes:
            for x in _written(node):
                self.sources[_base(x)[0]] += node.all_input_nodes

    def differentiable(self, node):
        """Whether a parameter has a gradient by it."""
        todo, seen = [node], set()
        while todo:
            node = todo.pop()
            if node in seen or cuts(node):
                continue
            seen.add(node)
            if node.op == "placeholder" and (self.parameters is None or node.name in self.parameters):
                return True
            todo += [*node.all_input_nodes, *self.sources[_base(node)[0]]]
        return False


def unseen(program):
    """A node that changes what has a gradient where autograd does not see it, or None."""
    parameters = set(program.graph_signature.inputs_to_parameters)
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        graph = _Graph(module.graph, parameters if module is program.graph_module else None)
        for node in module.graph.nodes:
            changed = []
            if node.target is torch.ops.aten.detach_.default and graph.differentiable(node.args[0]):
                return node
            if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and not node.args[0]:
                inner = getattr(module, node.args[1].target).graph
                given = dict(zip((n for n in inner.nodes if n.op == "placeholder"), node.args[2:]))
                changed = [given[b] for n in inner.nodes for b in (_base(x)[0] for x in _written(n)) if b in given]
            else:
                changed = [b for b, detached in map(_base, _written(node)) if detached]
            if any(_base(x)[0].op != "placeholder" and graph.differentiable(x) for x in changed):
                return node
    return None
