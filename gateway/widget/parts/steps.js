// What people see at each stage of a question.
// Written by `python -m deploy.generate.pages`; change the step of the agent instead.

export const STEPS = ["understand", "search", "write", "check"];
export const STEP_OF = {
  approved_calls: 1,
  approved_plan: 1,
  augmentation: 1,
  clarification: 2,
  findings: 1,
  given_facts: 1,
  interim_results: 1,
  judge: 3,
  ledger: 1,
  loop_judge: 3,
  quality: 3,
  reason: 1,
  reflect: 1,
  response: 2,
  results: 1,
  resumed_work: 1,
  search: 1,
  synthesis: 2,
  synthesize: 2,
  worked: 1,
  write: 2,
};
