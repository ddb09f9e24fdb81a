package archive

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/regular"
)

const (
	// FormatVersion is the only version of manifests.
	FormatVersion = 1
	// Schema names the only form of frames.
	Schema = "normalized-frame-jsonl.v1"

	// maximumManifestBytes bounds the text of a manifest: some 80,000 objects.
	maximumManifestBytes = 16 << 20
	// maximumIDBytes bounds a source identifier.
	maximumIDBytes = 64
)

// Manifest lists the objects of an archive and says what they hold.
type Manifest struct {
	ID      string
	ChainID uint64
	// Capabilities are what frames can have, Complete what all of them have completely.
	Capabilities, Complete chain.Capabilities
	Finality               chain.Finality
	Objects                []Object // ascending, without overlap
}

// Object is a file of frames, one for each block of its range.
type Object struct {
	Range  chain.Range
	Path   string // relative to the manifest, with slashes
	BLAKE3 common.Hash
	Bytes  int64
}

// LoadManifest reads a manifest. Nothing of its objects is opened. The error is that of the read or a
// *ManifestError.
func LoadManifest(path string) (*Manifest, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open archive manifest: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maximumManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read archive manifest %s: %w", path, err)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, &ManifestError{path, err}
	}
	return m, nil
}

var (
	manifestShape = shape{
		names:    []string{"format_version", "id", "chain_id", "schema_version", "capabilities", "complete_capabilities", "finality", "objects"},
		required: first(8), strict: true,
	}
	objectShape = shape{names: []string{"from_block", "to_block", "path", "blake3", "bytes"}, required: first(5), strict: true}
)

// ParseManifest reads the text of a manifest. It refuses text above 16 MiB, members that are unknown or there
// twice, and whatever docs/formats/archive.md does not allow.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > maximumManifestBytes {
		return nil, fmt.Errorf("is longer than %d bytes", maximumManifestBytes)
	}
	var (
		s        scanner
		m        Manifest
		version  uint64
		schema   string
		finality string
	)
	s.reset(pad(slices.Clone(text)))
	for o := s.object(&manifestShape); ; {
		switch s.member(&o) {
		case 0:
			version = s.integer(math.MaxUint64)
		case 1:
			m.ID = string(s.str())
		case 2:
			m.ChainID = s.integer(math.MaxUint64)
		case 3:
			schema = string(s.str())
		case 4:
			m.Capabilities = s.capabilities()
		case 5:
			m.Complete = s.capabilities()
		case 6:
			finality = string(s.str())
		case 7:
			for more := s.list(); more; more = s.element() {
				m.Objects = append(m.Objects, s.manifestObject())
			}
		default:
			if err := s.finish(); err != nil {
				return nil, err
			}
			var err error
			if m.Finality, err = parseFinality(finality); err == nil {
				err = m.check(version, schema)
			}
			return &m, err
		}
	}
}

// capabilities reads an array of names.
func (s *scanner) capabilities() chain.Capabilities {
	var set chain.Capabilities
	for more := s.list(); more; more = s.element() {
		name := s.str()
		if s.err != nil {
			break
		}
		c, err := chain.ParseCapability(string(name))
		if err != nil {
			s.fail("%v", err)
			break
		}
		set |= chain.NewCapabilities(c)
	}
	return set
}

func (s *scanner) manifestObject() (object Object) {
	var last uint64
	for o := s.object(&objectShape); ; {
		switch s.member(&o) {
		case 0:
			object.Range.From = s.integer(math.MaxUint64 - 1)
		case 1:
			last = s.integer(math.MaxUint64 - 1)
		case 2:
			object.Path = string(s.str())
			if s.err == nil {
				if err := checkPath(object.Path); err != nil {
					s.fail("path %q %v", object.Path, err)
				}
			}
		case 3:
			object.BLAKE3 = s.digest()
		case 4:
			object.Bytes = int64(s.integer(math.MaxInt64))
			if s.err == nil && object.Bytes == 0 {
				s.fail("an object of 0 bytes holds no frame")
			}
		default:
			if s.err == nil && object.Range.From > last {
				s.failAt(o.start, "from_block %d is above to_block %d", object.Range.From, last)
			}
			object.Range.To = last + 1
			return object
		}
	}
}

// digest reads 64 lower-case hex digits.
func (s *scanner) digest() (h common.Hash) {
	digits := s.str()
	if s.err != nil {
		return h
	}
	if n, err := hex.Decode(h[:], digits[:min(len(digits), 2*len(h))]); err != nil || n != len(h) || len(digits) != 2*len(h) || slices.ContainsFunc(digits, func(c byte) bool { return c < 'a' && c > '9' }) {
		s.fail("blake3 is not 64 lower-case hex digits")
	}
	return h
}

// checkPath refuses whatever is not a chain of plain names.
func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("is empty")
	case strings.HasPrefix(path, "/"), filepath.VolumeName(path) != "":
		return errors.New("is absolute")
	case strings.ContainsAny(path, "\\\x00"):
		return errors.New("holds a backslash or a zero byte")
	}
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "":
			return errors.New("has an empty component")
		case ".", "..":
			return fmt.Errorf("has a component %q", part)
		}
	}
	return nil
}

// parseFinality reads a level as frames and manifests spell it: our own names and older ones.
func parseFinality(name string) (chain.Finality, error) {
	level, err := chain.ParseFinality(name)
	if err != nil || name == strings.ToLower(name) {
		return 0, fmt.Errorf("finality %q: want %s, %s or %s", name, chain.Unattested.Name(), chain.Attested.Name(), chain.Finalized.Name())
	}
	return level, nil
}

// check refuses a manifest that contradicts itself, and puts its objects in order.
func (m *Manifest) check(version uint64, schema string) error {
	switch {
	case version != FormatVersion:
		return fmt.Errorf("format_version %d: want %d", version, FormatVersion)
	case m.ChainID == 0:
		return errors.New("chain_id is 0")
	case schema != Schema:
		return fmt.Errorf("schema_version %q: want %q", schema, Schema)
	case len(m.Objects) == 0:
		return errors.New("objects is empty")
	case !m.Capabilities.Covers(m.Complete):
		return fmt.Errorf("complete_capabilities: %s is not among the capabilities", (m.Complete &^ m.Capabilities).List()[0])
	}
	if err := CheckID(m.ID); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	slices.SortStableFunc(m.Objects, func(a, b Object) int { return cmp.Compare(a.Range.From, b.Range.From) })
	for i := 1; i < len(m.Objects); i++ {
		if next := m.Objects[i].Range; next.From < m.Objects[i-1].Range.To {
			return fmt.Errorf("objects overlap at block %d", next.From)
		}
	}
	return nil
}

// CheckID refuses a string that is no source identifier: 1 to 64 letters, digits, dots, underscores and
// hyphens.
func CheckID(id string) error {
	if id == "" || len(id) > maximumIDBytes {
		return fmt.Errorf("%d bytes, want 1 to %d", len(id), maximumIDBytes)
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Errorf("%q holds %q", id, c)
		}
	}
	return nil
}
