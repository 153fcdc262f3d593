// What an open page shows, replaced part by part: focus, typed text and what was opened stay as they are.
import { announce, toast } from "./toast.js";

export const $ = (id) => document.getElementById(id);

const FIELDS = "textarea, input[name=q]:not([type=hidden])";
const isTyped = (field) => field.value !== field.defaultValue;

// Has somebody typed something that is not sent?
export const typed = () => [...document.querySelectorAll(FIELDS)].some(isTyped);

const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

// What somebody typed, and the seconds that tick, are not the server's to say.
const isOurs = (node) => node.id === "waited" || (node.matches?.(FIELDS) && isTyped(node));

// -- making room ---------------------------------------------------------------------------------------------------

const GLIDE = { id: "glide", duration: 300, easing: "ease-out" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

// Where elements are seen now, on their way or not.
export const places = (elements) => new Map([...elements].map((one) => [one, one.getBoundingClientRect().top]));

// Those that stand elsewhere since `before` glide there from where they were seen; resolves when all have arrived.
export function glide(before) {
  const moving = [];
  if (still.matches || document.hidden) return Promise.resolve();
  // A way that is not at its end yet is given up for the new one, or what was left of it would be jumped over.
  const ways = [...before.keys()].flatMap((one) => one.getAnimations());
  for (const way of ways) if (way.id === GLIDE.id) way.cancel();
  for (const [one, top] of places(before.keys())) {
    const way = before.get(one) - top;
    if (!way || !one.isConnected || Math.min(top, top + way) > innerHeight) continue;
    moving.push(one.animate([{ transform: `translateY(${way}px)` }, { transform: "none" }], GLIDE).finished);
  }
  return Promise.allSettled(moving);
}

// -- replacing -----------------------------------------------------------------------------------------------------

// Fetched with the first change: most who look at a page see none.
const morpher = async () => (await import("./vendor/idiomorph.js")).Idiomorph;

function morph(Idiomorph, old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const focused = document.activeElement, call = focused?.closest?.("article")?.id;
  Idiomorph.morph(old, fresh, {
    callbacks: {
      beforeNodeMorphed: (from, to) => !from.isEqualNode(to) && !isOurs(from),
      // What is open is the reader's own choice.
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
    },
  });
  if (focused === document.activeElement || document.activeElement !== document.body) return;
  // What had the focus is gone: the pager's other arrow takes it, or the question.
  const near = (call && $(call)?.querySelector(".pager a")) || $("question");
  near?.focus({ preventScroll: true });
}

// Replaces the elements of the same ids by those in `html`; what makes room for it glides.
export async function patch(html) {
  const Idiomorph = await morpher();
  const before = places(document.querySelectorAll("#answer > *, .hero > .note, #view > .sect, .foot"));
  for (const fresh of [...parsed(html).body.children]) {
    const old = fresh.id && $(fresh.id);
    // One that was on its way to the page that was shown before is late.
    if (old && fresh.dataset.page === old.dataset.page) morph(Idiomorph, old, fresh);
  }
  glide(before);
  settle();
}

// Shows a whole page that was fetched; false if it is none of ours.
async function take(html) {
  const page = parsed(html), main = page.getElementById("main");
  if (!main) return false;
  const Idiomorph = await morpher();
  document.title = page.title;
  morph(Idiomorph, $("main"), main);
  settle();
  return true;
}

let announced = null;

// After every change: the title, and the answer in a sentence, once.
export function settle() {
  const view = $("view"), word = document.querySelector("#answer .word");
  if (view?.dataset.title) document.title = view.dataset.title;
  const sentence = word && !("asking" in view.dataset) ? `${$("question").textContent} ${word.textContent}` : "";
  if (announced !== null && sentence && sentence !== announced) announce(sentence);
  if (announced === null || sentence) announced = sentence;
}

// -- reading and asking --------------------------------------------------------------------------------------------

let reading = null;

// Reads a page and shows it in place of this one. Resolves to whether it is shown; the last one wins.
export async function read(url) {
  reading?.abort();
  const mine = (reading = new AbortController());
  try {
    const response = await fetch(url, { headers: { accept: "text/html" }, signal: mine.signal });
    const html = await response.text();
    await morpher();
    return !mine.signal.aborted && response.ok && (await take(html));
  } catch {
    return mine.signal.aborted ? null : false;
  }
}

const sending = new WeakSet();

// Sends a form as the browser would, and shows where it leads without leaving the page.
export async function send(form, { replace = false } = {}) {
  if (sending.has(form)) return;
  sending.add(form);
  reading?.abort();
  try {
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const html = await response.text();
    if (!response.ok) {
      toast(parsed(html).querySelector(".stop, .wrong")?.textContent ?? "That did not work.");
      return;
    }
    if (replace) history.replaceState(null, "", response.url);
    else if (response.url !== location.href.split("#")[0]) history.pushState(null, "", response.url);
    await take(html);
  } catch {
    toast("The server did not reply. Whether this was sent will show on this page when it is live again.");
  } finally {
    sending.delete(form);
  }
}
