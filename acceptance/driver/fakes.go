package driver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// fakeOperator calls the operator's use cases.
type fakeOperator struct{ s *service }

func (o fakeOperator) use() *operator.Operator { return o.s.hosts[0].Operator }

// NewAccount implements spec.Operator.
func (o fakeOperator) NewAccount(plan string) (spec.Account, error) {
	email := strings.ToLower(o.s.entropy.Base62(12)) + "@example.org"
	a, u, err := o.use().CreateAccount(context.Background(), operator.NewAccount{
		Email: email, Name: "Somebody", Plan: account.Plan(plan),
	})
	return spec.Account{ID: a.ID, UserID: u.ID, Email: email}, err
}

// SetQuota implements spec.Operator.
func (o fakeOperator) SetQuota(a spec.Account, databases int) error {
	_, err := o.use().ChangeAccount(context.Background(), a.ID, func(a *account.Account) {
		a.MaxDatabases = &databases
	})
	return err
}

// SetBytes implements spec.Operator.
func (o fakeOperator) SetBytes(a spec.Account, database, backups int64) error {
	_, err := o.use().ChangeAccount(context.Background(), a.ID, func(a *account.Account) {
		a.DatabaseBytes, a.BackupBytes = &database, &backups
	})
	return err
}

// SetPITR implements spec.Operator.
func (o fakeOperator) SetPITR(a spec.Account, days int) error {
	_, err := o.use().ChangeAccount(context.Background(), a.ID, func(a *account.Account) { a.PITRDays = &days })
	return err
}

// RunDrill implements spec.Operator.
func (o fakeOperator) RunDrill(of id.DatabaseID, at time.Time) error {
	return o.use().OrderDrill(context.Background(), operator.DrillOrder{DatabaseID: of, At: &at})
}

// SetPreviewCopies implements spec.Operator.
func (o fakeOperator) SetPreviewCopies(a spec.Account, on bool) error {
	_, err := o.use().ChangeAccount(context.Background(), a.ID, func(a *account.Account) { a.PreviewCopies = &on })
	return err
}

// OpenDatabase implements spec.Operator.
func (o fakeOperator) OpenDatabase(of id.DatabaseID, reason string) error {
	_, err := o.use().OpenDatabase(context.Background(), of, "somebody", reason)
	return err
}

// Suspend implements spec.Operator.
func (o fakeOperator) Suspend(a spec.Account, reason string) error {
	_, err := o.use().Suspend(context.Background(), a.ID, reason)
	return err
}

// Resume implements spec.Operator.
func (o fakeOperator) Resume(a spec.Account, reason string) error {
	_, err := o.use().Resume(context.Background(), a.ID, reason)
	return err
}

// RemoveMember implements spec.Operator.
func (o fakeOperator) RemoveMember(of id.DatabaseID, email string) error {
	_, err := o.use().RemovePerson(context.Background(), of, email)
	return err
}

// NewKey implements spec.Operator.
func (o fakeOperator) NewKey(a spec.Account, databases ...id.DatabaseID) (spec.Key, error) {
	n := keys.NewKey{AccountID: a.ID, Label: "a key", Scope: account.FullAccount}
	for _, db := range databases {
		n.Scope, n.Databases = account.SelectedDatabases, append(n.Databases, db)
	}
	key, text, err := o.use().CreateKey(context.Background(), n)
	return spec.Key{ID: key.ID, Text: text}, err
}

// SetKey implements spec.Operator.
func (o fakeOperator) SetKey(k spec.Key, expires string, networks ...string) error {
	var bounds keys.Bounds
	if expires != "" {
		end, err := account.ParseExpiry(expires)
		if err != nil {
			return err
		}
		bounds.Expires = &end
	}
	if len(networks) > 0 {
		list, err := network.ParseList("network", networks)
		if err != nil {
			return err
		}
		bounds.Networks = &list
	}
	_, err := o.use().BindKey(context.Background(), k.ID, bounds)
	return err
}

// ReplaceKey implements spec.Operator.
func (o fakeOperator) ReplaceKey(k spec.Key) (spec.Key, error) {
	key, text, err := o.use().ReplaceKey(context.Background(), k.ID, keys.Bounds{})
	return spec.Key{ID: key.ID, Text: text}, err
}

// RevokeKey implements spec.Operator.
func (o fakeOperator) RevokeKey(k spec.Key) error {
	return o.use().RevokeKey(context.Background(), k.ID)
}

