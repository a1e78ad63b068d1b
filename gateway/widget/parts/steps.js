// What people see at each stage of a question.
// Written by `python -m deploy.generate.pages`; change agents/roster.py instead.

export const STEPS = ["understand", "search", "write", "check"];
export const STEP_OF = {
  lang: 0,
  command: 0,
  translation: 0,
  essence: 0,
  guardrails: 0,
  search: 1,
  clarification: 2,
  augmentation: 1,
  response: 2,
  quality: 3,
};
