#!/usr/bin/env python3
"""The page of a report in headless Chromium: what is on it, how fast it is, what it prints to the
console; and screenshots in build/pages, to look at.

    python3 tests/page_test.py --command build/dev/bin/penstock [--shots build/pages]
"""

import argparse
import html
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
SPANS = 1_000_000

# Runs in the page, after its own script, and writes what it found into the document.
PROBE = """
<script>
{
const found = {};
const page = window.penstockReport;
found.ready = document.documentElement.dataset.ready;
found.sections = [...document.querySelectorAll("main section")].filter((s) => !s.hidden)
  .map((s) => (s.querySelector("h2") || { textContent: "figures" }).textContent);
found.verdict = document.getElementById("verdict").textContent;
found.lanes = page.lanes.map((lane) => lane.name);
found.events = page.events.count;
found.ops = [...document.querySelectorAll("#ops tbody tr")].map((row) => row.cells[0].textContent);
found.images = document.images.length;
found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const context = document.getElementById("timeline").getContext("2d");
const seen = () => new Set(new Uint32Array(context.getImageData(0, 0, context.canvas.width,
  context.canvas.height).data.buffer)).size;
found.colors = seen();
found.opened = performance.now();
const all = [page.view.from, page.view.to], span = all[1] - all[0];
let frames = 0;
const began = performance.now();
for (; frames < 60; frames += 1) {
  const part = span * (0.5 ** (frames % 12));
  const at = all[0] + (span - part) * ((frames * 7) % 60) / 60;
  page.view.from = at;
  page.view.to = at + part;
  page.draw();
  context.getImageData(0, 0, 1, 1);  // waits until it is drawn
}
found.frame = (performance.now() - began) / frames;
const key = (name) => document.getElementById("timeline").dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
key("0");
const whole = page.view.to - page.view.from;
key("+");
found.zoomed = (page.view.to - page.view.from) / whole;
key("ArrowRight");
found.moved = page.view.from > all[0];
key("0");
found.restored = Math.abs((page.view.to - page.view.from) / whole - 1) < 1e-9;
const out = document.createElement("pre");
out.id = "found";
out.textContent = JSON.stringify(found);
document.body.append(out);
}
</script>
"""


def browse(page: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={profile}", "--enable-logging=stderr", "--hide-scrollbars", *options,
             page.as_uri()], capture_output=True, text=True, timeout=240, check=True)


def probe(page: pathlib.Path, size: str = "1200,900") -> dict:
    probed = page.with_suffix(".probe.html")
    probed.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    done = browse(probed, "--dump-dom", f"--window-size={size}")
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert match, done.stderr[-2000:]
    found = json.loads(html.unescape(match[1]))
    found["console"] = [line for line in done.stderr.splitlines()
                        if "CONSOLE" in line and "multiple readback" not in line.lower()]
    return found


