// What an agent wants to do, put to a person: exactly that, with everything in it that could deceive made visible
// (A26). The server has the last word: it decides by the request's id, and never by what is written here.

import { h } from "./dom.js";
import { diffView } from "./diff.js";
import { foldedText } from "./fold.js";
import { exact, exactLine } from "./visible.js";

const DECIDED_LINES = 500; // of what is decided on, all of it if that can be: a line that is folded away is not seen
const SAID_ELSEWHERE = new Set(["command", "diff", "url", "file_path", "working_directory", "bytes"]);

/** The card. `answer(action, pattern)` sends an answer; it throws what the server says against it. */
export function permissionCard(request, answer, origin) {
  const problem = h("p.failed", { role: "alert" });
  const again = `For this session: ${coveredForSession(request)}`;
  const allow = button("allow-once", "primary", "Allow once", "a", () => send("allow"));
  const session = button("allow-session", "", "Allow for this session", "s", () => send("allow_session"));
  const deny = button("deny", "", "Deny", "d", () => send("deny"));
  const pattern = h(
    "button.link",
    { type: "button", onclick: askPattern, "aria-expanded": "false", dataset: { testid: "allow-pattern" } },
    "Allow a pattern…",
  );
  const buttons = h("div.buttons", null, allow, session, deny, pattern);
  const form = patternForm(request, (text) => send("allow_session", text));
  const card = h(
    "section.card.permission",
    {
      tabindex: "0",
      "aria-label": `Permission: ${exactLine(request.tool_name)}, ${exactLine(request.description)}`,
      dataset: { testid: "permission-card", id: request.id },
      onkeydown: byKey,
    },
    origin,
    h("h2", null, h("span.sign", { "aria-hidden": "true" }, "?"), exactLine(headline(request))),
    headline(request).includes(request.description) ? null : h("p.soft", null, exactLine(request.description)),
    where(request),
    matter(request),
    buttons,
    h("p.soft", null, `${again}.`),
    form,
    problem,
  );
  return card;

  async function send(action, text = "") {
    if (card.dataset.sent) return; // a second click, or a key held down
    card.dataset.sent = action;
    problem.textContent = "";
    lock(true);
    try {
      await answer(action, text);
    } catch (error) {
      delete card.dataset.sent;
      lock(false);
      problem.textContent = `The answer was not taken. ${error.message}`;
    }
  }

  function lock(yes) {
    for (const control of card.querySelectorAll("button, input")) control.disabled = yes;
  }

  function askPattern() {
    form.hidden = !form.hidden;
    pattern.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("input").focus();
  }

  function byKey(event) {
    const isTyping = event.target.closest("input, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const control = { a: allow, s: session, d: deny }[event.key];
    if (!control) return;
    event.preventDefault();
    event.stopPropagation(); // the page's own keys must not act too
    control.click();
  }
}

/** What an answer for the session allows, in words: who believes that it is this call only would allow more than they
 *  saw. */
export function coveredForSession(request) {
  if (request.action === "edit" || request.action === "write") {
    return `every ${exactLine(request.tool_name)} of this file, whatever it changes`;
  }
  if (request.params.command !== undefined) return "exactly this command in this directory again";
  if (request.params.url !== undefined) return "exactly this address again";
  return "exactly this again";
}

/** What is asked in a few words. What follows below it is what counts, so it comes first. */
function headline(request) {
  if (typeof request.params.command === "string") return `${request.tool_name}: run this command?`;
  if (typeof request.params.url === "string") return `${request.tool_name}: fetch this address?`;
  return `${request.tool_name}: ${request.description}`;
}

function where(request) {
  const bounds = request.confined ? "confined" : "not confined";
  return h(
    "p.where",
    null,
    request.path ? h("code", null, exact(request.path)) : null,
    h("span.badge", { dataset: { confined: String(request.confined) } }, bounds),
  );
}

function matter(request) {
  const { command, diff, url } = request.params;
  const parts = [];
  if (typeof command === "string") parts.push(whole(command, "The command"));
  if (typeof url === "string") parts.push(whole(url, "The address"));
  const path = exactLine(String(request.params.file_path ?? "")); // another server's tool may call a number that
  if (typeof diff === "string" && diff) parts.push(diffView(diff, { path, toDecide: true }));
  const others = Object.entries(request.params).filter(([name, value]) => !SAID_ELSEWHERE.has(name) && says(value));
  if (others.length) parts.push(h("dl.params", null, others.map(([name, value]) => param(name, value))));
  return parts;
}

/** It scrolls in its box; only what is very long is folded too. */
function whole(text, label) {
  return foldedText(text, { nodes: exact, label, lines: DECIDED_LINES });
}

function says(value) {
  return value !== "" && value !== null && value !== false; // lines that say nothing hide those that do
}

function param(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return [h("dt", null, exactLine(name)), h("dd", null, foldedText(text, { nodes: exact, label: exactLine(name) }))];
}

function button(testid, kind, text, key, onclick) {
  const selector = kind ? `button.${kind}` : "button";
  const attributes = { type: "button", onclick, dataset: { testid }, "aria-keyshortcuts": key };
  return h(selector, attributes, text, h("kbd", { "aria-hidden": "true" }, key));
}

function patternForm(request, allow) {
  const { command, url, file_path: path } = request.params;
  const input = h("input", {
    type: "text", value: String(command ?? url ?? path ?? ""), spellcheck: "false", autocomplete: "off",
    dataset: { testid: "pattern-input" },
  });
  const label = h("label", null, "What fits this is allowed for the rest of the session; * stands for anything", input);
  const submit = h("button", { type: "submit", dataset: { testid: "pattern-send" } }, "Allow what fits");
  const onsubmit = (event) => {
    event.preventDefault();
    if (input.value.trim()) allow(input.value.trim());
  };
  const form = h("form.pattern", { onsubmit }, label, submit);
  form.hidden = true;
  return form;
}
