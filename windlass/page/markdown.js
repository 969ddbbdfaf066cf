// Markdown: made into HTML and sanitised by the server, put into the page here. This is the only file that puts HTML
// into the document; everything else is text.

import { blockCutter, hasReferences } from "./blocks.js";
import { h } from "./dom.js";
import { highlight } from "./highlight.js";
import { trustedHtml } from "./trusted.js";
import { prose } from "./visible.js";

const CACHED_CHARACTERS = 4_000_000; // of rendered text; a session that is opened again costs no request
const BATCH_TEXTS = 50; // in one request
const BATCH_CHARACTERS = 100_000;
const FAILED_TEXTS = 1_000; // that are tried again when the connection is back
const LINKS = /^(?:https?|mailto):/i;

const rendered = new Map(); // text -> HTML, the least recently used first
let renderedCharacters = 0;
let waiting = new Map(); // text -> the elements that want it, until the next frame
let failed = new Map();
let isScheduled = false;
let afterPlacing = () => {};

/** Have this called when texts that stood there plain were replaced, which changes their height. In the same moment: a
 *  click that falls between two frames would otherwise hit what is not there on the screen. */
export function whenPlaced(callback) {
  afterPlacing = callback;
}

/** A text that does not change, as Markdown. Until the server has rendered it, it is readable as plain text. */
export function markdownText(app, text) {
  const shown = prose(text);
  const element = h("div.prose", null, h("p.plain", null, shown));
  wanted(app, shown, element);
  return element;
}

/** Text that grows. `update(text, isFinished)` costs what was added: finished blocks are rendered once, the rest is
 *  plain. */
export function growingMarkdown(app) {
  const element = h("div.prose");
  const tail = document.createTextNode("");
  const plain = h("p.plain.tail", null, tail);
  let cutter = blockCutter();
  let shown = ""; // all of the text that is on the page
  let tailBegin = 0;
  let isWhole = false;

  return { element, update };

  function update(text, isFinished) {
    if (isWhole && text === shown) return;
    if (isWhole || !text.startsWith(shown)) startOver();
    if (isFinished && (shown === "" || hasReferences(text))) return renderWhole(text);
    if (plain.parentNode !== element) element.append(plain);
    for (const block of cutter.take(text)) plain.before(markdownText(app, block));
    showTail(text);
    if (isFinished) finish(text);
    shown = text;
  }

  function showTail(text) {
    if (cutter.tail === tailBegin) tail.appendData(prose(text.slice(shown.length)));
    else tail.data = prose(text.slice(cutter.tail));
    tailBegin = cutter.tail;
    plain.classList.toggle("in-code", cutter.isInCode);
  }

  function finish(text) {
    const rest = text.slice(cutter.tail);
    plain.remove();
    if (rest.trim()) element.append(markdownText(app, rest));
    isWhole = true;
  }

  function renderWhole(text) {
    element.replaceChildren(markdownText(app, text));
    shown = text;
    isWhole = true;
  }

  function startOver() {
    element.replaceChildren();
    cutter = blockCutter();
    tail.data = "";
    shown = "";
    tailBegin = 0;
    isWhole = false;
  }
}

/** Ask again for what could not be rendered while the server was away. */
export function retryMarkdown(app) {
  const again = failed;
  failed = new Map();
  for (const [text, elements] of again) for (const element of elements) wanted(app, text, element);
}

function wanted(app, text, element) {
  const html = rendered.get(text);
  if (html !== undefined) {
    rendered.delete(text);
    rendered.set(text, html); // used last
    place(element, html);
    return;
  }
  if (!waiting.has(text)) waiting.set(text, []);
  waiting.get(text).push(element);
  if (isScheduled) return;
  isScheduled = true;
  // A microtask: everything that is drawn in this frame is asked for at once, also in a tab that nobody looks at.
  queueMicrotask(() => {
    isScheduled = false;
    const all = waiting;
    waiting = new Map();
    for (const batch of batches(all)) request(app, batch);
  });
}

function* batches(all) {
  let batch = new Map();
  let characters = 0;
  for (const [text, elements] of all) {
    if (batch.size === BATCH_TEXTS || (batch.size && characters + text.length > BATCH_CHARACTERS)) {
      yield batch;
      [batch, characters] = [new Map(), 0];
    }
    batch.set(text, elements);
    characters += text.length;
  }
  if (batch.size) yield batch;
}

async function request(app, batch) {
  const texts = [...batch.keys()];
  try {
    const html = await app.api.markdown(texts);
    texts.forEach((text, index) => {
      keep(text, html[index]);
      for (const element of batch.get(text)) place(element, html[index]);
    });
    afterPlacing();
  } catch {
    // It stays plain text, which can be read; the connection's state is shown elsewhere.
    for (const [text, elements] of batch) if (failed.size < FAILED_TEXTS) failed.set(text, elements);
  }
}

function keep(text, html) {
  rendered.set(text, html);
  renderedCharacters += text.length + html.length;
  for (const [oldest, its] of rendered) {
    if (renderedCharacters <= CACHED_CHARACTERS) break;
    rendered.delete(oldest);
    renderedCharacters -= oldest.length + its.length;
  }
}

function place(element, html) {
  element.innerHTML = trustedHtml(html);
  for (const link of element.querySelectorAll("a")) tameLink(link);
  for (const code of element.querySelectorAll("pre > code")) dressCode(code);
  for (const table of element.querySelectorAll("table")) scrollable(table);
  levelHeadings([...element.querySelectorAll("h1, h2, h3, h4, h5, h6")]);
}

/** The page's own heading is above them all, and no level is skipped: who jumps from one to the next must not get
 *  lost. */
function levelHeadings(headings) {
  const levels = headings.map((heading) => Number(heading.tagName[1]));
  const least = Math.min(...levels);
  let before = 1;
  headings.forEach((heading, index) => {
    before = Math.min(levels[index] - least + 2, before + 1);
    heading.setAttribute("aria-level", String(before));
  });
}

function tameLink(link) {
  // The server allows no other schemes; a second lock costs nothing.
  if (!LINKS.test(link.getAttribute("href") ?? "")) link.removeAttribute("href");
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

function dressCode(code) {
  const language = [...code.classList].find((name) => name.startsWith("language-"))?.slice("language-".length) ?? "";
  const text = code.textContent;
  code.replaceChildren(highlight(text, language.toLowerCase()));
  const pre = code.parentElement;
  pre.tabIndex = 0; // long lines scroll, and must do so by keyboard too
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  const head = h("div.code-head", null, h("span", null, language), copyButton(text));
  const holder = h("div.code-block", null, head);
  pre.replaceWith(holder);
  holder.append(pre);
}

function copyButton(text) {
  const button = h("button.link", { type: "button", "aria-label": "Copy this code" }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Could not copy";
    button.addEventListener("blur", () => (button.textContent = "Copy"), { once: true });
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text); // absent on an address that is neither https nor loopback
    return true;
  } catch {
    return false;
  }
}

function scrollable(table) {
  const holder = h("div.table", { tabindex: "0", role: "group", "aria-label": "Table" });
  table.replaceWith(holder);
  holder.append(table);
}
