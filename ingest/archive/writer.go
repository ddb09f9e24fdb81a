package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/zeebo/blake3"

	"github.com/leani-go/leani/chain"
)

// ManifestName is the name of the manifest in an archive that a Writer made.
const ManifestName = "manifest.json"

// DefaultObjectBlocks is how many blocks an object of a Writer holds unless told otherwise.
const DefaultObjectBlocks = 1000

// objectBytes is where an object of a Writer ends, however few its blocks are: a hundred or more full Mainnet
// blocks. An object is read as a whole before its first frame is used.
const objectBytes = 256 << 20

// WriterOptions say what an archive is to be.
type WriterOptions struct {
	// Folder is the archive's folder. It must not exist; the folder above it must.
	Folder string
	// ID names the archive in the provenance of its frames; see CheckID.
	ID string
	// ChainID and Finality are those of every frame.
	ChainID  uint64
	Finality chain.Finality
	// Capabilities are what frames can have, Complete what all of them have completely.
	Capabilities, Complete chain.Capabilities
	// ObjectBlocks is how many blocks an object holds at most; one of 256 MiB ends earlier. Default
	// DefaultObjectBlocks.
	ObjectBlocks uint64
	// Network gives blob gas prices; nil leaves them out.
	Network *chain.Network
}

// Writer writes an archive: the same frames always give the same bytes. Everything lies in a folder with a
// temporary name until Commit gives it its own, so that an archive is there as a whole or not at all. A
// process that ends before leaves the folder with the temporary name, which nothing reads. A Writer belongs to
// one goroutine.
type Writer struct {
	options  WriterOptions
	folder   string // temporary
	manifest Manifest
	encoder  encoder
	line     []byte

	file   *os.File // the open object, nil when there is none
	out    *bufio.Writer
	hash   *blake3.Hasher
	object Object
	last   common.Hash // of the frame before, in the same object
	bytes  uint64      // of all lines
}

// Bytes is how much was written so far.
func (w *Writer) Bytes() uint64 { return w.bytes }

// ErrExists means that the folder of an archive exists already.
var ErrExists = errors.New("exists already")

// Create begins an archive.
func Create(o WriterOptions) (*Writer, error) {
	if o.ObjectBlocks == 0 {
		o.ObjectBlocks = DefaultObjectBlocks
	}
	w := &Writer{options: o, encoder: encoder{network: o.Network}}
	w.manifest = Manifest{ID: o.ID, ChainID: o.ChainID, Capabilities: o.Capabilities, Complete: o.Complete, Finality: o.Finality}
	switch {
	case o.ChainID == 0:
		return nil, errors.New("create archive: chain id is 0")
	case !o.Finality.Valid():
		return nil, fmt.Errorf("create archive: %s is no level of finality", o.Finality)
	case !o.Capabilities.Covers(o.Complete):
		return nil, fmt.Errorf("create archive: %s is complete and not among the capabilities", o.Complete&^o.Capabilities)
	}
	if err := CheckID(o.ID); err != nil {
		return nil, fmt.Errorf("create archive: id: %w", err)
	}
	if err := w.absent(); err != nil {
		return nil, err
	}
	parent, name := filepath.Split(filepath.Clean(o.Folder))
	var err error
	if w.folder, err = os.MkdirTemp(filepath.Clean(parent), "."+name+".partial-"); err != nil {
		return nil, fmt.Errorf("create archive: %w", err)
	}
	return w, nil
}

// absent refuses a folder that exists.
func (w *Writer) absent() error {
	switch _, err := os.Lstat(w.options.Folder); {
	case err == nil:
		return fmt.Errorf("create archive %s: %w", w.options.Folder, ErrExists)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create archive: %w", err)
	}
	return nil
}

// Add appends a frame. An object ends when it is full (by blocks or bytes), and before a frame whose number does not follow; a frame
// whose number does and whose parent is another one is refused. After an error only Abort may be called.
func (w *Writer) Add(f *chain.Frame) error {
	if err := w.add(f); err != nil {
		return fmt.Errorf("archive block %d: %w", f.Number, err)
	}
	return nil
}

func (w *Writer) add(f *chain.Frame) error {
	m := &w.manifest
	switch {
	case f.ChainID != m.ChainID:
		return fmt.Errorf("%w: got %d, want %d", ErrChain, f.ChainID, m.ChainID)
	case f.Finality != m.Finality:
		return fmt.Errorf("%w: got %s, want %s", ErrFinality, f.Finality.Name(), m.Finality.Name())
	case m.Complete&chain.MaterialKinds&^f.Complete().Derived() != 0, f.Present()&chain.MaterialKinds&^m.Capabilities.Derived() != 0:
		return fmt.Errorf("%w: has %s, complete are %s", ErrMaterial, f.Present(), f.Complete())
	case f.Number < w.object.Range.To:
		return fmt.Errorf("%w: after block %d", ErrOrder, w.object.Range.To-1)
	}
	follows := w.object.Range.To > 0 && f.Number == w.object.Range.To
	if follows && f.ParentHash != w.last {
		return ErrParent
	}
	var err error
	if w.line, err = w.encoder.line(w.line[:0], f); err != nil {
		return err
	}
	full := w.object.Range.Len() == w.options.ObjectBlocks || w.object.Bytes+int64(len(w.line)) > objectBytes
	if w.file != nil && (!follows || full) {
		if err := w.seal(); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.begin(f.Number); err != nil {
			return err
		}
	}
	_, _ = w.hash.Write(w.line) // never fails
	if _, err := w.out.Write(w.line); err != nil {
		return err
	}
	w.object.Bytes += int64(len(w.line))
	w.bytes += uint64(len(w.line))
	w.object.Range.To, w.last = f.Number+1, f.Hash
	return nil
}

