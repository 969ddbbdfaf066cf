// Numbers as people read them: durations, tokens, money, bytes, moments.

/** `40 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`. */
export function duration(seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds > 0 && seconds < 0.1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** `950`, `12.3k`, `4.1M`. */
export function count(number) {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${Number((number / 1000).toFixed(1))}k`;
  return `${Number((number / 1_000_000).toFixed(1))}M`;
}

/** `$0.0042`, `$1.20`; nothing when it cost nothing. */
export function money(dollars) {
  if (!dollars) return "";
  return dollars < 0.01 ? `$${Number(dollars.toPrecision(2))}` : `$${dollars.toFixed(2)}`;
}

/** `512 bytes`, `12 KB`, `3.4 MB`. */
export function bytes(number) {
  if (number < 1000) return `${number} bytes`;
  if (number < 1_000_000) return `${Math.round(number / 1000)} KB`;
  return `${(number / 1_000_000).toFixed(1)} MB`;
}

/** Seconds between two moments as the server writes them (RFC 3339); NaN when one is missing. */
export function between(start, end) {
  return (Date.parse(end) - Date.parse(start)) / 1000;
}

/** A moment in Unix seconds as a short time, with the day when it was not today. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}

/** `1 line`, `3 lines`. */
export function plural(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
