// A unified diff as people read it: line numbers, and a mark for what was added and removed, not a colour alone.

import { h } from "./dom.js";
import { plural } from "./figures.js";
import { exact, prose } from "./visible.js";

const SHOWN_ROWS = 40;
const UNFOLDED_ROWS = 5_000; // a row is four elements
const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const NAMES = { add: "added", remove: "removed" };

/** How many lines a diff adds and removes. */
export function counted(diff) {
  const rows = rowsOf(diff);
  const of = (kind) => rows.reduce((sum, row) => sum + (row.kind === kind), 0);
  return { added: of("add"), removed: of("remove") };
}

/** The diff. `toDecide`: it is shown to somebody who is asked, so every character is shown for what it is. */
export function diffView(diff, { path = "", toDecide = false } = {}) {
  const rows = rowsOf(diff);
  const shown = toDecide ? exact : prose;
  const label = path ? `Changes of ${path}` : "Changes";
  const body = h("div.diff", { role: "group", "aria-label": label, dataset: { testid: "diff" } });
  body.append(...rows.slice(0, SHOWN_ROWS).map((row) => rowElement(row, shown)));
  if (rows.length > SHOWN_ROWS) {
    const button = h("button.link", { type: "button" }, `Show all ${plural(rows.length, "line")}`);
    button.addEventListener("click", () => {
      button.remove();
      body.append(...rows.slice(SHOWN_ROWS, UNFOLDED_ROWS).map((row) => rowElement(row, shown)));
      if (rows.length > UNFOLDED_ROWS) body.append(h("p.soft", null, plural(rows.length - UNFOLDED_ROWS, "more line")));
    });
    body.append(button);
  }
  return body;
}

/** `{kind: "add"|"remove"|"same"|"hunk"|"note", text, before, after}` for each line; the numbers are the files' own. */
export function rowsOf(diff) {
  const lines = diff.endsWith("\n") ? diff.slice(0, -1).split("\n") : diff.split("\n");
  // Only the first two lines are names: further down "--- x" is a removed line that begins with two dashes.
  const hasNames = lines[0]?.startsWith("--- ") && lines[1]?.startsWith("+++ ");
  let before = NaN; // unknown until a hunk says where it is, and after a piece that was left out
  let after = NaN;
  return lines.slice(hasNames ? 2 : 0).map((line) => {
    const text = line.slice(1);
    if (line[0] === "+") return { kind: "add", text, after: after++ };
    if (line[0] === "-") return { kind: "remove", text, before: before++ };
    if (line[0] === " ") return { kind: "same", text, before: before++, after: after++ };
    const hunk = HUNK.exec(line);
    if (hunk) [before, after] = [Number(hunk[1]), Number(hunk[2])];
    else if (line[0] !== "\\") before = after = NaN;
    return { kind: hunk || line.startsWith("@@") ? "hunk" : "note", text: line };
  });
}

function rowElement(row, shown) {
  const text = h("code", null, shown(row.text));
  if (row.kind === "hunk" || row.kind === "note") return h(`div.diff-row.${row.kind}`, null, text);
  const mark = { add: "+", remove: "−", same: "" }[row.kind];
  return h(
    `div.diff-row.${row.kind}`,
    null,
    h("span.number", { "aria-hidden": "true" }, number(row.before)),
    h("span.number", { "aria-hidden": "true" }, number(row.after)),
    h("span.sign", { "aria-hidden": "true" }, mark),
    NAMES[row.kind] ? h("span.unseen", null, `${NAMES[row.kind]}: `) : null,
    text,
  );
}

function number(line) {
  return Number.isInteger(line) ? line : "";
}
