// Shows one message: the question, how far it is, its outcome, and what can be done with it.

import { iconButton, make, titled, unseen } from "./elements.js";
import { answerTools, personOffer } from "./feedback.js";
import { directionOf } from "./languages.js";
import { harmless } from "./links.js";
import { readMarkdown } from "./markdown.js";
import { placeNode, Sources } from "./sources.js";
import { STEPS, STEP_OF } from "./steps.js";

const LONGEST_PREVIEW = 12_000; // what is longer is shown once it is whole
const LISTED = /^\s*(?:[-*]|\d{1,2}[.)])\s+(\S[^]*)$/;

export class TurnView {
  /** `desk`: `ask`, `stop`, `again`, `rate`, `say`; `template` tells where pages without address stand. */
  constructor(turn, { words, template, server, desk }) {
    this.turn = turn;
    this.words = words;
    this.template = template;
    this.server = server;
    this.desk = desk;
    this.answer = make("div", { class: "answer" });
    this.question = make("p", { class: "question", dir: "auto" }, unseen(`${words.you} `), turn.text);
    this.node = make("li", { class: "turn" }, this.question, this.answer);
    this.shown = null;
  }

  /** Show what the turn has become; `last`: nothing was said after it. */
  update(last) {
    const { answer, problem } = this.turn;
    const state = answer ? "answer" : (problem ?? "progress");
    this.answer.setAttribute("aria-busy", String(state === "progress"));
    if (state === "progress") this.#progress();
    else if (this.shown !== state) (answer ? this.#outcome() : this.#problem(problem));
    this.shown = state;
    this.tools?.update();
    for (const choice of this.choices ?? []) choice.disabled = !last;
  }

  /** Return what a screen reader should say of the outcome. */
  spoken() {
    const sources = this.sources?.places.length;
    const counted = sources ? `${this.words.sources}: ${sources}.` : "";
    const offered = (this.choices ?? []).map((choice) => choice.textContent).join("; ");
    return [this.body.innerText, offered, counted].filter(Boolean).join("\n").slice(0, 6000);
  }

  #progress() {
    const { stage, parts, draft, retracted, partial, taken, stopping, waiting } = this.turn;
    if (partial && partial.length < LONGEST_PREVIEW) return this.#preview();
    const now = STEP_OF[stage] ?? 0;
    this.progress ??= this.#steps();
    const { row, steps, label, stop, plan } = this.progress;
    steps.forEach((step, at) => (step.className = at < now ? "past" : at === now ? "now" : ""));
    const count = parts ? ` ${parts.filter((part) => part.status).length}/${parts.length}` : "";
    plan.replaceChildren(...(parts ?? []).map((part) => make("li", { class: part.status ?? "" }, part.label)));
    label.textContent = `${this.words[waiting && !taken ? "queue" : STEPS[now]]}…${count}`;
    stop.hidden = !taken || stopping; // what nobody took cannot be stopped
    if (draft ?? retracted) return this.#drafted();
    if (row.parentNode !== this.answer) this.answer.replaceChildren(row);
    return undefined;
  }

  /** Show what is written so far above the progress, at most once a frame. */
  #drafted() {
    this.drafting ??= requestAnimationFrame(() => {
      this.drafting = null;
      const { answer, draft, partial } = this.turn;
      if (answer || partial) return;
      const row = this.progress.row;
      const shown = draft && draft.text.length < LONGEST_PREVIEW ? this.#draft(draft) : null;
      for (const node of [...this.answer.childNodes]) if (node !== row) node.remove();
      // The row stays where it is: a button that is moved loses its focus.
      if (row.parentNode !== this.answer) this.answer.append(row);
      row.before(...[shown, this.#retracted()].filter(Boolean));
    });
  }

  #draft({ text, language, sources }) {
    this.answer.dir = directionOf(language);
    const { words, template, server } = this;
    this.sources = new Sources(sources, { words, template, server });
    const body = this.#prose(text, { language, sources });
    return make("div", { class: "draft" }, body, this.sources.list());
  }

