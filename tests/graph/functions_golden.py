#!/usr/bin/env python3
"""Prints the numbers of functions_test.cpp's transposed convolutions, as PyTorch has them in float64."""
import torch

x = torch.arange(1 * 4 * 3 * 2, dtype=torch.float64).reshape(1, 4, 3, 2)
w = torch.arange(4 * 2 * 2 * 3, dtype=torch.float64).reshape(4, 2, 2, 3) - 5
for options in ({}, {"stride": (2, 3), "padding": (1, 0)}, {"stride": (2, 2), "padding": (1, 1), "output_padding": (1, 0), "groups": 2},
                {"stride": (3, 1), "dilation": (2, 3), "padding": (2, 1), "output_padding": (2, 0)}):
    y = torch.nn.functional.conv_transpose2d(x, w, **options)
    digest = sum(v * (i + 1) for i, v in enumerate(y.flatten().tolist()))
    print(options, list(y.shape), digest)
