package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// settle is how long an effect on the pooler may take to show.
const settle = 5 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func newFence() ports.Fence { return ports.Fence{OperationID: newID[id.OperationID](), Epoch: 1} }

func newSpec(model database.RoleModel) command.EnsureDatabase {
	db := newID[id.DatabaseID]()
	spec := command.EnsureDatabase{
		DatabaseID: db, AccountID: newID[id.AccountID](), Name: "c" + id.Compact(db)[:20], RoleModel: model,
		BackupKey: bytes.Repeat([]byte("k"), backup.KeyBytes),
	}
	if model == database.Managed {
		spec.ConnectionCap = 8
	}
	names := database.RoleNames(db, spec.Name)
	for _, login := range model.Logins() {
		spec.Logins = append(spec.Logins, newLogin(login, names.Of(login)))
	}
	return spec
}

func newLogin(login database.Login, username string) command.Login {
	password := rand.Text()
	var salt [16]byte
	_, _ = rand.Read(salt[:])
	return command.Login{
		Login: login, Username: username, Password: password,
		Verifier: credential.Verifier(password, salt, credential.Iterations),
	}
}

// made returns a database that stands, and the fence of the operation that made it.
func made(t *testing.T, s Stand) (command.EnsureDatabase, ports.Fence) {
	t.Helper()
	spec, fence := newSpec(database.SingleLogin), newFence()
	noError(t, ports.Tell(bounded(t), s.Agent, fence, spec))
	return spec, fence
}

// ask is ports.Ask for a question without an answer.
func ask(ctx context.Context, a ports.Agent, q command.Asking[command.None]) error {
	return refusal(ports.Ask(ctx, a, q))
}

func newID[T ~string]() T {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never returns an error
	return id.FromBytes[T](b)
}

var noError = check.NoError

func must[T any](result T, err error) func(testing.TB) T { return check.Must(result, err) }

// over asks until the work on a command has come to its end. Its progress never goes back.
func over[R any](t *testing.T, s Stand, fence ports.Fence, c command.Returning[R], at func(R) (running bool, progress int)) R {
	t.Helper()
	before := 0
	for ctx := bounded(t); ; time.Sleep(20 * time.Millisecond) {
		report := must(ports.Do(ctx, s.Agent, fence, c))(t)
		running, progress := at(report)
		if progress < before || progress > 100 {
			t.Errorf("progress went from %d to %d", before, progress)
		}
		if before = progress; !running {
			return report
		}
	}
}

// refusal is the error of a call.
func refusal[T any](_ T, err error) error { return err }

// refuses sends a command that must be refused.
func (s Stand) refuses(t *testing.T, fence ports.Fence, c command.Command, reason command.Reason) {
	t.Helper()
	wantReason(t, refusal(s.Agent.Do(bounded(t), fence, c)), reason)
}

func wantReason(t *testing.T, err error, reason command.Reason) {
	t.Helper()
	var no *command.Refusal
	if !errors.As(err, &no) || no.Reason != reason {
		t.Errorf("got %v, want a refusal for %s", err, reason)
		return
	}
	if no.Generations == nil && (reason == command.ReasonStale || reason == command.ReasonConflict) {
		t.Errorf("%v names no generations", err)
	}
}

// wantRefused checks that err is a definite no that shows no password.
func wantRefused(t *testing.T, err error, passwords ...string) {
	t.Helper()
	var no *command.Refusal
	if !errors.As(err, &no) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, p := range passwords {
		if strings.Contains(no.Message, p) {
			t.Errorf("the refusal shows a password: %s", no.Message)
		}
	}
}

// canLogIn tries both entries of the database; they must agree.
func canLogIn(t *testing.T, v ServerView, name string, l command.Login) bool {
	t.Helper()
	session, err := v.LogIn(name, l.Username, l.Password)
	if err == nil {
		session.Close()
	}
	pooled, perr := v.LogIn(name+".transaction", l.Username, l.Password)
	if perr == nil {
		pooled.Close()
	}
	if (err == nil) != (perr == nil) {
		t.Errorf("%s: %v, %s.transaction: %v", name, err, name, perr)
	}
	return err == nil
}

func wantLogIn(t *testing.T, v ServerView, spec command.EnsureDatabase, want bool) {
	t.Helper()
	for _, l := range spec.Logins {
		eventually(t, func() bool { return canLogIn(t, v, spec.Name, l) == want },
			"a log-in as %s of %s: want %t", l.Login, spec.Name, want)
	}
}

func logIn(t *testing.T, v ServerView, spec command.EnsureDatabase) CustomerSession {
	t.Helper()
	l := spec.Logins[0]
	session := must(v.LogIn(spec.Name, l.Username, l.Password))(t)
	t.Cleanup(session.Close)
	if !session.Alive() {
		t.Fatal("a fresh session is not alive")
	}
	return session
}

func wantEnded(t *testing.T, session CustomerSession) {
	t.Helper()
	eventually(t, func() bool { return !session.Alive() }, "the session is still alive")
}

// eventually waits for an effect.
func eventually(t *testing.T, holds func() bool, what string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(settle); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf(what, args...)
			return
		}
	}
}