// NewCIKey implements spec.Operator.
func (o fakeOperator) NewCIKey(a spec.Account) (spec.Key, error) {
	n, err := o.use().CreateNamespace(context.Background(), a.ID, o.s.entropy.Base62(12))
	if err != nil {
		return spec.Key{}, err
	}
	key, text, err := o.use().CreateCIKey(context.Background(), n.ID)
	return spec.Key{ID: key.ID, Text: text}, err
}

// QualifyExtensions implements spec.Operator.
func (o fakeOperator) QualifyExtensions() error {
	_, err := o.use().QualifyExtensions(context.Background(), o.s.server)
	return err
}

// RotateSecrets implements spec.Operator. The fake ring has one key for ever; what it encrypts is new all the same.
func (o fakeOperator) RotateSecrets() error {
	_, err := o.use().Ring.Reseal(context.Background())
	return err
}

// DropOldSecretKeys implements spec.Operator: there are none.
func (o fakeOperator) DropOldSecretKeys() error { return nil }

// RotateCertificateKey implements spec.Operator.
func (o fakeOperator) RotateCertificateKey(named id.CertificateKeyID) error {
	_, _, err := o.use().RotateCertificateKey(context.Background(), named)
	return err
}

// SetMaintenance implements spec.Operator.
func (o fakeOperator) SetMaintenance(on bool) error {
	return o.use().SetMaintenance(context.Background(), on)
}

// DeleteUnverified implements spec.Operator.
func (o fakeOperator) DeleteUnverified(of id.DatabaseID, reason string) error {
	_, err := o.use().DeleteUnverified(context.Background(), of, "operator", reason)
	return err
}

// CheckStorage implements spec.Operator.
func (o fakeOperator) CheckStorage() (wrong string, err error) {
	all, err := o.use().CheckStorage(context.Background(), "")
	for _, one := range all {
		wrong += one.Wrong
	}
	return wrong, err
}

// SetLifecycle implements spec.Operator.
func (o fakeOperator) SetLifecycle(of id.DatabaseID, action database.Event, reason string) error {
	_, op, err := o.use().SetLifecycle(context.Background(), of, action, someOrder(reason))
	if err != nil || op == nil {
		return err
	}
	return o.awaits(*op, nil)
}

// BackUp implements spec.Operator.
func (o fakeOperator) BackUp(of id.DatabaseID, reason string) error {
	return o.awaits(o.use().BackUp(context.Background(), of, someOrder(reason)))
}

// Restore implements spec.Operator.
func (o fakeOperator) Restore(of id.DatabaseID, file backup.Filename, reason string) error {
	return o.awaits(o.use().Restore(context.Background(), of, file, restore.Consents{}, someOrder(reason)))
}

// CreateDatabase implements spec.Operator.
func (o fakeOperator) CreateDatabase(a spec.Account, name, reason string) (id.DatabaseID, string, error) {
	made, err := o.use().CreateDatabase(context.Background(), a.ID,
		databases.CreateRequest{Name: name, DisplayName: name}, "", someOrder(reason))
	return made.Record.ID, made.Password, err
}

// PretendUpgrade implements spec.Operator.
func (o fakeOperator) PretendUpgrade(of id.DatabaseID) error {
	return o.s.store.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, of, func(r *database.Record) error {
			r.PostgresVersion, r.WayBack = 17, 16
			return nil
		})
	})
}

// ConfirmUpgrade implements spec.Operator.
func (o fakeOperator) ConfirmUpgrade(of id.DatabaseID, reason string) error {
	_, err := o.use().ConfirmUpgrade(context.Background(), of, someOrder(reason))
	return err
}

func someOrder(reason string) operation.Order { return operation.Order{By: "somebody", Reason: reason} }

// awaits waits until an operation has succeeded.
func (o fakeOperator) awaits(op operation.Operation, err error) error {
	for begun := time.Now(); err == nil && !op.Status.Final() && time.Since(begun) < waitTime; o.s.pass(time.Second) {
		op, err = o.use().Operation(context.Background(), op.ID)
	}
	if err == nil && op.Status != operation.Succeeded {
		err = fmt.Errorf("the operation is %s: %s", op.Status, op.ErrorText)
	}
	return err
}

// Undelete implements spec.Operator.
func (o fakeOperator) Undelete(of id.DatabaseID, reason string) error {
	_, err := o.use().Undelete(context.Background(), of, "operator", reason)
	return err
}

