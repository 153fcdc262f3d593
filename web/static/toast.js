// A word to whoever is looking, for a while; the one region that is read aloud.
const SHOWN_MS = 6000;

const region = () => document.getElementById("status");

// Shows `text`, with a button if `act` is given. It stays while it is pointed at or has the focus.
export function toast(text, label, act) {
  const box = document.createElement("div");
  box.className = "toast";
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  if (act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", act);
    box.append(button);
  }
  let left;
  const hold = () => clearTimeout(left);
  const go = () => {
    hold();
    if (!box.matches(":hover, :focus-within")) left = setTimeout(() => box.remove(), SHOWN_MS);
  };
  box.addEventListener("pointerenter", hold);
  box.addEventListener("focusin", hold);
  box.addEventListener("pointerleave", go);
  box.addEventListener("focusout", () => setTimeout(go));
  dismiss();
  region().append(box);
  go();
}

export function dismiss() {
  region().querySelector(".toast")?.remove();
}

// Reads a sentence aloud and shows nothing: what is shown stands on the page.
export function announce(sentence) {
  const said = document.createElement("p");
  said.className = "vh";
  said.textContent = sentence;
  region().querySelector("p")?.remove();
  region().append(said);
}
