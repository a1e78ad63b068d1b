// Builds what the widget shows, node by node: no text ever becomes markup.

const SVG = "http://www.w3.org/2000/svg";
const DRAWINGS = {
  ask: "M4 5.5A2.5 2.5 0 0 1 6.5 3h11A2.5 2.5 0 0 1 20 5.5v8a2.5 2.5 0 0 1-2.5 2.5H11l-4.6 4.2c-.5.5-1.4.1-1.4-.6V15.9A2.5 2.5 0 0 1 4 13.5zM8.5 8h7M8.5 11.500h4.500",
  close: "m6 6 12 12M18 6 6 18",
  fresh: "M4.500 12a7.500 7.500 0 1 0 2.400-5.500L4.500 8.700M4.500 4.200v4.500H9",
  send: "M12 19V5M5.500 11.500 12 5l6.500 6.500",
  stop: "M7 7h10v10H7z",
  up: "M7 11v9H4v-9zM7 11l4-8c1.700 0 2.800 1.300 2.500 3L13 9h5.300a2 2 0 0 1 2 2.400l-1.400 7A2 2 0 0 1 17 20H7",
  down: "M17 13V4h3v9zM17 13l-4 8c-1.700 0-2.800-1.300-2.500-3l.5-3H5.700a2 2 0 0 1-2-2.400l1.400-7A2 2 0 0 1 7 4h10",
  copy: "M9 9h10v11H9zM5 15V4h10",
  done: "m5 12.500 4.500 4.500L19 7.500",
  out: "M9 5H5v14h14v-4M13 5h6v6M19 5l-8.500 8.500",
  book: "M12 6.500C10 5 7 4.500 4 5v13c3-.5 6 0 8 1.500 2-1.500 5-2 8-1.500V5c-3-.5-6 0-8 1.500zm0 0v13",
};

/** Return an element; attributes that begin with `on` listen, null and false are left out. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return a title's nodes: what stands between backticks is code. */
export function titled(text) {
  const parts = text.split(/`+/);
  if (parts.length % 2 === 0) {
    const end = parts.pop(); // a backtick that nothing closes is one
    parts[parts.length - 1] += `\`${end}`;
  }
  return parts.map((part, at) => (at % 2 ? make("code", { dir: "ltr" }, part) : part));
}

/** Return a title for where there is no code. */
export function plainTitle(text) {
  return make("i", {}, ...titled(text)).textContent;
}

/** Return a drawing that says nothing to a screen reader. */
export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  path.setAttribute("d", DRAWINGS[name]);
  drawing.append(path);
  return drawing;
}

/** Return a button that shows a drawing and is called `label`. */
export function iconButton(name, label, onclick, attributes = {}) {
  const shown = { type: "button", class: "tool", "aria-label": label, title: label, onclick };
  return make("button", { ...shown, ...attributes }, icon(name));
}

/** Return text for screen readers alone; what stands beside it finds its own direction. */
export function unseen(text) {
  return make("bdi", { class: "unseen" }, text);
}
