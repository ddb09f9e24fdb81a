package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
	"github.com/leani-go/leani/internal/pipenet"
)

// misbehave is a way to answer the n-th request for a file, counted from 0, and tells whether it did;
// when not, the good answer follows.
type misbehave func(n int, w http.ResponseWriter, r *http.Request, content []byte) bool

// mirrorServer is a mirror within the process.
type mirrorServer struct {
	network *pipenet.Network
	server  *http.Server
	files   map[string][]byte    // by name
	digests map[string][]byte    // contents whose digests the catalog gives instead
	bad     map[string]misbehave // by name

	mu       sync.Mutex
	requests map[string]int
}

// mirrorFiles are the test chain in files that begin at the given blocks and at 0.
func mirrorFiles(starts ...uint64) map[string][]byte {
	files := make(map[string][]byte)
	begin := uint64(0)
	for i, end := range append(slices.Clone(starts), testBlocks) {
		files[fmt.Sprintf("test-part%d.ere", i)] = eraFileOf(testChain()[begin:end], true)
		begin = end
	}
	return files
}

func newMirror(files map[string][]byte) *mirrorServer {
	m := &mirrorServer{network: pipenet.New(), files: files, digests: make(map[string][]byte), bad: make(map[string]misbehave), requests: make(map[string]int)}
	m.server = &http.Server{Handler: m}
	go func() { _ = m.server.Serve(m.network) }()
	return m
}

func (m *mirrorServer) catalog() []byte {
	var catalog bytes.Buffer
	for name, content := range m.files {
		if other, ok := m.digests[name]; ok {
			content = other
		}
		fmt.Fprintf(&catalog, "%x *%s\n", sha256.Sum256(content), name)
	}
	return catalog.Bytes()
}

// ServeHTTP answers as a good server does unless the file has another way.
func (m *mirrorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	m.mu.Lock()
	n := m.requests[name]
	m.requests[name]++
	content, ok := m.files[name]
	m.mu.Unlock()
	if name == era.CatalogName {
		content, ok = m.catalog(), true
	}
	if bad := m.bad[name]; bad != nil && bad(n, w, r, content) {
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(content))
}

func (m *mirrorServer) close() { _ = m.server.Close() }

// remote are the options of a client of the mirror.
func (m *mirrorServer) remote() remote.Options {
	return remote.Options{
		AllowInsecure: true, Dial: m.network.Dial, PieceBytes: 16 << 10, Jitter: func() float64 { return 0 },
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
}

// candidate opens the mirror as a source.
func (m *mirrorServer) candidate(id string, priority int, temporary *Temporary) Candidate {
	return Candidate{ID: id, Priority: priority, Open: func(ctx context.Context) (Source, error) {
		return openOrNil(OpenEraMirror(ctx, "http://mirror.test/secret/", "test", temporary, m.remote()))
	}}
}

// openOrNil keeps a nil pointer from becoming a Source.
func openOrNil(s *EraMirror, err error) (Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

var wholeChain = []chain.Range{{From: 0, To: testBlocks}}

// ranges without a server that has them.
func noRanges(_ int, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
	r.Header.Del("Range")
	return false
}

// TestMirror reads the chain from a mirror, with few requests.
// SRC-030
func TestMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(mirrorFiles(20, 50))
		defer m.close()
		m.files["test-noreceipts.ere"] = nil
		m.files["other-part0.ere"] = nil
		temporary := NewTemporary(filepath.Join(t.TempDir(), "fetched"), 1<<20)
		sink := sinkOfAny(1000)
		outcome, err := FillFrom(t.Context(), []Candidate{m.candidate("mirror", 0, temporary)}, Options{Ranges: wholeChain, Sink: sink.open}, nil)
		if err != nil || sink.problem != nil || len(sink.durable) != testBlocks || len(outcome.Failures) != 0 {
			t.Fatal(outcome, err, sink.problem)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for name, n := range m.requests {
			if strings.HasPrefix(name, "test-part") && n > 3+len(m.files[name])/(16<<10) {
				t.Errorf("%d requests for %s of %d bytes", n, name, len(m.files[name]))
			}
		}
		if m.requests[era.CatalogName] != 1 || m.requests["test-noreceipts.ere"] != 0 || m.requests["other-part0.ere"] != 0 {
			t.Error(m.requests)
		}
		if temporary.used != 0 {
			t.Errorf("%d bytes still reserved", temporary.used)
		}
	})
}

