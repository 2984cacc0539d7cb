package command

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// EnsureDatabase creates the database and its logins as specified, opens it in the pooler, and proves that the owner can log in
// through it. ReasonNameTaken: the server has a database or login of that name that was not made by this service for this
// database. A closed one is a step of something larger: see Closed.
type EnsureDatabase struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID      `json:"databaseId"`
	AccountID     id.AccountID       `json:"accountId,omitempty"` // whose it is; empty where nobody knows
	Name          string             `json:"name"`
	RoleModel     database.RoleModel `json:"roleModel"`
	ConnectionCap int                `json:"connectionCap"` // 0: none
	Logins        []Login            `json:"logins"`
	// Closed leaves the database closed, and no log-in is proved: its data is yet to come. It completes no operation, so that
	// Close removes it; once the operation's Switch has opened it, the same command without Closed proves it.
	Closed bool `json:"closed,omitempty"`
	// BackupKey, of backup.KeyBytes, encrypts the database's backups. The agent keeps it as long as the database.
	BackupKey []byte `json:"-"`
}

// Login is the desired state of a login. Password is used to prove the owner's log-in; an agent never stores it.
type Login struct {
	Login    database.Login `json:"login"`
	Username string         `json:"username"`
	Verifier string         `json:"verifier"` // SCRAM-SHA-256
	Password string         `json:"-"`
}

// About implements Command.
func (c EnsureDatabase) About() About {
	about := ofDatabase("database.ensure", c.DatabaseID, 1)
	if c.Closed {
		about.Step = stepCloneEnsure
	}
	return about
}

// stepCloneEnsure is the step of a database that is closed until its data is in.
const stepCloneEnsure = "clone.ensure"

// Steps are those of a database for itself, and of one that a clone begins with.
func (c EnsureDatabase) Steps() []string { return []string{string(c.About().Kind), stepCloneEnsure} }

// backupKey is the name of the key among secrets. No login has it.
const backupKey = "backup key"

// Secrets are the key of the backups and, where log-ins are proved, the passwords by username.
func (c EnsureDatabase) Secrets() map[string]string {
	secrets := map[string]string{backupKey: base64.StdEncoding.EncodeToString(c.BackupKey)}
	if c.Closed {
		return secrets
	}
	for _, l := range c.Logins {
		if l.Password != "" {
			secrets[l.Username] = l.Password
		}
	}
	return secrets
}

func (c *EnsureDatabase) receive(e Envelope) {
	for i, l := range c.Logins {
		c.Logins[i].Password = e.Secrets[l.Username]
	}
	c.BackupKey, _ = base64.StdEncoding.DecodeString(e.Secrets[backupKey]) // Check refuses what is none
}

// MarshalJSON puts the logins in a fixed order.
func (c EnsureDatabase) MarshalJSON() ([]byte, error) {
	type fields EnsureDatabase
	c.Logins = slices.SortedFunc(slices.Values(c.Logins), func(a, b Login) int {
		return cmp.Or(cmp.Compare(a.Login, b.Login), cmp.Compare(a.Username, b.Username))
	})
	if c.Logins == nil {
		c.Logins = []Login{}
	}
	return json.Marshal(fields(c))
}

// Names are those of the database's roles.
func (c EnsureDatabase) Names() database.Names { return database.RoleNames(c.DatabaseID, c.Name) }

// Check demands exactly the logins of the role model, each under its own name with a verifier, and the owner's password where
// it is tried.
func (c EnsureDatabase) Check() error {
	if err := checkDatabase(c.DatabaseID); err != nil {
		return err
	}
	if _, err := id.Parse[id.AccountID](string(c.AccountID)); c.AccountID != "" && err != nil {
		return Refuse(ReasonInvalid, "accountId must be a UUID")
	}
	model, modelErr := database.ParseRoleModel(string(c.RoleModel))
	nameErr := database.ValidateName(c.Name)
	if modelErr != nil || nameErr != nil || c.ConnectionCap < 0 || c.ConnectionCap > maxConnections {
		return Refuse(ReasonInvalid, "name, roleModel or connectionCap cannot be")
	}
	if len(c.BackupKey) != backup.KeyBytes {
		return Refuse(ReasonInvalid, "the key of the backups is missing, or has not %d bytes", backup.KeyBytes)
	}
	seen := map[string]bool{}
	for _, l := range c.Logins {
		known := slices.Contains(model.Logins(), l.Login)
		if !known || l.Username != c.Names().Of(l.Login) || !verifierPattern.MatchString(l.Verifier) {
			return Refuse(ReasonInvalid, "login %q is not one of this database, or has no verifier", l.Login)
		}
		if l.Login == database.OwnerLogin && l.Password == "" && !c.Closed {
			return Refuse(ReasonInvalid, "the password of the owner is missing")
		}
		seen[l.Username] = true
	}
	if len(c.Logins) != len(model.Logins()) || len(seen) != len(c.Logins) {
		return Refuse(ReasonInvalid, "a %s database has the logins %v", model, model.Logins())
	}
	return nil
}

// SetAccess opens or closes the customer logins of a database, and ends open connections where asked. A lower generation than
// the highest admitted is ReasonStale, also where the same command was done before. ReasonFailed: a clone whose data is yet to
// come is not opened.
type SetAccess struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	Open          bool          `json:"open"`
	Disconnect    bool          `json:"disconnect"` // end open connections
	Generation    int64         `json:"-"`
}

// About implements Command.
func (c SetAccess) About() About { return ofDatabase("database.access", c.DatabaseID, c.Generation) }

func (c *SetAccess) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c SetAccess) Check() error { return checkDatabase(c.DatabaseID) }

// SetAllowlist makes the pooler admit only the given networks (none: every address) and closes connections from elsewhere. It
// belongs to no operation. ReasonStale as for SetAccess.
type SetAllowlist struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID  `json:"databaseId"`
	Networks      []netip.Prefix `json:"networks"`
	Generation    int64          `json:"-"`
}

// About implements Command.
func (c SetAllowlist) About() About {
	return ofDatabase("database.allowlist", c.DatabaseID, c.Generation)
}

func (c *SetAllowlist) receive(e Envelope) { c.Generation = e.Generation }

// MarshalJSON writes the networks as a set: their order and duplicates do not matter.
func (c SetAllowlist) MarshalJSON() ([]byte, error) {
	type fields SetAllowlist
	byText := func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) }
	c.Networks = slices.Compact(slices.SortedFunc(slices.Values(c.Networks), byText))
	if c.Networks == nil {
		c.Networks = []netip.Prefix{}
	}
	return json.Marshal(fields(c))
}

// Check implements Command.
func (c SetAllowlist) Check() error {
	if err := checkNetworks(c.Networks); err != nil {
		return err
	}
	return checkDatabase(c.DatabaseID)
}

func checkNetworks(networks []netip.Prefix) error {
	for _, n := range networks {
		if !n.IsValid() || n != n.Masked() || n.Addr().Is4In6() {
			return Refuse(ReasonInvalid, "networks: %q is no network", n)
		}
	}
	return nil
}
