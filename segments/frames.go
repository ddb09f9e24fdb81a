package segments

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/corrupt"
	"github.com/leani-go/leani/internal/keccak"
)

var (
	errFramesProfile = errors.New("frames file with the profile of complete material")
	errFrameCounts   = errors.New("frames do not have the transactions and logs that the footer says")
	errFrameOmmers   = errors.New("frame and profile disagree about the ommers")
)

// Frames reads a frames file. Safe for concurrent use.
type Frames struct {
	*File
	rows, frames, described *column

	profile *chain.Profile
	encoded []byte
}

// NewFrames views an open file as a frames file. It reads the profile.
func NewFrames(f *File) (*Frames, error) {
	if f.footer.info.Kind != KindFrames {
		return nil, f.errKind(KindFrames)
	}
	blocks := f.footer.info.Blocks()
	rows, err := f.expect(columnFrameRows, blocks, frameRowSize)
	if err != nil {
		return nil, err
	}
	frames, err := f.expect(columnFrames, blocks, 0)
	if err != nil {
		return nil, err
	}
	described, err := f.expect(columnProfile, 1, 0)
	if err != nil {
		return nil, err
	}
	v := &Frames{File: f, rows: rows, frames: frames, described: described}
	err = f.blob(described, 0, nil, func(b []byte) (err error) {
		v.encoded = b
		v.profile, err = DecodeProfile(b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Profile is that of every frame in the file. It is shared: read only.
func (v *Frames) Profile() *chain.Profile { return v.profile }

// EncodedProfile is what AppendProfile gives for it. It is shared: read only.
func (v *Frames) EncodedProfile() []byte { return v.encoded }

// Ref names block n, which must be in the range of the file.
func (v *Frames) Ref(n uint64, access *Access) (chain.BlockRef, error) {
	info := &v.footer.info
	if n < info.From || n >= info.To {
		return chain.BlockRef{}, fmt.Errorf("segment file %s: block %d is not in it", v.name, n)
	}
	ref := chain.BlockRef{Number: n, ParentHash: info.FirstParent}
	from := n - info.From
	if from > 0 {
		from-- // the hash of the parent is in the row before
	}
	err := v.fixedRows(v.rows, from, n-info.From+1, access, func(rows []byte) {
		for ; len(rows) > 0; rows = rows[frameRowSize:] {
			if from++; from <= n-info.From {
				ref.ParentHash = common.Hash(rows[:common.HashLength])
				continue
			}
			ref.Hash = common.Hash(rows[:common.HashLength])
			ref.Timestamp = binary.LittleEndian.Uint64(rows[common.HashLength:])
		}
	})
	return ref, err
}

// Load resets f and fills it with the frame of block n. What it fills in stays valid and is shared: read only.
func (v *Frames) Load(n uint64, f *chain.Frame, access *Access) error {
	ref, err := v.Ref(n, access)
	if err != nil {
		return err
	}
	err = v.Raw(n, access, func(b []byte) error {
		if err := decodeFrame(b, f); err != nil {
			return fmt.Errorf("frame of block %d: %w", n, err)
		}
		if (f.Ommers != nil) != v.profile.Ommers {
			return fmt.Errorf("frame of block %d: %w", n, errFrameOmmers)
		}
		return nil
	})
	f.BlockRef = ref
	v.profile.Describe(f)
	return err
}

// Raw yields the bytes of the frame of block n as they were written.
func (v *Frames) Raw(n uint64, access *Access, use func([]byte) error) error {
	info := &v.footer.info
	if n < info.From || n >= info.To {
		return fmt.Errorf("segment file %s: block %d is not in it", v.name, n)
	}
	return v.blob(v.frames, uint32(n-info.From), access, use)
}

// checkFramesRows reads every frame. What its header proves is for those who verify; that a header hashes to
// the hash in the row is checked here, as for data files.
func (f *File) checkFramesRows(ctx context.Context, found func(error) error) error {
	apart := *f
	apart.cache = NewCache(checkCacheBytes)
	v, err := NewFrames(&apart)
	if err != nil {
		return found(err)
	}
	info := &v.footer.info
	var frame chain.Frame
	hasher := new(keccak.Hasher)
	var transactions, logs uint64
	clean := true
	for n := info.From; n < info.To; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := v.Load(n, &frame, nil)
		if err == nil {
			err = v.checkFrame(&frame, hasher)
		}
		if err != nil {
			clean = false
			if err := found(err); err != nil {
				return err
			}
			continue
		}
		transactions += uint64(len(frame.TransactionHashes))
		logs += uint64(len(frame.Logs))
	}
	if clean && (transactions != info.Transactions || logs != info.Logs) {
		return found(corrupt.AtOffset(v.name, int64(v.limit), errFrameCounts))
	}
	return nil
}

func (v *Frames) checkFrame(f *chain.Frame, hasher *keccak.Hasher) error {
	info := &v.footer.info
	cause := error(nil)
	if f.Details&chain.DetailHeaderRLP != 0 && f.Header != nil {
		var hash common.Hash
		if hasher.Sum(&hash, f.Header); hash != f.Hash {
			cause = errHeaderHash
		}
	}
	if f.Number == info.From && f.Hash != info.FirstHash || f.Number+1 == info.To && f.Hash != info.LastHash {
		cause = errEdgeHash
	}
	if cause == nil {
		return nil
	}
	return v.rowDamaged(v.rows, f.Number-info.From, fmt.Errorf("block %d: %w", f.Number, cause))
}
