import { OpenFeature } from "@openfeature/web-sdk";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";

const EDGE = window.outvoteEdge ?? "http://127.0.0.1:8700";
const provider = new OFREPWebProvider({ baseUrl: EDGE, pollInterval: 30_000 });

await OpenFeature.setProviderAndWait(provider).catch(() => {}); // without an edge the defaults are shown
const flags = OpenFeature.getClient();

const tell = (what, body) =>
  fetch(`${EDGE}/v1/tasks/shop/${what}`, { method: "POST", body: JSON.stringify(body), keepalive: true });

/** Call it when the button is seen: now it is a decision, and gets its ticket. */
export async function show() {
  const { value: variant, flagMetadata } = flags.getStringDetails("shop", "green");
  if (!flagMetadata.exposure) return { variant }; // the task has ended, or no edge answered
  const answer = await tell("exposed", { variant });
  return { variant, ticket: (await answer.json()).ticket };
}

/** What it earned, from 0 to 1; once for each time that it was shown. */
export async function earned({ variant, ticket }, reward) {
  if (ticket !== undefined) await tell("reward", { variant, ticket, reward });
}
