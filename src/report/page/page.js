"use strict";
// The page of a report. All text comes from the data and is set as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["task", "pull", "ready", "delivered", "wait", "op", "read", "replica"];
const KIND = Object.fromEntries(KINDS.map((name, i) => [name, i]));
const byId = (id) => document.getElementById(id);

// Numbers as people read them

function seconds(value) {
  if (value < 0.9995e-3) return `${(value * 1e6).toFixed(value < 1e-5 ? 1 : 0)} us`;
  if (value < 0.9995) return `${(value * 1e3).toFixed(value < 0.01 ? 2 : 0)} ms`;
  if (value < 10) return `${value.toFixed(2)} s`;
  if (value < 120) return `${value.toFixed(0)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}
function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
const whole = (value) => Math.round(value).toLocaleString("en-US");
const rate = (value) => value >= 100 ? whole(value) : value.toFixed(value >= 1 ? 1 : 2);
function percent(part) {
  return `${(100 * part).toFixed(part > 0 && part < 0.0095 ? 1 : 0)} %`;
}

function element(tag, text, parent, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (parent) parent.append(made);
  return made;
}

// Colors: a hue for each operation, with the same lightness

const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function hue(number) { return (212 + number * 137.508) % 360; }
const used = data.ops.map((name, i) => (name ? i : -1)).filter((i) => i >= 0);
/** Operations are numbered with gaps; their colors are not. */
function opColor(number) { return partColor(Math.max(0, used.indexOf(number))); }
function partColor(number) { return `hsl(${hue(number).toFixed(0)} 55% ${dark.matches ? 60 : 52}%)`; }
const PARTS = [["computing", "cpu_seconds", 0], ["Python's lock", "lock_seconds", 4],
  ["worker processes", "process_seconds", 2], ["reading", "read_seconds", 1],
  ["pauses before retries", "retry_seconds", 6], ["waiting, unexplained", "blocked_seconds", 3]];

// The events: columns of numbers, one after the other

function columns() {
  const text = byId("events").textContent.trim();
  const count = data.events;
  if (!count) return { count: 0 };
  const raw = atob(text);
  const all = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) all[i] = raw.charCodeAt(i);
  let at = 0;
  const take = (Type) => {
    const size = Type.BYTES_PER_ELEMENT * count;
    const made = new Type(all.buffer, at, count);
    at += size + (8 - size % 8) % 8;
    return made;
  };
  return { count, start: take(Float64Array), length: take(Float64Array), step: take(Uint32Array),
    rows: take(Uint32Array), sample: take(Uint32Array), lane: take(Uint16Array),
    op: take(Uint16Array), kind: take(Uint8Array) };
}
const events = columns();

// Lanes: a row for training, one for each thread, one for each replica. The spans of a lane do not
// overlap within a depth, so they can be searched by time.

class Spans {
  constructor() { this.indexes = []; }
  finish() {
    const list = Uint32Array.from(this.indexes);
    this.indexes = list;
    let sorted = true;
    for (let i = 1; i < list.length && sorted; i += 1)
      sorted = events.start[list[i]] >= events.start[list[i - 1]];
    if (!sorted) list.sort((a, b) => events.start[a] - events.start[b]);
    this.start = Float64Array.from(list, (i) => events.start[i]);
    this.total = new Float64Array(list.length + 1);
    for (let i = 0; i < list.length; i += 1)
      this.total[i + 1] = this.total[i] + events.length[list[i]];
  }
  /** The first span that begins at `time` or later, from `from` on. */
  from(time, from = 0) {
    let low = from, high = this.start.length;
    for (let step = 1; low + step < high; step *= 2) {
      if (this.start[low + step] >= time) { high = low + step; break; }
      low += step;
    }
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }
}
const lanes = [];
{
  const found = new Map();
  const lane = (key, name, order) => {
    let made = found.get(key);
    if (!made) {
      made = { name, order, depths: [new Spans(), new Spans()] };
      found.set(key, made);
    }
    return made;
  };
  if (events.count) lane("training", "training", 0);
  for (let i = 0; i < events.count; i += 1) {
    const kind = events.kind[i];
    if (kind === KIND.ready || kind === KIND.delivered) continue;
    if (kind === KIND.wait) {
      lane("training", "training", 0).depths[0].indexes.push(i);
    } else if (kind === KIND.replica) {
      const number = events.op[i];
      const known = data.report.replicas[number];
      lane(`r${number}`, known ? known.name : `replica ${number}`, 1 + number).depths[0].indexes.push(i);
    } else {
      const number = events.lane[i];
      const name = data.threads[number] || `thread ${number}`;
      lane(`t${number}`, name, 1e6 + number).depths[kind === KIND.op ? 1 : 0].indexes.push(i);
    }
  }
  lanes.push(...[...found.values()].sort((a, b) =>
    (a.order < 1e6 || b.order < 1e6 ? a.order - b.order
      : a.name.localeCompare(b.name, "en", { numeric: true }))));
  const seen = new Map();
  for (const each of lanes) {
    for (const spans of each.depths) spans.finish();
    const count = (seen.get(each.name) || 0) + 1;
    seen.set(each.name, count);
    if (count > 1) each.name = `${each.name} ${count}`;
  }
}
let last = 1e-6;
for (let i = 0; i < events.count; i += 1) last = Math.max(last, events.start[i] + events.length[i]);
let first = last;
for (let i = 0; i < events.count; i += 1) first = Math.min(first, events.start[i]);

// The timeline

const canvas = byId("timeline");
const view = { from: first, to: last };
const LABEL = 108, ROW = 26, AXIS = 20;
let frameRequested = false;

function colorOf(index) {
  const kind = events.kind[index];
  if (kind === KIND.wait) return style("--wait");
  if (kind === KIND.op) return opColor(events.op[index]);
  if (kind === KIND.replica) return style("--accent");
  if (kind === KIND.read) return partColor(used.length + 1);
  return dark.matches ? "#55606e" : "#b4bdc9";
}
const colors = new Map();
function color(index) {
  const key = events.kind[index] * 65536 + events.op[index];
  let made = colors.get(key);
  if (!made) { made = colorOf(index); colors.set(key, made); }
  return made;
}

function drawSpans(context, spans, top, height, width) {
  const scale = width / (view.to - view.from);
  let i = Math.max(0, spans.from(view.from) - 1);
  while (i < spans.start.length && spans.start[i] < view.to) {
    const begin = (spans.start[i] - view.from) * scale;
    const index = spans.indexes[i];
    const length = events.length[index] * scale;
    context.fillStyle = color(index);
    if (length >= 1) {
      const x = Math.max(0, begin);
      context.fillRect(LABEL + x, top, Math.max(1, Math.min(width, begin + length) - x - 0.3), height);
      i += 1;
      continue;
    }
    // All that begins in this pixel becomes one bar, as opaque as the pixel is covered.
    const pixel = Math.floor(begin);
    const until = view.from + (pixel + 1) / scale;
    const next = Math.max(i + 1, spans.from(until, i));
    if (pixel >= 0 && pixel < width) {
      const covered = (spans.total[next] - spans.total[i]) * scale;
      context.globalAlpha = Math.min(1, 0.25 + 0.75 * covered);
      context.fillRect(LABEL + pixel, top, 1, height);
      context.globalAlpha = 1;
    }
    i = next;
  }
}

function axisStep(span, width) {
  const rough = span / Math.max(2, width / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= rough);
}

function draw() {
  frameRequested = false;
  const ratio = window.devicePixelRatio || 1;
  const outer = canvas.clientWidth, width = Math.max(50, outer - LABEL);
  const height = AXIS + Math.max(1, lanes.length) * ROW;
  if (canvas.width !== Math.round(outer * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(outer * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, outer, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const step = axisStep(view.to - view.from, width);
  for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
    const x = LABEL + (at - view.from) / (view.to - view.from) * width;
    context.fillStyle = style("--line");
    context.fillRect(x, AXIS, 1, height);
    context.fillStyle = style("--quiet");
    context.fillText(axisText(at, step), x + 3, AXIS / 2);
  }
  lanes.forEach((each, row) => {
    const top = AXIS + row * ROW;
    drawSpans(context, each.depths[0], top + 3, each.depths[1].start.length ? 6 : 20, width);
    drawSpans(context, each.depths[1], top + 9, 14, width);
    context.clearRect(0, top, LABEL, ROW);
    context.fillStyle = style("--ink");
    context.fillText(each.name, 6, top + ROW / 2, LABEL - 10);
  });
  if (!lanes.length) {
    context.fillStyle = style("--quiet");
    context.fillText("No events were recorded.", 6, AXIS + ROW / 2);
  }
  byId("range").textContent = lanes.length
    ? `${seconds(view.from / 1e6)} to ${seconds(view.to / 1e6)}` : "";
}
function axisText(at, step) {
  if (step >= 1e6) return `${(at / 1e6).toFixed(0)} s`;
  if (step >= 1e3) return `${(at / 1e6).toFixed(step >= 1e5 ? 1 : step >= 1e4 ? 2 : 3)} s`;
  return `${(at / 1e3).toFixed(step >= 100 ? 1 : 3)} ms`;
}
function redraw() {
  if (frameRequested) return;
  frameRequested = true;
  requestAnimationFrame(draw);
}

function show(from, to) {
  const all = Math.max(1e-3, last - first);
  const span = Math.min(all, Math.max(0.05, to - from));
  const begin = Math.min(Math.max(first, from), last - span);
  view.from = Math.max(first, begin);
  view.to = view.from + span;
  redraw();
}
function zoom(factor, center = (view.from + view.to) / 2) {
  show(center - (center - view.from) * factor, center + (view.to - center) * factor);
}
function move(part) {
  const by = part * (view.to - view.from);
  show(view.from + by, view.to + by);
}
const ACTIONS = { in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25),
  right: () => move(0.25), all: () => show(first, last) };
const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all",
  Home: "all", w: "in", s: "out", a: "left", d: "right" };

function timeAt(x) {
  return view.from + (x - LABEL) / Math.max(50, canvas.clientWidth - LABEL) * (view.to - view.from);
}
function spanAt(x, y) {
  const row = Math.floor((y - AXIS) / ROW);
  if (row < 0 || row >= lanes.length || x < LABEL) return -1;
  const time = timeAt(x), pixel = timeAt(x + 1) - time;
  for (const spans of [lanes[row].depths[1], lanes[row].depths[0]]) {
    const at = spans.from(time + pixel) - 1;
    if (at < 0) continue;
    const index = spans.indexes[at];
    if (events.start[index] + Math.max(events.length[index], pixel) >= time) return index;
  }
  return -1;
}
function describe(index) {
  if (index < 0) return "";
  const kind = events.kind[index], rows = events.rows[index];
  const took = seconds(events.length[index] / 1e6);
  const samples = `${whole(rows)} sample${rows === 1 ? "" : "s"}`;
  if (kind === KIND.wait) return `training waited ${took} for step ${events.step[index]}`;
  if (kind === KIND.op)
    return `${data.ops[events.op[index]] || "op"}: ${took}, ${samples} from id ${events.sample[index]} on, step ${events.step[index]}`;
  if (kind === KIND.read) return `read ahead: ${took}`;
  if (kind === KIND.replica) return `step ${events.step[index]}: ${took}, ${samples}`;
  if (kind === KIND.pull) return `reads the stream: ${took}, ${samples}, up to step ${events.step[index]}`;
  return `task: ${took}, ${samples} of step ${events.step[index]}`;
}

const pointers = new Map();
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const horizontal = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (horizontal) move((event.deltaX || event.deltaY) / canvas.clientWidth);
  else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), timeAt(event.offsetX));
}, { passive: false });
canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
});
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
canvas.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (before === undefined) {
    byId("hover").textContent = describe(spanAt(event.offsetX, event.offsetY));
    return;
  }
  const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId);
  if (others.length === 1) {
    const other = others[0][1];
    const was = Math.abs(before - other), now = Math.abs(event.offsetX - other);
    if (was > 5 && now > 5) zoom(was / now, timeAt(other));
  } else if (others.length === 0) {
    move((before - event.offsetX) / Math.max(50, canvas.clientWidth - LABEL));
  }
  pointers.set(event.pointerId, event.offsetX);
});
canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(event.offsetX)));
canvas.addEventListener("keydown", (event) => {
  const action = KEYS[event.key];
  if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  ACTIONS[action]();
});
document.querySelectorAll("[data-do]").forEach((button) =>
  button.addEventListener("click", () => ACTIONS[button.dataset.do]()));
addEventListener("resize", redraw);
addEventListener("beforeprint", draw);
dark.addEventListener("change", () => { colors.clear(); fill(); redraw(); });

// Charts, drawn as SVG

const SVG = "http://www.w3.org/2000/svg";
function shape(name, parent, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}
/** `values` as steps from left to right; `limit` is a dashed line. */
function chart(id, values, { top, text, label, stroke = "--accent", limit }) {
  const box = byId(id);
  box.replaceChildren();
  const height = box.classList.contains("wide") ? 150 : 120, width = 400;
  const svg = shape("svg", box, { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none",
    role: "img", "aria-label": `${label}: ${text}` });
  const most = Math.max(top || 0, ...values, limit || 0, 1e-12);
  const y = (value) => (height - 3) - value / most * (height - 10);
  const each = width / Math.max(1, values.length);
  let path = `M0 ${height - 3}`;
  values.forEach((value, i) => { path += ` L${(i * each).toFixed(2)} ${y(value).toFixed(2)} L${((i + 1) * each).toFixed(2)} ${y(value).toFixed(2)}`; });
  path += ` L${width} ${height - 3} Z`;
  shape("path", svg, { d: path, fill: style(stroke), "fill-opacity": 0.25, stroke: style(stroke),
    "vector-effect": "non-scaling-stroke" });
  if (limit) shape("line", svg, { x1: 0, x2: width, y1: y(limit), y2: y(limit),
    stroke: style("--bad"), "stroke-dasharray": "4 4", "vector-effect": "non-scaling-stroke" });
  element("p", text, box);
}

function overTime() {
  const { width, intervals } = data.series;
  const per = width / 1e9;
  const none = "nothing was delivered";
  const rates = intervals.map((each) => each.rows / per);
  chart("chart-rate", rates, { label: "Samples per second",
    text: rates.length ? `up to ${rate(Math.max(...rates))} in ${seconds(per)}` : none });
  const waits = intervals.map((each) => Math.min(1, each.waited / width));
  chart("chart-wait", waits, { top: 1, stroke: "--wait", label: "Waiting for input",
    text: rates.length ? `${percent(data.report.wait_share)} of the time` : none });
  const memory = intervals.map((each) => each.bytes);
  const most = Math.max(0, ...memory);
  const budget = data.bytesLimit > 0 && data.bytesLimit < 8 * most ? data.bytesLimit : 0;
  chart("chart-memory", memory, { limit: budget, label: "Memory",
    text: `up to ${bytes(most)}${data.bytesLimit > 0 ? ` of ${bytes(data.bytesLimit)}` : ""}` });
  const flight = intervals.map((each) => each.in_flight);
  chart("chart-flight", flight, { label: "Batches in preparation",
    text: `up to ${whole(Math.max(0, ...flight))}, of at most ${whole(Math.max(0, ...intervals.map((each) => each.window)))}` });
}

function stepWaits() {
  const waits = new Map();
  let from = Infinity, to = -1;
  for (let i = 0; i < events.count; i += 1) {
    const step = events.step[i];
    if (events.kind[i] === KIND.delivered) { from = Math.min(from, step); to = Math.max(to, step); }
    if (events.kind[i] === KIND.wait) waits.set(step, (waits.get(step) || 0) + events.length[i] / 1e6);
  }
  byId("steps-section").hidden = to < 0;
  if (to < 0) return;
  const bars = Math.min(400, to - from + 1), values = new Array(bars).fill(0);
  let longest = 0, at = from;
  for (const [step, wait] of waits) {
    if (step < from || step > to) continue;
    const bar = Math.floor((step - from) * bars / (to - from + 1));
    values[bar] = Math.max(values[bar], wait);
    if (wait > longest) { longest = wait; at = step; }
  }
  chart("chart-steps", values, { stroke: "--wait", label: "Wait before each step",
    text: `steps ${whole(from)} to ${whole(to)}; the longest wait was ${seconds(longest)}, before step ${whole(at)}` });
}

// Text and tables

function list(name, values) {
  byId(`${name}-section`).hidden = !values.length;
  byId(name).replaceChildren(...values.map((text) => element("li", text)));
}
function table(name, rows) {
  const section = byId(`${name}-section`);
  if (section) section.hidden = !rows.length;
  byId(name).tBodies[0].replaceChildren(...rows.map((cells) => {
    const row = element("tr", null);
    cells.forEach((cell) => {
      if (cell instanceof Node) row.append(cell);
      else element("td", cell, row);
    });
    return row;
  }));
}
function partsBar(op, longest) {
  const cell = element("td", null, null, { class: "bar" });
  const bar = element("div", null, cell, { title: PARTS.filter(([, key]) => op[key] > 0)
    .map(([name, key]) => `${name} ${seconds(op[key])}`).join(", ") });
  bar.style.width = `${Math.max(1, 100 * op.seconds / longest)}%`;
  for (const [, key, number] of PARTS) {
    if (!(op[key] > 0)) continue;
    const part = element("i", null, bar);
    part.style.setProperty("--c", partColor(number));
    part.style.flex = `${op[key] / op.seconds} 0 0`;
  }
  return cell;
}

function figures(report) {
  const speed = report.wall_seconds > 0 ? report.rows / report.wall_seconds : 0;
  const items = [["samples per second", rate(speed)], ["waiting for input", percent(report.wait_share)],
    ["input could deliver", `${rate(report.input_rows_per_second)}/s`],
    ["training could take", `${rate(report.consumer_rows_per_second)}/s`],
    ["steps", whole(report.steps)], ["samples", whole(report.rows)], ["time", seconds(report.wall_seconds)],
    ["threads", `${data.threadCount} of ${data.cores} core${data.cores === 1 ? "" : "s"}`]];
  if (report.skipped) items.push(["skipped", whole(report.skipped)]);
  if (report.retried) items.push(["retried", whole(report.retried)]);
  byId("figures").replaceChildren(...items.map(([name, value]) => {
    const item = element("div", null);
    element("dt", name, item);
    element("dd", value, item);
    return item;
  }));
}

function fill() {
  const report = data.report;
  document.title = `penstock report: ${data.dataset || "dataset"}, epoch ${report.epoch}`;
  byId("subject").textContent = `${data.dataset || "dataset"}, epoch ${report.epoch}`;
  byId("verdict").textContent = report.verdict;
  byId("advice").textContent = report.advice;
  document.querySelector("header").className = report.cause === "healthy" ? "good" : "bad";
  byId("cut").hidden = !report.cut;
  byId("cut").textContent = report.cut ? `The recording is cut: ${report.cut}` : "";
  figures(report);
  list("helps", report.what_if.map((each) => each.text));
  list("decisions", data.decisions.map((each) => `${seconds(each.at)}: ${each.text}`));
  list("retries", report.retries);
  list("skipped", report.skipped_samples);
  byId("plan-section").hidden = !report.plan;
  byId("plan").textContent = report.plan;
  const longest = Math.max(1e-12, ...report.ops.map((op) => op.seconds));
  table("ops", report.ops.map((op) => [op.name, partsBar(op, longest), `${percent(op.share)}`,
    whole(op.rows), seconds(op.p50), seconds(op.p99), op.bytes ? bytes(op.bytes) : ""]));
  report.ops.forEach((op, i) => {
    byId("ops").tBodies[0].rows[i].cells[1].append(element("small", seconds(op.seconds)));
  });
  byId("parts").replaceChildren(...PARTS.filter(([, key]) => report.ops.some((op) => op[key] > 0))
    .map(([name, , number]) => {
      const made = element("span", name);
      made.style.setProperty("--c", partColor(number));
      return made;
    }));
  table("replicas", report.replicas.map((each) => [each.name, whole(each.rows),
    seconds(each.busy_seconds), seconds(each.wait_seconds)]));
  table("slowest", report.slowest.map((each) => [seconds(each.seconds), element("td", each.op, null, { class: "text" }),
    element("td", each.rows > 1 ? `${each.sample} and ${each.rows - 1} after it` : each.sample, null, { class: "text" }),
    element("td", each.file, null, { class: "text" }), whole(each.step)]));
  const legend = data.ops.map((name, i) => [name, opColor(i)]).filter(([name]) => name);
  legend.unshift(["training waits", style("--wait")]);
  byId("legend").replaceChildren(...legend.map(([name, c]) => {
    const made = element("span", name);
    made.style.setProperty("--c", c);
    return made;
  }));
  byId("foot").textContent = `penstock ${data.version}; ${whole(events.count)} events` +
    (data.eventsMissed ? `, ${whole(data.eventsMissed)} more are not shown` : "") + ".";
  overTime();
  stepWaits();
}

fill();
draw();
// For tests: whether the page is complete, and what a redraw costs.
document.documentElement.dataset.ready = "yes";
window.penstockReport = { data, events, lanes, view, show, draw };
