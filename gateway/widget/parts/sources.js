// Shows where an answer stands: a list of places, and numbers in the text that lead to them.

import { icon, make, plainTitle, titled, unseen } from "./elements.js";
import { harmless, placeOf } from "./links.js";

const MOST_SHOWN = 8; // places; further ones are folded
const OPENS = { target: "_blank", rel: "noopener noreferrer" };

/** The sources of one answer. */
export class Sources {
  constructor(sources, { words, template }) {
    this.words = words;
    this.places = grouped(sources ?? [], template);
    this.items = new Map();
    const opened = (sources ?? []).flatMap(({ url, link }) => [url, link]);
    this.pages = new Set([...this.places.map(({ address }) => address), ...opened].map(pageOf));
  }

  /** Return a whole address where it is the page of a source, else null: a text leads nowhere else. */
  follows(address) {
    const page = pageOf(address);
    return page !== null && this.pages.has(page) ? harmless(address) : null;
  }

  /** Return the node of a citation in the text, or null for a number that names no source. */
  cite(number) {
    const place = this.places.find(({ numbers }) => numbers.includes(number));
    if (!place) return null;
    const title = plainTitle(place.title);
    const label = `${this.words.source.replace("{n}", number)}: ${title}`;
    if (place.address) {
      const attributes = { class: "cite", href: place.address, title, ...OPENS };
      const node = make("a", attributes, String(number));
      node.setAttribute("aria-label", `${label} (${this.words.tab})`);
      return node;
    }
    const goes = () => {
      const item = this.items.get(place);
      item?.closest("details")?.setAttribute("open", "");
      item?.focus();
    };
    const named = { type: "button", class: "cite", title, "aria-label": label };
    return make("button", { ...named, onclick: goes }, String(number));
  }

  /** Return further places where a reader unfolds them, or null when there are none. */
  #folded(items) {
    if (!items.length) return null;
    const summary = make("summary", {}, `${this.words.more} (${items.length})`);
    return make("details", {}, summary, make("ol", {}, ...items));
  }

  /** Return the list, or null when nothing is cited. */
  list() {
    if (!this.places.length) return null;
    const items = this.places.map((place) => {
      const item = make("li", { tabindex: place.address ? null : "-1" }, placeNode(place, this.words));
      this.items.set(place, item);
      return item;
    });
    const list = make("ol", {}, ...items.slice(0, MOST_SHOWN));
    const label = make("p", { class: "label" }, this.words.sources);
    return make("section", { class: "sources" }, label, list, this.#folded(items.slice(MOST_SHOWN)));
  }
}

/** Return what a list shows of a place; one with an address can be opened. */
export function placeNode({ numbers, title, above, address }, words) {
  const shown = [
    numbers && make("span", { class: "numbers" }, numbers.join(" ")),
    make("span", { class: "what", dir: "auto" }, make("b", {}, ...titled(title)), above && make("small", {}, ...titled(above))),
  ];
  if (!address) return make("div", { class: "place" }, ...shown);
  const opened = [icon("out"), unseen(` (${words.tab})`)];
  return make("a", { class: "place", href: address, ...OPENS }, ...shown, ...opened);
}

/** Return what two addresses of one page share, or null for what is no address of the web. */
function pageOf(address) {
  const known = harmless(address);
  if (known === null || !/^https?:/.test(known)) return null;
  const url = new URL(known);
  url.hash = "";
  return url.href.replace(/\/$/, "");
}

/** Return the places, each with all the numbers that cite it. */
function grouped(sources, template) {
  const places = new Map();
  for (const source of sources) {
    const key = JSON.stringify([source.url, source.path, source.anchor, source.title]);
    const place = places.get(key) ?? described(source, template);
    place.numbers.push(source.number);
    places.set(key, place);
  }
  return [...places.values()];
}

function described(source, template) {
  const headings = source.heading_path ?? [];
  const title = headings.at(-1) || source.title || source.path || "";
  const above = [...new Set([...(source.crumbs ?? []), source.title, ...headings.slice(0, -1)])];
  const address = placeOf(source, template);
  const distinct = above.filter((part) => part && part !== title);
  return { numbers: [], title, above: distinct.join(" › ") || source.path || null, address };
}
