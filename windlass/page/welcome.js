// The first screen: what this is, and what to do. Without a workspace it offers directories, in one a beginning.

import { modelName } from "./composer.js";
import { h, fill } from "./dom.js";
import { icon } from "./icons.js";
import { directoryName } from "./notices.js";
import { routeTo } from "./routes.js";
import { openingForm } from "./sidebar.js";
import { line } from "./visible.js";

const SHOWN_WORKSPACES = 8;
const DEMO = [
  ["list", "shows the files here"],
  ["read README.md", "reads a file"],
  ["write hello.txt Hello", "writes one; you are asked first"],
  ["run date", "runs a command; you are asked first"],
  ["delegate list", "lets a sub-agent do it"],
];

/** The first screen. */
export function welcomeView(app) {
  const element = h("div.welcome", { dataset: { testid: "welcome" } });
  const opening = openingForm(app);
  opening.form.hidden = false;
  opening.form.querySelector("button[type=button]").remove(); // there is nothing to cancel here
  let shown = "";
  return { element, show, update };

  function update(changes) {
    if (changes.reset || changes.connection) show();
  }

  function show() {
    const known = app.workspaces.map((one) => [one.id, one.closed]);
    const key = JSON.stringify([app.store.workspace?.id, modelName(app.store.workspace), app.problem, known]);
    if (element.hidden || key === shown) return; // a path that is being typed must not be taken away
    shown = key;
    fill(element, h("div.welcome-column", null, app.store.workspace ? inside(app.store.workspace) : outside()));
  }

  function outside() {
    const known = app.workspaces.slice(0, SHOWN_WORKSPACES);
    return [
      h("img.welcome-icon", { src: "/page/icon.svg", alt: "", width: "44", height: "44" }),
      h("h2", null, "An agent in a directory, for everyone who looks"),
      h("ul.lines", null,
        h("li", null, "Open a directory of the machine this server runs on: that is a workspace."),
        h("li", null, "Say in a session what should be done. It goes on when you close this page."),
        h("li", null, "You are asked before anything is changed or run, here and on every other page that is open.")),
      app.problem && h("p.problem", { role: "alert" }, app.problem),
      known.length > 0 && h("h3", null, "Workspaces"),
      known.length > 0 && h("ul.offers", null, known.map(workspaceCard)),
      h("h3", null, "Open a directory"),
      opening.form,
    ];
  }

  function workspaceCard(workspace) {
    const { id, path, closed } = workspace;
    const name = h("strong", null, line(directoryName(path) || path));
    const words = h("span.offer-words", null, name, h("span.soft", null, line(path)));
    const state = h("span.soft", null, closed ? "closed" : "open");
    return h("li", null, h("a.offer", { href: routeTo({ workspace: id }) }, icon("folder"), words, state));
  }

  function inside(workspace) {
    const isDemo = modelName(workspace) === "scripted/demo";
    return [
      h("h2", null, `What shall be done in ${line(directoryName(workspace.path) || workspace.path)}?`),
      h("p.soft.path", null, line(workspace.path)),
      h("ul.lines", null,
        h("li", null, "Type below: your first prompt begins a new session."),
        h("li", null, "While it works you can queue more, steer it, or stop it."),
        h("li.for-keyboard", null,
          "Press ", h("kbd", null, "?"), " for the keyboard, ", h("kbd", null, "/"), " to search.")),
      isDemo && h("section.demo", null,
        h("h3", null, "This is the built-in demo"),
        h("p", null, "No language model and no key: it follows five words, with real tools. Try one:"),
        h("ul.offers", null, DEMO.map(demoOffer)),
        h("p.soft", null,
          "For a real model set ", h("code", null, "model"), " and a provider in the config file, ",
          "or export an API key; ", h("code", null, "windlass doctor"), " says where.")),
    ];
  }

  function demoOffer([text, about]) {
    const insert = () => app.composer.insert(text);
    const words = [h("code", null, text), h("span.soft", null, about)];
    return h("li", null, h("button.offer", { type: "button", onclick: insert }, words));
  }
}
