"""`gated_layer` with its gradients, as Triton kernels.

Made by Triton-Autodiff 0.1.0 from the kernel `gated_layer_kernel`, with Triton 3.9.0 for cpu. It
was made for launches that are like the one that it was exported from; whatever is not is an
AssertionError:

- `x_ptr`: a tensor (float32, cpu)
- `w_ptr`: a tensor (float32, cpu)
- `b_ptr`: a tensor (float32, cpu)
- `y_ptr`: a tensor (float32, cpu, all of its storage)
- `n_rows`: i32
- `n_columns`: i32
- `BLOCK_M` = 32
- `BLOCK_N` = 32
- gradients of `x_ptr`, `w_ptr`, `b_ptr`, from those of `y_ptr`
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch.autograd import forward_ad


# x_ptr: tl.pointer_type(tl.float32), a multiple of 16
# w_ptr: tl.pointer_type(tl.float32), a multiple of 16
# b_ptr: tl.pointer_type(tl.float32), a multiple of 16
# y_ptr: tl.pointer_type(tl.float32), a multiple of 16
# n_rows: tl.int32
# n_columns: tl.int32
@triton.jit
def gated_layer_kernel_fwd(x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns):
    """`gated_layer_kernel`, for these types and constants."""
    rows_part = tl.program_id(0) * 32
    arange = tl.arange(0, 32)
    rows = rows_part + arange
    mask = (rows < n_rows)[:, None]
    mask_1 = arange < n_columns
    mask_2 = mask & mask_1[None, :]
    offsets = rows[:, None] * n_columns + arange[None, :]
    x = tl.load(x_ptr + offsets, mask_2, 0.0)
    w = tl.load(w_ptr + arange, mask_1, 0.0)
    b = tl.load(b_ptr + arange, mask_1, 0.0)
    u = x * w[None, :] + b[None, :]
    tl.store(y_ptr + offsets, u * (1.0 / (tl.exp(-u) + 1.0)), mask_2)


@triton.jit
def gated_layer_kernel_bwd(
    x_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    w_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    b_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    n_rows,  # tl.int32
    n_columns,  # tl.int32
    d_y_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    d_x_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    d_w_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    d_b_ptr,  # tl.pointer_type(tl.float32), a multiple of 16
    extent: tl.int64,  # tl.int64
    extent_1: tl.int64,  # tl.int64
):
    """A backward kernel of `gated_layer_kernel`.

    It computes `d_x_ptr`, `d_w_ptr` and `d_b_ptr`, from `d_y_ptr`. A program does the backward of
    one program of the forward. Each program stores a part of `d_w_ptr` and `d_b_ptr`: the parts are
    added up afterwards. A comment is the statement of the forward whose gradient comes next, and
    the rule for it, in which x̄ is the gradient of an operand x, and ȳ that of the result.

    The host passes on, `grid` being the forward's, `extent` the elements from a tensor's first to
    its last:
    - extent: extent(b_ptr)
    - extent_1: extent(w_ptr)
    """
    BLOCK_M: tl.constexpr = 32
    BLOCK_N: tl.constexpr = 32
    program = tl.program_id(0)
    rows_part = program * 32
    arange = tl.arange(0, 32)
    rows = rows_part + arange
    mask = (rows < n_rows)[:, None]
    mask_1 = arange < n_columns
    mask_2 = mask & mask_1[None, :]
    offsets = rows[:, None] * n_columns + arange[None, :]
    x_ptrs = x_ptr + offsets
    d_x_ptrs = d_x_ptr + offsets
    x = tl.load(x_ptrs, mask_2, 0.0)
    w_ptrs = w_ptr + arange
    d_w_ptrs = d_w_ptr + arange
    w = tl.load(w_ptrs, mask_1, 0.0)
    b_ptrs = b_ptr + arange
    d_b_ptrs = d_b_ptr + arange
    b = tl.load(b_ptrs, mask_1, 0.0)
    w_1 = tl.broadcast_to(w[None, :], [BLOCK_M, BLOCK_N])
    u = x * w_1 + b[None, :]
    d_y_ptrs = d_y_ptr + offsets
    x_1 = tl.exp(-u)
    x_2 = 1.0 / (x_1 + 1.0)
    # tl.store(y_ptr + offsets, u * tl.sigmoid(u), mask=mask)  (quickstart.py:25)
    #     mul: x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁
    #     div: x̄₁ += ȳ/x₂, x̄₂ −= ȳ/x₂·y; exp: x̄ += ȳ·y; neg: x̄ += −ȳ
    d_y = tl.load(d_y_ptrs, mask_2, 0.0)
    d_u = tl.where(mask_2, d_y * x_2, 0.0)
    d_term = d_y * u
    d_term_1 = 0.0 - d_term * x_2 * x_2
    mask_3 = d_term == 0.0
    d_term_2 = tl.where(mask_3, 0.0, d_term_1)
    d_term_3 = tl.minimum(
        tl.where(mask_2, x_1, 0.0), 3.4028234663852886e38, propagate_nan=tl.PropagateNan.ALL
    )
    d_u_1 = d_u + (0.0 - d_term_2 * d_term_3)
    # u = x * w[None, :] + b[None, :]  (quickstart.py:24)
    #     mul: x̄₁ += ȳ·x₂, x̄₂ += ȳ·x₁
    d_u_term = tl.sum(d_u_1, 0)
    d_x = d_u_1 * w_1
    d_u_term_1 = tl.sum(d_u_1 * x, 0)
    program_1 = program.to(tl.int64)
    # b = tl.load(b_ptr + columns, mask=columns < n_columns, other=0.0)  (quickstart.py:23)
    tl.store(d_b_ptrs + program_1 * extent, d_u_term, mask_1)
    # w = tl.load(w_ptr + columns, mask=columns < n_columns, other=0.0)  (quickstart.py:22)
    tl.store(d_w_ptrs + program_1 * extent_1, d_u_term_1, mask_1)
    # x = tl.load(x_ptr + offsets, mask=mask, other=0.0)  (quickstart.py:21)
    tl.store(d_x_ptrs, d_x, mask_2)


class GatedLayerKernel(torch.autograd.Function):
    """One launch of `gated_layer_kernel`.

    Takes the grid and the arguments, returns what it writes: `y_ptr`. The gradients of `x_ptr`,
    `w_ptr`, `b_ptr` come from those of `y_ptr`.
    """

    @staticmethod
    def forward(ctx, grid, x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns):
        """Launch the kernel, and keep what the backward reads."""
        gated_layer_kernel_fwd[grid](
            x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns, num_warps=4, num_stages=3
        )
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(y_ptr)
        ctx.save_for_backward(x_ptr, w_ptr, b_ptr)
        ctx.launch = (
            grid,
            n_rows,
            n_columns,
            _Layout.of(x_ptr),
            _Layout.of(w_ptr),
            _Layout.of(b_ptr),
            _Layout.of(y_ptr),
        )
        return y_ptr

    @staticmethod
    def backward(ctx, *upstream):
        """Return the gradients, which cannot be differentiated again."""
        return _first_order("gated_layer_kernel", GatedLayerKernel.gradients, ctx, upstream)

    @staticmethod
    def gradients(ctx, d_y_ptr):
        """Return the gradients of x_ptr, w_ptr, b_ptr."""
        x_ptr, w_ptr, b_ptr = ctx.saved_tensors
        grid, n_rows, n_columns, like_x, like_w, like_b, like_y = ctx.launch
        x_ptr = like_x.restored(x_ptr)
        w_ptr = like_w.restored(w_ptr)
        b_ptr = like_b.restored(b_ptr)
        d_y_ptr = like_y.upstream(d_y_ptr)
        extent = like_b.size
        extent_1 = like_w.size
        d_x_ptr = like_x.empty(torch.float32)
        d_w_ptr = like_w.sums(grid[0], torch.float32)
        d_b_ptr = like_b.sums(grid[0], torch.float32)
        gated_layer_kernel_bwd[grid](
            x_ptr,
            w_ptr,
            b_ptr,
            n_rows,
            n_columns,
            d_y_ptr,
            d_x_ptr,
            d_w_ptr,
            d_b_ptr,
            extent,
            extent_1,
            num_warps=4,
            num_stages=3,
        )
        d_w_ptr, d_b_ptr = _added_up([like_w, like_b], [d_w_ptr, d_b_ptr])
        return None, d_x_ptr, d_w_ptr, d_b_ptr, *[None] * 3


@functools.lru_cache(1024)
def _check_gated_layer_kernel(grid, n_rows, n_columns, like_x, like_w, like_b, like_y):
    """Assert what the kernels of `gated_layer_kernel` are for."""
    _require(n_rows - 1 >= 0, "the kernels are for n_rows - 1 >= 0")
    _require_whole("y_ptr", like_y)
    _require_cover(
        "x_ptr",
        like_x,
        0,
        [
            _indices(n_columns, [(32, grid[0]), (1, 32)], bound=n_rows),
            _indices(1, [(1, 32)], bound=n_columns),
            _indices(0, [(1, grid[1])]),
            _indices(0, [(1, grid[2])]),
        ],
    )
    _require(grid[1] <= 1, "programs along axis 1 of the grid would repeat what others do")
    _require(grid[2] <= 1, "programs along axis 2 of the grid would repeat what others do")
    _require(grid[0] <= 8192, "the kernels are for grid[0] <= 8192")
    _require_cover("w_ptr", like_w, 0, [_indices(1, [(1, 32)], bound=n_columns)])
    _require_cover("b_ptr", like_b, 0, [_indices(1, [(1, 32)], bound=n_columns)])
    _require_distinct(
        "y_ptr",
        [
            _indices(n_columns, [(32, grid[0]), (1, 32)], bound=n_rows),
            _indices(1, [(1, 32)], bound=n_columns),
            _indices(0, [(1, grid[1])]),
            _indices(0, [(1, grid[2])]),
        ],
    )


def _launch_gated_layer_kernel(
    grid, x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns, BLOCK_M=32, BLOCK_N=32, **options
):
    """Launch `gated_layer_kernel`, after asserting what it was exported for."""
    grid = _three(grid, locals())
    _require_options(
        options,
        {
            "num_warps": 4,
            "num_ctas": 1,
            "num_stages": 3,
            "warp_size": 1,
            "enable_fp_fusion": False,
            "default_dot_input_precision": "ieee",
            "debug": False,
            "opt_level": 2,
        },
    )
    _require_tensor("x_ptr", x_ptr, torch.float32, "cpu", True)
    _require_tensor("w_ptr", w_ptr, torch.float32, "cpu", True)
    _require_tensor("b_ptr", b_ptr, torch.float32, "cpu", True)
    _require_tensor("y_ptr", y_ptr, torch.float32, "cpu", True)
    _require_integer("n_rows", n_rows, 32)
    _require_integer("n_columns", n_columns, 32)
    _require_same("BLOCK_M", BLOCK_M, 32)
    _require_same("BLOCK_N", BLOCK_N, 32)
    tensors = {"x_ptr": x_ptr, "w_ptr": w_ptr, "b_ptr": b_ptr, "y_ptr": y_ptr}
    _require_one_device(tensors, None)
    _require_meetings(tensors, ("y_ptr",), ())
    _check_gated_layer_kernel(
        grid,
        n_rows,
        n_columns,
        _Layout.of(x_ptr),
        _Layout.of(w_ptr),
        _Layout.of(b_ptr),
        _Layout.of(y_ptr),
    )
    GatedLayerKernel.apply(grid, x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_columns)


def gated_layer(x, w, b):
    """The stub: allocates the output and launches ``kernel``, which comes first."""
    kernel = gated_layer_kernel
    n_rows, n_columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(n_rows, 32),)
    block_n = triton.next_power_of_2(n_columns)
    kernel[grid](x, w, b, y, n_rows, n_columns, BLOCK_M=32, BLOCK_N=block_n)
    return y


# Assertions, memory, and sums of gradients.


_ALIGNMENT = 16
_GAPS = "programs or iterations leave gaps or repeat addresses"
_MOST_ROWS = 512
_MOST_COLUMNS = 1024
_FEWEST_COLUMNS = 16
_TILE = 8192
_ELEMENTS_A_THREAD = 32
_MOST_SUMS = 8192
_ROUNDED_ALIKE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _require(condition: bool, message: str) -> None:
    """Raise an `AssertionError` unless a condition holds, even if Python skips asserts."""
    if not condition:
        raise AssertionError(message)


def _is_batch(gradient) -> bool:
    """Whether a gradient is a batch of them, by PyTorch's vmap."""
    if gradient is None:
        return False
    functorch = torch._C._functorch
    wrapped = functorch.is_functorch_wrapped_tensor(gradient)
    return wrapped or functorch.is_legacy_batchedtensor(gradient)


