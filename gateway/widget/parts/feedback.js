// The row under an answer: copy it, rate it, say why.

import { iconButton, make } from "./elements.js";
import { limited } from "./limits.js";

const LONGEST_REASON = 1000;
const LONGEST_NOTE = 2000;
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
    const label = make("label", { for: "reason" }, words.reason);
    const form = openForm(box, [label, field, limit.note], { words, submit, done });
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
  const row = make("div", { class: "row" }, button, told);
  const node = make("div", { hidden: true }, row);

  function ask() {
    const field = make("textarea", { id: "note", dir: "auto" });
    const limit = limited(field, LONGEST_NOTE, { words, say });
    field.addEventListener("input", limit.fits);
    const parts = [make("p", {}, words.personHint), make("label", { for: "note" }, words.personNote), field, limit.note];
    const address = make("input", { id: "address", type: "email", autocomplete: "email", maxlength: "254", dir: "ltr" });
    if (turn.answer.handover_address) {
      parts.push(make("label", { for: "address" }, words.personAddress), address, make("p", {}, words.personConfirm));
    }
    const done = () => {
      form.remove();
      row.hidden = false;
      button.focus();
    };
    const submit = async (event) => {
      event.preventDefault();
      if (!limit.fits()) {
        say(limit.note.textContent);
        return;
      }
      const [main] = form.querySelectorAll("button");
      main.disabled = true;
      const answer = await handOver(turn, { note: field.value.trim(), address: address.value.trim() });
      main.disabled = false;
      if (answer) done();
      told.textContent = answer ? "" : words.unsent;
      row.hidden = Boolean(answer?.sent);
      say(answer?.text ?? words.unsent);
    };
    const form = openForm(node, parts, { words, submit, done });
    told.textContent = "";
    row.hidden = true;
  }

  button.addEventListener("click", ask);
  return { node, show: () => (node.hidden = false) };
}

/** Open a form below an answer, and put the focus into its first field. */
function openForm(box, parts, { words, submit, done }) {
  const send = make("button", { class: "button main" }, words.send);
  const close = make("button", { class: "button", type: "button", "data-back": true, onclick: done }, words.close);
  const form = make("form", { class: "reason", onsubmit: submit }, ...parts, make("div", { class: "row" }, send, close));
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    event.preventDefault();
    done();
  });
  // One form at a time: its labels need fields of their own.
  box.getRootNode().querySelectorAll(".reason [data-back]").forEach((other) => other.click());
  box.append(form);
  form.scrollIntoView({ block: "nearest" });
  form.querySelector("textarea").focus({ preventScroll: true });
  return form;
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
