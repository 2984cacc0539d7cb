// Package pgversion knows which major versions of PostgreSQL servers may have, and databases may ask for.
package pgversion

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Oldest and Newest are the first and the last major version that is supported. Default is that of a database for which nobody
// says another: request, account or installation.
const (
	Oldest  = 16
	Newest  = 18
	Default = 16
)

// Supported reports whether a server may have a major version.
func Supported(major int) bool { return major >= Oldest && major <= Newest }

// Check refuses what is not supported: VALIDATION_ERROR on "postgresVersion".
func Check(major int) error {
	if Supported(major) {
		return nil
	}
	return fault.Invalid("postgresVersion", "must be %d to %d", Oldest, Newest)
}

// ErrNowhere is the refusal of a database of a major version that no server has which takes new databases: VALIDATION_ERROR on
// "postgresVersion", which names those that there are, in ascending order and each once.
func ErrNowhere(major int, there []int) *fault.Error {
	names := make([]string, len(there))
	for i, v := range there {
		names[i] = fmt.Sprint(v)
	}
	list := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		list = strings.Join(rest, ", ") + " and " + list
	}
	return fault.Invalid("postgresVersion", "no server has PostgreSQL %d: there are servers of %s", major, list)
}
