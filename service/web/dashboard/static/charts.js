// The pictures, drawn by the server; a new one takes the old one's place only when it is there.

import { h, say } from "./dom.js";
import { path } from "./api.js";
import { readable } from "./hover.js";
import { picture } from "./picture.js";

const CHARTS = [
  ["means", "Mean reward of each arm with its interval"],
  ["traffic", "Share of the traffic over time against its target"],
  ["certainty", "Progress to the verdict over time"],
];
const REST_MS = 2000;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function charts(key) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 560px)");
  const figures = CHARTS.map(([name, alt]) => {
    const plot = readable(alt);
    const link = h("a", { "aria-label": `${alt}, as a picture of its own` }, "Open picture");
    const times = h("span");
    return { name, plot, link, times, element: h("figure", { class: "card flush chart" }, plot, h("figcaption", {}, times, link)) };
  });
  const elements = Object.fromEntries(figures.map((figure) => [figure.name, figure.element]));
  let drawn = 0;
  let newest = 0;
  let resting = false;

  async function draw() {
    if (resting || drawn === newest || document.hidden) return;
    resting = true;
    drawn = newest;
    await Promise.all(figures.map((figure) => renew(figure, drawn)));
    setTimeout(() => {
      resting = false;
      draw();
    }, REST_MS);
  }

  async function renew({ name, plot, link, times }, version) {
    const look = `theme=${dark.matches ? "dark" : "light"}&size=${narrow.matches ? "small" : "large"}`;
    const address = `${path(key, "charts", name)}.svg?${look}`;
    try {
      const answer = await fetch(`${address}&utc_offset=${-new Date().getTimezoneOffset()}&version=${version}`);
      if (!answer.ok) throw new Error(`${answer.status}`);
      const { element, readings } = picture(await answer.text());
      element.dataset.version = version;
      plot.show(element, readings);
    } catch {
      drawn = 0; // the connection is lost, as the page says: draw anew when it is back
      return;
    }
    link.href = address;
    say(times, `Times in ${zone}`);
  }

  const anew = () => {
    drawn = 0;
    draw();
  };
  dark.addEventListener("change", anew);
  narrow.addEventListener("change", anew);
  document.addEventListener("visibilitychange", draw);
  return {
    ...elements,
    show(version) {
      newest = version;
      draw();
    },
  };
}
