// One small chart a curve, drawn by uPlot (https://github.com/leeoniya/uPlot, MIT), which `make web-assets` fetches.

import { find, make, short, write } from "./dom.js";
import { Series } from "./series.js";

const MOST = 24; // curves: each is a canvas, and a run may have any number of metrics
const EVERY = 250; // milliseconds between two drawings
const HEIGHT = 150; // pixels; page.css keeps the same room

/** The curves by key, in the order in which they came. */
export const curves = new Map();
const left = new Set(); // keys for which there was no room
let drawing = null;

/** Take the points of a status. */
export function takeStatus({ step, loss, queue, metrics }) {
  point("loss", "loss", step, loss);
  // While a run is paused the queue grows and the step stands still: its curve goes over time.
  point("queue", "queue, samples", Date.now() / 1000, queue, true);
  for (const [name, value] of Object.entries(metrics ?? {})) {
    // A status repeats what the last test found: only another value is a new point.
    if (curves.get(keyOf(name))?.series.last !== value) point(keyOf(name), name, step, value);
  }
}

/** Take metrics that were reported at a step: `{step, name: value, ...}`. */
export function takeMetrics({ step, metrics }) {
  for (const [name, value] of Object.entries(metrics)) point(keyOf(name), name, step, value);
}

const keyOf = (metric) => `metric ${metric}`; // one may be called "loss" or "queue"

function point(key, title, x, y, time = false) {
  if (!Number.isFinite(x) || !Number.isFinite(y)) return;
  const curve = curves.get(key) ?? opened(key, title, time);
  if (!curve) return;
  curve.series.add(x, y);
  curve.changed = true;
  drawing ??= setTimeout(draw, EVERY);
}

function opened(key, title, time) {
  if (curves.size >= MOST) {
    if (left.size < 1000) left.add(key);
    write(find("surplus"), `${left.size} more metrics are not drawn.`);
    return null;
  }
  curves.set(key, new Curve(title, time));
  return curves.get(key);
}

function draw() {
  drawing = null;
  if (document.hidden) return;
  for (const curve of curves.values()) if (curve.changed) curve.draw();
}

/** A figure with a title, the last value and the chart. */
class Curve {
  series = new Series();
  changed = false;

  constructor(title, time) {
    this.time = time;
    this.value = make("span", { className: "value" });
    this.box = make("div", { className: "plot", role: "img", ariaLabel: `${title} over ${time ? "time" : "steps"}` });
    const caption = make("figcaption", {}, make("span", { className: "name", textContent: title, title }), this.value);
    find("plots").append(make("figure", {}, caption, this.box));
    if (window.uPlot) this.#open();
    else this.box.append(make("p", { textContent: "The curve would be here: run “make web-assets”." }));
  }

  draw() {
    this.changed = false;
    this.chart?.setData(this.series.points);
    this.#tell();
  }

  /** Write the value under the cursor, or the last one. */
  #tell() {
    const place = this.chart?.cursor.idx;
    const [x, y] = place == null ? [] : this.chart.data.map((part) => part[place]);
    write(this.value, y == null ? short(this.series.last) : `${short(y)} at ${this.time ? clock(x) : x}`);
  }

  #open() {
    const axis = { stroke: () => colour("--muted"), grid: { stroke: () => colour("--line"), width: 1 } };
    const ticks = { ...axis, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const options = {
      width: this.box.clientWidth,
      height: HEIGHT,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { setScale: false, x: false } },
      scales: { x: { time: this.time } },
      series: [{}, { stroke: () => colour("--curve"), width: 1.5, points: { size: 4 } }],
      axes: [
        { ...ticks, size: 26, values: (_, values) => values.map(this.time ? clock : short), space: this.time ? 70 : 50 },
        { ...ticks, size: 52, values: (_, values) => values.map(short) },
      ],
      hooks: { setCursor: [() => this.#tell()] },
    };
    this.chart = new window.uPlot(options, this.series.points, this.box);
    new ResizeObserver(() => this.chart.setSize({ width: this.box.clientWidth, height: HEIGHT })).observe(this.box);
  }
}

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function drawAll() {
  for (const curve of curves.values()) curve.changed = true;
  draw();
}

document.addEventListener("visibilitychange", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const curve of curves.values()) curve.chart?.redraw(false, true);
});
