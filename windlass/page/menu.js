// A menu under a button: opened by click or key, walked with the arrows, closed by Escape or a click elsewhere.

import { h, fill } from "./dom.js";

/** A button with a menu. `items()` answers `[{label, act, danger?, disabled?}]`, asked each time it is opened. */
export function menuButton(attributes, face, items) {
  const list = h("div.menu-items", { role: "menu", hidden: true, "aria-label": attributes["aria-label"] });
  const button = h("button.quiet.icon", {
    ...attributes, type: "button", "aria-haspopup": "menu", "aria-expanded": "false",
    onclick: () => toggle(list.hidden),
  }, face);
  const element = h("div.menu", null, button, list);
  element.addEventListener("keydown", onKey);
  element.addEventListener("focusout", (event) => !element.contains(event.relatedTarget) && toggle(false));
  return { element, button };

  function toggle(isOpen) {
    if (isOpen) fill(list, items().map(row));
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) list.firstElementChild?.focus();
  }

  function row({ label, act, danger, disabled }) {
    const choose = () => {
      toggle(false);
      button.focus();
      act();
    };
    const look = danger ? "button.quiet.danger" : "button.quiet";
    return h(look, { type: "button", role: "menuitem", disabled, onclick: choose }, label);
  }

  function onKey(event) {
    if (list.hidden) return;
    const rows = [...list.children].filter((one) => !one.disabled);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      toggle(false);
      button.focus();
    } else if (step) {
      rows.at((rows.indexOf(document.activeElement) + step) % rows.length).focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
