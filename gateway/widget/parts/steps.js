// What people see at each stage of a question.
// Written by `python -m deploy.generate.pages`; change agents/roster.py instead.

export const STEPS = ["understand", "search", "write", "check"];
export const STEP_OF = {
  lang: 0,
  command: 0,
  translation: 0,
  essence: 0,
  guardrails: 0,
  triage: 0,
  reason: 1,
  tool: 1,
  reflect: 1,
  search: 1,
  clarification: 2,
  augmentation: 1,
  response: 2,
  assess: 3,
  quality: 3,
  results: 1,
  act: 1,
  interim_results: 1,
  approved_calls: 1,
  write: 2,
};
