package remote

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// What is read of a Content-Range, written again, is the same.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-0/1", "bytes 5-9/10", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes 0-10/10",
		"bytes 00-1/2", "bytes=0-1/2", "bytes  0-1/2", "bytes +0-1/2", "bytes 0-1/99999999999999999999", "", "bytes 0-1/2, 3-4/5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseContentRange(s)
		if err != nil {
			return
		}
		if c.first < 0 || c.first > c.last || c.last >= c.size {
			t.Fatalf("%q gives %+v", s, c)
		}
		again, err := parseContentRange(fmt.Sprintf("bytes %d-%d/%d", c.first, c.last, c.size))
		if err != nil || again != c {
			t.Fatalf("%q gives %+v, and again %+v, %v", s, c, again, err)
		}
	})
}

// No Retry-After means a wait that is negative or above the limit.
func FuzzRetryAfter(f *testing.F) {
	now := time.Unix(1_700_000_000, 0)
	for _, s := range []string{"0", "120", " 7 ", "-1", "1.5", "18446744073709551616", now.UTC().Format(http.TimeFormat),
		now.Add(time.Hour).UTC().Format(http.TimeFormat), now.Add(-time.Hour).UTC().Format(http.TimeFormat),
		"Fri, 31 Dec 9999 23:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "soon"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, limit := range []time.Duration{0, time.Minute, 1 << 62} {
			if d, ok := parseRetryAfter(s, now, limit); d < 0 || d > limit || !ok && d != 0 {
				t.Fatalf("%q gives %v, %t", s, d, ok)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true}, {"90", 90 * time.Second, true}, {"9000", time.Hour, true}, {"99999999999999999999999", time.Hour, true},
		{now.Add(5 * time.Second).UTC().Format(http.TimeFormat), 5 * time.Second, true},
		{now.Add(-5 * time.Second).UTC().Format(http.TimeFormat), 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", time.Hour, true},
		{"", 0, false}, {"-1", 0, false}, {"tomorrow", 0, false},
	} {
		if got, ok := parseRetryAfter(test.value, now, time.Hour); got != test.want || ok != test.ok {
			t.Errorf("%q: got %v, %t", test.value, got, ok)
		}
	}
}
