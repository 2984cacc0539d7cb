package fakeagent_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

var fence = ports.Fence{OperationID: "22222222-2222-4222-8222-222222222222", Epoch: 1}

func orders() command.EnsureDatabase {
	return command.EnsureDatabase{
		DatabaseID: "11111111-1111-4111-8111-111111111111", Name: "orders", RoleModel: database.SingleLogin,
		BackupKey: make([]byte, 32),
		Logins: []command.Login{{
			Login: database.OwnerLogin, Username: "orders", Password: "pw", Verifier: credential.Verifier("pw", [16]byte{1}, 1),
		}},
	}
}

var file = command.OpenBackup{DatabaseID: orders().DatabaseID, Filename: backup().Filename}

func backup() command.Backup {
	return command.Backup{DatabaseID: orders().DatabaseID, Filename: "20261121_065347.sql.gz", Verify: true}
}

func TestSlowCallsEndWithTheirContext(t *testing.T) {
	a, s := stand(t)
	s.SetDelay(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // in which the call begins
	defer cancel()
	err := ports.Tell(ctx, a, fence, orders())
	if !errors.Is(err, fakeagent.ErrReplyLost) || errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("got %v", err)
	}
	if err := ask(ctx, a, command.RoomForBackup{}); !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("a call whose context has ended before: %v", err)
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

// An opt-in that leaves something has made the groups, and goes on when it is repeated.
func TestAnOverlayThatIsHalfMade(t *testing.T) {
	a, s := stand(t)
	mustMake(t, a)
	optIn := command.EnsureOverlay{DatabaseID: orders().DatabaseID}
	left := true
	s.LeaveOverlays(func() bool { return left })
	for range 2 {
		err := ports.Tell(t.Context(), a, fence, optIn)
		if !command.RefusedFor(err, command.ReasonUnfinished) || s.GroupsHave("orders") {
			t.Errorf("left: %v, the groups have all: %t", err, s.GroupsHave("orders"))
		}
	}
	rights, err := ports.Ask(t.Context(), a, command.AskRights{DatabaseID: orders().DatabaseID})
	if err != nil || len(rights.Groups) > 0 || *rights.Overlay {
		t.Errorf("%+v, %v", rights, err)
	}
	left = false
	if err := ports.Tell(t.Context(), a, fence, optIn); err != nil || !s.GroupsHave("orders") {
		t.Error(err)
	}
	left = true
	if err := ports.Tell(t.Context(), a, ports.Fence{OperationID: "another"}, optIn); err != nil {
		t.Errorf("an overlay that stands: %v", err)
	}
}
