package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/archive"
)

// TestFillKeepsPartial: where no source has blocks whole, a fill ends with an error and stores nothing, unless the
// settings want what there is. That answers for nothing, is listed, verified and kept when the whole blocks come.
//
// INV-07 INV-10 INV-19 SRC-003
func TestFillKeepsPartial(t *testing.T) {
	t.Parallel()
	c := bundled(t)
	c.files, c.blocks = c.files[:1], bundledSpans[0]
	full := newLab(t, c)
	full.must(fillArgs(c.blocks)...)

	var frames []*chain.Frame
	missing := chain.MissingMaterial(chain.NotAvailable)
	n, err := full.tryOpen(true)
	if err != nil {
		t.Fatal(err)
	}
	v, err := n.history.View()
	if err != nil {
		t.Fatal(err)
	}
	for number := c.blocks.From; number < c.blocks.To; number++ {
		b := new(chain.Block)
		if err := v.LoadBlock(t.Context(), number, chain.PartsAll, b); err != nil {
			t.Fatal(err)
		}
		f := archive.WholeFrame(b, c.id)
		*f.Material(chain.CapabilityReceipts), *f.Material(chain.CapabilityLogs) = missing, missing
		f.HasReceipts, f.Receipts, f.Logs = false, nil, nil
		if number == c.blocks.From { // and of the first block the header alone
			*f.Material(chain.CapabilityTransactions), *f.Material(chain.CapabilityWithdrawals) = missing, missing
			f.Block = chain.Block{BlockRef: b.BlockRef, Header: b.Header}
		}
		frames = append(frames, f)
	}
	manifest := writeReal(t, archive.WriterOptions{
		ChainID: c.id, Capabilities: archive.WholeKinds, Complete: chain.NewCapabilities(chain.CapabilityHeader),
	}, frames)
	v.Close()
	if err := n.close(); err != nil {
		t.Fatal(err)
	}

	bare := c
	bare.files = nil
	l := newLab(t, bare)
	settings := readFile(t, l.config)
	l.useArchives(manifest)
	if message := l.fails(fillArgs(c.blocks)...); !strings.Contains(message, "complete_capabilities lack") {
		t.Errorf("error: %s", message)
	}
	if s := l.status(); len(s.Partial) != 0 || s.Blocks != 0 {
		t.Errorf("%+v", s)
	}
	l.set("raw_history", "partial", `"keep"`)
	for range 2 { // the second run finds everything there
		l.must(fillArgs(c.blocks)...)
		s := l.status()
		if s.Head != nil || s.Blocks != 0 || len(s.Coverage) != 0 || s.Logs != 0 || s.Transactions != 0 || s.Space.Frames == 0 {
			t.Errorf("partial material counts: %+v", s)
		}
		if len(s.Partial) != 2 || s.Partial[0].Blocks != 1 || s.Partial[1].Blocks != c.blocks.Len()-1 ||
			s.Partial[0].Material["Transactions"] != "missing: NotAvailable" || s.Partial[1].Material["Transactions"] != "complete" {
			t.Fatalf("%+v", s.Partial)
		}
	}
	if text := l.must("history", "status"); !strings.Contains(text, "partial ") || !strings.Contains(text, "no blocks yet") {
		t.Error(text)
	}
	if text := l.must("db", "inspect"); !strings.Contains(text, "partial material") || !strings.Contains(text, "profile 2") {
		t.Error(text)
	}
	l.clean()
	if r := l.verify(); r.Frames != c.blocks.Len() || r.Blocks != 0 {
		t.Errorf("%+v", r)
	}
	segment, err := filepath.Glob(filepath.Join(l.data(), "segments", "frames", "*.seg"))
	if err != nil || len(segment) != 2 {
		t.Fatal(segment, err)
	}
	l.must("segment", "check", segment[0])
	if text := l.must("segment", "dump", segment[0]); !strings.Contains(text, "frame rows") || !strings.Contains(text, "missing: NotAvailable") {
		t.Error(text)
	}
	// Blocks that nobody has are an error all the same.
	beyond := c.blocks
	beyond.To++
	l.fails(fillArgs(beyond)...)

	// A node that has nothing else answers nothing out of it.
	s := l.serve()
	client := newClient(s.url)
	for _, f := range frames {
		for _, call := range []string{
			fmt.Sprintf(`"eth_getBlockByNumber","params":["0x%x",true]`, f.Number),
			fmt.Sprintf(`"eth_getBlockReceipts","params":["0x%x"]`, f.Number),
			fmt.Sprintf(`"eth_getBlockByHash","params":["%s",false]`, f.Hash.Hex()),
			fmt.Sprintf(`"eth_getLogs","params":[{"fromBlock":"0x%x","toBlock":"0x%x"}]`, f.Number, f.Number),
		} {
			answer, err := client.post(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`)
			if err != nil || !bytes.Contains(answer, []byte(`"error"`)) && !bytes.Contains(answer, []byte(`"result":null`)) {
				t.Errorf("%s: %s, %v", call, answer, err)
			}
		}
	}
	if code, err := s.stop(); err != nil || code != exitOK {
		t.Error(code, err)
	}

	// Of two blocks that different archives have, one is whole. RPC-133: logs of both are refused, also
	// those of the address that the material of the other is said to be complete for.
	half := filepath.Join(t.TempDir(), "half")
	full.must(createArgs(chain.Range{From: c.blocks.To - 1, To: c.blocks.To}, half)...)
	narrow := *frames[0] // of an address that its logs are said to be there of, and there are none
	scope := &chain.FilterScope{Addresses: []common.Address{{0xaa}}}
	*narrow.Material(chain.CapabilityLogs) = chain.FilteredMaterial(scope, chain.DatasetDeclared)
	first := writeReal(t, archive.WriterOptions{
		ChainID: c.id, Capabilities: archive.WholeKinds, Complete: chain.NewCapabilities(chain.CapabilityHeader),
	}, []*chain.Frame{&narrow})
	mixed := newLab(t, bare)
	mixed.useArchives(first, filepath.Join(half, archive.ManifestName))
	mixed.fails(fillArgs(c.blocks)...)
	mixed.set("raw_history", "partial", `"keep"`)
	mixed.must(fillArgs(c.blocks)...)
	if s := mixed.status(); s.Blocks != 1 || len(s.Partial) != 1 || s.Partial[0].Blocks != 1 || s.Head == nil || s.Head.Number != c.blocks.To-1 {
		t.Errorf("%+v", s)
	}
	mixed.clean()
	s = mixed.serve()
	hole := fmt.Sprintf(`"missing":{"fromBlock":"0x%x","toBlock":"0x%x"}`, c.blocks.From, c.blocks.From)
	for _, more := range []string{"", fmt.Sprintf(`,"address":%q`, scope.Addresses[0]), fmt.Sprintf(`,"toBlock":"0x%x","address":%q`, c.blocks.From, scope.Addresses[0])} {
		answer, err := newClient(s.url).post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x%x"%s}]}`, c.blocks.From, more))
		if err != nil || !bytes.Contains(answer, []byte(`"code":-32004`)) || !bytes.Contains(answer, []byte(hole)) {
			t.Errorf("%s: got %s, %v", more, answer, err)
		}
	}
	mixed.stopped(s)

	// The whole blocks arrive.
	writeFile(t, l.config, settings)
	out := filepath.Join(t.TempDir(), "archive")
	full.must(createArgs(c.blocks, out)...)
	l.useArchives(filepath.Join(out, archive.ManifestName))
	l.must(fillArgs(c.blocks)...)
	if got, want := l.verify(), full.verify(); got.Digest != want.Digest || got.Blocks != want.Blocks {
		t.Errorf("%+v, want %+v", got, want)
	}
	if s := l.status(); len(s.Partial) != 2 || s.Blocks != c.blocks.Len() {
		t.Errorf("%+v", s)
	}
	l.must("history", "prune", "--partial", "--from-block", "0", "--to-block", fmt.Sprint(c.blocks.From))
	if s := l.status(); len(s.Partial) != 1 || s.Partial[0].Profile != 2 || s.Blocks != c.blocks.Len() {
		t.Errorf("%+v", s)
	}
}
