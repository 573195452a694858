// Who looks at the page: nobody yet, somebody with a key or an account, or anybody where there are no keys. A page that needs to
// know waits here until somebody is signed in.

import { h, main, notice, replace } from "./dom.js";
import { get, tryToSend, whenSignedOut } from "./api.js";
import { signInForm } from "./sign_in.js";
import { showConnection } from "./live.js";

const ADDRESS = "/dashboard/session";
const RETRY_MS = 1500;
const OPEN = "Open: no keys, whoever reaches this machine may change everything.";
const ENDED = "Your session has ended.";

let state = await known();
if (!state.open && !state.signed_in) state = await firstSignIn();
show();
if (!may("read")) await new Promise(() => tellWhatIsMissing());
whenSignedOut(again);

/** May whoever looks do what needs this scope? The service asks again; here it decides what is worth showing. */
export function may(scope) {
  return state.open || (state.signed_in?.scopes.includes(scope) ?? false);
}

export const isOpen = () => state.open;

/** What the service knows, as soon as it answers. */
async function known() {
  for (;;) {
    try {
      return await get(ADDRESS);
    } catch {
      showConnection("lost");
      if (!main().querySelector(".empty")) replace(main(), notice("The service does not answer", "This page comes back by itself as soon as it does."));
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function firstSignIn() {
  return new Promise((resolve) => {
    const form = signInForm(state.provider, resolve);
    const words = state.ended ? h("p", { class: "notice warn", role: "status" }, `${ENDED} Sign in again.`) : null;
    replace(main(), h("section", { class: "card sign-in", "aria-labelledby": "sign-in-title" }, h("h1", { id: "sign-in-title" }, "Sign in"), words, form));
    form.begin();
  });
}

let asking = null;

/** Sign in again above the page as it is: what was typed there stays, and goes on its way afterwards. */
function again() {
  asking ??= new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "sign-in-again" });
    const form = signInForm(state.provider, (found) => {
      state = found;
      show();
      dialog.close();
      dialog.remove();
      resolve();
    });
    replace(dialog, h("div", { class: "dialog-content sign-in" }, h("h2", { id: "sign-in-again" }, `${state.open ? "There are keys now." : ENDED} Sign in again`), form));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
    form.begin();
  }).finally(() => (asking = null));
  return asking;
}

/** At the top who is signed in, and the way to the keys; at the bottom, where it is so, that nobody needs to be. */
function show() {
  document.querySelectorAll(".person, .open-note, .to-keys").forEach((old) => old.remove());
  const bar = document.querySelector(".bar");
  if (may("admin")) bar.querySelector("nav a[href='/docs']").before(h("a", { href: "/keys", class: "to-keys" }, "Keys"));
  if (state.open) document.body.append(h("footer", { class: "open-note" }, OPEN));
  else bar.append(person(state.signed_in));
}

function person({ label, id, scopes, experiments }) {
  const granted = scopes.includes("admin") ? "admin" : scopes.join(", ");
  const only = experiments ? ` in ${experiments.join(", ")}` : "";
  const leave = h("button", { class: "button small", type: "button", onClick: signOut }, "Sign out");
  return h("div", { class: "person" }, h("span", { class: "who", title: `May: ${granted}${only}` }, label ?? id, " ", h("span", { class: "muted" }, granted + only)), leave);
}

async function signOut() {
  await tryToSend("DELETE", ADDRESS);
  location.reload();
}

function tellWhatIsMissing() {
  replace(main(), notice("Nothing to see with this key", "It may not look at experiments: that needs the scope “read”. Sign out, and in again with another one."));
}
