// The lists of the front page: rows that come in while it is open, and the next 50.
import { $, glide, places } from "./page.js";

const ROWS_MAX = 500;
const ROWS_BY_THEMSELVES = 150; // then the link must be pressed, so that the foot of the page can be reached
const REST_MS = 400; // the list stands still for this long between two moves, whatever comes in,
const ROWS_AT_ONCE = 3; // and by no more rows,
const ROWS_WAITING_MAX = 30; // and where more come in than that, nobody can read them move

const address = (row) => row.querySelector("a").getAttribute("href");
const moment = (row) => row.querySelector("time")?.getAttribute("datetime") ?? "";

// The list of what was asked lately, where it is shown from its top.
const list = () => (new URLSearchParams(location.search).has("lately") ? null : $("lately-list"));

const waiting = new Map(); // by address, the newest last
let missed = false; // more than what waits
let resting = false;

// The moment of the newest row this page knows; null where it shows no such list.
export function newest() {
  const shown = list();
  if (!shown) return null;
  const rows = [...waiting.values(), ...shown.querySelectorAll("li:first-child")];
  return rows.map(moment).sort().at(-1) ?? "";
}

// Is somebody in the list, or further down, so that it must not move?
export function busy() {
  const shown = list();
  if (!shown) return false;
  return shown.matches(":hover, :focus-within") || shown.getBoundingClientRect().top < 0;
}

export function row(html) {
  const shown = list();
  if (!shown) return;
  const fresh = new DOMParser().parseFromString(`<ol>${html}</ol>`, "text/html").querySelector("li");
  waiting.delete(address(fresh));
  waiting.set(address(fresh), fresh);
  settle();
}

// Shows what waits, or offers it.
function settle() {
  if (missed || resting || !waiting.size) return;
  if (busy() || waiting.size > ROWS_WAITING_MAX) return offer(`${waiting.size} new, show`);
  resting = true;
  // The rest begins where the rows have arrived, however long a busy machine takes: two ways at once are a jump.
  show(ROWS_AT_ONCE).then(() => setTimeout(() => { resting = false; settle(); }, REST_MS));
}

function offer(text) {
  const more = $("lately-new");
  if (more.textContent !== text) more.textContent = text;
  more.hidden = false;
}

// Offers the whole list anew.
export function miss() {
  missed = true;
  offer("New, show");
}

// The page was read again, and everything is in it.
export function refreshed() {
  missed = false;
  waiting.clear();
  watch();
}

// Puts what waits on top; the rows that make room for it glide, until what is returned resolves. Null where that is
// not all.
export function show(most = Infinity) {
  const shown = list();
  if (!shown || missed) return null;
  shown.parentElement.querySelector(".empty")?.remove();
  const before = places([...shown.children, ...below(shown)]);
  for (const [link, fresh] of [...waiting].slice(0, most)) {
    waiting.delete(link);
    [...shown.children].find((row) => address(row) === link)?.remove();
    fresh.classList.add("new");
    shown.prepend(document.adoptNode(fresh));
  }
  while (shown.children.length > ROWS_MAX) shown.lastElementChild.remove();
  $("lately-new").hidden = true;
  return glide(before);
}

// What stands under the list, and makes room for it too.
function* below(shown) {
  for (const from of [shown, shown.parentElement]) {
    for (let one = from.nextElementSibling; one; one = one.nextElementSibling) yield one;
  }
  yield document.querySelector(".foot");
}

// -- the next 50 ---------------------------------------------------------------------------------------------------

const loading = new WeakSet();

// Adds the rows the link leads to and lets it lead on; false where the page is to be left for them.
export async function extend(link) {
  const shown = $(link.id.replace("-next", "-list"));
  if (!shown || shown.children.length >= ROWS_MAX) return false;
  if (loading.has(link)) return true;
  loading.add(link);
  try {
    const response = await fetch(link.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const known = new Set([...shown.children].map(address));
    const rows = page.getElementById(shown.id)?.children;
    if (!rows) return false;
    shown.append(...[...rows].filter((row) => !known.has(address(row))));
    const next = page.getElementById(link.id);
    if (next) link.href = next.href;
    else link.parentElement.remove();
    return true;
  } catch {
    return true; // no connection: the link stays, to be pressed again
  } finally {
    loading.delete(link);
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    const rows = $(target.id.replace("-next", "-list"))?.children.length ?? 0;
    if (isIntersecting && rows < ROWS_BY_THEMSELVES) {
      seen.unobserve(target);
      extend(target).then(() => target.isConnected && seen.observe(target));
    }
  }
}, { rootMargin: "400px" });

function watch() {
  for (const link of document.querySelectorAll("#lately-next, #most-next")) seen.observe(link);
}

watch();
