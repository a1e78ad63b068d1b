// Keeps which conversation is going on, and tells the other tabs when it changed.

const PREFIX = "refdesk";

export class Keeping extends EventTarget {
  /** `lasting`: kept in this browser; else until the tab is closed. */
  constructor(name, { lasting }) {
    super();
    this.name = `${PREFIX}:${name}`;
    this.lasting = lasting;
    this.held = null; // where a browser keeps nothing
    if (!lasting || !window.BroadcastChannel) return;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }) => this.dispatchEvent(new CustomEvent(String(data)));
  }

  /** Return `{ place, waiting }`: the conversation, and messages that no desk has taken yet. */
  load() {
    let stored = this.held;
    try {
      stored = this.#storage().getItem(this.name) ?? stored;
    } catch {
      // A browser that keeps nothing: what is held lasts as long as the page.
    }
    return read(stored);
  }

  save(kept) {
    this.held = JSON.stringify(kept);
    try {
      this.#storage().setItem(this.name, this.held);
    } catch {
      // As above.
    }
  }

  clear() {
    this.held = null;
    try {
      this.#storage().removeItem(this.name);
    } catch {
      // As above.
    }
  }

  /** Notify the other tabs: `said` or `reset`. */
  notify(what) {
    this.channel?.postMessage(what);
  }

  close() {
    this.channel?.close();
  }

  #storage() {
    return this.lasting ? window.localStorage : window.sessionStorage;
  }
}

function read(stored) {
  const nothing = { place: null, waiting: [] };
  try {
    const kept = JSON.parse(stored);
    if (typeof kept?.place?.id !== "string") return nothing;
    const waiting = Array.isArray(kept.waiting) ? kept.waiting : [];
    const whole = ({ id, text }) => typeof id === "string" && typeof text === "string";
    return { place: kept.place, waiting: waiting.filter(whole) };
  } catch {
    return nothing;
  }
}

/** Return a new id of a message; `randomUUID` is missing where a page has no TLS. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `w-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
