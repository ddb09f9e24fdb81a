package scripted

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/live"
	"github.com/leani-go/leani/internal/receipt"
)

// maximumLine bounds a line: a block of many megabytes in hex.
const maximumLine = 64 << 20

// maximumPause bounds a pause.
const maximumPause = time.Hour

// Source reads events from a file. It is used by one goroutine.
type Source struct {
	path  string
	file  *os.File
	lines *bufio.Reader
	line  int
	held  []byte // the beginning of a line whose end has not come

	// pausing is a pause that has been announced and not made.
	pausing time.Duration

	era *eraRun // blocks of an era file that are still to come
}

var _ live.Source = (*Source)(nil)

// eraRun is a part of an era file.
type eraRun struct {
	file *era.File
	next chain.Range
}

// Open opens the file, or named pipe. It does not wait for who writes to the pipe. The caller closes the source.
func Open(path string) (*Source, error) {
	f, err := openScript(path)
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	r, err := newReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open script %s: %w", path, err), f.Close())
	}
	return &Source{path: path, file: f, lines: bufio.NewReaderSize(r, 64<<10)}, nil
}

// Close releases what is open.
func (s *Source) Close() error { return errors.Join(s.endEra(), s.file.Close()) }

// The members of a line.
type (
	scriptLine struct {
		Apply     *scriptApply `json:"apply"`
		Undo      *scriptBlock `json:"undo"`
		Attested  *scriptBlock `json:"attested"`
		Finalized *scriptBlock `json:"finalized"`
		Pause     *scriptPause `json:"pause"`
	}
	scriptApply struct {
		Era       string         `json:"era"`
		FromBlock *uint64        `json:"fromBlock"`
		ToBlock   *uint64        `json:"toBlock"`
		Blocks    []materialLine `json:"blocks"`
	}
	materialLine struct {
		Header       hexutil.Bytes   `json:"header"`
		Transactions []hexutil.Bytes `json:"transactions"`
		Ommers       hexutil.Bytes   `json:"ommers"`
		Withdrawals  *hexutil.Bytes  `json:"withdrawals"`
		Receipts     []hexutil.Bytes `json:"receipts"`
	}
	scriptBlock struct {
		Number *uint64     `json:"number"`
		Hash   common.Hash `json:"hash"`
	}
	scriptPause struct {
		Milliseconds int64 `json:"milliseconds"`
	}
)

// Next implements live.Source. Errors name file and line. Before it waits, in a pause or for a pipe, it gives
// live.Current.
func (s *Source) Next(ctx context.Context) (*live.Event, error) {
	if pause := s.pausing; pause > 0 {
		s.pausing = 0
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// What a pipe is waited for ends with the context.
	defer context.AfterFunc(ctx, func() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.era != nil {
			return s.nextOfEra()
		}
		raw, err := s.readLine()
		if errors.Is(err, errWaits) {
			return &live.Event{Kind: live.Current}, nil
		}
		if err != nil {
			return nil, cmp.Or(ctx.Err(), err)
		}
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] == '#' {
			continue
		}
		e, pause, err := s.parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", s.path, s.line, err)
		}
		if pause > 0 {
			s.pausing = pause
			return &live.Event{Kind: live.Current}, nil
		}
		if e != nil {
			return e, nil
		}
	}
}

// readLine reads a line of bounded length; the last one may end without a newline. The error is errWaits each time
// before the rest of a pipe is waited for.
func (s *Source) readLine() ([]byte, error) {
	for {
		part, err := s.lines.ReadSlice('\n')
		s.held = append(s.held, part...)
		switch {
		case len(s.held) > maximumLine:
			return nil, fmt.Errorf("%s: line %d is longer than %d bytes", s.path, s.line+1, maximumLine)
		case err == nil, errors.Is(err, io.EOF) && len(s.held) > 0:
			line := s.held
			s.held = nil
			s.line++
			return line, nil
		case errors.Is(err, errWaits):
			return nil, err
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("read %s: %w", s.path, err)
		}
	}
}

