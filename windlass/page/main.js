// Boot: make the parts, put them on the page, and follow the address.

import { createApi } from "./api.js";
import { cardsView } from "./cards.js";
import { composerView } from "./composer.js";
import { conversationView } from "./conversation.js";
import { h } from "./dom.js";
import { headerView } from "./header.js";
import { clientId, recall, remember } from "./identity.js";
import { installKeys } from "./keys.js";
import { createLink } from "./link.js";
import { createNotices } from "./notices.js";
import { parseRoute, routeTo } from "./routes.js";
import { searchDialog } from "./search.js";
import { sidebarView } from "./sidebar.js";
import { createStore } from "./store.js";
import { welcomeView } from "./welcome.js";

const LAST_PLACE = "windlass.place"; // where this browser was last, for an address without a hash

let version = ""; // of the server that this page came from
const app = { clientId: clientId(), route: parseRoute(location.hash), workspaces: [], problem: "" };
app.api = createApi(app.clientId);
app.store = createStore(app.api);
const notices = createNotices(app);
app.notify = notices.toast;
app.notices = notices;
app.go = (place) => (location.hash = routeTo(place));
app.refreshWorkspaces = refreshWorkspaces;
app.openDirectory = openDirectory;
app.newSession = newSession;
app.openDrawer = openDrawer;
app.closeDrawer = closeDrawer;
const link = createLink(app.clientId, { ...app.store.receive, notify: notices.announce });

const sidebar = sidebarView(app);
const header = headerView(app);
const cards = cardsView(app);
const conversation = conversationView(app);
const welcome = welcomeView(app);
const composer = composerView(app);
const search = searchDialog(app);
app.search = () => {
  closeDrawer();
  if (app.store.workspace) search.open();
};
app.composer = composer;
app.conversation = conversation;
app.sidebar = sidebar;
app.rename = header.rename;

// Not before there is a workspace: what is typed until then would belong nowhere.
composer.element.hidden = conversation.element.hidden = true;
const stage = h("div.stage", null, welcome.element, conversation.element);
const main = h("main.main", { id: "main", tabIndex: -1 }, header.element, cards.element, stage, composer.element);
const scrim = h("div.scrim", { hidden: true, onclick: closeDrawer });
document.body.prepend(skipLink(), h("div.shell", null, sidebar.element, scrim, main), notices.element);

// Also by a link to where one is already, which changes nothing else.
sidebar.element.addEventListener("click", (event) => event.target.closest("a") && closeDrawer());
let wasLost = false; // the stream, since it was last live
let seenSession = ""; // the shown session, once it was there: to tell one that was deleted from one not loaded yet
installKeys(app);
app.store.watch(update);
addEventListener("hashchange", follow);
begin();

async function begin() {
  if (!app.route.workspace && !location.hash && recall(LAST_PLACE)) {
    history.replaceState(null, "", recall(LAST_PLACE));
  }
  await refreshWorkspaces();
  follow();
}

/** What changed in the store, once per frame. */
function update(changes) {
  if (changes.sessions) leaveDeleted();
  if (changes.connection) noteUpgrade();
  for (const view of [sidebar, header, cards, conversation, composer, welcome, notices]) {
    try {
      view.update(changes);
    } catch (error) {
      console.error(error); // one part that cannot draw something must not keep the others from what they show
    }
  }
}

/** A server that was away may have come back as a newer one: what this page does then is of yesterday. */
async function noteUpgrade() {
  const { state } = app.store.connection;
  const isBack = wasLost && state === "live";
  wasLost = state === "lost" || (wasLost && !isBack);
  if (!isBack || !version) return;
  const now = await app.api.version().catch(() => null);
  if (!now || now.version === version) return;
  version = now.version;
  app.notify(`The server is now Windlass ${version}. Reload this page to get what is new in it.`);
}

// -- the address -----------------------------------------------------------------------------------------------------

