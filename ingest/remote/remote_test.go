package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leani-go/leani/internal/pipenet"
)

// content is the file that the server of the tests has.
var content = func() []byte {
	b := make([]byte, 700<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}()

// server runs a handler, which is told how many requests came before, in the bubble of a test, and
// opens a folder on it.
func server(t *testing.T, o Options, handler func(n int, w http.ResponseWriter, r *http.Request)) (*Folder, *int) {
	t.Helper()
	network := pipenet.New()
	var mu sync.Mutex
	count := new(int)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := *count
		*count++
		mu.Unlock()
		handler(n, w, r)
	})}
	go func() { _ = s.Serve(network) }()
	o.AllowInsecure, o.Dial = true, network.Dial
	o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	o.Jitter = func() float64 { return 0 }
	if o.PieceBytes == 0 {
		o.PieceBytes = 100 << 10
	}
	f, err := Open("http://mirror.test/secret/path/", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		_ = s.Close()
	})
	return f, count
}

// serve answers as a good server does.
func serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(content))
}

// memory is a file in memory.
type memory struct {
	mu sync.Mutex
	b  []byte
}

func (m *memory) WriteAt(b []byte, offset int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if need := int(offset) + len(b); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[offset:], b), nil
}

// fetch reads the end of the file and then all of it.
func fetch(f *Folder) ([]byte, error) {
	_, version, err := f.Tail(context.Background(), "a", 40)
	if err != nil {
		return nil, err
	}
	var m memory
	err = f.Fetch(context.Background(), "a", version, &m)
	return m.b, err
}

func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, count := server(t, Options{}, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r) })
		tail, version, err := f.Tail(t.Context(), "a", 40)
		if err != nil || !bytes.Equal(tail, content[len(content)-40:]) || version.Size != int64(len(content)) || version.ETag != `"one"` {
			t.Errorf("%d bytes, %+v, %v", len(tail), version, err)
		}
		if all, _, err := f.Tail(t.Context(), "a", 1<<30); err != nil || !bytes.Equal(all, content) {
			t.Errorf("%d bytes, %v", len(all), err)
		}
		part := make([]byte, 1000)
		if err := f.ReadRange(t.Context(), "a", version, part, 5000); err != nil || !bytes.Equal(part, content[5000:6000]) {
			t.Error(err)
		}
		if all, err := f.Read(t.Context(), "a", int64(len(content))); err != nil || !bytes.Equal(all, content) {
			t.Error(err)
		}
		if _, err := f.Read(t.Context(), "a", int64(len(content)-1)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		*count = 0
		if got, err := fetch(f); err != nil || !bytes.Equal(got, content) || *count != 8 {
			t.Errorf("%d bytes in %d requests, %v", len(got), *count, err)
		}
		var m memory
		if v, err := f.FetchWhole(t.Context(), "a", 1<<20, &m); err != nil || !bytes.Equal(m.b, content) || v != version {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// counts says how often something was counted before.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) count(s string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.of[s]++
	return c.of[s] - 1
}

// partOf is the run of bytes that a request asks for.
func partOf(r *http.Request) (first, last int) {
	header := r.Header.Get("Range")
	if n, err := fmt.Sscanf(header, "bytes=-%d", &last); n == 1 && err == nil {
		return len(content) - last, len(content) - 1
	}
	if n, _ := fmt.Sscanf(header, "bytes=%d-%d", &first, &last); n != 2 {
		return 0, len(content) - 1
	}
	return first, last
}

// send sends a partial response of the given header and body.
func send(w http.ResponseWriter, contentRange string, length int, body []byte) {
	w.Header().Set("Content-Range", contentRange)
	if length >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(length))
	}
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(body)
}

