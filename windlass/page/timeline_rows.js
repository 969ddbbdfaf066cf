// Where each stretch of a run is drawn, decided without drawing anything. Pure: no elements here.

const ROWS = [
  { kinds: ["queue"], name: "Queue" },
  { kinds: ["model"], name: "Model" },
  { kinds: ["tool"], name: "Tools" },
  { kinds: ["permission", "question"], name: "Waiting" },
];
const LANES = 12; // of one row; what overlaps more often than that is drawn over the last lane
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

/** The lanes from top to bottom: `{name, spans}`; a row has more than one where its spans overlap, and only the first
 *  has the name. Rows with nothing in them are left out. */
export function lanesOf(spans, now) {
  return ROWS.flatMap(({ kinds, name }) => {
    const lanes = [];
    for (const span of spans.filter((one) => kinds.includes(one.kind))) {
      const free = lanes.find((lane) => lane.until <= span.start);
      const lane = free ?? (lanes.length < LANES ? lanes[lanes.push({ spans: [], until: 0 }) - 1] : lanes.at(-1));
      lane.spans.push(span);
      lane.until = span.end || now;
    }
    return lanes.map((lane, index) => ({ name: index === 0 ? name : "", spans: lane.spans }));
  });
}

/** Seconds from the start at which the axis has marks, `most` of them at most. */
export function ticks(seconds, most) {
  const fine = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
  const step = [...fine, ...STEPS].find((one) => seconds / one <= most) ?? seconds / most;
  const found = [];
  for (let place = 0; place <= seconds * 1.0001 && found.length <= most + 1; place += step) found.push(place);
  return found;
}

/** When "now" is for a run that goes on: this clock, unless it is so far from the server's that it would mislead. */
export function endOf(timeline, clock) {
  if (timeline.end) return timeline.end;
  const known = Math.max(timeline.start, ...timeline.spans.map((span) => Math.max(span.start, span.end)));
  return clock > known && clock < known + 86_400 ? clock : known;
}

/** How long all spans of these kinds took together. */
export function total(timeline, kinds, now) {
  const of = timeline.spans.filter((span) => kinds.includes(span.kind));
  return of.reduce((sum, span) => sum + (span.end || now) - span.start, 0);
}
