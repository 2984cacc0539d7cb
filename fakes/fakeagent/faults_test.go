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

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

var (
	fence = ports.Fence{OperationID: "22222222-2222-4222-8222-222222222222", Epoch: 1}
	home  = netip.MustParseAddr("127.0.0.1")
)

func orders() command.EnsureDatabase {
	return command.EnsureDatabase{
		DatabaseID: "11111111-1111-4111-8111-111111111111", Name: "orders", RoleModel: database.SingleLogin,
		Logins: []command.Login{{
			Login: database.OwnerLogin, Username: "orders", Password: "pw", Verifier: credential.Verifier("pw", [16]byte{1}, 1),
		}},
	}
}

var (
	room = command.RoomForBackup{DatabaseID: orders().DatabaseID}
	file = command.OpenBackup{DatabaseID: orders().DatabaseID, Filename: backup().Filename}
)

func backup() command.Backup {
	return command.Backup{DatabaseID: orders().DatabaseID, Filename: "20261121_065347.sql.gz", Verify: true}
}

func TestUnreachableDoesNothing(t *testing.T) {
	a, s := stand(t)
	s.SetUnreachable(true)
	if err := ports.Tell(t.Context(), a, fence, orders()); !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v", err)
	}
	if got := s.Databases(); len(got) != 0 {
		t.Errorf("made %v", got)
	}
	s.SetUnreachable(false)
	if err := ports.Tell(t.Context(), a, fence, orders()); err != nil {
		t.Errorf("back again: %v", err)
	}
}

func TestALostReplyHasItsEffect(t *testing.T) {
	a, s := stand(t)
	s.LoseReplies(1)
	if err := ports.Tell(t.Context(), a, fence, orders()); !errors.Is(err, fakeagent.ErrReplyLost) {
		t.Errorf("got %v", err)
	}
	if !s.CanLogIn(home, "orders", "orders", "pw") {
		t.Error("the database is not there")
	}
	if err := ports.Tell(t.Context(), a, fence, orders()); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestUnavailableIsARefusal(t *testing.T) {
	a, s := stand(t)
	s.SetUnavailable(true)
	for _, err := range []error{
		ask(t.Context(), a, command.RoomForBackup{}), ports.Tell(t.Context(), a, fence, orders()), ports.Close(t.Context(), a, fence),
	} {
		if !command.RefusedFor(err, command.ReasonUnavailable) {
			t.Errorf("got %v", err)
		}
	}
}

func TestSlowCallsEndWithTheirContext(t *testing.T) {
	a, s := stand(t)
	s.SetDelay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := ports.Tell(ctx, a, fence, orders())
	if !errors.Is(err, fakeagent.ErrReplyLost) || errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v", err)
	}
	if err := ask(ctx, a, command.RoomForBackup{}); !errors.Is(err, ports.ErrAgentUnreachable) {
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
	first, second := ports.Tell(t.Context(), a, fence, orders()), ports.Tell(t.Context(), a, fence, orders())
	if !errors.Is(first, ports.ErrAgentUnreachable) || !errors.Is(second, fakeagent.ErrReplyLost) {
		t.Errorf("got %v, then %v", first, second)
	}
	want := fakeagent.Call{
		Method: "EnsureDatabase", Step: "database.ensure", Fence: fence, Database: orders().DatabaseID, CallIndex: 1,
	}
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
	if err := ask(t.Context(), a, room); !command.RefusedFor(err, command.ReasonStorageFull) {
		t.Errorf("got %v", err)
	}
	r := finish(t, a)
	if r.State != command.BackupFailed || r.Reason != command.ReasonStorageFull || r.Message == "" {
		t.Errorf("got %+v", r)
	}
	if _, err := a.Open(t.Context(), file); !command.RefusedFor(err, command.ReasonNotFound) {
		t.Errorf("opening gave %v", err)
	}
}

func TestNotVerifiedKeepsTheFile(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	s.SetNotVerified("view v: SQLSTATE 42P01")
	r := finish(t, a)
	if r.State != command.BackupNotVerified || r.Message != "view v: SQLSTATE 42P01" || r.VerifiedAt != nil || r.SizeBytes == 0 {
		t.Errorf("got %+v", r)
	}
	if err := ports.Close(t.Context(), a, fence2()); !command.RefusedFor(err, command.ReasonCompleted) {
		t.Errorf("closing: %v", err)
	}
	if _, err := a.Open(t.Context(), file); err != nil {
		t.Errorf("opening: %v", err)
	}
}

func TestOldAgentHasNoBackupRoutes(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	s.SetOldAgent(true)
	_, opened := a.Open(t.Context(), file)
	deletion := command.DeleteBackup{DatabaseID: file.DatabaseID, Filename: file.Filename}
	for _, err := range []error{opened, ask(t.Context(), a, deletion), ask(t.Context(), a, room)} {
		if !command.RefusedFor(err, command.ReasonNoRoute) {
			t.Errorf("got %v", err)
		}
	}
}

func TestABackupIsASnapshotOfTheContents(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	before, _ := ports.Ask(t.Context(), a, command.DatabaseSize{DatabaseID: orders().DatabaseID})
	if !s.Load("orders", "CREATE TABLE t ();") || s.Load("nothing", "x") {
		t.Error("Load takes a wrong name or not a right one")
	}
	after, err := ports.Ask(t.Context(), a, command.DatabaseSize{DatabaseID: orders().DatabaseID})
	if err != nil || after.Bytes <= before.Bytes {
		t.Errorf("%d bytes, then %d (%v)", before.Bytes, after.Bytes, err)
	}
	if r, err := ports.Do(t.Context(), a, fence2(), backup()); err != nil || r.State != command.BackupRunning {
		t.Fatalf("got %+v (%v)", r, err)
	}
	s.Load("orders", "CREATE TABLE late ();")
	finish(t, a)
	opened, err := a.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(opened.Body)
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
	opened, err := a.Open(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(opened.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLogInsFromAddresses(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	ten := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	spec := command.SetAllowlist{DatabaseID: orders().DatabaseID, Generation: 1, Networks: ten}
	if err := ports.Tell(t.Context(), a, ports.Fence{}, spec); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "::1": false} {
		if got := s.CanLogIn(netip.MustParseAddr(from), "orders", "orders", "pw"); got != want {
			t.Errorf("from %s: %t", from, got)
		}
	}
}

func ask(ctx context.Context, a ports.Agent, q command.Asking[command.None]) error {
	_, err := ports.Ask(ctx, a, q)
	return err
}

func fence2() ports.Fence {
	return ports.Fence{OperationID: "44444444-4444-4444-8444-444444444444", Epoch: 1}
}

func mustMake(t *testing.T, a ports.Agent) {
	t.Helper()
	if err := ports.Tell(t.Context(), a, fence, orders()); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, a ports.Agent) command.BackupReport {
	t.Helper()
	for range 10 {
		r, err := ports.Do(t.Context(), a, fence2(), backup())
		if err != nil {
			t.Fatal(err)
		}
		if r.State != command.BackupRunning {
			return r
		}
	}
	t.Fatal("the backup does not end")
	return command.BackupReport{}
}
