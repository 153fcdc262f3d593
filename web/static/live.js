// Keeps an open page as the record is. Everything here is an addition: each page works without it.
import "./copy.js";
import { busy, extend, miss, newest, refreshed, row, show } from "./feed.js";
import { $, patch, read, send, settle, typed } from "./page.js";
import { dismiss, toast } from "./toast.js";

const QUIET_MS = 2000; // a connection that is gone for less is not spoken of
const RETRY_MS = 500, RETRY_MS_MAX = 30000;
const SPREAD_MS = 4000;
const STEADY_MS = 5000; // a connection that lasted this long begins anew with the waiting
const IDLE_MS = 60000;
const PIECE = 3000; // characters of an address in one message; one of more than 4 KiB closes the page

// -- the socket ----------------------------------------------------------------------------------------------------

let socket = null, retry = null, tries = 0, quiet = null;

// How many ms to wait before trying again. A server that stops (1012) or has no room (1013) loses many pages at once.
export function delay(tries, code, chance = Math.random) {
  const wait = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** tries) * (0.5 + chance() / 2);
  return code === 1012 || code === 1013 ? wait + chance() * SPREAD_MS : wait;
}

function connect() {
  clearTimeout(retry);
  if (socket && socket.readyState < WebSocket.CLOSING) return;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const mine = (socket = new WebSocket(`${scheme}//${location.host}/live`));
  let opened = Infinity;
  mine.onopen = () => {
    opened = Date.now();
    place();
  };
  mine.onmessage = (event) => {
    clearTimeout(quiet); // not sooner: where there is no room it opens too
    quiet = null;
    hear(JSON.parse(event.data));
  };
  mine.onclose = (event) => {
    quiet ??= setTimeout(() => online(null), QUIET_MS);
    if (Date.now() - opened > STEADY_MS) tries = 0;
    retry = setTimeout(connect, delay(tries++, event.code));
  };
}

function comeBack() {
  if (!document.hidden && socket?.readyState === WebSocket.CLOSED) {
    tries = 0;
    connect();
  }
}

function say(message) {
  const open = socket?.readyState === WebSocket.OPEN;
  if (open) socket.send(JSON.stringify(message));
  return open;
}

// Is a look still to be counted as asking? Not where a form of ours led here, nor on a reload or the way back.
const came = performance.getEntriesByType("navigation")[0];
let uncounted = came?.type === "navigate" && came.redirectCount === 0;

const looked = () => {
  const view = $("view");
  return uncounted && view !== null && !("unasked" in view.dataset) && document.visibilityState === "visible";
};

// Where this page is and what it shows; whoever shows something else than the record is told.
function place() {
  const url = location.pathname + location.search;
  for (let at = 0; at < url.length; at += PIECE) {
    say({ type: "At", url: url.slice(at, at + PIECE), more: at + PIECE < url.length });
  }
  const token = $("view")?.dataset.seen ?? newest();
  if (token === null) return;
  const looks = looked();
  if (say({ type: "Seen", token, looked: looks }) && looks) uncounted = false;
}

function online(pages) {
  const shown = $("online");
  shown.hidden = false;
  shown.textContent = pages === null ? "not live" : pages === 1 ? "1 page open" : `${pages} pages open`;
  shown.classList.toggle("off", pages === null);
}

function hear(said) {
  switch (said.type) {
    case "Build": return rebuilt(said.build);
    case "Online": return online(said.pages);
    case "Patch": return patch(said.html);
    case "Row": return row(said.html);
    case "Stale": return again();
  }
}

let rereading = null;

// Something was missed: read this page again, unless somebody is in the middle of its list.
async function again() {
  clearTimeout(rereading);
  if (busy()) return miss();
  const ready = await read(location.href);
  if (ready) arrived();
  else if (ready === false) rereading = setTimeout(again, delay(1, 1013));
}

function arrived() {
  here = location.pathname + location.search;
  refreshed();
  place();
}

// -- a new build ---------------------------------------------------------------------------------------------------

let build = null, newer = false, touched = Date.now();

