// Chooses the language of the interface: one of those that the desk asks back in.

import { FURTHER_WORDS } from "./further_words.js";
import { LATIN_WORDS } from "./latin_words.js";

const WORDS = { ...LATIN_WORDS, ...FURTHER_WORDS };
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);

/** Return the first of these languages that there are words in, as a code: of `zh-TW`, `zh-Hant`. */
export function known(languages) {
  const codes = languages.map((language) => {
    const [code, ...more] = String(language ?? "").toLowerCase().split("-");
    const traditional = code === "zh" && /^(hant|tw|hk|mo)/.test(more.join("-"));
    return traditional ? "zh-Hant" : code;
  });
  return codes.find((code) => Object.hasOwn(WORDS, code)) ?? "en";
}

/** Return the interface's words in a language. */
export function wordsIn(code) {
  return WORDS[code];
}

/** Return `rtl` or `ltr`. */
export function directionOf(code) {
  return RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr";
}
