// One tool call: a line that says what it is about and how it stands, and below it, folded, what went in and came out.

import { h, fill } from "./dom.js";
import { diffView, counted } from "./diff.js";
import { duration } from "./figures.js";
import { foldedText, lastLines } from "./fold.js";
import { todoList } from "./todos.js";
import { argumentsOf, changesFiles, essential, metadataOf } from "./tool_input.js";
import { prose } from "./visible.js";

const SIGNS = { writing: "…", running: "◌", waiting: "?", done: "✓", error: "✕", stopped: "–" };
const WORDS = {
  writing: "being written",
  running: "running",
  waiting: "waits for an answer",
  done: "done",
  error: "failed",
  stopped: "stopped",
};
const LEAST_SECONDS = 2; // what is known is whole seconds: "1 s" may have been none
const LIVE_LINES = 8; // of a running tool's output that are shown without opening it
const OPEN_DIFF_LINES = 24; // a change that is shorter is shown at once
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

/** A tool call's view. `update(call, isOver)` when the model wrote more of it, `result(data, seconds)` when the tool
 *  did. Cards that ask about it go into `slot`; `waits(yes)` says that they are there. */
export function toolCallView(context, firstCall) {
  let call = firstCall;
  let output = null; // the result's data, once there is one
  let took = NaN;
  let isOver = false; // the message ended: without a result the tool will not run any more
  let isWaiting = false;
  let hasWaited = false; // for a person, as far as this page has seen it
  let shown = {}; // what the line says, to leave alone what is the same
  let isDrawn = false; // the body is made when it is first opened

  const sign = h("span.sign", { "aria-hidden": "true" });
  const state = h("span.unseen");
  const about = h("span.about");
  const change = h("span.change");
  const time = h("span.time");
  const name = h("span.name", null, prose(call.name));
  const summary = h("summary", null, sign, state, name, about, change, time);
  const body = h("div.body");
  const details = h("details.tool-call", { dataset: { testid: "tool-call", tool: call.name } }, summary, body);
  const live = h("pre.output.live", { hidden: true, "aria-label": "Output so far" });
  const slot = h("div.slot");
  const children = h("div.child-agents");
  const element = h("div.tool", null, details, live, slot, children);
  details.addEventListener("toggle", () => details.open && !isDrawn && draw());
  line();

  return { element, slot, details, update, result, waits };

  function update(newCall, over) {
    call = newCall;
    isOver = over;
    line();
    if (isDrawn && !output) draw();
  }

  function result(data, seconds) {
    output = data;
    took = data.unfinished ? NaN : seconds;
    line();
    showLive();
    if (isDrawn || opensItself()) draw();
    if (call.name === "agent" && !data.unfinished) showAgents();
  }

  function waits(yes) {
    isWaiting = yes;
    hasWaited ||= yes;
    line();
  }

  function stateNow() {
    if (output && !output.unfinished) return output.is_error ? "error" : "done";
    if (isWaiting) return "waiting";
    if (context.isStopped?.()) return "stopped";
    return output || isOver || call.finished ? "running" : "writing";
  }

  function line() {
    const now = stateNow();
    const before = shown;
    shown = { now, input: call.input, took };
    if (now !== before.now) {
      details.dataset.state = now;
      sign.textContent = SIGNS[now];
      state.textContent = `${WORDS[now]}: `;
    }
    if (call.input !== before.input) about.textContent = prose(essential(call.name, call.input)); // it is parsed there
    if (Object.is(took, before.took)) return;
    time.textContent = took >= LEAST_SECONDS ? `${duration(took)}${hasWaited ? " with waiting" : ""}` : "";
    time.title = "From the call to its result, also while it waited for a person; the timeline tells them apart";
  }

  function showLive() {
    const isLive = Boolean(output?.unfinished);
    live.hidden = !isLive || details.open;
    if (isLive) live.textContent = prose(lastLines(output.content, LIVE_LINES));
  }

  function opensItself() {
    const diff = diffOf();
    if (!diff || details.open) return false;
    const { added, removed } = counted(diff);
    fill(change, h("span.added", null, `+${added}`), " ", h("span.removed", null, `−${removed}`));
    if (added + removed > OPEN_DIFF_LINES) return false;
    details.open = true;
    return true;
  }

  function diffOf() {
    const diff = changesFiles(call.name) && metadataOf(output)?.diff;
    return typeof diff === "string" ? diff : "";
  }

  function draw() {
    isDrawn = true;
    live.hidden = true;
    fill(body, input(), shownOutput());
  }

  function input() {
    const given = argumentsOf(call.input);
    if (given && call.name === "todos" && Array.isArray(given.todos)) return todoList(given.todos);
    if (diffOf()) return diffView(diffOf(), { path: given?.file_path ?? "" });
    if (given && call.name === "bash") return foldedText(prose(`$ ${given.command ?? ""}`), { label: "Command" });
    const text = given ? JSON.stringify(given, null, 2) : call.input;
    return text && text !== "{}" ? foldedText(prose(text), { label: "Input" }) : null;
  }

  function shownOutput() {
    if (!output) return null;
    if (!output.is_error && (diffOf() || call.name === "todos")) return null; // the change itself says it all
    const text = prose(output.content);
    return [
      output.is_error ? h("p.failed", null, "The tool failed:") : null,
      text ? foldedText(text) : null,
      picture(output),
    ];
  }

  function showAgents() {
    const agents = metadataOf(output);
    if (!Array.isArray(agents) || !context.agentItem) return;
    const action = argumentsOf(call.input)?.action;
    // Started here, they live here; a later `wait` or `list` only tells of them, in its output.
    if (action === "start") fill(children, agents.map((agent) => context.agentItem(agent)));
  }
}

function picture(output) {
  if (!output.data || !PICTURES.test(output.mime_type ?? "")) return null;
  const src = `data:${output.mime_type};base64,${output.data}`;
  return h("img.picture", { src, alt: "Picture that the tool gave back" });
}
