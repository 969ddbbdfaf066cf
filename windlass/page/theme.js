// Light or dark as this browser was told last. A plain script in the head and not a module: it runs before the first
// paint, so that a dark page does not flash white.
try {
  const theme = localStorage.getItem("windlass.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off: the system's theme it is.
}
