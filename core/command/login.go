package command

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// The commands about logins of a database that stands are steps of one kind, so that their generations, those of the database's
// role set, are ordered together.
const ensureLogin Kind = "login.ensure"

// Secrets of these commands: the password that must work, and the one that must be refused.
const (
	secretNew = "new"
	secretOld = "old"
)

// ChangeLogin rotates the password of a login, or shuts the login out (Revocation, Expiry), and returns what was proven. If the
// server has no such login, Rotation is ReasonNotFound, and shutting it out succeeds with the proof that it is absent. If
// ValidUntil of a Rotation has passed by the server's clock, the rotation is done without trying the new password:
// role.Proof.Lapsed; so is one of a database that Configure keeps closed: role.Proof.Closed. ReasonDatabaseClosed: a rotation
// while the database is stopped.
type ChangeLogin struct {
	Returns[role.Proof] `json:"-"`
	DatabaseID          id.DatabaseID `json:"databaseId"`
	Username            string        `json:"username"`
	Want                role.Kind     `json:"want"` // Rotation, Revocation or Expiry
	// Verifier (SCRAM-SHA-256), ValidUntil and CredentialGeneration are what a rotation sets.
	Verifier             string     `json:"verifier,omitempty"`
	ValidUntil           *time.Time `json:"validUntil,omitempty"`
	CredentialGeneration int64      `json:"credentialGeneration,omitempty"`
	Generation           int64      `json:"-"`
	// NewPassword and OldPassword are used to prove that the first works and the second no longer does; an agent never stores
	// them. OldPassword is empty if there is none.
	NewPassword string `json:"-"`
	OldPassword string `json:"-"`
}

// About implements Command.
func (c ChangeLogin) About() About {
	return ofLogin(string(c.Want), c.DatabaseID, c.Username, c.Generation)
}

// Steps are those of all changes.
func (ChangeLogin) Steps() []string {
	return []string{string(role.Rotation), string(role.Revocation), string(role.Expiry)}
}

// Secrets are the passwords.
func (c ChangeLogin) Secrets() map[string]string { return passwords(c.NewPassword, c.OldPassword) }

func (c *ChangeLogin) receive(e Envelope) {
	c.Generation, c.NewPassword, c.OldPassword = e.Generation, e.Secrets[secretNew], e.Secrets[secretOld]
}

// MarshalJSON writes the time in its canonical form.
func (c ChangeLogin) MarshalJSON() ([]byte, error) {
	type fields ChangeLogin
	c.ValidUntil = canonicalTime(c.ValidUntil)
	return json.Marshal(fields(c))
}

// Check implements Command. Only a rotation may be of a login that came with the database.
func (c ChangeLogin) Check() error {
	switch {
	case !slices.Contains(c.Steps(), string(c.Want)):
		return Refuse(ReasonInvalid, "want is no change of a login")
	case c.Want != role.Rotation:
		return checkRole(c.DatabaseID, c.Username)
	}
	if err := checkDatabase(c.DatabaseID); err != nil {
		return err
	}
	switch {
	case !usernamePattern.MatchString(c.Username):
		return Refuse(ReasonInvalid, "username is none of a login")
	case c.CredentialGeneration < 0:
		return Refuse(ReasonInvalid, "credentialGeneration is negative")
	}
	return checkPassword(c.Verifier, c.NewPassword)
}

func ofLogin(step string, db id.DatabaseID, username string, generation int64) About {
	return About{Kind: ensureLogin, Step: step, Resource: "database/" + string(db) + "/login/" + username, Generation: generation}
}

// passwords are the secrets of a command, without empty ones.
func passwords(fresh, old string) map[string]string {
	secrets := map[string]string{}
	if fresh != "" {
		secrets[secretNew] = fresh
	}
	if old != "" {
		secrets[secretOld] = old
	}
	return secrets
}

// canonicalTime gives a time the same text whenever it is sent, whether it comes from a store or from a clock.
func canonicalTime(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC().Truncate(time.Microsecond)
	return &utc
}
