import { OpenFeature } from "@openfeature/server-sdk";
import { OFREPProvider } from "@openfeature/ofrep-provider";

const EDGE = process.env.OUTVOTE_EDGE ?? "http://127.0.0.1:8700";

await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: EDGE }));
const flags = OpenFeature.getClient();

/** The variant to show, and the ticket of this decision: keep it until you know what came of it. */
export async function button() {
  const { value, flagMetadata } = await flags.getStringDetails("shop", "green");
  return { variant: value, ticket: flagMetadata.ticket ?? "uncounted" }; // none, if no edge answered
}

/** What it earned, from 0 to 1; it may be sent again. */
export async function earned(ticket, reward) {
  if (ticket === "uncounted") return;
  const answer = await fetch(`${EDGE}/v1/tasks/shop/reward`, {
    method: "POST",
    body: JSON.stringify({ ticket, reward }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}