  /** Return what was shown and is not part of the answer, struck out. */
  #retracted() {
    const { answer, draft } = this.turn;
    const shown = ((answer ?? draft)?.text ?? "").replace(/\s+/g, " ");
    const bare = shown.replace(/ ?\[\d{1,4}\]/g, ""); // sentences and rows come without marks, code as it is
    const retracted = this.turn.retracted?.filter((sentence) => !shown.includes(sentence) && !bare.includes(sentence));
    if (!retracted?.length) return null;
    const struck = retracted.map((sentence) => make("li", {}, make("del", {}, ...this.#prose(sentence, {}).childNodes)));
    return make("div", { class: "retracted" }, make("p", {}, this.words.retracted), make("ul", {}, ...struck));
  }

  /** Make the row once: a button that is made again loses its focus. */
  #steps() {
    const steps = STEPS.map(() => make("i"));
    const bar = make("span", { class: "steps", "aria-hidden": "true" }, ...steps);
    const label = make("span");
    const stop = iconButton("stop", this.words.stop, () => this.desk.stop(this.turn));
    const plan = make("ul", { class: "plan" });
    const row = make("div", { class: "progress" }, bar, label, stop, plan);
    return { row, steps, label, stop, plan };
  }


  /** Show the pieces that have come, at most once a frame. */
  #preview() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      if (this.turn.answer || !this.turn.partial) return;
      this.answer.replaceChildren(
        ...[this.#prose(this.turn.partial, {}), this.#retracted()].filter(Boolean),
      );
    });
  }

  #outcome() {
    const { answer } = this.turn;
    this.answer.dir = directionOf(answer.language);
    this.answer.dataset.outcome = answer.outcome;
    const { words, template, server } = this;
    this.sources = new Sources(answer.sources, { words, template, server, links: answer.links });
    const { text, actions } = untwined(answer);
    this.body = answer.passages ? this.#passages(answer, text) : this.#prose(text, answer);
    const requested = answer.handover === "requested";
    this.question.hidden = answer.answered_by === "person"; // nobody asked it
    this.tools = requested || answer.outcome === "superseded" ? null : this.#tools();
    const options = this.#options(actions);
    this.offer = answer.handover && !requested ? personOffer(this.turn, { words: this.words, ...this.desk }) : null;
    if (answer.handover === "offered") this.offer.show();
    const places = [this.sources.figures(), this.sources.list()];
    const parts = [this.body, this.#retracted(), options, ...places, this.offer?.node, this.tools?.node];
    this.answer.replaceChildren(...parts.filter(Boolean));
  }

  /** Return what the search found: the first passage, and the others where a reader unfolds them. */
  #passages(answer, text) {
    const { language, passages: { notice, shown, marked = [] } } = answer;
    const words = new Set(marked);
    const [first, ...others] = shown.map((passage) => this.#passage(passage, words));
    const summary = make("summary", {}, `${this.words.more} (${others.length})`);
    const more = others.length ? make("details", {}, summary, ...others) : null;
    const last = shown.at(-1).text;
    const below = text.slice(text.lastIndexOf(last) + last.length).trim();
    return make(
      "div",
      { class: "prose passages" },
      this.#prose(notice, { language }),
      first,
      more,
      below ? this.#prose(below, { language }) : null,
    );
  }

  #passage({ number, place, text, warning }, marked) {
    const heading = make("h3", { dir: "auto" }, ...titled(place), " ", this.sources.cite(number));
    const note = warning ? make("p", { class: "note" }, warning) : null;
    // Numbers in brackets are the document's own here.
    const nodes = readMarkdown(this.sources.withoutNames(text), {
      cite: () => null,
      follows: (address) => this.sources.follows(address),
      words: this.words,
    });
    const body = make("div", { dir: "auto" }, nodes);
    for (const strong of body.querySelectorAll("strong")) {
      if (marked.has(strong.textContent)) strong.replaceWith(make("mark", {}, ...strong.childNodes));
    }
    return make("section", {}, heading, note, body);
  }

  #prose(text, { language, sources }) {
    const nodes = readMarkdown(text, {
      cite: (number) => this.sources?.cite(number) ?? null,
      follows: (address) => this.sources?.follows(address) ?? null,
      words: this.words,
    });
    return make("div", { class: "prose", lang: language, dir: language ? null : "auto" }, nodes);
  }

  #options(actions) {
    const pages = actions.filter(({ kind, link }) => kind === "source" && harmless(link));
    const choices = actions.filter((action) => !pages.includes(action));
    this.choices = choices.map((action) => this.#choice(action));
    const links = pages.map(({ label, link, crumbs = [] }) => {
      const above = crumbs.filter((part) => part !== label).join(" › ") || null;
      return placeNode({ title: label, above, address: harmless(link) }, this.words);
    });
    const listed = links.length ? make("ol", {}, ...links.map((link) => make("li", {}, link))) : null;
    const row = { class: "choices", role: "group", "aria-label": this.words.options };
    const offered = choices.length ? make("div", row, ...this.choices) : null;
    if (!listed && !offered) return null;
    return make("div", { class: listed ? "options sources" : "options" }, listed, offered);
  }

  #choice({ label, value, kind }) {
    const quiet = kind === "skip" || kind === "exit";
    const button = make("button", { type: "button", class: quiet ? "choice quiet" : "choice", dir: "auto" }, ...titled(label));
    button.addEventListener("click", () => {
      button.classList.add("chosen");
      this.desk.ask(value, { pressed: true });
    });
    return button;
  }

  #tools() {
    return answerTools(this.turn, {
      words: this.words,
      rate: (rating, reason) => {
        if (rating === "down") this.offer?.show();
        return this.desk.rate(this.turn, rating, reason);
      },
      say: this.desk.say,
    });
  }

  #problem(problem) {
    const again = { type: "button", class: "button", onclick: () => this.desk.again(this.turn) };
    this.answer.replaceChildren(
      make("p", { class: "problem" }, this.words[problem]),
      make("button", again, this.words.again),
    );
  }
}

/** Return the text without the lists that the actions show as buttons and links. */
function untwined({ text, suggested_actions: actions = [] }) {
  const labels = new Set(actions.map(({ label }) => label.trim()));
  const lines = text.split("\n").filter((line) => !labels.has(LISTED.exec(line)?.[1].trimEnd()));
  return { text: lines.join("\n"), actions };
}
