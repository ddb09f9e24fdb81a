package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2"
	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/keys"
)

// FinalityLevel numbers the levels up to which the chain is marked.
type FinalityLevel = keys.FinalityLevel

// The levels of finality, rising.
const (
	FinalityAttested  = keys.FinalityAttested
	FinalityFinalized = keys.FinalityFinalized
)

// levelSlots is the length of arrays indexed by FinalityLevel; slot 0 stays empty.
const levelSlots = int(FinalityFinalized) + 1

// HotBlock is a canonical block of the hot tier. It is immutable, and shared by all snapshots that
// show it: two snapshots show the same block if and only if they give the same pointer, as long as the
// block was not undone and applied again.
type HotBlock struct {
	chain.BlockRef
	// Transactions and Logs count what the block holds.
	Transactions, Logs uint32
	// parts are the stored parts, ascending.
	parts []partLength
}

// partLength is a part of a hot block and the length of its row's value.
type partLength struct {
	part   uint8
	length uint32
}

// Bytes counts the keys and values of the block's parts.
func (b *HotBlock) Bytes() int64 {
	sum := int64(0)
	for _, p := range b.parts {
		sum += int64(frameKeyLength) + int64(p.length)
	}
	return sum
}

// Parts lists the numbers of the parts that the block has, ascending. The caller owns the slice.
func (b *HotBlock) Parts() []uint8 {
	out := make([]uint8, len(b.parts))
	for i, p := range b.parts {
		out[i] = p.part
	}
	return out
}

const (
	frameKeyLength = 1 + 8 + common.HashLength + 1
	// frameOverhead is what a stored part has beyond its bytes: version and checksum.
	frameOverhead = 1 + 4
	// maximumParts bounds the parts of a block.
	maximumParts = 16
	// MaximumPartBytes bounds one part of a hot block: far above any block, and below what the
	// database takes in one batch.
	MaximumPartBytes = 256 << 20

	canonicalValueVersion = 1
	frameValueVersion     = 1
	finalityValueVersion  = 1

	canonicalFixedLength = 1 + 1 + 2*common.HashLength + 8 + 4 + 4 + 1
	partLengthLength     = 1 + 4
	finalityValueLength  = 1 + 8 + 2*common.HashLength + 8
)

// hotWindow is the hot tier after one commit: a contiguous run of parent-linked blocks above all data
// files, and the marks. It is immutable. Windows share their slices: applying appends behind what older
// windows see, evicting cuts the front, and only undoing copies.
type hotWindow struct {
	blocks []*HotBlock
	bytes  int64
	marks  [levelSlots]chain.BlockRef // zero Hash: no mark
}

// span is the range of the blocks.
func (w *hotWindow) span() chain.Range {
	if len(w.blocks) == 0 {
		return chain.Range{}
	}
	from := w.blocks[0].Number
	return chain.Range{From: from, To: from + uint64(len(w.blocks))}
}

// at finds a block by number.
func (w *hotWindow) at(n uint64) (*HotBlock, bool) {
	if len(w.blocks) == 0 || n < w.blocks[0].Number || n-w.blocks[0].Number >= uint64(len(w.blocks)) {
		return nil, false
	}
	return w.blocks[n-w.blocks[0].Number], true
}

// mark is the mark of a level.
func (w *hotWindow) mark(l FinalityLevel) (chain.BlockRef, bool) {
	return w.marks[l], w.marks[l].Hash != common.Hash{}
}

