package era

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leani-go/leani/chain"
)

// mini are the ranges of the bundled files.
var mini = []chain.Range{{From: 17034869, To: 17034871}, {From: 19426586, To: 19426588}, {From: 22431083, To: 22431085}}

// openEntry proves and opens a file of a catalog.
func openEntry(ctx context.Context, c *Catalog, e *Entry) (*File, error) {
	path := filepath.Join(c.folder, e.Name)
	content, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if err := Prove(ctx, path, content, e.Digest); err != nil {
		return nil, err
	}
	return OpenPath(path, Options{})
}

// TestBundledCatalog opens every file of the bundled folder through its catalog.
func TestBundledCatalog(t *testing.T) {
	c, err := OpenCatalog(bundled(t), "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries()) != len(mini) || len(c.Unread()) != 0 {
		t.Fatalf("entries %v, unread %v", c.Entries(), c.Unread())
	}
	for i := range mini {
		e := &c.Entries()[i]
		if e.Range != mini[i] || e.Layout != EraE {
			t.Errorf("entry %d: got %v %v want %v", i, e.Layout, e.Range, mini[i])
		}
		f, err := openEntry(t.Context(), c, e)
		if err != nil {
			t.Fatal(err)
		}
		if f.Range() != mini[i] || f.Name() != filepath.Join(bundled(t), e.Name) {
			t.Errorf("file %s %v", f.Name(), f.Range())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := openEntry(cancelled, c, &c.Entries()[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestSelect(t *testing.T) {
	c, err := OpenCatalog("file://"+bundled(t)+"/", "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := c.Select(chain.Range{From: 19426587, To: 19426588})
	if err != nil || len(pieces) != 1 || pieces[0].Range != (chain.Range{From: 19426587, To: 19426588}) || pieces[0].Entry.Range != mini[1] {
		t.Fatal(pieces, err)
	}
	if pieces, err := c.Select(chain.Range{}); len(pieces) != 0 || err != nil {
		t.Fatal(pieces, err)
	}
	_, err = c.Select(chain.Range{From: 17034868, To: 22431090})
	var hole *HoleError
	want := []chain.Range{{From: 17034868, To: 17034869}, {From: 17034871, To: 19426586}, {From: 19426588, To: 22431083}, {From: 22431085, To: 22431090}}
	if !errors.As(err, &hole) || !reflect.DeepEqual(hole.Missing, want) {
		t.Fatalf("got %v want holes %v", err, want)
	}
	if !strings.Contains(err.Error(), "no file holds blocks [17034868, 17034869), [17034871, 19426586)") {
		t.Error(err)
	}
}

// folder makes a folder of files copied from the bundled one under other names, and a catalog.
func folder(t *testing.T, files map[string]string, catalog string) string {
	t.Helper()
	dir := t.TempDir()
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(dir, name), read(t, filepath.Join(bundled(t), source)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, CatalogName), []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

const (
	digestFirst = "3f3db11abb255bf92fe9d8b40baa5b0c3494b26050c2fdb85218ad35d42f824c"
	digestLast  = "7dc189dce8dfc0eb3ca28e73efcfa95a741d0771750b32dc55c4a319cd986f93"
	nameFirst   = "mainnet-17034869-17034870-noproofs.ere"
)

// TestOddNames pins that names, beyond the chain's, and the order and form of rows do not
// matter; and that other chains' files are left out.
func TestOddNames(t *testing.T) {
	dir := folder(t, map[string]string{"mainnet-zz": nameFirst, "mainnet-aa.era1": smallest},
		"\n"+strings.ToUpper(digestLast)+" *mainnet-aa.era1\r\n\r\n"+digestFirst+"\t\tmainnet-zz\n"+
			digestFirst+"  sepolia-00001-01020304.ere\n"+digestFirst+"  mainnets-00001-01020304.ere\n")
	c, err := OpenCatalog(dir, "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Entries(); len(e) != 2 || e[0].Name != "mainnet-zz" || e[0].Range != mini[0] || e[1].Range != mini[2] || len(c.Unread()) != 0 {
		t.Fatal(e, c.Unread())
	}
	for i := range c.Entries() {
		f, err := openEntry(t.Context(), c, &c.Entries()[i])
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func TestUnreadFiles(t *testing.T) {
	dir := folder(t, map[string]string{"mainnet-1": smallest},
		digestLast+"  mainnet-1\n"+digestFirst+"  mainnet-2\n"+digestFirst+"  mainnet-3\n")
	if err := os.WriteFile(filepath.Join(dir, "mainnet-3"), []byte("half a file, still being copied"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCatalog(dir, "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries()) != 1 || len(c.Unread()) != 2 {
		t.Fatal(c.Entries(), c.Unread())
	}
	if _, err := c.Select(mini[2]); err != nil {
		t.Error(err)
	}
	_, err = c.Select(mini[0])
	var corrupt *CorruptError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &corrupt) || !strings.HasSuffix(corrupt.File, "mainnet-3") {
		t.Errorf("got %v", err)
	}
}

// TestWrongDigest pins that a file that differs from its catalog is refused, and that both digests
// are named.
func TestWrongDigest(t *testing.T) {
	dir := folder(t, map[string]string{"mainnet-1": smallest}, digestFirst+"  mainnet-1\n")
	c, err := OpenCatalog(dir, "mainnet")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openEntry(t.Context(), c, &c.Entries()[0])
	var digest *DigestError
	if !errors.As(err, &digest) || !strings.Contains(err.Error(), "mainnet-1: sha256: got "+digestLast+", the catalog says "+digestFirst) {
		t.Fatalf("got %v", err)
	}
}

func TestOverlap(t *testing.T) {
	dir := folder(t, map[string]string{"mainnet-1": smallest, "mainnet-2": smallest, "mainnet-3": nameFirst},
		digestLast+"  mainnet-1\n"+digestLast+"  mainnet-2\n"+digestFirst+"  mainnet-3\n")
	_, err := OpenCatalog(dir, "mainnet")
	if err == nil || !strings.Contains(err.Error(), "mainnet-1 with blocks [22431083, 22431085) and mainnet-2 with blocks [22431083, 22431085) both hold [22431083, 22431085)") {
		t.Fatalf("got %v", err)
	}
}

// SEC-011: a list of checksums cannot name a file of another folder.
func TestCatalogRefuses(t *testing.T) {
	for _, c := range []struct{ name, catalog, text string }{
		{"empty", "\n \n", "lists no file"},
		{"third field", digestLast + "  mainnet-1 x\n", "line 1: 3 fields"},
		{"digest alone", "\n" + digestLast + "\n", "line 2: 1 fields"},
		{"short digest", digestLast[1:] + "  mainnet-1\n", "digest of 63 characters"},
		{"0x digest", "0x" + digestLast + "  mainnet-1\n", "digest of 66 characters"},
		{"not hexadecimal", "zz" + digestLast[2:] + "  mainnet-1\n", "invalid byte"},
		{"listed twice", digestLast + "  mainnet-1\n" + digestLast + " *mainnet-1\n", `line 2: file "mainnet-1" is listed on line 1`},
		{"path", digestLast + "  mainnet-1/../../x\n", "is not a file name"},
		{"parent", digestLast + "  ..\n", "is not a file name"},
		{"star alone", digestLast + "  *\n", "is not a file name"},
		{"another chain", digestLast + "  sepolia-1\n", `none of its 1 files is a readable file of chain "mainnet"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"mainnet-1": smallest}, c.catalog)
			if _, err := OpenCatalog(dir, "mainnet"); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %s", err, c.text)
			}
		})
	}
	if _, err := OpenCatalog(t.TempDir(), "mainnet"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder without catalog: got %v", err)
	}
	if _, err := ParseCatalog(make([]byte, MaximumCatalogBytes+1)); err == nil {
		t.Error("a catalog above the limit passed")
	}
}

func TestFolderPath(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/data/era", "/data/era"}, {"data/era/", "data/era/"}, {"file:///data/era/", "/data/era/"},
		{"file://localhost/data/", "/data/"}, {"file:data/era", "data/era"}, {"file:///with%20space/", "/with space/"},
		{"https://example.org/era/", ""}, {"file://host/era/", ""}, {"file:///era/?x", ""}, {"file:///era/#x", ""}, {"file:", ""}, {"file:///%zz", ""},
	} {
		got, err := FolderPath(c.in)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q %v want %q", c.in, got, err, c.want)
		}
	}
}

func FuzzCatalog(f *testing.F) {
	f.Add([]byte(digestFirst + "  a\n" + digestLast + " *b\n"))
	f.Add([]byte("\n\n x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		rows, err := ParseCatalog(content)
		if (err == nil) != (len(rows) > 0) {
			t.Fatal(len(rows), err)
		}
		for _, r := range rows {
			if filepath.Base(r.Name) != r.Name || r.Name == ".." {
				t.Fatalf("name %q", r.Name)
			}
		}
	})
}
