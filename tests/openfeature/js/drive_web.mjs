// What the page of web.mjs offers to a test, and the stock web SDK beside it.
import { OpenFeature } from "@openfeature/web-sdk";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { button, earned } from "./web.mjs";

const provider = new OFREPWebProvider({ baseUrl: window.outvoteEdge, pollInterval: 300 });
await OpenFeature.setProviderAndWait(provider).catch(() => {}); // without an edge the defaults are shown

window.shop = { button, earned, details: () => OpenFeature.getClient().getStringDetails("shop", "none") };
