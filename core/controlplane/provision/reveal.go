package provision

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Made is a new database as its owner gets it. Password and ConnectionString are empty in the answer to a repeated request once
// the owner's password has changed, and where ShownAgain takes them out.
type Made struct {
	Record           database.Record
	Username         string
	Password         string
	ConnectionString string
}

// Reveal is a database with the password that its owner began with, unless that has changed since.
func Reveal(p *base.Base, r database.Record, owner ports.LoginSecret) (Made, error) {
	made := Made{Record: r, Username: owner.Username}
	if owner.Generation != 1 {
		return made, nil
	}
	password, err := p.Secrets.Open(owner.Sealed, owner.Context())
	if err != nil {
		return Made{}, err
	}
	made.Password = string(password)
	made.ConnectionString = r.ConnectionString(made.Username, made.Password)
	return made, nil
}

// WithoutStalePassword takes the password out of the answer to a repeated request when the owner has set another one on the
// server. A server that cannot be asked is taken to have the password: the first answer had it too.
func WithoutStalePassword(
	ctx context.Context, p *base.Base, by access.Caller, m Made, owner ports.LoginSecret,
) Made {
	if m.Password == "" {
		return m
	}
	ctx, cancel := p.Patient(ctx)
	defer cancel()
	release, err := p.Calls.Enter(ctx, by.Account.ID, m.Record.ServerID)
	if err != nil {
		return m
	}
	defer release()
	agent, err := p.AgentOf(ctx, m.Record.ServerID)
	if err != nil {
		return m
	}
	question := command.InspectLogin{DatabaseID: m.Record.ID, Username: m.Username, Verifier: owner.Verifier}
	login, err := ports.Ask(ctx, agent, question)
	if err == nil && login.Condition == command.LoginDrifted {
		m.Password, m.ConnectionString = "", ""
	}
	return m
}

// AgainFor is how long after the creation of a database a repeated request is shown its password: whoever did not get the first
// answer asks soon, and a key of a request should not stay worth as much as the password.
const AgainFor = 24 * time.Hour

// ShownAgain is the answer to a repeated request: with the password, which is then logged, or without it when
// AgainFor is over.
func ShownAgain(ctx context.Context, p *base.Base, by access.Caller, m Made) (Made, error) {
	if m.Password == "" {
		return m, nil
	}
	if p.Clock.Now().Sub(m.Record.CreatedAt) > AgainFor {
		m.Password, m.ConnectionString = "", ""
		return m, nil
	}
	err := p.UpdateStored(ctx, m.Record.ID, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		return p.Audit(ctx, tx, locked, by.Actor(), audit.PasswordShownAgain, audit.Details{"username": m.Username})
	})
	if err != nil {
		return Made{}, err
	}
	return m, nil
}
