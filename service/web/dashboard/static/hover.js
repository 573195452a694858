// Reading a picture: point at it, touch it, or go through it with the arrow keys, and it tells its numbers.

import { h, replace, say, svg } from "./dom.js";

const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const PAGE_KEYS = { PageDown: 10, PageUp: -10 };
const SHORT_MS = 600000;
const TALL_PX = 420;
const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const exactTimes = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A place for a picture that can be read. `show` takes a new picture with its numbers; what is being read stays. */
export function readable(label) {
  const box = h("div", { class: "reading", hidden: true, "aria-hidden": "true" });
  const told = h("p", { class: "unseen", "aria-live": "polite" });
  const element = h("div", { class: "plot", role: "group", tabindex: "0", "aria-label": `${label}. The arrows move through it.` });
  const marks = svg("g", { class: "reading-marks" });
  let picture = null;
  let numbers = null;
  let at = null; // which reading, or none
  let newest = false; // stays with the last one as time goes on

  const nameOf = ({ of }) => {
    if (typeof of === "string") return of;
    const span = numbers.readings.at(-1).of - numbers.readings[0].of;
    return (span < SHORT_MS ? exactTimes : times).format(new Date(of));
  };

  function place() {
    const reading = numbers?.readings[at];
    box.hidden = !reading;
    if (!reading) return marks.replaceChildren();
    drawMarks(reading);
    const line = (series, value) => h("div", {}, swatch(series), h("dt", {}, series.name), h("dd", {}, value));
    const known = numbers.series.map((series, index) => [series, reading.values[index]]).filter(([, value]) => value !== null);
    replace(box, h("p", { class: "reading-of" }, nameOf(reading)), h("dl", {}, known.map(([series, value]) => line(series, value))));
    stand(reading.place * (element.clientWidth / picture.viewBox.baseVal.width));
  }

  /** The box stands below the picture, so that it hides nothing of it; above, where the screen ends; in a long list, below its row. */
  function stand(along) {
    const { clientWidth: width, clientHeight: height } = element;
    const left = numbers.axis === "x" ? along - box.offsetWidth / 2 : width - box.offsetWidth - 8;
    const below = numbers.axis === "y" && height > TALL_PX ? along + 16 : height - 4;
    const ends = element.getBoundingClientRect().top + below + box.offsetHeight > innerHeight;
    const above = numbers.axis === "y" && height > TALL_PX ? along - box.offsetHeight - 16 : 4 - box.offsetHeight;
    box.style.setProperty("left", `${Math.max(4, Math.min(left, width - box.offsetWidth - 4))}px`);
    box.style.setProperty("top", `${ends ? above : below}px`);
  }

  function drawMarks({ place: along, dots }) {
    const [from, to] = numbers.span;
    if (numbers.axis === "y") {
      marks.replaceChildren(svg("rect", { x: 8, y: along - 13, width: picture.viewBox.baseVal.width - 16, height: 26, rx: 4, class: "reading-row" }));
      return;
    }
    const circles = dots.map((dot, index) => dot !== null && svg("circle", { cx: along, cy: dot, r: 4, fill: numbers.series[index].colour, class: "reading-dot" }));
    marks.replaceChildren(svg("line", { x1: along, x2: along, y1: from, y2: to, class: "reading-line" }), ...circles.filter(Boolean));
  }

  function swatch({ colour, dashes }) {
    if (!colour) return h("span");
    return svg("svg", { viewBox: "0 0 16 8", width: 16, height: 8, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 16, y1: 4, y2: 4, stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dashes }));
  }

  function read(index) {
    if (!numbers) return;
    at = index === null ? null : Math.max(0, Math.min(index, numbers.readings.length - 1));
    newest = at === numbers.readings.length - 1;
    place();
  }

  function tell() {
    const reading = numbers?.readings[at];
    if (!reading) return;
    const values = numbers.series.map(({ name }, index) => reading.values[index] && `${name} ${reading.values[index]}`);
    say(told, `${nameOf(reading)}: ${values.filter(Boolean).join(", ")}`);
  }

  function nearest(event) {
    const size = picture.getBoundingClientRect();
    const scale = picture.viewBox.baseVal.width / size.width;
    const wanted = (numbers.axis === "x" ? event.clientX - size.left : event.clientY - size.top) * scale;
    const far = numbers.readings.map(({ place: along }) => Math.abs(along - wanted));
    return far.indexOf(Math.min(...far));
  }

  const point = (event) => numbers && read(nearest(event));
  element.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(event));
  element.addEventListener("pointerdown", point);
  element.addEventListener("pointermove", (event) => event.pointerType !== "mouse" && event.buttons && point(event));
  element.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && !element.matches(":focus-visible") && read(null));
  element.addEventListener("focus", () => element.matches(":focus-visible") && numbers && (read(at ?? numbers.readings.length - 1), tell()));
  element.addEventListener("blur", () => read(null));
  element.addEventListener("keydown", (event) => {
    if (!numbers || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = numbers.readings.length - 1;
    const by = KEYS[event.key] ?? PAGE_KEYS[event.key];
    if (by) read((at ?? last) + by);
    else if (event.key === "Home") read(0);
    else if (event.key === "End") read(last);
    else if (event.key === "Escape") return read(null);
    else return;
    event.preventDefault();
    tell();
  });
  addEventListener("resize", () => at !== null && place());
  element.append(box, told);

  element.show = (drawn, readings) => {
    const before = numbers?.readings[at];
    numbers = readings?.readings.length ? readings : null;
    drawn.append(marks);
    if (picture) picture.replaceWith(drawn);
    else element.prepend(drawn);
    picture = drawn;
    if (!before || !numbers) return read(null);
    const same = typeof before.of === "string" ? numbers.readings.findIndex(({ of }) => of === before.of) : numbers.readings.findLastIndex(({ of }) => of <= before.of);
    read(newest ? numbers.readings.length - 1 : Math.max(0, same));
  };
  return element;
}