function rebuilt(now) {
  build ??= now;
  if (now === build || newer) return;
  newer = true;
  if (mayReload()) return renew();
  toast("A new build is running.", "Reload", () => location.reload());
  setInterval(renew, IDLE_MS / 4);
}

// Nobody loses anything by it, and nobody sees it.
const mayReload = () =>
  !$("view")?.hasAttribute("data-asking") && !getSelection().toString() && !typed() &&
  (document.hidden || Date.now() - touched > IDLE_MS);

function renew() {
  if (newer && mayReload()) setTimeout(() => mayReload() && location.reload(), Math.random() * 5000);
}

// -- links, forms and keys -----------------------------------------------------------------------------------------

let here = location.pathname + location.search;

// `url` and not the link: by the time it is read the link may lead elsewhere.
async function step(url) {
  const ready = await read(url);
  if (ready === false) location.assign(url);
  if (!ready) return;
  history.pushState(null, "", url);
  arrived();
}

document.addEventListener("click", async (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest("a");
  if (!link) return;
  if (link.id === "lately-new") {
    event.preventDefault();
    if (!show() && (await read(location.href))) arrived();
  } else if (link.id === "lately-next" || link.id === "most-next") {
    event.preventDefault();
    if (!(await extend(link))) location.assign(link.href);
  } else if (link.matches("[data-copy]") && navigator.clipboard) {
    event.preventDefault();
    navigator.clipboard.writeText(link.href).then(() => toast("The link is copied."), () => location.assign(link.href));
  } else if (link.matches(".pager a, [data-step]")) {
    event.preventDefault();
    step(link.href);
  }
});

function ask(form, how) {
  uncounted = false;
  send(form, how).then(arrived);
}

document.addEventListener("submit", (event) => {
  if (!event.target.closest("#view")) return;
  event.preventDefault();
  ask(event.target);
});

addEventListener("popstate", async () => {
  if (here === location.pathname + location.search) return; // within the page
  const ready = await read(location.href);
  if (ready) arrived();
  else if (ready === false) location.reload();
});

document.addEventListener("keydown", (event) => {
  touched = Date.now();
  if (event.key === "Escape") return dismiss();
  if (event.key === "Enter" && event.target.matches("textarea#q") && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    return event.target.form.requestSubmit();
  }
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const pagers = [...document.querySelectorAll("article .pager")];
  switch (event.key) {
    case "/": event.preventDefault(); $("q")?.focus(); break;
    case "[": pagers.at(-1)?.querySelector("[rel=prev]")?.click(); break;
    case "]": pagers.at(-1)?.querySelector("[rel=next]")?.click(); break;
    case "?": toast("Keys: / goes to the question, [ and ] step through the answers of the last call, Esc closes this.");
  }
});

// -- waiting -------------------------------------------------------------------------------------------------------

let asking = null; // since when

// The seconds tick, and show what waits for them.
function tick() {
  const said = $("waited");
  if (!said) {
    asking = null;
    return;
  }
  asking ??= Date.now() - 1000 * said.dataset.seconds;
  const seconds = Math.floor((Date.now() - asking) / 1000);
  said.textContent = seconds;
  for (const more of document.querySelectorAll("#view [data-after]")) more.hidden = seconds < more.dataset.after;
}

// -- a link that somebody shared and nobody has asked --------------------------------------------------------------

// It is asked once by itself: only when it is looked at, and never on the way back.
function askOnce() {
  const form = document.querySelector("#view[data-unasked] form");
  if (!form || document.prerendering || document.visibilityState !== "visible") return;
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") return;
  try {
    const key = `asked ${location.search}`;
    if (sessionStorage.getItem(key)) return;
    sessionStorage.setItem(key, "yes");
  } catch {
    return; // where nothing can be remembered, a button is pressed
  }
  ask(form, { replace: true });
}

function start() {
  settle();
  askOnce();
  connect();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", () => {
    askOnce();
    comeBack();
    renew();
    if (looked()) place();
  });
  addEventListener("pointerdown", () => { touched = Date.now(); });
  addEventListener("online", comeBack);
  addEventListener("pageshow", comeBack);
}

if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
else start();
