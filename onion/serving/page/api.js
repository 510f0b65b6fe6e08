// Calls of the service, with its token where it asks for one.

const KEY = "onion-token";

export class CallError extends Error {}

// Return what a call answers; its error is a CallError with a sentence.
export async function call(path, body) {
  for (;;) {
    const response = await send(path, body);
    if (response.status !== 401) return read(response);
    sessionStorage.setItem(KEY, await askForToken());
  }
}

// Return the headers by which the service knows its caller.
export function authorization() {
  const token = sessionStorage.getItem(KEY);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

async function send(path, body) {
  const headers = authorization();
  const options = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
  try {
    return await fetch(path, options);
  } catch {
    throw new CallError("The service does not answer.");
  }
}

async function read(response) {
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const wait = response.headers.get("retry-after");
  const more = wait === null ? "" : ` Try again in ${wait} s.`;
  throw new CallError(`${answer.error ?? `The service answered with status ${response.status}.`}${more}`);
}

const DIALOG = `
  <form method="dialog">
    <label>Token of the service <input id="token-value" type="password" autocomplete="off" required
      pattern="\\s*[!-~]+\\s*" title="visible ASCII characters, without spaces"></label>
    <button>Use it</button>
  </form>`;

function askForToken() {
  const dialog = document.createElement("dialog");
  dialog.id = "token";
  dialog.innerHTML = DIALOG;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.querySelector("input").value.trim());
    });
  });
}
