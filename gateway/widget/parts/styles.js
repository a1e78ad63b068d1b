// How it looks. Every colour and size that a page may want to change is a variable of its own.

export const STYLES = `
:host {
  all: initial;
  color-scheme: inherit;
  /* The colours, fonts, sizes and spaces of gateway/design.css. */
  --radius: var(--refdesk-radius, 18px);
  --rounding: calc(var(--radius) * .6);
  --shadow: var(--refdesk-shadow, 0 1px 2px rgb(9 30 24 / .08), 0 16px 48px rgb(9 30 24 / .18));
  display: block;
  font: 400 var(--refdesk-font-size, 16px)/1.6 var(--font);
  color: var(--text);
  text-align: start;
  -webkit-text-size-adjust: 100%;
}
:host([hidden]) { display: none; }
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
:host([theme="system"]) { color-scheme: light dark; }
:host(:not([mode="inline"])) {
  position: fixed;
  z-index: var(--refdesk-layer, 2147483000);
  inset-block-end: calc(var(--refdesk-offset, 24px) + env(safe-area-inset-bottom, 0px));
  inset-inline-end: var(--refdesk-offset, 24px);
}
:host([position="start"]:not([mode="inline"])) {
  inset-inline: var(--refdesk-offset, 24px) auto;
}
:host([mode="inline"]) { block-size: var(--refdesk-height, 640px); min-inline-size: 0; }
:host([mode="inline"]) .outer { block-size: 100%; }

*, *::before, *::after { box-sizing: border-box; }
button, textarea { font: inherit; color: inherit; letter-spacing: inherit; }
button { cursor: pointer; border: 0; background: none; padding: 0; touch-action: manipulation; }
button:disabled { cursor: default; }
:focus-visible { outline: 2px solid var(--ring); outline-offset: 2px; }
[hidden] { display: none !important; }
.icon { inline-size: 20px; block-size: 20px; flex: none; fill: none; stroke: currentColor;
  stroke-width: 1.7; stroke-linecap: round; stroke-linejoin: round; }
.unseen { position: absolute; inline-size: 1px; block-size: 1px; margin: -1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }

.launcher { display: flex; align-items: center; gap: var(--s2); block-size: 56px; padding-inline: var(--s4) var(--s5);
  border-radius: 28px; background: var(--accent); color: var(--on-accent); font-weight: 600;
  box-shadow: var(--shadow); transition: transform .18s ease; position: relative;
  margin-inline-start: auto; }
.launcher:hover { transform: translateY(-2px); }
.launcher:focus-visible { outline-width: 3px; outline-offset: 3px; }
.launcher .icon { inline-size: 24px; block-size: 24px; }
.launcher.news::after { content: ""; position: absolute; inset-block-start: 2px; inset-inline-end: 6px;
  inline-size: 14px; block-size: 14px; border-radius: 50%; background: var(--problem);
  border: 2px solid var(--surface); }

.panel { display: flex; flex-direction: column; overflow: hidden; background: var(--surface);
  color: var(--text); border: 1px solid var(--line); border-radius: var(--radius); margin: 0;
  padding: 0; block-size: 100%; inline-size: 100%; max-inline-size: none; max-block-size: none;
  position: relative; }
dialog.panel:not([open]) { display: none; }
dialog.panel { position: fixed; inset: auto; inset-inline-end: var(--refdesk-offset, 24px);
  inset-block-end: calc(var(--refdesk-offset, 24px) + 72px + env(safe-area-inset-bottom, 0px));
  inline-size: min(var(--refdesk-width, 432px), calc(100vw - 2 * var(--refdesk-offset, 24px)));
  block-size: min(var(--refdesk-height, 700px), calc(100dvh - 2 * var(--refdesk-offset, 24px) - 72px));
  box-shadow: var(--shadow); animation: rise .22s ease; }
:host([position="start"]) dialog.panel { inset-inline: var(--refdesk-offset, 24px) auto; }
dialog.panel.full { inset: 0; inline-size: 100vw; block-size: var(--seen-height, 100dvh); border: 0;
  border-radius: 0; padding: env(safe-area-inset-top, 0px) 0 env(safe-area-inset-bottom, 0px); }
dialog.panel::backdrop { background: var(--surface); }

header { display: flex; align-items: center; gap: var(--s1); padding-block: var(--s3);
  padding-inline: var(--s4) var(--s3); border-block-end: 1px solid var(--line); }
h2 { font-size: var(--large); line-height: 1.35; font-weight: 650; margin: 0; flex: 1; min-inline-size: 0;
  overflow-wrap: anywhere; letter-spacing: -.005em; }
header .mark { color: var(--accent); display: flex; margin-inline-end: var(--s2); }
.tool { display: grid; place-items: center; inline-size: 40px; block-size: 40px;
  border-radius: 50%; color: var(--muted); }
.tool:hover:not(:disabled) { background: var(--raised); color: var(--text); }
.tool:disabled { opacity: .4; }
.tool[aria-pressed="true"] { color: var(--accent); }
.tool[aria-pressed="true"] .icon { fill: color-mix(in srgb, var(--accent) 25%, transparent); }

.log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: var(--s4); display: flex;
  flex-direction: column; gap: var(--s5); scrollbar-width: thin; position: relative; }
.log:focus-visible { outline-offset: -3px; }
.log > * { inline-size: 100%; max-inline-size: 46em; margin-inline: auto; }
ol.turns { list-style: none; margin-block: 0; padding: 0; display: flex; flex-direction: column;
  gap: var(--s5); }
.hello { margin-block: auto 0; }
.hello > p { margin: 0 0 var(--s4); font-size: var(--lead); line-height: 1.45; letter-spacing: -.01em;
  text-wrap: pretty; }
.label { display: block; margin: 0 0 var(--s2); color: var(--muted); font-size: var(--small); font-weight: 600; }
.choices { display: flex; flex-wrap: wrap; gap: var(--s2); }
.choice { min-block-size: 40px; padding: var(--s2) var(--s4); border: 1px solid var(--line); border-radius: 20px;
  text-align: start; line-height: 1.35; background: var(--surface); overflow-wrap: anywhere; }
.choice:hover:not(:disabled) { border-color: var(--accent); background: var(--bubble); }
.choice.quiet { color: var(--muted); border-color: transparent; background: var(--raised); }
.choice:disabled { color: var(--muted); }
.choice.chosen { border-color: var(--accent); color: var(--text); background: var(--bubble); }

.turn { display: flex; flex-direction: column; gap: var(--s3); min-inline-size: 0; }
.question { align-self: flex-end; max-inline-size: 88%; margin: 0; padding: var(--s2) var(--s4);
  border-radius: var(--radius); border-end-end-radius: 4px; background: var(--bubble);
  white-space: pre-wrap; overflow-wrap: anywhere; }
.earlier .said { margin: 0 0 var(--s3); color: var(--muted); white-space: pre-wrap; overflow-wrap: anywhere; }
.answer { min-inline-size: 0; }

.progress { display: flex; flex-wrap: wrap; align-items: center; gap: var(--s3); color: var(--muted); min-block-size: 40px;
  line-height: 1.35; }
.progress > span:not(.steps) { flex: 1 1 0; }
.progress .tool { margin-inline-start: auto; flex: none; border: 1px solid var(--line); color: var(--text); }
.progress .tool .icon { inline-size: 18px; block-size: 18px; fill: currentColor; }
.plan { flex-basis: 100%; margin: 0; padding: 0; list-style: none; overflow-wrap: anywhere; }
.plan:empty { display: none; }
.plan li { padding-inline-start: 1.2em; text-indent: -1.2em; }
.plan li::before { display: inline-block; inline-size: 1.2em; text-indent: 0; content: "\\2013"; }
.plan li.completed::before { content: "\\2713"; }
.steps { display: flex; gap: var(--s1); }
.steps i { inline-size: 18px; block-size: 4px; border-radius: 2px; background: var(--line);
  transition: background .3s ease; }
.steps i.past { background: var(--accent); }
.steps i.now { background: var(--accent); animation: breathe 1.4s ease-in-out infinite; }

.prose { overflow-wrap: anywhere; }
.prose > :first-child { margin-block-start: 0; }
.prose > :last-child { margin-block-end: 0; }
.prose p, .prose ul, .prose ol, .prose pre, .prose blockquote, .prose .table { margin: 0 0 var(--s3); }
.prose ul, .prose ol { padding-inline-start: var(--s5); }
.prose li { margin-block: var(--s1); padding-inline-start: var(--s1); }
.prose :is(li, th, td) { unicode-bidi: plaintext; text-align: left; }
.prose :is(ol, ul):dir(rtl) > li, .prose table:dir(rtl) :is(th, td), .place:dir(rtl) .what { text-align: right; }
.prose li::marker { color: var(--muted); }
.prose li > :is(ul, ol, p, pre) { margin-block: var(--s1); }
.prose :is(h3, h4, h5, h6) { margin: var(--s5) 0 var(--s2); font-size: 1em; line-height: 1.4; font-weight: 650; }
.prose h3 { font-size: var(--large); }
.prose a { color: var(--accent); text-decoration: underline; text-underline-offset: .18em;
  text-decoration-thickness: 1px; }
.prose a:hover { text-decoration-thickness: 2px; }
:is(.prose, .place, .choice) code { font: .9em/1.5 var(--code);
  background: var(--raised); border-radius: 5px; padding: .1em .35em; unicode-bidi: isolate; -webkit-box-decoration-break: clone;
  box-decoration-break: clone; }
.prose pre, .prose .table { --ground: var(--surface); --shade: light-dark(rgb(9 30 24 / .28), rgb(163 178 172 / .4)); overflow-x: auto;
  background: linear-gradient(to right, var(--ground) 40%, transparent) left / 36px 100% no-repeat local,
    linear-gradient(to left, var(--ground) 40%, transparent) right / 36px 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 10px 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 10px 100% no-repeat scroll, var(--ground); }
.prose pre { --ground: var(--raised); border: 1px solid var(--line); border-radius: var(--rounding);
  padding: var(--s3); font-size: var(--small); line-height: 1.5; text-align: left; }
.prose pre code { background: none; padding: 0; font-size: 1em; overflow-wrap: normal; white-space: pre; }
.prose blockquote { padding-inline-start: var(--s3); border-inline-start: 3px solid var(--line);
  color: var(--muted); }
.prose hr { border: 0; border-block-start: 1px solid var(--line); margin: var(--s4) 0; }
.prose table { border-collapse: collapse; font-size: var(--normal); }
.prose th, .prose td { vertical-align: top; padding-block: var(--s2);
  padding-inline: 0 var(--s3); border-block-end: 1px solid var(--line); overflow-wrap: break-word; min-inline-size: 4em; }
.prose .note { color: var(--muted); font-style: italic; }
:is(.prose, .figures) .cite { display: inline-block; min-inline-size: 24px; padding-inline: var(--s1); margin-inline: 2px 1px;
  border-radius: 12px; background: var(--bubble); color: var(--accent); font-size: var(--tiny);
  line-height: 24px; font-weight: 650; text-align: center; text-decoration: none; vertical-align: .12em;
  unicode-bidi: isolate; }
.prose .joined { white-space: nowrap; }
:is(.prose, .figures) .cite:hover { background: var(--accent); color: var(--on-accent); }

.passages > .prose:first-child { color: var(--muted); margin-block-end: var(--s4); }
.passages h3 { margin-block: 0 var(--s2); font-size: 1em; }
.passages .note { color: var(--problem); font-size: var(--small); }
.passages mark { background: light-dark(#fdeeb0, #5c4a10); color: inherit; border-radius: 3px; }
.passages summary { padding-block: var(--s2); cursor: pointer; color: var(--accent); font-weight: 600; }

.draft + .progress, .retracted + .progress { margin-block-start: var(--s3); }
.retracted { margin-block-start: var(--s3); padding: var(--s2) var(--s3); border-radius: var(--rounding); background: var(--raised);
  color: var(--muted); font-size: var(--small); }
.retracted > p { margin: 0 0 var(--s1); font-weight: 600; }
.retracted li > del > p { margin: 0; }
.retracted ul { margin: 0; padding: 0; list-style: none; }
.retracted li + li { margin-block-start: var(--s1); }

[data-outcome=failed] > .prose { border-inline-start: 3px solid var(--problem);
  margin-inline-start: calc(-1 * var(--s3)); padding-inline-start: calc(var(--s3) - 3px); }
[data-outcome=superseded] > .prose { color: var(--muted); }
.options, .sources, .figures { margin-block-start: var(--s3); }
.figures figure { margin: 0; }
.figures figure + figure { margin-block-start: var(--s3); }
.figures a { display: block; border-radius: var(--rounding); }
.figures img { display: block; max-inline-size: 100%; max-block-size: 320px; block-size: auto;
  border: 1px solid var(--line); border-radius: var(--rounding); background: #fff; }
.figures figcaption { margin-block-start: var(--s1); color: var(--muted); font-size: var(--small); }
.sources ol { list-style: none; margin: 0; padding: 0; border: 1px solid var(--line);
  border-radius: var(--rounding); overflow: hidden; }
.sources li + li { border-block-start: 1px solid var(--line); }
.place { display: flex; gap: var(--s3); align-items: flex-start; padding: var(--s2) var(--s3); color: var(--text);
  text-decoration: none; min-block-size: 44px; }
a.place:hover { background: var(--raised); }
a.place:focus-visible { outline-offset: -2px; border-radius: var(--rounding); }
li:focus-visible { outline-offset: -2px; }
.sources .page { padding: var(--s2) var(--s3) var(--s1); line-height: 1.4; }
.sources ul { list-style: none; margin: 0; padding: 0 0 var(--s2); }
.sources ul li + li { border: 0; }
.sources ul .place { padding-block: var(--s1); min-block-size: 32px; }
.sources ul .place b { font-weight: 400; }
.place .numbers { color: var(--accent); font-weight: 650; font-size: var(--small); line-height: 1.85;
  min-inline-size: 1.1em; }
.place .what { flex: 1; min-inline-size: 0; line-height: 1.4; text-align: left; }
:is(.place, .page) b { font-weight: 600; display: block; }
:is(.place, .page) small { display: block; font-size: var(--small); color: var(--muted); margin-block-start: 1px; }
.place .icon { inline-size: 16px; block-size: 16px; color: var(--muted); margin-block-start: 3px; }
:is(a.place, .out) .icon:dir(rtl) { transform: scaleX(-1); }

.tools { display: flex; gap: 2px; margin: var(--s2) 0 0; margin-inline-start: -10px; align-items: center;
  color: var(--muted); font-size: var(--small); }
.tools .tool { inline-size: 36px; block-size: 36px; }
.tools .icon { inline-size: 18px; block-size: 18px; }
.reason { margin-block-start: var(--s2); padding: var(--s3); border-radius: var(--rounding); background: var(--raised); }
.reason label { display: block; margin-block: var(--s3) var(--s2); font-size: var(--small); }
.reason p { margin: 0; font-size: var(--small); color: var(--muted); }
.reason > label:first-child { margin-block-start: 0; }
.reason input { font: inherit; color: inherit; margin-block-end: var(--s2); }
.row { display: flex; gap: var(--s2); margin-block-start: var(--s2); flex-wrap: wrap; }
.button { min-block-size: 40px; padding: var(--s2) var(--s4); border-radius: 20px; font-weight: 600;
  border: 1px solid var(--line); background: var(--surface); }
.button:hover { border-color: var(--accent); }
.button.main { background: var(--accent); color: var(--on-accent); border-color: transparent; }
.problem { color: var(--problem); margin: 0 0 var(--s2); }
.composer > .problem { max-inline-size: 48em; margin-inline: auto; padding-inline: var(--s3); font-size: var(--small); }
.outer:focus { outline: none; }

.notice { display: flex; align-items: center; gap: var(--s2) var(--s4); flex-wrap: wrap; padding: var(--s2) max(var(--s4), 50% - 25em);
  font-size: var(--normal); line-height: 1.4; background: var(--raised); border-block-start: 1px solid var(--line); }
.notice p { margin: 0; flex: 1 1 14em; }
.notice .row { margin: 0; }

form.composer { padding: var(--s3) var(--s4) var(--s4); }
.field, .disclaimer { max-inline-size: 48em; margin-inline: auto; }
.field { display: flex; align-items: flex-end; gap: var(--s2); padding: var(--s1); border: 1px solid var(--edge);
  border-radius: 26px; background: var(--surface); }
.field:focus-within { border-color: var(--ring); box-shadow: 0 0 0 1px var(--ring); }
textarea { flex: 1; min-inline-size: 0; resize: none; border: 0; background: none; outline: none;
  padding: var(--s2) var(--s1); padding-inline-start: var(--s3); line-height: 1.5; min-block-size: 40px;
  max-block-size: 9.5em; field-sizing: content; overflow-y: auto; display: block; }
.field textarea:focus-visible { outline: none; }
textarea::placeholder { color: var(--muted); opacity: 1; }
.reason :is(textarea, input) { inline-size: 100%; border: 1px solid var(--edge); border-radius: 10px;
  background: var(--surface); padding: var(--s2) var(--s3); }
.reason textarea { min-block-size: 4.5em; }
.reason :is(textarea, input):focus-visible { outline-color: transparent; border-color: var(--ring);
  box-shadow: 0 0 0 1px var(--ring); }
.send { display: grid; place-items: center; inline-size: 40px; block-size: 40px; border-radius: 50%;
  background: var(--accent); color: var(--on-accent); flex: none; }
.send:disabled { background: var(--raised); color: var(--muted); }
.disclaimer { margin-block: var(--s2) 0; padding-inline: var(--s2); font-size: var(--small); line-height: 1.4; color: var(--muted);
  text-align: center; text-wrap: balance; }

@keyframes rise { from { opacity: 0; transform: translateY(12px); } }
@keyframes breathe { 50% { opacity: .35; } }
@media (max-width: 360px) {
  header { padding-inline-end: var(--s2); }
  h2 { font-size: 1em; }
  .progress { gap: var(--s2); }
  .steps { gap: 3px; }
  .steps i { inline-size: 13px; }
  form.composer { padding: var(--s2); }
}
@media (max-width: 600px) {
  :host(:not([mode="inline"])) { inset-inline-end: 16px; inset-block-end: 16px; }
  .launcher { inline-size: 56px; padding: 0; justify-content: center; }
  .launcher span { position: absolute; clip-path: inset(50%); inline-size: 1px; overflow: hidden; white-space: nowrap; }
}
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { animation: none !important; transition: none !important; }
}
@media (forced-colors: active) {
  .question, .launcher, .send, .choice, .cite { border: 1px solid; }
  .steps i { background: GrayText; }
  .steps i:is(.past, .now) { background: Highlight; }
  .tool[aria-pressed="true"] { outline: 2px solid Highlight; outline-offset: -4px; }
}
@media print { :host(:not([mode="inline"])) { display: none; } }
`;
