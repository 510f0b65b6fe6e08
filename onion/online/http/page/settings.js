// Settings that may be changed while the run goes on, and rings that may be switched.

import { command } from "./commands.js";
import { find, make, parts, short, write } from "./dom.js";

const shown = new Map(); // setting -> its form
const switches = new Map(); // ring -> its checkbox

/** Show the settings of a status: `{name: {value, low, high}}`. A field that someone is writing in is left alone. */
export function showSettings(settings) {
  keep(shown, settings, "settings", form, "No item of this onion has settings.");
  for (const [name, { value, low, high }] of Object.entries(settings)) {
    const { field, range } = shown.get(name);
    Object.assign(field, { min: low ?? "", max: high ?? "" });
    write(range, `is ${short(value)}, from ${short(low)} to ${short(high)}`);
    if (!field.dirty) field.value = value ?? "";
  }
}

/** Show which rings are on: `{name: bool}`. */
export function showSwitches(rings) {
  keep(switches, rings, "switches", box, "No ring of this onion can be switched.");
  for (const [name, on] of Object.entries(rings)) {
    const { field } = switches.get(name);
    if (!field.disabled) field.checked = on;
  }
}

/** Make the parts anew where the names have changed, so that nobody's field goes away under their hands. */
function keep(made, wanted, id, build, none) {
  const names = Object.keys(wanted);
  if (find(id).hasChildNodes() && names.length === made.size && names.every((name) => made.has(name))) return;
  made.clear();
  for (const name of names) made.set(name, build(name));
  const empty = make("p", { className: "none", textContent: none });
  find(id).replaceChildren(...(names.length ? [...made.values()].map((each) => each.whole) : [empty]));
}

function form(name) {
  const field = make("input", { type: "number", step: "any", required: true });
  const range = make("span", { className: "range" });
  const label = make("label", {}, make("span", { className: "name" }, ...parts(name)), range, field);
  const button = make("button", { textContent: "Set", ariaLabel: `Set ${name}` });
  const whole = make("form", { className: "setting" }, label, button);
  field.addEventListener("input", () => (field.dirty = true));
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = JSON.stringify({ [name]: field.valueAsNumber });
    const headers = { "Content-Type": "application/json" };
    if (await command(`set ${name}`, "settings", { method: "PATCH", headers, body })) field.dirty = false;
  });
  return { whole, field, range };
}

function box(name) {
  const field = make("input", { type: "checkbox" });
  field.addEventListener("change", async () => {
    const [verb, wanted] = field.checked ? ["enable", true] : ["disable", false];
    field.disabled = true; // until the answer is there
    const done = await command(`${verb} ${name}`, `rings/${encodeURIComponent(name)}/${verb}`);
    Object.assign(field, { disabled: false, checked: done ? wanted : !wanted });
    field.focus();
  });
  return { whole: make("label", { className: "switch" }, field, make("span", {}, ...parts(name))), field };
}
