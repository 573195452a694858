// The form that trades a key for a session.

import { h, replace } from "./dom.js";
import { Problem, get, tryToSend } from "./api.js";
import { clearErrors, field, mark } from "./fields.js";

const ADDRESS = "/dashboard/session";
const NOT_KEPT = "The browser did not keep the session: without TLS it does so for this machine only. Open the page over https, or see BESTARM_PUBLIC_URL.";

/** `provider`: the name of the identity provider, if there is one; `done` gets what the service knows afterwards. */
export function signInForm(provider, done) {
  const form = h("form", { method: "post", novalidate: true });
  const key = h("input", { type: "password", name: "key", autocomplete: "current-password", spellcheck: "false", required: true });
  const name = h("input", { type: "text", name: "username", autocomplete: "username", value: location.host, hidden: true, readonly: true });
  const go = h("button", { class: "button primary", type: "submit" }, "Sign in");
  replace(
    form,
    h("p", {}, "Paste a key of this service. It is not kept: the browser gets a session of 12 hours in its place."),
    name,
    field("Key", "/key", key, "It begins with ba_, or is the administrator's."),
    h("p", { class: "actions" }, go, provider ? elsewhere(provider) : null),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearErrors(form);
    go.disabled = true;
    try {
      const found = await signedIn(key.value.trim());
      if (found.signed_in) done(found);
      else fail(NOT_KEPT);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      fail(problem.status === 422 ? "Paste a key first." : problem.message);
    } finally {
      go.disabled = false;
    }
  });

  function fail(words) {
    mark(key, words);
    key.select();
    key.focus();
  }
  form.begin = () => key.focus();
  return form;
}

async function signedIn(key) {
  await tryToSend("POST", ADDRESS, { key });
  return get(ADDRESS);
}

/** The way to the identity provider, and back to this page. */
function elsewhere(provider) {
  const next = location.pathname + location.search;
  return h("a", { class: "button", href: `${ADDRESS}/oidc?next=${encodeURIComponent(next)}` }, `Sign in with ${provider}`);
}
