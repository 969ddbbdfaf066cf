// Search over everything that was said in the workspace, and over the titles of its sessions.

import { h, fill } from "./dom.js";
import { moment } from "./figures.js";
import { sessionAddress } from "./run_end.js";
import { prose } from "./visible.js";

const PAUSE_MILLISECONDS = 180; // in typing, before the server is asked
const LEAST_CHARACTERS = 2; // the server looks for no less
const MOST_CHARACTERS = 200;
const SHOWN_TITLES = 8;
const SHOWN_HITS = 50;
const BEFORE_CHARACTERS = 30; // before what was looked for: two lines are shown, and it must be in them
const SPEAKERS = { user: "You", assistant: "Agent", tool: "Tool", system: "System" };

/** The dialog: `open()` shows it, ready to type. */
export function searchDialog(app) {
  const input = h("input", {
    type: "search", placeholder: "Search in this workspace", maxlength: String(MOST_CHARACTERS), autocomplete: "off",
    "aria-label": "Search in this workspace", spellcheck: "false", dataset: { testid: "search-input" }, oninput: later,
  });
  const note = h("p.soft", { role: "status" });
  const results = h("ul.hits");
  const handlers = { onkeydown: byKey, onclick: outside };
  const names = { "aria-label": "Search", dataset: { testid: "search-dialog" } };
  const dialog = h("dialog.search", { ...names, ...handlers }, input, note, results);
  let timer = 0;
  let question = 0; // the number of the newest question: an answer to an older one is thrown away
  results.addEventListener("click", (event) => event.target.closest("a") && close());
  return { open };

  function open() {
    if (!dialog.isConnected) document.body.append(dialog);
    if (!dialog.open) dialog.showModal();
    input.select();
    look();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MILLISECONDS);
  }

  async function look() {
    const text = input.value.trim();
    const own = ++question;
    if (text.length < LEAST_CHARACTERS) return draw([], [], text ? "Two letters at least." : "");
    const titles = titleHits(app, text);
    draw(titles, [], "Searching…");
    try {
      const hits = (await app.api.search(text)).filter((hit) => hit.message_id);
      if (own !== question) return;
      draw(titles, hits, titles.length + hits.length ? "" : "Nothing found.");
    } catch (error) {
      if (own === question) draw(titles, [], error.message);
    }
  }

  function draw(titles, hits, words) {
    note.textContent = words;
    const found = hits.slice(0, SHOWN_HITS).map((hit) => hitItem(app, hit, input.value.trim()));
    fill(results, titles.map((session) => titleItem(app, session, input.value.trim())), found);
  }

  function byKey(event) {
    if (event.key === "Escape") {
      event.preventDefault(); // a search field would take the first one to empty itself
      return close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && event.target === input) results.querySelector("a")?.click();
    if (!step) return;
    event.preventDefault();
    const stops = [input, ...results.querySelectorAll("a")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    next?.focus();
  }

  function outside(event) {
    if (event.target === dialog) close(); // the backdrop belongs to the dialog
  }

  function close() {
    dialog.close();
    // The browser gives up a focus that cannot be seen with its next frame only: keys until then would be written there.
    if (dialog.contains(document.activeElement)) document.activeElement.blur();
  }
}

function titleHits(app, text) {
  const wanted = text.toLowerCase();
  const sessions = [...app.store.sessions.values()].filter((session) => session.title.toLowerCase().includes(wanted));
  return sessions.sort((one, other) => other.updated_at - one.updated_at).slice(0, SHOWN_TITLES);
}

function titleItem(app, session, text) {
  const kind = session.parent_session_id ? "Agent" : "Session";
  const where = h("span.where", null, `${kind} · ${moment(session.updated_at)}`);
  return item(sessionAddress(app, session.id), where, marked(session.title, text));
}

function hitItem(app, hit, text) {
  const speaker = SPEAKERS[hit.role] ?? prose(hit.role);
  const title = prose(hit.session_title || "Session without a title");
  const where = h("span.where", null, `${title} · ${speaker} · ${moment(hit.created_at)}`);
  return item(`${sessionAddress(app, hit.session_id)}/m/${hit.message_id}`, where, marked(hit.excerpt, text));
}

function item(href, where, excerpt) {
  return h("li", null, h("a", { href, dataset: { testid: "search-hit" } }, where, h("span.excerpt", null, excerpt)));
}

/** The text with what was looked for marked. */
function marked(text, wanted) {
  const shown = prose(text).replace(/\s+/g, " ");
  const place = shown.toLowerCase().indexOf(wanted.toLowerCase());
  if (place < 0) return shown;
  const end = place + wanted.length;
  const from = place > BEFORE_CHARACTERS ? place - BEFORE_CHARACTERS : 0;
  const before = `${from ? "…" : ""}${shown.slice(from, place)}`;
  return [before, h("mark", null, shown.slice(place, end)), shown.slice(end)];
}
