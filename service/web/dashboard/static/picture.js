// The server's pictures inside the page. Only what they are made of is taken over: shapes, words, and attributes without effects.

import { svg } from "./dom.js";

const ELEMENTS = new Set(["svg", "rect", "line", "polyline", "polygon", "circle", "text", "title"]);
const ATTRIBUTES = new Set([
  "viewBox", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "width", "height", "points", "fill", "fill-opacity", "stroke",
  "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "text-anchor", "font-family", "font-size", "font-weight",
]);

/** The picture and the numbers behind it (service/web/charts/readings.py), from the text of an SVG. */
export function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") throw new Error("not a picture");
  const child = (name) => [...root.children].find((one) => one.nodeName === name)?.textContent ?? "";
  const element = copy(root);
  element.removeAttribute("width"); // as wide as there is room
  element.removeAttribute("height");
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", [child("title"), child("desc")].filter(Boolean).join(". "));
  element.firstChild.remove(); // its own title would be shown to whoever points anywhere
  const numbers = child("metadata");
  return { element, readings: numbers ? JSON.parse(numbers) : null };
}

function copy(original) {
  const attributes = [...original.attributes].filter(({ name }) => ATTRIBUTES.has(name)).map(({ name, value }) => [name, value]);
  const children = [...original.childNodes].map((child) => (child.nodeType === Node.TEXT_NODE ? child.data : ELEMENTS.has(child.nodeName) ? copy(child) : null));
  return svg(original.nodeName, Object.fromEntries(attributes), children);
}