// parse reads a line. A line about an era file opens it and gives nothing yet.
func (s *Source) parse(raw []byte) (e *live.Event, pause time.Duration, err error) {
	var l scriptLine
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, 0, err
	}
	if d.More() {
		return nil, 0, errors.New("more than one object")
	}
	members := 0
	named := func(kind live.Kind, b *scriptBlock) {
		if b == nil {
			return
		}
		members++
		if b.Number == nil {
			err = fmt.Errorf("%s without a number", kind)
			return
		}
		e = &live.Event{Kind: kind, Block: live.BlockID{Number: *b.Number, Hash: b.Hash}}
	}
	named(live.Undo, l.Undo)
	named(live.Attested, l.Attested)
	named(live.Finalized, l.Finalized)
	if l.Pause != nil {
		members++
		if pause = time.Duration(l.Pause.Milliseconds) * time.Millisecond; pause < 0 || pause > maximumPause {
			err = fmt.Errorf("pause of %d ms, at most %d are possible", l.Pause.Milliseconds, maximumPause.Milliseconds())
		}
	}
	if l.Apply != nil {
		members++
		e, err = s.parseApply(l.Apply)
	}
	if err == nil && members != 1 {
		err = fmt.Errorf("got %d events, want 1", members)
	}
	if err != nil {
		return nil, 0, err
	}
	return e, pause, nil
}

func (s *Source) parseApply(a *scriptApply) (*live.Event, error) {
	switch {
	case (a.Era == "") == (len(a.Blocks) == 0):
		return nil, errors.New("apply wants either era or blocks")
	case a.Era != "":
		return nil, s.openEra(a)
	case a.FromBlock != nil || a.ToBlock != nil:
		return nil, errors.New("fromBlock and toBlock belong to era")
	}
	e := &live.Event{Kind: live.Apply}
	for i := range a.Blocks {
		b, err := a.Blocks[i].block()
		if err != nil {
			return nil, fmt.Errorf("block %d of the list: %w", i, err)
		}
		e.Blocks = append(e.Blocks, b)
	}
	return e, nil
}

// block makes the block, unproved.
func (m *materialLine) block() (*chain.Block, error) {
	b := &chain.Block{Header: m.Header, Ommers: m.Ommers, HasReceipts: true}
	if len(b.Ommers) == 0 {
		b.Ommers = []byte{0xc0}
	}
	if m.Withdrawals != nil {
		b.Withdrawals = *m.Withdrawals
	}
	for _, tx := range m.Transactions {
		b.Transactions = append(b.Transactions, tx)
	}
	for i, r := range m.Receipts {
		if _, err := receipt.DecodeOne(r, b); err != nil {
			return nil, fmt.Errorf("receipt %d: %w", i, err)
		}
	}
	return b, nil
}

// openEra begins a part of an era file; both ends belong to it.
func (s *Source) openEra(a *scriptApply) error {
	path := a.Era
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.path), path)
	}
	f, err := era.OpenPath(path, era.Options{})
	if err != nil {
		return err
	}
	r := f.Range()
	if a.FromBlock != nil {
		r.From = *a.FromBlock
	}
	if a.ToBlock != nil {
		r.To = *a.ToBlock + 1
	}
	if r.Empty() || !f.Range().Covers(r) {
		return errors.Join(fmt.Errorf("%s holds blocks %v, asked for are %v", path, f.Range(), r), f.Close())
	}
	s.era = &eraRun{file: f, next: r}
	return nil
}

func (s *Source) endEra() error {
	if s.era == nil {
		return nil
	}
	err := s.era.file.Close()
	s.era = nil
	return err
}

// nextOfEra gives the next block of an era file, in memory of its own.
func (s *Source) nextOfEra() (*live.Event, error) {
	b := new(chain.Block)
	if err := s.era.file.ReadBlock(s.era.next.From, chain.PartsAll, new(era.Buffer), b); err != nil {
		return nil, errors.Join(err, s.endEra())
	}
	if s.era.next.From++; s.era.next.Empty() {
		if err := s.endEra(); err != nil {
			return nil, err
		}
	}
	return &live.Event{Kind: live.Apply, Blocks: []*chain.Block{b}}, nil
}