def penstock(*arguments: object) -> str:
    return subprocess.run([OPTIONS.command, *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout


def write_trace(path: pathlib.Path, spans: int) -> None:
    """A trace of eight threads, as `Report::save` writes it."""
    draw = random.Random(7)
    with path.open("w") as out:
        out.write('{"displayTimeUnit":"ms","traceEvents":[\n'
                  '{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"penstock"}}')
        for thread in range(8):
            out.write(',\n{"ph":"M","name":"thread_name","pid":1,"tid":%d,"args":{"name":"ps-%d"}}'
                      % (thread + 1, thread))
        clocks = [0.0] * 8
        for i in range(spans):
            thread = i % 8
            took = draw.expovariate(1 / 40)
            out.write(',\n{"ph":"X","name":"op %d","cat":"op","pid":1,"tid":%d,"ts":%.3f,'
                      '"dur":%.3f,"args":{"step":%d,"rows":1,"sample":%d,"op":%d}}'
                      % (i % 5, thread + 1, clocks[thread], took, i // 64, i, i % 5))
            clocks[thread] += took + draw.random() * 5
        totals = {"format": 1, "steps": spans // 64, "rows": spans, "wall": clocks[0] / 1e6,
                  "ended": True, "facts": {"threads": 8, "cores": 8, "dataset": "made up"},
                  "work": 8 * clocks[0] / 1e6,
                  "waits": {"count": 9, "seconds": clocks[0] / 2e6, "busy": 4 * clocks[0] / 1e6}}
        out.write(',\n{"ph":"M","name":"penstock_totals","pid":1,"tid":0,"args":%s}\n]}\n'
                  % json.dumps(totals))


class PageTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def page_of_a_run(self) -> pathlib.Path:
        penstock("demo", "--samples", 3000, "--work-us", 100, "--report", self.folder / "runs")
        page = self.folder / "run.html"
        penstock("report", self.folder / "runs", "--html", page)
        return page

    def test_a_page_shows_everything_and_prints_nothing_to_the_console(self) -> None:
        found = probe(self.page_of_a_run())
        self.assertEqual(found["ready"], "yes")
        self.assertEqual(found["console"], [])
        self.assertTrue(found["verdict"].startswith("Training waited"), found["verdict"])
        for title in ("figures", "Timeline", "Over time", "Time by operation", "Plan",
                      "Wait before each step", "Decisions", "Slowest calls"):
            self.assertIn(title, found["sections"])
        self.assertEqual(found["lanes"][0], "training")
        self.assertGreaterEqual(len(found["lanes"]), 2)
        self.assertGreater(found["events"], 100)
        self.assertGreater(found["colors"], 4)
        self.assertIn("range", " ".join(found["ops"]))
        self.assertEqual(found["images"], 0)
        self.assertAlmostEqual(found["zoomed"], 0.5, 3)
        self.assertTrue(found["moved"] and found["restored"])

    def test_a_page_fits_a_phone(self) -> None:
        found = probe(self.page_of_a_run(), "500,800")  # Chromium's windows are not narrower
        self.assertLessEqual(found["wide"], 0)
        self.assertEqual(found["console"], [])

    def test_a_million_spans_are_shown(self) -> None:
        trace = self.folder / "large.json"
        write_trace(trace, SPANS)
        page = self.folder / "large.html"
        penstock("report", trace, "--html", page)
        found = probe(page)
        print(f"page with {SPANS:,} spans: opened in {found['opened'] / 1e3:.2f} s, "
              f"{found['frame']:.1f} ms a frame")
        self.assertEqual(found["events"], SPANS)
        self.assertEqual(found["console"], [])
        self.assertEqual(len(found["lanes"]), 9)
        if OPTIONS.speed:
            self.assertLess(found["opened"], 2000)
            self.assertLess(found["frame"], 1000 / 30)

    def test_screenshots(self) -> None:
        if not OPTIONS.shots:
            self.skipTest("only with --shots")
        page = self.page_of_a_run()
        shots = pathlib.Path(OPTIONS.shots)
        shots.mkdir(parents=True, exist_ok=True)
        for name, options in {
                "light": ("--window-size=1200,2400",),
                "dark": ("--window-size=1200,2400", "--blink-settings=preferredColorScheme=0"),
                "phone": ("--window-size=500,3600",)}.items():
            browse(page, f"--screenshot={(shots / name).resolve()}.png", *options)
            self.assertGreater((shots / f"{name}.png").stat().st_size, 10_000)
        browse(page, f"--print-to-pdf={(shots / 'print').resolve()}.pdf")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--command", required=True)
    arguments.add_argument("--shots", default="")
    arguments.add_argument("--speed", action="store_true", help="check the limits of time too")
    OPTIONS = arguments.parse_args()
    OPTIONS.command = str(pathlib.Path(OPTIONS.command).resolve())
    unittest.main(argv=[sys.argv[0]], verbosity=1)