// verify reports what breaks a rule of docs/formats/store.md, by key. files are the data files, in order.
func (w *hotWindow) verify(files []*FileRow, report func(k keys.Key, err error)) {
	for i, b := range w.blocks {
		at := keys.Canonical{Number: b.Number}
		switch {
		case b.Number >= maximumBlock:
			report(at, fmt.Errorf("number is above %d", uint64(maximumBlock)))
		case i > 0 && b.Number != w.blocks[i-1].Number+1:
			report(at, fmt.Errorf("does not follow block %d", w.blocks[i-1].Number))
		case i > 0 && b.ParentHash != w.blocks[i-1].Hash:
			report(at, fmt.Errorf("parent hash: got %x want %x", b.ParentHash, w.blocks[i-1].Hash))
		}
	}
	if n := len(files); n > 0 && len(w.blocks) > 0 {
		first, last := w.blocks[0], files[n-1]
		at := keys.Canonical{Number: first.Number}
		switch {
		case last.To > first.Number:
			report(at, fmt.Errorf("%w: %s holds blocks from there on", errHotBelowFile, last))
		case last.To == first.Number && first.ParentHash != last.LastHash:
			report(at, fmt.Errorf("%w %s: parent hash: got %x want %x", errLink, last, first.ParentHash, last.LastHash))
		}
	}
	for level := FinalityAttested; level <= FinalityFinalized; level++ {
		mark, ok := w.mark(level)
		if !ok || len(w.blocks) == 0 || mark.Number < w.blocks[0].Number {
			continue
		}
		if b, ok := w.at(mark.Number); !ok || b.BlockRef != mark {
			report(keys.Finality{Level: level}, fmt.Errorf("block %s is not canonical", mark))
		}
	}
	attested, ok1 := w.mark(FinalityAttested)
	finalized, ok2 := w.mark(FinalityFinalized)
	if ok1 && ok2 && attested.Number < finalized.Number {
		report(keys.Finality{Level: FinalityAttested}, fmt.Errorf("block %s is below the finalized block %s", attested, finalized))
	}
}

var errHotBelowFile = errors.New("is not above all data files")

// Hot lists the blocks of the hot tier in order: a run without gaps. The slice is shared: read only.
func (s *Snapshot) Hot() []*HotBlock { return s.catalog.hot.blocks }

// HotRange is the range of the blocks of the hot tier, empty when there are none.
func (s *Snapshot) HotRange() chain.Range { return s.catalog.hot.span() }

// HotBytes counts the keys and values of the parts of all hot blocks.
func (s *Snapshot) HotBytes() int64 { return s.catalog.hot.bytes }

// Mark is the newest block that has reached a level of finality. It is, or was, a canonical block that is retained.
func (s *Snapshot) Mark(level FinalityLevel) (chain.BlockRef, bool) {
	return s.catalog.hot.mark(level)
}

// HotPart reads one part of a hot block of this snapshot, whether or not the block was undone or sealed
// since. The bytes are the caller's. The error is a *corrupt.Error with the printed key for a row that is
// absent or damaged, and ErrNotInSnapshot for a block of another snapshot or a part that it does not have.
func (s *Snapshot) HotPart(b *HotBlock, part uint8) ([]byte, error) {
	return s.AppendHotPart(nil, b, part)
}

// AppendHotPart is HotPart into the spare capacity of dst.
func (s *Snapshot) AppendHotPart(dst []byte, b *HotBlock, part uint8) ([]byte, error) {
	k := keys.Frame{Number: b.Number, Hash: b.Hash, Part: part}
	if live, ok := s.catalog.hot.at(b.Number); !ok || live != b {
		return nil, fmt.Errorf("read %s: %w", k, ErrNotInSnapshot)
	}
	i := slices.IndexFunc(b.parts, func(p partLength) bool { return p.part == part })
	if i < 0 {
		return nil, fmt.Errorf("read %s: the block has no such part: %w", k, ErrNotInSnapshot)
	}
	if s.released.Load() || s.engine.closed.Load() {
		return nil, fmt.Errorf("read %s: %w", k, ErrClosed)
	}
	key := k.Append(make([]byte, 0, frameKeyLength))
	value, closer, err := s.view.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, corrupt.New(k.String(), errors.New("row is missing"))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	defer func() { _ = closer.Close() }()
	if uint32(len(value)) != b.parts[i].length {
		return nil, corrupt.New(k.String(), fmt.Errorf("length: got %d bytes want %d", len(value), b.parts[i].length))
	}
	content, err := decodeFrame(key, value)
	if err != nil {
		return nil, corrupt.New(k.String(), err)
	}
	return append(dst, content...), nil
}

// appendFrame appends the value of a frame row: version, the bytes of the part, and a CRC-32C over key and
// both of them, so that a value under another key is noticed.
func appendFrame(dst, key, content []byte) []byte {
	start := len(dst)
	dst = append(dst, frameValueVersion)
	dst = append(dst, content...)
	return binary.BigEndian.AppendUint32(dst, frameSum(key, dst[start:]))
}

