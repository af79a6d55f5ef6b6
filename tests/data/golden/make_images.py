#!/usr/bin/env python3
"""Small PNG and JPEG files by Pillow, and the pixels that Pillow reads from them as safetensors.

usage: make_images.py FOLDER, with `pip install pillow numpy safetensors`; FOLDER gets a file per kind of pixels, all of 7x11
(height x width), and pixels.safetensors with u8 [1 or 3, 7, 11] by the file's name; those of turned/ have an EXIF orientation, and
turned.safetensors holds what ImageOps.exif_transpose makes of them.
"""
import pathlib
import sys

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import save_file

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(1)
y, x = np.mgrid[0:7, 0:11]
rgb = np.stack([20 * x + 3, 30 * y + 5, 9 * x + 12 * y], -1).astype("u1")  # smooth, as JPEG likes it
noise = random.integers(0, 256, (7, 11, 4), "u1")
grey16 = random.integers(0, 2**16, (7, 11)).astype("u2")

Image.fromarray(rgb).save(folder / "rgb.png")
Image.fromarray(noise[..., 0]).save(folder / "grey.png")
Image.fromarray(noise[..., 0]).convert("1", dither=Image.Dither.NONE).save(folder / "bits.png")
Image.fromarray(noise[..., :3]).quantize(13).save(folder / "palette.png")
Image.fromarray(noise).save(folder / "rgba.png")
Image.fromarray(noise[..., :2], "LA").save(folder / "grey_alpha.png")
Image.fromarray(grey16).save(folder / "grey16.png")
Image.fromarray(rgb).save(folder / "rgb.jpg", quality=90)
Image.fromarray(rgb).save(folder / "progressive.jpg", quality=90, progressive=True)
Image.fromarray(rgb[..., 0]).save(folder / "grey.jpg", quality=90)
Image.fromarray(np.concatenate([rgb, rgb[..., :1]], -1), "CMYK").save(folder / "cmyk.jpeg", quality=90)  # is refused

pixels = {}
for path in sorted([*folder.glob("*.png"), *folder.glob("*.jpg")]):
    if path.stem == "grey16":
        a = (grey16 >> 8).astype("u1")[..., None]
    else:
        grey = path.stem in ("grey", "bits", "grey_alpha")
        a = np.asarray(Image.open(path).convert("L" if grey else "RGB"))
        a = a[..., None] if grey else a
    pixels[path.name] = np.ascontiguousarray(a.transpose(2, 0, 1))
save_file(pixels, folder / "pixels.safetensors")

(folder / "turned").mkdir(exist_ok=True)
turned = {}
for orientation in range(1, 9):
    for suffix, order in (("jpg", ">"), ("png", "<")):
        exif = Image.Exif()
        exif.endian = order
        exif[0x010F], exif[0x0112], exif[0x0131] = "a maker of cameras", orientation, "software"
        path = folder / "turned" / f"{orientation}.{suffix}"
        Image.fromarray(rgb).save(path, exif=exif.tobytes(), **({"quality": 90} if suffix == "jpg" else {}))
        assert (b"MM\0*" if order == ">" else b"II*\0") in path.read_bytes()
        a = np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
        turned[path.name] = np.ascontiguousarray(a.transpose(2, 0, 1))
save_file(turned, folder / "turned.safetensors")
