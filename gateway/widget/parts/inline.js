// Reads what stands within a line of Markdown: in one pass, whatever the text.

import { make } from "./elements.js";

const DEEPEST_INLINE = 6;
const ESCAPED = /[!-/:-@[-`{-~]/;
const BARE_ADDRESS = /https?:\/\/[^\s<>"'`{}|\\^]{1,1900}/y;
const CITED = /\[(\d{1,4})\]/y;
const WORD = /[\p{L}\p{N}]/u;
const ENDED = /[.!?…。！？]["'”»)*_]{0,3}\s{0,3}(?:\[\d{1,3}\]\s?){0,9}$/u; // before a citation
const ENDING_LENGTH = 80;
const BEHIND = /[.,;:!?…。、，！？)\]»”]+(?![(\p{L}\p{N}])/uy; // what may not begin a line
const EMPHASIS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "s"],
  ["*", "em"],
  ["_", "em"],
];

/** Put a line's nodes into `parent`. `reading.cite(number)` gives a citation's node, or null;
 * `reading.follows(address)` the whole address where a text may lead there, or null. */
export function readInline(parent, text, reading, depth = 0) {
  new Line(text, reading, depth).into(parent);
}

class Line {
  constructor(text, reading, depth) {
    this.text = text;
    this.reading = reading;
    this.depth = depth;
    this.at = 0;
    this.plain = "";
    this.ends = null; // of brackets, by where they begin
    this.never = new Set(); // delimiters that nothing closes from here on
  }

  into(parent) {
    this.parent = parent;
    while (this.at < this.text.length) {
      const found = this.depth < DEEPEST_INLINE && this.#next(this.text[this.at]);
      if (!found) this.plain += this.text[this.at++];
    }
    this.#flush();
  }

