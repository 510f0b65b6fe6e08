// The onion's drawing, and what each ring costs.

import { json, send } from "./api.js";
import { fill, find, make, short, write } from "./dom.js";

const HOOKS = ["on_batch", "on_pass", "initialize", "center"]; // what runs most often comes first

/** Fetch the onion and show it. */
export async function showOnion() {
  const { drawing, timed, rings } = await json(await send("onion"));
  write(find("drawing"), drawing);
  write(find("untimed"), timed ? "" : "Costs are measured in a timed onion only: runner.timed().");
  const rows = [...rings].sort((one, other) => HOOKS.indexOf(one.hook) - HOOKS.indexOf(other.hook));
  fill(find("costs"), timed ? rows.map((ring) => cells(ring, rings)) : []);
}

function cells({ name, hook, calls, way_in_us: wayIn, way_out_us: wayOut }, rings) {
  const whole = sum(rings.filter((ring) => ring.hook === hook));
  const share = whole > 0 ? (calls * (wayIn + wayOut)) / whole : 0;
  const meter = make("meter", { value: share.toFixed(3), ariaLabel: `${name}, share of ${hook}` });
  return [name, hook, short(calls), fixed(wayIn), fixed(wayOut), meter];
}

const sum = (rings) => rings.reduce((total, ring) => total + ring.calls * (ring.way_in_us + ring.way_out_us), 0);
const fixed = (microseconds) => (Number.isFinite(microseconds) ? microseconds.toFixed(1) : "-");
