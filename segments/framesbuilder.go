package segments

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
)

// FramesOptions say what a frames file is made for.
type FramesOptions struct {
	// ID is the number of the profile in the store that the file is for, above 0.
	ID uint16
	// Profile is that of every frame.
	Profile chain.Profile
	// Compression of the frames. None by default.
	Compression codec.Compression
}

// FramesBuilder writes one frames file: a run of parent-linked frames of one profile.
//
// Frames come in order through Add. Their pages go to the file as they fill; 40 bytes a block stay in memory
// until Finish. One goroutine; not reusable after Finish.
type FramesBuilder struct {
	file    *fileWriter
	info    Info
	profile []byte
	rows    []byte
	frames  blobWriter
	blocks  int
	scratch []byte
	decoded chain.Frame
}

// frameRowSize is the size of a frame row: hash, timestamp u64.
const frameRowSize = common.HashLength + 8

// ErrOtherProfile is returned for a frame that is not of the profile of the file.
var ErrOtherProfile = errors.New("frame is of another profile")

// NewFramesBuilder starts a frames file on out.
func NewFramesBuilder(out io.Writer, opts FramesOptions) (*FramesBuilder, error) {
	if opts.ID == 0 {
		return nil, errors.New("begin frames file: profile 0 is complete material")
	}
	profile, err := AppendProfile(nil, &opts.Profile)
	if err != nil {
		return nil, fmt.Errorf("begin frames file: %w", err)
	}
	b := &FramesBuilder{file: newFileWriter(out, KindFrames), profile: profile}
	b.info.Kind, b.info.Profile = KindFrames, opts.ID
	described := blobWriter{column: b.file.addColumn(columnProfile)}
	described.add(profile)
	described.finish()
	b.frames = blobWriter{column: b.file.addColumn(columnFrames), compression: opts.Compression}
	return b, b.file.err
}

// Blocks is the number of frames added.
func (b *FramesBuilder) Blocks() int { return b.blocks }

// Written is the number of bytes written to the file so far.
func (b *FramesBuilder) Written() int64 { return int64(b.file.offset) }

// Add appends a frame: the child of the one before, of the profile of the file. It returns the bytes that were
// written for it, which are valid until the next call: whoever reads the file back compares them with Raw.
// Nothing of the frame is kept. After an error the builder can go on when errors.Is finds ErrNotConsecutive,
// ErrOtherProfile or ErrMalformedBlock.
func (b *FramesBuilder) Add(f *chain.Frame) ([]byte, error) {
	encoded, err := b.encode(f)
	if err != nil {
		return nil, fmt.Errorf("add frame of block %s: %w", f.BlockRef, err)
	}
	if b.blocks == 0 {
		b.info.From, b.info.FirstParent, b.info.FirstHash = f.Number, f.ParentHash, f.Hash
	}
	b.blocks++
	b.info.To, b.info.LastHash = f.Number+1, f.Hash
	b.info.Transactions += uint64(len(f.TransactionHashes))
	b.info.Logs += uint64(len(f.Logs))
	b.rows = append(b.rows, f.Hash[:]...)
	b.rows = binary.LittleEndian.AppendUint64(b.rows, f.Timestamp)
	b.frames.add(encoded)
	return encoded, b.file.err
}

func (b *FramesBuilder) encode(f *chain.Frame) ([]byte, error) {
	if b.blocks > 0 && (f.Number != b.info.To || f.ParentHash != b.info.LastHash) {
		return nil, ErrNotConsecutive
	}
	if f.Number >= math.MaxInt64 || b.blocks == maximumRows ||
		b.info.Transactions+uint64(len(f.TransactionHashes)) > maximumRows || b.info.Logs+uint64(len(f.Logs)) > maximumRows {
		return nil, fmt.Errorf("%w: more than %d rows in one file", ErrMalformedBlock, maximumRows)
	}
	profile := f.Profile()
	described, err := AppendProfile(b.scratch[:0], &profile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformedBlock, err)
	}
	b.scratch = described[:0]
	if string(described) != string(b.profile) {
		return nil, ErrOtherProfile
	}
	if b.scratch, err = appendFrame(b.scratch[:0], f); err != nil {
		return nil, err
	}
	if len(b.scratch) > MaximumFrame {
		return nil, fmt.Errorf("%w: %d bytes pass the limit of %d", ErrMalformedBlock, len(b.scratch), MaximumFrame)
	}
	if err := decodeFrame(b.scratch, &b.decoded); err != nil { // a value outside its vocabulary
		return nil, fmt.Errorf("%w: %w", ErrMalformedBlock, err)
	}
	return b.scratch, nil
}

// MaximumFrame bounds an encoded frame in bytes: it lies in one page.
const MaximumFrame = codec.MaximumPage - blobPageSize - 64

// Finish writes the rest of the file and returns what it covers and its digest. The builder must hold at least
// one frame.
func (b *FramesBuilder) Finish() (Info, [32]byte, error) {
	if b.blocks == 0 {
		return Info{}, [32]byte{}, errors.New("finish frames file: no frame was added")
	}
	b.frames.finish()
	b.file.addFixed(columnFrameRows, b.rows, frameRowSize)
	digest, err := b.file.finish(b.info)
	return b.info, digest, err
}
