// The API, drawn from its OpenAPI document.

import { h, main, replace } from "./dom.js";
import { get } from "./api.js";
import "./session.js";

let schemas = {};
const nameOf = (reference) => reference.split("/").at(-1);

function typeOf(schema) {
  if (!schema) return "any";
  if (schema.$ref) return h("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref));
  if (schema.anyOf) return schema.anyOf.flatMap((one, index) => [index ? " or " : "", typeOf(one)]).flat();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.type === "array" && !schema.prefixItems) return ["list of ", typeOf(schema.items)].flat();
  if (schema.type === "array") return ["[", schema.prefixItems.flatMap((one, index) => [index ? ", " : "", typeOf(one)]), "]"].flat(3);
  return schema.format ?? schema.type ?? "any";
}

function limits(schema) {
  const words = { minimum: "≥", maximum: "≤", exclusiveMinimum: ">", exclusiveMaximum: "<", minLength: "length ≥", maxLength: "length ≤", minItems: "items ≥", maxItems: "items ≤", pattern: "matches" };
  const parts = [schema, ...(schema.anyOf ?? [])].flatMap((one) => Object.entries(words).filter(([name]) => one[name] !== undefined).map(([name, sign]) => `${sign} ${one[name]}`));
  if (schema.default !== undefined && schema.default !== null) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.join(", ");
}

function fields(properties, required = []) {
  const rows = Object.entries(properties).map(([name, schema]) =>
    h("tr", {}, h("td", {}, h("code", {}, name), required.includes(name) ? h("span", { class: "tag" }, "needed") : null), h("td", {}, typeOf(schema)), h("td", {}, [schema.description, limits(schema)].filter(Boolean).join(" "))),
  );
  const head = h("tr", {}, ["Name", "Type", "Notes"].map((name) => h("th", { scope: "col" }, name)));
  return h("table", { class: "plain" }, h("thead", {}, head), h("tbody", {}, rows));
}

function operation(method, address, it) {
  const body = it.requestBody?.content?.["application/json"]?.schema;
  const parameters = Object.fromEntries((it.parameters ?? []).map((one) => [one.name, { ...one.schema, description: [one.in, one.description].filter(Boolean).join(": ") }]));
  const needed = (it.parameters ?? []).filter((one) => one.required).map((one) => one.name);
  const answers = Object.entries(it.responses).map(([status, answer]) => {
    const schema = Object.values(answer.content ?? {})[0]?.schema;
    return h("li", {}, h("code", {}, status), " ", answer.description, schema && status < 400 ? [" · ", typeOf(schema)].flat() : "");
  });
  return h(
    "details",
    { class: "operation", id: it.operationId },
    h("summary", {}, h("span", { class: `method ${method}` }, method.toUpperCase()), h("code", {}, address), h("span", { class: "muted" }, (it.description ?? it.summary ?? "").split("\n")[0])),
    Object.keys(parameters).length ? fields(parameters, needed) : null,
    body ? h("p", {}, "Body: ", typeOf(body)) : null,
    h("p", {}, "Answers:"),
    h("ul", {}, answers),
  );
}

const api = await get("/openapi.json");
schemas = api.components?.schemas ?? {};
const byTag = new Map();
for (const [address, methods] of Object.entries(api.paths)) {
  for (const [method, it] of Object.entries(methods)) {
    const tag = it.tags?.[0] ?? "other";
    byTag.set(tag, [...(byTag.get(tag) ?? []), operation(method, address, it)]);
  }
}
replace(
  main(),
  h("div", { class: "title" }, h("h1", {}, `${api.info.title} ${api.info.version}`), h("a", { class: "button", href: "/openapi.json" }, "openapi.json")),
  h("p", { class: "description" }, api.info.description),
  h("p", { class: "muted" }, "This page is for reading. Requests go to ", h("code", {}, location.origin), " by curl or any other HTTP client."),
  [...byTag].map(([tag, operations]) => h("section", {}, h("h2", { class: "tag-title" }, tag), h("div", { class: "card flush" }, operations))),
  h(
    "section",
    {},
    h("h2", {}, "Schemas"),
    Object.entries(schemas).map(([name, schema]) =>
      h("article", { class: "card schema", id: name }, h("h3", {}, name), h("p", { class: "muted" }, schema.description ?? ""), schema.properties ? fields(schema.properties, schema.required) : h("p", {}, typeOf(schema))),
    ),
  ),
);
document.getElementById(location.hash.slice(1))?.scrollIntoView();
