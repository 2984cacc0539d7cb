package drafts

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// Made is a new database as its owner gets it. Password and ConnectionString are empty in the answer to a repeated request once
// the owner's password has changed.
type Made struct {
	Record           database.Record
	Username         string
	Password         string
	ConnectionString string
}

// Reveal is a database with the password that its owner began with, unless that has changed since.
func Reveal(p *plane.Plane, r database.Record, owner ports.LoginSecret) (Made, error) {
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
	ctx context.Context, p *plane.Plane, by access.Caller, m Made, owner ports.LoginSecret,
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
