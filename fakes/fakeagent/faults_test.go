package fakeagent_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

var (
	fence = ports.Fence{OperationID: "22222222-2222-4222-8222-222222222222", Epoch: 1}
	home  = netip.MustParseAddr("127.0.0.1")
)

func orders() ports.DatabaseSpec {
	return ports.DatabaseSpec{
		ID: "11111111-1111-4111-8111-111111111111", Name: "orders", RoleModel: database.SingleLogin,
		Logins: []ports.LoginSpec{{
			Login: database.OwnerLogin, Username: "orders", Password: "pw", Verifier: credential.Verifier("pw", [16]byte{1}, 1),
		}},
	}
}

func backup() ports.BackupSpec {
	return ports.BackupSpec{DatabaseID: orders().ID, Filename: "20261121_065347.sql.gz", Verify: true}
}

func TestUnreachableDoesNothing(t *testing.T) {
	a, s := stand(t)
	s.SetUnreachable(true)
	if err := a.EnsureDatabase(t.Context(), fence, orders()); !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v", err)
	}
	if got := s.Databases(); len(got) != 0 {
		t.Errorf("made %v", got)
	}
	s.SetUnreachable(false)
	if err := a.EnsureDatabase(t.Context(), fence, orders()); err != nil {
		t.Errorf("back again: %v", err)
	}
}

func TestALostReplyHasItsEffect(t *testing.T) {
	a, s := stand(t)
	s.LoseReplies(1)
	if err := a.EnsureDatabase(t.Context(), fence, orders()); !errors.Is(err, fakeagent.ErrReplyLost) {
		t.Errorf("got %v", err)
	}
	if !s.CanLogIn(home, "orders", "orders", "pw") {
		t.Error("the database is not there")
	}
	if err := a.EnsureDatabase(t.Context(), fence, orders()); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestUnavailableIsARefusal(t *testing.T) {
	a, s := stand(t)
	s.SetUnavailable(true)
	for _, err := range []error{a.Ready(t.Context()), a.EnsureDatabase(t.Context(), fence, orders()), a.Close(t.Context(), fence)} {
		if !ports.RefusedFor(err, ports.ReasonUnavailable) {
			t.Errorf("got %v", err)
		}
	}
}

func TestSlowCallsEndWithTheirContext(t *testing.T) {
	a, s := stand(t)
	s.SetDelay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := a.EnsureDatabase(ctx, fence, orders())
	if !errors.Is(err, fakeagent.ErrReplyLost) || errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v", err)
	}
	if err := a.Ready(ctx); !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("a call whose context has ended before: %v", err)
	}
}

func TestHookDecidesOverEachCall(t *testing.T) {
	a, s := stand(t)
	var seen []fakeagent.Call
	s.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		seen = append(seen, c)
		if c.CallIndex == 0 {
			return fakeagent.Fault{Before: ports.ErrAgentUnreachable}
		}
		return fakeagent.Fault{After: fakeagent.ErrReplyLost}
	})
	first, second := a.EnsureDatabase(t.Context(), fence, orders()), a.EnsureDatabase(t.Context(), fence, orders())
	if !errors.Is(first, ports.ErrAgentUnreachable) || !errors.Is(second, fakeagent.ErrReplyLost) {
		t.Errorf("got %v, then %v", first, second)
	}
	want := fakeagent.Call{Method: "EnsureDatabase", Fence: fence, Database: orders().ID, CallIndex: 1}
	if len(seen) != 2 || seen[1] != want || s.Calls("EnsureDatabase") != 2 {
		t.Errorf("the hook saw %+v", seen)
	}
	if len(s.Databases()) != 1 {
		t.Error("the second call had no effect")
	}
}