func frameSum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, slotTable), slotTable, body)
}

// decodeFrame gives the bytes of a part, which alias value.
func decodeFrame(key, value []byte) ([]byte, error) {
	if len(value) < frameOverhead {
		return nil, fmt.Errorf("%w: got %d bytes want %d or more", errValueLength, len(value), frameOverhead)
	}
	if value[0] != frameValueVersion {
		return nil, fmt.Errorf("unknown version %d of a part", value[0])
	}
	body, sum := value[:len(value)-4], binary.BigEndian.Uint32(value[len(value)-4:])
	if got := frameSum(key, body); got != sum {
		return nil, fmt.Errorf("checksum: got %08x want %08x", got, sum)
	}
	return body[1:], nil
}

// appendCanonicalValue appends the row of a hot block without what its key says.
func appendCanonicalValue(dst []byte, b *HotBlock) []byte {
	dst = append(dst, canonicalValueVersion, 0)
	dst = append(dst, b.Hash[:]...)
	dst = append(dst, b.ParentHash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, b.Timestamp)
	dst = binary.BigEndian.AppendUint32(dst, b.Transactions)
	dst = binary.BigEndian.AppendUint32(dst, b.Logs)
	dst = append(dst, byte(len(b.parts)))
	for _, p := range b.parts {
		dst = binary.BigEndian.AppendUint32(append(dst, p.part), p.length)
	}
	return dst
}

func decodeCanonical(k keys.Canonical, value []byte) (*HotBlock, error) {
	if len(value) < canonicalFixedLength {
		return nil, fmt.Errorf("%w: got %d bytes want %d or more", errValueLength, len(value), canonicalFixedLength)
	}
	n := int(value[canonicalFixedLength-1])
	if err := checkValueLength(value, canonicalFixedLength+n*partLengthLength); err != nil {
		return nil, err
	}
	if value[0] != canonicalValueVersion {
		return nil, fmt.Errorf("unknown version %d of a block", value[0])
	}
	if value[1] != 0 {
		return nil, fmt.Errorf("unknown flags 0x%02x of a block", value[1])
	}
	if n > maximumParts {
		return nil, fmt.Errorf("%d parts", n)
	}
	b := &HotBlock{BlockRef: chain.BlockRef{Number: k.Number, Hash: common.Hash(value[2:34]), ParentHash: common.Hash(value[34:66])}}
	rest := value[66:]
	b.Timestamp = binary.BigEndian.Uint64(rest)
	b.Transactions, b.Logs = binary.BigEndian.Uint32(rest[8:]), binary.BigEndian.Uint32(rest[12:])
	b.parts = make([]partLength, n)
	for i, rest := 0, rest[17:]; i < n; i, rest = i+1, rest[partLengthLength:] {
		p := partLength{part: rest[0], length: binary.BigEndian.Uint32(rest[1:])}
		switch {
		case p.part == 0 || i > 0 && p.part <= b.parts[i-1].part:
			return nil, fmt.Errorf("part %d out of order", p.part)
		case p.length < frameOverhead || p.length > MaximumPartBytes+frameOverhead:
			return nil, fmt.Errorf("part %d has %d bytes", p.part, p.length)
		}
		b.parts[i] = p
	}
	return b, nil
}

