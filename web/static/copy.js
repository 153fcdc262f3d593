// Copies the stored bytes of a request or reply, as the raw link serves them: never what the page makes of them.
import { toast } from "./toast.js";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

async function bytes(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error("They could not be read.");
  const held = await response.arrayBuffer();
  try {
    return { text: strict.decode(held), size: held.byteLength };
  } catch {
    throw new Error("These bytes are not text in UTF-8, and a clipboard would change them. The raw link has them as they are.");
  }
}

async function copy(link) {
  if (!navigator.clipboard) return toast("This browser lets a page copy only over https. The raw link has the bytes.");
  const got = bytes(link.href);
  try {
    // Given as a promise: some browsers let a page copy only within the press itself.
    const item = got.then(({ text }) => new Blob([text], { type: "text/plain" }));
    item.catch(() => {});
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": item })]);
    const { size } = await got;
    toast(`Copied, ${size.toLocaleString("en")} ${size === 1 ? "byte" : "bytes"}.`);
  } catch {
    got.then(() => toast("The browser does not let this page copy."), (error) => toast(error.message));
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.copy");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  copy(link);
});
