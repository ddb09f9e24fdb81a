package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"

	"github.com/leani-go/leani/chain"
)

// Budget bounds what a read may need. Zero is no limit, but for lines: as long as only frames are bounded, a line is
// bounded by what may decode to one, as lines of a Source are.
type Budget struct {
	InputBytes    int64 // of an object, and of all frames of a read once decoded
	ResidentBytes int64 // of a line, with its newline
	FrameBytes    int64 // of a frame once decoded
	Frames        int64 // of a read
}

func (b Budget) withDefaults() Budget {
	if b.ResidentBytes == 0 && b.FrameBytes > 0 && b.FrameBytes < math.MaxInt64/lineBytesPerBlockByte {
		b.ResidentBytes = b.FrameBytes*lineBytesPerBlockByte + 1
	}
	for _, limit := range []*int64{&b.InputBytes, &b.ResidentBytes, &b.FrameBytes, &b.Frames} {
		if *limit == 0 {
			*limit = math.MaxInt64
		}
	}
	return b
}

// Archive reads the objects of a manifest. It is safe for concurrent use.
type Archive struct {
	path     string // of the manifest
	folder   string
	manifest *Manifest
}

// Open reads the manifest of an archive of any chain. No object is opened.
func Open(manifestPath string) (*Archive, error) {
	m, err := LoadManifest(manifestPath)
	if err != nil {
		return nil, err
	}
	return &Archive{path: manifestPath, folder: filepath.Dir(manifestPath), manifest: m}, nil
}

// Manifest is what the archive says it holds. It must not be changed.
func (a *Archive) Manifest() *Manifest { return a.manifest }

// Select gives the objects that hold the blocks of r, in order. When some blocks are in none the error is a
// *HoleError that lists them, and the objects are those of the others.
func (a *Archive) Select(r chain.Range) ([]*Object, error) {
	var (
		objects []*Object
		holes   []chain.Range
		next    = r.From
	)
	for i := range a.manifest.Objects {
		o := &a.manifest.Objects[i]
		part := o.Range.Intersect(r)
		if part.Empty() {
			continue
		}
		if part.From > next {
			holes = append(holes, chain.Range{From: next, To: part.From})
		}
		objects = append(objects, o)
		next = part.To
	}
	if next < r.To {
		holes = append(holes, chain.Range{From: next, To: r.To})
	}
	if len(holes) > 0 {
		return objects, &HoleError{Manifest: a.path, Missing: holes}
	}
	return objects, nil
}

// PathOf is the path of an object as errors name it.
func (a *Archive) PathOf(o *Object) string {
	return filepath.Join(a.folder, filepath.FromSlash(o.Path))
}

