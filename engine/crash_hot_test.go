package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// modelHot is the hot tier as the model knows it.
type modelHot struct {
	blocks              []modelBlock
	attested, finalized chain.BlockRef
}

// modelBlock is a block and its parts, by number from 1.
type modelBlock struct {
	chain.BlockRef
	parts [3]string
}

func (h *modelHot) same(o *modelHot) bool {
	return slices.Equal(h.blocks, o.blocks) && h.attested == o.attested && h.finalized == o.finalized
}

// contradicted tells whether the blocks leave no place for the attested one.
func (h *modelHot) contradicted() bool {
	a, first := h.attested, h.blocks[0]
	if a.Hash == zeroHash || a.Number+1 < first.Number {
		return false
	}
	if a.Number+1 == first.Number {
		return first.ParentHash != a.Hash
	}
	return !slices.ContainsFunc(h.blocks, func(b modelBlock) bool { return b.BlockRef == a })
}

func (h *modelHot) String() string {
	if len(h.blocks) == 0 {
		return fmt.Sprintf("none, attested %s, finalized %s", h.attested, h.finalized)
	}
	return fmt.Sprintf("%s to %s, attested %s, finalized %s", h.blocks[0].BlockRef, h.blocks[len(h.blocks)-1].BlockRef, h.attested, h.finalized)
}

// zeroHash is the hash that no block has.
var zeroHash common.Hash

// branchHash is the hash of block n on a branch; branch 0 is the chain that files hold.
func branchHash(branch, n uint64) common.Hash {
	if branch == 0 {
		return blockHash(n)
	}
	return sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("branch"), branch), n))
}

func (b *modelBlock) onMain() bool { return b.Hash == blockHash(b.Number) }

// edit is the block as an edit takes it.
func (b *modelBlock) edit() NewBlock {
	n := NewBlock{BlockRef: b.BlockRef, Transactions: uint32(len(b.parts[0])), Logs: uint32(len(b.parts[1]))}
	for i, p := range b.parts {
		n.Parts = append(n.Parts, NewPart{Part: uint8(i + 1), Content: []byte(p)})
	}
	return n
}

func readHot(e *Engine) (modelHot, error) {
	s := e.Acquire()
	defer s.Release()
	return snapshotHot(s)
}

// snapshotHot reads every part of every hot block.
func snapshotHot(s *Snapshot) (h modelHot, err error) {
	for _, b := range s.Hot() {
		m := modelBlock{BlockRef: b.BlockRef}
		if !slices.Equal(b.Parts(), []uint8{1, 2, 3}) {
			return h, fmt.Errorf("block %s has the parts %v", b.BlockRef, b.Parts())
		}
		for i := range m.parts {
			content, err := s.HotPart(b, uint8(i+1))
			if err != nil {
				return h, err
			}
			m.parts[i] = string(content)
		}
		if int(b.Transactions) != len(m.parts[0]) || int(b.Logs) != len(m.parts[1]) {
			return h, fmt.Errorf("block %s counts %d and %d", b.BlockRef, b.Transactions, b.Logs)
		}
		h.blocks = append(h.blocks, m)
	}
	h.attested, _ = s.Mark(FinalityAttested)
	h.finalized, _ = s.Mark(FinalityFinalized)
	return h, nil
}

// live does one random thing to the hot tier.
func (w *world) live() {
	switch w.rng.IntN(12) {
	case 0, 1, 2, 3, 4:
		w.branch(0)
	case 5, 6:
		w.branch(1 + w.rng.IntN(3))
	case 7, 8:
		w.mark()
	case 9:
		w.sealHot(true)
	case 10:
		if w.rng.IntN(4) == 0 {
			w.sealHot(false)
		}
	case 11:
		w.refusedHot()
	}
}

// branch undoes some of the newest blocks and applies others, and may move a mark, in one edit.
func (w *world) branch(undo int) {
	next := w.hot
	next.blocks = slices.Clone(next.blocks)
	var edit HotEdit
	for ; undo > 0 && len(next.blocks) > 0; undo-- {
		tip := next.blocks[len(next.blocks)-1]
		if tip.Number <= next.finalized.Number && next.finalized.Hash != zeroHash {
			break
		}
		edit.Undo = append(edit.Undo, tip.BlockRef)
		next.blocks = next.blocks[:len(next.blocks)-1]
		if next.attested.Hash != zeroHash && next.attested.Number >= tip.Number {
			switch {
			case len(next.blocks) > 0:
				next.attested = next.blocks[len(next.blocks)-1].BlockRef
			default:
				next.attested = next.finalized
			}
		}
	}
	number, parent, main := w.nextHot(&next)
	begins := len(next.blocks) == 0
	for range w.rng.IntN(4) {
		fork := uint64(0)
		if !main || w.rng.IntN(6) == 0 {
			fork, main = 1+w.rng.Uint64N(1000), false
		}
		b := modelBlock{BlockRef: chain.BlockRef{Number: number, Hash: branchHash(fork, number), ParentHash: parent, Timestamp: number * 12}}
		for i := range b.parts {
			b.parts[i] = string(randomContent(w.rng))
			if w.rng.IntN(5) == 0 {
				b.parts[i] = ""
			}
		}
		edit.Apply = append(edit.Apply, b.edit())
		next.blocks = append(next.blocks, b)
		number, parent = number+1, b.Hash
	}
	if edit.empty() {
		return
	}
	if begins && len(next.blocks) > 0 && next.contradicted() {
		next.attested = next.finalized
	}
	if w.rng.IntN(3) == 0 {
		w.moveMark(&edit, &next)
	}
	w.commitWith("branch", nil, nil, edit, next)
}