async function follow() {
  const before = app.route;
  app.route = parseRoute(location.hash);
  const { workspace, session } = app.route;
  app.store.shown = session;
  if (workspace !== (app.store.workspace?.id ?? "") || app.problem) await showWorkspace(workspace);
  if (app.route.workspace !== workspace) return; // somebody went elsewhere while it was opened
  if (app.store.workspace) remember(LAST_PLACE, routeTo({ workspace, session }));
  const isShown = Boolean(app.store.workspace && session);
  welcome.element.hidden = isShown;
  conversation.element.hidden = !isShown;
  composer.element.hidden = !app.store.workspace;
  link.look(isShown ? session : "");
  conversation.show(isShown ? session : "", isShown ? app.route.run : "");
  composer.show(isShown ? session : "");
  header.show();
  sidebar.show();
  welcome.show();
  cards.update(everything());
  notices.show();
  if (before.session !== session) closeDrawer();
}

async function showWorkspace(id) {
  app.problem = "";
  if (!id) {
    leave();
    return refreshWorkspaces();
  }
  try {
    const workspace = await findWorkspace(id);
    if (app.route.workspace !== id) return;
    app.api.workspace = workspace.id;
    app.store.open(workspace);
    link.join(workspace.id, workspace.path, version);
  } catch (error) {
    if (app.route.workspace !== id) return;
    leave();
    app.problem = error.message;
  }
}

function leave() {
  if (app.store.workspace) link.leave();
  app.api.workspace = "";
  app.store.close();
}

/** The workspace as it is open now; one that was closed is opened by its path and keeps its id. */
async function findWorkspace(id) {
  const [found, server] = await Promise.all([app.api.workspaces(true), version ? null : app.api.version()]);
  app.workspaces = found;
  version ||= server?.version ?? "";
  const known = app.workspaces.find((workspace) => workspace.id === id);
  if (!known) throw new Error("The server does not know this workspace, or its directory is gone. Open it by path.");
  const workspace = known.closed ? await app.api.openWorkspace(known.path) : known;
  app.workspaces = app.workspaces.map((one) => (one.id === id ? workspace : one));
  return workspace;
}

async function refreshWorkspaces() {
  try {
    app.workspaces = await app.api.workspaces(true);
  } catch (error) {
    app.notify(error.message, "error");
  }
  sidebar.show();
  welcome.show();
}

/** The session that is shown was deleted, here or elsewhere: there is nothing left to look at. */
function leaveDeleted() {
  const { workspace, session } = app.route;
  const isThere = app.store.sessions.has(session);
  if (session && seenSession === session && !isThere && app.store.loaded) {
    app.notify("This session was deleted.");
    app.go({ workspace });
  }
  seenSession = isThere ? session : "";
}

// -- what several parts do -------------------------------------------------------------------------------------------

/** Open a directory of the server and go there. Throws with the server's words when that cannot be. */
async function openDirectory(path) {
  const workspace = await app.api.openWorkspace(path);
  await refreshWorkspaces();
  app.go({ workspace: workspace.id });
}

/** A new session begins with its first prompt: an empty one that nobody wrote in is never made. */
function newSession() {
  const workspace = app.store.workspace?.id ?? "";
  app.go({ workspace });
  closeDrawer();
  composer.focus();
}

function openDrawer() {
  document.body.classList.add("drawer-open");
  scrim.hidden = false;
  main.inert = true;
  sidebar.focus();
}

function closeDrawer() {
  if (!document.body.classList.contains("drawer-open")) return;
  document.body.classList.remove("drawer-open");
  scrim.hidden = true;
  main.inert = false;
  header.focusMenu();
}

function skipLink() {
  const skip = (event) => {
    event.preventDefault(); // the hash is the route
    main.focus();
  };
  return h("a.skip", { href: "#main", onclick: skip }, "Skip to the conversation");
}

function everything() {
  const names = ["connection", "sessions", "runs", "permissions", "questions", "files"];
  return { ...Object.fromEntries(names.map((name) => [name, true])), messages: new Map(), reset: false };
}
