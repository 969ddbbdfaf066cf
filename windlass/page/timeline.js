// What a run spent its time on, as a picture: a row for each kind of thing, time from left to right. The same is there
// as a table, for those who cannot see it and for those who want the figures.

import { h, fill } from "./dom.js";
import { count, duration } from "./figures.js";
import { sessionAddress } from "./run_end.js";
import { endOf, lanesOf, ticks, total } from "./timeline_rows.js";
import { prose } from "./visible.js";

const REFRESH_MILLISECONDS = 1_000; // at most so often, while the run goes on
const LANE_PIXELS = 22;
const AXIS_PIXELS = 22;
const LEFT_PIXELS = 62; // for the names of the rows
const TICK_PIXELS = 90; // between two marks of the axis, at least
const LETTER_PIXELS = 6.5; // of a name inside its bar
const LEAST_PIXELS = 3; // of a span: one that took no time must still be seen
const TABLE_SPANS = 1_000;
const SVG = "http://www.w3.org/2000/svg";
const COLUMNS = ["What", "Which", "From", "Took", "How it ended", "Tokens"];
const KINDS = { queue: "In the queue", model: "Model", tool: "Tool", permission: "Permission", question: "Question" };

/** The panel. `show(runId)` opens it ("" closes), `update(changes)` keeps it live; `goTo(messageId)` is where it
 *  leads. */
