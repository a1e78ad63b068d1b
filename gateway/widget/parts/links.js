// Decides which addresses a text may lead to.

const FOLLOWED = new Set(["http:", "https:", "mailto:"]);
const LONGEST_ADDRESS = 2000;

/** Return a whole, harmless address, or null: `javascript:`, `data:` and their like lead nowhere. */
export function harmless(address) {
  if (typeof address !== "string" || address.length > LONGEST_ADDRESS) return null;
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!FOLLOWED.has(url.protocol)) return null;
  // What stands before an @ makes a foreign host look like a known one.
  return url.username || url.password ? null : url.href;
}

/** Return where a source opens, at its heading, or null where no address is known.
 *
 * `template` tells where pages stand that have no address of their own: `{path}` is the file's
 * path, `{page}` the same without its ending, `{anchor}` the heading. Else the desk tells.
 */
export function placeOf(source, template) {
  const known = harmless(source.url);
  if (known !== null) return withAnchor(known, source.anchor);
  if (!template || !source.path) return harmless(source.link);
  const path = source.path.split("/").map(encodeURIComponent).join("/");
  const filled = template
    .replaceAll("{path}", path)
    .replaceAll("{page}", path.replace(/\.[A-Za-z0-9]{1,8}$/, ""))
    .replaceAll("{anchor}", encodeURIComponent(source.anchor ?? ""));
  const place = harmless(filled);
  return place !== null && !template.includes("{anchor}")
    ? withAnchor(place, source.anchor)
    : place;
}

function withAnchor(address, anchor) {
  const url = new URL(address);
  if (anchor && !url.hash) url.hash = anchor;
  return url.href;
}
