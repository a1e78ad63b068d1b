// The field where a question is written.

import { icon, make } from "./elements.js";
import { limited } from "./limits.js";

const LONGEST_QUESTION = 8000;

/** Return the form, its field, and `takes(text)`; `ask(text)` sends, `say(text)` announces. */
export function composer({ words, placeholder, disclaimer, ask, say }) {
  const field = make("textarea", {
    rows: "1",
    placeholder: placeholder || words.placeholder,
    "aria-label": words.ask,
    enterkeyhint: "send",
    autocomplete: "off",
  });
  const send = make("button", { class: "send", "aria-label": words.send, disabled: true }, icon("send"));
  const row = make("div", { class: "field" }, field, send);
  const note = disclaimer ? make("p", { class: "disclaimer", dir: "auto" }, disclaimer) : null;
  const limit = limited(field, LONGEST_QUESTION, { words, say });
  const node = make("form", { class: "composer" }, limit.note, row, note);

  const ready = () => {
    send.disabled = !limit.fits() || !field.value.trim();
    field.dir = field.value ? "auto" : ""; // a placeholder goes the interface's way
  };
  const submit = () => {
    const text = field.value.trim();
    if (!text) return;
    if (!limit.fits()) {
      say(limit.note.textContent);
      return;
    }
    field.value = "";
    ready();
    ask(text);
  };
  field.addEventListener("input", ready);
  field.addEventListener("keydown", (event) => {
    // While an input method composes, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
    field.focus();
  });
  /** Return whether a text can be sent; what is too long is put where it can be shortened. */
  const takes = (text) => {
    if ([...text].length <= LONGEST_QUESTION) return true;
    field.value = text;
    ready();
    return false;
  };
  return { node, field, takes };
}
