package chain

import (
	"fmt"
	"strings"
)

// Finality is how firmly a block belongs to the chain. Levels are ordered: a higher one includes
// the lower. The zero value is no level.
type Finality uint8

// The levels, from lowest to highest.
const (
	// Unattested: a peer supplied the block, and nothing verified links it to the chain yet.
	Unattested Finality = iota + 1
	// Attested: headers lead from the block to one that a sync committee signed. A
	// reorganisation can still remove it.
	Attested
	// Finalized: consensus finality, or the word of a data set that holds final blocks alone.
	Finalized
)

// finalityWords are the words of each level, our own first. The others are older ones, which
// archives and exports of their time carry; they are read and never written.
var finalityWords = [...][]string{
	Unattested: {"unattested", "preview", "optimistic"},
	Attested:   {"attested", "included", "safe"},
	Finalized:  {"finalized"},
}

// ParseFinality reads the word of a level as the wire and the settings spell it ("attested") or as
// frames and manifests do ("Attested"). Older words are read as what they became: "preview" and
// "optimistic" are unattested, "included" and "safe" attested.
func ParseFinality(word string) (Finality, error) {
	for level, words := range finalityWords {
		for _, w := range words {
			if word == w || word == capitalized(w) {
				return Finality(level), nil
			}
		}
	}
	return 0, fmt.Errorf("finality %q: want unattested, attested or finalized", word)
}

// Satisfies tells whether a block of this level is firm enough where least is required.
func (f Finality) Satisfies(least Finality) bool { return f >= least }

// Valid tells whether f is one of the levels.
func (f Finality) Valid() bool { return Unattested <= f && f <= Finalized }

// String is the word on the wire, such as "attested".
func (f Finality) String() string {
	if !f.Valid() {
		return fmt.Sprintf("finality(%d)", uint8(f))
	}
	return finalityWords[f][0]
}

// Name is the word in frames and manifests, such as "Attested".
func (f Finality) Name() string { return capitalized(f.String()) }

func capitalized(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