// Read reads the frames of the blocks that an object and r have in common, in order. First the whole object
// is held against its length and digest; nothing is yielded before. Then frames are read from the same
// open file, a line at a time, while the content is hashed again: when it changed meanwhile, the read
// ends with ErrChecksum after the frames that could be read. Frames that were yielded before an error stay good.
//
// Of a frame, believed is what the reader checked itself: that the object is the one of the manifest, and that the frame
// follows the one yielded before. Its own verification and anchor are dropped, trust in its provenance is lowered to
// that in a data set, and a selection that it says was proved to be whole is one that is declared to be. yield may keep nothing of a frame; an error of its own ends the
// read and is returned as it is.
//
// Other errors: *BudgetError, *PathError, *CorruptError, those of reading, and the context's.
func (a *Archive) Read(ctx context.Context, o *Object, r chain.Range, budget Budget, yield func(*chain.Frame) error) error {
	budget = budget.withDefaults()
	name := a.PathOf(o)
	if o.Bytes > budget.InputBytes {
		return &BudgetError{name, "input_bytes", o.Bytes, budget.InputBytes}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := openObject(a.folder, o.Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("stat archive object %s: %w", name, err)
	}
	if err := proveObject(ctx, name, f, info.Size(), o, func([]byte) {}); err != nil {
		return err
	}
	s := stream{
		archive: a, object: o, name: name, wanted: o.Range.Intersect(r), budget: budget,
		lines: bufio.NewReaderSize(io.NewSectionReader(f, 0, o.Bytes), hashChunk), hash: blake3.New(),
	}
	s.next = s.wanted.From
	failure := s.frames(ctx, yield)
	var own *yieldError
	switch {
	case errors.As(failure, &own):
		return own.error
	case s.broken || ctx.Err() != nil:
		return failure
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	if failure == nil && s.surplus > 0 && s.wanted.To == o.Range.To {
		return &CorruptError{Object: name, Line: s.number + 1, Offset: s.surplus, Err: fmt.Errorf("%w: text follows block %d, its last", ErrOrder, o.Range.To-1)}
	}
	return failure
}

// yieldError is an error of the caller's yield.
type yieldError struct{ error }

// stream is the second pass over an object.
type stream struct {
	archive *Archive
	object  *Object
	name    string
	wanted  chain.Range
	budget  Budget

	lines  *bufio.Reader
	hash   *blake3.Hasher
	broken bool // reading failed
	offset int64
	number int // of the line
	line   []byte
	parser Parser
	arena  []byte
	frame  chain.Frame

	surplus int64 // where text that is no frame of the object begins, at most; 0 when there is none
	next    uint64
	parent  common.Hash // of the frame yielded last
	decoded int64
}

// frames yields the wanted frames.
func (s *stream) frames(ctx context.Context, yield func(*chain.Frame) error) error {
	for s.next < s.wanted.To {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := s.offset
		if err := s.readLine(); err == io.EOF {
			return &CorruptError{Object: s.name, Err: fmt.Errorf("%w: it ends before block %d", ErrOrder, s.next)}
		} else if err != nil {
			return err
		}
		if len(bytes.TrimSpace(s.line)) == 0 {
			continue
		}
		wanted, err := s.parse()
		if err != nil {
			if _, over := err.(*BudgetError); over {
				return err
			}
			return &CorruptError{Object: s.name, Line: s.number, Offset: start, Err: err}
		}
		if !wanted {
			continue
		}
		if err := yield(&s.frame); err != nil {
			return &yieldError{err}
		}
	}
	return nil
}

// readLine reads the next line into s.line, without its newline. io.EOF means that none is left.
func (s *stream) readLine() error {
	s.line = s.line[:0]
	for {
		part, err := s.lines.ReadSlice('\n')
		_, _ = s.hash.Write(part) // never fails
		s.offset += int64(len(part))
		if need := int64(len(s.line)) + int64(len(part)); need > s.budget.ResidentBytes {
			return &BudgetError{s.name, "resident_bytes", need, s.budget.ResidentBytes}
		}
		s.line = append(s.line, part...)
		switch {
		case err == nil:
			s.number++
			s.line = s.line[:len(s.line)-1]
			return nil
		case err == io.EOF && len(s.line) == 0:
			return io.EOF
		case err == io.EOF: // the last line needs no newline
			s.number++
			return nil
		case err != bufio.ErrBufferFull:
			s.broken = true
			return readError(s.name, err)
		}
	}
}

// parse reads a frame from the line and tells whether it is a wanted one.
func (s *stream) parse() (bool, error) {
	s.line = pad(s.line)
	f := &s.frame
	if need := (len(s.line)-padding)/2 + arenaSlack; cap(s.arena) < need {
		s.arena = make([]byte, 0, need)
	}
	if err := s.parser.Parse(s.line, s.arena, f); err != nil {
		return false, err
	}
	if !s.wanted.Contains(f.Number) {
		if !s.object.Range.Contains(f.Number) {
			return false, fmt.Errorf("%w: block %d is not one of the object's", ErrOrder, f.Number)
		}
		return false, nil
	}
	if err := s.parser.checkAgainst(s.archive.manifest); err != nil {
		return false, err
	}
	switch {
	case f.Number != s.next:
		return false, fmt.Errorf("%w: got block %d, want %d", ErrOrder, f.Number, s.next)
	case f.Number > s.wanted.From && f.ParentHash != s.parent:
		return false, fmt.Errorf("block %d: %w: got %x, want %x", f.Number, ErrParent, f.ParentHash, s.parent)
	}
	if err := s.account(); err != nil {
		return false, err
	}
	s.archive.believe(f, s.object, s.wanted, f.Number > s.wanted.From)
	s.next, s.parent = f.Number+1, f.Hash
	return true, nil
}

// account counts a frame against the budget.
func (s *stream) account() error {
	size := s.parser.size()
	s.decoded += size
	count := int64(s.next-s.wanted.From) + 1
	switch {
	case size > s.budget.FrameBytes:
		return &BudgetError{s.name, "frame_bytes", size, s.budget.FrameBytes}
	case s.decoded > s.budget.InputBytes:
		return &BudgetError{s.name, "normalized_frame_bytes", s.decoded, s.budget.InputBytes}
	case count > s.budget.Frames:
		return &BudgetError{s.name, "frames", count, s.budget.Frames}
	}
	return nil
}

// rest reads what follows the wanted frames, and compares the content with the digest once more. When the whole object
// was asked for, nothing but empty lines may follow.
func (s *stream) rest(ctx context.Context) error {
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.lines.Read(buf)
		_, _ = s.hash.Write(buf[:n]) // never fails
		if text := bytes.TrimLeft(buf[:n], " \t\r\n"); s.surplus == 0 && len(text) > 0 {
			s.surplus = s.offset + int64(n-len(text))
		}
		s.offset += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return readError(s.name, err)
		}
	}
	return compareDigest(s.name, s.hash, s.object)
}

