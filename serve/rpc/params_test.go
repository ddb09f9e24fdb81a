package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// Repeated addresses and topics are asked for once. The limits count what the client sent, and an
// empty list still means anything.
func TestRepeatedAlternatives(t *testing.T) {
	list := func(digits int, values ...int) string {
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprintf(`"0x%0*x"`, digits, v)
		}
		return "[" + strings.Join(texts, ",") + "]"
	}
	limits := Limits{MaxLogAddresses: 5, MaxLogTopicAlternatives: 4}
	var filter chain.LogFilter
	read := func(address, topics string) error {
		t.Helper()
		v, err := checkJSON(fmt.Appendf(nil, `{"address":%s,"topics":%s}`, address, topics))
		if err != nil {
			t.Fatal(err)
		}
		_, err = readLogQuery(v, &limits, &filter)
		return err
	}
	for range 2 { // the memory of the filter is used again
		if err := read(list(40, 7, 3, 7, 7, 3), "["+list(64, 2, 1, 2)+",null,[],"+list(64, 9)+"]"); err != nil {
			t.Fatal(err)
		}
		address := func(v byte) common.Address { return common.BytesToAddress([]byte{v}) }
		if want := []common.Address{address(3), address(7)}; !slices.Equal(filter.Addresses, want) {
			t.Errorf("addresses: got %v, want %v", filter.Addresses, want)
		}
		var lengths []int
		for _, position := range filter.Topics {
			lengths = append(lengths, len(position))
		}
		if want := []int{2, 0, 0, 1}; !slices.Equal(lengths, want) {
			t.Errorf("topics: got %v", filter.Topics)
		}
	}
	if err := read(list(40, 1, 1, 1, 1, 1, 1), "[]"); err == nil {
		t.Error("six addresses are taken, the limit is five")
	}
	if err := read("[]", "["+list(64, 1, 1, 1, 1, 1)+"]"); err == nil {
		t.Error("five alternatives are taken, the limit is four")
	}
	if err := read("[]", "[]"); err != nil || len(filter.Addresses) != 0 || len(filter.Topics) != 0 {
		t.Errorf("empty lists: got %v, %v", filter, err)
	}
}
