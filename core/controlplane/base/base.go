// Package base holds what all capabilities of one control plane share. A capability is a package beside this one: it gets a
// Base, registers its kinds of operations and its periodic tasks there, and keeps to itself what no other needs.
package base

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// Base is one control plane: its ports, the installation's choices, the engine that carries out operations, the runner of
// periodic tasks, the limiter before the agents, and the brake before what goes by time.
type Base struct {
	Ports
	Config
	Work   *work.Engine
	Rounds *rounds.Runner
	Calls  *Limiter
	// Hashing gives turns to those who hash passwords of people, in this process: see ThisProcess.
	Hashing *Limiter
	Brake   *Brake

	pushed []PushedState // see RegisterPushed
	heard  heard         // see InStep
}

// New checks the ports. It starts nothing.
func New(p Ports, c Config) (*Base, error) {
	if p.Store == nil || p.Admissions == nil || p.Fleet == nil || p.Clock == nil || p.Entropy == nil || p.Secrets == nil {
		return nil, errors.New("controlplane: Store, Admissions, Fleet, Clock, Entropy and Secrets are required")
	}
	if p.Journal == nil {
		p.Journal = ports.NoJournal{}
	}
	if p.Sender == nil {
		p.Sender = ports.NoWebhooks{}
	}
	if p.Passwords == nil {
		p.Passwords = ports.NoPasswords{}
	}
	if p.Passkeys == nil {
		p.Passkeys = ports.NoPasskeys{}
	}
	if p.SignOn == nil {
		p.SignOn = ports.NoSignOn{}
	}
	if c.SignOnRules.Required && p.SignOn.Issuer() == (person.Issuer{}) {
		return nil, errors.New("controlplane: without SignOn nobody could log in where it is required")
	}
	if p.Mailer == nil {
		p.Mailer = ports.NoMail{}
	}
	if p.Tokens == nil {
		p.Tokens = ports.NoTokens{}
	}
	if p.Snapshots == nil {
		p.Snapshots = ports.NoSnapshots{}
	}
	if p.Tracer == nil {
		p.Tracer = trace.Off{}
	}
	made := &Base{Ports: p, Config: withDefaults(c, p.Entropy)}
	if err := errors.Join(deletion.CheckWindow(made.RecoveryWindow), made.Retention.Check(), made.PITR.Check()); err != nil {
		return nil, err
	}
	made.Calls, made.Hashing = newCalls(made.Config), newHashing(made.Config)
	made.Brake = newBrake(made.Ports)
	made.Brake.Add(brake.Behind, made.behind)
	made.Work = work.New(work.Config{
		Store: p.Store, May: made.Brake.May, Held: made.mayOn, Clock: p.Clock, Entropy: p.Entropy, Journal: p.Journal,
		Tracer: p.Tracer, Site: made.DatabaseAndAgent, Audit: made.Audit, Instance: made.Instance, LeaseHold: made.LeaseHold,
		Crash: made.Crash,
	})
	made.Rounds = rounds.New(p.Clock, p.Journal, made.mayOn, made.reachable)
	return made, nil
}

// maxRequests is how many requests of an account may have or wait for a slot of a call, in one process. It bounds memory only.
const maxRequests = 512

func newCalls(c Config) *Limiter {
	return NewLimiter(slot.Limits{PerAccount: maxRequests, Share: c.CallsPerAccount, PerServer: c.CallsPerServer}, c.CallWait,
		"the account has too many requests under way that wait for a database server",
		"too many requests wait for this database server at the moment")
}

// The servers of the gate before hashing: who has proved something already waits for no stranger.
const (
	ThisProcess id.ServerID = "this process"
	Strangers   id.ServerID = "strangers to this process"
)

// Passwords are hashed by two at a time, and by two strangers, each with 19 MiB. Of those who accept invitations to one account's
// databases, are one person, or are strangers from one address, one at a time is served, so that nobody can keep all others
// waiting; few more may wait for it.
var hashLimits = slot.Limits{PerAccount: 16, Share: 1, PerServer: 2}

func newHashing(c Config) *Limiter {
	return NewLimiter(hashLimits, c.HashWait,
		"too many people log in from this address, or accept invitations of this account, at the moment; try again",
		"too many people log in or accept invitations at the moment; try again")
}

// Patient limits how long a request waits for an agent. The request continues even if the caller disconnects.
func (p *Base) Patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), p.RoleWait)
}

// Settling gives time to store an agent's answer even when the request's time is used up.
func (p *Base) Settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleWait)
}

// settleWait bounds how long a hanging store can delay a request.
const settleWait = 10 * time.Second
