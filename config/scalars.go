package config

import (
	"errors"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// scalar is a value type with a grammar of its own. fromTOML accepts what the TOML decoder
// yields (string, int64, ...) and reports errMistyped when the type can never fit.
type scalar interface {
	fromTOML(v any) error
	grammar() string // what to write, for the fix of a problem
}

var errMistyped = errors.New("wrong type")

// The patterns of the scalars, shared with the JSON schema.
const (
	// HumanBytesPattern is the text form of HumanBytes.
	HumanBytesPattern = `^[0-9]+(B|KiB|MiB|GiB|KB|MB|GB)$`
	// HumanDurationPattern is the text form of HumanDuration.
	HumanDurationPattern = `^[0-9]+(s|m|h|d)$`
	// HumanMillisecondsPattern is the text form of HumanMilliseconds.
	HumanMillisecondsPattern = `^[0-9]+(ms|s|m|h|d)$`
	// SocketAddressPattern is a first sieve for SocketAddress; the loader also checks the
	// address itself.
	SocketAddressPattern = `^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$`
	// AllowedHostPattern is the form of AllowedHost: a name or address without port.
	AllowedHostPattern = `^([^:/?#@*\s]+|\[[0-9a-fA-F:.]+\])$`
	// AllowedOriginPattern is the form of AllowedOrigin.
	AllowedOriginPattern = `^[hH][tT][tT][pP][sS]?://([^:/?#@*\s]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?$`
)

var (
	allowedHost   = regexp.MustCompile(AllowedHostPattern)
	allowedOrigin = regexp.MustCompile(AllowedOriginPattern)
)

// HumanBytes is a size in bytes. A file gives it as an integer, or as digits with one of the
// units B, KiB, MiB, GiB (powers of 1,024) and KB, MB, GB (powers of 1,000) right behind them.
type HumanBytes uint64

func (b *HumanBytes) fromTOML(v any) error {
	n, err := withUnit(v, map[string]uint64{
		"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	}, 1, math.MaxInt64)
	*b = HumanBytes(n)
	return err
}

func (*HumanBytes) grammar() string {
	return `write bytes as an integer, or digits and one of B, KiB, MiB, GiB, KB, MB, GB without a space, such as "64MiB"`
}

// String gives the size with the largest binary unit that divides it, in the grammar a file
// accepts.
func (b HumanBytes) String() string {
	for _, u := range []struct {
		size uint64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n := uint64(b); n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatUint(uint64(b), 10) + "B"
}

// HumanDuration is a span of whole seconds or longer. A file gives it as an integer of seconds,
// or as digits with one of the units s, m, h, d.
type HumanDuration time.Duration

func (d *HumanDuration) fromTOML(v any) error {
	n, err := withUnit(v, map[string]uint64{
		"s": uint64(time.Second), "m": uint64(time.Minute), "h": uint64(time.Hour), "d": uint64(24 * time.Hour),
	}, uint64(time.Second), math.MaxInt64)
	*d = HumanDuration(n)
	return err
}

func (*HumanDuration) grammar() string {
	return `write seconds as an integer, or digits and one of s, m, h, d, such as "24h"`
}

// HumanMilliseconds is a span of whole milliseconds or longer. A file gives it as an integer of
// milliseconds, or as digits with one of the units ms, s, m, h, d.
type HumanMilliseconds time.Duration

func (d *HumanMilliseconds) fromTOML(v any) error {
	n, err := withUnit(v, map[string]uint64{
		"ms": uint64(time.Millisecond), "s": uint64(time.Second), "m": uint64(time.Minute),
		"h": uint64(time.Hour), "d": uint64(24 * time.Hour),
	}, uint64(time.Millisecond), math.MaxInt64)
	*d = HumanMilliseconds(n)
	return err
}

func (*HumanMilliseconds) grammar() string {
	return `write milliseconds as an integer, or digits and one of ms, s, m, h, d, such as "250ms"`
}

// withUnit reads an integer, which counts in the plain unit, or digits followed by exactly one
// unit. The result is in the base unit and at most limit.
func withUnit(v any, units map[string]uint64, plain, limit uint64) (uint64, error) {
	var n, unit uint64
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return 0, errors.New("must not be negative")
		}
		n, unit = uint64(v), plain
	case string:
		digits := strings.TrimRight(v, "BKMGibmshd")
		size, known := units[v[len(digits):]]
		if !known || digits == "" {
			return 0, errors.New("is not a number with a unit")
		}
		for _, c := range digits { // ParseUint would also take a sign
			if c < '0' || c > '9' {
				return 0, errors.New("is not a number with a unit")
			}
		}
		var err error
		if n, err = strconv.ParseUint(digits, 10, 64); err != nil {
			return 0, errors.New("is too large")
		}
		unit = size
	default:
		return 0, errMistyped
	}
	if n > limit/unit {
		return 0, errors.New("is too large")
	}
	return n * unit, nil
}

// SocketAddress is a literal IP address with a port, IPv6 in brackets. Port 0 lets the
// operating system choose one. Host names are refused: what a listener binds must not depend
// on a resolver.
type SocketAddress struct{ netip.AddrPort }

func (a *SocketAddress) fromTOML(v any) error {
	s, ok := v.(string)
	if !ok {
		return errMistyped
	}
	p, err := netip.ParseAddrPort(s)
	if err != nil || p.Addr().Zone() != "" {
		return errors.New("is not an IP address with a port")
	}
	a.AddrPort = p
	return nil
}

func (*SocketAddress) grammar() string {
	return `write an IP address and a port, such as "127.0.0.1:8545" or "[::1]:8545"`
}

// Loopback tells whether only this machine can reach the address.
func (a SocketAddress) Loopback() bool { return a.Addr().Unmap().IsLoopback() }

// AllowedHost is a host name or address without scheme and port that a Host header may name,
// in lower case.
type AllowedHost string

func (h *AllowedHost) fromTOML(v any) error {
	s, ok := v.(string)
	if !ok {
		return errMistyped
	}
	if !allowedHost.MatchString(s) {
		return errors.New("is not a host")
	}
	*h = AllowedHost(strings.ToLower(s))
	return nil
}

func (*AllowedHost) grammar() string {
	return "write a host name, an IPv4 address or an IPv6 address in brackets, without scheme, port or wildcard"
}

// AllowedOrigin is a browser origin as browsers write it: scheme and host in lower case, and
// the port unless it is the scheme's own.
type AllowedOrigin string

func (o *AllowedOrigin) fromTOML(v any) error {
	s, ok := v.(string)
	if !ok {
		return errMistyped
	}
	u, err := url.Parse(s)
	if err != nil || !allowedOrigin.MatchString(s) {
		return errors.New("is not an origin")
	}
	host, scheme, port := strings.ToLower(u.Host), strings.ToLower(u.Scheme), u.Port()
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has no valid port")
		}
	}
	if scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	*o = AllowedOrigin(scheme + "://" + host)
	return nil
}

func (*AllowedOrigin) grammar() string {
	return `write http or https, "://", a host and an optional port, without path, wildcard or credentials`
}
