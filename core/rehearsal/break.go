package rehearsal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind says what a break is of.
type Kind string

// The kinds of breaks.
const (
	Extension Kind = "extension" // the server does not have it, or not in the version of the database
	Collation Kind = "collation" // the server does not have it
	Type      Kind = "type"      // the server does not know it
	Word      Kind = "word"      // a name that means something else to the newer version
	Statement Kind = "statement" // anything else that cannot be loaded
	Different Kind = "different" // the copy did not become what the database is
)

// Kinds lists them.
var Kinds = []Kind{Extension, Collation, Type, Word, Statement, Different}

// Break is something of a database that another server does not take, or takes for something else.
type Break struct {
	Kind   Kind   `json:"kind"`
	Object string `json:"object,omitempty"` // as SQL names it; empty where What names it
	What   string `json:"what"`
	Remedy string `json:"remedy"` // what to do in the database, or at the server
}

func (b Break) String() string { return strings.TrimSpace(string(b.Kind)+" "+b.Object) + ": " + b.What }

// Bounds of what a rehearsal tells: of its breaks, and of the text of each, in bytes.
const (
	MostBreaks = 100
	mostText   = 500
)

// Bounded are at most MostBreaks breaks with texts that are not too long, of kinds that there are. Where some are left out, the
// last one says how many.
func Bounded(list []Break) []Break {
	kept := slices.Clone(list[:min(len(list), MostBreaks)])
	if more := len(list) - MostBreaks; more > 0 {
		kept[MostBreaks-1] = Break{
			Kind: list[MostBreaks-1].Kind, What: fmt.Sprintf("and %d more breaks", more+1), Remedy: "mend those first, and rehearse again",
		}
	}
	for i, b := range kept {
		if !slices.Contains(Kinds, b.Kind) {
			b.Kind = Statement
		}
		kept[i] = Break{b.Kind, bounded(b.Object), bounded(b.What), bounded(b.Remedy)}
	}
	return kept
}

func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), mostText)], "")
}

// Breaks are those of a report, as an agent sends them: bounded.
type Breaks []Break

// UnmarshalJSON bounds them.
func (b *Breaks) UnmarshalJSON(text []byte) error {
	var list []Break
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*b = Bounded(list)
	return nil
}

// restricted are the words that became part of PostgreSQL's own syntax: from a version on, a function or a type of such a name
// can only be meant in double quotes.
var restricted = map[int][]string{
	17: {
		"json", "json_exists", "json_query", "json_scalar", "json_serialize", "json_table", "json_value", "merge_action",
	},
}

// Restricted are the words that mean something else to a major version than to an older one, in order.
func Restricted(from, to int) (words []string) {
	for version, list := range restricted {
		if from < version && version <= to {
			words = append(words, list...)
		}
	}
	slices.Sort(words)
	return words
}
