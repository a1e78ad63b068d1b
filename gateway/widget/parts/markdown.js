// Reads Markdown into nodes. Raw HTML stays what it is: text.

import { make } from "./elements.js";
import { readInline } from "./inline.js";

const LONGEST_TEXT = 50_000;
const DEEPEST_BLOCK = 6;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: +|$)/;
// Characters that make a text read differently from what it says.
const HIDDEN =
  /[\u202a-\u202e\u2061-\u2064\u206a-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;

/** Return the nodes of a text.
 *
 * `cite(number)` gives the node of a citation or null; `follows(address)` the whole address where the
 * text may lead there, or null; `words` are the interface's own. What is
 * longer than anybody reads is cut, and says so.
 */
export function readMarkdown(text, { cite, follows, words }) {
  const fragment = document.createDocumentFragment();
  const reading = { cite, follows, words, level: 2, linked: false };
  const shown = text.slice(0, LONGEST_TEXT).replace(HIDDEN, "").replace(/\r\n?/g, "\n");
  readBlocks(fragment, shown.split("\n"), reading, 0);
  if (text.length > LONGEST_TEXT) {
    fragment.append(make("p", { class: "note" }, words.shortened));
  }
  return fragment;
}

function readBlocks(parent, lines, reading, depth) {
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    at = BLOCKS.reduce(
      (end, read) => (end === at ? read(parent, lines, at, reading, depth) : end),
      at,
    );
  }
}

// Each returns the line after what it read, or `at` when it is not its kind.
const BLOCKS = [readFence, readHeading, readRule, readQuote, readList, readTable, readParagraph];

function readFence(parent, lines, at) {
  const mark = FENCE.exec(lines[at])?.[1];
  if (!mark || (mark[0] === "`" && lines[at].trim().slice(mark.length).includes("`"))) return at;
  let end = at + 1;
  while (end < lines.length && !closes(lines[end].trim(), mark)) end += 1;
  const code = make("code", {}, lines.slice(at + 1, end).join("\n"));
  parent.append(make("pre", { tabindex: "0", dir: "ltr" }, code));
  return end + 1;
}

function closes(line, mark) {
  return line.length >= mark.length && line === mark[0].repeat(line.length);
}

function readHeading(parent, lines, at, reading) {
  const marks = HEADING.exec(lines[at])?.[1];
  if (!marks) return at;
  let title = lines[at].trim().slice(marks.length).trim();
  if (/\s#+$/.test(title.slice(-8))) title = title.replace(/#{1,6}$/, "").trim();
  // No level is left out below the panel's own heading, whatever the text says.
  reading.level = Math.min(6, Math.max(3, marks.length + 2), reading.level + 1);
  const node = make(`h${reading.level}`, { dir: "auto" });
  readInline(node, title, reading);
  parent.append(node);
  return at + 1;
}

function readRule(parent, lines, at) {
  if (!RULE.test(lines[at])) return at;
  parent.append(make("hr"));
  return at + 1;
}

function readQuote(parent, lines, at, reading, depth) {
  if (!/^ {0,3}>/.test(lines[at]) || depth >= DEEPEST_BLOCK) return at;
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end += 1;
  const node = make("blockquote", { dir: "auto" });
  const inner = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  readBlocks(node, inner, reading, depth + 1);
  parent.append(node);
  return end;
}

function readList(parent, lines, at, reading, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || RULE.test(lines[at]) || depth >= DEEPEST_BLOCK) return at;
  const ordered = first[2].length > 1;
  const list = make(ordered ? "ol" : "ul", { dir: "auto" });
  let end = at;
  let before = ""; // items keep their numbers, except where all are written with the same one
  let count = 0;
  for (let found = first; found; found = sameKind(lines[end], first[2])) {
    const indent = Math.min(found[0].length, found[1].length + found[2].length + 1);
    const inner = [lines[end].slice(indent)];
    end += 1;
    while (end < lines.length && belongs(lines, end, indent)) inner.push(outdented(lines[end++], indent));
    const number = found[2] === before ? count + 1 : Number.parseInt(found[2], 10);
    list.append(item(inner, reading, depth, ordered && number !== count + 1 ? String(number) : null));
    before = found[2];
    count = number;
  }
  parent.append(list);
  return end;
}

function sameKind(line, mark) {
  const found = line === undefined || RULE.test(line) ? null : ITEM.exec(line);
  const kind = (marker) => marker.at(-1);
  return found && kind(found[2]) === kind(mark) ? found : null;
}

/** Whether a line goes on with an item: indented, a blank before such a line, or lazily on. */
function belongs(lines, at, indent) {
  const line = lines[at];
  if (indentOf(line) >= indent && line.trim()) return true;
  if (!line.trim()) {
    const next = lines[at + 1];
    return next !== undefined && next.trim() !== "" && indentOf(next) >= indent;
  }
  return lines[at - 1].trim() !== "" && !begins(line);
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function outdented(line, indent) {
  return line.slice(Math.min(indent, indentOf(line)));
}

/** Return an item; one that is a single paragraph holds its line alone. */
function item(lines, reading, depth, number) {
  const node = make("li", { value: number }); // its text decides, with the others', which way the list goes
  readBlocks(node, lines, { ...reading }, depth + 1);
  const [first] = node.children;
  if (first?.localName === "p") first.replaceWith(...first.childNodes);
  return node;
}

function begins(line) {
  return [FENCE, HEADING, RULE, ITEM, /^ {0,3}>/].some((kind) => kind.test(line));
}

function readTable(parent, lines, at, reading) {
  const columns = cells(lines[at]);
  const sides = lines[at].includes("|") && at + 1 < lines.length ? cells(lines[at + 1]) : [];
  if (columns.length !== sides.length || !sides.every((side) => /^:?-+:?$/.test(side))) return at;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const head = make("tr", {}, ...columns.map((cell) => cellNode("th", cell, reading)));
  const rows = lines.slice(at + 2, end).map((line) => {
    return make("tr", {}, ...cells(line).map((cell) => cellNode("td", cell, reading)));
  });
  const table = make("table", { dir: "auto" }, make("thead", {}, head), make("tbody", {}, ...rows));
  const named = { class: "table", tabindex: "0", role: "region", "aria-label": reading.words.table };
  parent.append(make("div", named, table));
  return end;
}

function cells(line) {
  let row = line.trim();
  if (row.startsWith("|")) row = row.slice(1);
  if (row.endsWith("|") && !row.endsWith("\\|")) row = row.slice(0, -1);
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function cellNode(tag, cell, reading) {
  const node = make(tag, { scope: tag === "th" ? "col" : null });
  readInline(node, cell, reading);
  return node;
}

function readParagraph(parent, lines, at, reading, depth) {
  let end = at + 1;
  const deep = depth >= DEEPEST_BLOCK;
  while (end < lines.length && lines[end].trim() && (deep || !begins(lines[end]))) end += 1;
  const node = make("p", { dir: "auto" });
  const trimmed = lines.slice(at, end).map((line) => line.trimStart());
  readInline(node, trimmed.join("\n").trimEnd(), reading);
  parent.append(node);
  return end;
}
