// Package floors knows what an agent may not work beside: programs older than the release that closes their known holes, and
// procedural languages in which a session cannot be ended. It says so of what it is shown, and watches what an agent works with.
package floors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/pgversion"
)

// Policy says what to do about a version below its floor, or about a language. The zero value refuses each.
type Policy struct {
	// Accept lists what the operator has checked. Versions are those that the programs report, exactly: a distribution that mends
	// a hole keeps the old number. Languages are exact names.
	Accept []string
	// Development lets everything pass; it is for the development host and for tests.
	Development bool
}

// CheckVersions returns an error that names the first entry of Accept that is no version that Parse takes.
func (p Policy) CheckVersions() error {
	for _, text := range p.Accept {
		if _, err := Parse(text); err != nil {
			return fmt.Errorf("--accept-versions: %w", err)
		}
	}
	return nil
}

// CheckLanguages returns an error that names the first entry of Accept that is no language's name.
func (p Policy) CheckLanguages() error {
	for _, name := range p.Accept {
		if name == "" || strings.ContainsAny(name, "*, \t\r\n") {
			return fmt.Errorf("accepted languages: %q is no language's name, such as \"plperl\"", name)
		}
	}
	return nil
}

// Accepts says whether the operator has accepted this very version or language.
func (p Policy) Accepts(what string) bool { return slices.Contains(p.Accept, what) }

// Verdict is what a policy says of a version.
type Verdict struct {
	Version
	Floor Number
	// Below says that the version is older than the floor, so that it has Holes unless somebody mended them.
	Below bool
	Holes []Hole
	// Accepted says that the operator has accepted exactly this version.
	Accepted bool
	// Unsupported says that it is a PostgreSQL of a major version that agents do not know.
	Unsupported bool
	// Passes says whether an agent may work with it.
	Passes bool
}

// Judge compares a version with the floor of its series. A series older than all floors is below the oldest one; one newer than
// all floors came after the holes were closed. A PostgreSQL of a major version that is not supported never passes.
func (p Policy) Judge(f Version) Verdict {
	if f.Program == PostgreSQL && !pgversion.Supported(f.Number[0]) {
		return Verdict{Version: f, Unsupported: true}
	}
	floor := floorOf(f)
	v := Verdict{Version: f, Floor: floor.Least, Below: f.Number[0] <= floor.Least[0] && !f.Number.AtLeast(floor.Least)}
	if !v.Below {
		v.Passes = true
		return v
	}
	v.Holes = floor.Holes
	v.Accepted = p.Accepts(f.Text)
	v.Passes = v.Accepted || p.Development
	return v
}

// floorOf is the floor of the version's own series, or else of the nearest one.
func floorOf(f Version) Floor {
	of := floors[f.Program]
	for _, floor := range of {
		if f.Number[0] <= floor.Least[0] {
			return floor
		}
	}
	return of[len(of)-1]
}

// Refusal is the error for what does not pass.
type Refusal struct{ text string }

// Is reports whether an error is a Refusal.
func Is(err error) bool { return errors.As(err, new(*Refusal)) }

func (r *Refusal) Error() string { return r.text }

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
	if v.Unsupported {
		return &Refusal{fmt.Sprintf("%s is not supported: install PostgreSQL %d to %d", v.Text, pgversion.Oldest, pgversion.Newest)}
	}
	return &Refusal{fmt.Sprintf("%s is older than %s and has known holes: %s. Install %s or later; or, if your distribution has "+
		"mended these holes in that very version, accept it with --accept-versions '%s'", v.Text, v.Floor, v.Known(), v.Floor, v.Text)}
}

// AdmitLanguages returns a Refusal that names every language that does not pass.
func (p Policy) AdmitLanguages(all []Language) error {
	var texts, names []string
	for _, l := range all {
		if p.Development || p.Accepts(l.Name) {
			continue
		}
		texts = append(texts, l.String())
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &Refusal{fmt.Sprintf("customers can use trusted procedural languages besides plpgsql: %s. An endless loop in one cannot "+
		"be ended, and holds up every rotation of its login. Remove the packages that bring them, and drop what is installed; or "+
		"accept them with --accept-languages %s", strings.Join(texts, ", "), strings.Join(names, ","))}
}