// nextHot is the number and parent of the next block; main tells whether it may be on the main branch.
func (w *world) nextHot(h *modelHot) (number uint64, parent common.Hash, main bool) {
	if n := len(h.blocks); n > 0 {
		tip := h.blocks[n-1]
		return tip.Number + 1, tip.Hash, tip.onMain()
	}
	if data := w.of(KindData, 0); len(data) > 0 {
		number = data[len(data)-1].blocks.To
	}
	if h.finalized.Hash != zeroHash {
		number = max(number, h.finalized.Number+1)
	}
	if w.rng.IntN(6) == 0 {
		number += uint64(w.rng.IntN(4)) // a gap
	}
	return number, blockHash(number - 1), true
}

// moveMark moves a mark to a random block of the main branch.
func (w *world) moveMark(edit *HotEdit, next *modelHot) bool {
	if len(next.blocks) == 0 {
		return false
	}
	b := next.blocks[w.rng.IntN(len(next.blocks))]
	if w.rng.IntN(2) == 0 {
		if next.attested.Hash != zeroHash && b.Number <= next.attested.Number {
			return false
		}
		edit.Attested, next.attested = &b.BlockRef, b.BlockRef
		return true
	}
	if !b.onMain() || next.finalized.Hash != zeroHash && b.Number <= next.finalized.Number {
		return false
	}
	edit.Finalized, next.finalized = &b.BlockRef, b.BlockRef
	if next.attested.Hash == zeroHash || next.attested.Number < b.Number {
		next.attested = b.BlockRef
	}
	return true
}

func (w *world) mark() {
	var edit HotEdit
	next := w.hot
	if w.moveMark(&edit, &next) {
		w.commitWith("mark", nil, nil, edit, next)
	}
}

// sealHot moves the oldest blocks of the main branch into files, or drops them.
func (w *world) sealHot(files bool) {
	n := 0
	for n < len(w.hot.blocks) && w.hot.blocks[n].onMain() {
		n++
	}
	if n == 0 {
		return
	}
	n = 1 + w.rng.IntN(n)
	next := w.hot
	next.blocks = slices.Clone(next.blocks[n:])
	r := chain.Range{From: w.hot.blocks[0].Number, To: w.hot.blocks[n-1].Number + 1}
	var add []modelFile
	if files {
		cut := r.From + w.rng.Uint64N(r.Len())
		if cut > r.From {
			add = append(add, w.newFile(KindData, 0, chain.Range{From: r.From, To: cut}))
		}
		add = append(add, w.newFile(KindData, 0, chain.Range{From: cut, To: r.To}))
		if w.rng.IntN(2) == 0 {
			add = append(add, w.newFile(KindIndex, 0, r))
		}
	}
	w.commitWith("seal recent blocks", add, nil, HotEdit{EvictTo: r.To}, next)
}

// refusedHot commits changes of the hot tier that must be refused without changing anything.
func (w *world) refusedHot() {
	blocks := w.hot.blocks
	if len(blocks) == 0 {
		return
	}
	first, tip := blocks[0], blocks[len(blocks)-1]
	stranger := modelBlock{BlockRef: chain.BlockRef{Number: tip.Number + 1, Hash: branchHash(1<<41, tip.Number), ParentHash: branchHash(1<<40, 1)}}
	gap := stranger
	gap.Number, gap.ParentHash = tip.Number+2, tip.Hash
	below := chain.BlockRef{Number: first.Number - 1, Hash: first.ParentHash}
	var undoAll []chain.BlockRef
	for _, b := range slices.Backward(blocks) {
		undoAll = append(undoAll, b.BlockRef)
	}
	for _, c := range []struct {
		name string
		edit HotEdit
		want error
	}{
		{"other parent", HotEdit{Apply: []NewBlock{stranger.edit()}}, ErrNotChild},
		{"gap", HotEdit{Apply: []NewBlock{gap.edit()}}, ErrNotChild},
		{"undo of another block", HotEdit{Undo: []chain.BlockRef{stranger.BlockRef}}, ErrStaleEdit},
		{"undo below", HotEdit{Undo: append(undoAll, below)}, ErrInvalidEdit},
		{"eviction of nothing", HotEdit{EvictTo: tip.Number + 2}, ErrStaleEdit},
		{"mark of a stranger", HotEdit{Finalized: &stranger.BlockRef}, ErrInvalidEdit},
	} {
		if err := w.engine.Commit(context.Background(), Edit{Hot: c.edit}); !errors.Is(err, c.want) && !w.machine.Stopped() {
			w.fail("%s: got %v want %v", c.name, err, c.want)
		}
	}
	if m := w.hot.finalized; m.Hash != zeroHash && m.Number >= first.Number {
		edit := HotEdit{Undo: undoAll[:tip.Number-m.Number+1]}
		if err := w.engine.Commit(context.Background(), Edit{Hot: edit}); !errors.Is(err, ErrFinalized) && !w.machine.Stopped() {
			w.fail("undo of a finalized block: %v", err)
		}
	}
	w.note("refused changes of recent blocks")
}
