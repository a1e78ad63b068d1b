// Says that a text is too long to be sent, and how long it may be: nothing is cut.

import { make } from "./elements.js";

/** Return a note for below the field, and `fits()`, which shows it; `say(text)` announces it once. */
export function limited(field, most, { words, say }) {
  const note = make("p", { class: "problem", hidden: true });
  const fits = () => {
    const text = field.value.trim();
    // The desk counts characters, not the halves that some have in a script.
    const n = text.length > most ? [...text].length : text.length;
    const before = note.hidden;
    note.hidden = n <= most;
    note.textContent = note.hidden ? "" : words.long.replace("{n}", n).replace("{most}", most);
    field.setAttribute("aria-invalid", String(!note.hidden));
    if (before && !note.hidden) say(note.textContent);
    return note.hidden;
  };
  return { note, fits };
}
