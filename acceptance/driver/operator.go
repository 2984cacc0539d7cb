package driver

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// realOperator runs the operator's commands, as one would on a command line.
type realOperator struct{ r *realService }

// admin runs one command and returns what it answers.
func (o realOperator) admin(args ...string) (map[string]any, error) {
	ctx, cancel := soon()
	defer cancel()
	return o.r.Admin(ctx, args...)
}

// NewAccount implements spec.Operator.
func (o realOperator) NewAccount(plan string) (spec.Account, error) {
	email := strings.ToLower(rand.Text()) + "@example.org"
	made, err := o.admin("account", "create", "--email", email, "--name", "Somebody", "--plan", plan)
	return spec.Account{
		ID: id.AccountID(fmt.Sprint(made["accountId"])), UserID: id.UserID(fmt.Sprint(made["userId"])), Email: email,
	}, err
}

// SetQuota implements spec.Operator.
func (o realOperator) SetQuota(a spec.Account, databases int) error {
	_, err := o.admin("account", "set", "--account", string(a.ID), "--max-databases", strconv.Itoa(databases))
	return err
}

// SetBytes implements spec.Operator.
func (o realOperator) SetBytes(a spec.Account, database, backups int64) error {
	_, err := o.admin("account", "set", "--account", string(a.ID), "--database-bytes", strconv.FormatInt(database, 10),
		"--backup-bytes", strconv.FormatInt(backups, 10))
	return err
}

// SetPITR implements spec.Operator.
func (o realOperator) SetPITR(a spec.Account, days int) error {
	_, err := o.admin("account", "set", "--account", string(a.ID), "--pitr-days", strconv.Itoa(days))
	return err
}

// RunDrill implements spec.Operator.
func (o realOperator) RunDrill(of id.DatabaseID, at time.Time) error {
	_, err := o.admin("drill", "run", "--database", string(of), "--at", at.UTC().Format(time.RFC3339Nano))
	return err
}

// SetPreviewCopies implements spec.Operator.
func (o realOperator) SetPreviewCopies(a spec.Account, on bool) error {
	_, err := o.admin("account", "set", "--account", string(a.ID), "--preview-copies="+strconv.FormatBool(on))
	return err
}

// OpenDatabase implements spec.Operator.
func (o realOperator) OpenDatabase(of id.DatabaseID, reason string) error {
	_, err := o.admin("database", "open", "--database", string(of), "--reason", reason)
	return err
}

// Suspend implements spec.Operator.
func (o realOperator) Suspend(a spec.Account, reason string) error {
	_, err := o.admin("account", "suspend", "--account", string(a.ID), "--reason", reason)
	return err
}

// Resume implements spec.Operator.
func (o realOperator) Resume(a spec.Account, reason string) error {
	_, err := o.admin("account", "resume", "--account", string(a.ID), "--reason", reason)
	return err
}

// SetLifecycle implements spec.Operator.
func (o realOperator) SetLifecycle(of id.DatabaseID, action database.Event, reason string) error {
	_, err := o.admin("database", string(action), "--database", string(of), "--reason", reason, "--wait")
	return err
}

// BackUp implements spec.Operator.
func (o realOperator) BackUp(of id.DatabaseID, reason string) error {
	_, err := o.admin("database", "backup", "--database", string(of), "--reason", reason, "--wait")
	return err
}

// Restore implements spec.Operator.
func (o realOperator) Restore(of id.DatabaseID, file backup.Filename, reason string) error {
	_, err := o.admin("database", "restore", "--database", string(of), "--backup", string(file), "--reason", reason,
		"--yes", "--wait")
	return err
}

// CreateDatabase implements spec.Operator.
func (o realOperator) CreateDatabase(a spec.Account, name, reason string) (id.DatabaseID, string, error) {
	made, err := o.admin("database", "create", "--account", string(a.ID), "--name", name, "--reason", reason)
	password := fmt.Sprint(made["password"])
	o.r.secrets.add(password)
	return id.DatabaseID(fmt.Sprint(made["databaseId"])), password, err
}

// PretendUpgrade implements spec.Operator.
func (o realOperator) PretendUpgrade(of id.DatabaseID) error {
	_, err := query(o.r.MetadataURL(), statementTime,
		"UPDATE databases SET postgres_version = 17, way_back = 16 WHERE id = "+pq.QuoteLiteral(string(of)))
	return err
}

// ConfirmUpgrade implements spec.Operator.
func (o realOperator) ConfirmUpgrade(of id.DatabaseID, reason string) error {
	_, err := o.admin("database", "confirm-upgrade", "--database", string(of), "--reason", reason, "--yes")
	return err
}

// DeleteUnverified implements spec.Operator.
func (o realOperator) DeleteUnverified(of id.DatabaseID, reason string) error {
	_, err := o.admin("operation", "delete-unverified", "--database", string(of), "--reason", reason, "--yes")
	return err
}

// CheckStorage implements spec.Operator.
func (o realOperator) CheckStorage() (wrong string, err error) {
	ctx, cancel := soon()
	defer cancel()
	return o.r.CheckStorage(ctx)
}

// Undelete implements spec.Operator.
func (o realOperator) Undelete(of id.DatabaseID, reason string) error {
	_, err := o.admin("database", "recover", "--database", string(of), "--reason", reason)
	return err
}

// RemoveMember implements spec.Operator.
func (o realOperator) RemoveMember(of id.DatabaseID, email string) error {
	_, err := o.admin("member", "remove", "--database", string(of), "--email", email)
	return err
}

