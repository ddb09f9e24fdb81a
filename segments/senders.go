package segments

import (
	"errors"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/common"
)

// WriteSenders writes the senders file of a data file: the sender of each of its transactions, in
// order.
func WriteSenders(out io.Writer, data Info, senders []common.Address) (Info, [32]byte, error) {
	if uint64(len(senders)) != data.Transactions {
		return Info{}, [32]byte{}, fmt.Errorf("write senders of blocks [%d, %d): %d senders for %d transactions", data.From, data.To, len(senders), data.Transactions)
	}
	info := data
	info.Kind = KindSenders
	w := newFileWriter(out, KindSenders)
	raw := make([]byte, 0, len(senders)*common.AddressLength)
	for i := range senders {
		raw = append(raw, senders[i][:]...)
	}
	w.addFixed(columnSenders, raw, common.AddressLength)
	digest, err := w.finish(info)
	return info, digest, err
}

// Senders reads a senders file. Safe for concurrent use.
type Senders struct {
	*File
	senders *column
}

// NewSenders views an open file as a senders file.
func NewSenders(f *File) (*Senders, error) {
	if f.footer.info.Kind != KindSenders {
		return nil, f.errKind(KindSenders)
	}
	c, err := f.expect(columnSenders, f.footer.info.Transactions, common.AddressLength)
	if err != nil {
		return nil, err
	}
	return &Senders{f, c}, nil
}

// Append appends the senders of n transactions from a position on.
func (s *Senders) Append(dst []common.Address, position, n uint32, access *Access) ([]common.Address, error) {
	err := s.fixedRows(s.senders, uint64(position), uint64(position)+uint64(n), access, func(rows []byte) {
		for ; len(rows) > 0; rows = rows[common.AddressLength:] {
			dst = append(dst, common.Address(rows[:common.AddressLength]))
		}
	})
	return dst, err
}

var errSendersOfOther = errors.New("senders file belongs to other blocks")

// Of checks that the file is the sidecar of a data file.
func (s *Senders) Of(d *Data) error {
	a, b := s.footer.info, d.footer.info
	if a.From != b.From || a.To != b.To || a.FirstHash != b.FirstHash || a.LastHash != b.LastHash || a.Transactions != b.Transactions {
		return fmt.Errorf("%s, %s: %w", s.name, d.name, errSendersOfOther)
	}
	return nil
}