// begin opens an object whose first block is n.
func (w *Writer) begin(n uint64) error {
	f, err := os.OpenFile(filepath.Join(w.folder, "open"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.file, w.out, w.hash = f, bufio.NewWriterSize(f, hashChunk), blake3.New()
	w.object = Object{Range: chain.Range{From: n, To: n}}
	return nil
}

// seal makes the open object durable and gives it its name.
func (w *Writer) seal() error {
	f := w.file
	w.file = nil
	err := w.out.Flush()
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	o := &w.object
	o.BLAKE3 = common.Hash(w.hash.Sum(nil))
	o.Path = fmt.Sprintf("blocks-%010d-%010d.jsonl", o.Range.From, o.Range.To-1)
	if err := os.Rename(filepath.Join(w.folder, "open"), filepath.Join(w.folder, o.Path)); err != nil {
		return err
	}
	w.manifest.Objects = append(w.manifest.Objects, *o)
	return nil
}

// Commit ends the archive: it makes everything durable and gives the folder its name. Only then is the archive
// there. After an error only Abort may be called.
func (w *Writer) Commit() (*Manifest, error) {
	if err := w.commit(); err != nil {
		return nil, fmt.Errorf("archive %s: %w", w.options.Folder, err)
	}
	return &w.manifest, nil
}

var errNoFrames = errors.New("an archive needs at least one frame")

func (w *Writer) commit() error {
	if w.file != nil {
		if err := w.seal(); err != nil {
			return err
		}
	}
	if len(w.manifest.Objects) == 0 {
		return errNoFrames
	}
	if err := writeSynced(filepath.Join(w.folder, ManifestName), w.manifest.Append(nil)); err != nil {
		return err
	}
	if err := syncFolder(w.folder); err != nil {
		return err
	}
	if err := os.Chmod(w.folder, 0o755); err != nil {
		return err
	}
	// A rename replaces an empty folder silently, and no other one.
	if err := w.absent(); err != nil {
		return err
	}
	if err := os.Rename(w.folder, w.options.Folder); err != nil {
		return err
	}
	w.folder = ""
	return syncFolder(filepath.Dir(filepath.Clean(w.options.Folder)))
}

// Abort gives the archive up and removes what was written, unless Commit has succeeded.
func (w *Writer) Abort() error {
	var err error
	if w.file != nil {
		err = w.file.Close()
		w.file = nil
	}
	if w.folder != "" {
		err = errors.Join(err, os.RemoveAll(w.folder))
		w.folder = ""
	}
	return err
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Append appends the text of a manifest, which ParseManifest reads back.
func (m *Manifest) Append(dst []byte) []byte {
	e := encoder{dst: dst}
	e.text("{\n \"format_version\": ")
	e.number(FormatVersion)
	e.text(",\n \"id\": ")
	e.quote(m.ID)
	e.text(",\n \"chain_id\": ")
	e.number(m.ChainID)
	e.text(",\n \"schema_version\": ")
	e.quote(Schema)
	e.text(",\n \"capabilities\": ")
	e.capabilities(m.Capabilities)
	e.text(",\n \"complete_capabilities\": ")
	e.capabilities(m.Complete)
	e.text(",\n \"finality\": ")
	e.quote(m.Finality.Name())
	e.text(",\n \"objects\": [")
	for i := range m.Objects {
		o := &m.Objects[i]
		e.comma(i)
		e.text("\n  {\"from_block\": ")
		e.number(o.Range.From)
		e.text(", \"to_block\": ")
		e.number(o.Range.To - 1)
		e.text(", \"path\": ")
		e.quote(o.Path)
		e.text(", \"blake3\": ")
		e.quote(fmt.Sprintf("%x", o.BLAKE3[:]))
		e.text(", \"bytes\": ")
		e.number(uint64(o.Bytes))
		e.text("}")
	}
	e.text("\n ]\n}\n")
	return e.dst
}

func (e *encoder) capabilities(s chain.Capabilities) {
	e.text("[")
	for i, c := range s.List() {
		if i > 0 {
			e.text(", ")
		}
		e.quote(c.String())
	}
	e.text("]")
}
