#!/usr/bin/env python3
"""Compares `tutti train tabular` with its defaults and scikit-learn on the tables that scikit-learn bundles, by 5-fold
cross validation. Prints a Markdown table.

usage: scripts/tables-against-sklearn.py TUTTI [FOLDS]   (needs scikit-learn and pandas; no network)
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler


def passengers(count=891):
    """A table like the Titanic's: survival depends on sex, class and age; an index, names, and ages that are missing."""
    draw = np.random.default_rng(0)
    sex, pclass = draw.choice(["male", "female"], count, p=[0.65, 0.35]), draw.choice([1, 2, 3], count, p=[0.24, 0.21, 0.55])
    age = np.clip(draw.normal(30, 14, count), 1, 80)
    score = 3.4 * (sex == "female") - 1.2 * (pclass - 2) - 0.03 * (age - 30) - 1.3
    frame = pd.DataFrame({"name": [f"passenger {i}" for i in range(count)], "sex": sex, "class": pclass,
                          "age": np.where(draw.random(count) < 0.2, np.nan, age.round(1)),
                          "fare": np.round(draw.gamma(2, 40 / pclass), 2), "port": draw.choice(list("SCQ"), count),
                          "survived": np.where(draw.random(count) < 1 / (1 + np.exp(-score)), "yes", "no")})
    return frame


def tables():
    """Name, frame with the target last, whether the target is real, and whether the file gets pandas' index."""
    for name in ("iris", "wine", "breast_cancer"):
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        frame = bunch.frame.copy()
        frame["target"] = [str(bunch.target_names[t]) for t in bunch.target]
        yield name, frame, False, False
    digits = datasets.load_digits(as_frame=True).frame
    yield "digits", digits, False, False
    yield "diabetes", datasets.load_diabetes(as_frame=True).frame, True, False
    yield "passengers", passengers(), False, True
    x, y = datasets.make_friedman1(2000, noise=1, random_state=0)
    prices = pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])
    prices["price"] = (1000 * y).round()
    yield "friedman", prices, True, False


def sklearn_scores(train, test, real):
    """The score of a linear model and of gradient boosting."""
    x, y = train.iloc[:, :-1].drop(columns="name", errors="ignore"), train.iloc[:, -1]
    tx, ty = test.iloc[:, :-1].drop(columns="name", errors="ignore"), test.iloc[:, -1]
    texts = make_column_selector(dtype_exclude="number")
    scaled = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts),
                                     remainder=make_pipeline(SimpleImputer(), StandardScaler()))
    codes = make_column_transformer((OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts),
                                    remainder="passthrough")
    linear = RidgeCV(np.logspace(-3, 3, 13)) if real else LogisticRegression(max_iter=2000)
    trees = HistGradientBoostingRegressor() if real else HistGradientBoostingClassifier()
    return [make_pipeline(t, m).fit(x, y).score(tx, ty) for t, m in ((scaled, linear), (codes, trees))]


def tutti_score(binary, folder, train, test, real, index):
    for name, part in (("train", train), ("test", test)):
        part.to_csv(folder / f"{name}.csv", index=index)
    spec = f"csv:{folder}/train.csv:{train.columns[-1]}" + (":real" if real else ":class")
    start = time.monotonic()
    done = subprocess.run([binary, "train", "tabular", "--data", spec, "--test-data", f"csv:{folder}/test.csv", "--json", "--quiet"],
                          capture_output=True, text=True, check=True)
    metrics = json.loads(done.stdout)["metrics"]
    return metrics["r2" if real else "accuracy"], time.monotonic() - start


def main():
    binary, folds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("| table | rows | score | linear | gradient boosting | tutti | longest run |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, frame, real, index in tables():
            scores, longest = [], 0
            for rows, tests in KFold(folds, shuffle=True, random_state=0).split(frame):
                train, test = frame.iloc[rows], frame.iloc[tests]
                ours, seconds = tutti_score(binary, pathlib.Path(folder), train, test, real, index)
                scores.append([*sklearn_scores(train, test, real), ours])
                longest = max(longest, seconds)
            means = " | ".join(f"{s:.3f}" for s in np.mean(scores, axis=0))
            print(f"| {name} | {len(frame)} | {'R²' if real else 'accuracy'} | {means} | {longest:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
