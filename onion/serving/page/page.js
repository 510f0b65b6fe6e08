// The page: a choice of models, fields by what the model reads, and its answer.

import { call, CallError } from "./api.js";
import { make, similarity, view } from "./views.js";

const at = (id) => document.getElementById(id);
const TITLES = { text_a: "Text", text_b: "Second text", question: "Question", context: "Context" };
let models = new Map();

function chosen() {
  return models.get(at("model").value);
}

function vectors(model) {
  return model.task === "embedding";
}

function showFields() {
  const model = chosen();
  at("about").textContent = `${model.task}, version ${model.version}, ${model.max_length} tokens`;
  const names = vectors(model) ? ["text_a", "text_b"] : model.inputs;
  const before = Object.fromEntries([...at("fields").querySelectorAll("textarea")].map((each) => [each.name, each.value]));
  at("fields").replaceChildren(...names.map((name) => field(name, before[name] ?? "")));
  at("answer").replaceChildren();
}

function field(name, value) {
  const area = make("textarea", { name, rows: 3, required: "", "aria-label": TITLES[name] ?? name });
  area.value = value;
  return make("label", {}, TITLES[name] ?? name, area);
}

async function answer() {
  const model = chosen();
  const row = Object.fromEntries(new FormData(at("form")));
  const inputs = vectors(model) ? Object.values(row) : [row];
  const begin = performance.now();
  const found = await call(`/models/${encodeURIComponent(model.name)}/predict`, { inputs });
  at("took").textContent = `${Math.round(performance.now() - begin)} ms, ${found.tokens} tokens`;
  const shown = vectors(model)
    ? [similarity(found.predictions.map((each) => each.cls_emb))]
    : view(model.task, row, found.predictions[0]);
  at("answer").replaceChildren(...shown);
}

// Do something, and show its error as a sentence.
async function attempt(work) {
  at("error").hidden = true;
  at("submit").disabled = true;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    at("answer").replaceChildren();
    at("error").textContent = error.message;
    at("error").hidden = false;
  } finally {
    at("submit").disabled = models.size === 0;
  }
}

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(answer);
});
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("model").addEventListener("change", showFields);

attempt(async () => {
  const found = (await call("/models")).models;
  models = new Map(found.map((model) => [model.name, model]));
  at("model").replaceChildren(...found.map((model) => make("option", { value: model.name }, model.name)));
  showFields();
});
