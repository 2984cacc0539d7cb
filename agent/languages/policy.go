package languages

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says what to do about a trusted language other than PL/pgSQL. The zero value refuses each.
type Policy struct {
	// Accept lists languages by their exact names.
	Accept []string
	// Development lets every language pass; it is for the development host and for tests.
	Development bool
}

// Check returns an error that names the first entry of Accept that is no language's name.
func (p Policy) Check() error {
	for _, name := range p.Accept {
		if name == "" || strings.ContainsAny(name, "*, \t\r\n") {
			return fmt.Errorf("accepted languages: %q is no language's name, such as \"plperl\"", name)
		}
	}
	return nil
}

// Passes says whether an agent may work beside a language.
func (p Policy) Passes(f Found) bool { return p.Development || p.Accepts(f) }

// Accepts says whether the operator has accepted a language by its name.
func (p Policy) Accepts(f Found) bool { return slices.Contains(p.Accept, f.Name) }

// Admit returns a Refusal that names every language that does not pass.
func (p Policy) Admit(all []Found) error {
	refused := slices.DeleteFunc(slices.Clone(all), p.Passes)
	if len(refused) == 0 {
		return nil
	}
	return &Refusal{refused}
}

// Refusal is the error for languages that do not pass.
type Refusal struct{ Languages []Found }

// Is reports whether an error is a Refusal.
func Is(err error) bool { return errors.As(err, new(*Refusal)) }

func (r *Refusal) Error() string {
	var texts, names []string
	for _, f := range r.Languages {
		texts = append(texts, f.String())
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return fmt.Sprintf("customers can use trusted procedural languages besides plpgsql: %s. An endless loop in one cannot be "+
		"ended, and holds up every rotation of its login. Remove the packages that bring them, and drop what is installed; or "+
		"accept them with --accept-languages %s", strings.Join(texts, ", "), strings.Join(names, ","))
}
