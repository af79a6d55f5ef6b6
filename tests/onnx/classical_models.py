#!/usr/bin/env python3
"""Models of the domain ai.onnx.ml, as scikit-learn's and XGBoost's exporters write them, as onnxruntime computes them.

usage: classical_models.py JUDGE [--device NAME]…     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import sys

from runtime import TensorProto, helper, judge, model_of, np

draw = np.random.default_rng(0)
INT64 = TensorProto.INT64


def floats(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def case(op, x, outputs, **attributes):
    names = [o[0] if isinstance(o, tuple) else o or "unread" for o in outputs]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)
    outputs = [o for o in outputs if o]
    return op, model_of([node], {"x": x}, outputs, 15, {}, [("ai.onnx.ml", 3)]), {"x": x}


def trees(count, depth, features, mode):
    """Complete trees cut at random, by the attributes nodes_…; and the leaves as (tree, node)."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}
    leaves = []
    for tree in range(count):
        level = {0: 0}
        free = 1
        while level:
            later = {}
            for node, height in level.items():
                leaf = height == depth or (height > 1 and draw.random() < 0.3)
                yes, no = (0, 0) if leaf else (free, free + 1)
                if not leaf:
                    later.update({yes: height + 1, no: height + 1})
                    free += 2
                else:
                    leaves.append((tree, node))
                for key, value in zip(nodes, (tree, node, 0 if leaf else int(draw.integers(features)),
                                              0.0 if leaf else float(np.float32(draw.standard_normal())),
                                              "LEAF" if leaf else mode, yes, no, 0 if leaf else int(draw.integers(2)))):
                    nodes[key].append(value)
            level = later
    return {f"nodes_{k}": v for k, v in nodes.items()}, leaves


def weights(of, leaves, ids, positive=False):
    """Every leaf has a weight for each id."""
    rows = [(t, n, i, abs(float(w)) * 0.1 if positive else float(w)) for t, n in leaves for i, w in zip(ids, floats(len(ids)))]
    return {f"{of}_treeids": [r[0] for r in rows], f"{of}_nodeids": [r[1] for r in rows], f"{of}_ids": [r[2] for r in rows],
            f"{of}_weights": [r[3] for r in rows]}


def cases():
    x = floats(7, 5)
    yield case("Scaler", x, ["y"], offset=[0.5, -1.0, 0.0, 2.0, 1.0], scale=[1.0, 2.0, 0.5, 3.0, -1.0])
    yield case("Scaler", x, ["y"], offset=[0.5], scale=[2.0])
    for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield case("LinearClassifier", x, [("l", INT64), "p"], coefficients=floats(15).tolist(), intercepts=floats(3).tolist(),
                   classlabels_ints=[4, 7, 9], multi_class=1, post_transform=post)
        yield case("LinearClassifier", x, [("l", INT64), "p"], coefficients=floats(10).tolist(), intercepts=floats(2).tolist(),
                   classlabels_ints=[4, 7], post_transform=post)
        yield case("LinearRegressor", x, ["y"], coefficients=floats(10).tolist(), intercepts=floats(2).tolist(), targets=2, post_transform=post)
    for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield case("LinearClassifier", x, [("l", INT64), "p"], coefficients=floats(5).tolist(), intercepts=[0.25], classlabels_ints=[0, 1],
                   post_transform=post)
    holes = np.where(draw.random(x.shape) < 0.2, np.float32("nan"), x).astype(np.float32)
    for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
        for data in (x, holes):
            nodes, leaves = trees(6, 4, 5, mode)
            for targets in (1, 3):
                yield case("TreeEnsembleRegressor", data, ["y"], n_targets=targets, **nodes, **weights("target", leaves, range(targets)))
    for aggregate in ("SUM", "AVERAGE", "MAX", "MIN"):
        nodes, leaves = trees(6, 3, 5, "BRANCH_LEQ")
        yield case("TreeEnsembleRegressor", x, ["y"], n_targets=1, aggregate_function=aggregate, **nodes, **weights("target", leaves, [0]))
    nodes, leaves = trees(6, 3, 5, "BRANCH_LEQ")
    yield case("TreeEnsembleRegressor", x, ["y"], n_targets=2, base_values=[0.5, -2.0], **nodes, **weights("target", leaves, [0, 1]))
    for post in ("NONE", "SOFTMAX", "LOGISTIC"):
        for positive in (False, True):
            nodes, leaves = trees(6, 4, 5, "BRANCH_LEQ")
            yield case("TreeEnsembleClassifier", x, [("l", INT64), "p"], classlabels_int64s=[3, 5, 8], post_transform=post, **nodes,
                       **weights("class", leaves, range(3), positive))
            # onnxruntime's label of two classes is not the spec's: 0 or 1, whatever the labels, by the second score.
            yield case("TreeEnsembleClassifier", x, ["", "p"], classlabels_int64s=[3, 5], post_transform=post, **nodes,
                       **weights("class", leaves, range(2), positive))
            if post == "SOFTMAX":
                continue
            for one in (0, 1):
                yield case("TreeEnsembleClassifier", x, [("l", INT64), "p"], classlabels_int64s=[0, 1], post_transform=post, **nodes,
                           **weights("class", leaves, [one], positive))
            yield case("TreeEnsembleClassifier", x, [("l", INT64), "p"], classlabels_int64s=[0, 1], post_transform=post, base_values=[0.3],
                       **nodes, **weights("class", leaves, [0], positive))


if __name__ == "__main__":
    sys.exit(judge([sys.argv[1], "--strict", *sys.argv[2:]], list(cases())))
