package driver

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
)

// operator runs the operator's commands, as one would on a command line.
type operator struct{ r *real }

// admin runs "pgherd admin", and reads its JSON answer into out unless that is nil.
func (o operator) admin(out any, args ...string) error {
	text, err := run("", o.r.program, o.r.env, append(append([]string{"admin"}, args...), "--json")...)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// NewAccount implements spec.Operator.
func (o operator) NewAccount(plan string) (spec.Account, error) {
	var answer struct{ AccountID, UserID string }
	email := strings.ToLower(rand.Text()) + "@example.org"
	err := o.admin(&answer, "account", "create", "--email", email, "--name", "Somebody", "--plan", plan)
	return spec.Account{ID: answer.AccountID, UserID: answer.UserID}, err
}

// SetQuota implements spec.Operator.
func (o operator) SetQuota(a spec.Account, databases int) error {
	text, _ := json.Marshal(databases) // a number always encodes
	return o.admin(nil, "account", "set", "--account", a.ID, "--max-databases", string(text))
}

// NewKey implements spec.Operator.
func (o operator) NewKey(a spec.Account, databases ...string) (spec.Key, error) {
	args := []string{"key", "create", "--account", a.ID, "--label", "a key"}
	if len(databases) > 0 {
		args = append(args, "--scope", "selected")
	}
	for _, db := range databases {
		args = append(args, "--database", db)
	}
	return o.key(args...)
}

// ReplaceKey implements spec.Operator.
func (o operator) ReplaceKey(k spec.Key) (spec.Key, error) {
	return o.key("key", "replace", "--key", k.ID)
}

func (o operator) key(args ...string) (spec.Key, error) {
	var answer struct{ KeyID, APIKey string }
	err := o.admin(&answer, args...)
	o.r.secrets.add(answer.APIKey)
	return spec.Key{ID: answer.KeyID, Text: answer.APIKey}, err
}

// RevokeKey implements spec.Operator.
func (o operator) RevokeKey(k spec.Key) error { return o.admin(nil, "key", "revoke", "--key", k.ID) }

// SetMaintenance implements spec.Operator.
func (o operator) SetMaintenance(on bool) error {
	word := "off"
	if on {
		word = "on"
	}
	return o.admin(nil, "maintenance", word)
}

// MakeMember implements spec.Operator. There is no command for it: members are invited through the API, which has no routes for
// that yet.
func (o operator) MakeMember(database string, of spec.Account, role string) error {
	db, err := sql.Open("postgres", o.r.metadataURL)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it only gives its connections back
	_, err = db.Exec("INSERT INTO memberships (id, database_id, user_id, role) VALUES (gen_random_uuid(), $1, $2, $3)",
		database, of.UserID, role)
	return err
}

// ServerObjects implements spec.Operator.
func (o operator) ServerObjects() ([]string, error) {
	return query(o.r.server.URL("postgres"), 10*time.Second, `
		SELECT 'database ' || datname FROM pg_database
		UNION ALL
		SELECT CASE WHEN rolcanlogin THEN 'login ' ELSE 'role ' END || rolname FROM pg_roles`)
}
