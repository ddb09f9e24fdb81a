package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// checker turns a document into a Config and collects what is wrong on the way.
type checker struct {
	doc      *document
	file     string
	config   *Config
	problems []Problem
}

// decode fills the Config by the shape of its types.
func (c *checker) decode() {
	c.table("", c.doc.tree, reflect.ValueOf(c.config).Elem())
}

// table decodes one TOML table into a struct.
func (c *checker) table(path string, t map[string]any, dst reflect.Value) {
	fields := fieldsOf(dst.Type())
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if !slices.Contains(known, key) {
			c.add(Problem{Kind: Unknown, Field: child(path, key), Message: "is not a known key", Fix: suggest(key, known)})
		}
	}
	for i := range fields {
		f := &fields[i]
		at := child(path, f.name)
		v, present := t[f.name]
		switch {
		case present:
			c.value(at, v, dst.Field(f.index), f)
		case f.required:
			c.missing(at, path)
			fallthrough
		default:
			absent(dst.Field(f.index), f)
		}
	}
}

// missing reports an absent key at the place of the table that should hold it.
func (c *checker) missing(at, table string) {
	p := Problem{Kind: Missing, Field: at, Message: "is required", Fix: "add the key"}
	if where, ok := c.doc.at[table]; ok {
		p.Line, p.Column = where.line, where.column
	}
	c.add(p)
}

// absent gives a field the value of an absent key.
func absent(dst reflect.Value, f *field) {
	if f.fallback != "" {
		if err := setText(dst, f.fallback); err != nil {
			panic(fmt.Sprintf("BUG: config: default %q of %s: %v", f.fallback, f.name, err))
		}
		return
	}
	if _, isScalar := dst.Addr().Interface().(scalar); isScalar || dst.Kind() != reflect.Struct {
		return
	}
	fields := fieldsOf(dst.Type())
	for i := range fields {
		absent(dst.Field(fields[i].index), &fields[i])
	}
}

// setText sets a scalar field from the text of its default tag.
func setText(dst reflect.Value, s string) error {
	if v, ok := dst.Addr().Interface().(scalar); ok {
		return v.fromTOML(s)
	}
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(s)
	case reflect.Bool:
		dst.SetBool(s == "true")
	case reflect.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		dst.SetInt(n)
		return err
	case reflect.Uint16, reflect.Uint64:
		n, err := strconv.ParseUint(s, 10, 64)
		dst.SetUint(n)
		return err
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		dst.SetFloat(n)
		return err
	default:
		return fmt.Errorf("no default for a %s", dst.Kind())
	}
	return nil
}

// value decodes one value into a field or array element.
func (c *checker) value(at string, v any, dst reflect.Value, f *field) {
	if s, ok := dst.Addr().Interface().(scalar); ok {
		switch err := s.fromTOML(v); {
		case errors.Is(err, errMistyped):
			c.mistyped(at, v, s.grammar())
		case err != nil:
			c.invalid(at, v, err.Error(), s.grammar())
		case f.nonzero && dst.IsZero():
			c.invalid(at, v, "must not be zero", s.grammar())
		}
		return
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		c.value(at, v, dst.Elem(), f)
	case reflect.Struct:
		if t, ok := v.(map[string]any); ok {
			c.table(at, t, dst)
		} else {
			c.mistyped(at, v, "write a table")
		}
	case reflect.Slice:
		c.array(at, v, dst, f)
	case reflect.Map:
		if t, ok := v.(map[string]any); ok {
			dst.Set(reflect.ValueOf(t))
		} else {
			c.mistyped(at, v, "write a table")
		}
	case reflect.Interface:
		dst.Set(reflect.ValueOf(v))
	case reflect.String:
		if s, ok := v.(string); ok {
			dst.SetString(s)
			c.judge(at, v)(f.checkText(s))
		} else {
			c.mistyped(at, v, "write a string")
		}
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			dst.SetBool(b)
		} else {
			c.mistyped(at, v, "write true or false")
		}
	case reflect.Float64:
		switch n := v.(type) {
		case float64:
			dst.SetFloat(n)
			c.judge(at, v)(f.checkNumber(n))
		case int64:
			dst.SetFloat(float64(n))
			c.judge(at, v)(f.checkNumber(float64(n)))
		default:
			c.mistyped(at, v, "write a number")
		}
	default:
		n, ok := v.(int64)
		if !ok {
			c.mistyped(at, v, "write an integer without quotes")
			return
		}
		wrong, fix := f.checkNumber(float64(n))
		if wrong == "" && f.multipleOf > 0 && uint64(n)%f.multipleOf != 0 {
			wrong, fix = "does not divide evenly", fmt.Sprintf("write a multiple of %d", f.multipleOf)
		}
		c.judge(at, v)(wrong, fix)
		switch {
		case wrong != "":
		case dst.CanInt():
			dst.SetInt(n)
		default:
			dst.SetUint(uint64(n)) // checkNumber refused what is negative or too large
		}
	}
}

