// The token that states the groups of the person who asks. It is held in memory alone.

// Another token is asked for so long before the end of the last.
const SPARE_MS = 60_000;
const TOKEN_FORM = /^[\w.~+/=-]{1,8000}$/;

export class Person {
  constructor() {
    this.use(null);
  }

  /** Take a token, or a function that returns one or a promise of one; null: nobody is known. */
  use(source) {
    this.source = source;
    this.token = this.pending = null;
  }

  /** Return the token to send; null: nobody is known; empty: what the page gave is no token. Raises
   * what the function of the page raised. */
  async current() {
    const { source } = this;
    if (typeof source !== "function") return whole(source);
    if (this.token && endOf(this.token) - Date.now() > SPARE_MS) return this.token;
    const pending = (this.pending ??= Promise.resolve().then(source));
    try {
      const token = whole(await pending);
      // Somebody else may have logged in meanwhile.
      return source === this.source ? (this.token = token) : this.current();
    } finally {
      if (pending === this.pending) this.pending = null;
    }
  }

  /** Forget a token that was refused; return whether the page can give another one. */
  drop(token) {
    if (token === this.token) this.token = null;
    return token && typeof this.source === "function";
  }
}

/** Return a token as it is sent; a page of a login in its place never is. */
function whole(given) {
  const token = given ? String(given).trim() : null;
  return token === null || TOKEN_FORM.test(token) ? token : "";
}

/** Return when a token ends, in milliseconds; one that cannot be read lasts until it is refused. */
function endOf(token) {
  try {
    const claims = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(atob(claims)).exp * 1000 || Infinity;
  } catch {
    return Infinity;
  }
}
