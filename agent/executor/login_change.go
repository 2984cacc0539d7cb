package executor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/role"
)

// changeLogin rotates the password of a login, revokes it, or ends its log-in. What used the old password is dead before anything
// may use a new one, and again afterwards:
//
//   - the gate is closed and the clients of the pooler are ended, also those in the middle of a log-in: a client that stayed
//     connected would work again as soon as somebody logs in with the new password;
//   - the role becomes NOLOGIN before its password changes, so that no session is left that could set a password of its own;
//   - after the proof the sessions that began before the change are ended once more, and what is stored is compared once more:
//     PostgreSQL lets in who began its log-in with the old password and stood still in the middle. The sweep goes on with ending
//     them for as long as a log-in may take.
func (x *Executor) changeLogin(ctx context.Context, o loginOrder) (json.RawMessage, error) {
	l, err := x.login(ctx, o.DatabaseID, o.Username)
	if err == nil && o.Want == protocol.LoginRotate {
		err = mayRotate(l, o)
	}
	if err != nil {
		return nil, err
	}
	crash.Point(crash.ChangeAdmitted)
	proof := protocol.LoginProof{Absent: !l.standing}
	if err := x.silence(ctx, l, o, &proof); err != nil {
		return nil, err
	}
	if err := x.setCredential(ctx, l, o); err != nil {
		return nil, err
	}
	crash.Point(crash.ChangeSet)
	if err := x.proveChange(ctx, l, o, &proof); err != nil {
		return nil, err
	}
	crash.Point(crash.ChangeProved)
	if err := x.settle(ctx, l, o, &proof); err != nil {
		return nil, err
	}
	crash.Point(crash.ChangeSwept)
	result, err := json.Marshal(proof)
	if err != nil {
		return nil, err
	}
	if err := atomically(ctx, x.db, outcome(o.command, result)); err != nil {
		return nil, err
	}
	crash.Point(crash.ChangeReply)
	return result, nil
}

func mayRotate(l loginRow, o loginOrder) error {
	switch {
	case !l.standing:
		return refuse(protocol.ReasonNotFound, "the server has no login %s", l.name)
	case !l.open:
		return errDatabaseClosed
	case l.credentialGeneration > o.CredentialGeneration:
		return refuse(protocol.ReasonStale, "a newer password is in force")
	case !credential.Matches(o.Verifier, o.fresh):
		return refuse(protocol.ReasonFailed, "the verifier is not of the new password")
	case o.old == o.fresh:
		return refuse(protocol.ReasonFailed, "the new password is the old one")
	}
	return nil
}

// silence lets nobody in as the login and everybody out. Once it returns, the role is NOLOGIN, and no client and no session is
// left.
func (x *Executor) silence(ctx context.Context, l loginRow, o loginOrder, proof *protocol.LoginProof) (err error) {
	if err := x.closeGate(ctx, l, o); err != nil {
		return err
	}
	crash.Point(crash.ChangeGateClosed)
	if proof.ClientsClosed, err = x.pooler.Expel(ctx, pooler.OfLogin(l.name)); err != nil {
		return err
	}
	crash.Point(crash.ChangeEvicted)
	ended := make(endedSessions)
	if err := x.forbidLogin(ctx, l, ended); err != nil {
		return err
	}
	crash.Point(crash.ChangeLoginOff)
	if err := x.endLogin(ctx, l, ended); err != nil {
		return err
	}
	proof.SessionsEnded, proof.NoneLeft = len(ended), true
	crash.Point(crash.ChangeEnded)
	return nil
}

// closeGate lets nobody new pass the pooler. A login that is shut for good is no longer enabled from here on: no start of the
// database opens it again.
func (x *Executor) closeGate(ctx context.Context, l loginRow, o loginOrder) error {
	statements := []string{flushLater, l.gateStatement(false)}
	if o.Want != protocol.LoginRotate {
		statements = append(statements, l.rowStatement("enabled = false"))
	}
	return atomically(ctx, x.db, statements...)
}

// forbidLogin makes the role NOLOGIN, whatever transaction of a customer's is in the way.
func (x *Executor) forbidLogin(ctx context.Context, l loginRow, ended endedSessions) error {
	if !l.standing {
		return nil
	}
	return x.forced(ctx, l, ended, "ALTER ROLE "+ident(l.name)+" NOLOGIN")
}

// setCredential is one transaction: a rotated login has its password and its limit and may log in, gate and ledger included; a
// revoked one has lost its password. The role is NOLOGIN and without sessions here.
func (x *Executor) setCredential(ctx context.Context, l loginRow, o loginOrder) error {
	if !l.standing {
		return nil
	}
	seen, err := x.observe(ctx, l, o.Verifier, "")
	if err != nil {
		return err
	}
	p := loginPlan{loginRow: l, verifier: o.Verifier, desired: role.Login{Present: true}}
	set := "changed_at = clock_timestamp(), verifier_mark = pooler.verifier_mark(name)"
	switch o.Want {
	case protocol.LoginRotate:
		p.desired.MayLogIn, p.desired.Password, p.desired.ValidUntil = true, role.OurPassword, o.ValidUntil
		p.desired.Limit = l.serverLimit()
		set += fmt.Sprintf(", enabled = true, credential_generation = %d", o.CredentialGeneration)
	case protocol.LoginRevoke, protocol.LoginRemove:
		p.desired.Password = role.NoPassword
	}
	statements := append(p.statements(seen), l.rowStatement(set))
	if o.Want == protocol.LoginRotate {
		statements = append(append(statements, l.gateStatement(true)), l.beginnableStatements()...)
	}
	if err := x.forced(ctx, l, make(endedSessions), statements...); err != nil {
		return err
	}
	return x.markChanged(ctx, l)
}

// markChanged takes the time of the change once more, after its commit: a log-in that began just before that still read the old
// password.
func (x *Executor) markChanged(ctx context.Context, l loginRow) error {
	defer x.wakeSweep()
	return atomically(ctx, x.db, flushLater, l.rowStatement("changed_at = clock_timestamp()"))
}

// settle ends the sessions that began before the change, and then looks once more at what is stored: one of them may have set a
// password of its own. Whoever still stands in the middle of a log-in is left to the sweep.
func (x *Executor) settle(ctx context.Context, l loginRow, o loginOrder, proof *protocol.LoginProof) error {
	if err := x.watchParked(ctx, l); err != nil {
		return err
	}
	n, err := x.endEarlier(ctx, l)
	if err != nil {
		return err
	}
	proof.SessionsEnded += n
	return x.proveStored(ctx, l, o)
}

// endEarlier ends the sessions that began before the change, and returns how many there were.
func (x *Executor) endEarlier(ctx context.Context, l loginRow) (int, error) {
	ended := make(endedSessions)
	err := x.until(ctx, "sessions of the old password are still open", func() (int, error) {
		return x.endSelected(ctx, ended, sessionsBefore, l.oid)
	})
	return len(ended), err
}