// SetFeature implements spec.Operator.
func (o fakeOperator) SetFeature(name string, on bool) error {
	return o.use().SetFeature(context.Background(), name, on)
}

// Enroll implements spec.Operator.
func (o fakeOperator) Enroll(of id.DatabaseID, route string) error {
	return o.use().Enroll(context.Background(), of, route)
}

// ActivateLegacyRoles implements spec.Operator.
func (o fakeOperator) ActivateLegacyRoles(of id.DatabaseID, on bool) error {
	if !on {
		return o.use().DeactivateLegacyRoles(context.Background(), of)
	}
	return o.use().ActivateLegacyRoles(context.Background(), of)
}

// SetCredentialValidity implements spec.Operator.
func (o fakeOperator) SetCredentialValidity(a spec.Account, d time.Duration) error {
	_, err := o.use().ChangeAccount(context.Background(), a.ID, func(a *account.Account) {
		a.CredentialValidity = &d
	})
	return err
}

// AddDeadServer implements spec.Operator.
func (o fakeOperator) AddDeadServer() (retire func() error, err error) {
	s, err := o.use().AddServer(context.Background(), operator.NewServer{
		Name: "dead", AgentURL: "https://dead.test:8090", Secret: agentSecret, PublicHost: "dead.test", PublicPort: 6432,
		Capacity: 1_000_000,
	})
	o.s.fleet.Server(s.ID).SetUnreachable(true)
	return func() error {
		_, err := o.use().ChangeServer(context.Background(), s.ID, func(s *server.Server) { s.Enabled = false })
		return err
	}, err
}

// EndChange implements spec.Operator.
func (o fakeOperator) EndChange(of id.DatabaseID, change id.OperationID, reason string) (found string, err error) {
	ended, err := o.use().EndChange(context.Background(), of, change,
		operation.Order{By: "operator", Reason: reason})
	return string(ended.Found), err
}

// MakeForeign implements spec.Operator.
func (o fakeOperator) MakeForeign(name string) error { o.s.agent.AddForeign(name); return nil }

// ServerObjects implements spec.Operator.
func (o fakeOperator) ServerObjects() (names []string, err error) {
	for _, name := range o.s.agent.Databases() {
		names = append(names, "database "+name)
	}
	for _, name := range o.s.agent.Logins() {
		names = append(names, "login "+name)
	}
	return names, nil
}

// fakeCustomers are applications that connect to the fake servers.
type fakeCustomers struct{ s *service }

func (c fakeCustomers) connect(l spec.Login) (spec.Session, error) {
	session, err := c.s.at(l.At).Connect(l.From, l.Database, l.Username, l.Password)
	if err != nil {
		return nil, err
	}
	return fakeSession{session}, nil
}

type fakeSession struct{ *fakeagent.Session }

// Ended implements spec.Session.
func (s fakeSession) Ended() bool { return !s.Alive() }

const noteStart, noteEnd = "INSERT INTO note VALUES (", ");"

// Write implements spec.Session.
func (s fakeSession) Write(notes ...string) error {
	if !s.Alive() {
		return errors.New("the connection is closed")
	}
	for _, note := range notes {
		if !s.Load(noteStart + strconv.Quote(note) + noteEnd + "\n") {
			return errors.New("the database is gone")
		}
	}
	return nil
}

// restoreText reads the notes back that fakeSession wrote.
func restoreText(file []byte) (notes []string, err error) {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(z); lines.Scan(); {
		quoted, ok := strings.CutPrefix(lines.Text(), noteStart)
		if !ok {
			continue
		}
		note, err := strconv.Unquote(strings.TrimSuffix(quoted, noteEnd))
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// fakeAgent is the connection to the agent.
type fakeAgent struct{ server *fakeagent.Server }

// Stop implements spec.Agent.
func (a fakeAgent) Stop() error { a.server.SetUnreachable(true); return nil }

// Start implements spec.Agent.
func (a fakeAgent) Start() error { a.server.SetUnreachable(false); return nil }

// SetFull implements spec.Agent.
func (a fakeAgent) SetFull(full bool) error { a.server.SetStorageFull(full); return nil }

// SetAway implements spec.Agent.
func (a fakeAgent) SetAway(away bool) error {
	a.server.SetStorage(map[bool]string{true: "the folder /backups: it is away"}[away])
	return nil
}
