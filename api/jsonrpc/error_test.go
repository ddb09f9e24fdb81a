package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Every error object is valid JSON with the members that docs/rpc.md gives it. RPC-051,
// RPC-126, RPC-128, RPC-129: the limit errors of log queries, word for word.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err  *Error
		want string
	}{
		{ParseError("x"), `{"code":-32700,"message":"Parse error","data":{"detail":"x"}}`},
		{InvalidRequest(""), `{"code":-32600,"message":"Invalid Request"}`},
		{InvalidRequest("x"), `{"code":-32600,"message":"Invalid Request: x"}`},
		{MethodNotFound(), `{"code":-32601,"message":"Method not found"}`},
		{InvalidParams(`a "b"`), `{"code":-32602,"message":"Invalid params","data":{"detail":"a \"b\""}}`},
		{BeyondHead("toBlock", 56, 54), `{"code":-32602,"message":"block range extends beyond current head block","data":{"detail":"toBlock 0x38 is above the head 0x36"}}`},
		{Internal("x", true), `{"code":-32603,"message":"Internal error","data":{"retryable":true,"detail":"x"}}`},
		{Internal("x", false), `{"code":-32603,"message":"Internal error","data":{"retryable":false,"detail":"x"}}`},
		{Unavailable(ReasonPendingBlock), `{"code":-32004,"message":"Data unavailable","data":{"reason":"pending_block_unavailable","retryable":false}}`},
		{UnavailableMethod(ReasonFeeHistory, FeeHistory), `{"code":-32004,"message":"Data unavailable","data":{"reason":"raw_execution_material_not_retained","retryable":false,"method":"eth_feeHistory"}}`},
		{UnavailableLogs(0, 255), `{"code":-32004,"message":"Data unavailable","data":{"reason":"requested_range_outside_recent_window","retryable":false,"missing":{"fromBlock":"0x0","toBlock":"0xff"}}}`},
		{UnavailableHistoryRange(1024, 16, 1039), `{"code":-32004,"message":"Data unavailable","data":{"reason":"historical_request_range_exceeded","retryable":false,"from":"0x10","to":"0x40f","limit":1024}}`},
		{NoHistorySourceForLogs(1, 2), `{"code":-32004,"message":"Data unavailable","data":{"reason":"no_viable_historical_source","retryable":false,"missing":{"fromBlock":"0x1","toBlock":"0x2"}}}`},
		{Busy("too many calls at once", 2), `{"code":-32005,"message":"rate limited: too many calls at once","data":{"reason":"concurrency_limit_exceeded","limit":2}}`},
		{LimitExceeded("x.", ReasonRequestSize, 1048576), `{"code":-32005,"message":"x.","data":{"reason":"request_size_limit_exceeded","limit":1048576}}`},
		{TooManyLogs(10000, 0, 4095), `{"code":-32005,"message":"query returned more than 10000 results. Try with this block range [0x0, 0xfff].","data":{"from":"0x0","to":"0xfff","limit":10000}}`},
		{TooManyLogsInBlock(10000), `{"code":-32005,"message":"query returned more than 10000 results.","data":{"reason":"log_result_limit_exceeded","limit":10000}}`},
		{ResponseTooLarge(9), `{"code":-32005,"message":"response is larger than 9 bytes.","data":{"reason":"response_size_limit_exceeded","limit":9}}`},
		{LogsTooLarge(9, 1, 2), `{"code":-32005,"message":"response is larger than 9 bytes. Try with this block range [0x1, 0x2].","data":{"reason":"response_size_limit_exceeded","from":"0x1","to":"0x2","limit":9}}`},
	} {
		got := string(test.err.AppendJSON([]byte("-")))
		if got != "-"+test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		if !json.Valid([]byte(test.want)) {
			t.Errorf("invalid: %s", test.want)
		}
		if text := test.err.Error(); !strings.Contains(text, test.err.Message) {
			t.Errorf("text %q lacks the message", text)
		}
	}
}

// Whatever a string holds, what is appended is one JSON string that reads back as it,
// invalid UTF-8 replaced.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é😀\u2028", "\xff\xc3", "\xed\xa0\x80", "</script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := AppendString([]byte{'['}, s)
		var got []string
		if err := json.Unmarshal(append(encoded, ']'), &got); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		want := s
		if !utf8.ValidString(s) {
			want = string([]rune(s))
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