func decodeHash(value []byte) (number uint64, err error) {
	if err := checkValueLength(value, 8); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

func appendFinalityValue(dst []byte, r chain.BlockRef) []byte {
	dst = append(dst, finalityValueVersion)
	dst = binary.BigEndian.AppendUint64(dst, r.Number)
	dst = append(dst, r.Hash[:]...)
	dst = append(dst, r.ParentHash[:]...)
	return binary.BigEndian.AppendUint64(dst, r.Timestamp)
}

func decodeFinality(value []byte) (r chain.BlockRef, err error) {
	if err := checkValueLength(value, finalityValueLength); err != nil {
		return r, err
	}
	if value[0] != finalityValueVersion {
		return r, fmt.Errorf("unknown version %d of a mark", value[0])
	}
	r = chain.BlockRef{
		Number: binary.BigEndian.Uint64(value[1:]), Hash: common.Hash(value[9:41]),
		ParentHash: common.Hash(value[41:73]), Timestamp: binary.BigEndian.Uint64(value[73:]),
	}
	if r.Hash == (common.Hash{}) {
		return r, errors.New("zero hash")
	}
	return r, nil
}

// hotRows collects the rows of the hot tier as a scan finds them, in any order.
type hotRows struct {
	window hotWindow
	hashes map[common.Hash]uint64
	frames map[keys.Frame]uint32 // lengths of the values; nil when they are not looked at
}

func newHotRows() *hotRows { return &hotRows{hashes: make(map[common.Hash]uint64)} }

// canonical takes a canonical row.
func (h *hotRows) canonical(k keys.Canonical, value []byte) error {
	b, err := decodeCanonical(k, value)
	if err == nil {
		h.window.blocks = append(h.window.blocks, b)
		h.window.bytes += b.Bytes()
	}
	return err
}

// hash takes a hash row.
func (h *hotRows) hash(k keys.Hash, value []byte) (err error) {
	h.hashes[k.Hash], err = decodeHash(value)
	return err
}

// finality takes a mark.
func (h *hotRows) finality(k keys.Finality, value []byte) (err error) {
	h.window.marks[k.Level], err = decodeFinality(value)
	return err
}

// frame takes a part.
func (h *hotRows) frame(k keys.Frame, key, value []byte) error {
	h.frames[k] = uint32(len(value))
	_, err := decodeFrame(key, value)
	return err
}

// verify reports rows that do not belong together. Rules between blocks, files and marks are those of
// hotWindow.verify.
func (h *hotRows) verify(report func(k keys.Key, err error)) {
	for _, b := range h.window.blocks {
		n, ok := h.hashes[b.Hash]
		switch {
		case !ok:
			report(keys.Hash{Hash: b.Hash}, fmt.Errorf("row of block %d is missing", b.Number))
		case n != b.Number:
			report(keys.Hash{Hash: b.Hash}, fmt.Errorf("number: got %d want %d", n, b.Number))
		}
		delete(h.hashes, b.Hash)
		if h.frames == nil {
			continue
		}
		for _, p := range b.parts {
			k := keys.Frame{Number: b.Number, Hash: b.Hash, Part: p.part}
			length, ok := h.frames[k]
			switch {
			case !ok:
				report(k, errors.New("row is missing"))
			case length != p.length:
				report(k, fmt.Errorf("length: got %d bytes want %d", length, p.length))
			}
			delete(h.frames, k)
		}
	}
	for hash := range h.hashes {
		report(keys.Hash{Hash: hash}, errors.New("no block has this hash"))
	}
	surplus := make([]keys.Frame, 0, len(h.frames))
	for k := range h.frames {
		surplus = append(surplus, k)
	}
	sort.Slice(surplus, func(i, j int) bool {
		return string(surplus[i].Append(nil)) < string(surplus[j].Append(nil))
	})
	for _, k := range surplus {
		report(k, errors.New("no block has this part"))
	}
}

// loadHot reads the hot tier, parts excepted.
func (e *Engine) loadHot(files []*FileRow) (hotWindow, error) {
	rows := newHotRows()
	for _, f := range []keys.Family{keys.FamilyCanonical, keys.FamilyHash, keys.FamilyFinality} {
		err := e.scan(f, func(key, value []byte) error {
			k, err := keys.Parse(key)
			if err != nil {
				return err
			}
			switch k := k.(type) {
			case keys.Canonical:
				return rows.canonical(k, value)
			case keys.Hash:
				return rows.hash(k, value)
			case keys.Finality:
				return rows.finality(k, value)
			default:
				return keys.ErrUnknownFamily
			}
		})
		if err != nil {
			return hotWindow{}, err
		}
	}
	var first error
	report := func(k keys.Key, err error) {
		if first == nil {
			first = corrupt.New(k.String(), err)
		}
	}
	rows.window.verify(files, report)
	rows.verify(report)
	return rows.window, first
}
