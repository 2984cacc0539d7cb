package versions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says what to do about a version below its floor. The zero value refuses each.
type Policy struct {
	// Accept lists versions, exactly as the programs report them, that the operator has checked: a distribution that mends a hole
	// keeps the old number. Each must be one that Parse takes.
	Accept []string
	// Development lets every version pass; it is for the development host and for tests.
	Development bool
}

// Check returns an error that names the first entry of Accept that is no version.
func (p Policy) Check() error {
	for _, text := range p.Accept {
		if _, err := Parse(text); err != nil {
			return fmt.Errorf("--accept-versions: %w", err)
		}
	}
	return nil
}

// Verdict is what a policy says of a version.
type Verdict struct {
	Found
	Floor Number
	// Below says that the version is older than the floor, so that it has Holes unless somebody mended them.
	Below bool
	Holes []Hole
	// Accepted says that the operator has accepted exactly this version.
	Accepted bool
	// Passes says whether an agent may work with it.
	Passes bool
}

// Judge compares a version with the floor of its series. A series older than all floors is below the oldest one; one newer than
// all floors came after the holes were closed.
func (p Policy) Judge(f Found) Verdict {
	floor := floorOf(f)
	v := Verdict{Found: f, Floor: floor.Least, Below: f.Number[0] <= floor.Least[0] && !f.Number.AtLeast(floor.Least)}
	if !v.Below {
		v.Passes = true
		return v
	}
	v.Holes = floor.Holes
	v.Accepted = slices.Contains(p.Accept, f.Text)
	v.Passes = v.Accepted || p.Development
	return v
}

// floorOf is the floor of the version's own series, or else of the nearest one.
func floorOf(f Found) Floor {
	of := floors[f.Program]
	for _, floor := range of {
		if f.Number[0] <= floor.Least[0] {
			return floor
		}
	}
	return of[len(of)-1]
}

// Refusal is the error for a version that does not pass.
type Refusal struct{ Verdict Verdict }

// Is reports whether an error is a Refusal.
func Is(err error) bool { return errors.As(err, new(*Refusal)) }

func (r *Refusal) Error() string {
	v := r.Verdict
	return fmt.Sprintf("%s is older than %s and has known holes: %s. Install %s or later; or, if your distribution has mended "+
		"these holes in that very version, accept it with --accept-versions '%s'", v.Text, v.Floor, v.Known(), v.Floor, v.Text)
}

// Known lists the holes in one line.
func (v Verdict) Known() string {
	texts := make([]string, 0, len(v.Holes))
	for _, h := range v.Holes {
		texts = append(texts, h.String())
	}
	return strings.Join(texts, "; ")
}

// Admit returns a Refusal for a version that does not pass.
func (v Verdict) Admit() error {
	if v.Passes {
		return nil
	}
	return &Refusal{v}
}
