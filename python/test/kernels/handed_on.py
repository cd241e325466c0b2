"""Programs of one launch that wait for one another, and hand something on.

Each takes flags, which are zero before the launch.
"""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def wait_for(flag_ptr, WAIT: tl.constexpr):
    """Wait until the flag is set, in one of several ways."""
    if WAIT == "add":
        while tl.atomic_add(flag_ptr, 0, sem="acquire") == 0:
            pass
    elif WAIT == "cas":
        turns = 0
        while tl.atomic_cas(flag_ptr, 1, 1) == 0:
            turns += 1
        tl.device_assert(turns >= 0)
    elif WAIT == "volatile":
        while tl.load(flag_ptr, volatile=True) == 0:
            pass
    elif WAIT == "plain":
        while tl.load(flag_ptr) == 0:
            pass
    elif WAIT == "for":
        ready = tl.atomic_add(flag_ptr, 0)
        # Seconds, if need be: the program before may have no core for a while.
        for _ in range(1 << 14):
            if ready == 0:
                for _ in range(1 << 14):
                    if ready == 0:
                        ready = tl.atomic_add(flag_ptr, 0)


@triton.jit
def announce(flag_ptr):
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr, 1)


@triton.jit
def packing_kernel(
    x_ptr, flag_ptr, count_ptr, y_ptr, n, B: tl.constexpr, WAIT: tl.constexpr, PLACE: tl.constexpr
):
    """Pack positive elements; the program before says where to."""
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if PLACE == "branch":
        if p > 0:
            wait_for(flag_ptr + p, WAIT)
        before = tl.load(count_ptr + p)
    elif PLACE == "always":
        wait_for(flag_ptr + p, WAIT)
        before = tl.load(count_ptr + p)
    elif PLACE == "nest":
        before = tl.zeros((), tl.int32) if p == 0 else tl.zeros((), tl.int32)
        for k in range(p):
            if k == p - 1:
                wait_for(flag_ptr + p, WAIT)
            before = tl.load(count_ptr + k + 1)
    else:
        before = tl.zeros((), tl.int32)
        if p > 0:
            wait_for(flag_ptr + p, WAIT)
            before = tl.load(count_ptr + p)
    take = (v > 0).to(tl.int32)
    tl.store(count_ptr + p + 1, (before + tl.sum(take)).to(count_ptr.dtype.element_ty))
    place = before + tl.cumsum(take, 0) - 1
    tl.store(y_ptr + place, v * v, mask=take != 0)
    announce(flag_ptr + p + 1)


def packing(kernel, x, WAIT="add", PLACE="branch", dtype=torch.int32, B=16):
    programs = triton.cdiv(x.numel(), B)
    flag = torch.zeros(programs + 1, dtype=torch.int32, device=x.device)
    flag[0] = 1
    # Elements that are counted later are not there yet.
    count = torch.full((programs + 1,), 77, dtype=dtype, device=x.device)
    count[0] = 0
    y = torch.zeros_like(x)
    kernel[(programs,)](x, flag, count, y, x.numel(), B, WAIT, PLACE)
    return y


def packing_reference(x, *_, **__):
    kept = x[x > 0] ** 2
    return torch.cat([kept, kept.new_zeros(x.numel() - kept.numel())])


@triton.jit
def look_back_kernel(
    x_ptr, status_ptr, own_ptr, sum_ptr, y_ptr, n, B: tl.constexpr, FLOAT: tl.constexpr
):
    """Decoupled look-back: a program adds up what those before it have left, and waits for it."""
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0)
    take = v if FLOAT else (v > 0).to(tl.int32)
    total = tl.sum(take)
    tl.store(own_ptr + p, total)
    tl.debug_barrier()
    tl.atomic_xchg(status_ptr + p, 1)
    before = tl.zeros((), own_ptr.dtype.element_ty)
    j = p - 1
    while j >= 0:
        status = tl.atomic_add(status_ptr + j, 0)
        if status == 2:
            before += tl.load(sum_ptr + j)
            j = -1
        elif status == 1:
            before += tl.load(own_ptr + j)
            j -= 1
    tl.store(sum_ptr + p, before + total)
    tl.debug_barrier()
    tl.atomic_xchg(status_ptr + p, 2)
    if FLOAT:
        tl.store(y_ptr + i, before + tl.cumsum(take, 0), mask=i < n)
    else:
        tl.store(y_ptr + before + tl.cumsum(take, 0) - 1, v * v, mask=take != 0)


def look_back(kernel, x, FLOAT=False, B=16):
    programs = triton.cdiv(x.numel(), B)
    dtype = x.dtype if FLOAT else torch.int32
    status = torch.zeros(programs, dtype=torch.int32, device=x.device)
    own, total = (torch.zeros(programs, dtype=dtype, device=x.device) for _ in range(2))
    y = torch.zeros_like(x)
    kernel[(programs,)](x, status, own, total, y, x.numel(), B, FLOAT)
    return y