// TestMisbehavingMirrors: whatever a mirror does, it gives the right error alone and fails over to
// another source, and what is stored is the same as if nothing had happened.
//
// SRC-007, SRC-024, SRC-030
func TestMisbehavingMirrors(t *testing.T) {
	files := mirrorFiles(20, 50)
	const name = "test-part1.ere"
	damaged := bytes.Clone(files[name])
	damaged[len(damaged)/2] ^= 1
	status := func(code int) func(error) bool {
		return func(err error) bool {
			var s *remote.StatusError
			return errors.As(err, &s) && s.Code == code
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	as := func(target func() any) func(error) bool {
		return func(err error) bool { return errors.As(err, target()) }
	}
	protocol := as(func() any { return new(*remote.ProtocolError) })
	digest := as(func() any { return new(*era.DigestError) })
	fetching := func(r *http.Request) bool { return !strings.HasPrefix(r.Header.Get("Range"), "bytes=-") }
	whole := func(w http.ResponseWriter, r *http.Request, content []byte) bool {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return true
	}
	for _, test := range []struct {
		name string
		file string // "" for the middle one
		bad  misbehave
		want func(error) bool // nil when the mirror is read nevertheless
		hole bool             // the error is about blocks that are not there
	}{
		{"stalls", "", func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			if !fetching(r) {
				return false
			}
			w.Header().Set("Content-Range", fmt.Sprintf("%s/%d", strings.Replace(r.Header.Get("Range"), "=", " ", 1), len(content)))
			w.WriteHeader(http.StatusPartialContent)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}, is(remote.ErrStalled), false},
		{"truncates", "", func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			if !fetching(r) {
				return false
			}
			var first, last int
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)))
			w.Header().Set("Content-Length", fmt.Sprint(last-first+1))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[first : first+1])
			return true
		}, is(io.ErrUnexpectedEOF), false},
		{"lies about the length", "", func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			if !fetching(r) {
				return false
			}
			w.Header().Set("Content-Range", fmt.Sprintf("%s/%d", strings.Replace(r.Header.Get("Range"), "=", " ", 1), len(content)))
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[:1])
			return true
		}, protocol, false},
		{"wrong bytes", "", func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			return whole(w, r, damaged)
		}, digest, false},
		{"honest at both ends, wrong in between", "", func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			return fetching(r) && !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") && whole(w, r, damaged)
		}, digest, false},
		{"changes in between", "", func(n int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			if n > 1 {
				w.Header().Set("ETag", `"two"`)
				return whole(w, r, content)
			}
			return false
		}, as(func() any { return new(*remote.ChangedError) }), false},
		{"429, then fine", "", func(n int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if n < 3 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return n < 3
		}, nil, false},
		{"500s, then fine", "", func(n int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if n < 5 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			return n < 5
		}, nil, false},
		{"500s for ever", "", func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, status(500), true},
		{"404", "", func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.NotFound(w, r)
			return true
		}, status(404), true},
		{"no ranges", "", noRanges, nil, false},
		{"damaged without ranges", "", func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			r.Header.Del("Range")
			return whole(w, r, damaged)
		}, digest, false},
		{"not an era file", "", func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return whole(w, r, []byte(strings.Repeat("<html>sorry</html>", 100)))
		}, as(func() any { return new(*era.CorruptError) }), true},
		{"redirects in circles", "", func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, func(err error) bool { return strings.Contains(err.Error(), "redirects") }, true},
		{"endless catalog", era.CatalogName, func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			line := []byte(strings.Repeat(strings.Repeat("0", 64)+"  other-file\n", 1000))
			for {
				if _, err := w.Write(line); err != nil {
					return true
				}
			}
		}, is(remote.ErrTooLarge), false},
		{"catalog of nonsense", era.CatalogName, func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return whole(w, r, []byte("<html>not found</html>"))
		}, func(err error) bool { return strings.Contains(err.Error(), "line 1") }, false},
		{"no catalog", era.CatalogName, func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.NotFound(w, r)
			return true
		}, status(404), false},
		{"another chain's catalog", era.CatalogName, func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return whole(w, r, []byte(strings.Repeat("0", 64)+"  other-file\n"))
		}, func(err error) bool { return strings.Contains(err.Error(), `chain "test"`) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := eraFolderOf(t, mirrorFiles(35), nil)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(files)
				defer m.close()
				file := test.file
				if file == "" {
					file = name
				}
				m.bad[file] = test.bad
				temporary := NewTemporary(dir, 1<<20)
				alone := sinkOfAny(1000)
				_, err := FillFrom(t.Context(), []Candidate{m.candidate("mirror", 0, temporary)}, Options{Ranges: wholeChain, Sink: alone.open}, nil)
				switch {
				case test.want == nil && (err != nil || len(alone.durable) != testBlocks):
					t.Errorf("alone: got %v", err)
				case test.want != nil && (err == nil || !test.want(err)):
					t.Errorf("alone: got %v", err)
				case test.want != nil && strings.Contains(err.Error(), "secret"):
					t.Errorf("alone: message %q", err)
				}
				var hole *era.HoleError
				if test.hole != errors.As(err, &hole) {
					t.Errorf("alone: got %v", err)
				}

				m.mu.Lock()
				clear(m.requests)
				m.mu.Unlock()
				both := sinkOfAny(1000)
				outcome, err := FillFrom(t.Context(), []Candidate{m.candidate("mirror", 0, temporary), {
					ID: "folder", Priority: 1, Open: func(context.Context) (Source, error) { return folder, nil },
				}}, Options{Ranges: wholeChain, Sink: both.open}, nil)
				if err != nil || both.problem != nil || !slices.Equal(both.durable, numbersOf(wholeChain)) {
					t.Fatal("both: ", outcome, err, both.problem)
				}
				switch {
				case test.want == nil:
					if len(outcome.Failures) != 0 || outcome.Supplied["mirror"] != testBlocks {
						t.Errorf("both: %v, %v", outcome.Failures, outcome.Supplied)
					}
				case test.hole: // what the file holds is not known; it is told all the same
					if len(outcome.Failures) != 1 || outcome.Supplied["folder"] != 30 {
						t.Errorf("both: %v, %v", outcome.Failures, outcome.Supplied)
					}
				case len(outcome.Failures) != 1 || !test.want(outcome.Failures[0]):
					t.Errorf("both: %v", outcome.Failures)
				}
				if temporary.used != 0 {
					t.Errorf("%d bytes still reserved", temporary.used)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
					t.Errorf("%v left behind, %v", left, err)
				}
			})
		})
	}
}

