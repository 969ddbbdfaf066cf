// Small dialogs: ask before something that cannot be undone, and say what came of something in more than a line.

import { h } from "./dom.js";

/** Show a dialog with this content until it is closed; it is removed then. Answers the element. */
export function showDialog(title, ...content) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const attributes = { "aria-labelledby": "dialog-title", onclose: () => dialog.remove() };
  const dialog = h("dialog", attributes, heading, ...content);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it: on the backdrop
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Ask before something is done for good. Answers whether the person wants it. */
export function confirmDialog(title, text, action) {
  return new Promise((decide) => {
    let decision = false;
    const yes = h("button.danger", { type: "button", onclick: () => finish(true) }, action);
    const no = h("button", { type: "button", autofocus: true, onclick: () => finish(false) }, "Keep it");
    const dialog = showDialog(title, h("p", null, text), h("div.buttons", null, no, yes));
    dialog.addEventListener("close", () => decide(decision));

    function finish(answer) {
      decision = answer;
      dialog.close();
    }
  });
}

/** Tell what came of something. */
export function tellDialog(title, ...content) {
  const close = h("button.primary", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close");
  const dialog = showDialog(title, ...content, h("div.buttons", null, close));
  return dialog;
}
