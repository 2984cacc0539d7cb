package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// fakeOnServer implements spec.OnServer on the fake server.
type fakeOnServer struct{ server *fakeagent.Server }

var errNoLogin = errors.New("the server has no such login")

func done(found bool) error {
	if !found {
		return errNoLogin
	}
	return nil
}

// Withdraw implements spec.OnServer.
func (h fakeOnServer) Withdraw(_ spec.Created, username string) error {
	return done(h.server.SetConnect(username, false))
}

// WithdrawAtOnce implements spec.OnServer: between the preparation of the role and its admission.
func (h fakeOnServer) WithdrawAtOnce(_ spec.Created, username string) (end func() error, err error) {
	h.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "AdmitRole" && c.Username == username {
			h.server.SetConnect(username, false)
		}
		return fakeagent.Fault{}
	})
	return func() error { h.server.OnCall(nil); return nil }, nil
}

// Owner implements spec.OnServer. The fake knows one statement.
func (h fakeOnServer) Owner(db spec.Created, statement string) error {
	var name, username string
	if _, err := fmt.Sscanf(statement, "GRANT CONNECT ON DATABASE %q TO %q", &name, &username); err != nil || name != db.Name {
		return fmt.Errorf("the owner of %s cannot run %s", db.Name, statement)
	}
	return done(h.server.SetConnect(username, true))
}

// Entangle implements spec.OnServer.
func (h fakeOnServer) Entangle(in spec.Created, username string, tables int) error {
	for n := range tables {
		name := fmt.Sprintf("tangle_%d", n)
		if !h.server.AddDependencyIn(in.Name, username, role.Dependency{
			Kind: role.GrantDependency, ObjectType: "table", Schema: "public", Name: name, Identity: "public." + name,
			Grantor: in.Name,
		}) {
			return errNoLogin
		}
	}
	return nil
}

// Disentangle implements spec.OnServer.
func (h fakeOnServer) Disentangle(_ spec.Created, username string) error {
	return done(h.server.DropDependencies(username))
}

// SetPassword implements spec.OnServer.
func (h fakeOnServer) SetPassword(l spec.Login, password string) error {
	if !h.server.CanLogIn(l.From, l.Database, l.Username, l.Password) {
		return fakeagent.ErrLogInRefused
	}
	return done(h.server.DriftPassword(l.Username, password))
}

// Obstruct implements spec.OnServer.
func (h fakeOnServer) Obstruct(username string, on bool) error {
	return done(h.server.Obstruct(username, on))
}

// Grow implements spec.OnServer.
func (h fakeOnServer) Grow(db spec.Created, bytes int64) error {
	return done(h.server.SetSize(db.Name, bytes))
}

// Shrink implements spec.OnServer.
func (h fakeOnServer) Shrink(db spec.Created) error { return done(h.server.SetSize(db.Name, 0)) }

// Identify implements spec.OnServer: its notes are in no table.
func (h fakeOnServer) Identify(spec.Created) error { return nil }

// Keyless implements spec.OnServer.
func (h fakeOnServer) Keyless(db spec.Created) error {
	return done(h.server.Load(db.Name, "CREATE TABLE keyless (n int);\n"))
}

// DropLogin implements spec.OnServer.
func (h fakeOnServer) DropLogin(_ spec.Created, username string) error {
	return done(h.server.DropLogin(username))
}

// OwnExtension implements spec.OnServer.
func (h fakeOnServer) OwnExtension(in spec.Created, name extension.Name, version, schema string) error {
	if !h.server.PutExtension(in.Name, name, version, schema) {
		return fmt.Errorf("the server has no database %s", in.Name)
	}
	return nil
}

// BlockExtension implements spec.OnServer.
func (h fakeOnServer) BlockExtension(_ spec.Created, on bool) error {
	message := ""
	if on {
		message = "type \"citext\" already exists"
	}
	h.server.FailExtensions(message)
	return nil
}
