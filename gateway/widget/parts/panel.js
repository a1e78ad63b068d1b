// The panel: heading, what was said, notices, and the field to ask in.

import { composer } from "./composer.js";
import { icon, iconButton, make } from "./elements.js";
import { TurnView } from "./turn.js";

const ROOM_PX = 12;

export class Panel {
  /** `options`: the attributes of the element (`heading`, `greeting`, `questions`, `placeholder`, `disclaimer`,
   * `template`); `close()` when it can be closed. */
  constructor(conversation, { words, options, close }) {
    this.conversation = conversation;
    this.words = words;
    this.options = options;
    this.views = new Map();
    this.events = new AbortController();
    this.title = make("h2", { id: "title", dir: "auto" }, options.heading || words.title);
    this.fresh = iconButton("fresh", words.fresh, () => this.#confirm());
    const shut = close ? iconButton("close", words.close, close) : null;
    const mark = make("span", { class: "mark" }, icon("book"));
    this.head = make("header", {}, mark, this.title, this.fresh, shut);
    this.list = make("ol", { class: "turns" });
    this.start = make("div");
    const named = { class: "log", role: "log", "aria-live": "off", "aria-label": words.conversation };
    this.log = make("div", { ...named, tabindex: "0" }, this.start, this.list);
    this.notice = make("div", { class: "notice", hidden: true });
    this.asking = make("div", { class: "notice", hidden: true });
    this.status = make("div", { class: "unseen", role: "status", "aria-live": "polite" });
    const { placeholder, disclaimer } = options;
    const ask = (text) => this.ask(text);
    const say = (text) => this.say(text);
    this.composer = composer({ words, placeholder, disclaimer, ask, say });
    this.parts = [this.head, this.log, this.notice, this.asking, this.composer.node, this.status];
    this.#listen();
    this.#turns();
    this.#connection();
  }

  /** Ask; what was `pressed` vanishes, so that focus needs another place. */
  ask(text, { pressed = false } = {}) {
    this.say("");
    if (!this.composer.takes(text)) return;
    this.conversation.ask(text);
    this.following = true;
    this.#follow();
    if (pressed) this.focus();
  }

  /** Announce, once. */
  say(text) {
    this.status.textContent = text;
  }

  /** Put focus where one goes on; a finger is not met by a keyboard that it did not ask for. */
  focus() {
    const target = matchMedia("(pointer: coarse)").matches ? this.log : this.composer.field;
    target.focus({ preventScroll: true });
  }

  /** Close what was opened within the panel last; false: there is nothing. */
  back() {
    const asked = this.asking.hidden ? null : this.asking;
    const within = asked ?? this.list.querySelector(".reason");
    within?.querySelector("[data-back]").click();
    return Boolean(within);
  }

  close() {
    this.events.abort();
  }

  #listen() {
    const on = (name, act) =>
      this.conversation.addEventListener(name, act, { signal: this.events.signal });
    on("turns", () => this.#turns());
    on("turn", ({ detail }) => this.#turn(detail));
    on("ended", ({ detail }) => this.#ended(detail));
    on("connection", () => this.#connection());
    for (const name of ["online", "offline"]) {
      window.addEventListener(name, () => this.#connection(), { signal: this.events.signal });
    }
    // Whoever scrolls up reads there: what comes does not pull them away.
    const left = () => (this.following = this.#room() < ROOM_PX * 4);
    for (const name of ["wheel", "touchmove", "keyup"]) {
      this.log.addEventListener(name, left, { passive: true });
    }
  }

  #turns() {
    const { turns, earlier } = this.conversation;
    const shown = new Set(turns);
    for (const [turn, view] of this.views) {
      if (shown.has(turn)) continue;
      view.node.remove();
      this.views.delete(turn);
    }
    turns.forEach((turn, at) => {
      const view = this.#view(turn);
      if (this.list.children[at] !== view.node) {
        this.list.insertBefore(view.node, this.list.children[at] ?? null);
      }
      view.update(turn === turns.at(-1));
    });
    this.#begin(earlier, turns.length === 0);
    this.fresh.disabled = !turns.length && !earlier.length;
    this.#follow();
  }

  #view(turn) {
    let view = this.views.get(turn);
    if (!view) {
      const { conversation } = this;
      const desk = {
        ask: (text, how) => this.ask(text, how),
        stop: (running) => {
          this.focus(); // the button goes
          conversation.stop(running);
        },
        again: (failed) => conversation.again(failed),
        rate: (rated, rating, reason) => {
          this.following = false; // whoever rates an answer reads there
          return conversation.rate(rated, rating, reason);
        },
        handOver: (unhelped, left) => {
          this.following = true; // the request is shown below
          return conversation.handOver(unhelped, left);
        },
        say: (text) => this.say(text),
      };
      const { template, server } = this.options;
      view = new TurnView(turn, { words: this.words, template, server, desk });
      this.views.set(turn, view);
    }
    return view;
  }

  #turn(turn) {
    this.#view(turn).update(turn === this.conversation.turns.at(-1));
    if (turn.problem) this.say(this.words[turn.problem]);
    this.#follow();
  }

  #ended(turn) {
    const view = this.#view(turn);
    this.say(view.spoken());
  }

  /** Show what stands before the first question: earlier turns, or a greeting with examples. */
  #begin(earlier, empty) {
    if (earlier.length) {
      const said = earlier.map(({ speaker, text }) =>
        make("p", { class: speaker === "user" ? "question" : "said", dir: "auto" }, text),
      );
      this.start.className = "earlier turn";
      this.start.replaceChildren(...said);
    } else if (empty) {
      this.start.className = "hello";
      this.start.replaceChildren(make("p", { dir: "auto" }, this.options.greeting || this.words.hello));
      if (this.options.questions.length) this.start.append(this.#examples());
    } else this.start.replaceChildren();
    this.start.hidden = !this.start.hasChildNodes();
  }

  #examples() {
    const choices = this.options.questions.map((text) => {
      const onclick = () => this.ask(text, { pressed: true });
      return make("button", { type: "button", class: "choice", dir: "auto", onclick }, text);
    });
    const label = make("span", { class: "label", id: "examples" }, this.words.examples);
    const row = { class: "choices", role: "group", "aria-labelledby": "examples" };
    return make("div", {}, label, make("div", row, ...choices));
  }

  #connection() {
    const { connection } = this.conversation;
    if (connection === this.connected) return;
    const before = this.connected;
    this.connected = connection;
    this.notice.hidden = connection === "good";
    if (connection === "good") return;
    const now = { type: "button", class: "button", onclick: () => this.conversation.hurry() };
    this.notice.replaceChildren(
      ...[
        make("p", {}, this.words[connection]),
        connection === "reconnecting" ? make("button", now, this.words.now) : null,
      ].filter(Boolean),
    );
    this.#follow();
    if (before !== undefined) this.say(this.words[connection]);
  }

