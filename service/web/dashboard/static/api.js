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

async function ask(address, options) {
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

export async function send(method, address, body) {
  const headers = { "Content-Type": "application/json" };
  const sent = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) };
  const answer = await ask(address, sent);
  return answer.status === 204 ? null : answer.json();
}
