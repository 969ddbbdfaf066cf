// Text from models, tools and files, made so that nobody is deceived by what they see (A26). A bidi override can make
// `rm -rf` read like something else, a zero-width character can hide in a command. Two manners, as in the terminal:
// `prose` for what is read, `exact` for what a person decides on.

import { h } from "./dom.js";

// Controls, invisible formatting, halves of surrogates, unassigned, line and paragraph separators, variation selectors.
const HIDDEN = "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Cn}\\p{Zl}\\p{Zp}\\u{FE00}-\\u{FE0F}\\u{E0100}-\\u{E01EF}\\u{180B}-\\u{180F}";
// Letters by category and spaces that are none: blank to the eye, they could pad or split a command unseen.
const BLANK =
  "\\u{115F}\\u{1160}\\u{2800}\\u{3164}\\u{FFA0}" + "\\u{A0}\\u{1680}\\u{2000}-\\u{200A}\\u{202F}\\u{205F}\\u{3000}";
// Joiners (emoji, Persian words) and the two marks that choose an emoji's face belong to ordinary writing.
const PROSE = new RegExp(`(?![\\n\\t\\r\\u200c\\u200d\\ufe0e\\ufe0f])[${HIDDEN}]`, "gu");
const EXACT = new RegExp(`[${HIDDEN}${BLANK}]`, "gu");
// What colours a terminal and moves its cursor: CSI, OSC (up to its end or the line's) and two-character sequences.
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Text to read: no terminal sequences, no overwritten lines, and dangerous characters as `<U+202E>`. */
export function prose(text) {
  const plain = text.includes("\u001b") ? text.replace(TERMINAL, "") : text;
  return (plain.includes("\r") ? lastDrawn(plain) : plain).replace(PROSE, named);
}

/** Text to read on one line: titles, names, paths. */
export function line(text) {
  return prose(text).replace(/\s+/g, " ").trim();
}

/** Text to decide on, as nodes: two different texts never look the same. Line breaks stay, with a mark before them. */
export function exact(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(EXACT)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(mark(found[0]));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** Text to decide on, on one line: for names and places inside a sentence. */
export function exactLine(text) {
  return text.replace(/\n/g, "\\n").replace(/\t/g, "\\t").replace(EXACT, named);
}

function lastDrawn(text) {
  // A progress bar draws its line again and again; a terminal shows the last of them. Not by a pattern: one that looks
  // for "anything, then a return" takes quadratic time on a long line without any.
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.map((line) => line.slice(line.replace(/\r$/, "").lastIndexOf("\r") + 1)).join("\n").replaceAll("\r", "");
}

function mark(character) {
  // Marks are elements of their own, so that a command that contains the letters "<U+202E>" does not look like one.
  if (character === "\n") return [h("span.mark", { title: "line break" }, "↵"), "\n"];
  if (character === "\t") return [h("span.mark", { title: "tab" }, "⇥"), "\t"];
  return h("span.mark", { title: "a character that cannot be seen" }, named(character));
}

function named(character) {
  return `<U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}