  #next(sign) {
    switch (sign) {
      case "\\":
        return this.#escape();
      case "\n":
        return this.#break();
      case "`":
        return this.#code();
      case "!":
        return this.text[this.at + 1] === "[" && this.#link(1);
      case "[":
        return this.#citation() || this.#link(0);
      case "<":
        return this.#angle();
      case "h":
        return this.#bare();
      case "*":
      case "_":
      case "~":
        return this.#emphasis();
      default:
        return false;
    }
  }

  #flush() {
    if (this.plain) this.parent.append(this.plain);
    this.plain = "";
  }

  #put(node, end) {
    this.#flush();
    this.parent.append(node);
    this.at = end;
    return true;
  }

  #escape() {
    const next = this.text[this.at + 1];
    if (next === undefined || !ESCAPED.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  #break() {
    this.plain = this.plain.trimEnd();
    return this.#put(make("br"), this.at + 1);
  }

  #code() {
    let length = 1;
    while (this.text[this.at + length] === "`") length += 1;
    const ticks = "`".repeat(length);
    const from = this.at + length;
    let end = this.never.has(ticks) ? -1 : this.text.indexOf(ticks, from);
    while (end >= 0 && this.text[end + length] === "`") {
      while (this.text[end] === "`") end += 1;
      end = this.text.indexOf(ticks, end);
    }
    if (end < 0) {
      this.never.add(ticks);
      this.plain += ticks;
      this.at = from;
      return true;
    }
    const code = this.text.slice(from, end).replaceAll("\n", " ");
    const padded = code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "";
    const shown = padded ? code.slice(1, -1) : code;
    return this.#put(make("code", { dir: "ltr" }, shown), end + length);
  }

  #citation() {
    CITED.lastIndex = this.at;
    const found = CITED.exec(this.text);
    const node = found && this.reading.cite(Number(found[1]));
    if (!node) return false;
    this.plain = this.plain.replace(/ $/, "\u00a0"); // never alone on a line
    BEHIND.lastIndex = CITED.lastIndex;
    const [following] = BEHIND.exec(this.text) ?? [""];
    // A sentence that has ended before its citation ends once.
    const before = this.text.slice(Math.max(0, this.at - ENDING_LENGTH), this.at);
    const behind = ENDED.test(before) && following === "." ? "" : following;
    const joined = behind ? make("span", { class: "joined" }, node, behind) : node;
    return this.#put(joined, CITED.lastIndex + following.length);
  }

  /** Read `[text](address)`, or with `mark` an image, of which the text is left. */
  #link(mark) {
    const open = this.at + mark;
    const close = this.#closing(open);
    if (close === undefined || this.text[close + 1] !== "(" || this.reading.linked) return false;
    const end = this.#addressEnd(close + 2);
    if (end < 0) return false;
    const address = this.text.slice(close + 2, end).trim().split(/\s/, 1)[0];
    const place = mark ? null : this.reading.follows(address.replace(/^<|>$/g, ""));
    const inner = this.text.slice(open + 1, close);
    const node = place ? anchor(place) : make("span");
    readInline(node, inner, { ...this.reading, linked: true }, this.depth + 1);
    return this.#put(node, end + 1);
  }

  #closing(open) {
    this.ends ??= matched(this.text);
    return this.ends.get(open);
  }

  #addressEnd(from) {
    let depth = 0;
    const last = Math.min(this.text.length, from + 2100);
    for (let at = from; at < last && this.text[at] !== "\n"; at += 1) {
      if (this.text[at] === "(") depth += 1;
      else if (this.text[at] === ")" && depth-- === 0) return at;
    }
    return -1;
  }

  #angle() {
    const end = this.text.slice(this.at, this.at + 2000).indexOf(">");
    const address = end > 0 ? this.text.slice(this.at + 1, this.at + end) : "";
    const place = /^https?:\S+$/.test(address) ? this.reading.follows(address) : null;
    return place && !this.reading.linked
      ? this.#put(anchor(place, address), this.at + end + 1)
      : false;
  }

  #bare() {
    BARE_ADDRESS.lastIndex = this.at;
    const found = this.reading.linked ? null : BARE_ADDRESS.exec(this.text);
    if (!found || WORD.test(this.text[this.at - 1] ?? "")) return false;
    let address = withoutEnd(found[0]);
    if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
    const place = this.reading.follows(address);
    return place ? this.#put(anchor(place, address), this.at + address.length) : false;
  }

  #emphasis() {
    for (const [sign, tag] of EMPHASIS) {
      if (!this.text.startsWith(sign, this.at) || this.never.has(sign)) continue;
      const from = this.at + sign.length;
      if (!opens(this.text, this.at, sign)) continue;
      const end = closer(this.text, from, sign);
      if (end < 0) {
        this.never.add(sign);
        continue;
      }
      const node = make(tag);
      readInline(node, this.text.slice(from, end), this.reading, this.depth + 1);
      return this.#put(node, end + sign.length);
    }
    // The whole run is plain, so that its tail is not read again as something shorter.
    const sign = this.text[this.at];
    while (this.text[this.at] === sign) this.plain += this.text[this.at++];
    return true;
  }
}

/** Return an address without the signs behind it, which belong to the sentence. */
function withoutEnd(address) {
  let end = address.length;
  while (end && ".,;:!?*_~]".includes(address[end - 1])) end -= 1;
  return address.slice(0, end);
}

function opens(text, at, sign) {
  const next = text[at + sign.length];
  if (next === undefined || /\s/.test(next)) return false;
  return sign[0] !== "_" || !WORD.test(text[at - 1] ?? "");
}

/** Return where an emphasis ends that began before `from`, or -1. */
function closer(text, from, sign) {
  for (let end = text.indexOf(sign, from + 1); end >= 0; end = text.indexOf(sign, end + 1)) {
    if (/\s/.test(text[end - 1])) continue;
    const after = text[end + sign.length];
    if (sign.length === 1 && (after === sign || text[end - 1] === sign)) continue;
    if (sign.length === 2 && after === sign[0]) continue;
    if (sign[0] === "_" && WORD.test(after ?? "")) continue;
    return end;
  }
  return -1;
}

/** Return where each bracket closes, by where it opens. */
function matched(text) {
  const open = [];
  const ends = new Map();
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) ends.set(open.pop(), at);
  }
  return ends;
}

/** Return a link without a referrer. */
export function anchor(place, text = "") {
  const attributes = { href: place, target: "_blank", rel: "noopener noreferrer nofollow", title: place };
  return make("a", attributes, text);
}