// A file that the temporary disk cannot hold is an error that says so; with room for one file at a
// time the run takes one after the other.
func TestMirrorTemporaryDisk(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		for _, names := range []string{"test-part%d.ere", "test-%05d-00000000.ere"} {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(make(map[string][]byte))
				defer m.close()
				var largest int
				for i := range uint64(4) {
					name := fmt.Sprintf(names, 0)
					if i > 0 || strings.Contains(names, "part") {
						name = fmt.Sprintf(names, i)
					}
					m.files[name] = eraFileOf(testChain()[i*testBlocks/4:(i+1)*testBlocks/4], true)
					largest = max(largest, len(m.files[name]))
					if !ranges {
						m.bad[name] = noRanges
					}
				}
				if !strings.Contains(names, "part") { // such names promise full files, and these are not
					for name, content := range m.files {
						if name != "test-00000-00000000.ere" {
							delete(m.files, name)
							_ = content
						}
					}
					m.files["test-00000-00000000.ere"] = eraFileOf(testChain(), true)
					largest = len(m.files["test-00000-00000000.ere"])
				}
				fill := func(limit int) (int, error) {
					temporary := NewTemporary(t.TempDir(), int64(limit))
					sink := sinkOfAny(1000)
					_, err := FillFrom(t.Context(), []Candidate{m.candidate("mirror", 0, temporary)}, Options{Ranges: wholeChain, Sink: sink.open, Workers: 1}, nil)
					if temporary.used != 0 {
						t.Errorf("%d bytes still reserved", temporary.used)
					}
					return len(sink.durable), err
				}
				if n, err := fill(largest); n != testBlocks || err != nil {
					t.Errorf("ranges %t, %s: %d blocks, %v", ranges, names, n, err)
				}
				if n, err := fill(largest - 1); n == testBlocks || !errors.Is(err, ErrTemporaryDisk) {
					t.Errorf("ranges %t, %s: %d blocks, %v", ranges, names, n, err)
				}
			})
		}
	}
}

