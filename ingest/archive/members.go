package archive

// shape describes an object: the names of its members in the usual order, and which of them must be there.
type shape struct {
	names    []string
	required uint32 // bit by position in names
	strict   bool   // refuses other members, which are skipped otherwise
}

// first are the bits of the first n members.
func first(n int) uint32 { return 1<<n - 1 }

// object is an object that is being read.
type object struct {
	shape   *shape // nil: every member is other
	seen    uint32
	next    int // where the next name is expected
	start   int
	started bool
}

// What member gives beside the positions of names.
const (
	none  = -1 // no member follows
	other = -2 // a member of no shape
)

// object reads the start of an object.
func (s *scanner) object(sh *shape) object {
	s.expect('{')
	return object{shape: sh, start: s.pos - 1}
}

// member reads the name of the next member that the shape has and gives its position there; its value
// follows. It skips others, or refuses them when the shape is strict. After the last one it gives none, and
// refuses the object when something is missing. An error ends any object.
func (s *scanner) member(o *object) int {
	for s.err == nil {
		switch c := s.peek(); {
		case c == '}':
			s.pos++
			s.complete(o)
			return none
		case o.started && c != ',':
			s.unexpected("a comma or the end of the object")
			return none
		case o.started:
			s.pos++
		}
		o.started = true
		s.peek()
		at := s.pos
		name := s.str()
		s.expect(':')
		if s.err != nil {
			break
		}
		if o.shape == nil {
			return other
		}
		if i := o.find(name); i != none {
			if o.seen>>i&1 != 0 {
				s.failAt(at, "member %s is there twice", name)
				break
			}
			o.seen |= 1 << i
			o.next = i + 1
			return i
		}
		if o.shape.strict {
			s.failAt(at, "unknown member %q", name)
			break
		}
		s.skip()
	}
	return none
}

// find is the position of a name.
func (o *object) find(name []byte) int {
	names := o.shape.names
	if o.next < len(names) && string(name) == names[o.next] {
		return o.next
	}
	for i := range names {
		if string(name) == names[i] {
			return i
		}
	}
	return none
}

func (s *scanner) complete(o *object) {
	if o.shape == nil {
		return
	}
	if missing := o.shape.required &^ o.seen; missing != 0 {
		for i, name := range o.shape.names {
			if missing>>i&1 != 0 {
				s.failAt(o.start, "member %s is missing", name)
				return
			}
		}
	}
}
