// Commands: sent once each, and the list of the last ones with their answers, whoever gave them.

import { json, NoToken, Refusal, send } from "./api.js";
import { fill, find, sleep, told, write } from "./dom.js";

const SHOWN = 50; // rows of the list
const LONGEST = 300; // characters of a cell
const TRIES = 5; // when the connection is lost
const PATIENCE = 10; // seconds the service holds a call; the page asks again after that

/** The rows, newest first: `{number, command, arguments, step, text, bad}`; no number where nothing was done. */
export const rows = [];

/** Take an answer, from a call or from the events, which tell the arguments too. Each is listed once. */
export function answered({ number, command, step, result, error, ...rest }) {
  const text = error ?? (result == null ? "done" : told(result));
  const place = rows.findIndex((row) => row.number === number);
  const row = { number, command, arguments: rest.arguments ?? rows[place]?.arguments, step, text, bad: error != null };
  if (place < 0) rows.unshift(row);
  else rows[place] = row;
  show();
}

/** Give a command; return whether it was carried out. Its outcome is written below the buttons and in the list. */
export async function command(name, path, options = {}) {
  write(find("answer"), `${name}: waiting for the answer`);
  try {
    const answer = await carried(path, options);
    answered(answer);
    const failed = answer.error != null;
    write(find("answer"), failed ? `${name} failed: ${answer.error}` : `${name}: done after step ${answer.step}`);
    return !failed;
  } catch (error) {
    write(find("answer"), `${name}: ${error.message}`);
    rows.unshift({ command: name, text: error.message, bad: true });
    show();
    return false;
  }
}

/** Call until there is an answer. The key is the same each time, so the command is carried out once. */
async function carried(path, options) {
  const address = `${path}${path.includes("?") ? "&" : "?"}timeout=${PATIENCE}`;
  const headers = { ...options.headers, "Idempotency-Key": key() };
  for (let lost = 0; ; await sleep(1000)) {
    try {
      const response = await send(address, { method: "POST", ...options, headers });
      if (response.status === 500) return await failed(response);
      const answer = await json(response);
      if (response.status !== 202) return answer;
    } catch (error) {
      if (error instanceof Refusal || error instanceof NoToken) throw error;
      if (++lost >= TRIES) throw new Error("There is no connection. Whether it was carried out is not known.");
    }
  }
}

/** A command that went wrong has a number and an error; anything else of this status is the service's own fault. */
async function failed(response) {
  const answer = await response.json().catch(() => ({}));
  if (answer.number == null) throw new Refusal(answer.error ?? "The service failed.", 500);
  return answer;
}

/** 128 random bits. `crypto.randomUUID` is not there on pages without TLS. */
function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function show() {
  rows.length = Math.min(rows.length, SHOWN);
  const body = find("commands");
  fill(body, rows.map((each) => [shown(each.number), asked(each), shown(each.step), each.text.slice(0, LONGEST)]));
  rows.forEach((each, place) => body.rows[place].classList.toggle("bad", each.bad));
}

const asked = ({ command, arguments: given = {} }) => `${command} ${told(given)}`.trim().slice(0, LONGEST);
const shown = (number) => (number == null ? "-" : String(number));
