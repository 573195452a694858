// The pictures, drawn by the server; a new one takes the old one's place only when it is there.

import { h, replace } from "./dom.js";
import { path } from "./api.js";

const CHARTS = [
  ["means", "Mean reward of each arm with its interval"],
  ["traffic", "Share of the traffic over time against its target"],
  ["certainty", "Certainty of the recommendation over time"],
];
const REST_MS = 2000;

export function charts(key) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 560px)");
  const figures = CHARTS.map(([name, alt]) => {
    const link = h("a", { "aria-label": `${alt}, as a picture of its own` });
    return { name, alt, link, element: h("figure", { class: "card flush chart" }, link) };
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

  async function renew({ name, alt, link }, version) {
    const query = `theme=${dark.matches ? "dark" : "light"}&size=${narrow.matches ? "small" : "large"}`;
    const address = `${path(key, "charts", name)}.svg?${query}`;
    const picture = new Image();
    picture.alt = alt;
    picture.src = `${address}&version=${version}`;
    try {
      await picture.decode();
    } catch {
      drawn = 0; // the connection is lost, as the page says: draw anew when it is back
      return;
    }
    link.href = address;
    replace(link, picture);
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
