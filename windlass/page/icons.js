// The page's icons: small drawings of lines, made with createElementNS. They are decoration; the words are beside them
// or in the button's label.

const DRAWINGS = {
  attach: "M14.5 6.5l-6.6 6.6a2.2 2.2 0 0 1-3.1-3.1l7-7a3.6 3.6 0 0 1 5.1 5.1l-7.1 7.1",
  bell: "M5 8.5a5 5 0 0 1 10 0c0 4 1.5 5 1.5 5h-13S5 12.5 5 8.5M8.5 16.2a1.7 1.7 0 0 0 3 0",
  close: "M5 5l10 10M15 5L5 15",
  eye: "M2.5 10S5 5 10 5s7.5 5 7.5 5-2.5 5-7.5 5-7.5-5-7.5-5zM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4z",
  folder: "M3 6.5A1.5 1.5 0 0 1 4.5 5h3l2 2h6A1.5 1.5 0 0 1 17 8.5v6a1.5 1.5 0 0 1-1.5 1.5h-11A1.5 1.5 0 0 1 3 14.5z",
  help: "M7.5 7.6a2.6 2.6 0 1 1 3.6 2.4c-.8.4-1.1.9-1.1 1.8M10 14.6v.1",
  list: "M3.5 5.5h13M3.5 10h13M3.5 14.5h13",
  more: "M4.9 10h.2M9.9 10h.2M14.9 10h.2",
  moon: "M16 11.7A6.5 6.5 0 1 1 8.3 4 5.2 5.2 0 0 0 16 11.7z",
  plus: "M10 4v12M4 10h12",
  search: "M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10zM13 13l4 4",
  send: "M10 16V4.5M5 9l5-5 5 5",
  stop: "M6 6h8v8H6z",
  sun:
    "M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10 2v2M10 16v2M2 10h2M16 10h2M4.3 4.3l1.4 1.4M14.3 14.3l1.4 1.4" +
    "M4.3 15.7l1.4-1.4M14.3 5.7l1.4-1.4",
};
const HEAVY = new Set(["more"]); // dots

/** An icon by its name, as an SVG element of `size` pixels. */
export function icon(name, size = 18) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const attributes = { width: size, height: size, viewBox: "0 0 20 20", fill: "none", "aria-hidden": "true" };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  path.setAttribute("d", DRAWINGS[name]);
  path.setAttribute("stroke", "currentColor");
  path.setAttribute("stroke-width", HEAVY.has(name) ? "2.4" : "1.6");
  path.setAttribute("stroke-linecap", "round");
  path.setAttribute("stroke-linejoin", "round");
  svg.append(path);
  return svg;
}
