package ingest

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/leani-go/leani/ingest/era"
	"github.com/leani-go/leani/ingest/remote"
)

// TestMirrorDown: when the files of a mirror cannot be had, planning ends with the files that are being looked at,
// however many these are, and with the mirror's error instead of one about blocks that it lacks.
func TestMirrorDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const files = 4 * lookers
		m := newMirror(make(map[string][]byte))
		defer m.close()
		for i := range files {
			name := fmt.Sprintf("test-part%d.ere", i)
			m.files[name] = []byte(name)
			m.bad[name] = func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		}
		o := m.remote()
		o.Connections = lookers // all of them fail at the same moment
		mirror, err := OpenEraMirror(t.Context(), "http://mirror.test/", "test", NewTemporary(t.TempDir(), 1<<20), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = mirror.Close() }()
		_, err = mirror.Plan(t.Context(), wholeChain[0])
		var hole *era.HoleError
		if !remote.Unavailable(err) || errors.As(err, &hole) {
			t.Errorf("got %v", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if asked := len(m.requests) - 1; asked > lookers+maximumUnavailable { // less the catalog
			t.Errorf("%d of %d files were asked for", asked, files)
		}
	})
}