// TestMisbehaviour: a server that fails for a while is asked again, one that contradicts itself is
// not, and every wait has an end.
func TestMisbehaviour(t *testing.T) {
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	status := func(code int) func(error) bool {
		return func(err error) bool {
			var s *StatusError
			return errors.As(err, &s) && s.Code == code
		}
	}
	protocol := func(text string) func(error) bool {
		return func(err error) bool {
			var p *ProtocolError
			return errors.As(err, &p) && strings.Contains(p.Reason, text)
		}
	}
	changed := func(what string) func(error) bool {
		return func(err error) bool {
			var c *ChangedError
			return errors.As(err, &c) && c.What == what
		}
	}
	redirect := func(err error) bool {
		var r *redirectError
		return errors.As(err, &r)
	}
	bad := func(n int) bool { return n >= 1 } // all but the first request
	var asked counts
	for _, test := range []struct {
		name        string
		handler     func(n int, w http.ResponseWriter, r *http.Request)
		want        func(error) bool // nil when the file is read
		most        time.Duration    // that it takes
		unavailable bool
	}{
		{"500s, then fine", func(n int, w http.ResponseWriter, r *http.Request) {
			if asked.count(r.Header.Get("Range")) < 4 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			serve(w, r)
		}, nil, time.Minute, false},
		{"500 for ever", func(n int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			status(502), 32 * time.Second, true},
		{"404", func(n int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, status(404), 0, false},
		{"416", func(n int, w http.ResponseWriter, r *http.Request) {
			if bad(n) {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			serve(w, r)
		}, changed("size"), 0, false},
		{"429 for ever", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, status(429), 3 * time.Minute, true},
		{"no header", func(n int, w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(err error) bool { return strings.Contains(err.Error(), "timeout") }, 5 * time.Minute, true},
		{"stalls", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), last-first+1, content[first:first+10])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, is(ErrStalled), 5 * time.Minute, true},
		{"drips", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			if !bad(n) {
				serve(w, r)
				return
			}
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), last-first+1, nil)
			for _, b := range content[first : last+1] {
				if _, err := w.Write([]byte{b}); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return
				}
			}
		}, is(ErrStalled), 5 * time.Minute, true},
		{"slow, but fast enough", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), last-first+1, nil)
			for first <= last {
				size := min(8<<10, last-first+1)
				if _, err := w.Write(content[first : first+size]); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-time.After(3 * time.Second):
				case <-r.Context().Done():
					return
				}
				first += size
			}
		}, nil, time.Hour, false},
		{"truncates and gets on", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), last-first+1, content[first:min(last+1, first+9000)])
		}, nil, time.Hour, false},
		{"truncates at once", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), last-first+1, content[first:first+1])
		}, is(io.ErrUnexpectedEOF), time.Minute, true},
		{"other part", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			if bad(n) {
				first, last = first+1, last+1
			}
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, min(last, len(content)-1), len(content)), -1, content[first:min(last+1, len(content))])
		}, protocol("the server sends"), 0, false},
		{"other end", func(n int, w http.ResponseWriter, r *http.Request) {
			send(w, fmt.Sprintf("bytes 0-39/%d", len(content)), -1, content[:40])
		}, protocol("asked for the last 40 bytes"), 0, false},
		{"lies about the length", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), 7, content[:7])
		}, protocol("with a Content-Length of 7"), 0, false},
		{"sends more", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)), -1, append(bytes.Clone(content[first:last+1]), make([]byte, 1<<20)...))
		}, protocol("more than the"), 0, false},
		{"no Content-Range", func(n int, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
		}, protocol("0 Content-Range fields"), 0, false},
		{"unknown size", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/*", first, last), -1, content[first:last+1])
		}, protocol("Content-Range"), 0, false},
		{"no ranges", func(n int, w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			serve(w, r)
		}, is(ErrNoRanges), 0, false},
		{"grows", func(n int, w http.ResponseWriter, r *http.Request) {
			first, last := partOf(r)
			send(w, fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)+min(n, 3)), -1, content[first:last+1])
		}, changed("size"), 0, false},
		{"new ETag", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"%v"`, n > 3))
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}, changed("ETag"), 0, false},
		{"new date", func(n int, w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Unix(int64(1e9+n), 0), bytes.NewReader(content))
		}, changed("Last-Modified"), 0, false},
		{"compressed", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			serve(w, r)
		}, protocol("content coding"), 0, false},
		{"304", func(n int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) },
			protocol("304"), 0, false},
		{"redirect loop", func(n int, w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
			redirect, 0, false},
		{"redirect to a file", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, redirect, 0, false},
		{"redirect with credentials", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://user:secret@mirror.test/")
			w.WriteHeader(http.StatusFound)
		}, redirect, 0, false},
		{"redirect to nonsense", func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/secret")
			w.WriteHeader(http.StatusFound)
		}, redirect, 0, false},
		{"redirect to another place", func(n int, w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/b/") {
				http.Redirect(w, r, "/b/a", http.StatusTemporaryRedirect)
				return
			}
			serve(w, r)
		}, nil, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _ := server(t, Options{}, test.handler)
				start := time.Now()
				got, err := fetch(f)
				if taken := time.Since(start); taken > test.most {
					t.Errorf("took %v, want at most %v", taken, test.most)
				}
				if test.want == nil {
					if err != nil || !bytes.Equal(got, content) {
						t.Fatalf("%d bytes, %v", len(got), err)
					}
					return
				}
				var failure *Error
				if err == nil || !test.want(err) || !errors.As(err, &failure) {
					t.Fatalf("got %v", err)
				}
				if strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "fetch http://mirror.test/…/a: ") {
					t.Errorf("message %q", err)
				}
				if Unavailable(err) != test.unavailable {
					t.Errorf("unavailable %t", Unavailable(err))
				}
			})
		})
	}
}

// An endless file ends at the limit.
func TestEndless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := server(t, Options{}, func(_ int, w http.ResponseWriter, r *http.Request) {
			for {
				if _, err := w.Write(content); err != nil {
					return
				}
			}
		})
		if _, err := f.Read(t.Context(), "a", 1<<20); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		var m memory
		if _, err := f.FetchWhole(t.Context(), "a", 1<<20, &m); !errors.Is(err, ErrTooLarge) || len(m.b) > 1<<20+copyBytes {
			t.Error(len(m.b), err)
		}
	})
}

// A wait that the server asks for is kept, and is bounded; the waits of other failures double.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		o := Options{Retrying: func(_ error, wait time.Duration) { waits = append(waits, wait) }, Attempts: 8, MaximumRetryAfter: time.Minute}
		f, _ := server(t, o, func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 0:
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
			case 1:
				w.Header().Set("Retry-After", time.Now().Add(9*time.Second).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				w.Header().Set("Retry-After", "99999999999999999999")
				w.WriteHeader(http.StatusServiceUnavailable)
			case 7:
				serve(w, r)
			default:
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		start := time.Now()
		if _, err := f.Read(t.Context(), "a", 1<<20); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{7 * time.Second, 9 * time.Second, time.Minute, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}
		var total time.Duration
		for i := range want {
			if waits[i] != want[i] {
				t.Errorf("waits %v, want %v", waits, want)
				break
			}
			total += want[i]
		}
		if time.Since(start) != total {
			t.Errorf("took %v, want %v", time.Since(start), total)
		}
		if f.options.Jitter = func() float64 { return 0.999 }; f.backoff(1) < f.options.Backoff/2 || f.backoff(1) > f.options.Backoff*6/10 || f.backoff(1000) > f.options.MaximumBackoff {
			t.Error(f.backoff(1), f.backoff(1000))
		}
	})
}

// A cancelled context ends a wait at once.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := server(t, Options{}, func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(700*time.Millisecond, cancel)
		start := time.Now()
		if _, err := f.Read(ctx, "a", 1); !errors.Is(err, context.Canceled) || time.Since(start) != 700*time.Millisecond {
			t.Error(time.Since(start), err)
		}
	})
}

// What a server asks to wait is not waited for when it is longer than there is time: the failure is told at once.
func TestNoTimeToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, count := server(t, Options{}, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := f.Read(ctx, "a", 1); !Unavailable(err) || *count != 1 || time.Since(start) != 0 {
			t.Error(time.Since(start), *count, err)
		}
	})
}

// A disk that fails is not the server's fault, and no second try.
func TestWriteFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, count := server(t, Options{Connections: 1}, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r) })
		err := f.Fetch(t.Context(), "a", Version{Size: int64(len(content))}, full{})
		if !errors.Is(err, errFull) || *count != 1 || Unavailable(err) {
			t.Error(*count, err)
		}
	})
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) WriteAt([]byte, int64) (int, error) { return 0, errFull }

// Certificates are verified, and an encrypted connection is not given up for an open one.
func TestTLS(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) }))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL+"/a", http.StatusFound)
			return
		}
		serve(w, r)
	}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer secure.Close()
	f, err := Open(secure.URL+"/", Options{AllowInsecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(t.Context(), "a", 1<<20); err == nil || Unavailable(err) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown certificate: got %v", err)
	}
	trusting, err := Open(secure.URL+"/", Options{AllowInsecure: true, RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	if err != nil {
		t.Fatal(err)
	}
	defer trusting.Close()
	if got, err := trusting.Read(t.Context(), "a", 1<<20); err != nil || !bytes.Equal(got, content) {
		t.Error(err)
	}
	var redirect *redirectError
	if _, err := trusting.Read(t.Context(), "down", 1<<20); !errors.As(err, &redirect) {
		t.Errorf("downgrade: got %v", err)
	}
}

// SRC-025
func TestEndpoints(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"https://mirror.test/era/":               true,
		"http://127.0.0.1:80/":                   true,
		"http://[::1]/":                          true,
		"http://localhost/":                      true,
		"http://mirror.test/":                    false,
		"https://mirror.test/era":                false,
		"https://user:secret@mirror.test/":       false,
		"https://mirror.test/?key=secret":        false,
		"https://mirror.test/#secret":            false,
		"ftp://mirror.test/secret/":              false,
		"https:///secret/":                       false,
		"https://secret%zz/":                     false,
		"file:///secret/":                        false,
		"//mirror.test/secret/":                  false,
		"https://mirror.test/secret/not-a-slash": false,
	} {
		f, err := Open(endpoint, Options{})
		if (err == nil) != good {
			t.Errorf("%s: %v", endpoint, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: message %q", endpoint, err)
		}
		if err == nil {
			f.Close()
		}
	}
	if f, err := Open("http://mirror.test/a b/", Options{AllowInsecure: true}); err != nil || f.url("x ?#%2f.ere") != "http://mirror.test/a%20b/x%20%3F%23%252f.ere" {
		t.Error(err)
	}
	proxied, err := Open("https://mirror.test/", Options{Attempts: 1, Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("secret") }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proxied.Read(t.Context(), "a", 1); !errors.Is(err, errProxy) || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// No more requests are under way than connections are allowed.
// SRC-009
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu            sync.Mutex
			busy, busiest int
		)
		f, _ := server(t, Options{Connections: 3, PieceBytes: 10 << 10}, func(_ int, w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			busy++
			busiest = max(busiest, busy)
			mu.Unlock()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			mu.Lock()
			busy--
			mu.Unlock()
			serve(w, r)
		})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if got, err := fetch(f); err != nil || !bytes.Equal(got, content) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if busiest != 3 {
			t.Errorf("%d requests at a time", busiest)
		}
	})
}
