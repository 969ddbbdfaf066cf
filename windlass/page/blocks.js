// Markdown that is still being written, cut into blocks that will not change any more. Pure: no elements here.
//
// A block ends at a blank line outside of a code fence, when what follows begins a new thing: not an indented line,
// which belongs to the list or the quote before it, and not another item of the same list.

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/; // three backticks that are closed on their line are code inside it
const ITEM = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;

/** A cutter that is fed the whole text so far, again and again, and looks at each line once. */
export function blockCutter() {
  let scanned = 0; // the beginning of the first line that was not looked at
  let begin = 0; // of the block that is being written
  let fence = ""; // what would close the code block we are in
  let isBlank = false; // the line before was blank
  let isList = false; // the block began with a list

  return {
    /** The blocks that are finished since the last call; `tail` then says where the rest begins. */
    take(text) {
      const finished = [];
      for (let end = text.indexOf("\n", scanned); end !== -1; end = text.indexOf("\n", scanned)) {
        const line = text.slice(scanned, end);
        if (isBlank && !fence && beginsAnew(line)) {
          finished.push(text.slice(begin, scanned));
          begin = scanned;
          isList = false;
        }
        look(line);
        scanned = end + 1;
      }
      return finished;
    },
    get tail() {
      return begin;
    },
    get isInCode() {
      return fence !== "";
    },
  };

  function beginsAnew(line) {
    return line.trim() !== "" && !/^\s/.test(line) && !(isList && ITEM.test(line));
  }

  function look(line) {
    const mark = FENCE.exec(line.length > 200 ? line.slice(0, 200) : line)?.[1] ?? "";
    if (fence) {
      if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = "";
    } else if (mark) {
      fence = mark;
    } else if (ITEM.test(line)) {
      isList = true;
    }
    isBlank = !fence && line.trim() === "";
  }
}

/** Whether the text names links in one place and uses them in another: then blocks cannot be rendered one by one. */
export function hasReferences(text) {
  return /^ {0,3}\[[^\]\n]{1,200}\]:/m.test(text);
}
