// The few things the page does to the document. All text goes in as text: names in it may come from anywhere.

/** The element with an id. */
export const find = (id) => document.getElementById(id);

/** Make an element with properties (`className`, `textContent`, ...) and children. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Change an element's text only where it differs: screen readers say again what is written again. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Fill a table's body: one list of cells a row. A cell is a text, or an element that takes its place. */
export function fill(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, place) => {
    const row = body.rows[place] ?? body.insertRow();
    cells.forEach((cell, column) => put(row.cells[column] ?? row.insertCell(), cell));
  });
}

function put(cell, content) {
  if (typeof content === "string") write(cell, content);
  else if (cell.firstChild?.isEqualNode(content) !== true) cell.replaceChildren(content);
}

/** Write a number in few characters; "-" for none. */
export function short(value) {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return String(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(5)));
}

/** Write an object's values with their names: `rate=0.5 ratio=1`; anything else as JSON. */
export function told(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);
  const words = Object.entries(value).map(([name, each]) => `${name}=${typeof each === "string" ? each : told(each)}`);
  return words.join(" ");
}

/** A name in pieces, so that a long one is broken between its parts. */
export const parts = (name) => name.split(/(?<=[._/])/).flatMap((part) => [part, document.createElement("wbr")]);

/** InterruptibleWait. */
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
