"""What many programs came to: how many passed, what was refused and why, which kinds were met."""

from __future__ import annotations

import time
from collections import Counter

from .generate import kinds

FAILURES = ("wrong", "forward", "broken", "crashed")


class Summary:
    """Counts results and prints them."""

    def __init__(self):
        self.statuses: Counter = Counter()
        self.reasons = {"refused": Counter(), "discarded": Counter()}
        self.met, self.judged, self.refused, self.failed = (Counter() for _ in range(4))
        self.schedules, self.types = Counter(), Counter()
        self.failures: list[dict] = []
        self.seconds = 0.0
        self.begin = time.monotonic()

    def add(self, result: dict) -> None:
        status, features = result["status"], result["features"]
        self.statuses[status] += 1
        self.seconds += result.get("seconds") or 0.0
        self.schedules.update(result.get("schedules") or ())
        self.types[result.get("types"), status] += 1
        self.met.update(features)
        if status in self.reasons:
            self.reasons[status][result["reason"]] += 1
        if status == "refused":
            self.refused.update(features)
        elif status == "passed":
            self.judged.update(features)
        elif status in FAILURES:
            self.failures.append(result)
            self.failed.update(features)

    def print(self) -> None:
        """Print what was found."""
        total = max(sum(self.statuses.values()), 1)
        print(f"\n{total} programs in {time.monotonic() - self.begin:.0f} s, ", end="")
        print(f"{self.seconds / total:.2f} s of CPU each: {dict(self.statuses)}")
        print(f"  backward kernels are {dict(self.schedules)}")
        for types in dict.fromkeys(types for types, _ in self.types):
            print(f"  in {types}: { ({s: n for (t, s), n in self.types.items() if t == types}) }")
        for status, reasons in self.reasons.items():
            for reason, count in reasons.most_common():
                print(f"  {status} {count:5}: {reason[:160]}")
        self.print_kinds()

    def print_kinds(self) -> None:
        """Print how often each kind was met, judged, refused and failed."""
        print("  kinds: met, passed, refused, failed")
        for kind in sorted(kinds() | set(self.met)):
            counts = [of[kind] for of in (self.met, self.judged, self.refused, self.failed)]
            note = "" if counts[0] else "  never met"
            note = note or ("" if counts[1] else "  never passed")
            print(f"  {' '.join(f'{n:6}' for n in counts)}  {kind}{note}")
