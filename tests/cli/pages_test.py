"""Every page in a browser (headless Chromium), at 500 and 1400 pixels, light and dark: nothing is wider than the window, no labels of
a chart overlap or are cut, headers stand over their columns, texts can be read. The document is asked and not compared with golden
pictures, whose pixels change with the fonts of each machine and with the browser's version. `pages_test.py FOLDER` also keeps the
pages and their screenshots. Exit code 77: no Chromium."""
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import harness

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
KEEP = pathlib.Path(sys.argv.pop()) if len(sys.argv) == 2 and not sys.argv[1].startswith("-") else None
WRAPPER = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><pre id="out"></pre>
<iframe id="page" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe><script>{script}</script>"""
SCRIPT = r"""
const found = [];
const shown = r => r.width > 0 && r.height > 0;
const words = e => e.textContent.trim().slice(0, 40);
function rgba(text) {
  let m = text.match(/^rgba?\(([^)]*)\)/);
  if (m) { const n = m[1].split(/[ ,/]+/).map(Number); return [n[0] / 255, n[1] / 255, n[2] / 255, n.length > 3 ? n[3] : 1]; }
  m = text.match(/^color\(srgb ([^)]*)\)/);
  if (m) { const n = m[1].split(/[ /]+/).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; }
  return null;
}
const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
function light(c) {
  const [r, g, b] = c.slice(0, 3).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ground(e, view) {  // what is painted behind an element's text
  const layers = [];
  for (; e; e = e.parentElement) {
    const c = rgba(view.getComputedStyle(e).backgroundColor);
    if (c && c[3] > 0) layers.push(c);
    if (c && c[3] === 1) break;
  }
  return layers.reverse().reduce((below, c) => over(c, below), [1, 1, 1, 1]);
}
function look(doc, view, width) {
  if (doc.documentElement.scrollWidth > width) {
    const wide = [...doc.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > width + 0.5 && !e.closest('.scroll'));
    found.push(`wider than the window: ${doc.documentElement.scrollWidth}, by ${wide.slice(0, 2).map(e => e.tagName + ' ' + words(e))}`);
  }
  for (const svg of doc.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
    const boxes = texts.map(t => t.getBoundingClientRect());
    boxes.forEach((b, i) => {
      if (b.left < frame.left - 0.5 || b.right > frame.right + 0.5 || b.top < frame.top - 0.5 || b.bottom > frame.bottom + 0.5)
        found.push(`cut: ${words(texts[i])} in ${svg.getAttribute('aria-label')}`);
      for (let k = i + 1; k < boxes.length; ++k) {
        const c = boxes[k];
        if (Math.min(b.right, c.right) - Math.max(b.left, c.left) > 1 && Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top) > 3)
          found.push(`over each other: ${words(texts[i])} and ${words(texts[k])} in ${svg.getAttribute('aria-label')}`);
      }
    });
  }
  for (const e of doc.querySelectorAll('svg polygon'))
    if (Number(view.getComputedStyle(e).opacity) > 0.5) found.push('an area hides what lies behind it');
  for (const e of doc.querySelectorAll('.key .item'))
    if (e.getClientRects().length > 1) found.push(`a mark apart from its name: ${words(e)}`);
  for (const table of doc.querySelectorAll('table')) {
    const head = table.tHead && table.tHead.rows[0], row = table.tBodies[0] && table.tBodies[0].rows[0];
    if (!head || !row || head.cells.length !== row.cells.length) continue;
    [...head.cells].forEach((h, i) => {
      const side = e => view.getComputedStyle(e).textAlign.replace('start', 'left');
      if (side(h) !== side(row.cells[i])) found.push(`header beside its column: ${words(h)}, ${side(h)} over ${side(row.cells[i])}`);
    });
  }
  for (const e of doc.body.querySelectorAll('*')) {
    if (e.tagName === 'TITLE' || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !shown(e.getBoundingClientRect())) continue;
    const style = view.getComputedStyle(e), ink = rgba(e.closest('svg') ? style.fill : style.color);
    if (!ink) { found.push(`unknown colour ${style.color}`); continue; }
    const behind = ground(e, view), a = light(over([ink[0], ink[1], ink[2], ink[3] * Number(style.opacity)], behind)), b = light(behind);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const mark = /^\W$/.test(words(e));  // of a chart's key
    if (ratio < (mark || parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push(`hard to read, ${ratio.toFixed(2)}: ${words(e)}`);
  }
}
const frame = document.getElementById('page');
frame.addEventListener('load', () => {
  look(frame.contentDocument, frame.contentWindow, frame.clientWidth);
  document.getElementById('out').textContent = JSON.stringify({width: frame.clientWidth, found});
});
"""


class Pages(harness.Case):
    def chromium(self, page, *options):
        return subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={self.folder}/browser",
                               *options, page.as_uri()], capture_output=True, text=True, timeout=120)

    def problems(self, text, width):
        wrapper = self.folder / "wrapper.html"
        wrapper.write_text(WRAPPER.format(width=width, page=html.escape(text), script=SCRIPT))
        result = self.chromium(wrapper, f"--window-size={width + 100},1000", "--virtual-time-budget=4000", "--dump-dom")
        out = re.search(r'<pre id="out">(.+?)</pre>', result.stdout, re.S)
        self.assertTrue(out, f"the browser said nothing: {result.stderr[-2000:]}")
        said = json.loads(html.unescape(out[1]))
        self.assertEqual(said["width"], width)
        return sorted(set(said["found"]))

    def look(self, name, file):
        text = file.read_text()
        self.assertIn("(prefers-color-scheme: dark)", text)
        for width in (500, 1400):
            for theme in ("light", "dark"):
                themed = text.replace("(prefers-color-scheme: dark)", "all") if theme == "dark" else text
                with self.subTest(page=name, width=width, theme=theme):
                    self.assertEqual(self.problems(themed, width), [])
                if KEEP:
                    KEEP.mkdir(exist_ok=True)
                    (KEEP / f"{name}.html").write_text(text)
                    themed_file = self.folder / "themed.html"
                    themed_file.write_text(themed)
                    self.chromium(themed_file, f"--window-size={width},2400", f"--screenshot={KEEP.resolve()}/{name}-{width}-{theme}.png")

    def test_a_run(self):
        page = self.folder / "run.html"
        self.done("train", "cnn", "--data", "synthetic:1x12x12:40:640:160", "--batch", "16", "--epochs", "3", "--schedule", "cosine",
                  "--report", page, "--profile", self.folder / "trace.json")
        self.look("run", page)

    def test_named_classes(self):
        page = self.folder / "classes.html"
        if harness.tutti("data", "fashion-mnist").returncode != 0:
            self.skipTest("fashion-mnist is not installed")
        self.done("train", "mlp", "--layers", "784,16,10", "--data", "fashion-mnist", "--steps", "300", "--report", page)
        self.assertIn(">Ankle boot<", page.read_text())
        self.look("classes", page)

    def test_a_run_that_failed(self):
        page = self.folder / "failed.html"
        result = harness.tutti("train", *harness.MLP, "--optimizer", "sgd", "--lr", "1e30", "--steps", "60", "--no-eval", "--report", page)
        self.assertNotEqual(result.returncode, 0)
        remedy = result.stderr.split("try: ")[1].splitlines()[0]
        self.assertIn(remedy, html.unescape(page.read_text()))
        self.look("failed", page)

    def test_compared_runs(self):
        for lr in ("1e-2", "1e-3"):
            self.done("train", *harness.MLP, "--steps", "1000", "--no-eval", "--lr", lr, "--log-dir", self.folder / f"run-{lr}")
        self.done("compare", self.folder / "run-1e-2", self.folder / "run-1e-3", "--report", self.folder / "runs.html")
        self.look("compare", self.folder / "runs.html")

    def test_parity(self):
        self.done("parity", "--quick", "--ops", "add,matmul,softmax", "--device", "onednn,opencl,reference", "--html", self.folder / "parity.html")
        self.look("parity", self.folder / "parity.html")

    def test_a_benchmark(self):
        self.done("bench", "--quick", "--device", "onednn,opencl", "--models", "mlp,cnn,gpt,lstm", "--ops", "all", "--time", "0.02",
                  "--report", self.folder / "bench.html")
        self.look("bench", self.folder / "bench.html")


if __name__ == "__main__":
    if not CHROMIUM:
        print("no Chromium (scripts/deps.sh --pages)")
        sys.exit(77)
    unittest.main()
