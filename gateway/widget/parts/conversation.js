// One conversation: what was said, what is under way, and how it goes on when connections break.

import { DeskError } from "./desk.js";
import { newId } from "./keeping.js";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 10_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
const PERSON_WAIT_MS = 15_000;

/** Tells `turns` (the list changed), `turn` (one changed), `ended` (one got its answer while
 * somebody waited), `connection`, and `forgotten`. A turn is
 * `{ id, text, stage, attempt, parts, draft, retracted, partial, answer, problem, feedback, lastEvent,
 * taken, waiting, stopping }`; `draft` is the checked beginning of an answer: `{ text, language,
 * sources }`; `parts` are the searches that run side by side: `{ name, label, status }`. */
export class Conversation extends EventTarget {
  constructor(desk, keeping) {
    super();
    this.desk = desk;
    this.keeping = keeping;
    this.turns = [];
    this.earlier = [];
    this.troubled = new Set();
    this.carried = new Set();
    this.opening = null;
    this.life = new AbortController();
    keeping.addEventListener("said", () => this.refresh());
    keeping.addEventListener("reset", () => this.#begin());
  }

  /** Go on where the page was left. */
  async restore() {
    const { place, waiting } = this.keeping.load();
    if (!place) return;
    for (const { id, text } of waiting) this.#add({ id, text });
    await this.refresh();
    for (const turn of this.turns) if (!turn.answer) this.#carry(turn);
  }

  /** Ask; the message has its id before it leaves, so that it can be sent again. */
  ask(text) {
    const turn = this.#add({ id: newId(), text });
    this.#keepWaiting();
    this.#carry(turn);
    return turn;
  }

  /** Ask again what could not be sent. */
  again(turn) {
    turn.problem = null;
    turn.id = newId();
    turn.taken = turn.lastEvent = turn.stage = turn.waiting = null;
    turn.parts = turn.draft = turn.retracted = null;
    this.#notify("turn", turn);
    this.#carry(turn);
  }

  /** Stop what is being answered; its stream tells the end. */
  async stop(turn) {
    turn.stopping = true;
    this.#notify("turn", turn);
    try {
      await this.desk.stop(await this.#place(), turn.id);
    } catch (error) {
      if (!(error instanceof DeskError)) throw error;
      turn.stopping = false;
      this.#notify("turn", turn);
    }
  }

  /** Ask for a person, with what they left; return what the desk says, or null if it was not reached. */
  async handOver(turn, left) {
    try {
      const answer = await this.desk.handOver(await this.#place(), turn.id, left);
      await this.refresh();
      return answer;
    } catch (error) {
      if (!(error instanceof DeskError)) throw error;
      return null;
    }
  }

  async rate(turn, rating, reason) {
    const before = turn.feedback;
    turn.feedback = { rating, reason };
    this.#notify("turn", turn);
    try {
      await this.desk.rate(await this.#place(), turn.id, rating, reason);
      this.keeping.notify("said");
      return true;
    } catch (error) {
      if (!(error instanceof DeskError)) throw error;
      turn.feedback = before;
      this.#notify("turn", turn);
      return false;
    }
  }

  /** Forget everything, here and at the desk; false: the desk could not be reached. */
  async reset() {
    const { place } = this.keeping.load();
    try {
      if (place) await this.desk.forget(place);
    } catch (error) {
      if (!(error instanceof DeskError)) throw error;
      if (![401, 403, 404].includes(error.status)) return false;
    }
    this.keeping.clear();
    this.keeping.notify("reset");
    this.#begin();
    return true;
  }

  /** Do not wait any longer before the next attempt. */
  hurry() {
    this.#notify("hurry");
  }

  /** Read what was said, here or in another tab. */
  async refresh() {
    const { place } = this.keeping.load();
    if (!place) return;
    const ended = new Set(this.turns.filter((turn) => turn.answer));
    let stored;
    try {
      stored = await this.desk.read(place);
    } catch (error) {
      if (!(error instanceof DeskError)) throw error;
      if (error.status === 404 || error.code === "missing_conversation_token") this.#lost(place);
      else if (error.passes) this.#later(() => this.refresh());
      return;
    }
    this.#recordConnection("refresh", true);
    if (this.keeping.load().place?.id === place.id) this.#merge(stored, ended);
  }

  get connection() {
    if (!navigator.onLine) return "offline";
    return this.troubled.size ? "reconnecting" : "good";
  }

  close() {
    this.life.abort();
    this.keeping.close();
  }

  /** Show the turns of the desk; those that `ended` before the request and are missing are past. */
  #merge(stored, ended) {
    this.earlier = stored.earlier ?? [];
    const known = new Map(this.turns.map((turn) => [turn.id, turn]));
    const said = stored.messages.map((message) => {
      const turn = known.get(message.message_id) ?? { id: message.message_id, text: message.text };
      known.delete(turn.id);
      turn.taken = true;
      turn.feedback = message.feedback ?? turn.feedback;
      turn.answer ??= message.answer;
      return turn;
    });
    const unconfirmed = [...known.values()].filter((turn) => !ended.has(turn));
    this.turns = [...said, ...unconfirmed];
    this.#keepWaiting();
    this.#notify("turns");
    for (const turn of said) if (!turn.answer) this.#carry(turn);
    this.#awaitPerson();
  }

  /** Look for the answer of a person again and again, while one is awaited. */
  async #awaitPerson() {
    const asked = this.turns.findLastIndex(({ answer }) => answer?.handover === "requested");
    const awaits = asked >= 0 && !this.turns.slice(asked).some(({ answer }) => answer?.answered_by === "person");
    if (!awaits || this.awaiting) return;
    this.awaiting = true;
    const { signal } = this.life;
    await this.#pause(PERSON_WAIT_MS, signal);
    this.awaiting = false;
    if (signal.aborted) return;
    if (document.hidden) this.#awaitPerson();
    else await this.refresh();
  }

  /** Carry one message until it has its outcome, whatever breaks. */
  async #carry(turn) {
    if (this.carried.has(turn)) return;
    this.carried.add(turn);
    const { signal } = this.life;
    let wait = FIRST_WAIT_MS;
    while (!turn.answer && !turn.problem && !signal.aborted) {
      try {
        await this.#listen(turn, signal, () => (wait = FIRST_WAIT_MS));
        if (turn.answer) break;
      } catch (error) {
        if (!(error instanceof DeskError)) throw error;
        if (signal.aborted) break;
        wait = Math.max(wait, await this.#judge(turn, error));
      }
      if (turn.problem || turn.answer) break;
      await this.#pause(wait * (0.7 + 0.6 * Math.random()), signal);
      wait = Math.min(wait * 1.7, LONGEST_WAIT_MS);
    }
    this.carried.delete(turn);
    if (signal.aborted) return;
    this.#recordConnection(turn, true);
    this.#keepWaiting();
    this.#notify("turn", turn);
    if (!turn.answer) return;
    this.#notify("ended", turn);
    this.keeping.notify("said");
  }

  async #listen(turn, signal, onEvent) {
    const place = await this.#place();
    const events = turn.taken
      ? this.desk.follow(place, turn.id, turn.lastEvent, signal)
      : this.desk.send(place, turn, signal);
    for await (const event of events) {
      if (signal.aborted) return;
      onEvent();
      this.#recordConnection(turn, true);
      this.#take(turn, event);
    }
  }

  #take(turn, { id, name, data }) {
    turn.lastEvent = id;
    if (name === "waiting") {
      turn.waiting = true; // in front of a desk that is full
    } else if (name === "accepted") {
      turn.taken = true;
      this.#keepWaiting();
      this.keeping.notify("said");
    } else if (name === "stage") {
      turn.stage = data.stage;
      turn.attempt = data.attempt;
      const ended = (data.completed ?? []).map((label) => ({ label, status: "completed" }));
      turn.parts = data.branches && [...ended, ...data.branches.map((name, at) => ({ name, label: data.plan[at] }))];
    } else if (name === "branch") {
      const part = turn.parts?.find(({ name }) => name === data.branch);
      if (part) part.status = data.status;
    } else if (name === "draft") {
      turn.draft = { text: joined(turn.draft, data), language: data.language, sources: data.sources };
    } else if (name === "retracted") {
      turn.retracted = [...(turn.retracted ?? []), ...data.sentences];
      turn.draft = null;
    } else if (name === "text") {
      turn.partial = data.offset ? `${turn.partial ?? ""}${data.text}` : data.text;
    } else if (name === "done") {
      turn.answer = data;
    }
    this.#notify("turn", turn);
  }

