"""The table of measured rows, as markdown."""

from __future__ import annotations

COLUMNS = [("ours", "ours"), ("pytorch", "PyTorch"), ("compiled", "torch.compile")]
COLUMNS += [("handwritten", "hand-written")]


def _time(entry: dict | None) -> str:
    """Waiting time and, in brackets, the GPU's own."""
    if entry is None:
        return ""
    if "error" in entry:
        return "failed"
    gpu = entry.get("gpu_us")
    return f"{entry['us']:.0f}" + (f" ({gpu:.0f})" if gpu else "")


def _ratio(row: dict, who: str) -> str:
    """Our GPU time over theirs, or the waiting times where the profiler saw nothing."""
    ours, theirs = row.get("ours", {}), row.get(who, {})
    for key in ("gpu_us", "us"):
        if ours.get(key) and theirs.get(key):
            return f"{ours[key] / theirs[key]:.2f}"
    return ""


def markdown(rows: list[dict], machine: str) -> str:
    """One line a kernel; the reasons of what failed follow the table."""
    columns = [(key, title) for key, title in COLUMNS if any(key in row for row in rows)]
    others = [(key, title) for key, title in columns if key != "ours"]
    header = ["backward of"] + [f"{title}, µs" for _, title in columns]
    header += [f"ours / {title}" for _, title in others] + ["difference"]
    lines = [f"Measured on {machine}. Times are medians around the call, in brackets GPU work"]
    lines[0] += " alone; ratios are of GPU work, smaller is better. Difference: relative L2"
    lines[0] += " distance of our gradients from PyTorch's in the same precision."
    lines += ["", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    reasons = []
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['name']} | failed |" + " |" * (len(header) - 2))
            reasons.append(f"- {row['name']}: {row['error']}")
            continue
        difference = row.get("ours", {}).get("difference")
        cells = [f"{row['name']}"] + [_time(row.get(key)) for key, _ in columns]
        cells += [_ratio(row, key) for key, _ in others]
        cells.append(f"{difference:.1e}" if difference is not None else "")
        lines.append("| " + " | ".join(cells) + " |")
        for key, title in columns:
            if "error" in row.get(key, {}):
                reasons.append(f"- {row['name']}, {title}: {row[key]['error']}")
    return "\n".join(lines + ([""] + reasons if reasons else [])) + "\n"
