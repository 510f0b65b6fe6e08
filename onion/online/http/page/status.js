// Where the run is: the state, the figures, the log_values.

import { fill, find, short, write } from "./dom.js";
import { showSettings, showSwitches } from "./settings.js";

/** Show a status, see docs/online.md. */
export function showStatus(status) {
  showState(status.state);
  const figures = { step: "step", pass: "pass", batch: "batch", loss: "loss", rejected: "rejected", queue: "queue" };
  for (const [id, field] of Object.entries(figures)) write(find(id), short(status[field]));
  write(find("speed"), short(Number(status.steps_per_second?.toPrecision(3))));
  write(find("since"), status.since ? `since ${new Date(status.since * 1000).toLocaleString("en-GB")}` : "");
  fill(find("log_values"), Object.entries(status.log_values ?? {}).slice(0, 200).map(([name, value]) => [name, short(value)]));
  showSettings(status.settings ?? {});
  showSwitches(status.rings ?? {});
}

/** Show the state: running, paused, waiting, ended, or "lost" where it is not known. */
export function showState(state) {
  const place = find("state");
  write(place, state);
  place.dataset.state = state;
  document.title = `${state} · onion`;
  find("buttons").disabled = state === "ended";
}
