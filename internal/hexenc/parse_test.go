package hexenc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// RPC-040, RPC-041: the accepted and the refused forms of a quantity.
func TestParseQuantity(t *testing.T) {
	for _, c := range []struct {
		text string
		want uint64
		err  error
	}{
		{"0x0", 0, nil},
		{"0x1", 1, nil},
		{"0xff", 255, nil},
		{"0xFf", 255, nil},
		{"0xffffffffffffffff", 1<<64 - 1, nil},
		{"0x8000000000000000", 1 << 63, nil},
		{"0x", 0, ErrEmpty},
		{"0x01", 0, ErrLeadingZero},
		{"0x00", 0, ErrLeadingZero},
		{"0x+1", 0, ErrSyntax},
		{"0x-1", 0, ErrSyntax},
		{"0x1 ", 0, ErrSyntax},
		{"0xg", 0, ErrSyntax},
		{"0x1_0", 0, ErrSyntax},
		{"0x10000000000000000", 0, ErrRange},
		{"0xfffffffffffffffff", 0, ErrRange},
		{"16", 0, ErrPrefix},
		{"0X1", 0, ErrPrefix},
		{" 0x1", 0, ErrPrefix},
		{"0", 0, ErrPrefix},
		{"", 0, ErrPrefix},
		{"latest", 0, ErrPrefix},
	} {
		got, err := ParseQuantity(c.text)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: got %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
		inBytes, err := ParseQuantity([]byte(c.text))
		if inBytes != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q as bytes: got %d, %v; want %d, %v", c.text, inBytes, err, c.want, c.err)
		}
	}
}

func TestParseFixed(t *testing.T) {
	const hash = "0x00000000000000000000000000000000000000000000000000000000DeadBeef"
	for _, c := range []struct {
		text string
		err  error
	}{
		{hash, nil},
		{hash[:len(hash)-1], ErrLength},
		{hash + "0", ErrLength},
		{hash[:len(hash)-1] + "g", ErrSyntax},
		{hash[:len(hash)-2] + "gf", ErrSyntax},
		{hash[2:], ErrPrefix},
		{"0X" + hash[2:], ErrPrefix},
		{"", ErrPrefix},
	} {
		got, err := ParseHash(c.text)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: got error %v, want %v", c.text, err, c.err)
		}
		if want := common.HexToHash(hash); err == nil && got != want || err != nil && got != (common.Hash{}) {
			t.Errorf("%q: got %s", c.text, got)
		}
	}
	const address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	if got, err := ParseAddress(address); err != nil || got != common.HexToAddress(address) {
		t.Errorf("%q: got %s, %v", address, got, err)
	}
	if _, err := ParseAddress(hash); !errors.Is(err, ErrLength) {
		t.Errorf("hash as address: got error %v, want %v", err, ErrLength)
	}
}

// FuzzParse compares with hexutil, which differs only in accepting "0X".
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0x", "0x0", "0x00", "0x1", "0xfFfF", "0x+1", "1", "0X1", "0xffffffffffffffff", "0x10000000000000000",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1 && text[1] == 'X' {
			return
		}
		v, err := ParseQuantity(text)
		want, wantErr := hexutil.DecodeUint64(text)
		if (err == nil) != (wantErr == nil) || err == nil && v != want {
			t.Errorf("quantity %q: got %d, %v; want %d, %v", text, v, err, want, wantErr)
		}
		if err == nil && !strings.EqualFold(string(AppendQuantity(nil, v)), text) {
			t.Errorf("quantity %q does not survive a round trip", text)
		}
		quoted, jsonErr := json.Marshal(text)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		hash, err := ParseHash(text)
		var wantHash common.Hash
		wantErr = json.Unmarshal(quoted, &wantHash)
		if (err == nil) != (wantErr == nil) || err == nil && hash != wantHash {
			t.Errorf("hash %q: got %s, %v; want %s, %v", text, hash, err, wantHash, wantErr)
		}
		address, err := ParseAddress([]byte(text))
		var wantAddress common.Address
		wantErr = json.Unmarshal(quoted, &wantAddress)
		if (err == nil) != (wantErr == nil) || err == nil && address != wantAddress {
			t.Errorf("address %q: got %s, %v; want %s, %v", text, address, err, wantAddress, wantErr)
		}
	})
}
