package rpc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// textSeeds are JSON texts and near misses.
var textSeeds = []string{
	`null`, `true`, `false`, `0`, `-0`, `-1.5e+10`, `1E5`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `""`, `"\u00e9\ud83d\ude00"`,
	`"\ud800"`, `"\ud800\u0041"`, `"\x"`, `"\u12g4"`, "\"\x1f\"", "\"\x7f\"", `"unclosed`, `"\`, `[]`, `[1]`, `[1,]`, `[,1]`,
	`[1 2]`, `[[[]]]`, `[[]`, `]`, `{}`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{1:2}`, `{"a":1 "b":2}`, `{"a":{"b":[{"c":null}]}}`,
	`{"a":1]`, `[1}`, " \t\r\n[ 1 , { \"a\" : [ ] } ] ", `truE`, `nul`, `"a" "b"`, ``, ` `, "\xff", "\"\xff\"", "\ufeff1", "[\u00a01]",
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65),
	`{"a":1,"a":2}`, `[{"x":"}"},"]"]`,
}

// checkAgainst compares what scan.go makes of a text with encoding/json: the same texts are
// valid, but for the limit on nesting and for invalid UTF-8, which encoding/json repairs; and
// the values read through cursors are the same.
func checkAgainst(t *testing.T, data []byte) {
	v, err := checkJSON(data)
	want := json.Valid(data) && utf8.Valid(data)
	if want && nesting(data) > maxNesting {
		want = false
	}
	if (err == nil) != want {
		t.Fatalf("%q: got %v, want valid %t", data, err, want)
	}
	if err != nil {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var reference any
	if err := decoder.Decode(&reference); err != nil {
		t.Fatal(err)
	}
	if got := build(v); !reflect.DeepEqual(got, reference) {
		t.Fatalf("%q: got %#v, want %#v", data, got, reference)
	}
}

// build makes of a value what encoding/json makes of it; of repeated members the last counts.
func build(v value) any {
	switch v.kind() {
	case '{':
		object := make(map[string]any)
		for m := v.members(); ; {
			name, member, ok := m.next()
			if !ok {
				return object
			}
			text, _ := name.text()
			object[string(text)] = build(member)
		}
	case '[':
		array := []any{}
		for e := v.elements(); ; {
			element, ok := e.next()
			if !ok {
				return array
			}
			array = append(array, build(element))
		}
	case '"':
		text, _ := v.text()
		return string(text)
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	}
	return json.Number(v)
}

// nesting is how deep the containers of a valid text nest.
func nesting(data []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			if c == '\\' {
				i++
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

func TestCheckJSON(t *testing.T) {
	for _, text := range textSeeds {
		checkAgainst(t, []byte(text))
	}
}

// Every text that is cut short or has a byte changed is judged as encoding/json judges it.
func TestCheckJSONMutations(t *testing.T) {
	text := []byte(` {"jsonrpc":"2.0","id":[-12.5e-3,"\u00e9",null,true],"params":[{},[],{"a":[false]}]} `)
	for i := range text {
		checkAgainst(t, text[:i])
		for _, c := range []byte("{}[]\",:\\ 0-.e\x00\xc3tn") {
			changed := bytes.Clone(text)
			changed[i] = c
			checkAgainst(t, changed)
		}
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, text := range textSeeds {
		f.Add([]byte(text))
	}
	f.Fuzz(checkAgainst)
}

// Reading a request allocates nothing.
func TestScanAllocatesNothing(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":"abc","method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x2"}]}`)
	if n := testing.AllocsPerRun(100, func() {
		v, err := checkJSON(body)
		if err != nil {
			t.Fatal(err)
		}
		r := decodeRequest(v)
		if r.fault != nil || string(r.method) != "eth_getLogs" {
			t.Fatal("wrong request")
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
