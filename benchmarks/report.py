"""The table of measured rows, as markdown."""

from __future__ import annotations

COLUMNS = {
    "ours": "ours",
    "tuned": "ours, tuned",
    "pytorch": "PyTorch",
    "compiled": "torch.compile",
    "liger": "Liger",
    "fla": "fla",
    "fla_loop": "fla, loop",
    "cudnn": "cuDNN",
    "handwritten": "hand-written",
}


def _time(entry: dict | None) -> str:
    """The waiting time and, in brackets, the GPU time."""
    if entry is None:
        return ""
    if "absent" in entry:
        return "absent"
    if "error" in entry:
        return "failed"
    gpu = entry.get("gpu_us")
    return f"{entry['us']:.0f}" + (f" ({gpu:.0f})" if gpu else "")


def _ratio(row: dict, who: str) -> str:
    """Our GPU time divided by theirs, or waiting times if the profiler saw nothing."""
    ours, theirs = row.get("ours", {}), row.get(who, {})
    for key in ("gpu_us", "us"):
        if ours.get(key) and theirs.get(key):
            return f"{ours[key] / theirs[key]:.2f}"
    return ""


def _streamed(row: dict, bandwidth: float | None) -> str:
    """The bandwidth for the least memory traffic, relative to that of a copy."""
    microseconds = row.get("ours", {}).get("gpu_us")
    if not (microseconds and bandwidth and "bytes" in row):
        return ""
    return f"{row['bytes'] / (1e-6 * microseconds) / bandwidth:.2f}"


def _number(row: dict, who: str, key: str, scale: float = 1.0) -> str:
    value = row.get(who, {}).get(key)
    return "" if value is None else f"{value * scale:.0f}"


def table(header: list[str], lines: list[list[str]]) -> list[str]:
    """Lines of a Markdown table, and an empty line."""
    texts = ["| " + " | ".join(cells) + " |" for cells in [header, *lines]]
    return [texts[0], "|" + "---|" * len(header), *texts[1:], ""]


def _times(rows, columns, bandwidth) -> list[str]:
    others = [who for who in columns if who not in ("ours", "tuned")]
    header = ["backward of", *(f"{COLUMNS[who]}, µs" for who in columns)]
    header += [*(f"ours / {COLUMNS[who]}" for who in others), "of copy", "difference"]
    lines = []
    for row in rows:
        if "error" in row:
            lines.append([row["name"], "failed", *[""] * (len(header) - 2)])
            continue
        difference = row["ours"].get("difference")
        lines.append(
            [row["name"], *(_time(row.get(who)) for who in columns)]
            + [_ratio(row, who) for who in others]
            + [_streamed(row, bandwidth), "" if difference is None else f"{difference:.1e}"]
        )
    return table(header, lines)


def _memory(rows, columns) -> list[str]:
    whos = [who for who in columns if who != "tuned"]
    lines = [
        [row["name"], *(_number(row, who, "saved_bytes", 2**-10) for who in whos)] for row in rows
    ]
    return table(["saved for the backward, KiB", *(COLUMNS[who] for who in whos)], lines)


def _compilation(rows) -> list[str]:
    header = ["compiling", "differentiating, ms", "our first calls, ms"]
    header += ["hand-written backward, ms", "ratio"]
    lines = []
    for row in rows:
        own = row.get("ours", {})
        # The backward's kernels are compiled during the forward, if they can be predicted.
        ours = own.get("first_forward_ms", 0) + own.get("first_backward_ms", 0)
        theirs = row.get("handwritten", {}).get("compile_backward_ms")
        lines.append(
            [row["name"], _number(row, "ours", "differentiate_ms")]
            + [f"{ours:.0f}" if ours else ""]
            + [_number(row, "handwritten", "compile_backward_ms")]
            + [f"{ours / theirs:.2f}" if ours and theirs else ""]
        )
    return table(header, lines)


def _reasons(rows) -> list[str]:
    reasons = [f"- {row['name']}: {row['error']}" for row in rows if "error" in row]
    for row in rows:
        for who, title in COLUMNS.items():
            entry = row.get(who, {})
            if "error" in entry:
                reasons.append(f"- {row['name']}, {title}: {entry['error']}")
    absent = {
        f"- absent: {entry['absent']}"
        for row in rows
        for entry in (row.get(who, {}) for who in COLUMNS)
        if "absent" in entry
    }
    return reasons + sorted(absent)


def markdown(rows: list[dict], machine: str, bandwidth: float | None = None) -> str:
    """Tables of times, memory and compilation, followed by the reasons of failures."""
    columns = [who for who in COLUMNS if any(who in row for row in rows)]
    copy = f" A copy moves {bandwidth / 1e12:.2f} TB/s." if bandwidth else ""
    lines = [
        f"Measured on {machine}.{copy} Times are medians around the call, in brackets GPU work "
        "alone; ratios are of GPU work, smaller is better. *Of copy*: the bandwidth at which "
        "upstream gradients and needed inputs are read, and gradients written, once, over that of "
        "a copy. Difference: relative L2 distance of our gradients from PyTorch's (from the first "
        "other's, where there is none) in the same precision.",
        "",
        *_times(rows, columns, bandwidth),
        *_memory([row for row in rows if "error" not in row], columns),
        *_compilation([row for row in rows if "error" not in row]),
        *_reasons(rows),
    ]
    return "\n".join(lines).rstrip() + "\n"