def _require_plain(name: str, tensor: torch.Tensor) -> None:
    """Raise for a tensor that has a tangent, or that a transform of `torch.func` has wrapped."""
    what = None
    if _is_batch(tensor):
        what = "is wrapped by a transform of torch.func, or a batch"
    elif forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        what = "has a tangent"
    if what is not None:
        raise AssertionError(
            f"{name} {what}: this module has first derivatives in reverse mode only. The operation "
            "or kernel that it was exported from has the others"
        )


def _require_tensor(name: str, value, dtype, device: str, aligned: bool) -> None:
    """Raise unless an argument is a plain tensor of this dtype on this device."""
    is_tensor = isinstance(value, torch.Tensor)
    if not is_tensor:
        raise AssertionError(f"{name} was a tensor, it is {value!r}")
    if value.dtype != dtype:
        raise AssertionError(f"{name} was of {dtype}, it is of {value.dtype}")
    if value.device.type != device:
        raise AssertionError(f"{name} was on {device}, it is on {value.device}")
    if value.layout is not torch.strided or value.is_neg():
        raise AssertionError(f"{name} has to hold its elements as they are: {value.layout}")
    _require_plain(name, value)
    if aligned and value.data_ptr() % 16:
        raise AssertionError(f"{name} began at a multiple of 16 bytes, not at {value.data_ptr()}")


