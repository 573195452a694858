// The form for a new key.

import { h } from "./dom.js";
import { send } from "./api.js";
import { confirmed } from "./dialog.js";
import { field } from "./fields.js";

const SCOPES = [
  ["read", "read: look at experiments"],
  ["assign", "assign: ask which arm to show"],
  ["reward", "reward: tell what happened"],
  ["manage", "manage: create and change experiments"],
  ["admin", "admin: keys, deletion, and everything else"],
];
const LIVES = [["", "Never"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In a year"]];
const DAY_MS = 86400000;

const listed = (text) => {
  const found = text.split(/[\s,]+/).filter(Boolean);
  return found.length ? found : null;
};

/** Ask what it is to be, and make it; null if nobody wants one after all. `warning`: words to think about before. */
export async function createKey(warning) {
  const label = h("input", { name: "label", maxlength: 100, autocomplete: "off" });
  const boxes = SCOPES.map(([scope]) => h("input", { type: "checkbox", name: scope, checked: warning ? scope === "admin" : scope === "read" }));
  const scopes = h(
    "fieldset",
    { class: "choices", id: "scopes", "data-pointer": "/scopes" },
    h("legend", {}, "It may"),
    SCOPES.map(([, words], index) => h("label", { class: "check" }, boxes[index], h("span", {}, words))),
    h("small", { id: "scopes-error", class: "field-error", hidden: true }),
  );
  const experiments = h("input", { name: "experiments", autocomplete: "off", spellcheck: "false", placeholder: "checkout-*, pricing" });
  const life = h("select", { name: "life" }, LIVES.map(([days, words]) => h("option", { value: days }, words)));
  const kind = h("select", { name: "kind" }, h("option", { value: "secret" }, "A secret, for servers and people"), h("option", { value: "public" }, "Public, for pages and apps"));
  const origins = h("input", { name: "origins", autocomplete: "off", spellcheck: "false", placeholder: "https://shop.example" });
  const bound = field("Pages of these origins", "/origins", origins, "A public key may only assign and reward, by unit, in experiments named one by one.");
  bound.hidden = true;
  kind.addEventListener("change", () => (bound.hidden = kind.value !== "public"));
  let made = null;
  await confirmed({
    title: "New key",
    text: warning ?? "Its secret is shown once.",
    action: "Create key",
    wide: true,
    fields: [
      field("Label", "/label", label, "Whose it is, or what it is for: the log names it so."),
      scopes,
      field("Experiments", "/experiments", experiments, "Keys, or patterns with *. Empty: all."),
      field("It ends", "/expires_at", life),
      field("Kind", "/kind", kind),
      bound,
    ],
    run: async () => {
      made = await send("POST", "/v1/keys", {
        label: label.value.trim(),
        scopes: SCOPES.map(([scope]) => scope).filter((_, index) => boxes[index].checked),
        experiments: listed(experiments.value),
        expires_at: life.value ? new Date(Date.now() + Number(life.value) * DAY_MS).toISOString() : null,
        kind: kind.value,
        ...(kind.value === "public" ? { origins: listed(origins.value) } : {}),
      });
    },
  });
  return made;
}
