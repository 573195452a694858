// Keeping a page up to date: a stream where there is one, polling with an ETag otherwise, and nothing while nobody looks.

import { say } from "./dom.js";

const WORDS = { live: "Live", waiting: "Connecting…", lost: "Connection lost. Trying again…", hidden: "Paused" };
const POLL_MS = 1500;
const LONGEST_WAIT_MS = 4000;
const SILENCE_MS = 40000; // the stream says something at least every 15 seconds

/** Say at the top of the page how fresh it is. */
export function showConnection(state) {
  const place = document.getElementById("connection");
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  say(place, WORDS[state]);
  document.body.classList.toggle("stale", state === "lost");
}

/** Calls `poll` again and again while the page is visible; `poll` resolves to news or throws. */
export function keepPolling(poll, everyMs = POLL_MS) {
  let timer = null;
  let failures = 0;
  let running = false;
  async function turn() {
    if (document.hidden || running) return;
    clearTimeout(timer);
    running = true;
    try {
      await poll();
      failures = 0;
      showConnection("live");
    } catch {
      failures += 1;
      showConnection("lost");
    }
    running = false;
    if (!document.hidden) timer = setTimeout(turn, Math.min(everyMs * 2 ** Math.min(failures, 2), LONGEST_WAIT_MS));
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      showConnection("hidden");
    } else turn();
  });
  turn();
  return turn;
}

/** Follow a stream: `take` gets every state; `poll` fetches one while the stream is away. */
export function follow(address, take, poll) {
  let source = null;
  let retry = null;
  let watchdog = null;
  let failures = 0;

  function close() {
    clearTimeout(retry);
    clearTimeout(watchdog);
    source?.close();
    source = null;
  }

  function open() {
    close();
    if (document.hidden) return showConnection("hidden");
    if (!failures) showConnection("waiting");
    source = new EventSource(address);
    source.onmessage = (event) => {
      failures = 0;
      showConnection("live");
      expectNews();
      take(JSON.parse(event.data));
    };
    source.onerror = () => fall();
    expectNews(LONGEST_WAIT_MS * 2);
  }

  function expectNews(within = SILENCE_MS) {
    clearTimeout(watchdog);
    watchdog = setTimeout(fall, within);
  }

  /** The stream broke: poll once, say what came of it, and try the stream again a little later. */
  async function fall() {
    close();
    failures += 1;
    try {
      await poll();
      showConnection("live");
    } catch {
      showConnection("lost");
    }
    if (!source && !document.hidden) retry = setTimeout(open, Math.min(500 * 2 ** failures, LONGEST_WAIT_MS));
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? (close(), showConnection("hidden")) : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