// array decodes a TOML array into a slice.
func (c *checker) array(at string, v any, dst reflect.Value, f *field) {
	list, ok := v.([]any)
	if !ok {
		c.mistyped(at, v, "write an array")
		return
	}
	if len(list) < f.minItems {
		c.invalid(at, v, "has too few entries", fmt.Sprintf("write at least %d", f.minItems))
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(list), len(list)))
	of := &field{enum: f.enum, minLength: 1} // element constraints
	for i, e := range list {
		c.value(element(at, i), e, dst.Index(i), of)
		if text, ok := e.(string); ok && f.unique && slices.Contains(list[:i], any(text)) {
			c.invalid(element(at, i), e, "appears twice", "remove one of them")
		}
	}
}

// judge reports a constraint that does not hold.
func (c *checker) judge(at string, v any) func(wrong, fix string) {
	return func(wrong, fix string) {
		if wrong != "" {
			c.invalid(at, v, wrong, fix)
		}
	}
}

func (c *checker) mistyped(at string, v any, fix string) {
	c.add(Problem{Kind: Mistyped, Field: at, Value: render(v), Message: "has the wrong type", Fix: fix})
}

func (c *checker) invalid(at string, v any, wrong, fix string) {
	c.add(Problem{Kind: Invalid, Field: at, Value: render(v), Message: wrong, Fix: fix})
}

// add completes a problem with its file and, unless set, the place of its key.
func (c *checker) add(p Problem) {
	p.File = c.file
	if where, ok := c.doc.at[p.Field]; ok && p.Line == 0 {
		p.Line, p.Column = where.line, where.column
	}
	c.problems = append(c.problems, p)
}

// result is nil, or all problems in the order of the file.
func (c *checker) result() error {
	if len(c.problems) == 0 {
		return nil
	}
	sort.SliceStable(c.problems, func(i, j int) bool {
		a, b := c.problems[i], c.problems[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return &Error{Path: c.file, Problems: c.problems}
}

// render shows a value as TOML writes it, shortened.
func render(v any) string {
	const limit = 80
	var s string
	switch v := v.(type) {
	case string:
		s = strconv.Quote(v)
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v[:min(len(v), 4)] {
			parts = append(parts, render(e))
		}
		if len(v) > len(parts) {
			parts = append(parts, "…")
		}
		s = "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		s = "{…}"
	default:
		s = fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

// suggest names the known key nearest to a mistyped one, or all of them.
func suggest(key string, known []string) string {
	best, distance := "", len(key)/3+1
	for _, k := range known {
		if d := edits(key, k); d <= distance {
			if d < distance || best == "" {
				best, distance = k, d
			}
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %s?", best)
	case len(known) == 0:
		return "the table has no keys"
	case len(known) <= 8:
		return "known here: " + strings.Join(known, ", ")
	}
	return "remove it"
}

// edits is the Levenshtein distance of two short words; long ones are not worth measuring.
func edits(a, b string) int {
	const limit = 64
	if len(a) > limit || len(b) > limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := previous
			if a[i] != b[j] {
				cost++
			}
			previous = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