export function timelineView(app, goTo) {
  const title = h("h2", null, "Timeline");
  const close = h("a.close", { "aria-label": "Close the timeline" }, "Close");
  const figures = h("p.soft");
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true"); // the table says the same
  const says = "Picture of the run; the arrow keys walk over its parts";
  const picture = h("div.picture", { tabindex: "0", role: "group", "aria-label": says }, svg);
  const detail = h("p.detail", { role: "status" });
  const table = h("details.as-table", null, h("summary", null, "As a table"));
  const element = h(
    "section.timeline",
    { hidden: true, "aria-label": "Timeline of the run", dataset: { testid: "timeline" } },
    h("div.timeline-head", null, title, figures, close), picture, detail, table,
  );

  let shownRun = "";
  let timeline = null;
  let now = 0;
  let bars = []; // in the order of time: {span, bar}
  let chosen = -1;
  let timer = 0;
  let loadedAt = 0;
  let width = 0;
  picture.addEventListener("keydown", byKey);
  table.addEventListener("toggle", drawTable);
  new ResizeObserver(() => timeline && picture.clientWidth !== width && draw()).observe(picture);
  return { element, show, update };

  // -- loading --------------------------------------------------------------------------------------------------------

  function show(runId) {
    if (runId === shownRun) return;
    shownRun = runId;
    timeline = null;
    chosen = -1;
    element.hidden = !runId;
    clearTimeout(timer);
    timer = 0;
    svg.replaceChildren();
    fill(figures);
    fill(detail);
    close.setAttribute("href", sessionAddress(app, app.route.session));
    if (runId) load();
  }

  function update(changes) {
    if (!shownRun || timer || (timeline && timeline.end)) return;
    if (!changes.runs && !changes.permissions && !changes.questions && !changes.messages.has(app.route.session)) return;
    timer = setTimeout(load, Math.max(0, loadedAt + REFRESH_MILLISECONDS - Date.now()));
  }

  async function load() {
    const own = shownRun;
    timer = 0;
    loadedAt = Date.now();
    try {
      const found = await app.api.timeline(own);
      if (own !== shownRun) return;
      timeline = found;
      draw();
    } catch (error) {
      if (own === shownRun) fill(detail, h("span.failed", null, `The timeline cannot be shown. ${error.message}`));
    }
  }

  // -- the picture ----------------------------------------------------------------------------------------------------

  function draw() {
    now = endOf(timeline, Date.now() / 1000);
    width = picture.clientWidth;
    const seconds = Math.max(now - timeline.start, 0.001);
    const room = Math.max(width - LEFT_PIXELS - 8, 50);
    const x = (moment) => LEFT_PIXELS + (Math.min(Math.max(moment - timeline.start, 0), seconds) / seconds) * room;
    const lanes = lanesOf(timeline.spans, now);
    const height = lanes.length * LANE_PIXELS + AXIS_PIXELS;
    svg.setAttribute("width", String(width));
    svg.setAttribute("height", String(height));
    svg.replaceChildren(...axis(seconds, room, height, x), ...lanes.flatMap((lane, row) => drawLane(lane, row, x)));
    bars.sort((one, other) => one.span.start - other.span.start);
    drawFigures(seconds);
    choose(Math.min(chosen, bars.length - 1));
    drawTable();
  }

  function axis(seconds, room, height, x) {
    bars = [];
    return ticks(seconds, Math.max(1, Math.floor(room / TICK_PIXELS))).flatMap((place) => {
      const left = x(timeline.start + place);
      const anchor = left > LEFT_PIXELS + room - 30 ? "end" : "start";
      return [
        shape("line", { x1: left, x2: left, y1: 0, y2: height - AXIS_PIXELS + 4, class: "tick" }),
        shape("text", { x: left, y: height - 4, "text-anchor": anchor, class: "tick-name" }, duration(place)),
      ];
    });
  }

  function drawLane({ name, spans }, row, x) {
    const top = row * LANE_PIXELS;
    const label = shape("text", { x: 0, y: top + 15, class: "row-name" }, name);
    return [label, ...spans.flatMap((span) => drawSpan(span, top, x))];
  }

  function drawSpan(span, top, x) {
    const left = x(span.start);
    const right = Math.max(x(span.end || now), left + LEAST_PIXELS);
    const place = { x: left, y: top + 3, width: right - left, height: LANE_PIXELS - 6, rx: 3 };
    const bar = shape("rect", { ...place, class: `span ${span.kind}`, "data-outcome": span.outcome ?? "" });
    const index = () => bars.findIndex((one) => one.bar === bar);
    bar.addEventListener("pointerenter", () => choose(index()));
    bar.addEventListener("click", () => choose(index(), true));
    bars.push({ span, bar });
    const room = Math.floor((right - left - 10) / LETTER_PIXELS);
    const name = prose(span.label).slice(0, 60);
    const fits = name.length <= room;
    return fits ? [bar, shape("text", { x: left + 5, y: top + 15, class: "span-name" }, name)] : [bar];
  }

  function drawFigures(seconds) {
    const model = total(timeline, ["model"], now);
    const people = total(timeline, ["permission", "question"], now);
    const says = [
      `${duration(seconds)} in all`,
      `model ${duration(model)}`,
      people ? `waiting for people ${duration(people)}` : "",
      timeline.whole ? "" : "of this old run only the outline is left",
    ];
    fill(figures, says.filter(Boolean).join(" · "));
  }

  // -- looking closer -------------------------------------------------------------------------------------------------

  function choose(index, andGo = false) {
    chosen = index;
    bars.forEach(({ bar }, place) => bar.classList.toggle("chosen", place === index));
    const span = bars[index]?.span;
    if (!span) return fill(detail, bars.length ? "Point at a part to see what it was." : "");
    fill(detail, described(span, timeline, now), links(span));
    if (andGo && span.message_id) goTo(span.message_id);
  }

  function links(span) {
    const found = [];
    if (span.message_id) {
      found.push(" ", h("button.link", { type: "button", onclick: () => goTo(span.message_id) }, "Show"));
    }
    if (span.session_id) found.push(" ", h("a", { href: sessionAddress(app, span.session_id) }, "Open the agent"));
    return found;
  }

  function byKey(event) {
    if (event.target !== picture) return;
    const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: bars.length - 1 }[event.key];
    if (event.key === "Enter" && chosen >= 0) choose(chosen, true);
    if (to === undefined) return;
    event.preventDefault();
    choose(Math.min(Math.max(to, 0), bars.length - 1));
  }

  function drawTable() {
    table.querySelector(".table")?.remove();
    if (!table.open || !timeline) return;
    const head = COLUMNS.map((name) => h("th", { scope: "col" }, name));
    const rows = timeline.spans.slice(0, TABLE_SPANS).map((span) => {
      const from = duration(span.start - timeline.start);
      const cells = [KINDS[span.kind], prose(span.label), from, took(span, now), ended(span), tokens(span)];
      return h("tr", null, cells.map((cell) => h("td", null, cell)));
    });
    const whole = h("table", null, h("thead", null, h("tr", null, head)), h("tbody", null, rows));
    table.append(h("div.table", { tabindex: "0", role: "group", "aria-label": "Parts of the run" }, whole));
  }
}

function described(span, timeline, now) {
  const from = `from ${duration(span.start - timeline.start)}`;
  const what = `${KINDS[span.kind]}: ${prose(span.label)}`;
  return [what, took(span, now), from, ended(span), tokens(span)].filter(Boolean).join(" · ");
}

function took(span, now) {
  return span.end ? duration(span.end - span.start) : `${duration(now - span.start)} so far`;
}

function ended(span) {
  const words = (span.outcome ?? "").replaceAll("_", " ");
  return span.by ? `${words} by ${prose(span.by)}` : words;
}

function tokens(span) {
  const { prompt_tokens: sent = 0, completion_tokens: written = 0 } = span;
  return sent + written ? `${count(sent)} tokens in, ${count(written)} out` : "";
}

function shape(name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}
