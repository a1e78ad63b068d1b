// Shows where an answer stands: a list of places, and numbers in the text that lead to them.

import { icon, make, plainTitle, titled, unseen } from "./elements.js";
import { harmless, placeOf } from "./links.js";

const MOST_SHOWN = 8; // places; further ones are folded
const MOST_FIGURES = 4;
const OPENS = { target: "_blank", rel: "noopener noreferrer" };

/** The sources of one answer. */
export class Sources {
  constructor(sources, { words, template, server, links: written = [] }) {
    this.words = words;
    this.shown = figuresOf(sources ?? [], server);
    this.places = grouped(sources ?? [], template);
    this.items = new Map();
    const opened = (sources ?? []).flatMap(({ url, link, links = [] }) => [url, link, ...links]);
    this.pages = new Set([...this.places.map(({ address }) => address), ...opened, ...written].map(pageOf));
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

  /** Return a passage without the names that stand for pictures which are shown. */
  withoutNames(text) {
    const names = new Set(this.shown.map(({ caption }) => caption));
    return text.replace(/!\[([^[\]]{1,400})\]/g, (mark, name) => (names.has(name.replaceAll("**", "")) ? "" : mark));
  }

  /** Return the pictures that stand in the cited sections, or null when there are none. */
  figures() {
    if (!this.shown.length) return null;
    const figures = this.shown.map(({ link, caption, number }) => {
      const place = this.places.find(({ numbers }) => numbers.includes(number));
      const image = make("img", {
        src: link,
        alt: caption || plainTitle(place.title),
        loading: "lazy",
        referrerpolicy: "no-referrer",
      });
      const open = make("a", { href: link, ...OPENS }, image, unseen(` (${this.words.tab})`));
      const below = make("figcaption", { dir: "auto" }, caption, " ", this.cite(number));
      const figure = make("figure", {}, open, below);
      image.addEventListener("error", () => figure.remove()); // an expired link, or no right any more
      return figure;
    });
    return make("div", { class: "figures" }, ...figures);
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
    const items = pagesOf(this.places).map((places) =>
      places.length > 1 ? this.#page(places) : this.#item(places[0]),
    );
    const list = make("ol", {}, ...items.slice(0, MOST_SHOWN));
    const label = make("p", { class: "label" }, this.words.sources);
    return make("section", { class: "sources" }, label, list, this.#folded(items.slice(MOST_SHOWN)));
  }

  /** Return the entry of a page that is cited in several sections. */
  #page(places) {
    const [{ page, crumbs }] = places;
    const named = [make("b", {}, ...titled(page)), crumbs && make("small", {}, ...titled(crumbs))];
    const sections = places.map((place) => this.#item({ ...place, above: place.within }, place));
    return make("li", {}, make("div", { class: "page", dir: "auto" }, ...named), make("ul", {}, ...sections));
  }

  #item(shown, place = shown) {
    const item = make("li", { tabindex: place.address ? null : "-1" }, placeNode(shown, this.words));
    this.items.set(place, item);
    return item;
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

/** Return the pictures of sources, each once: only those that our own server shows. */
function figuresOf(sources, server) {
  const found = new Map();
  for (const { number, pictures } of sources) {
    for (const { link, caption } of pictures ?? []) {
      const address = harmless(link);
      const name = address?.split("/").at(-1);
      if (address === null || new URL(address).origin !== server || found.has(name)) continue;
      found.set(name, { link: address, caption: caption ?? "", number });
    }
  }
  return [...found.values()].slice(0, MOST_FIGURES);
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

/** Return the places of each page together, in the order in which the pages are cited first. */
function pagesOf(places) {
  const pages = new Map();
  for (const place of places) pages.set(place.key, [...(pages.get(place.key) ?? []), place]);
  return [...pages.values()];
}

function described(source, template) {
  const headings = source.heading_path ?? [];
  const title = headings.at(-1) || source.title || source.path || "";
  const page = source.title || source.path || "";
  const parents = headings.slice(0, -1);
  const join = (parts, own) => [...new Set(parts)].filter((part) => part && part !== own).join(" › ");
  return {
    numbers: [],
    title,
    above: join([...(source.crumbs ?? []), source.title, ...parents], title) || source.path || null,
    address: placeOf(source, template),
    key: JSON.stringify([pageOf(source.url), source.path, source.title, source.version]),
    page,
    crumbs: join(source.crumbs ?? [], page),
    within: join(parents.filter((part) => part !== page), title),
  };
}
