package remote

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Version is what a server says about the content of a file.
type Version struct {
	Size int64 // bytes
	// ETag and LastModified are the header fields of these names, empty where the server sends none.
	ETag, LastModified string
}

// versionOf is the version that a response is part of, with the given size of the whole.
func versionOf(r *http.Response, size int64) Version {
	return Version{Size: size, ETag: r.Header.Get("ETag"), LastModified: r.Header.Get("Last-Modified")}
}

// compare gives a *ChangedError when the two are known to be different.
func (v Version) compare(before Version) error {
	switch {
	case v.Size != before.Size:
		return &ChangedError{"size", strconv.FormatInt(v.Size, 10), strconv.FormatInt(before.Size, 10)}
	case v.ETag != before.ETag && v.ETag != "" && before.ETag != "":
		return &ChangedError{"ETag", quote(v.ETag), quote(before.ETag)}
	case v.LastModified != before.LastModified && v.LastModified != "" && before.LastModified != "":
		return &ChangedError{"Last-Modified", quote(v.LastModified), quote(before.LastModified)}
	}
	return nil
}

// quote makes text of a server fit for a message.
func quote(s string) string {
	const limit = 80
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return strconv.Quote(s)
}

// contentRange is a run of bytes of a file, with the size of the whole. The last byte belongs to it.
type contentRange struct{ first, last, size int64 }

// parseContentRange reads the Content-Range of a 206 response (RFC 9110, section 14.4). A size that
// the server does not know, and anything that is not strictly of this form, is an error.
func parseContentRange(s string) (contentRange, error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	first, rest, okFirst := strings.Cut(rest, "-")
	last, size, okLast := strings.Cut(rest, "/")
	if !ok || !okFirst || !okLast {
		return contentRange{}, errors.New("not of the form bytes first-last/size")
	}
	var c contentRange
	for _, n := range []struct {
		text string
		to   *int64
	}{{first, &c.first}, {last, &c.last}, {size, &c.size}} {
		var err error
		if *n.to, err = parseDigits(n.text); err != nil {
			return contentRange{}, err
		}
	}
	if c.first > c.last || c.last >= c.size {
		return contentRange{}, fmt.Errorf("bytes %d to %d of %d", c.first, c.last, c.size)
	}
	return c, nil
}

// parseDigits reads a number without sign.
func parseDigits(s string) (int64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%s is not a number", quote(s))
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%s is out of range", quote(s))
	}
	return int64(n), nil
}

// parseRetryAfter reads the value of Retry-After (RFC 9110, section 10.2.3): seconds, or a date, of
// which those in the past mean at once. The result is at most limit. It is false for anything else.
func parseRetryAfter(s string, now time.Time, limit time.Duration) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, false
	}
	if strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n > uint64(math.MaxInt64/time.Second) {
			return limit, true
		}
		return min(time.Duration(n)*time.Second, limit), true
	}
	date, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	return min(max(date.Sub(now), 0), limit), true
}
