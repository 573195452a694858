// A line as tall as a word: an arm's share over time, from none to all of the traffic, so that lines can be compared.

import { svg } from "./dom.js";

const WIDTH = 84;
const HEIGHT = 28;

export function sparkline(values) {
  const picture = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  if (values.length < 2) {
    picture.append(svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 3, y2: HEIGHT - 3, class: "spark-none" }));
    return picture;
  }
  const x = (index) => 2 + (index / (values.length - 1)) * (WIDTH - 8);
  const y = (value) => HEIGHT - 3 - value * (HEIGHT - 7);
  const places = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
  const last = values.length - 1;
  picture.append(
    svg("polygon", { class: "spark-area", points: `${x(0)},${HEIGHT - 3} ${places.join(" ")} ${x(last)},${HEIGHT - 3}` }),
    svg("polyline", { class: "spark-line", points: places.join(" ") }),
    svg("circle", { class: "spark-end", cx: x(last), cy: y(values[last]), r: 2.5 }),
  );
  return picture;
}
