// The header: what is shown, what it costs, who watches, whether the stream is alive, and what can be done with it all.

import { confirmDialog, tellDialog } from "./dialogs.js";
import { h, fill } from "./dom.js";
import { asJson, asMarkdown, fileName, save } from "./export.js";
import { count, money } from "./figures.js";
import { icon } from "./icons.js";
import { menuButton } from "./menu.js";
import { directoryName } from "./notices.js";
import { routeTo } from "./routes.js";
import { isEnded } from "./lookups.js";
import { line, prose } from "./visible.js";

const TITLE_CHARACTERS = 500; // the server takes no longer one

/** The header. */
export function headerView(app) {
  const { api, store } = app;
  const drawer = h(
    "button.quiet.icon.drawer-button",
    { type: "button", "aria-label": "Sessions and workspaces", onclick: app.openDrawer }, icon("list"),
  );
  const place = h("div.place");
  const connection = h("span.connection", { role: "status", dataset: { testid: "connection" } });
  const watchers = h("span.watchers", { dataset: { testid: "watchers" } });
  const cost = h("span.cost", { dataset: { testid: "cost" } });
  const plan = h("button.quiet.plan", {
    type: "button", dataset: { testid: "plan-toggle" }, onclick: togglePlan,
    title: "Plan mode: runs may read and think, and change nothing",
  }, "Plan");
  const menuLabels = { "aria-label": "What to do with this session", title: "Menu", dataset: { testid: "menu" } };
  const menu = menuButton(menuLabels, icon("more"), menuItems);
  const skipping = h("span.skipping", {
    dataset: { testid: "not-asking" },
    title: "Runs in this workspace do what they want to without asking. The menu of a session switches it off.",
  }, "not asking");
  const facts = h("div.facts", null, skipping, cost, watchers, connection);
  const element = h("header.header", null, drawer, place, facts, plan, menu.element);
  let shownPlace = null;
  return { element, show, update, focusMenu: () => drawer.offsetParent && drawer.focus(), rename };

  function session() {
    return store.sessions.get(app.route.session);
  }

  function show() {
    shownPlace = null;
    update({ sessions: true, connection: true });
  }

  function update(changes) {
    if (!changes.sessions && !changes.connection && !changes.reset) return;
    const shown = session();
    showPlace(shown);
    showConnection();
    const tokens = shown ? shown.prompt_tokens + shown.completion_tokens : 0;
    fill(cost, tokens > 0 && h("span.tokens", null, `${count(tokens)} tokens`), shown && money(shown.cost));
    cost.title = shown ? costInWords(shown) : "";
    const others = shown ? shown.attached_clients - 1 : 0;
    watchers.hidden = others < 1;
    watchers.title = `${others + 1} look at this session now`;
    fill(watchers, others > 0 && [icon("eye", 16), `${others + 1}`, h("span.words", null, " watching")]);
    skipping.hidden = !store.isSkipping;
    menu.element.hidden = !shown;
    plan.hidden = !shown && (!store.workspace || Boolean(app.route.session));
    plan.setAttribute("aria-pressed", String(Boolean(shown ? shown.plan : app.planNext)));
  }

  // -- title ---------------------------------------------------------------------------------------------------------

  function showPlace(shown) {
    const key = JSON.stringify([app.route, shown?.title, shown?.parent_session_id, store.workspace?.path]);
    if (key === shownPlace) return; // so that a title that is being typed stays
    if (place.querySelector("input") && shownPlace && JSON.parse(shownPlace)[0].session === app.route.session) return;
    shownPlace = key;
    const workspace = store.workspace;
    const name = workspace ? line(directoryName(workspace.path) || workspace.path) : "Windlass";
    if (!shown) return fill(place, h("h1", null, name));
    const directory = h("a.crumb", { href: routeTo({ workspace: workspace.id }), title: workspace.path }, name);
    const parent = store.sessions.get(shown.parent_session_id);
    const above = parent && crumb(workspace, parent);
    const attributes = { type: "button", title: "Rename", onclick: rename };
    const title = h("button.quiet.title", attributes, line(shown.title) || "Untitled");
    fill(place, h("div.crumbs", null, directory, above), h("h1", null, title));
  }

  /** Turn the title into a field. Enter keeps what is typed, Escape what was. */
  function rename() {
    const shown = session();
    if (!shown) return;
    const field = h("input", {
      type: "text", value: shown.title, maxlength: String(TITLE_CHARACTERS), "aria-label": "Title of the session",
    });
    let isOver = false;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") finish(field.value.trim());
      if (event.key === "Escape") finish("");
      event.stopPropagation();
    });
    field.addEventListener("blur", () => finish(field.value.trim()));
    fill(place.querySelector("h1"), field);
    field.select();
    field.focus();

    async function finish(title) {
      if (isOver) return;
      isOver = true;
      shownPlace = null;
      fill(place);
      try {
        if (title && title !== shown.title) await api.rename(shown.id, title);
        const known = store.sessions.get(shown.id);
        if (title && known) store.sessions.set(shown.id, { ...known, title });
      } catch (error) {
        app.notify(error.message, "error");
      }
      update({ sessions: true });
      place.querySelector(".title")?.focus();
    }
  }

  function showConnection() {
    const { state, reason } = store.connection;
    connection.hidden = !store.workspace;
    const words = {
      connecting: "connecting…",
      live: "live",
      lost: `lost: ${reason}; reconnecting…`,
      refused: `refused: ${reason}`,
      paused: "paused",
    }[state];
    // Only when it changed: it is said aloud.
    if (connection.textContent !== words) fill(connection, h("span.words", null, words));
    connection.dataset.state = state;
    connection.title = words;
  }

  async function togglePlan() {
    const shown = session();
    if (!shown) {
      app.planNext = !app.planNext; // for the session that begins with the next prompt
      app.composer.update({ sessions: true });
      return update({ sessions: true });
    }
    await attempt(async () => {
      const changed = await api.setPlan(shown.id, !shown.plan);
      store.sessions.set(shown.id, { ...store.sessions.get(shown.id), plan: changed.plan });
      update({ sessions: true });
      app.notify(changed.plan ? "Plan mode: runs may read, and change nothing." : "Plan mode is off: runs may act.");
    });
  }

  // -- menu ----------------------------------------------------------------------------------------------------------

  function menuItems() {
    const shown = session();
    const last = store.runsOf(shown.id).filter(isEnded).at(-1);
    return [
      { label: "Rename", act: rename },
      { label: "Undo the last run's files", act: () => undo(shown, last), disabled: !last },
      { label: "Summarise the conversation", act: () => summarise(shown) },
      { label: "Export as Markdown", act: () => exportAs(shown, "md") },
      { label: "Export as JSON", act: () => exportAs(shown, "json") },
      { label: store.isSkipping ? "Ask for permission again" : "Stop asking for permission", act: toggleSkip },
      { label: "Delete the session", act: () => remove(shown), danger: true },
    ];
  }

  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      app.notify(error.message, "error");
    }
  }

  function undo(shown, run) {
    return attempt(async () => showUndone(await api.undo(shown.id, run.id)));
  }

  function summarise(shown) {
    app.notify("The conversation is being summed up. You can go on meanwhile.");
    return attempt(async () => {
      await api.summarize(shown.id);
      app.notify("Summed up: from now on the model is sent the summary in place of what was before.");
    });
  }

  function exportAs(shown, ending) {
    return attempt(async () => {
      await store.load(shown.id);
      const list = store.messages(shown.id);
      const isJson = ending === "json";
      const text = isJson ? asJson(shown, list) : asMarkdown(shown, list);
      save(fileName(shown, ending), isJson ? "application/json" : "text/markdown", text);
    });
  }

  async function toggleSkip() {
    const wanted = !store.isSkipping;
    const text =
      "Runs in this workspace, of everyone, will do what they want to without asking, until somebody switches this " +
      "off. Rules that deny something still hold.";
    if (wanted && !(await confirmDialog("Stop asking for permission?", text, "Stop asking"))) return;
    await attempt(async () => {
      store.isSkipping = (await api.skip(wanted)).skip;
      update({ sessions: true });
      app.notify(store.isSkipping ? "Nobody is asked any more in this workspace." : "Permission is asked for again.");
    });
  }

  async function remove(shown) {
    const text =
      `“${line(shown.title) || "Untitled"}” and everything in it will be gone for everyone. Runs that are going on ` +
      "are cancelled. Files in the directory stay as they are.";
    if (!(await confirmDialog("Delete this session?", text, "Delete"))) return;
    await attempt(async () => {
      await api.deleteSession(shown.id);
    });
  }
}

/** What an undo did: which files are as they were, and which are not, and why. */
export function showUndone({ restored, refused }) {
  if (!restored.length && !refused.length) {
    return tellDialog("Nothing to undo", h("p", null, "All files are as they were before that run."));
  }
  return tellDialog(
    refused.length ? "Some files were not put back" : "Files were put back",
    restored.length > 0 && h("h3", null, "As they were before the run"),
    restored.length > 0 && h("ul.files", null, restored.map(putBack)),
    refused.length > 0 && h("h3", null, "Left alone"),
    refused.length > 0 && h("ul.files", null, refused.map(leftAlone)),
  );
}

function putBack(path) {
  return h("li", null, h("code", null, prose(path)));
}

function leftAlone({ path, reason }) {
  return h("li", null, h("code", null, prose(path)), h("p", null, prose(reason)));
}

function crumb(workspace, session) {
  const href = routeTo({ workspace: workspace.id, session: session.id });
  return h("a.crumb", { href }, line(session.title) || "Untitled");
}

function costInWords({ prompt_tokens: sent, completion_tokens: received }) {
  return `${sent.toLocaleString()} tokens sent, ${received.toLocaleString()} received`;
}
