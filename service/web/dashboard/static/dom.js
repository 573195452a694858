// Building the page. Everything that comes from outside enters as text, never as markup.

/** An element with attributes, listeners (`onClick`), and children; strings become text nodes, null and false are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...flat(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...flat(children));
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function flat(children) {
  return children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Set the text only where it changed, so that nothing is repainted or read out again for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function replace(element, ...children) {
  element.replaceChildren(...flat(children));
}

export const main = () => document.getElementById("main");

/** A state of the whole page: empty, unknown, or broken. */
export function notice(title, text, ...actions) {
  return h("section", { class: "empty" }, h("h1", {}, title), h("p", {}, text), h("p", { class: "actions" }, actions));
}
