// The API, as the pages call it.

/** An answer that is not a success: problem+json, or no answer at all (status 0). */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? "The service does not answer.");
    this.status = status;
    this.code = body?.code ?? "unreachable";
    this.fields = body?.errors ?? [];
  }
}

export const path = (...parts) => "/v1/experiments" + parts.map((part) => "/" + encodeURIComponent(part)).join("");

/** What brings somebody back who is not signed in any more: set by the session, resolves when they are. */
let comeBack = null;
export const whenSignedOut = (handler) => (comeBack = handler);

/** Ask; where the session has ended, ask again once there is another, so that nothing is lost that was being done. */
async function ask(address, options) {
  try {
    return await attempt(address, options);
  } catch (problem) {
    if (problem.status !== 401 || !comeBack) throw problem;
    await comeBack();
    return ask(address, options);
  }
}

async function attempt(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Problem(0);
  }
  if (answer.ok || answer.status === 304) return answer;
  throw new Problem(answer.status, await answer.json().catch(() => ({ detail: `The service answered ${answer.status}.` })));
}

export async function get(address) {
  return (await ask(address, { headers: { Accept: "application/json" } })).json();
}

/** Ask whether something can be had, without taking it. */
export const head = (address) => ask(address, { method: "HEAD" });

/** Ask only for news: null while nothing changed. */
export function asker(address) {
  let etag = null;
  return async () => {
    const headers = etag ? { "If-None-Match": etag } : {};
    const answer = await ask(address(), { headers, cache: "no-store" });
    if (answer.status === 304) return null;
    etag = answer.headers.get("ETag");
    return answer.json();
  };
}

export const send = (method, address, body) => sent(ask, method, address, body);

/** The same where nobody needs to be signed in: a refusal is an answer, too. */
export const tryToSend = (method, address, body) => sent(attempt, method, address, body);

async function sent(by, method, address, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await by(address, body === undefined ? { method } : { method, headers, body: JSON.stringify(body) });
  return answer.status === 204 ? null : answer.json();
}
