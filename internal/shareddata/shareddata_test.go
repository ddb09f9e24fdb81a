package shareddata

import (
	"runtime"
	"testing"
)

// outcome notes how a test would end.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper() {}

func (o *outcome) Skipf(string, ...any) {
	o.skipped = true
	runtime.Goexit()
}

func (o *outcome) Fatalf(string, ...any) {
	o.failed = true
	runtime.Goexit()
}

// Absent data skips a test, or fails it where the data is required.
func TestAbsentData(t *testing.T) {
	for _, required := range []string{"", "0", "1"} {
		t.Setenv(RequireVariable, required)
		o := &outcome{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Path(o, "no such file")
		}()
		<-ended
		if o.failed != (required == "1") || o.skipped == o.failed {
			t.Errorf("%s=%s: skipped %v, failed %v", RequireVariable, required, o.skipped, o.failed)
		}
	}
}