// Where the server has no ranges, names tell the blocks of files that another one follows, and a name
// that does not tell the truth is found out when the file is opened.
func TestMirrorLyingName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(map[string][]byte{
			"test-00000-00000000.ere": eraFileOf(testChain()[:20], true),
			"test-00001-00000000.ere": eraFileOf(testChain()[20:], true),
		})
		defer m.close()
		for name := range m.files {
			m.bad[name] = noRanges
		}
		_, err := FillFrom(t.Context(), []Candidate{m.candidate("mirror", 0, NewTemporary(t.TempDir(), 1<<20))},
			Options{Ranges: []chain.Range{{From: 0, To: 10}}, Sink: sinkOfAny(1000).open}, nil)
		if err == nil || !strings.Contains(err.Error(), "holds blocks [0, 20) now, [0, 8192) when the catalog was read") {
			t.Error(err)
		}
	})
}

func TestNameRange(t *testing.T) {
	for name, want := range map[string]chain.Range{
		"test-00000-5ec1ffb8.era1":            {From: 0, To: 16384},
		"test-00021-af105ff1-noproofs.ere":    {From: 21 * 8192, To: 23 * 8192},
		"test-17034869-17034870-noproofs.ere": anyBlock,
		"test-00000.ere":                      anyBlock,
		"test-0000x-5ec1ffb8.ere":             anyBlock,
		"test-+0001-5ec1ffb8.ere":             anyBlock,
		"test-00000-5ec1ffbx.ere":             anyBlock,
		"test-":                               anyBlock,
	} {
		if got := nameRange("test", name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestMirrorsModel: several mirrors fail by a random schedule, some requests for a while and some for
// good; what is stored is the chain as long as one of them is good for each block, and never anything
// else.
//
// SRC-002, SRC-007
func TestMirrorsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		count := rapid.IntRange(2, 3).Draw(rt, "mirrors")
		files := make([]map[string][]byte, count)
		for i := range files {
			files[i] = rapid.SampledFrom(mirrorLayouts()).Draw(rt, "files")
		}
		trouble := rapid.IntRange(0, 60).Draw(rt, "percent of requests that fail")
		good := rapid.IntRange(-1, count-1).Draw(rt, "the good mirror")
		var problem error
		synctest.Test(t, func(t *testing.T) { problem = fillFromMirrors(t, seed, files, trouble, good) })
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}

// mirrorLayouts are the test chain in files of several lengths.
var mirrorLayouts = sync.OnceValue(func() (layouts []map[string][]byte) {
	for _, starts := range [][]uint64{nil, {1}, {199}, {35, 36}, {20, 50}, {10, 90, 150}, {64, 128, 192}} {
		layouts = append(layouts, mirrorFiles(starts...))
	}
	return layouts
})

func fillFromMirrors(t *testing.T, seed uint64, files []map[string][]byte, trouble, good int) error {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	failure := func(size int) (kind, place int) {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(100) >= trouble {
			return -1, 0
		}
		return random.IntN(7), random.IntN(max(size, 1))
	}
	var candidates []Candidate
	temporary := NewTemporary(t.TempDir(), 1<<20)
	for i, f := range files {
		m := newMirror(f)
		defer m.close()
		bad := func(_ int, w http.ResponseWriter, r *http.Request, content []byte) bool {
			kind, place := failure(len(content))
			switch kind {
			case 0:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 1:
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(http.StatusTooManyRequests)
			case 2:
				http.NotFound(w, r)
			case 3:
				w.Header().Set("ETag", `"other"`)
				http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(content))
			case 4:
				damaged := bytes.Clone(content)
				damaged[place] ^= 0x40
				http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(damaged))
			case 5:
				w.Header().Set("Content-Length", "100000")
				w.WriteHeader(http.StatusPartialContent)
			case 6:
				panic(http.ErrAbortHandler)
			default:
				return false
			}
			return true
		}
		if i != good {
			m.bad[era.CatalogName] = bad
			for name := range m.files {
				m.bad[name] = bad
			}
		}
		candidates = append(candidates, m.candidate(fmt.Sprint("mirror ", i), i, temporary))
	}
	sink := sinkOfAny(50)
	outcome, err := FillFrom(t.Context(), candidates, Options{Ranges: wholeChain, Sink: sink.open, Workers: 2}, nil)
	switch {
	case sink.problem != nil:
		return sink.problem
	case !slices.Equal(sink.durable, numbersOf(wholeChain)[:len(sink.durable)]):
		return fmt.Errorf("committed %v", sink.durable)
	case (err == nil) != (len(sink.durable) == testBlocks):
		return fmt.Errorf("%d blocks, error %v", len(sink.durable), err)
	case err != nil && good >= 0:
		return fmt.Errorf("mirror %d is good, got %w", good, err)
	case outcome.Committed != uint64(len(sink.durable)):
		return fmt.Errorf("outcome %+v, %d blocks", outcome.Result, len(sink.durable))
	case temporary.used != 0:
		return fmt.Errorf("%d bytes still reserved", temporary.used)
	}
	return nil
}