def _leaves_behind(node):
    """Yield the leaves of autograd's graph that a node depends on."""
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        leaf = getattr(current, "variable", None)
        if leaf is not None:
            yield leaf
        for following, _ in current.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)


class _Once(torch.autograd.Function):
    """The identity on its first input; to differentiate it is an error."""

    @staticmethod
    def forward(ctx, error, name, reason, gradient, *anchors):
        ctx.error, ctx.name, ctx.reason = error, name, reason
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx, _):
        raise ctx.error(
            f"the gradient of {ctx.name} cannot be differentiated again: {ctx.reason}. If it need "
            "not be, take this gradient without create_graph=True, or detach() it"
        )


def _refuse_second(error, name, reason, node, upstream, inputs, gradients) -> list:
    """Return `gradients`, the results of a `node`, so that to differentiate them is an `error` (a
    class), for a `reason`.

    They depend on `upstream` and on `inputs`, as far as these are known, and through `node` on
    leaves.
    """
    anchors = [t for t in (*upstream, *inputs) if t is not None and t.requires_grad]
    anchors += _leaves_behind(node)
    about = error, name, reason
    return [g if g is None else _Once.apply(*about, g.detach(), *anchors) for g in gradients]


def _first_order(kernel: str, gradients_of, ctx, upstream) -> tuple:
    """Return the gradients of a launch of a kernel, so that to differentiate them is an error."""
    for gradient in upstream:
        if gradient is not None:
            _require_plain(f"an upstream gradient of kernel {kernel!r}", gradient)
    with torch.no_grad():
        gradients = gradients_of(ctx, *upstream)
    if not torch.is_grad_enabled():
        return gradients
    reason = (
        "this module has first derivatives only; the operation or kernel that it was exported from "
        "has all"
    )
    about = RuntimeError, f"kernel {kernel!r}", reason
    return tuple(_refuse_second(*about, ctx, upstream, ctx.saved_tensors, gradients))