func TestStorageFull(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	s.SetStorageFull(true)
	if err := a.RoomForBackup(t.Context(), orders().ID); !ports.RefusedFor(err, ports.ReasonStorageFull) {
		t.Errorf("got %v", err)
	}
	r := finish(t, a)
	if r.State != ports.BackupFailed || r.Reason != ports.ReasonStorageFull || r.Message == "" {
		t.Errorf("got %+v", r)
	}
	if _, err := a.OpenBackup(t.Context(), orders().ID, backup().Filename); !ports.RefusedFor(err, ports.ReasonNotFound) {
		t.Errorf("opening gave %v", err)
	}
}

func TestNotVerifiedKeepsTheFile(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	s.SetNotVerified("view v: SQLSTATE 42P01")
	r := finish(t, a)
	if r.State != ports.BackupNotVerified || r.Message != "view v: SQLSTATE 42P01" || r.VerifiedAt != nil || r.SizeBytes == 0 {
		t.Errorf("got %+v", r)
	}
	if err := a.Close(t.Context(), fence2()); !ports.RefusedFor(err, ports.ReasonCompleted) {
		t.Errorf("closing: %v", err)
	}
	if _, err := a.OpenBackup(t.Context(), orders().ID, backup().Filename); err != nil {
		t.Errorf("opening: %v", err)
	}
}

func TestOldAgentHasNoBackupRoutes(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	s.SetOldAgent(true)
	_, opened := a.OpenBackup(t.Context(), orders().ID, backup().Filename)
	for _, err := range []error{opened, a.DeleteBackup(t.Context(), orders().ID, "x"), a.RoomForBackup(t.Context(), orders().ID)} {
		if !ports.RefusedFor(err, ports.ReasonNoRoute) {
			t.Errorf("got %v", err)
		}
	}
}

func TestABackupIsASnapshotOfTheContents(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	before, _ := a.DatabaseSize(t.Context(), orders().ID)
	if !s.Load("orders", "CREATE TABLE t ();") || s.Load("nothing", "x") {
		t.Error("Load takes a wrong name or not a right one")
	}
	after, err := a.DatabaseSize(t.Context(), orders().ID)
	if err != nil || after <= before {
		t.Errorf("%d bytes, then %d (%v)", before, after, err)
	}
	if r, err := a.Backup(t.Context(), fence2(), backup()); err != nil || r.State != ports.BackupRunning {
		t.Fatalf("got %+v (%v)", r, err)
	}
	s.Load("orders", "CREATE TABLE late ();")
	finish(t, a)
	file, err := a.OpenBackup(t.Context(), orders().ID, backup().Filename)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(file.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !strings.Contains(string(text), "TABLE t ()") || strings.Contains(string(text), "late") {
		t.Errorf("the dump is %q (%v)", text, err)
	}
}

func TestADownloadEndsWithItsContext(t *testing.T) {
	a, _ := stand(t)
	mustMake(t, a)
	finish(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	file, err := a.OpenBackup(ctx, orders().ID, backup().Filename)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(file.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLogInsFromAddresses(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	ten := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	spec := ports.AllowlistSpec{DatabaseID: orders().ID, Generation: 1, Networks: ten}
	if err := a.SetAllowlist(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "::1": false} {
		if got := s.CanLogIn(netip.MustParseAddr(from), "orders", "orders", "pw"); got != want {
			t.Errorf("from %s: %t", from, got)
		}
	}
}

func fence2() ports.Fence {
	return ports.Fence{OperationID: "44444444-4444-4444-8444-444444444444", Epoch: 1}
}

func mustMake(t *testing.T, a ports.Agent) {
	t.Helper()
	if err := a.EnsureDatabase(t.Context(), fence, orders()); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, a ports.Agent) ports.BackupReport {
	t.Helper()
	for range 10 {
		r, err := a.Backup(t.Context(), fence2(), backup())
		if err != nil {
			t.Fatal(err)
		}
		if r.State != ports.BackupRunning {
			return r
		}
	}
	t.Fatal("the backup does not end")
	return ports.BackupReport{}
}
