// The field where a question is written.

import { icon, make } from "./elements.js";

const LONGEST_QUESTION = 8000;

/** Return the form and its field; `ask(text)` sends. */
export function composer({ words, placeholder, disclaimer, ask }) {
  const field = make("textarea", {
    rows: "1",
    maxlength: String(LONGEST_QUESTION),
    placeholder: placeholder || words.placeholder,
    "aria-label": words.ask,
    enterkeyhint: "send",
    autocomplete: "off",
  });
  const send = make("button", { class: "send", "aria-label": words.send, disabled: true }, icon("send"));
  const row = make("div", { class: "field" }, field, send);
  const note = disclaimer ? make("p", { class: "disclaimer", dir: "auto" }, disclaimer) : null;
  const node = make("form", { class: "composer" }, row, note);

  const ready = () => {
    send.disabled = !field.value.trim();
    field.dir = field.value ? "auto" : ""; // a placeholder goes the interface's way
  };
  const submit = () => {
    const text = field.value.trim();
    if (!text) return;
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
  return { node, field };
}