// checkAgainst holds a frame against the manifest of its archive, in the order of docs/formats/archive.md.
func (p *Parser) checkAgainst(m *Manifest) error {
	f := p.frame
	switch {
	case f.ChainID != m.ChainID:
		return fmt.Errorf("block %d: %w: got %d, want %d", f.Number, ErrChain, f.ChainID, m.ChainID)
	case f.Finality != m.Finality:
		return fmt.Errorf("block %d: %w: got %s, want %s", f.Number, ErrFinality, f.Finality.Name(), m.Finality.Name())
	case p.schema != nil && string(p.schema) != Schema:
		return fmt.Errorf("block %d: %w: got %q, want %q", f.Number, ErrSchema, p.schema, Schema)
	}
	if err := f.CheckShape(); err != nil {
		return fmt.Errorf("block %d: %w", f.Number, err)
	}
	// What follows from other material need not be there by itself.
	if missing := m.Complete & chain.MaterialKinds &^ p.complete.Derived(); missing != 0 {
		return fmt.Errorf("block %d: %w: %s is declared complete and is not", f.Number, ErrMaterial, missing)
	}
	if surplus := f.Present() & chain.MaterialKinds &^ m.Capabilities.Derived(); surplus != 0 {
		p.withhold(surplus)
	}
	return nil
}

// withhold takes material out of the frame that its archive does not declare: nobody answers for that.
func (p *Parser) withhold(kinds chain.Capabilities) {
	f := p.frame
	for _, c := range kinds.List() {
		if c == chain.CapabilityReceipts {
			p.withholdReceipts()
		}
		*f.Material(c) = chain.MissingMaterial(chain.NotRequested)
		switch c {
		case chain.CapabilityHeader:
			f.Header, f.Details = nil, f.Details&^chain.DetailHeaderRLP
		case chain.CapabilityTransactions:
			f.Transactions, f.TransactionHashes, f.Senders = f.Transactions[:0], f.TransactionHashes[:0], f.Senders[:0]
			f.TransactionIndexes = f.TransactionIndexes[:0]
			f.Details &^= chain.DetailEnvelopes | chain.DetailSenders
		case chain.CapabilityLogs:
			f.Logs, f.LogPlaces = f.Logs[:0], f.LogPlaces[:0]
		case chain.CapabilityWithdrawals:
			f.Withdrawals = nil
		}
	}
}

// withholdReceipts leaves the logs of receipts, with their places, where the frame has them as material of their own.
func (p *Parser) withholdReceipts() {
	f := p.frame
	if !f.Material(chain.CapabilityLogs).Present() {
		f.Logs, f.LogPlaces = f.Logs[:0], f.LogPlaces[:0]
	} else if f.HasReceipts {
		for i := range f.Receipts {
			var hash *common.Hash
			if i < len(f.TransactionHashes) {
				h := f.TransactionHashes[i]
				hash = &h
			}
			for len(f.LogPlaces) < int(f.Receipts[i].LogsEnd) {
				f.LogPlaces = append(f.LogPlaces, chain.LogPlace{TransactionHash: hash, TransactionIndex: uint32(i), LogIndex: uint32(len(f.LogPlaces))})
			}
		}
	}
	f.Receipts, f.ReceiptIndexes, f.HasReceipts = f.Receipts[:0], f.ReceiptIndexes[:0], false
	f.Details &^= chain.DetailReceiptEncodings | chain.DetailReceiptGas
}

// size estimates the memory of a frame in bytes: what was decoded and the structures over it.
func (p *Parser) size() int64 {
	f := p.frame
	return int64(len(p.arena)) + int64(len(f.TransactionHashes))*(common.HashLength+common.AddressLength+24) +
		int64(len(f.Receipts))*48 + int64(len(f.Logs))*72
}

// believe replaces what a frame says about itself by what was checked here, and adds where it was read.
func (a *Archive) believe(f *chain.Frame, o *Object, asked chain.Range, follows bool) {
	f.Schema = Schema
	f.Verification = chain.VerificationReport{
		DatasetChecksum: chain.Check{Status: chain.Verified, Detail: "BLAKE3 of the object equals the manifest"},
	}
	if follows {
		f.Verification.ParentContinuity = chain.Check{Status: chain.Verified}
	}
	for _, c := range frameMaterials {
		if m := f.Material(c); m.State == chain.MaterialFiltered && m.Completeness == chain.VerifiedPredicate {
			m.Completeness = chain.DatasetDeclared
		}
	}
	for i := range f.Provenance {
		f.Provenance[i].Trust = f.Provenance[i].Trust.Capped(chain.TrustedDataset)
	}
	digest := o.BLAKE3
	f.Provenance = append(f.Provenance, chain.Provenance{
		SourceID: a.manifest.ID, Kind: chain.HistoryArchive, Trust: chain.TrustedDataset, Range: &asked,
		Object: &chain.SourceObject{Locator: a.PathOf(o), Checksum: &digest, Schema: Schema},
	})
}
