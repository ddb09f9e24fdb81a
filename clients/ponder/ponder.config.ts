import { createConfig } from "ponder";
import { erc20 } from "./abis/erc20";

// The test says where the node is, and which token to index.
const { LEANI_HTTP, LEANI_WS, LEANI_TOKEN, LEANI_DATABASE } = process.env;

export default createConfig({
  database: { kind: "pglite", directory: LEANI_DATABASE },
  chains: {
    chainlab: {
      id: 424242,
      // Ponder allows itself 20 requests a second for each URL in the beginning; a node of one's own stands more.
      rpc: Array.from({ length: 10 }, () => LEANI_HTTP!),
      ws: LEANI_WS,
    },
  },
  contracts: {
    Token: { chain: "chainlab", abi: erc20, address: LEANI_TOKEN as `0x${string}`, startBlock: 0 },
  },
  blocks: {
    Head: { chain: "chainlab", interval: 1, startBlock: 0 },
  },
});
