// The verdict as a sign: each state has a shape, a colour and words of its own, so that none needs its colour to be told from another.

import { h, say, svg } from "./dom.js";

const RING = 2 * Math.PI * 6;

const SHAPES = {
  collecting: () => svg("circle", { cx: 8, cy: 8, r: 6, class: "outline dashed" }),
  leading: () => [
    svg("circle", { cx: 8, cy: 8, r: 6, class: "outline faint" }),
    svg("circle", { cx: 8, cy: 8, r: 6, class: "outline progress", transform: "rotate(-90 8 8)", "stroke-dasharray": `0 ${RING}` }),
  ],
  decided: () => [svg("circle", { cx: 8, cy: 8, r: 7, class: "solid" }), svg("path", { d: "M4.8 8.2l2.2 2.3 4.2-4.8", class: "mark" })],
  concluded: () => [svg("rect", { x: 1.5, y: 1.5, width: 13, height: 13, rx: 3, class: "solid" }), svg("path", { d: "M5 11.5v-7h6l-1.6 2 1.6 2H5", class: "mark" })],
  harmful: () => [svg("path", { d: "M8 1.2L15.2 14H.8z", class: "solid" }), svg("path", { d: "M8 6v3.6M8 11.6v.4", class: "mark" })],
};

const WORDS = { collecting: "Collecting", leading: "Leading", decided: "Decided", concluded: "Concluded" };

/** How far the evidence has come; never rounded up to a verdict that is not there. */
export const progressText = (progress) => `${Math.min(99, Math.floor(progress * 100))}%`;

/** May I stop? `show(verdict)` with the `verdict` of a recommendation; in few words where a column says what they are about. */
export function verdictSign({ short = false } = {}) {
  const picture = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  const words = h("span");
  const element = h("span", { class: "verdict-sign" }, picture, words);
  let shown = null;
  element.show = ({ state, progress }) => {
    if (state !== shown) {
      picture.replaceChildren(...[SHAPES[state]()].flat());
      element.className = `verdict-sign ${state}`;
      shown = state;
    }
    if (state === "leading") picture.lastChild.setAttribute("stroke-dasharray", `${progress * RING} ${RING}`);
    say(words, state === "leading" ? `${WORDS.leading}, ${progressText(progress)}${short ? "" : " to a verdict"}` : WORDS[state]);
  };
  return element;
}

/** Arms that are shown to be worse than the control: hidden while there are none. */
export function harmfulSign() {
  const words = h("span");
  const picture = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, SHAPES.harmful());
  const element = h("span", { class: "verdict-sign harmful", hidden: true }, picture, words);
  element.show = (names) => {
    element.hidden = names.length === 0;
    say(words, names.length > 1 ? `${names.length} arms are harmful` : names.map((name) => `${name} is harmful`).join(""));
  };
  return element;
}