  /** Decide what an error means for a message; returns how long to wait at least. */
  async #judge(turn, error) {
    if (error.passes || error.status === 204) {
      if (error.passes) this.#recordConnection(turn, false);
      if (error.status === 204) await this.refresh();
      return retryAfterMs(error);
    }
    if (error.status === 429 && retryAfterMs(error) <= LONGEST_RETRY_AFTER_MS) {
      turn.waiting = true; // in line, and no connection was lost
      this.#notify("turn", turn);
      return Math.max(retryAfterMs(error), 1000);
    }
    if (error.status === 404 && turn.taken) {
      turn.taken = turn.lastEvent = turn.waiting = null; // the desk knows nothing of it: send it again
      return 0;
    }
    if (error.code === "not_found" || error.code === "missing_conversation_token") {
      if (!turn.moved) {
        turn.moved = true;
        this.keeping.clear(); // the conversation is over: the message goes into a new one
        return 0;
      }
    }
    turn.problem = problemOf(error);
    return 0;
  }

  async #place() {
    const { place } = this.keeping.load();
    if (place) return place;
    this.opening ??= this.desk.open().finally(() => (this.opening = null));
    const opened = await this.opening;
    this.keeping.save({ place: opened, waiting: [] });
    this.#keepWaiting();
    return opened;
  }

  /** Keep what no desk has taken yet, so that a reload loses nothing. */
  #keepWaiting() {
    const { place } = this.keeping.load();
    const waiting = this.turns.filter((turn) => !turn.taken && !turn.answer && !turn.problem);
    if (place) this.keeping.save({ place, waiting: waiting.map(({ id, text }) => ({ id, text })) });
  }

  #add(turn) {
    this.turns.push(turn);
    this.#notify("turns");
    return turn;
  }

  /** The desk knows no such conversation: what is shown ended, what waits goes into a new one. */
  #lost(place) {
    if (this.keeping.load().place?.id !== place.id) return;
    this.keeping.clear();
    this.turns = this.turns.filter((turn) => !turn.answer);
    this.#notify("turns");
  }

  #begin() {
    this.life.abort();
    this.life = new AbortController();
    this.turns = [];
    this.earlier = [];
    this.troubled.clear();
    this.carried.clear();
    this.#notify("turns");
    this.#notify("connection");
    this.#notify("forgotten");
  }

  #recordConnection(who, good) {
    const before = this.troubled.size;
    if (good) this.troubled.delete(who);
    else this.troubled.add(who);
    if (before !== this.troubled.size) this.#notify("connection");
  }

  async #later(act) {
    this.#recordConnection("refresh", false);
    const { signal } = this.life;
    await this.#pause(2 * FIRST_WAIT_MS + 2000 * Math.random(), signal);
    if (!signal.aborted) await act();
  }

  /** Wait, but not after the network came back, or somebody hurries. */
  #pause(milliseconds, signal) {
    return new Promise((resolve) => {
      const events = new AbortController();
      const go = () => {
        clearTimeout(timer);
        events.abort();
        resolve();
      };
      const timer = setTimeout(go, milliseconds);
      const once = { signal: events.signal };
      window.addEventListener("online", go, once);
      this.addEventListener("hurry", go, once);
      signal.addEventListener("abort", go, once);
    });
  }

  #notify(name, detail = null) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** Return the text of a draft: what stays of the one before, in code points, and what follows. */
function joined(before, { offset, text }) {
  return [...(before?.text ?? "")].slice(0, offset).join("") + text;
}

function retryAfterMs(error) {
  return error.retryAfterMs ?? 0;
}

function problemOf(error) {
  if (error.status === 429) return "limited";
  const shut = [401, 403].includes(error.status) || error.code === "unknown_assistant";
  return shut ? "shut" : "unsent";
}
