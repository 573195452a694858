// Small parts that several pages show.

import { h, say } from "./dom.js";
import * as format from "./format.js";

const STATUS = { draft: "Draft", running: "Running", paused: "Paused", concluded: "Concluded", archived: "Archived" };

export const status = (value) => h("span", { class: `pill ${value}` }, STATUS[value] ?? value);

export function setStatus(pill, value) {
  pill.className = `pill ${value}`;
  say(pill, STATUS[value] ?? value);
}

/** Previous and next, with where one is. */
export function pager(turn) {
  const words = h("span", { class: "muted", "aria-live": "polite" });
  const back = h("button", { class: "button small", type: "button", onClick: () => turn(-1) }, "Previous");
  const forth = h("button", { class: "button small", type: "button", onClick: () => turn(+1) }, "Next");
  const element = h("nav", { class: "pager", "aria-label": "Pages" }, words, h("span", { class: "actions" }, back, forth));
  element.show = (page, size, total) => {
    const last = Math.max(1, Math.ceil(total / size));
    element.hidden = last === 1 && page === 1;
    say(words, `${format.count(Math.min((page - 1) * size + 1, total))}–${format.count(Math.min(page * size, total))} of ${format.count(total)}`);
    back.disabled = page <= 1;
    forth.disabled = page >= last;
  };
  return element;
}
