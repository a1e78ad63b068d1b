// Shows in the console why a page cannot use its desk, and the command that fixes it.

/** Return the message for the operator of the desk, or undefined if the cause is another one. */
export function recoveryHint(code, { key, url, assistant }) {
  const { origin } = location;
  const id = key.split("_").slice(0, 3).join("_");
  const make = `refdesk keys create --public --origin ${origin}`;
  const anew = `Fix: ${make} and use the new key in the widget`;
  return {
    origin_not_allowed: `this page's origin ${origin} is not allowed for the key ${id}. ${anew}; see refdesk keys list`,
    invalid_api_key: key
      ? `the key ${id} is unknown, was revoked, or has expired; see refdesk keys list. ${anew}`
      : `the desk needs a key. ${anew}`,
    not_local: `without keys, only requests from the server's own machine are answered. ${anew}`,
    missing_scope: `the key ${id} lacks a scope. ${anew}`,
    unknown_assistant: `the key ${id} has no assistant ${assistant}. Fix: ${make} --assistant ${assistant}`,
    invalid_person_token: `the person's token is not valid for the key ${id}, or has expired. Fix: set personToken to a function that returns a new one`,
    person_token: "the page's function personToken failed; it is called again",
    policy: `the page's Content-Security-Policy blocks requests to the server. Fix: add ${url} to connect-src`,
    unreadable: `${url} responds, but the browser does not let the page read the response (CORS). Fix: configure the proxy in front of it to forward OPTIONS and Access-Control-*`,
    unreachable: `${url} cannot be reached from this page. Does refdesk serve run there?`,
  }[code];
}
