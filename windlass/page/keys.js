// The keyboard: one letter each when nothing is being typed, a few chords that always work, and an overlay that tells.

import { showDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";

const TWICE_MILLISECONDS = 600; // between two presses of Escape, or of g and what follows it

const HELP = [
  ["Anywhere", [
    ["Ctrl K", "search"], ["Ctrl .", "stop what runs"], ["Esc Esc", "stop what runs"],
    ["Esc", "leave a field, close what is open"],
  ]],
  ["When nothing is being typed", [
    ["/", "search"], ["n", "new session"], ["j", "next session"], ["k", "previous session"], ["i", "go to the prompt"],
    ["w", "go to what waits for you"], ["r", "rename the session"], ["f", "filter sessions"], ["t", "light or dark"], ["?", "this list"],
    ["g w", "go to the workspace"], ["g h", "go to the first screen"],
  ]],
  ["In the prompt", [["Enter", "send"], ["Shift Enter", "new line"], ["!", "at the start: run a command of your own"]]],
  ["On a question for you", [["a", "allow once"], ["s", "allow for this session"], ["d", "deny"]]],
];

/** Listen for keys. Makes `app.help()`. */
export function installKeys(app) {
  let escaped = 0; // when Escape was pressed last
  let led = 0; // when g was pressed last
  app.help = showHelp;
  document.addEventListener("keydown", onKey);

  const letters = {
    "/": () => app.search(),
    "?": showHelp,
    n: () => app.store.workspace && app.newSession(),
    j: () => app.store.workspace && app.sidebar.step(1),
    k: () => app.store.workspace && app.sidebar.step(-1),
    i: () => app.store.workspace && app.composer.focus(),
    w: goToCard,
    r: () => app.rename(),
    f: () => app.sidebar.focusFilter(),
    t: () => app.toggleTheme(),
    g: () => (led = Date.now()),
  };
  const afterG = {
    h: () => app.go({}),
    w: () => app.store.workspace && app.go({ workspace: app.store.workspace.id }),
  };

  function onKey(event) {
    if (event.defaultPrevented || event.isComposing) return;
    const chord = event.ctrlKey || event.metaKey;
    if (chord && !event.altKey && event.key === "k") return does(event, () => app.search());
    if (chord && !event.altKey && event.key === ".") return does(event, () => app.composer.stop());
    if (chord || event.altKey) return;
    if (event.key === "Escape") return event.repeat ? undefined : onEscape(); // held down it is one press, not two
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const isLed = Date.now() - led < TWICE_MILLISECONDS;
    led = 0;
    const action = isLed ? afterG[event.key] : letters[event.key];
    if (action) does(event, action);
  }

  function onEscape() {
    if (document.querySelector("dialog[open]")) return; // it closes by itself
    if (document.body.classList.contains("drawer-open")) return app.closeDrawer();
    if (Date.now() - escaped < TWICE_MILLISECONDS) {
      escaped = 0;
      return app.composer.stop();
    }
    escaped = Date.now();
    if (isTyping(document.activeElement)) document.activeElement.blur();
  }
}

/** Focus what waits for an answer: then its letters answer it. */
function goToCard() {
  const cards = document.querySelectorAll("[data-testid=permission-card], [data-testid=question-card]");
  const card = [...cards].find((one) => one.checkVisibility());
  card?.focus();
  card?.scrollIntoView({ block: "nearest" });
}

function does(event, action) {
  event.preventDefault();
  action();
}

function isTyping(target) {
  const fields = "input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]";
  return Boolean(target?.closest?.(fields));
}

function showHelp() {
  const row = ([keys, about]) =>
    h("div", null, h("dt", null, keys.split(" ").map((key) => h("kbd", null, key))), h("dd", null, about));
  const sections = HELP.map(([title, rows]) =>
    h("section", null, h("h3", null, title), h("dl.keys", null, rows.map(row))));
  const close = h("button.quiet.icon.dialog-close", {
    type: "button", "aria-label": "Close", autofocus: true, onclick: () => dialog.close(),
  }, icon("close"));
  const dialog = showDialog("Keyboard", close, h("div.key-sections", null, sections));
  dialog.classList.add("wide");
  dialog.dataset.testid = "help";
}
