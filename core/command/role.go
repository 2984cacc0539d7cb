package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// PrepareRole creates the role without permission to log in, grants it CONNECT in the owner's name, and sets its limit in the
// pooler. ReasonNameTaken: the server has a role of that name that this service did not make.
type PrepareRole struct {
	Returns[None]   `json:"-"`
	DatabaseID      id.DatabaseID      `json:"databaseId"`
	Username        string             `json:"username"`
	Want            only[prepared]     `json:"want"`
	AccessProfile   role.AccessProfile `json:"accessProfile,omitempty"`
	ConnectionLimit int                `json:"connectionLimit,omitempty"`
	Generation      int64              `json:"-"`
}

// About implements Command.
func (c PrepareRole) About() About {
	return ofLogin(c.Want.word(), c.DatabaseID, c.Username, c.Generation)
}

func (c *PrepareRole) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c PrepareRole) Check() error {
	if err := checkRole(c.DatabaseID, c.Username); err != nil {
		return err
	}
	return checkGrants(c.AccessProfile, c.ConnectionLimit)
}

// AdmitRole gives a prepared role its password and the grants of its access profile, lets it log in, and proves a log-in through
// the pooler. ReasonConnectRequired: the owner has revoked CONNECT, or, of a database with a single login, has not granted it to
// this very role; it cannot log in. ReasonDatabaseClosed: the database is stopped, and Stopped does not say so; where Configure
// keeps it closed, the role is admitted, and no log-in is tried. ReasonNotFound: the role was not prepared. ReasonAltered: the
// role, of a database with a single login, is not as it was prepared. ReasonFailed: the log-in does not work, and never will if
// ValidUntil has passed. ReasonUnavailable: among others, PgBouncer lets nobody in over TLS, which is looked at for a database
// with a single login. A role that is not admitted is shut, also where an earlier admission broke off after it had opened it.
type AdmitRole struct {
	Returns[None]   `json:"-"`
	DatabaseID      id.DatabaseID      `json:"databaseId"`
	Username        string             `json:"username"`
	Want            only[open]         `json:"want"`
	AccessProfile   role.AccessProfile `json:"accessProfile,omitempty"`
	ConnectionLimit int                `json:"connectionLimit,omitempty"`
	Verifier        string             `json:"verifier,omitempty"` // SCRAM-SHA-256
	ValidUntil      *time.Time         `json:"validUntil,omitempty"`
	// Stopped admits the role in a stopped database, too: it gets in once that is started, and no log-in is tried.
	Stopped    bool  `json:"stopped,omitempty"`
	Generation int64 `json:"-"`
	// Password is used to prove the log-in; an agent never stores it.
	Password string `json:"-"`
}

// About implements Command.
func (c AdmitRole) About() About {
	return ofLogin(c.Want.word(), c.DatabaseID, c.Username, c.Generation)
}

// Secrets are the password.
func (c AdmitRole) Secrets() map[string]string { return passwords(c.Password, "") }

func (c *AdmitRole) receive(e Envelope) {
	c.Generation, c.Password = e.Generation, e.Secrets[secretNew]
}

// MarshalJSON writes the time in its canonical form.
func (c AdmitRole) MarshalJSON() ([]byte, error) {
	type fields AdmitRole
	c.ValidUntil = canonicalTime(c.ValidUntil)
	return json.Marshal(fields(c))
}

// Check implements Command.
func (c AdmitRole) Check() error {
	if err := checkRole(c.DatabaseID, c.Username); err != nil {
		return err
	}
	if err := checkGrants(c.AccessProfile, c.ConnectionLimit); err != nil {
		return err
	}
	return checkPassword(c.Verifier, c.Password)
}

// RemoveRole revokes the platform's grants and drops the role, unless something in the account's databases depends on it: then
// the role is shut out and kept, and the dependencies are returned. Dependencies in databases of other accounts neither count
// nor are returned. It succeeds if the server has no such role.
type RemoveRole struct {
	Returns[role.Dependencies] `json:"-"`
	DatabaseID                 id.DatabaseID `json:"databaseId"`
	Username                   string        `json:"username"`
	Want                       only[remove]  `json:"want"`
	// AccountDatabases are the account's other databases, where dependencies count too.
	AccountDatabases []id.DatabaseID `json:"accountDatabases,omitempty"`
	Generation       int64           `json:"-"`
}

// About implements Command.
func (c RemoveRole) About() About {
	return ofLogin(c.Want.word(), c.DatabaseID, c.Username, c.Generation)
}

func (c *RemoveRole) receive(e Envelope) { c.Generation = e.Generation }

// MarshalJSON writes the databases as a set: their order and duplicates do not matter.
func (c RemoveRole) MarshalJSON() ([]byte, error) {
	type fields RemoveRole
	c.AccountDatabases = slices.Compact(slices.Sorted(slices.Values(c.AccountDatabases)))
	return json.Marshal(fields(c))
}

// Check implements Command.
func (c RemoveRole) Check() error {
	for _, db := range c.AccountDatabases {
		if err := checkDatabase(db); err != nil {
			return Refuse(ReasonInvalid, "accountDatabases has something that is no UUID")
		}
	}
	return checkRole(c.DatabaseID, c.Username)
}

// only is a member with one value: the step, which stands in the payload too.
type only[W interface{ word() string }] struct{}

type (
	prepared struct{}
	open     struct{}
	remove   struct{}
)

func (prepared) word() string { return "prepared" }
func (open) word() string     { return "open" }
func (remove) word() string   { return "remove" }

func (only[W]) word() string {
	var w W
	return w.word()
}

// MarshalText implements encoding.TextMarshaler.
func (o only[W]) MarshalText() ([]byte, error) { return []byte(o.word()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *only[W]) UnmarshalText(text []byte) error {
	if string(text) != o.word() {
		return fmt.Errorf("want is not %q", o.word())
	}
	return nil
}
