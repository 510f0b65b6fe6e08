// Server-sent events out of a response's body. EventSource would do it, but sends no Authorization header.
// Source: the HTML standard, section 9.2.6, "Interpreting an event stream".

const LONGEST = 4 * 1024 * 1024; // characters of one unfinished event

/** Takes text as it comes and gives the events that are complete: `{kind, data}`, the data as text. */
export class EventParser {
  #rest = "";
  #kind = "message";
  #data = [];
  #size = 0; // of what is unfinished

  feed(text) {
    const events = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/); // a \r at the end may be half of \r\n
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line, events);
    if (this.#rest.length + this.#size > LONGEST) throw new Error("The run sent an event that is too long.");
    return events;
  }

  #line(line, events) {
    if (line === "") return this.#finish(events);
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "event") this.#kind = value;
    if (field !== "data") return;
    this.#data.push(value);
    this.#size += value.length;
  }

  #finish(events) {
    if (this.#data.length) events.push({ kind: this.#kind, data: this.#data.join("\n") });
    this.#kind = "message";
    this.#data = [];
    this.#size = 0;
  }
}

/** Go through the events of a response, until it ends. `alive` is called for every piece, heartbeats included. */
export async function* events(response, alive) {
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    yield* parser.feed(value);
  }
}
