// Calls to the service that the page came from, with the token where one is needed.

import { find, write } from "./dom.js";

const KEPT = "onion-token"; // in sessionStorage: gone with the tab

let token = sessionStorage.getItem(KEPT);
let asking = null;

/** The person gave no token. */
export class NoToken extends Error {}

/** The service answered with an error; `status` is that of the answer. */
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Send a request and return the response, whatever its status, but 401: then the token is asked for.
 * Throws NoToken, and TypeError where there is no connection.
 */
export async function send(path, { headers = {}, ...options } = {}) {
  for (;;) {
    const used = token;
    const authorization = used ? { Authorization: `Bearer ${used}` } : {};
    const response = await fetch(path, { ...options, headers: { ...headers, ...authorization }, cache: "no-store" });
    if (response.status !== 401) return response;
    await response.body?.cancel();
    if (used === token) await another(used !== null);
  }
}

/** Return the JSON of an answer; throw Refusal with its reason for a status from 400. */
export async function json(response) {
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new Refusal(answer.error ?? answer.detail ?? `The service answered ${response.status}.`, response.status);
}

/** Ask the person for a token, once for all requests that wait for one. */
async function another(refused) {
  asking ??= ask(refused).finally(() => (asking = null));
  token = await asking;
  sessionStorage.setItem(KEPT, token);
}

function ask(refused) {
  const dialog = find("token-dialog");
  write(find("token-why"), refused ? "The service does not accept this one." : "It is the one that Control was given.");
  find("token").value = "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  find("token").focus();
  return new Promise((resolve, reject) => {
    const closed = () => {
      const given = find("token").value.trim();
      find("token").value = "";
      if (dialog.returnValue === "give" && given) resolve(given);
      else reject(new NoToken("This run asks for a token."));
    };
    dialog.addEventListener("close", closed, { once: true });
  });
}
