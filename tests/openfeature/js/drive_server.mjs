// Visitors of server.mjs, until the task has ended: prints what was seen, as JSON.
import { OpenFeature } from "@openfeature/server-sdk";
import { button, earned } from "./server.mjs";

const flags = OpenFeature.getClient();
const seen = { first: await flags.getStringDetails("shop", "none"), events: 0, tickets: 0 };
seen.unknown = await flags.getStringDetails("nobody", "mine");
seen.mismatch = await flags.getBooleanDetails("shop", true);
seen.on = await flags.getBooleanDetails("switch", false);
let luck = 17;
const random = () => (luck = (luck * 48271) % 2147483647) / 2147483647;
const deadline = Date.now() + 25_000;
for (;;) {
  seen.last = await flags.getStringDetails("shop", "none");
  if (seen.last.reason !== "SPLIT" || Date.now() > deadline) break;
  for (let n = 0; n < 10; n++) {
    const shown = await button();
    seen.tickets += shown.ticket !== "uncounted";
    await earned(shown.ticket, Number(random() < (shown.variant === "green" ? 0.9 : 0.1)));
    seen.events += 1;
  }
}
console.log(JSON.stringify(seen));
