const EDGE = window.outvoteEdge ?? "http://127.0.0.1:8700";

const tell = (what, body) =>
  fetch(`${EDGE}/v1/tasks/shop/${what}`, { method: "POST", body: JSON.stringify(body), keepalive: true });

/** The variant to show, and the ticket of this decision: call it where the button is shown, once for each visitor. */
export async function button() {
  const answer = await tell("decide").catch(() => undefined);
  return answer?.ok ? answer.json() : { variant: "green", ticket: "uncounted" }; // no edge answered
}

/** What it earned, from 0 to 1; it may be sent again. */
export async function earned(ticket, reward) {
  if (ticket !== "uncounted") await tell("reward", { ticket, reward });
}
