package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// field is what the tags of one struct field say.
type field struct {
	name     string
	index    int
	required bool
	nonzero  bool   // of the scalars of this package: 0 is refused
	fallback string // the value of an absent key, in the grammar of its type

	enum                 []string
	minimum, maximum     *float64
	multipleOf           uint64
	minLength, maxLength int
	minItems             int
	unique               bool
	pattern              *regexp.Regexp
}

// fieldsOf reads the tags of a settings struct. The tags are constants of this package, so a
// wrong one is a bug and panics; every test that loads a file would find it.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get("toml")
		if name == "-" {
			continue
		}
		f := field{name: name, index: i, fallback: sf.Tag.Get("default"), nonzero: sf.Tag.Get("leani") == "nonzero"}
		for tag := range strings.SplitSeq(sf.Tag.Get("jsonschema"), ",") {
			key, value, _ := strings.Cut(tag, "=")
			switch key {
			case "":
			case "required":
				f.required = true
			case "enum":
				f.enum = append(f.enum, value)
			case "minimum":
				f.minimum = number(value)
			case "maximum":
				f.maximum = number(value)
			case "multipleOf":
				f.multipleOf = uint64(*number(value))
			case "minLength":
				f.minLength = int(*number(value))
			case "maxLength":
				f.maxLength = int(*number(value))
			case "minItems":
				f.minItems = int(*number(value))
			case "uniqueItems":
				f.unique = value == "true"
			case "pattern":
				f.pattern = regexp.MustCompile(value)
			default:
				panic(fmt.Sprintf("BUG: config: %s.%s has the unknown tag %q", t, sf.Name, tag))
			}
		}
		out = append(out, f)
	}
	return out
}

func number(s string) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("BUG: config: tag number %q: %v", s, err))
	}
	return &n
}

// checkNumber tells what is wrong with an integer or float, and what to write.
func (f *field) checkNumber(n float64) (wrong, fix string) {
	switch {
	case len(f.enum) > 0:
		return f.checkEnum(strconv.FormatFloat(n, 'f', -1, 64), false)
	case math.IsNaN(n) || math.IsInf(n, 0):
		return "is not a finite number", "write a number"
	case f.minimum != nil && n < *f.minimum || f.maximum != nil && n > *f.maximum:
		if f.maximum == nil {
			return "is too small", fmt.Sprintf("write at least %.0f", *f.minimum)
		}
		return "is out of range", fmt.Sprintf("write a value from %.0f to %.0f", *f.minimum, *f.maximum)
	}
	return "", ""
}

// checkText tells what is wrong with a string, and what to write.
func (f *field) checkText(s string) (wrong, fix string) {
	switch n := len([]rune(s)); {
	case len(f.enum) > 0:
		return f.checkEnum(s, true)
	case n < f.minLength:
		return "is empty", "write a value or remove the key"
	case f.maxLength > 0 && n > f.maxLength:
		return "is too long", fmt.Sprintf("write at most %d characters", f.maxLength)
	case f.pattern != nil && !f.pattern.MatchString(s):
		return "has the wrong form", fmt.Sprintf("write text that matches %s", f.pattern)
	}
	return "", ""
}

func (f *field) checkEnum(s string, quote bool) (wrong, fix string) {
	words := make([]string, len(f.enum))
	for i, e := range f.enum {
		if e == s {
			return "", ""
		}
		if quote {
			e = strconv.Quote(e)
		}
		words[i] = e
	}
	if len(words) == 1 {
		return "is not supported", "write " + words[0]
	}
	return "is not one of the accepted values", "write one of " + strings.Join(words, ", ")
}
