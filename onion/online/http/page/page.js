// The page of a run: follows its events, and gives commands. What stands where: status.js, curves.js, onion.js,
// settings.js and commands.js show one thing each; api.js and stream.js talk to the service.

import { json, NoToken, Refusal, send } from "./api.js";
import { answered, command } from "./commands.js";
import { takeMetrics, takeStatus } from "./curves.js";
import { find, sleep, write } from "./dom.js";
import { showOnion } from "./onion.js";
import { showState, showStatus } from "./status.js";
import { events } from "./stream.js";

const SILENCE = 60_000; // milliseconds without a heartbeat: nobody is there
const LONGEST_WAIT = 10_000; // milliseconds between two tries to connect
const ONION_EVERY = 3000; // milliseconds
const STOP = `stop?why=${encodeURIComponent("asked on the page")}`;

let connected = false;
let ended = false;

/** Follow the run for ever: connect, read events, and connect again when they end. */
async function follow() {
  for (let tries = 0; ; tries++) {
    try {
      await attend(() => (tries = 0));
      lost(ended ? "The run has ended. Waiting for another one here." : "The connection was lost. Trying again.");
    } catch (error) {
      lost(reason(error));
      if (error instanceof NoToken) await clicked();
    }
    await Promise.race([clicked(), sleep(Math.min(500 * 2 ** tries, LONGEST_WAIT))]);
  }
}

function reason(error) {
  if (error instanceof NoToken) return error.message;
  return `${error instanceof Refusal ? error.message : "There is no connection to the run."} Trying again.`;
}

/** Read the events of one connection to its end. */
async function attend(begun) {
  const control = new AbortController();
  let watch;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => control.abort(), SILENCE);
  };
  try {
    alive();
    const response = await send("events", { signal: control.signal });
    if (!response.ok) await json(response);
    found();
    begun();
    for await (const { kind, data } of events(response, alive)) event(kind, JSON.parse(data));
  } finally {
    clearTimeout(watch);
    control.abort();
  }
}

function event(kind, data) {
  if (kind === "status") status(data);
  if (kind === "metrics") takeMetrics(data);
  if (kind === "command") answered(data);
}

function status(data) {
  ended = data.state === "ended";
  showStatus(data);
  takeStatus(data);
}

function found() {
  connected = true;
  find("lost").classList.remove("shown");
  write(find("lost-why"), "");
  drawOnion();
}

function lost(why) {
  connected = false;
  if (!ended) showState("lost");
  write(find("lost-why"), why);
  find("lost").classList.add("shown");
}

const clicked = () => new Promise((resolve) => find("again").addEventListener("click", resolve, { once: true }));

/** Show the onion; one that cannot be had is the events' business, which notice a lost connection themselves. */
const drawOnion = () => showOnion().catch(() => {});

/** What the buttons do. Stop asks first. */
function wire() {
  for (const button of document.querySelectorAll("[data-command]")) {
    const name = button.dataset.command;
    button.addEventListener("click", () => command(name, name));
  }
  find("stepping").addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    command("step", `step?n=${find("steps").valueAsNumber}`);
  });
  const dialog = find("stop-dialog");
  find("stop").addEventListener("click", () => {
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => dialog.returnValue === "stop" && command("stop", STOP));
}

wire();
setInterval(() => connected && !document.hidden && drawOnion(), ONION_EVERY);
follow();
