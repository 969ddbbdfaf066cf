// The quiet line under a run: how it ended, what it took, and what can be done about it now.

import { h, fill } from "./dom.js";
import { between, count, duration, money, plural } from "./figures.js";
import { changesFiles } from "./tool_input.js";
import { prose } from "./visible.js";

const SIGNS = { completed: "✓", canceled: "–", failed: "✕", interrupted: "✕" };
const WORDS = { completed: "Done", canceled: "Cancelled", failed: "Failed", interrupted: "Interrupted" };

/** The line of a run that is over. `messages`: those of the run, to tell whether it changed files. */
export function runEnd(app, run, messages) {
  const { prompt_tokens: sent = 0, completion_tokens: written = 0 } = run.usage;
  const figures = [
    duration(between(run.started_at || run.created_at, run.ended_at)),
    sent + written ? `${count(sent)} tokens in, ${count(written)} out` : "",
    money(run.cost),
  ];
  const told = h("div.told", { role: "status" });
  const line = h(
    "div.run-end",
    { dataset: { testid: "run-end", state: run.state, run: run.id } },
    h("span.sign", { "aria-hidden": "true" }, SIGNS[run.state]),
    h("span.state", null, WORDS[run.state]),
    figures.filter(Boolean).map((figure) => h("span", null, figure)),
    h("a", { href: `${sessionAddress(app, run.session_id)}/run/${run.id}` }, "Timeline"),
    wroteFiles(messages) ? undoButton(app, run, told) : null,
    run.error ? h("p.failed", null, prose(run.error)) : null,
    told,
  );
  return line;
}

/** The address of a session in this page. */
export function sessionAddress(app, sessionId) {
  return `#/w/${app.store.workspace?.id ?? ""}/s/${sessionId}`;
}

function wroteFiles(messages) {
  const parts = messages.flatMap((message) => message.parts);
  const wrote = (part) => part.type === "tool_result" && changesFiles(part.data.name) && !part.data.is_error;
  return parts.some(wrote);
}

function undoButton(app, run, told) {
  const button = h("button.link", { type: "button", onclick: ask, dataset: { testid: "undo-run" } }, "Undo files");
  return button;

  function ask() {
    const yes = h("button", { type: "button", onclick: undo, dataset: { testid: "undo-confirm" } }, "Put them back");
    const no = h("button.link", { type: "button", onclick: leave }, "Leave them");
    fill(told, h("span", null, "Put the files that this run changed back to what they were? "), yes, no);
    yes.focus();
  }

  function leave() {
    fill(told);
    button.focus();
  }

  async function undo() {
    fill(told, "Putting them back…");
    try {
      const { restored, refused, removed = [] } = await app.api.undo(run.session_id, run.id);
      fill(told, outcome(restored.filter((path) => !removed.includes(path)), refused, removed));
    } catch (error) {
      fill(told, h("span.failed", null, error.message));
    }
  }
}

function outcome(restored, refused, removed) {
  const back = restored.length ? `Put back ${plural(restored.length, "file")}: ${restored.map(prose).join(", ")}.` : "";
  const gone = removed.length ? `Removed what was new: ${removed.map(prose).join(", ")}.` : "";
  const nothing = !back && !gone && !refused.length ? "They are already as they were." : "";
  return [
    h("span", null, [back, gone, nothing].filter(Boolean).join(" ")),
    refused.map(({ path, reason }) => h("p.failed", null, `Not ${prose(path)}: ${prose(reason)}`)),
  ];
}
