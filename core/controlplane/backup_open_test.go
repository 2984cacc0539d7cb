package controlplane_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// reader is an account with a database and a backup of it.
type reader struct {
	w    *world
	r    access.Reached
	name backup.Filename
}

func (w *world) reader(name string) reader {
	w.t.Helper()
	_, _, c := w.newAccount(name+"@example.org", account.Pro)
	made := must(w.Databases.Create(w.ctx, c, request(name)))(w.t)
	r := must(w.Access.Reach(w.ctx, c, made.Record.ID, account.See))(w.t)
	must(w.Backups.Start(w.ctx, r))(w.t)
	w.work(w.ControlPlane)
	return reader{w, r, w.backups(r)[0].Filename}
}

func (a reader) open(ctx context.Context) (backups.Download, error) {
	return a.w.Backups.Open(ctx, a.r, a.name, backup.Beginning{})
}

func (a reader) opens() io.Closer {
	a.w.t.Helper()
	return must(a.open(a.w.ctx))(a.w.t).File.Body
}

// narrow is a process with few slots.
func narrow(perAccount, perServer int, wait time.Duration) controlplane.Config {
	c := quick()
	c.DownloadsPerAccount, c.DownloadsPerServer, c.DownloadWait = perAccount, perServer, wait
	return c
}

func expectLater(t *testing.T, err error, code fault.Code) {
	t.Helper()
	refused(t, err, code)
	var e *fault.Error
	if errors.As(err, &e); e.RetryAfter <= 0 {
		t.Errorf("%v does not say when to come back", err)
	}
}

func TestAnAccountHasFourDownloads(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.reader("ada"), w.reader("bob")
	var first io.Closer
	for range base.DefaultDownloadsPerAccount {
		first = ada.opens()
	}
	_, err := ada.open(w.ctx)
	expectLater(t, err, fault.RateLimited)
	bob.opens()
	ok(t, first.Close())
	ok(t, first.Close()) // gives back nothing that is another's
	ada.opens()
	_, err = ada.open(w.ctx)
	expectLater(t, err, fault.RateLimited)
	equal(t, "downloads in ada's log", count(w.activity(ada.r.Record().ID), audit.BackupDownloaded), 5)
}

// Who has the beginning of the file gets the rest of it, and of another file the whole.
func TestTheRestOfADownload(t *testing.T) {
	w := newWorld(t)
	ada := w.reader("ada")
	stored := w.backups(ada.r)[0]
	content := func(has backup.Beginning) string {
		t.Helper()
		d := must(w.Backups.Open(w.ctx, ada.r, ada.name, has))(t)
		text := must(io.ReadAll(d.File.Body))(t)
		ok(t, d.File.Body.Close())
		equal(t, "announced", d.File.Size, int64(len(text)))
		return string(text)
	}
	whole := content(backup.Beginning{})
	has := backup.Beginning{Bytes: 7, SHA256: stored.ChecksumSHA256}
	equal(t, "the rest", content(has), whole[7:])
	equal(t, "of another file", content(backup.Beginning{Bytes: 7, SHA256: "another"}), whole)
}

// With one slot in all, the next downloads show whether the last one gave it back: to its account and to the server.
func TestEveryEndOfADownloadGivesBackItsSlot(t *testing.T) {
	with := func(f fakeagent.Fault) func(reader) {
		return func(a reader) {
			a.w.server.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault { return f })
		}
	}
	for name, arrange := range map[string]func(reader){
		"closed":         func(reader) {},
		"agent refuses":  with(fakeagent.Fault{Before: &command.Refusal{Reason: command.ReasonNotFound}}),
		"agent fails":    with(fakeagent.Fault{Before: errors.New("broken")}),
		"reply lost":     with(fakeagent.Fault{After: fakeagent.ErrReplyLost}),
		"unreachable":    func(a reader) { a.w.server.SetUnreachable(true) },
		"file cut short": func(a reader) { a.w.server.CutShort(a.r.Record().ID, string(a.name)) },
		"panic": func(a reader) {
			a.w.server.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault { panic(crash{"here"}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := configured(t, narrow(1, 1, 20*time.Millisecond))
			ada, bob := w.reader("ada"), w.reader("bob")
			arrange(ada)
			dies(func() {
				if d, err := ada.open(w.ctx); err == nil {
					ok(t, d.File.Body.Close())
				}
			})
			w.server.OnCall(nil)
			w.server.SetUnreachable(false)
			ok(t, bob.opens().Close())
			if _, err := ada.open(w.ctx); fault.Has(err, fault.RateLimited) {
				t.Errorf("ada's own slot: %v", err)
			}
		})
	}
}

func TestADownloadWaitsForASlotOfItsServer(t *testing.T) {
	w := configured(t, narrow(4, 1, 20*time.Millisecond))
	ada, bob := w.reader("ada"), w.reader("bob")
	open := ada.opens()
	_, err := bob.open(w.ctx)
	expectLater(t, err, fault.ServerBusy)
	equal(t, "files that bob's agent opened", w.server.Calls("OpenBackup"), 1)
	ok(t, open.Close())
	ok(t, bob.opens().Close())

	w.ControlPlane = w.process(narrow(4, 1, time.Minute))
	open = ada.opens()
	opened := make(chan error, 1)
	go func() {
		_, err := bob.open(w.ctx)
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("bob did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	ok(t, open.Close())
	ok(t, <-opened)
}