@triton.jit
def bounds_kernel(x_ptr, table_ptr, flag_ptr, begin_ptr, y_ptr, B: tl.constexpr):
    """What is handed on is in addresses of loads, in a mask, in a branch and in a loop's bounds."""
    p = tl.program_id(0)
    lanes = tl.arange(0, B)
    while tl.load(flag_ptr + p, volatile=True) == 0:
        pass
    begin = tl.load(begin_ptr + p)
    end = begin + tl.load(table_ptr + p)
    tl.store(begin_ptr + p + 1, end)
    announce(flag_ptr + p + 1)
    total = tl.zeros((B,), x_ptr.dtype.element_ty)
    for row in range(begin, end):
        x = tl.load(x_ptr + row * B + lanes, mask=lanes <= row, other=0.0)
        total += x * x
    if end % 2 == 0:
        total = 3 * total
    tl.store(y_ptr + p * B + lanes, total)


def bounds(kernel, x, lengths):
    programs = lengths.numel()
    # Parts of one workspace do not overlap.
    flag, begin = torch.zeros(2, programs + 1, dtype=torch.int32, device=x.device)
    begin.fill_(10**6)
    flag[0], begin[0] = 1, 0
    y = poisoned((programs, x.shape[1]), x)
    kernel[(programs,)](x, lengths, flag, begin, y, x.shape[1])
    return y


def bounds_reference(x, lengths):
    lanes = torch.arange(x.shape[1], device=x.device)
    rows, begin = [], 0
    for length in lengths.tolist():
        end = begin + length
        part = x[begin:end] * (lanes <= torch.arange(begin, end, device=x.device)[:, None])
        rows.append((part**2).sum(0) * (3 if end % 2 == 0 else 1))
        begin = end
    return torch.stack(rows)


@triton.jit
def asked_kernel(x_ptr, flag_ptr, count_ptr, y_ptr, B: tl.constexpr, HOW: tl.constexpr):
    """Who asks once, without a loop, may see what others have stored, or not."""
    p = tl.program_id(0)
    lanes = tl.arange(0, B)
    if HOW == "branch":
        place = p
        if tl.atomic_add(flag_ptr + p, 0) == 1:
            place = tl.load(count_ptr + p)
    else:
        ready = tl.atomic_add(flag_ptr + p, 0)
        place = tl.load(count_ptr + p)
        place = tl.where(ready == 1, place, p)
    tl.store(count_ptr + p + 1, tl.num_programs(0) - 2 - p)
    announce(flag_ptr + p + 1)
    x = tl.load(x_ptr + place * B + lanes)
    tl.store(y_ptr + p * B + lanes, x * x * (place + 1))
    tl.store(y_ptr + tl.num_programs(0) * B + p, place.to(y_ptr.dtype.element_ty))


def asked(kernel, x, HOW="branch"):
    """Also return the places that the programs have found."""
    programs = x.shape[0]
    flag, count = torch.zeros(2, programs + 1, dtype=torch.int32, device=x.device)
    y = torch.empty(x.numel() + programs, dtype=x.dtype, device=x.device)
    kernel[(programs,)](x, flag, count, y, x.shape[1], HOW)
    return y


@triton.jit
def two_names_kernel(x_ptr, flag_ptr, seen_ptr, count_ptr, y_ptr, B: tl.constexpr):
    """What is stored under one name is loaded under another."""
    p = tl.program_id(0)
    lanes = tl.arange(0, B)
    wait_for(flag_ptr + p, "volatile")
    before = tl.load(seen_ptr + p)
    tl.store(count_ptr + p + 1, before + 1)
    announce(flag_ptr + p + 1)
    x = tl.load(x_ptr + p * B + lanes)
    tl.store(y_ptr + before * B + lanes, x * x)


def two_names(kernel, x):
    flag, count = torch.zeros(2, x.shape[0] + 1, dtype=torch.int32, device=x.device)
    flag[0] = 1
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, flag, count, count, y, x.shape[1])
    return y


@triton.jit
def carry_kernel(
    x_ptr, flag_ptr, sum_ptr, y_ptr, n, B: tl.constexpr, WAIT: tl.constexpr, HOW: tl.constexpr
):
    """A running sum goes from program to program: no gradient follows it."""
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if p > 0:
        wait_for(flag_ptr + p, WAIT)
    if HOW == "sum":
        before = tl.load(sum_ptr + p)
        tl.store(sum_ptr + p + 1, before + tl.sum(v))
    elif HOW == "bits":
        before = tl.load(sum_ptr + p).to(tl.float32, bitcast=True)
        tl.store(sum_ptr + p + 1, (before + tl.sum(v)).to(tl.int32, bitcast=True))
    elif HOW == "count":
        # A float that depends on no differentiated input.
        before = tl.load(sum_ptr + p)
        tl.store(sum_ptr + p + 1, before + tl.sum((v > 0).to(tl.float32)))
    if HOW == "count":
        tl.store(y_ptr + i, before * v * v, mask=i < n)
    else:
        tl.store(y_ptr + i, before + tl.cumsum(v, 0), mask=i < n)
    announce(flag_ptr + p + 1)


