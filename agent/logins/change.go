package logins

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
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
func (x *Logins) changeLogin(
	ctx context.Context, e protocol.Command, c command.ChangeLogin,
) (proof role.Proof, err error) {
	l, err := x.login(ctx, string(c.DatabaseID), c.Username)
	if err == nil && c.Want == role.Rotation {
		err = mayRotate(l, c)
	}
	if err != nil {
		return proof, err
	}
	crash.Point(crash.ChangeAdmitted)
	proof.Absent = !l.exists
	if err := x.silence(ctx, l, c, &proof); err != nil {
		return proof, err
	}
	if err := x.setCredential(ctx, l, c); err != nil {
		return proof, err
	}
	crash.Point(crash.ChangeSet)
	if err := x.proveChange(ctx, l, c, &proof); err != nil {
		return proof, err
	}
	crash.Point(crash.ChangeProved)
	if err := x.settle(ctx, l, c, &proof); err != nil {
		return proof, err
	}
	crash.Point(crash.ChangeSwept)
	return ledger.Conclude(ctx, x.ledger, e, proof, crash.ChangeReply)
}

func mayRotate(l loginRow, c command.ChangeLogin) error {
	switch {
	case !l.exists:
		return command.Refuse(command.ReasonNotFound, "the server has no login %s", l.name)
	case !l.db.Open:
		return errDatabaseClosed
	case l.credentialGeneration > c.CredentialGeneration:
		return command.Refuse(command.ReasonStale, "a newer password is in force")
	case !credential.Matches(c.Verifier, c.NewPassword):
		return command.Refuse(command.ReasonFailed, "the verifier is not of the new password")
	case c.OldPassword == c.NewPassword:
		return command.Refuse(command.ReasonFailed, "the new password is the old one")
	}
	return nil
}

// silence lets nobody in as the login and everybody out. Once it returns, the role is NOLOGIN, and no client and no session is
// left.
func (x *Logins) silence(ctx context.Context, l loginRow, c command.ChangeLogin, proof *role.Proof) (err error) {
	if err := x.closeGate(ctx, l, c.Want); err != nil {
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
func (x *Logins) closeGate(ctx context.Context, l loginRow, want role.Kind) error {
	statements := []string{ledger.FlushLater, l.gateStatement(false)}
	if want != role.Rotation {
		statements = append(statements, l.rowStatement("enabled = false"))
	}
	return pg.Atomically(ctx, x.db, statements...)
}

// forbidLogin makes the role NOLOGIN, whatever transaction of a customer's is in the way.
func (x *Logins) forbidLogin(ctx context.Context, l loginRow, ended endedSessions) error {
	if !l.exists {
		return nil
	}
	return x.forced(ctx, l, ended, "ALTER ROLE "+pg.Ident(l.name)+" NOLOGIN")
}

// setCredential is one transaction: a rotated login has its password and its limit and may log in, gate and ledger included; a
// revoked one has lost its password. The role is NOLOGIN and without sessions here.
func (x *Logins) setCredential(ctx context.Context, l loginRow, c command.ChangeLogin) error {
	if !l.exists {
		return nil
	}
	seen, err := x.observe(ctx, l, c.Verifier, "")
	if err != nil {
		return err
	}
	p := loginPlan{loginRow: l, verifier: c.Verifier, desired: role.Login{Present: true}}
	set := "changed_at = clock_timestamp(), verifier_mark = pooler.verifier_mark(name)"
	switch c.Want {
	case role.Rotation:
		p.desired.MayLogIn, p.desired.Password, p.desired.ValidUntil = !l.db.Shut, role.OurPassword, c.ValidUntil
		p.desired.Limit = l.serverLimit()
		set += fmt.Sprintf(", enabled = true, credential_generation = %d", c.CredentialGeneration)
	case role.Revocation, role.Removal:
		p.desired.Password = role.NoPassword
	case role.Expiry:
	}
	statements := append(p.statements(seen), l.rowStatement(set))
	if c.Want == role.Rotation {
		back, err := x.beginnable(ctx, l)
		if err != nil {
			return err
		}
		statements = append(append(statements, l.gateStatement(true)), back...)
	}
	if err := x.forced(ctx, l, make(endedSessions), statements...); err != nil {
		return err
	}
	return x.markChanged(ctx, l)
}

// markChanged takes the time of the change once more, after its commit: a log-in that began just before that still read the old
// password.
func (x *Logins) markChanged(ctx context.Context, l loginRow) error {
	defer x.wakeSweep()
	return pg.Atomically(ctx, x.db, ledger.FlushLater, l.rowStatement("changed_at = clock_timestamp()"))
}

// settle ends the sessions that began before the change, and then looks once more at what is stored: one of them may have set a
// password of its own. Whoever still stands in the middle of a log-in is left to the sweep.
func (x *Logins) settle(ctx context.Context, l loginRow, c command.ChangeLogin, proof *role.Proof) error {
	if err := x.watchParked(ctx, l); err != nil {
		return err
	}
	n, err := x.endEarlier(ctx, l)
	if err != nil {
		return err
	}
	proof.SessionsEnded += n
	return x.proveStored(ctx, l, c)
}

// endEarlier ends the sessions that began before the change, and returns how many there were.
func (x *Logins) endEarlier(ctx context.Context, l loginRow) (int, error) {
	ended := make(endedSessions)
	err := x.ledger.Until(ctx, "sessions of the old password are still open", func() (int, error) {
		return x.endSelected(ctx, ended, sessionsBefore, l.oid)
	})
	return len(ended), err
}
