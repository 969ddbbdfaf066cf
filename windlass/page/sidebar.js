// The sidebar: workspaces, and the sessions of the open one with what they are doing.

import { h, fill } from "./dom.js";
import { icon } from "./icons.js";
import { remember } from "./identity.js";
import { keyedList } from "./keyed.js";
import { directoryName } from "./notices.js";
import { routeTo } from "./routes.js";
import { line } from "./visible.js";

const SHOWN_SESSIONS = 200; // more behind a button: nobody scrolls further, they filter
const SHOWN_WORKSPACES = 5;
const AGE_MILLISECONDS = 60_000; // the finest step in which ages are told
const FILTERED_SESSIONS = 8; // fewer are seen at a glance

/** The sidebar. `show()` after a change of place, `update(changes)` after a change of state. */
export function sidebarView(app) {
  let sessionLimit = SHOWN_SESSIONS;
  let allWorkspaces = false;

  const workspaceList = h("ul.plain-list");
  const sessionList = h("ul.plain-list");
  const renderWorkspaces = keyedList(workspaceList, (one) => one.id, workspaceRow);
  const renderSessions = keyedList(sessionList, (one) => one.id, sessionRow);
  const moreWorkspaces = h("button.quiet.more", { type: "button", onclick: showAllWorkspaces });
  const moreSessions = h("button.quiet.more", { type: "button", onclick: showMoreSessions }, "Show more");
  const nothing = h("p.nothing");
  const filter = h("input", {
    type: "search", placeholder: "Filter", "aria-label": "Filter sessions", autocomplete: "off", oninput: update,
  });
  const opening = openingForm(app);
  const create = h(
    "button.new-session",
    { type: "button", onclick: app.newSession, dataset: { testid: "new-session" }, title: "New session (n)" },
    icon("plus"), "New session",
  );
  const sessions = h(
    "section.sessions", { "aria-labelledby": "sessions-title" },
    h("h2.unseen", { id: "sessions-title" }, "Sessions"), create, filter,
    h("div.list-scroll", null, sessionList, nothing, moreSessions),
  );
  const workspaces = h(
    "section.workspaces", { "aria-labelledby": "workspaces-title" },
    h("div.section-head", null, h("h2", { id: "workspaces-title" }, "Workspaces"), opening.button),
    opening.form, workspaceList, moreWorkspaces,
  );
  const element = h(
    "nav.sidebar", { "aria-label": "Workspaces and sessions", dataset: { testid: "sidebar" } },
    brand(app), workspaces, sessions, foot(app),
  );
  // "5 min" is a claim about now: without this a quiet page would say "now" all day.
  setInterval(() => document.visibilityState === "visible" && update(), AGE_MILLISECONDS);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && update());
  return { element, show: update, update: onChanges, focus, step, focusFilter };

  function onChanges(changes) {
    if (changes.reset || changes.sessions || changes.runs || changes.permissions || changes.questions) update();
  }

  function update() {
    const open = app.store.workspace;
    const ordered = [...app.workspaces].sort((one, other) => Boolean(one.closed) - Boolean(other.closed));
    const isShown = (one, index) => allWorkspaces || index < SHOWN_WORKSPACES || one.id === open?.id;
    const shown = ordered.filter(isShown);
    renderWorkspaces(shown);
    moreWorkspaces.hidden = shown.length === ordered.length;
    moreWorkspaces.textContent = `Show ${ordered.length - shown.length} more`;
    sessions.hidden = !open;
    if (open) updateSessions();
  }

  function updateSessions() {
    const wanted = filter.value.trim().toLowerCase();
    const found = visibleSessions(wanted);
    renderSessions(found.slice(0, sessionLimit));
    moreSessions.hidden = found.length <= sessionLimit;
    nothing.hidden = found.length > 0;
    nothing.textContent = app.store.problem || (app.store.loaded ? emptiness(wanted) : "Loading…");
    filter.hidden = !wanted && found.length < FILTERED_SESSIONS;
  }

  function visibleSessions(wanted) {
    const roots = app.store.roots();
    return wanted ? roots.filter((session) => title(session).toLowerCase().includes(wanted)) : roots;
  }

  function showAllWorkspaces() {
    allWorkspaces = true;
    update();
  }

  function showMoreSessions() {
    sessionLimit += SHOWN_SESSIONS;
    update();
  }

  function focus() {
    (element.querySelector("[aria-current=page]") ?? create).focus();
  }

  function focusFilter() {
    filter.hidden = false;
    filter.focus();
    filter.addEventListener("blur", update, { once: true }); // among a few sessions it goes again when it is empty
  }

  /** Go to the next (1) or the previous (-1) session in the list. */
  function step(by) {
    const found = visibleSessions(filter.value.trim().toLowerCase());
    if (found.length === 0) return;
    const root = app.store.rootOf(app.route.session);
    const place = found.findIndex((session) => session.id === root);
    const next = found[Math.min(Math.max(place + by, 0), found.length - 1)];
    app.go({ workspace: app.store.workspace.id, session: next.id });
  }

  // -- rows ----------------------------------------------------------------------------------------------------------

  function workspaceRow() {
    const name = h("span.row-title");
    const note = h("span.row-note");
    const anchor = h("a.row", null, icon("folder", 16), h("span.row-words", null, name, note));
    return { element: h("li", { dataset: { testid: "workspace-item" } }, anchor), update: fillRow };

    function fillRow(workspace) {
      name.textContent = line(directoryName(workspace.path) || workspace.path);
      note.textContent = workspace.closed ? "closed" : "";
      anchor.title = workspace.path;
      anchor.href = routeTo({ workspace: workspace.id });
      const isOpen = workspace.id === app.store.workspace?.id;
      current(anchor, isOpen && (app.route.session ? "true" : "page"));
    }
  }

  function sessionRow() {
    const name = h("span.row-title");
    const note = h("span.row-note");
    const mark = h("span.state-mark", { "aria-hidden": "true" });
    const anchor = h("a.row", null, mark, h("span.row-words", null, name, note));
    const item = h("li", { dataset: { testid: "session-item" } }, anchor);
    return { element: item, update: fillRow };

    function fillRow(session) {
      const state = stateOf(session);
      name.textContent = title(session);
      const age = state.words ? "" : ago(session.updated_at); // one that is at work is of now
      note.textContent = [state.words, watching(session), age].filter(Boolean).join(" · ");
      mark.className = `state-mark ${state.shape}`;
      item.dataset.state = state.shape;
      item.dataset.session = session.id;
      anchor.href = routeTo({ workspace: app.store.workspace.id, session: session.id });
      current(anchor, session.id === app.store.rootOf(app.route.session) && "page");
    }
  }

  /** What a session is doing: a shape (never colour alone) and words. */
  function stateOf(session) {
    if (app.store.waiting(session.id)) return { shape: "waiting", words: "waiting for you" };
    if (!session.is_busy) return { shape: "idle", words: "" };
    const queued = app.store.queued(session.id).length;
    return { shape: "busy", words: queued ? `busy, ${queued} queued` : "busy" };
  }

  function watching(session) {
    const isShown = session.id === app.route.session;
    const others = session.attached_clients - (isShown ? 1 : 0);
    if (others < 1) return "";
    return isShown ? `+${others} watching` : `${others} watching`;
  }
}