def _require_integer(name: str, value, bits: int, divisor: int = 1) -> None:
    """Raise unless a scalar is an integer of so many bits, and a multiple of `divisor`."""
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise AssertionError(f"{name} was an integer of {bits} bits, it is {value!r}")
    if value % divisor:
        raise AssertionError(f"{name} was a multiple of {divisor}, it is {value}")


def _require_same(name: str, value, given) -> None:
    """Raise unless an argument equals the value that the kernel was compiled for."""
    if type(value) is not type(given) or value != given:
        raise AssertionError(f"{name} was {given!r}, it is {value!r}")


def _require_options(options: dict, given: dict) -> None:
    """Raise unless options of a launch are those that the kernels were compiled with."""
    for name, value in options.items():
        if name not in given:
            raise AssertionError(f"{name} is neither a parameter nor an option")
        _require_same(name, value, given[name])


@functools.cache
def _capability_of(device: torch.device) -> tuple[int, int]:
    """Return a GPU's compute capability."""
    return torch.cuda.get_device_capability(device)


def _require_one_device(tensors: dict, capability) -> None:
    """Raise unless tensors are on one device, of this capability if it is a GPU (else None)."""
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) != 1:
        raise AssertionError(f"all tensors were on one device, they are on {devices}")
    if capability is None:
        return
    device = devices.pop()
    if device.index != torch.cuda.current_device():
        raise AssertionError(f"the tensors are on {device}, which is not the current device")
    here = _capability_of(device)
    if here != capability:
        raise AssertionError(f"the device's capability was {capability}, it is {here}")


