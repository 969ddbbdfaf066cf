// Elements from JavaScript. Text is always text: there is no way to pass HTML through here, so nothing that a model, a
// tool or a file name says can become markup.

/** An element: `h("button.quiet", {onclick, title}, "Cancel")`. Attributes that are null, undefined or false are left
 *  out. */
export function h(selector, attributes, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

/** Append texts, elements and lists of them; nothing for null, undefined and false. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put these in the place of everything that is in the element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}