  /** Ask whether everything may be forgotten. */
  #confirm() {
    const close = (target) => {
      this.asking.hidden = true;
      target.focus();
    };
    const forget = async () => {
      yes.disabled = true;
      if (await this.conversation.reset()) close(this.composer.field);
      else {
        question.textContent = this.words.unforgotten;
        yes.disabled = false;
      }
    };
    const question = make("p", { id: "sure", role: "alert" }, this.words.sure);
    const yes = make("button", { type: "button", class: "button main", onclick: forget }, this.words.forget);
    const no = { type: "button", class: "button", "data-back": true, onclick: () => close(this.fresh) };
    this.asking.onkeydown = (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      event.preventDefault();
      close(this.fresh);
    };
    const row = make("div", { class: "row" }, yes, make("button", no, this.words.keep));
    this.asking.replaceChildren(question, row);
    this.asking.hidden = false;
    this.#follow();
    yes.focus();
  }

  /** Keep the newest in sight, but never scroll a question away that is being answered. */
  #follow() {
    if (!this.following || this.moving) return;
    this.moving = requestAnimationFrame(() => {
      this.moving = null;
      const last = this.list.lastElementChild;
      if (!last) return;
      const bottom = this.log.scrollHeight - this.log.clientHeight;
      // Never back up: whoever has read on stays there.
      this.log.scrollTop = Math.max(this.log.scrollTop, Math.min(bottom, last.offsetTop - ROOM_PX));
    });
  }

  #room() {
    return this.log.scrollHeight - this.log.clientHeight - this.log.scrollTop;
  }
}
