package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText bounds a line of an error and a value in a log: their text may come out of files, and from servers.
const longestText = 4 << 10

// hidden tells whether a character of a text may do something to a terminal or hide what stands there: controls,
// and marks that reverse the direction of writing.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case utf8.RuneError:
		return false // what it stands for has been replaced
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// appendEscaped appends a text with hidden characters as \u escapes, which mean the same within strings of JSON, and
// with the mark of a wrong encoding for each byte that is no UTF-8.
func appendEscaped[T string | []byte](dst []byte, text T) []byte {
	for _, r := range string(text) {
		switch {
		case hidden(r) && r > 0xffff:
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case hidden(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// plain is a text as people may be shown it: on one line, escaped, and not too long.
func plain(text string) string {
	cut := len(text)
	if cut > longestText {
		for cut = longestText; cut > 0 && !utf8.RuneStart(text[cut]); cut-- {
		}
	}
	shown := string(appendEscaped(nil, text[:cut]))
	shown = strings.ReplaceAll(shown, "\n", `\n`)
	if cut < len(text) {
		shown += fmt.Sprintf("… (%d more bytes)", len(text)-cut)
	}
	return shown
}

// escapingWriter writes text escaped.
type escapingWriter struct {
	out io.Writer
	// rest is the beginning of a character whose end has not been written yet.
	rest []byte
}

// Write implements io.Writer.
func (w *escapingWriter) Write(b []byte) (int, error) {
	text := append(w.rest, b...)
	end := len(text)
	for back := 1; back <= min(utf8.UTFMax-1, end); back++ {
		if tail := text[end-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= back
			}
			break
		}
	}
	escaped := appendEscaped(nil, text[:end])
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := w.out.Write(escaped); err != nil {
		return 0, err
	}
	return len(b), nil
}

// plainHandler escapes what a text handler would write as it is.
type plainHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h plainHandler) Handle(ctx context.Context, r slog.Record) error {
	safe := slog.NewRecord(r.Time, r.Level, plain(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		safe.AddAttrs(plainAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, safe)
}

// WithAttrs implements slog.Handler.
func (h plainHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	safe := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		safe[i] = plainAttr(a)
	}
	return plainHandler{h.Handler.WithAttrs(safe)}
}

// WithGroup implements slog.Handler.
func (h plainHandler) WithGroup(name string) slog.Handler {
	return plainHandler{h.Handler.WithGroup(name)}
}

func plainAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		members := make([]slog.Attr, len(v.Group()))
		for i, m := range v.Group() {
			members[i] = plainAttr(m)
		}
		v = slog.GroupValue(members...)
	case slog.KindString, slog.KindAny:
		v = slog.StringValue(plain(v.String()))
	}
	return slog.Attr{Key: plain(a.Key), Value: v}
}
