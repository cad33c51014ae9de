"""Compares the skipped rows of a session, and the failure that ended it, with the model.

A row that left its share is listed once, by the loader that serves the share, with its step. A row
that left a stream is listed by at least one loader, and by none of them more often than it left.
Rows that left after the last step may be listed already.
"""

from collections import Counter

ENTRIES_KEPT_MAX = 1_000  # a ledger's; earlier ones are only counted


def failure_difference(got: dict, want: dict, session: dict) -> str | None:
    if (got["error"] is None) != (want["error"] is None):
        return f"ended with {got['error']}, expected a failure of one of {want['error']}"
    if got["error"] and got["error"]["sample"] not in [list(key) for key in want["error"]]:
        return f"failed with {got['error']}, expected one of the samples {want['error']}"
    if got["error"] and "faulty" not in got["error"]["what"]:
        return f"failed with {got['error']}, which is not what the function threw"
    if session.get("on_error", "raise") == "raise":
        listed = sum(ledger["count"] for ledger in got["ledgers"])
        return f"{listed} samples in the ledgers, but none may be left out" if listed else None
    return ledgers_difference(got["ledgers"], want, session["local"])


def ledgers_difference(ledgers: list, want: dict, local: int) -> str | None:
    """Rows are counted as (epoch, source, number): several rounds may skip the same one."""
    left, maybe_left = Counter(want["left"]), Counter(want["maybe_left"])
    most_often: Counter = Counter()
    for number, ledger in enumerate(ledgers):
        served = range(number * local, (number + 1) * local)
        from_shares = [(step["epoch"], step["step"], *key) for step in want["steps"]
                       for share in served for key in step["shares"][share]["left"]]
        entries = [tuple(entry[:4]) for entry in ledger["entries"]]
        kept_all = ledger["count"] == len(entries)
        if not kept_all and len(entries) < ENTRIES_KEPT_MAX:
            return f"ledger {number}: {len(entries)} entries of {ledger['count']}"
        for entry in ledger["entries"]:
            if "faulty" not in entry[4]:
                return f"ledger {number}: {entry} is not what the function threw"
        streamed = Counter((entry[0], *entry[2:]) for entry in entries)
        streamed.subtract((entry[0], *entry[2:]) for entry in from_shares)
        missing = [key for key, times in streamed.items() if times < 0]
        if missing and kept_all:
            return f"ledger {number}: (epoch, source, number) {missing[0]} is missing"
        for key, times in streamed.items():
            if times > left[key] + maybe_left[key]:
                return (f"ledger {number}: (epoch, source, number) {key} is listed {times} times "
                        f"too often, expected at most {left[key] + maybe_left[key]}")
        misplaced = [entry for entry in from_shares if entry not in entries]
        if misplaced and kept_all:
            return f"ledger {number}: (epoch, step, source, number) {misplaced[0]} is missing"
        most_often |= streamed if kept_all else left
    missing = [key for key, times in left.items() if most_often[key] < times]
    return f"no ledger has (epoch, source, number) {missing[0]} of a stream" if missing else None