def _extent(shape, strides) -> int:
    """Return the number of elements from the first to the last one of a strided tensor."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


def _sum_of_bytes(tensor: torch.Tensor) -> int:
    """Return the number of bytes from the first to the last element."""
    return _extent(tensor.shape, tensor.stride()) * tensor.element_size()


def _in_one_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors lie in one storage, which has memory."""
    try:
        address = one.untyped_storage().data_ptr()
        return address != 0 and address == other.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # one has none
        return False


def _require_meetings(tensors: dict, written: tuple, meetings: tuple, beside: tuple = ()) -> None:
    """Raise unless the same tensors as before share memory with a written one, at one start, and
    lie `beside` one in its storage.
    """
    ranges = [(name, t.data_ptr(), t.data_ptr() + _sum_of_bytes(t)) for name, t in tensors.items()]
    for place, (a, first, end) in enumerate(ranges):
        for b, other, other_end in ranges[place + 1 :]:
            if a in written or b in written:
                meet = first < other_end and other < end
                if meet != ((a, b) in meetings) or (meet and first != other):
                    how = "share" if meet else "shared"
                    raise AssertionError(f"{a} and {b} {how} memory: not as before")
                if not meet and (a, b) not in beside and _in_one_storage(tensors[a], tensors[b]):
                    raise AssertionError(
                        f"{a} and {b} are parts of one tensor: not as before, and the kernel may "
                        "read around them. Export a launch of such parts"
                    )


class _Span(NamedTuple):
    """A range of elements around a data pointer."""

    lead: int
    total: int

    def covering(self, first: int, last: int) -> _Span:
        """Return the span, extended to contain these elements."""
        lead = max(self.lead, -first)
        return _Span(lead, lead + max(self.total - self.lead, last + 1))

    def widened(self, margin: int) -> _Span:
        """Return the span with `margin` more elements on both sides."""
        return _Span(self.lead + margin, self.total + 2 * margin)


def _tensor_span(tensor: torch.Tensor) -> _Span:
    """Return the span of the tensor's own elements."""
    return _Span(0, _extent(tensor.shape, tensor.stride()))


