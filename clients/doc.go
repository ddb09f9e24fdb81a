// Package clients has no code of its own: its tests point JavaScript clients as people use them, viem, ethers and web3, at a
// running node, and compare what these say with the chain as go-ethereum's types hold it. Each script beside this file
// is one client; package harness runs them.
package clients
