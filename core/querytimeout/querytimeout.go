// Package querytimeout holds the profiles of query timeouts, and when a change of them may begin (spec, section "Query-timeout
// defaults").
package querytimeout

import (
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Profile names the defaults that a database's sessions get.
type Profile string

// The profiles. NotConfigured means that none was chosen: the service sets no timeouts, and a login has those of the server and
// its own.
const (
	NotConfigured Profile = "not_configured"
	Standard      Profile = "standard"
	Balanced      Profile = "balanced"
	Short         Profile = "short"
)

// Profiles are those that can be chosen, in the order of the docs.
var Profiles = []Profile{Standard, Balanced, Short}

// Values lists all of them for the API's description.
func (Profile) Values() []Profile { return append([]Profile{NotConfigured}, Profiles...) }

// PolicyVersion is that of the table below. Whoever changes a value adds one, and has the databases with that profile configured
// again.
const PolicyVersion = 1

// Limits are the timeouts of a profile.
type Limits struct{ Statement, Lock, IdleInTransaction time.Duration }

// Policy is the table of the spec.
var Policy = map[Profile]Limits{ //nolint:exhaustive // NotConfigured sets none
	Standard: {Statement: 60 * time.Second, Lock: 10 * time.Second, IdleInTransaction: 30 * time.Second},
	Balanced: {Statement: 30 * time.Second, Lock: 3 * time.Second, IdleInTransaction: 15 * time.Second},
	Short:    {Statement: 15 * time.Second, Lock: time.Second, IdleInTransaction: 5 * time.Second},
}

// Parse accepts a profile that can be chosen.
func Parse(s string) (Profile, error) { return fault.OneOf("profile", s, Profiles...) }
