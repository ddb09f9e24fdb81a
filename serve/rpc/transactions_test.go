package rpc

import (
	"fmt"
	"strings"
	"testing"
)

// TestIndexBehindTheLast: whatever names the block, an index behind its last transaction gives null.
//
// RPC-098
func TestIndexBehindTheLast(t *testing.T) {
	s := startServer(t, newFakeStore(t, 4), nil)
	b := s.store.blocks[3]
	for _, by := range []string{`eth_getTransactionByBlockNumberAndIndex","params":["0x3"`, `eth_getTransactionByBlockHashAndIndex","params":["` + b.Hash.Hex() + `"`} {
		for index, null := range map[int]bool{0: false, len(b.Transactions) - 1: false, len(b.Transactions): true, len(b.Transactions) + 1: true} {
			got := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s,"%#x"]}`, by, index))
			if strings.HasSuffix(got, `"result":null}`) != null || strings.Contains(got, "error") {
				t.Errorf("%s, index %d: got %s", by, index, got)
			}
		}
	}
}
