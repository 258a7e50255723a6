// What the page of web.mjs offers to a test.
import { OpenFeature } from "@openfeature/web-sdk";
import { earned, show } from "./web.mjs";

window.shop = { show, earned, details: () => OpenFeature.getClient().getStringDetails("shop", "none") };