// NewKey implements spec.Operator.
func (o realOperator) NewKey(a spec.Account, databases ...id.DatabaseID) (spec.Key, error) {
	args := []string{"key", "create", "--account", string(a.ID), "--label", "a key"}
	if len(databases) > 0 {
		args = append(args, "--scope", "selected")
	}
	for _, db := range databases {
		args = append(args, "--database", string(db))
	}
	return o.key(args...)
}

// SetKey implements spec.Operator.
func (o realOperator) SetKey(k spec.Key, expires string, networks ...string) error {
	args := []string{"key", "set", "--key", string(k.ID)}
	if expires != "" {
		args = append(args, "--expires", expires)
	}
	for _, network := range networks {
		args = append(args, "--network", network)
	}
	_, err := o.admin(args...)
	return err
}

// ReplaceKey implements spec.Operator.
func (o realOperator) ReplaceKey(k spec.Key) (spec.Key, error) {
	return o.key("key", "replace", "--key", string(k.ID))
}

func (o realOperator) key(args ...string) (spec.Key, error) {
	made, err := o.admin(args...)
	key := spec.Key{ID: id.KeyID(fmt.Sprint(made["keyId"])), Text: fmt.Sprint(made["apiKey"])}
	o.r.secrets.add(key.Text)
	return key, err
}

// RevokeKey implements spec.Operator.
func (o realOperator) RevokeKey(k spec.Key) error {
	_, err := o.admin("key", "revoke", "--key", string(k.ID))
	return err
}

// NewCIKey implements spec.Operator.
func (o realOperator) NewCIKey(a spec.Account) (spec.Key, error) {
	made, err := o.admin("ci-namespace", "create", "--account", string(a.ID), "--name", rand.Text())
	if err != nil {
		return spec.Key{}, err
	}
	return o.key("ci-key", "create", "--namespace", fmt.Sprint(made["namespaceId"]))
}

// QualifyExtensions implements spec.Operator.
func (o realOperator) QualifyExtensions() error { return o.r.qualified() }

// RotateSecrets implements spec.Operator.
func (o realOperator) RotateSecrets() error {
	_, err := o.admin("secrets", "rotate")
	return err
}

// DropOldSecretKeys implements spec.Operator.
func (o realOperator) DropOldSecretKeys() error {
	_, err := o.admin("secrets", "prune", "--settle=0s")
	return err
}

// RotateCertificateKey implements spec.Operator.
func (o realOperator) RotateCertificateKey(named id.CertificateKeyID) error {
	_, err := o.admin("certificate-key", "rotate", "--key", string(named))
	return err
}

// SetMaintenance implements spec.Operator.
func (o realOperator) SetMaintenance(on bool) error {
	word := "off"
	if on {
		word = "on"
	}
	_, err := o.admin("maintenance", word)
	return err
}

// SetFeature implements spec.Operator.
func (o realOperator) SetFeature(name string, on bool) error {
	word := "disable"
	if on {
		word = "enable"
	}
	_, err := o.admin("feature", word, name)
	return err
}

// Enroll implements spec.Operator.
func (o realOperator) Enroll(of id.DatabaseID, route string) error {
	_, err := o.admin("enroll", "--database", string(of), "--route", route)
	return err
}

// ActivateLegacyRoles implements spec.Operator.
func (o realOperator) ActivateLegacyRoles(of id.DatabaseID, on bool) error {
	word := "deactivate"
	if on {
		word = "activate"
	}
	_, err := o.admin("legacy-roles", word, "--database", string(of))
	return err
}

// SetCredentialValidity implements spec.Operator.
func (o realOperator) SetCredentialValidity(a spec.Account, d time.Duration) error {
	_, err := o.admin("account", "set", "--account", string(a.ID), "--credential-validity", d.String())
	return err
}

// AddDeadServer implements spec.Operator. Nothing listens on the port of its agent.
func (o realOperator) AddDeadServer() (retire func() error, err error) {
	made, err := o.admin("server", "add", "--unchecked", "--name", rand.Text(), "--agent-url", "https://127.0.0.1:1",
		"--public-host", "dead.test", "--capacity", "1000000", "--connections", "0")
	if err == nil {
		_, err = query(o.r.MetadataURL(), statementTime, // it answered once
			"UPDATE servers SET postgres_version = 16 WHERE agent_url = 'https://127.0.0.1:1'")
	}
	return func() error {
		_, err := o.admin("server", "disable", "--server", fmt.Sprint(made["serverId"]))
		return err
	}, err
}

// EndChange implements spec.Operator.
func (o realOperator) EndChange(of id.DatabaseID, change id.OperationID, reason string) (found string, err error) {
	ended, err := o.admin("change", "end", "--database", string(of), "--change", string(change), "--reason", reason)
	return fmt.Sprint(ended["found"]), err
}

// MakeForeign implements spec.Operator: an administrator makes a database by hand.
func (o realOperator) MakeForeign(name string) error {
	_, err := query(o.r.Server.URL("postgres"), statementTime, "CREATE DATABASE "+pq.QuoteIdentifier(name))
	return err
}

// ServerObjects implements spec.Operator.
func (o realOperator) ServerObjects() ([]string, error) {
	return query(o.r.Server.URL("postgres"), 10*time.Second, `
		SELECT 'database ' || datname FROM pg_database
		UNION ALL
		SELECT CASE WHEN rolcanlogin THEN 'login ' ELSE 'role ' END || rolname FROM pg_roles`)
}
