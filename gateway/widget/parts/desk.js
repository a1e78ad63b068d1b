// Speaks with the desk over HTTP, as docs/http.md tells.

import { recoveryHint } from "./recovery.js";

const SILENCE_MS = 30_000; // the desk says something every 10 seconds
const WATCH_MS = 5_000;
const ANSWER_MS = 60_000; // forgetting waits until the desk has done it
const BAD_PERSON = "invalid_person_token";
const TRIES = 3; // failures in a row before it is asked whether the network is at fault

let blocked = ""; // what a page's policy stopped last
document.addEventListener("securitypolicyviolation", (event) => {
  if (event.effectiveDirective === "connect-src") blocked = event.blockedURI;
});

/** An answer that is none: `status` 0 is a network that did not carry. */
export class DeskError extends Error {
  constructor(status, code = "", retryAfterMs = null) {
    super(`the desk answered ${status} ${code}`);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same request may well succeed a little later. */
  get passes() {
    return this.status === 0 || this.status === 408 || this.status >= 500;
  }
}

export class Desk {
  constructor({ url, key, assistant, language, person }) {
    this.url = url.replace(/(?<!\/)\/+$/, "");
    this.key = key;
    this.assistant = assistant;
    this.language = language;
    this.person = person;
    this.failed = 0;
    this.hints = new Set();
  }

  async open() {
    const opened = await this.#json("POST", "/v1/conversations");
    return { id: opened.conversation_id, token: opened.token ?? null };
  }

  read(place) {
    return this.#json("GET", path(place), { place });
  }

  async forget(place) {
    await this.#json("DELETE", path(place), { place });
  }

  async rate(place, messageId, rating, reason) {
    const body = { rating, reason };
    await this.#json("POST", `${path(place)}/messages/${messageId}/feedback`, { place, body });
  }

  /** Ask for a person; return whether the conversation was sent, also as a sentence. */
  handOver(place, messageId, left) {
    const body = { message_id: messageId, ...left };
    return this.#json("POST", `${path(place)}/handover`, { place, body });
  }

  /** Stop a message; its followers get its end. */
  async stop(place, id) {
    await this.#json("POST", `${path(place)}/messages/${id}/cancel`, { place });
  }

  /** Send a message and yield its events; the same id is never answered twice. */
  send(place, { id, text }, signal) {
    const body = { text, message_id: id, language: this.language };
    return this.#events("POST", `${path(place)}/messages`, { place, body, signal });
  }

  /** Yield the events of a message after the last one that is known. */
  follow(place, id, lastEvent, signal) {
    const headers = lastEvent ? { "Last-Event-ID": lastEvent } : {};
    return this.#events("GET", `${path(place)}/messages/${id}/events`, { place, headers, signal });
  }

  async #json(method, address, options = {}) {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await this.#ask(method, address, { ...options, signal });
    try {
      return answer.status === 204 ? null : await answer.json();
    } catch {
      throw new DeskError(0);
    }
  }

  async *#events(method, address, { signal, headers = {}, ...options }) {
    const silence = new AbortController();
    const either = AbortSignal.any([signal, silence.signal]);
    let receivedAt = Date.now();
    const watch = setInterval(() => {
      if (Date.now() - receivedAt > SILENCE_MS) silence.abort();
    }, WATCH_MS);
    try {
      const wanted = { ...options, headers: { Accept: "text/event-stream", ...headers } };
      const answer = await this.#ask(method, address, { ...wanted, signal: either });
      if (answer.status === 204) throw new DeskError(204);
      const parse = eventParser();
      for await (const text of pieces(answer.body)) {
        receivedAt = Date.now();
        yield* parse(text);
      }
    } finally {
      clearInterval(watch);
      silence.abort();
    }
  }

  /** Ask with the token of the person; one that is refused is replaced once, if the page can. */
  async #ask(method, address, options) {
    for (let first = true; ; first = false) {
      const token = await this.#token(options.signal);
      if (token === "") throw this.#hinted(new DeskError(401, BAD_PERSON));
      try {
        return await this.#request(method, address, options, token);
      } catch (error) {
        if (error.code !== BAD_PERSON) throw error;
        if (!first || !this.person.drop(token)) throw this.#hinted(error);
      }
    }
  }

  async #token(signal) {
    const over = new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    try {
      return await Promise.race([this.person.current(), over]);
    } catch {
      throw this.#hinted(new DeskError(0, signal.aborted ? "" : "person_token"));
    }
  }

  async #request(method, address, { place = null, body, headers = {}, signal }, token) {
    const sent = { "Accept-Language": this.language, ...headers };
    if (body) sent["Content-Type"] = "application/json";
    if (this.key) sent.Authorization = `Bearer ${this.key}`;
    if (token) sent["X-Person-Token"] = token;
    if (place?.token) sent["X-Conversation-Token"] = place.token;
    const assistant = this.assistant ? `?assistant=${encodeURIComponent(this.assistant)}` : "";
    const options = { method, headers: sent, body: body && JSON.stringify(body), signal, ...ALONE };
    const answer = await this.#fetch(`${this.url}${address}${assistant}`, options);
    if (answer.ok) return answer;
    const refusal = await answer.json().catch(() => null);
    const code = refusal?.error?.code ?? "";
    if (code !== BAD_PERSON) this.#hint(code);
    const seconds = Number.parseFloat(answer.headers.get("Retry-After"));
    const wait = Number.isFinite(seconds) ? seconds * 1000 : null;
    throw new DeskError(answer.status, code, wait);
  }

  /** Fetch; what a page may not read looks like a lost connection, and is separated from it here. */
  async #fetch(address, options) {
    for (let probed = false; ; probed = true) {
      try {
        const answer = await fetch(address, options);
        this.failed = 0;
        return answer;
      } catch {
        if (options.signal.aborted) throw new DeskError(0);
        const isBlocked = blocked.startsWith(`${this.url}/v1/`);
        if (isBlocked || probed) this.#shut(isBlocked ? "policy" : "unreadable");
        if (++this.failed < TRIES || !navigator.onLine || !(await this.#reached())) {
          throw new DeskError(0);
        }
      }
    }
  }

  /** Whether the desk can be reached, be it by requests whose answers nobody can read. */
  async #reached() {
    try {
      const signal = AbortSignal.timeout(WATCH_MS);
      await fetch(`${this.url}/healthz`, { mode: "no-cors", signal, ...ALONE });
      return true;
    } catch {
      this.#hint("unreachable");
      return false;
    }
  }

  #shut(code) {
    throw this.#hinted(new DeskError(403, code));
  }

  #hinted(error) {
    this.#hint(error.code);
    return error;
  }

  /** Show the operator of the desk, once, how to fix it. */
  #hint(code) {
    const words = recoveryHint(code, this);
    if (!words || this.hints.has(code)) return;
    this.hints.add(code);
    console[code === "unreachable" ? "info" : "error"](`Refdesk: ${words}`);
  }
}

const ALONE = { credentials: "omit", cache: "no-store" };

function path(place) {
  return `/v1/conversations/${encodeURIComponent(place.id)}`;
}

/** Yield the text of a body; a body that breaks off is a network that did not carry. */
async function* pieces(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch {
    throw new DeskError(0);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return a function that takes text as it comes and yields the whole events in it. */
function eventParser() {
  let rest = "";
  let fields = {};
  return function* parse(text) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
        continue;
      }
      if (fields.event) yield { id: fields.id, name: fields.event, data: JSON.parse(fields.data) };
      fields = {};
    }
  };
}
