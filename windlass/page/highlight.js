// Colours for code, in the browser: comments, strings, numbers and keywords of the common languages. It does not know
// grammars, and it need not: one pass from left to right, in which every match moves on, so that time is linear.

import { WORDS } from "./keywords.js";

const COLOURED_CHARACTERS = 100_000; // longer code is shown plain: spans cost more than they help

const SLASHES = "//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)";
const HASH = "(?<![\\w$&{])#[^\\n]*";
const MARKS = { python: HASH, shell: HASH, ruby: HASH, sql: "--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)" };
const MARKUP = "<!--[\\s\\S]*?(?:-->|$)";
const QUOTED = "\"(?:[^\"\\\\\\n]|\\\\[\\s\\S])*\"?|'(?:[^'\\\\\\n]|\\\\[\\s\\S])*'?";
const TRIPLE = "\"\"\"[\\s\\S]*?(?:\"\"\"|$)|'''[\\s\\S]*?(?:'''|$)";
const BACKTICK = "`(?:[^`\\\\]|\\\\[\\s\\S])*`?";
const NUMBER = "\\b0[xX][0-9a-fA-F_]+\\b|\\b\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?\\b";
const WORD = "[A-Za-z_$][\\w$]*";

const FAMILIES = {
  py: "python", python3: "python", starlark: "python",
  js: "javascript", jsx: "javascript", ts: "javascript", tsx: "javascript", typescript: "javascript", mjs: "javascript",
  cpp: "c", "c++": "c", h: "c", java: "c", cs: "c", csharp: "c", kotlin: "c", swift: "c", php: "c", scala: "c",
  dart: "c",
  golang: "go", rs: "rust", rb: "ruby",
  sh: "shell", bash: "shell", zsh: "shell", console: "shell", makefile: "shell", make: "shell", dockerfile: "shell",
  postgresql: "sql", sqlite: "sql", mysql: "sql",
  yaml: "settings", yml: "settings", toml: "settings", ini: "settings", conf: "settings",
  json: "data", jsonc: "data", css: "styles", scss: "styles", less: "styles",
  html: "markup", xml: "markup", svg: "markup", vue: "markup",
};
const known = new Map(); // family -> {pattern, words}, made when first needed

/** Code as a fragment of text and coloured spans. An unknown language, and code that is too long, is plain text. */
export function highlight(code, language) {
  const fragment = document.createDocumentFragment();
  const family = familyOf(language);
  if (language === "diff" || language === "patch") return colouredDiff(code, fragment);
  if (!family || code.length > COLOURED_CHARACTERS) {
    fragment.append(code);
    return fragment;
  }
  const { pattern, words } = grammar(family);
  let from = 0;
  for (const found of code.matchAll(pattern)) {
    const kind = kindOf(found.groups, words, family);
    if (!kind) continue;
    if (found.index > from) fragment.append(code.slice(from, found.index));
    fragment.append(span(kind, found[0]));
    from = found.index + found[0].length;
  }
  fragment.append(code.slice(from));
  return fragment;
}

function familyOf(language) {
  if (Object.hasOwn(FAMILIES, language)) return FAMILIES[language]; // "constructor" is no language
  return Object.hasOwn(WORDS, language) && language !== "plain" ? language : "";
}

function grammar(family) {
  if (!known.has(family)) known.set(family, { pattern: patternOf(family), words: wordsOf(family) });
  return known.get(family);
}

function patternOf(family) {
  const comment =
    { settings: "[#;][^\\n]*", data: SLASHES, styles: "/\\*[\\s\\S]*?(?:\\*/|$)", markup: MARKUP }[family] ??
    MARKS[family] ?? SLASHES;
  const strings = { python: `${TRIPLE}|${QUOTED}`, javascript: `${QUOTED}|${BACKTICK}`, go: `${QUOTED}|${BACKTICK}` };
  // A lone quote is an apostrophe of prose in markup, and the beginning of a lifetime in Rust.
  const string = family === "rust" || family === "markup" ? QUOTED.split("|'")[0] : (strings[family] ?? QUOTED);
  const word = family === "markup" ? "</?[A-Za-z][\\w:-]*" : WORD;
  return new RegExp(`(?<comment>${comment})|(?<string>${string})|(?<number>${NUMBER})|(?<word>${word})`, "g");
}

function wordsOf(family) {
  return new Set((WORDS[family] ?? WORDS.plain).trim().split(/\s+/));
}

function kindOf(groups, words, family) {
  if (groups.comment !== undefined) return "comment";
  if (groups.string !== undefined) return "string";
  if (groups.number !== undefined) return "number";
  if (family === "markup") return "keyword";
  return words.has(family === "sql" ? groups.word.toLowerCase() : groups.word) ? "keyword" : "";
}

function colouredDiff(code, fragment) {
  if (code.length > COLOURED_CHARACTERS) {
    fragment.append(code);
    return fragment;
  }
  for (const line of code.split(/(?<=\n)/)) {
    const kind = { "+": "added", "-": "removed", "@": "keyword" }[line[0]];
    fragment.append(kind ? span(kind, line) : line);
  }
  return fragment;
}

function span(kind, text) {
  const element = document.createElement("span");
  element.className = `code-${kind}`;
  element.textContent = text;
  return element;
}