def carry(kernel, x, WAIT="add", HOW="sum", B=16):
    programs = triton.cdiv(x.numel(), B)
    flag = torch.zeros(programs + 1, dtype=torch.int32, device=x.device)
    dtype = torch.int32 if HOW == "bits" else x.dtype
    total = torch.zeros(programs + 1, dtype=dtype, device=x.device)
    y = torch.empty_like(x)
    kernel[(programs,)](x, flag, total, y, x.numel(), B, WAIT, HOW)
    return y


def counted_reference(x, *_, B=16, **__):
    counts = (x.detach().view(-1, B) > 0).sum(1)
    return ((counts.cumsum(0) - counts)[:, None] * x.view(-1, B) ** 2).view(-1)


@triton.jit
def lock_kernel(x_ptr, lock_ptr, y_ptr, B: tl.constexpr):
    """Programs add up rows under a lock."""
    lanes = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * B + lanes)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(lock_ptr + 1)
    if count == 0:
        tl.atomic_xchg(lock_ptr + 1, 1)
    else:
        x += tl.load(y_ptr + lanes)
    tl.store(y_ptr + lanes, x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def locked(kernel, x):
    lock = torch.zeros(2, dtype=torch.int32, device=x.device)
    y = x.new_zeros(x.shape[1])
    kernel[(x.shape[0],)](x, lock, y, x.shape[1])
    return y


@triton.jit
def last_kernel(x_ptr, count_ptr, part_ptr, y_ptr, n, B: tl.constexpr):
    """The last program to come adds up what all have left."""
    lanes = tl.arange(0, B)
    p = tl.program_id(0)
    x = tl.load(x_ptr + p * B + lanes)
    tl.store(part_ptr + p * B + lanes, x * x)
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1) == n - 1:
        total = tl.zeros((B,), x_ptr.dtype.element_ty)
        for k in range(n):
            total += tl.load(part_ptr + k * B + lanes)
        tl.store(y_ptr + lanes, total)


def last(kernel, x):
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    y = x.new_zeros(x.shape[1])
    kernel[(x.shape[0],)](x, count, torch.empty_like(x), y, x.shape[0], x.shape[1])
    return y


@triton.jit
def queue_kernel(x_ptr, count_ptr, y_ptr, n, B: tl.constexpr):
    """Programs take rows from a counter until none is left."""
    lanes = tl.arange(0, B)
    row = tl.atomic_add(count_ptr, 1)
    while row < n:
        x = tl.load(x_ptr + row * B + lanes)
        tl.store(y_ptr + row * B + lanes, x * x)
        row = tl.atomic_add(count_ptr, 1)


def queue(kernel, x):
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    y = torch.empty_like(x)
    kernel[(2,)](x, count, y, x.shape[0], x.shape[1])
    return y


@triton.jit
def probing_kernel(key_ptr, x_ptr, table_ptr, y_ptr, SLOTS: tl.constexpr):
    """Each program looks for a free slot of a hash table: a loop that only the forward can run."""
    p = tl.program_id(0)
    key = tl.load(key_ptr + p)
    slot = key % SLOTS
    while tl.atomic_cas(table_ptr + slot, -1, key) != -1:
        slot = (slot + 1) % SLOTS
    x = tl.load(x_ptr + p)
    tl.store(y_ptr + slot, x * x * x)


def probing(kernel, x, keys, slots=16):
    table = torch.full((slots,), -1, dtype=torch.int32, device=x.device)
    y = x.new_zeros(slots)
    kernel[(x.numel(),)](keys, x, table, y, slots)
    return y, table


@triton.jit
def volatile_kernel(x_ptr, y_ptr, B: tl.constexpr):
    """A volatile load of what nobody waits for, updated in place."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, volatile=True)
    tl.store(x_ptr + i, tl.exp(x))
    tl.store(y_ptr + i, x * x)


@triton.jit
def search_kernel(start_ptr, x_ptr, y_ptr):
    """A while loop over memory that only an earlier launch has written."""
    p = tl.program_id(0)
    row = p
    while tl.load(start_ptr + row) >= 0:
        row = tl.load(start_ptr + row)
    x = tl.load(x_ptr + row)
    tl.store(y_ptr + p, x * x)


def search(kernel, x, start):
    y = torch.empty_like(x)
    kernel[(x.numel(),)](start, x, y)
    return y
