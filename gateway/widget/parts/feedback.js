// The row under an answer: copy it, rate it, say why.

import { iconButton, make } from "./elements.js";
import { limited } from "./limits.js";

const LONGEST_REASON = 1000;
const SHOWN_MS = 2500;

/** Return the row; `rate(rating, reason)` stores a rating, `say(text)` announces. */
export function answerTools(turn, { words, rate, say }) {
  const copy = iconButton("copy", words.copy, () => copied(turn.answer).then(flash));
  const confirmation = make("span", { class: "confirmation" });
  const row = make("div", { class: "tools" }, copy);
  const ratings = { up: words.helpful, down: words.unhelpful };
  const buttons = Object.entries(ratings).map(([rating, label]) =>
    iconButton(rating, label, () => press(rating), { "data-rating": rating, "aria-pressed": "false" }),
  );
  const box = make("div", {}, row);
  row.append(...buttons, confirmation);

  function flash(done) {
    if (!done) return;
    show(words.copied);
  }

  function show(text) {
    confirmation.textContent = text;
    say(text);
    setTimeout(() => (confirmation.textContent = ""), SHOWN_MS);
  }

  async function press(rating) {
    box.querySelector(".reason")?.remove();
    const kept = rate(rating, "");
    if (rating === "down") ask(rating);
    if (!(await kept)) show(words.unsent);
    else if (rating === "up") show(words.thanks);
  }

  function ask(rating) {
    const field = make("textarea", { id: "reason", dir: "auto" });
    const limit = limited(field, LONGEST_REASON, { words, say });
    field.addEventListener("input", limit.fits);
    const done = () => {
      form.remove();
      row.querySelector(`[data-rating="${rating}"]`).focus();
    };
    const submit = async (event) => {
      event.preventDefault();
      if (!limit.fits()) {
        say(limit.note.textContent);
        return;
      }
      done();
      show((await rate(rating, field.value.trim())) ? words.thanks : words.unsent);
    };
    const form = make(
      "form",
      { class: "reason", onsubmit: submit },
      make("label", { for: "reason" }, words.reason),
      field,
      limit.note,
      make(
        "div",
        { class: "row" },
        make("button", { class: "button main" }, words.send),
        make("button", { class: "button", type: "button", "data-back": true, onclick: done }, words.close),
      ),
    );
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      event.preventDefault();
      done();
    });
    // One form at a time: its label needs a field of its own.
    box.getRootNode().querySelectorAll(".reason").forEach((other) => other.remove());
    box.append(form);
    form.scrollIntoView({ block: "nearest" });
    field.focus({ preventScroll: true });
  }

  return {
    node: box,
    update() {
      for (const button of buttons) {
        const pressed = turn.feedback?.rating === button.dataset.rating;
        button.setAttribute("aria-pressed", String(pressed));
      }
    },
  };
}

/** Return what asks for a person, hidden until it is shown; what came of it takes its place. */
export function personOffer(turn, { words, handOver, say }) {
  const told = make("span", { class: "confirmation", dir: "auto" });
  const button = make("button", { type: "button", class: "button" }, words.person);
  const node = make("div", { class: "row", hidden: true }, button, told);
  button.addEventListener("click", async () => {
    button.disabled = true;
    const text = (await handOver(turn)) ?? words.unsent;
    told.textContent = text;
    say(text);
    button.disabled = false;
  });
  return { node, show: () => (node.hidden = false) };
}

/** Put an answer and its sources on the clipboard; false where a browser does not allow it. */
async function copied({ text, sources = [] }) {
  const listed = sources.map(({ number, title, url, path, anchor }) => {
    const where = [url ?? path, anchor].filter(Boolean).join("#");
    return `[${number}] ${title}${where ? ` ${where}` : ""}`;
  });
  const whole = [text, listed.join("\n")].filter(Boolean).join("\n\n");
  try {
    await navigator.clipboard.writeText(whole);
    return true;
  } catch {
    return copiedByHand(whole);
  }
}

/** Copy where a page has no TLS, and so no clipboard. */
function copiedByHand(text) {
  const put = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", put, { once: true });
  try {
    return document.execCommand("copy");
  } finally {
    document.removeEventListener("copy", put);
  }
}
