// A list on the page that follows a list of things: elements are kept as long as their thing is there, so that focus,
// scroll position and a finger on a button survive every update.

/** Make the children of `container` show `items` in order. `create(item)` answers `{element, update(item)}`. */
export function keyedList(container, keyOf, create) {
  const shown = new Map(); // key -> {element, update}
  return (items) => {
    const keys = new Set(items.map(keyOf));
    for (const [key, row] of shown) {
      if (keys.has(key)) continue;
      row.element.remove();
      shown.delete(key);
    }
    let place = container.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      let row = shown.get(key);
      if (!row) shown.set(key, (row = create(item)));
      row.update(item);
      if (row.element === place) place = place.nextElementSibling;
      else container.insertBefore(row.element, place); // only what moved is moved: moving takes the focus away
    }
  };
}