function emptiness(wanted) {
  return wanted ? "Nothing has that title." : "No sessions yet.";
}

function title(session) {
  return line(session.title) || "Untitled";
}

function current(anchor, kind) {
  if (kind) anchor.setAttribute("aria-current", kind);
  else anchor.removeAttribute("aria-current");
}

/** `now`, `5 min`, `3 h`, `2 d`, then the date. */
function ago(seconds) {
  const passed = Date.now() / 1000 - seconds;
  if (!seconds) return "";
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86_400) return `${Math.floor(passed / 3600)} h`;
  if (passed < 7 * 86_400) return `${Math.floor(passed / 86_400)} d`;
  return new Date(seconds * 1000).toLocaleDateString([], { day: "numeric", month: "short" });
}

// -- the rest of the sidebar -----------------------------------------------------------------------------------------

function brand(app) {
  const picture = h("img", { src: "/page/icon.svg", alt: "", width: "22", height: "22" });
  const search = iconButton("Search (/)", "search", () => app.search());
  const close = iconButton("Close the list", "close", app.closeDrawer);
  close.classList.add("drawer-close");
  return h("div.sidebar-head", null, h("a.brand", { href: "#/" }, picture, "Windlass"), search, close);
}

function iconButton(label, name, onclick) {
  return h("button.quiet.icon", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
}

/** "Open a directory…": a button, and the form it shows. */
export function openingForm(app) {
  const path = h("input", {
    type: "text", placeholder: "/home/you/project", "aria-label": "Directory on the server's machine",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  });
  const problem = h("p.problem", { role: "alert" });
  const form = h(
    "form.opening", { hidden: true, onsubmit: submit }, path, problem,
    h("div.opening-buttons", null,
      h("button.primary", { type: "submit" }, "Open"),
      h("button.quiet", { type: "button", onclick: () => reveal(false) }, "Cancel")),
  );
  const button = h(
    "button.quiet.icon",
    { type: "button", title: "Open a directory…", "aria-label": "Open a directory…", "aria-expanded": "false",
      dataset: { testid: "open-directory" }, onclick: () => reveal(form.hidden) },
    icon("plus", 16),
  );
  form.addEventListener("keydown", (event) => event.key === "Escape" && reveal(false));
  return { button, form, path, reveal };

  function reveal(isShown) {
    form.hidden = !isShown;
    button.setAttribute("aria-expanded", String(isShown));
    if (isShown) path.focus();
    else button.focus();
  }

  async function submit(event) {
    event.preventDefault();
    fill(problem);
    try {
      await app.openDirectory(path.value.trim());
      path.value = "";
      form.hidden = true;
      button.setAttribute("aria-expanded", "false");
    } catch (error) {
      fill(problem, error.message);
      path.focus();
    }
  }
}

function foot(app) {
  const theme = h("button.quiet.icon", { type: "button", dataset: { testid: "theme-toggle" }, onclick: toggle });
  const bell = iconButton("Notifications", "bell", ring);
  const help = iconButton("Keyboard (?)", "help", () => app.help());
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", label);
  app.toggleTheme = toggle;
  label();
  showBell();
  addEventListener("storage", showBell); // another tab of this browser has switched it
  return h("div.sidebar-foot", null, theme, bell, help);

  function isDark() {
    return (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  }

  function toggle() {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    remember("windlass.theme", theme);
    label();
  }

  function label() {
    const words = isDark() ? "Light theme" : "Dark theme";
    theme.title = words;
    theme.setAttribute("aria-label", words);
    fill(theme, icon(isDark() ? "sun" : "moon"));
  }

  async function ring() {
    await app.notices.ring(!app.notices.wantsBell());
    showBell();
  }

  function showBell() {
    bell.setAttribute("aria-pressed", String(app.notices.wantsBell()));
  }
}
