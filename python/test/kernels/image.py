"""Colour to grey: a two-dimensional grid over the planes of an image."""

import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def greyscale_kernel(
    image_ptr, grey_ptr, height, width, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    columns = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    offsets = rows[:, None] * width + columns[None, :]
    mask = (rows[:, None] < height) & (columns[None, :] < width)
    plane = height * width
    red = tl.load(image_ptr + offsets, mask=mask)
    green = tl.load(image_ptr + plane + offsets, mask=mask)
    blue = tl.load(image_ptr + 2 * plane + offsets, mask=mask)
    tl.store(grey_ptr + offsets, 0.2989 * red + 0.5870 * green + 0.1140 * blue, mask=mask)


def greyscale(kernel, image, BLOCK=16):
    """image: (3, height, width)."""
    _, height, width = image.shape
    grey = poisoned((height, width), image)
    grid = (triton.cdiv(height, BLOCK), triton.cdiv(width, BLOCK))
    kernel[grid](image, grey, height, width, BLOCK_H=BLOCK, BLOCK_W=BLOCK)
    return grey


def greyscale_reference(image):
    return 0.2989 * image[0] + 0.5870 * image[1] + 0.1140 * image[2]
