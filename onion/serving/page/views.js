// Answers drawn. Texts become textContent only. Offsets of the service count code points, not UTF-16 units.

const KINDS = 8;

// Return an element with attributes and children, which are elements or texts.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Return the elements that show the answer of a task to a row.
export function view(task, row, answer) {
  if ("cls_emb" in answer) return [];
  if ("spans" in answer) return tagged(row.text_a, answer);
  if ("masks" in answer) return answer.masks.map((mask, place) => guesses(mask, place));
  if ("nbest" in answer) return found(row.context, answer);
  if ("score" in answer) return [bars([[answer.label ?? "score", answer.score]])];
  if ("value" in answer) return [make("p", { class: "number" }, String(answer.value))];
  if ("probabilities" in answer) return [bars(labelled(answer))];
  return [make("pre", {}, JSON.stringify(answer, null, 1))];
}

// Return the cosine of two vectors, drawn.
export function similarity([one, other]) {
  const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
  const cosine = dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other));
  return make("div", {}, make("h2", {}, "Cosine similarity"), make("p", { class: "number" }, cosine.toFixed(4)));
}

function labelled(answer) {
  const chosen = answer.labels ?? [answer.label];
  const all = Object.entries(answer.probabilities).sort((one, other) => other[1] - one[1]);
  return all.map(([name, chance]) => [chosen.includes(name) ? `${name} ✓` : name, chance]);
}

function bars(rows) {
  const lines = rows.map(([name, chance]) => make("tr", {},
    make("th", { scope: "row" }, name),
    make("td", {}, make("progress", { max: 1, value: chance, "aria-label": name })),
    make("td", {}, chance.toFixed(4))));
  return make("div", {}, make("table", { class: "bars" }, ...lines));
}

function tagged(text, answer) {
  const points = Array.from(text);
  const kinds = [...new Set(answer.spans.map((span) => span.type))].sort();
  const parts = [];
  let place = 0;
  for (const span of answer.spans) {
    parts.push(points.slice(place, span.begin).join(""), marked(points.slice(span.begin, span.end).join(""), span.type, kinds));
    place = span.end;
  }
  parts.push(points.slice(place).join(""));
  const shown = [make("p", { class: "text" }, ...parts)];
  if (kinds.length) shown.push(make("p", { class: "legend" }, ...kinds.map((kind) => marked(kind, null, kinds, kind))));
  return [...shown, words(answer)];
}

function marked(text, type, kinds, kind = type) {
  const place = kinds.indexOf(kind) % KINDS;
  return make("mark", { class: `kind-${place}` }, text, ...(type === null ? [] : [make("sub", {}, type)]));
}

function words(answer) {
  const rows = answer.tokens.map((word, place) => [`${word}  ${answer.tags[place]}`, answer.probabilities[place]]);
  return make("details", {}, make("summary", {}, "Each word"), bars(rows));
}

function guesses(mask, place) {
  return make("div", {}, make("h2", {}, `Mask ${place + 1}`), bars(mask.words.map((word, n) => [word ?? "", mask.probabilities[n]])));
}

function found(context, answer) {
  const points = Array.from(context);
  const part = (begin, end) => points.slice(begin, end).join("");
  const text = make("p", { class: "text" }, part(0, answer.begin),
    make("mark", { class: "kind-0" }, part(answer.begin, answer.end)), part(answer.end));
  const best = answer.nbest.map((each) => [each.text || "(no answer)", each.probability]);
  return [text, make("details", {}, make("summary", {}, "Other answers"), bars(best))];
}
