// Long text that is folded: its first lines, and a button that shows the rest.

import { h, fill } from "./dom.js";
import { plural } from "./figures.js";

const SHOWN_LINES = 40; // more of one output hides the conversation it belongs to
const SHOWN_CHARACTERS = 20_000; // one line can be a megabyte
const UNFOLDED_CHARACTERS = 1_000_000; // beyond this a browser becomes slow, and nobody reads it

/** A monospaced text. `nodes` turns the text into what is shown (default: itself). Says how much is folded away. */
export function foldedText(text, { lines = SHOWN_LINES, nodes = (shown) => shown, label = "Output" } = {}) {
  const short = firstLines(text, lines);
  const box = h("pre.output", { "aria-label": label });
  fill(box, nodes(short));
  if (short.length === text.length) return box;
  const holder = h("div.folded", null, box);
  const total = text.split("\n").length;
  const much = total > lines ? plural(total, "line") : `${text.length.toLocaleString()} characters`;
  const button = h("button.link", { type: "button", onclick: unfold }, `Show all ${much}`);
  holder.append(button);
  return holder;

  function unfold() {
    const whole = text.length <= UNFOLDED_CHARACTERS;
    fill(box, nodes(whole ? text : text.slice(0, UNFOLDED_CHARACTERS)));
    const left = (text.length - UNFOLDED_CHARACTERS).toLocaleString();
    if (whole) button.remove();
    else button.replaceWith(h("p.soft", null, `${left} more characters`));
    box.tabIndex = -1;
    box.focus({ preventScroll: true }); // the button is gone, and the keyboard must not start over at the top
  }
}

/** The end of what a tool has shown so far: `lines` lines of it. */
export function lastLines(text, lines) {
  let from = text.length;
  for (let left = lines; left > 0 && from > 0; left--) from = text.lastIndexOf("\n", from - 1);
  return text.slice(Math.max(from + 1, text.length - SHOWN_CHARACTERS, 0));
}

function firstLines(text, lines) {
  let end = 0;
  for (let left = lines; left > 0; left--) {
    const next = text.indexOf("\n", end);
    if (next === -1) return text.slice(0, SHOWN_CHARACTERS);
    end = next + 1;
  }
  return end >= text.length ? text.slice(0, SHOWN_CHARACTERS) : text.slice(0, Math.min(end - 1, SHOWN_CHARACTERS));
}
