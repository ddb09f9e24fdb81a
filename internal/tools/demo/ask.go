package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// question is one JSON-RPC call and what to show of its answer.
type question struct {
	what   string
	method string
	params string
	show   func(result json.RawMessage) (string, error)
	// origin shows the header that says where the answer is from.
	origin bool
}

// originHeader is the header of a response that says what the answer was made of.
const originHeader = "leani-answer"

// transferTopic is the hash of Transfer(address,address,uint256), the event of ERC-20 tokens.
const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

// usdc is the contract of USD Coin.
const usdc = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"

// stored are questions about what the store and the era files hold.
var stored = []question{
	{what: "Which chain is this?", method: "eth_chainId", params: `[]`, show: whole},
	{what: "How far does the node know it?", method: "eth_blockNumber", params: `[]`, show: whole},
	{what: "The last block before blobs", method: "eth_getBlockByNumber", params: `["0x1286d1a",false]`,
		show: fields("number", "hash", "timestamp", "gasUsed", "baseFeePerGas")},
	{what: "All USDC transfers of two blocks", method: "eth_getLogs",
		params: `[{"fromBlock":"0x1286d1a","toBlock":"0x1286d1b","address":"` + usdc + `","topics":["` + transferTopic + `"]}]`, show: list},
	{what: "The same of two blocks, the second of which is not stored: it is fetched from the era file, proved, and not kept", method: "eth_getLogs",
		params: `[{"fromBlock":"0x103ee75","toBlock":"0x103ee76","address":"` + usdc + `","topics":["` + transferTopic + `"]}]`, show: list, origin: true},
}

// arrived are questions about the block that came live.
var arrived = []question{
	{what: "Every log of the block that came", method: "eth_getLogs", params: `[{"fromBlock":"0x156456c","toBlock":"0x156456c"}]`, show: list},
	{what: "Its receipts", method: "eth_getBlockReceipts", params: `["0x156456c"]`, show: list},
}

// ask puts questions to a node and prints them with their answers.
func ask(ctx context.Context, url string, questions []question) error {
	client := &http.Client{Timeout: 10 * time.Second}
	for _, q := range questions {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, q.method, q.params)
		fmt.Printf("\n# %s\n$ curl -s %s -H 'content-type: application/json' -d '%s'\n", q.what, url, body)
		start := time.Now()
		result, origin, size, err := call(ctx, client, url, body)
		if err != nil {
			return fmt.Errorf("%s: %w", q.method, err)
		}
		text, err := q.show(result)
		if err != nil {
			return fmt.Errorf("%s: %w", q.method, err)
		}
		if q.origin {
			text += "\n  " + originHeader + ": " + origin
		}
		fmt.Printf("%s\n(%d bytes in %.1f ms)\n", text, size, float64(time.Since(start).Microseconds())/1000)
	}
	return nil
}

// call posts a request and gives its result, what that was made of, and the size of the response.
func call(ctx context.Context, client *http.Client, url, body string) (result json.RawMessage, origin string, size int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		return nil, "", 0, err
	}
	request.Header.Set("content-type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, "", 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, "", 0, err
	}
	var answer struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, "", 0, fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if answer.Error != nil {
		return nil, "", 0, fmt.Errorf("got the error %s", answer.Error)
	}
	return answer.Result, response.Header.Get(originHeader), len(text), nil
}

// whole shows the answer as it is.
func whole(result json.RawMessage) (string, error) { return string(result), nil }

// fields shows some members of an object.
func fields(names ...string) func(json.RawMessage) (string, error) {
	return func(result json.RawMessage) (string, error) {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(result, &object); err != nil {
			return "", err
		}
		var b bytes.Buffer
		for i, name := range names {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "  %-14s %s", name, object[name])
		}
		return b.String(), nil
	}
}

// list shows how long an array is, and its first element.
func list(result json.RawMessage) (string, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(result, &elements); err != nil {
		return "", err
	}
	if len(elements) == 0 {
		return "", fmt.Errorf("got an empty list; the blocks of the demo have entries")
	}
	const limit = 300
	first := string(elements[0])
	if len(first) > limit {
		first = first[:limit] + " …"
	}
	return fmt.Sprintf("  %d entries; the first:\n  %s", len(elements), first), nil
}