def _storage_span(tensor: torch.Tensor) -> _Span:
    """Return the span of the tensor's whole storage, relative to its data pointer."""
    itemsize = tensor.element_size()
    nbytes = tensor.untyped_storage().nbytes()
    lead = tensor.storage_offset()
    # A storage may end inside an element (a view as a wider dtype); a resized one may end early.
    return _Span(lead, max(nbytes // itemsize, lead + _tensor_span(tensor).total))


def _room_for(span: _Span, dtype, device, zero: bool) -> tuple[torch.Tensor, int]:
    """Return memory that covers a span, and where its data pointer is in it, aligned."""
    padding = -span.lead % max(1, _ALIGNMENT // dtype.itemsize)
    make = torch.zeros if zero else torch.empty
    return make(span.total + padding, dtype=dtype, device=device), span.lead + padding


def _is_non_overlapping(shape, strides) -> bool:
    """Return whether no two elements are proved to share memory by the nesting of strides.

    Sufficient, not necessary: an interleaving that is distinct for another reason counts as
    overlapping, which costs an exact computation later and nothing else.
    """
    if 0 in shape:
        return True
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += (size - 1) * stride
    return True


def _is_dense(shape, strides) -> bool:
    """Return whether elements fill the memory from first to last, each address once."""
    count = 1
    for size in shape:
        count *= size
    return _extent(shape, strides) == count and _is_non_overlapping(shape, strides)


def _allocate(shape, strides, span: _Span, dtype, device, zero: bool) -> torch.Tensor:
    """Return a tensor of `shape` and `strides` whose memory covers `span` and is aligned.

    With `zero`, all of the span is zero, not only the tensor's own elements.
    """
    tight = span.lead == 0 and span.total == _extent(shape, strides)
    if tight and not zero:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    if tight and _is_dense(shape, strides):
        return torch.empty_strided(shape, strides, dtype=dtype, device=device).zero_()
    flat, start = _room_for(span, dtype, device, zero)
    return flat.as_strided(shape, strides, start)


def _same_strides(shape, a, b) -> bool:
    """Return whether strides `a` and `b` address a tensor of `shape` in the same way."""
    return all(size <= 1 or s == t for size, s, t in zip(shape, a, b, strict=True))


def _fits(tensor: torch.Tensor, shape, strides, dtype) -> bool:
    """Return whether a kernel can read `tensor` with these strides, dtype and alignment."""
    return (
        tensor.dtype == dtype
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
        and _same_strides(shape, tensor.stride(), strides)
        and tensor.data_ptr() % _ALIGNMENT == 0
    )


def _lay_out(upstream: torch.Tensor, shape, strides, dtype, span: _Span) -> torch.Tensor:
    """Return an upstream gradient with the addressing of its output, copied only if necessary.

    Elements of the span outside of the output tensor have gradient zero.
    """
    if upstream.layout is not torch.strided:
        upstream = upstream.to_dense()
    if upstream._is_zerotensor():
        # It has no memory.
        return _allocate(shape, strides, span, dtype, upstream.device, True)
    tight = span.lead == 0 and span.total == _extent(shape, strides)
    if tight and _is_dense(shape, strides):
        if _fits(upstream, shape, strides, dtype):
            return upstream
        return _allocate(shape, strides, span, dtype, upstream.device, False).copy_(upstream)
    return _allocate(shape, strides, span, dtype, upstream.device, True).copy_(upstream)


def _restore(tensor: torch.Tensor, strides, span: _Span) -> torch.Tensor:
    """Return what autograd saved of a tensor, with the strides that the kernel expects.

    Hooks on saved tensors may return a tensor with the same elements in another layout.
    """
    shape = tensor.shape
    if _fits(tensor, shape, strides, tensor.dtype):
        return tensor
    copy = _allocate(shape, strides, span, tensor.dtype, tensor.device, True)
    if _is_non_overlapping(shape, strides):
        return copy.copy_(tensor)
    places = torch.arange(_extent(shape, strides), device=tensor.device)
    flat = copy.as_strided(places.shape, (1,))
    flat[places.as_strided(shape, strides).reshape(-1)] = tensor.reshape(-1)
    return copy


class _Layout(NamedTuple):
    """The layout of a tensor: storage, shape, strides, dtype."""

    shape: torch.Size
    strides: tuple[int, ...]
    span: _Span
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Layout:
        """Return the layout of a tensor."""
        span = _storage_span(tensor)
        return cls(tensor.shape, tensor.stride(), span, tensor.dtype, tensor.device)

    @property
    def size(self) -> int:
        """The number of elements from the first to the last one."""
        return _extent(self.shape, self.strides)

    def empty(self, dtype: torch.dtype) -> torch.Tensor:
        """Return memory with the same layout."""
        return torch.empty_strided(self.shape, self.strides, dtype=dtype, device=self.device)

    def memory(self, dtype: torch.dtype, span: _Span, zero: bool) -> torch.Tensor:
        """Return memory with the same layout, extended to a span around the tensor."""
        return _allocate(self.shape, self.strides, span, dtype, self.device, zero)

    def zeros(self) -> torch.Tensor:
        """Return the gradient of a tensor without influence."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)

    def room(
        self, dtype: torch.dtype, span: _Span, zero: bool, content: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return memory that covers a span around the tensor, from its first element to the end.

        A graph may copy what a kernel writes to: it copies what it sees.
        """
        if span.lead == 0 and span.total == self.size:
            made = self.memory(dtype, span, zero)
            return made if content is None else made.copy_(content)
        flat, start = _room_for(span, dtype, self.device, zero)
        if content is not None:
            flat.as_strided(self.shape, self.strides, start).copy_(content)
        return flat[start:]

    def view_of(self, room: torch.Tensor) -> torch.Tensor:
        """Return the tensor's own elements in such memory."""
        return room if room.shape == self.shape else room.as_strided(self.shape, self.strides)

    def upstream(self, gradient: torch.Tensor | None) -> torch.Tensor:
        """Return an upstream gradient in the layout that kernels read; None is zero."""
        if gradient is None:
            return self.memory(self.dtype, self.span, True)
        return _lay_out(gradient, self.shape, self.strides, self.dtype, self.span)

    def sums(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory for `count` partial sums of the gradient, one after the other."""
        shape, strides = (count, *self.shape), (self.size, *self.strides)
        return torch.empty_strided(shape, strides, dtype=dtype, device=self.device)

    def restored(self, kept: torch.Tensor, around: bool = False) -> torch.Tensor:
        """Return what autograd saved of a tensor in its own layout, which hooks may change.

        Raises if the kernel may read `around` it, in its storage, and a hook has kept only the
        tensor.
        """
        held, (lead, total) = _storage_span(kept), self.span
        # Something may be in front of a copy of the whole storage, so that it is aligned.
        padding = held.lead - lead
        has_surroundings = padding == held.total - total
        has_surroundings &= 0 <= padding * kept.element_size() < _ALIGNMENT
        is_alike = _same_strides(self.shape, kept.stride(), self.strides) and not kept.is_neg()
        if has_surroundings and is_alike and kept.dtype == self.dtype:
            return kept
        is_whole = self.span == _Span(0, self.size)
        _require(is_whole or not around, "a hook on saved tensors keeps what is around a tensor")
        return _restore(kept.to(self.dtype), self.strides, self.span)


def _require_whole(name: str, like: _Layout) -> None:
    """Raise unless a tensor fills its storage, with each element once."""
    if like.span != _Span(0, like.size) or not _is_dense(like.shape, like.strides):
        raise AssertionError(f"{name} was all that its storage holds, it is a part or repeats some")


def _merge(dims) -> tuple[tuple[int, int], ...]:
    """Return sorted `(extent, stride)` pairs, without extents of one, and contiguous ones merged.

    Two index spaces without repeated offsets that merge to the same pairs have the same offsets.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted((d for d in dims if d[0] != 1), key=lambda d: (d[1], d[0])):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def _distinct(dims) -> bool:
    """Return whether all offsets of merged `(extent, stride)` pairs are proved to differ."""
    span = 0
    for extent, stride in dims:
        if stride <= span:
            return False
        span += (extent - 1) * stride
    return True


def _spelled(dims) -> str:
    """Describe merged `(extent, stride)` pairs in words."""
    return " by ".join(f"{extent} elements of stride {stride}" for extent, stride in dims) or "one"


def _cover(shape, strides, offset: int, dims) -> str | None:
    """Return why `Indices` from an offset on do not touch each element of a tensor once.

    None if they do.
    """
    first = offset + sum(dim.place for dim in dims)
    if first != 0:
        return f"the first element that it reaches is number {first}"
    if any(dim.count is None for dim in dims):
        return _GAPS
    if any(dim.count <= 0 for dim in dims):
        return "it reaches no element"
    reached = _merge((dim.count, dim.stride) for dim in dims)
    held = _merge(zip(shape, strides, strict=True))
    if not _distinct(reached):
        return f"it repeats addresses ({_spelled(reached)})"
    if reached != held:
        return f"it reaches {_spelled(reached)}, and the tensor is {_spelled(held)}"
    return None


def _require_cover(name: str, like: _Layout, offset: int, dims) -> None:
    """Raise unless each element of a tensor gets its gradient once."""
    objection = _cover(like.shape, like.strides, offset, dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached each element of {name} once: {objection}")


def _repeat(dims) -> str | None:
    """Return why `Indices` may touch an element twice; None if they cannot."""
    pairs = []
    for stride, digits, count, _ in dims:
        # Bounds only exclude accesses.
        apart = [(extent, stride * step) for step, extent in digits]
        pairs += apart if count is None else [(count, stride)]
    if any(extent <= 0 for extent, _ in pairs) or _distinct(_merge(pairs)):
        return None
    return "it may reach an element more than once"


def _require_distinct(name: str, dims) -> None:
    """Raise unless no element is touched twice."""
    objection = _repeat(dims)
    if objection is not None:
        raise AssertionError(f"the kernel reached no element of {name} twice: {objection}")


def _tile_of(count: int) -> tuple[int, int, int]:
    """Return rows and columns of a program's tile, and its warps, for `count` partial sums."""
    rows = min(triton.next_power_of_2(max(count, 1)), _MOST_ROWS)
    columns = min(max(_TILE // rows, _FEWEST_COLUMNS), _MOST_COLUMNS)
    return rows, columns, max(1, rows * columns // (32 * _ELEMENTS_A_THREAD))


def _suit_kernel(count: int, device, results) -> bool:
    """Return whether a kernel adds up `count` partial sums of each of some gradients, which are
    converted to the dtypes `results`. Otherwise, PyTorch does.
    """
    alike = all(result in _ROUNDED_ALIKE for result in results)
    return device.type != "cpu" and count <= _MOST_SUMS and alike


@triton.jit
def _add_up_one(partials, total, size, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < size
    tile = tl.zeros((ROWS, COLUMNS), partials.dtype.element_ty)
    for start in range(0, count, ROWS):
        rows = (start + tl.arange(0, ROWS)).to(tl.int64)
        mask = (rows < count)[:, None] & inside[None, :]
        tile += tl.load(partials + rows[:, None] * size + columns[None, :], mask=mask, other=0.0)
    tl.store(total + columns, tl.sum(tile, axis=0), mask=inside)


@triton.jit
def _add_up(partials, totals, sizes, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Store in each of `totals` the sum of `count` tensors, one after the other in `partials`."""
    for n in tl.static_range(len(partials)):
        if tl.program_id(1) == n:
            _add_up_one(partials[n], totals[n], sizes[n], count, ROWS, COLUMNS)


def _added_up(layouts, partials) -> list[torch.Tensor]:
    """Return the gradients of tensors, given the same number of partial sums of each."""
    count = partials[0].shape[0]
    if not _suit_kernel(count, layouts[0].device, [layout.dtype for layout in layouts]):
        pairs = zip(partials, layouts, strict=True)
        return [sums.sum(0).to(layout.dtype) for sums, layout in pairs]
    totals = [layout.empty(layout.dtype) for layout in layouts]
    sizes = tuple(layout.size for layout in layouts)
    rows, columns, warps = _tile_of(count)
    grid = (triton.cdiv(max(sizes), columns), len(sizes))
    args = (tuple(partials), tuple(totals), sizes, count, rows, columns)
    _add_up[grid](*args, num_warps=warps)
    return totals


class _Kernel:
    """Launches a kernel with gradients: `kernel[grid](…)`."""

    def __init__(self, *launches):
        self._launches = launches

    def __getitem__(self, grid):
        return functools.partial(self._launch, grid)

    def _launch(self, grid, *args, **options):
        if len(self._launches) == 1:
            return self._launches[0](grid, *args, **options)
        objections = []
        for launch in self._launches:
            try:
                return launch(grid, *args, **options)
            except AssertionError as error:
                objections.append(str(error))
        raise AssertionError("nothing was exported for this launch: " + "; ".join(objections))


def _three(grid, arguments: dict) -> tuple[int, int, int]:
    """Return the extents of a grid along three axes."""
    grid = grid(arguments) if callable(grid) else grid
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return (*grid, 1, 1)[:3]


class _Indices(NamedTuple):
    """An index from `place` to `place` + count - 1, and its stride.

    The count is None if the digits leave gaps or repeat values.
    """

    stride: int
    digits: list[tuple[int, int]]
    count: int | None
    place: int


def _length_of(digits) -> int | None:
    """Return the length of the range that `(step, extent)` digits add up to; zero if it is empty.

    None if it has gaps or repeated values.
    """
    length = 1
    for step, extent in sorted(digits):
        # If it is the only value, its step does not matter.
        if length != step and extent > 1 and length > 0:
            return None
        length *= max(extent, 0)
    return length


def _indices(stride, digits, bound=None, start=None) -> _Indices:
    """Return the values of a sum of `(step, extent)` digits, below a bound and from a start on.

    Digits that count down are replaced by ones that count up from the other end. If the digits are
    None, there are gaps.
    """
    if digits is None:
        return _Indices(abs(stride), [], None, 0)
    lowest = sum(s * (e - 1) for s, e in digits if s < 0 < e)
    digits = sorted((abs(s), e) for s, e in digits if e != 1)
    count, place = _length_of(digits), 0
    if count is not None:
        first = 0 if start is None else max(start - lowest, 0)
        count = (count if bound is None else min(count, bound - lowest)) - first
        place = stride * (lowest + first + (max(count - 1, 0) if stride < 0 else 0))
    return _Indices(abs(stride), digits, count, place)


gated_layer_kernel = _Kernel(_launch_gated_layer_kernel)
