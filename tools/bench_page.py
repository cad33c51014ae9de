#!/usr/bin/env python3
"""Writes docs/benchmarks.md and its charts from bench/results; --check fails when they differ.

The results come from `make rivals`, `make bench` and `make bench-python`. Nothing on the page is
typed by hand, so that no figure can stand there that was not measured.
"""

import argparse
import json
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
DOCS = ROOT / "docs"
WORKLOADS = {
    "W1 photos": "10,000 PNGs of 100 x 100, crops of photos: decode, resize to 64 x 64, flip, "
                 "brightness, float32, shuffled, batches of 64",
    "W1 noise": "the same with 10,000 PNGs of noise, which hardly compress",
    "W2": "1,000 photos of 500 x 375 as JPEG, four times: random resized crop to 224 x 224, flip, "
          "normalize, float32, shuffled, batches of 64",
}
CHARTED = {"W1 photos": "Small PNGs (W1 photos)", "W2": "JPEG photos (W2)"}
OURS = ("penstock", "penstock, C++")


def load(name: str) -> dict:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def bars(summary: dict, name: str) -> list[tuple[str, float]]:
    """Who and how many images a second, fastest first, without the bare decoders."""
    rows = [(who, row["items_per_s"]) for who, row in summary[name].items()
            if isinstance(row, dict) and not who.startswith("reference")]
    return sorted(rows, key=lambda row: -row[1])


def chart(summary: dict, name: str, cores: int) -> str:
    """A bar chart as SVG that reads on light and on dark pages."""
    rows, title = bars(summary, name), CHARTED[name]
    height, left, width = 26, 190, 760
    scale = (width - left - 90) / max(rate for _, rate in rows)
    total = 40 + height * len(rows) + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" '
             f'width="{width}" height="{total}" role="img" aria-label="{escape(title)}, images per '
             'second" font-family="system-ui, sans-serif" font-size="13">',
             "<style>text{fill:#333}.us{fill:#1f6feb}.peer{fill:#9aa4b2}"
             "@media (prefers-color-scheme:dark){text{fill:#ddd}.peer{fill:#6b7583}}</style>",
             f'<text x="4" y="20" font-weight="600">{escape(title)}: images per second on {cores} '
             "cores (more is better)</text>"]
    for number, (who, rate) in enumerate(rows):
        y = 36 + number * height
        kind, weight = ("us", "600") if who in OURS else ("peer", "400")
        label = f"{who}, Python" if who == "penstock" else who
        lines += [f'<text x="{left - 8}" y="{y + 15}" text-anchor="end" font-weight="{weight}">'
                  f"{escape(label)}</text>",
                  f'<rect class="{kind}" x="{left}" y="{y}" width="{max(rate * scale, 1):.1f}" '
                  f'height="{height - 6}" rx="2"/>',
                  f'<text x="{left + rate * scale + 6:.1f}" y="{y + 15}">{rate:,.0f}</text>']
    return "\n".join([*lines, "</svg>"]) + "\n"


def stated(facts: dict) -> str:
    return (f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
            f"Linux {facts['kernel']}, Python {facts['python']}; {facts['date']}, commit "
            f"`{facts['commit']}`")


def images(rivals: dict) -> list[str]:
    lines = ["## Images, compared with other loaders: `make rivals`", "",
             f"Medians of {rivals['rounds']} interleaved rounds after a warm-up, in alternating "
             "order, one process per run, files in the page", "cache. Every loader may use two "
             "threads or worker processes. \"Cores\" is CPU time over wall time; the first batch "
             "counts", "from the start of the process, imports included. The last column is the "
             "median ratio of penstock from Python to that row. A row well below "
             "two cores did not use both of them with its settings.", "",
             stated(rivals["facts"]) + ".", ""]
    lines += [f"![{name}, images per second](benchmarks_{name.split()[0].lower()}.svg)\n"
              for name in CHARTED]
    for name, about in WORKLOADS.items():
        lines += [f"### {name}", "", f"{about[0].upper()}{about[1:]}.", "",
                  "| loader | images/s | cores | CPU ms per image | memory MB | first batch s | "
                  "resize | penstock is |", "|---|---:|---:|---:|---:|---:|---|---:|"]
        for who, row in rivals["summary"][name].items():
            if isinstance(row, str):
                lines.append(f"| {who} | did not run: {row} | | | | | | |")
                continue
            label = {"penstock": "**penstock, Python**", "penstock, C++": "**penstock, C++**",
                     "reference, 1 threads": "bare decoding, 1 thread",
                     "reference, 2 threads": "bare decoding, 2 threads"}.get(who, who)
            figures = [f"{row['items_per_s']:,.0f}"]
            figures += [format(row[key], style) if key in row else "" for key, style in
                        (("cores", ".2f"), ("cpu_ms_per_item", ".3f"), ("rss_mb", ",.0f"),
                         ("first_batch_s", ".2f"))]
            filters = rivals["filters"].get(who, "antialiased" if who in OURS else "")
            lines.append(f"| {label} | {' | '.join(figures)} | {filters} | "
                         f"{row['penstock']:.2f}x |")
        lines.append("")
    return lines


def ratios(title: str, results: dict, about: str) -> list[str]:
    lines = [f"## {title}", "", about, "", stated(results["facts"]) + ".", "",
             "| ratio | median | rounds | required |", "|---|---:|---|---|"]
    for row in results["ratios"]:
        spread = f"{min(row['rounds']):.2f} to {max(row['rounds']):.2f}"
        wanted = row["wanted"]
        text = "" if wanted is None else wanted if isinstance(wanted, str) else f"{wanted:.2f}"
        lines.append(f"| {row['name'].strip()} | {row['median']:.2f} | {spread} | {text} |")
    return [*lines, ""]


def pages() -> dict[Path, str]:
    rivals, engine, python = load("rivals.json"), load("engine.json"), load("python.json")
    assert all("facts" in results for results in (rivals, engine, python)), "measure again"
    lines = ["# Benchmarks", "",
             "Written by `tools/bench_page.py` from the results in `bench/results`, which contain "
             "every run.", "", *images(rivals),
             *ratios("The engine compared with NumPy and bare threads: `make bench`", engine,
                     "Each ratio is computed within a round; both sides use the same number of "
                     "threads."),
             *ratios("Python compared with C++ and NumPy: `make bench-python`", python,
                     "W3 is tiny elements (5 M integers, `x * 2 + 1`, shuffled); W4 is 5 ms of "
                     "Python work and 1.5 MB per item.")]
    cores = rivals["facts"]["cores"]
    return {DOCS / "benchmarks.md": "\n".join(lines).rstrip() + "\n",
            **{DOCS / f"benchmarks_{name.split()[0].lower()}.svg":
               chart(rivals["summary"], name, cores) for name in CHARTED}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = 0
    for path, text in pages().items():
        if arguments.check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                print(f"{path.relative_to(ROOT)}: differs from the results -> tools/bench_page.py")
                stale = 1
        else:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return stale


if __name__ == "__main__":
    sys.exit(main())
