import { OpenFeature } from "@openfeature/server-sdk";
import { OFREPProvider } from "@openfeature/ofrep-provider";

const EDGE = process.env.OUTVOTE_EDGE ?? "http://127.0.0.1:8700";

await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: EDGE }));
const flags = OpenFeature.getClient();

/** The variant to show, and the ticket of this decision: keep both until you know what came of it. */
export async function button() {
  const shown = await flags.getStringDetails("shop", "green");
  return { variant: shown.value, ticket: shown.flagMetadata.ticket }; // no ticket, if no edge answered
}

/** What it earned, from 0 to 1; once for each decision. */
export async function earned({ variant, ticket }, reward) {
  if (ticket === undefined) return;
  const answer = await fetch(`${EDGE}/v1/tasks/shop/reward`, {
    method: "POST",
    body: JSON.stringify({ variant, ticket, reward }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}
