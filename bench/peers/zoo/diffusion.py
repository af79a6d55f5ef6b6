"""DDPM: the layers and names of diffusers' UNet2DModel."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from zoo import wide

BATCH = 4
CLASSES = {"time": 1000}
SIZES = {"tiny": (8, (4, 4), 2), "default": (32, (32, 64, 128), 8)}  # side, channels, groups


def embed_times(time, width, dtype):
    half = width // 2
    frequencies = torch.exp(-math.log(10000) * torch.arange(half, device=time.device, dtype=dtype) / (half - 1))
    angle = time[:, None].to(dtype) * frequencies
    return torch.cat([angle.sin(), angle.cos()], 1)


class Resnet(nn.Module):
    def __init__(self, inputs, channels, groups, time):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, inputs)
        self.conv1 = nn.Conv2d(inputs, channels, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, channels)
        self.norm2 = nn.GroupNorm(groups, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(inputs, channels, 1) if inputs != channels else None

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(time))[:, :, None, None]
        y = self.conv2(F.silu(self.norm2(y)))
        return y + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class Attention(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.group_norm = nn.GroupNorm(groups, channels)
        self.to_q, self.to_k, self.to_v = (nn.Linear(channels, channels, bias=name != "k") for name in "qkv")
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x):
        y = self.group_norm(x).flatten(2).transpose(1, 2)[:, None]
        y = F.scaled_dot_product_attention(self.to_q(y), self.to_k(y), self.to_v(y))[:, 0]
        return x + self.to_out[0](y).transpose(1, 2).reshape(x.shape)


class Conv(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride, 1)


class Diffusion(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.channels, time = channels, 4 * channels[0]
        self.time_embedding = nn.ModuleDict({"linear_1": nn.Linear(channels[0], time), "linear_2": nn.Linear(time, time)})
        self.conv_in = nn.Conv2d(1, channels[0], 3, padding=1)
        self.down_blocks, self.up_blocks, skips, last = nn.ModuleList(), nn.ModuleList(), [channels[0]], len(channels) - 1
        for i, c in enumerate(channels):
            block = nn.ModuleDict({"resnets": nn.ModuleList([Resnet(skips[-1], c, groups, time)])})
            skips.append(c)
            if i < last:
                block["downsamplers"] = nn.ModuleList([Conv(c, 2)])
                skips.append(c)
            self.down_blocks.append(block)
        self.mid_block = nn.ModuleDict({
            "resnets": nn.ModuleList([Resnet(c, c, groups, time) for _ in range(2)]),
            "attentions": nn.ModuleList([Attention(c, groups)])})
        x = c
        for i, c in enumerate(reversed(channels)):
            block = nn.ModuleDict({"resnets": nn.ModuleList([Resnet(x + skips.pop(), c, groups, time),
                                                             Resnet(c + skips.pop(), c, groups, time)])})
            if i < last:
                block["upsamplers"] = nn.ModuleList([Conv(c, 1)])
            self.up_blocks.append(block)
            x = c
        self.conv_norm_out = nn.GroupNorm(groups, x)
        self.conv_out = nn.Conv2d(x, 1, 3, padding=1)

    def forward(self, x, time):
        t = self.time_embedding
        time = t["linear_2"](F.silu(t["linear_1"](embed_times(time, self.channels[0], x.dtype))))
        x = self.conv_in(x)
        skips = [x]
        for block in self.down_blocks:
            x = block["resnets"][0](x, time)
            skips.append(x)
            if "downsamplers" in block:
                x = block["downsamplers"][0].conv(x)
                skips.append(x)
        mid = self.mid_block
        x = mid["resnets"][1](mid["attentions"][0](mid["resnets"][0](x, time)), time)
        for block in self.up_blocks:
            for resnet in block["resnets"]:
                x = resnet(torch.cat([x, skips.pop()], 1), time)
            if "upsamplers" in block:
                x = block["upsamplers"][0].conv(F.interpolate(x, scale_factor=2.0))
        return self.conv_out(F.silu(self.conv_norm_out(x)))


def make(size):
    return Diffusion(*SIZES[size][1:])


def draw(size, count, context=0):
    side = SIZES[size][0]
    return {"input": torch.rand(count, 1, side, side), "noise": torch.randn(count, 1, side, side),
            "time": torch.randint(0, 1000, (count,), dtype=torch.int32)}


def loss(model, batch):
    x, noise, time = batch["input"], batch["noise"], batch["time"]
    shares = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=x.device, dtype=x.dtype), 0)[time.long()]
    shares = shares[:, None, None, None]
    return F.mse_loss(wide(model((2 * x - 1) * shares.sqrt() + noise * (1 - shares).sqrt(), time)), noise)