// Two mirrors that supply files by turns share disk space for one file at a time.
func TestMirrorsShareDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := mirrorFiles(40, 80, 120, 160)
		one, two := newMirror(make(map[string][]byte)), newMirror(make(map[string][]byte))
		defer one.close()
		defer two.close()
		largest := 0
		for i := range 5 {
			name := fmt.Sprintf("test-part%d.ere", i)
			largest = max(largest, len(files[name]))
			if i%2 == 0 {
				one.files[name] = files[name]
			} else {
				two.files[name] = files[name]
			}
		}
		temporary := NewTemporary(t.TempDir(), int64(largest))
		sink := sinkOfAny(1000)
		outcome, err := FillFrom(t.Context(), []Candidate{one.candidate("one", 0, temporary), two.candidate("two", 1, temporary)},
			Options{Ranges: wholeChain, Sink: sink.open, Workers: 1}, nil)
		if err != nil || outcome.Supplied["one"] != 120 || outcome.Supplied["two"] != 80 {
			t.Error(outcome, err)
		}
	})
}

// A cancellation ends a fetch at once, and is no failure of the mirror.
func TestMirrorCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(mirrorFiles(20, 50))
		defer m.close()
		m.bad["test-part1.ere"] = func(n int, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if n < 2 {
				return false
			}
			<-r.Context().Done()
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		sink := sinkOfAny(1000)
		start := time.Now()
		outcome, err := FillFrom(ctx, []Candidate{m.candidate("mirror", 0, NewTemporary(t.TempDir(), 1<<20))}, Options{Ranges: wholeChain, Sink: sink.open}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || len(outcome.Failures) != 0 || len(sink.durable) != 20 || time.Since(start) != 5*time.Second {
			t.Error(outcome, err, len(sink.durable), time.Since(start))
		}
	})
}
